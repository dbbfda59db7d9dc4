"""Verifies the requirements of the Redis hooks before any event. Changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import resp
from allclear_hook import Done, Told, Unreachable, checked, setting
from disks import Process, unmounted, unwritable_state
from redis_members import Cluster, Seen
from redis_sentinels import Sentinels
from redis_server import Member, Server

# The first version with CLIENT PAUSE ... WRITE.
OLDEST = (6, 2)
# Settings that all Sentinels of a replication must share.
ALIKE = ("quorum", "down-after-milliseconds", "failover-timeout")
# No replication has this name: the error for the name shows whether the account may use a command.
NO_NAME = "allclear-asks-for-a-right"


def check(told: Told) -> Done:
    cluster = Cluster(told)
    seen = cluster.look()
    wrong = [*cluster.unseen.values(), *unwritable_state()]
    for member in seen:
        wrong += found(partial(server, member))
    if cluster.own in seen:
        wrong += found(partial(files, cluster.own))
        wrong += found(partial(own, cluster, seen))
    wrong += found(partial(replication, cluster, seen))
    if cluster.sentinels:
        wrong += sentinels(cluster, cluster.sentinels, seen)
    return checked(dict.fromkeys(wrong))


def found(look: Callable[[], list[str]]) -> list[str]:
    """The problems; an unanswered question is a problem too."""
    try:
        return look()
    except Unreachable as error:
        return [str(error)]


def server(member: Member) -> list[str]:
    told, wrong = member.info("server"), []
    version = tuple(int(part) for part in told.get("redis_version", "0").split(".")[:2] if part.isdigit())
    if version < OLDEST:
        wrong.append(f"{member} is version {told.get('redis_version')}; 6.2 or later is needed")
    if told.get("redis_mode") != "standalone":
        wrong.append(f"{member} runs as {told.get('redis_mode')}; the hooks are for replication alone")
    if refused := member.refuses():
        wrong.append(f"{member} refuses the hooks' user {refused}; give it the rights that redis_hook.py names")
        return wrong
    if member.config("replica-read-only") != "yes":
        wrong.append(f"{member} has replica-read-only no: as a replica it would take writes, and lose them")
    kept = member.info("persistence")
    for name in ("rdb_last_bgsave_status", "aof_last_write_status", "aof_last_bgrewrite_status"):
        if kept.get(name, "ok") != "ok":
            wrong.append(f"{member} has {name} {kept[name]}: see its log; it may refuse writes")
    return wrong


def files(member: Member) -> list[str]:
    """The files from which this VM's server restarts."""
    told, wrong = member.info("server"), []
    name = told.get("config_file", "")
    if not name:
        return [f"{member} was started without a configuration file, so that a restart forgets a switch: give it one"]
    if not told.get("executable"):
        return []
    data, keeps = Path(member.config("dir")), member.config("save") or member.config("appendonly") == "yes"
    if not keeps and setting("PERSISTENCE", "") != "none":
        wrong.append(
            f"{member} keeps nothing on its disk, so that a primary that is restarted comes back empty and empties the"
            " others: set save or appendonly, or PERSISTENCE=none here where that may be"
        )
    wrong += [why] if (why := unmounted(data)) else []
    try:
        process = Process(int(told["process_id"]))
        # With the server in a container, the number may belong to another process here.
        if not any(known in process.name for known in ("redis", "valkey")):
            return wrong
        for folder in dict.fromkeys([Path(name).parent, data]):
            wrong += [f"{member}: {why}"] if (why := process.why_it_cannot_write(folder)) else []
    except (OSError, KeyError, ValueError) as error:
        wrong.append(f"{member} cannot be looked at: {error}")
    return wrong


def own(cluster: Cluster, seen: Seen) -> list[str]:
    member, wrong = cluster.own, []
    for other in cluster.others():
        if other in seen and (why := member.why_unlinked(other)):
            wrong.append(f"{member} could not follow {other}: {why}; set masterauth and masteruser")
    needed, left = int(member.config("min-replicas-to-write") or 0), len(cluster.members) - 2
    if needed > left:
        wrong.append(f"{member} has min-replicas-to-write {needed}: with one VM away {left} are left, and writes end")
    if not cluster.sentinels and (watchers := member.watchers()):
        wrong.append(f"a Sentinel watches {member}, at {', '.join(watchers)}: set SENTINELS, or it undoes a switch")
    return wrong


def replication(cluster: Cluster, seen: Seen) -> list[str]:
    """Whether replication runs, and all members know each other by the addresses in MEMBERS."""
    primaries = [member for member, view in seen.items() if view.is_primary]
    if not primaries and cluster.unseen:
        # A member that does not answer may be the primary.
        return []
    if len(primaries) != 1:
        return [f"{', '.join(map(str, primaries)) or 'no member'} is a primary; one must be"]
    primary, wrong = primaries[0], []
    for replica in seen[primary].replicas:
        place = replica.get("ip", ""), int(replica.get("port", 0))
        if not cluster.at(place):
            wrong.append(
                f"{primary} has a replica at {place[0]}:{place[1]}, which MEMBERS does not name: name it, or set"
                " replica-announce-ip and replica-announce-port there"
            )
    for member, view in seen.items():
        if member is primary:
            continue
        if not primary.is_at(view.follows):
            wrong.append(f"{member} follows {view.follows}, and MEMBERS has {primary} at {primary.host}:{primary.port}")
        elif not view.is_linked:
            why = member.why_unlinked(primary) or "see its log"
            wrong.append(f"{member} does not stream from {primary}: {why}")
        elif not member.entry(seen[primary]):
            wrong.append(f"{primary} does not know {member} by its address in MEMBERS, {member.host}:{member.port}")
    return wrong


def sentinels(cluster: Cluster, watched: Sentinels, seen: Seen) -> list[str]:
    wrong: list[str] = []
    seen_so: dict[str, dict[str, str]] = {}
    for each in watched.servers:
        wrong += found(partial(one_sentinel, cluster, watched, each, seen, seen_so))
    for name in ALIKE:
        values = {vm: told.get(name) for vm, told in seen_so.items()}
        if len(set(values.values())) > 1:
            wrong.append(f"Sentinels differ in {name}: {', '.join(f'{vm} {value}' for vm, value in values.items())}")
    for member in seen:
        wrong += found(partial(priority, cluster, member))
    return wrong


def priority(cluster: Cluster, member: Member) -> list[str]:
    it_has, wanted = member.config("replica-priority"), str(cluster.priority(member))
    if it_has == wanted:
        return []
    mended = f"set PRIORITIES={member}={it_has}, or CONFIG SET and CONFIG REWRITE there"
    return [f"{member} has replica-priority {it_has}, and by the settings {wanted}: {mended}"]


def one_sentinel(
    cluster: Cluster, watched: Sentinels, each: Server, seen: Seen, seen_so: dict[str, dict[str, str]]
) -> list[str]:
    name, wrong = f"Sentinel on {each}", []
    told = seen_so[each.vm] = watched.what_it_sees(each)
    if resp.facts(each.call("INFO", "sentinel")).get("sentinel_tilt") != "0":
        wrong.append(f"{name} is in TILT: it mistrusts its clock, and does nothing")
    if not any(member.is_at(place_of(told)) for member, view in seen.items() if view.is_primary):
        wrong.append(f"{name} says that the primary is at {told['ip']}:{told['port']}, which no primary of MEMBERS is")
    known = watched.replicas(each)
    for member, view in seen.items():
        mine = [replica for replica in known if member.is_at(place_of(replica))]
        if not view.is_primary and not mine:
            wrong.append(f"{name} knows no replica at the address of {member} in MEMBERS, {member.host}:{member.port}")
        wrong += [f"{name} sees {member} as {replica['flags']}" for replica in mine if replica["flags"] != "slave"]
    for other in map(resp.pairs, each.call("SENTINEL", "SENTINELS", watched.name)):
        if not any(server.is_at(place_of(other)) for server in watched.servers):
            wrong.append(f"{name} knows another one at {other['ip']}:{other['port']}, which SENTINELS does not name")
        elif other["flags"] != "sentinel":
            wrong.append(f"{name} sees the one at {other['ip']}:{other['port']} as {other['flags']}")
    for command in ("FAILOVER", "RESET"):
        try:
            each.call("SENTINEL", command, NO_NAME)
        except resp.Error as error:
            wrong += [f"{error}: give the hooks' user the right"] if "NOPERM" in str(error) else []
    each.call("SENTINEL", "CKQUORUM", watched.name)
    return wrong


def place_of(told: dict[str, str]) -> tuple[str, int]:
    return told["ip"], int(told["port"])
