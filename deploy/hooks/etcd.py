#!/usr/bin/env python3
"""Hooks for etcd 3.4 or later: the leader moves to an unaffected member, and a member with lost data returns. Needs
  The JSON gateway of every member (on by default) over HTTP, or HTTPS with CACERT. No passwords: etcd's own access
  control is not supported.
  Members with the names of their VMs, or members at the addresses in MEMBERS.
  For lost data DATA_DIR and START, and a unit that reads the file STATE_DIR/etcd.env, if the file exists, after its own
  environment (systemd: `EnvironmentFile=-`). ETCD_INITIAL_CLUSTER and ETCD_INITIAL_CLUSTER_STATE=new are in that
  environment and not among the arguments. So an etcd with lost data refuses to start until the member has been added
  anew. With "existing" etcd would start under the old name without its promises to the others, and damage the cluster.
  The file exists from the first drain on; remove the file before you add a member by hand.
Guarantees
  The leader moves in one step, only if the unaffected members have a quorum, and never to a VM to avoid. Acknowledged
  writes are on a majority and never lost.
  A member has returned when a write through another member is readable through this member, and the number of keys at
  that revision is equal.
  A member is removed only if its data are gone from the folder where these hooks saw the data during service, the disk
  of that time is mounted, and no part of the data is left. Every other case is left to an operator.
  A leader that cannot be moved is moved at most twice for one event.
Steps, and the effect of a restart of etcd after the hook was killed at each step
  failover: etcd moves the leader itself, or does not; there is no intermediate state.
  drain: 1. STATE_DIR/etcd-place.json, the place of the data; 2. STATE_DIR/etcd.env, which only an etcd without data
  uses; 3. STOP: the unit starts etcd again with the VM, or `restore` does.
  restore: etcd_data.py has the steps for lost data. Otherwise 1. START; 2. the key allclear/VM is written, and removed;
  after a kill in between the key stays until the next time.
Limits
  A few requests in flight are dropped: their clients receive an error, or reach their own timeout.
  An event of a majority is blocked, with the reason. Clients with the address of one member only need another address.
  A member with lost data is removed from the cluster and added anew. Until the member has started again, the others
  must not lose a further member.
Settings (env)
  MEMBERS      "db-0=10.0.0.4:2379 db-1=10.0.0.5:2379 db-2=10.0.0.6:2379": each VM and its client address
  CACERT, CERT, KEY   files, for HTTPS
  STOP, START  commands that stop and start this VM's etcd, as "sudo systemctl stop etcd"; without both etcd is not
               stopped. A stopped member gives its clients an error at once, a frozen member keeps the clients waiting.
  DATA_DIR     the data directory in the configuration of this VM's etcd; without: lost data are left to an operator
  SETTLE_MS    default 500: time for clients to move before the end of the drain
  STATE_DIR    default /var/lib/allclear-hooks; on each VM's own disk, writable for the hooks' user
  SERVICE      the name of the unit, for `check`; default etcd.service
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

# The limit of new leaders to try in an attempt.
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
        raise cluster.rejected_or_blocked("; ".join(["nobody that answers leads", *cluster.lost.values()]), told.affected)
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
    """The reason why the leader did not move there, or an empty text. The leader accepts no writes meanwhile."""
    said = ""
    try:
        cluster.members[leader].post("maintenance/transfer-leadership", {"targetID": cluster.id(target)}, seconds=5)
    except Unreachable as error:
        # The leader may have moved regardless: the old leader cannot answer without the leadership.
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
    """Clients settle on the new leader. Clients of a stopped member receive an error instead of waiting."""
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
        stopped = told.vm not in cluster.status or until(cluster.members[told.vm].why_it_does_not_serve, 5, every=0.1)
        if not stopped:
            raise Failed(f"{told.vm} still serves after STOP: STOP is for another server than MEMBERS, or stops nothing")


def restore(told: Told) -> Done:
    member = here(told)
    said = ""
    if member.why_it_does_not_serve():
        try:
            if is_lost():
                add_anew(told)
                start()
            elif not until(lambda: not member.why_it_does_not_serve(), 5, every=0.1):
                # The member did not start automatically, or tried before the addition.
                start()
        except Unreachable as error:
            # The member may start regardless, and then reports the reason.
            said = f"; {error}"
    if not until(lambda: not member.why_it_does_not_serve(), max(0.0, told.seconds_left() - 5), every=0.1):
        raise Blocked(f"{member.why_it_does_not_serve()}{said}; see etcd's own log there")
    prove(member)
    keep(told, Cluster())
    return Done(f"{told.vm} has what the cluster agrees on")


def ready(told: Told) -> None:
    """A member that does not serve may be the one that a quorum lacks, so no other member may leave because of it."""
    here(told).agrees()


def prove(member: Member) -> None:
    """A write through another member arrives in this member's own data, and the number of keys is equal at that
    revision."""
    other = Cluster().any(without={member.vm})
    key, value = coded(f"allclear/{member.vm}"), coded(str(time.time_ns()))
    revision = other.post("kv/put", {"key": key, "value": value}, seconds=5)["header"]["revision"]
    try:
        # Serializable: the member's own data.
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
        "ready": ready,
    })
