"""The data of this VM's etcd: whether the data are lost, and how a member with lost data returns. Steps, and the effect
of a restart of the service after the hook was killed at each step
 1. STATE_DIR/etcd.env has existed since the first drain, with an existing cluster that has no other member. An etcd
    with data ignores the file. An etcd without data refuses to start, because no member is named to ask. With "new"
    etcd would begin a cluster of its own as soon as its member is removed, also after an earlier addition, and could
    never return.
 2. The member's name and addresses are in STATE_DIR/etcd.json: nothing has changed.
 3. The member is removed, 4. and added anew: etcd refuses to start.
 5. STATE_DIR/etcd.env has the new settings: etcd starts, and receives the data from the others.
 6. START; service is proven; etcd.env is as before; the notes are removed.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Any

from allclear_hook import Blocked, Failed, Memory, Told, call, progress, setting
from disks import Place, unmounted
from etcd_cluster import Answer, Cluster

# An etcd that refuses to start without its data leaves a far smaller file, without a member.
EMPTY = 1 << 20
A_MEMBER = b"peerURLs"


def memory() -> Memory:
    return Memory("etcd")


def where() -> Place:
    return Place("etcd")


def folder() -> Path | None:
    named = setting("DATA_DIR", "")
    return Path(named) if named else None


def found(place: Path, pattern: str) -> list[Path]:
    """The existing files, also if this user may not read them."""
    try:
        with os.scandir(place) as entries:
            return sorted(Path(each.path) for each in entries if Path(each.name).match(pattern))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise Failed(f"nobody can tell whether etcd's data are in {place}: {error.strerror}") from error


def log(place: Path) -> bool:
    """Whether the log exists from which etcd starts."""
    return bool(found(place / "member" / "wal", "*.wal"))


def part(place: Path) -> Path | None:
    """A file of a member's data beside the log, or `None`."""
    snapshots = place / "member" / "snap"
    for path in found(snapshots, "*.snap"):
        return path
    for path in found(snapshots, "db"):
        if path.stat().st_size > EMPTY or A_MEMBER in path.read_bytes():
            return path
    return None


def remember_place() -> None:
    """During service: notes the place and the disk of the data, so that another folder is never taken for the place."""
    place = folder()
    if not place:
        return
    if not log(place):
        progress(f"etcd serves, and {place} has no data of it: DATA_DIR or --wal-dir is another")
        return
    where().note(place)


def is_lost() -> bool:
    """Whether the data are gone. Raises an answer if the hook cannot know."""
    place = folder()
    if not place:
        return False
    if why := unmounted(place):
        raise Blocked(why)
    if log(place):
        return False
    if path := part(place):
        raise Failed(
            f"{place} has no log, but {path.name}: only a part of the data is there. Put the rest back; or empty the"
            " folder, and the member is added anew"
        )
    if not where().folder():
        raise Failed(
            f"{place} is empty, and these hooks never saw etcd's data in it: DATA_DIR may be wrong. If they are lost,"
            " etcdctl member remove and member add"
        )
    if why := where().is_another(place):
        raise Blocked(f"{place} is empty: {why}")
    return True


def add_anew(told: Told) -> None:
    """Removes this VM's member and adds the member anew, each step unless done. Writes the settings for the next start.
    """
    cluster = Cluster()
    cluster.spared({told.vm})
    facts = memory().recall()
    known: dict[str, Any] = facts.get("anew", {})
    listed = cluster.listed()
    own = its_own(cluster, told, listed, known.get("peers", []))
    if not own and not known:
        raise Failed(f"the cluster has no member {told.vm} any more; add it with etcdctl")
    # A member without a name was added and has not started since.
    if own and own.get("name"):
        known = {"peers": own["peerURLs"], "name": own["name"]}
        memory().remember({**facts, "anew": known})
        progress(f"{told.vm} lost its data; it is removed from the cluster and added anew")
        write(alone(known["name"], known["peers"]))
        cluster.any().post("cluster/member/remove", {"ID": own["ID"]}, seconds=5)
        own = None
    if not own:
        listed = cluster.any().post("cluster/member/add", {"peerURLs": known["peers"]}, seconds=5)["members"]
    unnamed = [one for one in listed if not one.get("name") and one["peerURLs"] != known["peers"]]
    if unnamed:
        raise Blocked(f"another member is being added, at {', '.join(unnamed[0]['peerURLs'])}: it must start first")
    everybody = ",".join(f"{one.get('name') or known['name']}={peer}" for one in listed for peer in one["peerURLs"])
    write({"ETCD_INITIAL_CLUSTER": everybody, "ETCD_INITIAL_CLUSTER_STATE": "existing"})


def its_own(cluster: Cluster, told: Told, listed: list[Answer], peers: list[str]) -> Answer | None:
    """This VM's member in etcd's list. Nothing is removed unless exactly one member fits."""
    url = cluster.members[told.vm].url
    by_address = [one for one in listed if url in one.get("clientURLs", []) or one["peerURLs"] == peers]
    own = by_address or [one for one in listed if one.get("name") == told.vm]
    if len(own) > 1:
        names = " and ".join(str(one.get("name")) for one in own)
        raise Failed(f"{names} are at {url}: nobody can tell which is to go")
    healthy = {cluster.id(vm): vm for vm in cluster.status}
    if own and str(own[0]["ID"]) in healthy:
        raise Failed(f"{told.vm} would be removed, but {healthy[str(own[0]['ID'])]} serves as that member")
    return own[0] if own else None


def keep(told: Told, cluster: Cluster) -> None:
    """During service: notes the place of the data, and prevents a start without data."""
    remember_place()
    own = next((one for one in cluster.listed() if str(one["ID"]) == cluster.id(told.vm)), None)
    if folder() and own and own.get("name"):
        write(alone(own["name"], own["peerURLs"]))
    facts = memory().recall()
    if facts.pop("anew", None):
        memory().remember(facts)


def alone(name: str, peers: list[str]) -> dict[str, str]:
    """Settings with which an etcd without data cannot start; an etcd with data ignores the settings."""
    return {
        "ETCD_INITIAL_CLUSTER": ",".join(f"{name}={peer}" for peer in peers),
        "ETCD_INITIAL_CLUSTER_STATE": "existing",
    }


def environment_file() -> Path:
    return memory().path.with_suffix(".env")


def environment() -> dict[str, str]:
    try:
        lines = environment_file().read_text().split("\n")
    except FileNotFoundError:
        return {}
    return dict(line.split("=", 1) for line in lines if "=" in line)


def write(values: dict[str, str]) -> None:
    """Writes the file as a whole, because the service may start at any moment."""
    if environment() == values:
        return
    environment_file().parent.mkdir(parents=True, exist_ok=True)
    beside = environment_file().with_suffix(".env.new")
    with beside.open("w") as file:
        file.write("".join(f"{name}={value}\n" for name, value in values.items()))
        file.flush()
        os.fsync(file.fileno())
    beside.replace(environment_file())


def start() -> None:
    if setting("START", ""):
        call(shlex.split(setting("START")), 60, env={**os.environ, **environment()})
