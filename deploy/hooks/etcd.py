#!/usr/bin/env python3
"""Hooks for etcd 3.4 or later: the leader goes to a member that is spared, and a member that lost its data comes back.

Needs
  The JSON gateway of every member (on by default) over HTTP, or HTTPS with CACERT; no passwords: etcd's own access
  control is not supported.
  Members named as their VMs are, or reached at the addresses in MEMBERS.
  For lost data DATA_DIR and START, and a service that reads the file STATE_DIR/etcd.env if it is there, after its own
  environment (systemd: `EnvironmentFile=-`), with ETCD_INITIAL_CLUSTER and ETCD_INITIAL_CLUSTER_STATE=new there and not
  among the arguments: so an etcd whose data are lost refuses to start until it has been added anew. With "existing" it
  would start under its old name without what it had promised, and break. The file is there from the first drain on;
  remove it before you add a member by hand.

Promises
  The leader moves in one step, and only where the members that are spared can decide without the others. It never goes
  to a VM to avoid. What etcd acknowledged is on a majority, so it is never lost.
  A member is back when what was written through another is read through it, and it has as many keys at that revision.
  A member is removed only when its data are gone from the folder where these hooks saw them while it served, with the
  disk that was there then mounted, and nothing of them left. Anything else is left to people.
  A leader that cannot be moved is moved twice at the most for one event.

Steps, and what a restart of etcd makes of it when the hook is killed after each
  failover: etcd moves its leader by itself, or does not; there is nothing between.
  drain: 1. STATE_DIR/etcd-place.json, where the data are; 2. STATE_DIR/etcd.env, which only an etcd without data looks at;
  3. STOP: the service starts it again with the VM, or `restore` does.
  restore: etcd_data.py has the steps of data that are lost. Else 1. START; 2. the key allclear/VM is written, and
  removed; killed between, it stays until the next time.

Cannot promise
  That every request in flight is answered: a few are dropped, and their clients see an error or their own timeout.
  Anything when an event takes the majority: it is blocked, and says so. Clients that know one member only need another.
  A member whose data are lost is removed from the cluster and added anew. Until it has started again, the others must
  not lose one more.

Settings (env)
  MEMBERS      "db-0=10.0.0.4:2379 db-1=10.0.0.5:2379 db-2=10.0.0.6:2379": each VM and its client address
  CACERT, CERT, KEY   files, for HTTPS
  STOP, START  commands that stop and start this VM's etcd, as "sudo systemctl stop etcd"; both left out: it is not
               stopped. A stopped member gives its clients an error at once, a frozen one keeps them waiting.
  DATA_DIR     of this VM's etcd, as it is in its own configuration; left out: what is lost is for people
  SETTLE_MS    default 500: clients have this long to move before the drain ends
  STATE_DIR    default /var/lib/allclear-hooks; on each VM's own disk, and the hooks' user may write there
  SERVICE      the name of its unit, where `check` looks; default etcd.service
"""

from __future__ import annotations

import shlex
import time

from allclear_hook import (
    Blocked,
    Done,
    Failed,
    NotApplicable,
    NotDone,
    Told,
    Tries,
    Unknown,
    Unreachable,
    call,
    number,
    progress,
    serve,
    setting,
    until,
)
from etcd_check import check
from etcd_cluster import Cluster, Member, coded, here
from etcd_data import add_anew, is_lost, keep, start

# How many members the leader is offered to in one attempt.
OFFERED = 2


def role(told: Told) -> None:
    status = here(told).status()
    print("primary" if status.get("leader") == status["header"]["member_id"] else "replica")


def failover(told: Told) -> Done | NotApplicable:
    cluster = Cluster()
    leader = cluster.leader()
    if leader and leader not in told.affected:
        return NotApplicable(f"{leader} leads")
    spared = cluster.spared(told.affected)
    if not leader:
        raise Blocked("; ".join(["nobody that answers leads", *cluster.lost.values()]))
    fit = told.in_order_of_preference(spared)
    if not fit:
        raise Blocked(f"{', '.join(spared)}: on VMs to avoid")
    if told.is_dry_run:
        return Done(f"would move the leader from {leader} to {fit[0]}")
    tries = Tries(told, "etcd", most=1)
    tries.check()
    reasons = []
    for target in fit[:OFFERED]:
        began = time.monotonic()
        said = move(cluster, leader, target)
        if not said:
            return Done(f"{target} leads, after {(time.monotonic() - began) * 1000:.0f} ms")
        reasons.append(said)
    tries.was_in_vain("; ".join(reasons))
    raise Failed("; ".join(reasons))


def move(cluster: Cluster, leader: str, target: str) -> str:
    """Why the leader did not go there; nothing when it did. Meanwhile it takes no writes."""
    said = ""
    try:
        cluster.members[leader].post("maintenance/transfer-leadership", {"targetID": cluster.id(target)}, seconds=5)
    except Unreachable as error:
        # It may have gone there all the same: the leader's answer is lost with its being the leader.
        said = f" ({error})"

    def leads() -> bool:
        try:
            return cluster.members[target].status().get("leader") == cluster.id(target)
        except Unreachable:
            return False

    return "" if until(leads, 2) else f"{target} did not become the leader{said}"


def confirm_failover(told: Told) -> Done | NotDone | Unknown:
    cluster = Cluster()
    leader = cluster.leader()
    if not leader:
        return Unknown("; ".join(["nobody that answers leads", *cluster.lost.values()]))
    if leader in told.affected:
        return NotDone(f"{leader} leads")
    return Done(f"{leader} leads")


def drain(told: Told) -> None:
    """Clients settle on the new leader; those of a member that is stopped get an error rather than wait."""
    cluster = Cluster()
    cluster.spared(told.affected)
    if told.vm in cluster.status:
        try:
            keep(told, cluster)
        except OSError as error:
            progress(f"data that are lost will be for people, for nothing can be kept: {error}")
    time.sleep(number("SETTLE_MS", 500) / 1000)
    stop = setting("STOP", "")
    if stop:
        call(shlex.split(stop), 30)


def restore(told: Told) -> Done:
    member = here(told)
    said = ""
    if member.why_it_does_not_serve():
        try:
            if is_lost():
                add_anew(told)
                start()
            elif not until(lambda: not member.why_it_does_not_serve(), 5, every=0.1):
                # It did not come up by itself, or that was tried before it was added anew.
                start()
        except Unreachable as error:
            # It may come up all the same, and its own words stand beside.
            said = f"; {error}"
    if not until(lambda: not member.why_it_does_not_serve(), max(0.0, told.seconds_left() - 5), every=0.1):
        raise Blocked(f"{member.why_it_does_not_serve()}{said}; see etcd's own log there")
    prove(member)
    keep(told, Cluster())
    return Done(f"{told.vm} has what the cluster agrees on")


def prove(member: Member) -> None:
    """What is written through another member is in this one's own data, and as many keys as that one has by then."""
    other = Cluster().any(without={member.vm})
    key, value = coded(f"allclear/{member.vm}"), coded(str(time.time_ns()))
    revision = other.post("kv/put", {"key": key, "value": value}, seconds=5)["header"]["revision"]
    try:
        # Its own data, whatever the others hold.
        asked = {"key": key, "serializable": True}
        if not until(lambda: value in [each["value"] for each in member.post("kv/range", asked).get("kvs", [])], 5):
            raise Blocked(f"what was written through {other.vm} does not arrive on {member.vm}")
        everything = {"key": coded("\0"), "range_end": coded("\0"), "count_only": True, "serializable": True}
        everything["revision"] = revision
        counts = [each.post("kv/range", everything, seconds=30).get("count") for each in (member, other)]
        if counts[0] != counts[1]:
            raise Failed(
                f"at revision {revision} {member.vm} has {counts[0]} keys, and {other.vm} {counts[1]}: one is corrupt"
            )
    finally:
        other.post("kv/deleterange", {"key": key}, seconds=5)
    progress(f"{member.vm} has {counts[0]} keys at revision {revision}, as {other.vm}")


if __name__ == "__main__":
    serve({
        "role": role,
        "check": check,
        "failover": failover,
        "confirm-failover": confirm_failover,
        "drain": drain,
        "restore": restore,
    })
