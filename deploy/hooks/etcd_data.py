"""The data of this VM's etcd: whether they are lost, and how a member that lost them comes back.

Steps, and what a restart of the service makes of it when the hook is killed after each
 1. STATE_DIR/etcd.env has been there since the first drain, with a cluster that exists and has no other member: an etcd
    with data does not look at it, and one without refuses to start, for it knows nobody to ask. With "new" it would
    begin a cluster of its own as soon as its member is removed, also when it was added anew once before, and never come
    back from there.
 2. The member's name and addresses in STATE_DIR/etcd.json: nothing has changed.
 3. The member is removed, 4. and added anew: it refuses to start.
 5. STATE_DIR/etcd.env with what it must be started with: it starts, and gets the data from the others.
 6. START; what it serves is proven; etcd.env is as before; what is remembered of it goes.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Any

from allclear_hook import Blocked, Failed, Memory, Told, call, progress, setting
from disks import Place, unmounted
from etcd_cluster import Answer, Cluster

# An etcd that refuses to start without its data leaves a file that is far smaller, with no member in it.
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
    """What is there, and not what this user may see of it."""
    try:
        with os.scandir(place) as entries:
            return sorted(Path(each.path) for each in entries if Path(each.name).match(pattern))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise Failed(f"nobody can tell whether etcd's data are in {place}: {error.strerror}") from error


def log(place: Path) -> bool:
    """Whether it has the log from which etcd starts."""
    return bool(found(place / "member" / "wal", "*.wal"))


def part(place: Path) -> Path | None:
    """What is there of a member's data beside its log."""
    snapshots = place / "member" / "snap"
    for path in found(snapshots, "*.snap"):
        return path
    for path in found(snapshots, "db"):
        if path.stat().st_size > EMPTY or A_MEMBER in path.read_bytes():
            return path
    return None


def remember_place() -> None:
    """While the member serves: where its data are, and on which disk, so that another folder is never taken for it."""
    place = folder()
    if not place:
        return
    if not log(place):
        progress(f"etcd serves, and {place} has no data of it: DATA_DIR or --wal-dir is another")
        return
    where().note(place)


def is_lost() -> bool:
    """Whether the data are gone. Raised: nobody can tell."""
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
    """Removes this VM's member and adds it, each unless that is done. Leaves what its etcd must be started with."""
    cluster = Cluster()
    cluster.spared({told.vm})
    facts = memory().recall()
    known: dict[str, Any] = facts.get("anew", {})
    listed = cluster.listed()
    own = its_own(cluster, told, listed, known.get("peers", []))
    if not own and not known:
        raise Failed(f"the cluster has no member {told.vm} any more; add it with etcdctl")
    # One without a name was added and has not started since.
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
    """This VM's member among those that the cluster has. It is one, or nothing is removed."""
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
    """While the member serves: where its data are, and that it must not start without them."""
    remember_place()
    own = next((one for one in cluster.listed() if str(one["ID"]) == cluster.id(told.vm)), None)
    if folder() and own and own.get("name"):
        write(alone(own["name"], own["peerURLs"]))
    facts = memory().recall()
    if facts.pop("anew", None):
        memory().remember(facts)


def alone(name: str, peers: list[str]) -> dict[str, str]:
    """What an etcd without data cannot be started with, and one with data does not look at."""
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
    """As a whole, for the service may start at any moment."""
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
