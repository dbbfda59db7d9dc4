"""Verifies the requirements of the etcd hooks before any event. Changes nothing."""

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path

from allclear_hook import Done, Told, Unreachable, call, checked, setting
from disks import unmounted, unwritable_state
from etcd_cluster import Answer, Cluster, here
from etcd_data import environment_file, folder, log

OLDEST = (3, 4)


def check(told: Told) -> Done:
    here(told)
    cluster = Cluster()
    wrong = [*(advised(reason) for reason in cluster.lost.values()), *unwritable_state()]
    try:
        wrong += names(cluster) + health(cluster)
    except Unreachable as error:
        wrong.append(str(error))
    if told.vm in cluster.status:
        wrong += commands() + data()
    return checked(dict.fromkeys(wrong))


def advised(reason: str) -> str:
    if "user name" in reason or "auth" in reason.lower():
        return f"{reason}: etcd's access control is on, which the hooks do not support"
    if "404" in reason:
        return f"{reason}: its JSON gateway is off; start it without --enable-grpc-gateway=false"
    return reason


def names(cluster: Cluster) -> list[str]:
    """Whether MEMBERS names every member in etcd's list, under the right VM."""
    wrong, listed = [], {str(one["ID"]): one for one in cluster.listed()}
    for vm in cluster.status:
        one = listed.pop(cluster.id(vm), None)
        url = cluster.members[vm].url
        if one is None:
            wrong.append(f"etcd does not list the member that answers for {vm}, or MEMBERS names it twice")
        elif one.get("name") != vm and url not in one.get("clientURLs", []):
            wrong.append(f"{vm} is called {one.get('name')}, and advertises no {url}: name it {vm}, or set MEMBERS so")
    for one in listed.values():
        if not any(is_at(cluster, vm, one) for vm in cluster.lost):
            wrong.append(f"etcd has a member {one.get('name') or one['peerURLs'][0]}, which MEMBERS does not name")
        elif one.get("isLearner"):
            wrong.append(f"{one.get('name')} is a learner, which serves no reads: etcdctl member promote")
    return wrong


def is_at(cluster: Cluster, vm: str, one: Answer) -> bool:
    return bool(one.get("name") == vm or cluster.members[vm].url in one.get("clientURLs", []))


def health(cluster: Cluster) -> list[str]:
    wrong = []
    for vm, status in cluster.status.items():
        version = tuple(int(part) for part in str(status.get("version", "0")).split(".")[:2] if part.isdigit())
        if version < OLDEST:
            wrong.append(f"{vm} is version {status.get('version')}; 3.4 or later is needed")
        wrong += [f"{vm}: {error}" for error in status.get("errors", [])]
    alarms = cluster.any().post("maintenance/alarm", {"action": "GET"}).get("alarms", [])
    wrong += [f"etcd has the alarm {one.get('alarm')}: see to it, and etcdctl alarm disarm" for one in alarms]
    return wrong


def commands() -> list[str]:
    """Whether START and STOP can be run; sudo reports its own errors."""
    wrong = []
    for name in ("START", "STOP"):
        words = shlex.split(setting(name, ""))
        if words and not shutil.which(words[0]):
            wrong.append(f"{name} has {words[0]}, which is not installed")
        elif words and Path(words[0]).name == "sudo":
            try:
                call([words[0], "-n", "-l", *(word for word in words[1:] if word != "-n")])
            except Unreachable as error:
                wrong.append(f"{name} is not allowed to the hooks' user: {error}; add it to the sudoers")
    if bool(setting("START", "")) < bool(setting("STOP", "")):
        wrong.append("STOP is set without START: nothing would start etcd again")
    return wrong


def data() -> list[str]:
    place = folder()
    if not place:
        return []
    wrong = [why] if (why := unmounted(place)) else []
    if not log(place):
        wrong.append(f"{place} has no data of the etcd that serves: set DATA_DIR as its own configuration has it")
    database = Path(os.path.realpath(place)) / "member" / "snap" / "db"
    elsewhere: list[Path] = []
    hidden: list[str] = []
    for process in processes():
        try:
            opened = files_of(process)
            if database in opened:
                return wrong + started(process) + unit()
            elsewhere += [path.parents[2] for path in opened if path.parts[-3:] == database.parts[-3:]]
        except PermissionError:
            hidden.append(f"etcd's process cannot be looked at: run the hooks as its user, {user_of(process)}")
        except OSError:
            # The process has ended meanwhile.
            continue
    if elsewhere:
        wrong.append(f"etcd has its data in {elsewhere[0]}, and DATA_DIR is {place}")
    # Other processes need not be visible if this VM's etcd is found.
    return wrong + hidden[:1] + unit()


def processes() -> list[Path]:
    return [each.parent for each in Path("/proc").glob("[0-9]*/comm") if name_of(each) == "etcd"]


def name_of(comm: Path) -> str:
    try:
        return comm.read_text().strip()
    except OSError:
        return ""


def user_of(process: Path) -> str:
    try:
        return process.owner()
    except KeyError:
        return f"with the number {process.stat().st_uid}"
    except OSError:
        return "which ends just now"


def files_of(process: Path) -> set[Path]:
    """The open files of a process, which show the data directory whatever the spelling of the options."""
    opened = set()
    for each in (process / "fd").iterdir():
        try:
            opened.add(Path(os.readlink(each)))
        except FileNotFoundError:
            continue
    return opened


def started(process: Path) -> list[str]:
    """Whether etcd would refuse to start without its data, and start with the settings of the hooks."""
    wrong, words = [], (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
    if any(word.lstrip("-").partition("=")[0] in ("initial-cluster", "initial-cluster-state") for word in words):
        wrong.append("etcd has --initial-cluster among its arguments, which win: put it into its environment")
    environment = (process / "environ").read_bytes().decode(errors="replace").split("\0")
    state = dict(word.partition("=")[::2] for word in environment).get("ETCD_INITIAL_CLUSTER_STATE", "new")
    if state != "new" and not environment_file().exists():
        wrong.append(f"etcd has ETCD_INITIAL_CLUSTER_STATE={state}: without its data it would start and break; set new")
    return wrong


def unit() -> list[str]:
    """Whether the unit reads the file with the settings of the hooks."""
    if not Path("/run/systemd/system").exists() or not setting("START", ""):
        return []
    name = setting("SERVICE", "etcd.service")
    try:
        said = call(["systemctl", "show", name, "--property=EnvironmentFiles,LoadState"])
    except Unreachable as error:
        return [f"systemctl show {name}: {error}"]
    if "LoadState=loaded" not in said:
        return [f"systemd knows no {name}: set SERVICE"]
    if str(environment_file()) not in said:
        return [f"{name} does not read {environment_file()}: add EnvironmentFile=-{environment_file()} to it"]
    return []
