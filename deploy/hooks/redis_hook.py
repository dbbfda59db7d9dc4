#!/usr/bin/env python3
"""Hooks of allclear for Redis replication, with Sentinel or without. Not for Redis Cluster.

The hooks run beside each Redis and connect to all members. The tables to paste are in `redis.toml`.

Needs
- Redis 6.2 or newer, or Valkey; Python 3.9 or newer. No TLS.
- A configuration file in a folder that Redis may write, because CONFIG REWRITE makes a switch permanent. Without the
  file there is no switch, because a restarted old primary would be a primary again.
- `replica-read-only yes` (the default), and with a password `masterauth` on every member.
- `replicaof` another member on a new machine. A new and empty primary would accept writes until `restore` makes a
  replica of it.
- On every member these rights: +info +ping +role +multi +exec +discard +replicaof +config|get +config|set
  +config|rewrite +client|list +client|pause +client|unpause +client|kill; on Sentinel +sentinel +info.

Guarantees
- A switch loses no acknowledged write, wherever the hook is killed, and there are never two writable primaries.
- The primary moves only to a member that streams, lags less than MAX_LAG, receives the latest writes within 2.5 s, and is
  on no VM to avoid. Otherwise the hook is blocked, with the reason for each member.
- The old primary steps down before the new primary leads. With Sentinel, the old primary steps down before Sentinel
  promotes, and Sentinel can choose only one member. Writes wait for some milliseconds; with Sentinel for a second,
  mostly until Sentinel publishes the new address. The pause of writes on the old primary ends after at most 5 s, or a
  quarter of the time that is left, also after a crash of the hook.
- `restore` ends when this member has every earlier write, in the primary's own history.
- A member that accepts writes becomes a replica only of a member with all of its data. Two members with different
  writes are left to an operator.
- While a member does not answer, no hook believes a former primary that still accepts writes: a primary is proven by a
  member that follows it now, by a replica of the silent member that it was promoted after, by a majority of the
  Sentinels, or by the notes of a switch on this VM. Without proof nobody is told to follow it, and `restore` waits. A
  replica that is the only proof returns alone.
- Without Sentinel no replica is told to follow a primary that lacks some of the replica's writes: `restore` is blocked,
  and names the way to save these writes.
- Writes are interrupted without a result at most twice for one event.

Steps of a switch, and the effect of a restart after the hook was killed at each step
 1. CONFIG REWRITE on both members: nothing has changed.
 2. Sentinel: replica-priority 0 on all but the successor, until a restart of the member, `restore`, or the end.
 3. CLIENT PAUSE WRITE on the primary, for at most 5 s; a restart ends the pause. The successor must reach the primary's offset.
 4. STATE_DIR/redis.json: the successor and the offset.
 5. The primary steps down: its offset, REPLICAOF and CONFIG REWRITE in one transaction. After a restart this member is
    a replica, and so is the successor. No member accepts writes until the next hook (another attempt, `undo` or
    `restore`): then a member leads that has everything up to the offset of step 4. Sentinel promotes automatically,
    after down-after-milliseconds and 20 s.
 6. The successor leads: REPLICAOF NO ONE and CONFIG REWRITE in one transaction; with Sentinel SENTINEL FAILOVER, with
    the same effect. A restart keeps each role.
 7. The pause ends, clients are disconnected, and the others follow, each with its file in one transaction.
`restore` runs step 7, and the repair of step 5. As long as the successor does not answer, nothing is undone: the
successor may be the primary.

Limits
- Replication is asynchronous: after a crash of the primary without a switch, writes that no replica has are lost.
- A primary that restarts empty, without a switch before and without `replicaof` in its file, empties its replicas
  before any hook runs. With `replicaof` no member is primary then, and `restore` makes the complete member primary.
- A successor that hangs at the moment of its promotion leaves writes refused until the successor answers or restarts.
- With two members and min-replicas-to-write the remaining member refuses writes; `check` reports this.
- A member that starts with `replicaof` the present primary in its file follows at once, before any hook, and drops what
  the primary lacks. With Sentinel, Sentinel does the same within seconds.
- A restart with an append-only file forgets the offsets. Such a member, if it does not follow the primary already, is
  told to follow only if it is empty: an operator compares.

Settings
- MEMBERS         VM=HOST:PORT of every member, the address by which the members know each other
- REDIS_USER, REDIS_PASSWORD or REDIS_PASSWORD_FILE
- MAX_LAG         the largest lag of a successor at the begin of a switch, in bytes; 1048576
- SENTINELS       VM=HOST:PORT of every Sentinel; without: no Sentinel
- SENTINEL_NAME   Sentinel's name of this replication; mymaster
- SENTINEL_USER, SENTINEL_PASSWORD or SENTINEL_PASSWORD_FILE
- PRIORITIES      VM=NUMBER: the replica-priority of members whose configuration has another value than 100. With
                  Sentinel the others have 0 during the switch, and then this value.
- PERSISTENCE     none: `check` accepts that nothing is kept on disk
- STATE_DIR       /var/lib/allclear-hooks; on each VM's own disk, writable for the hooks' user
"""

from __future__ import annotations

import time

from allclear_hook import (
    Blocked,
    Done,
    Failed,
    NotApplicable,
    Rejected,
    Told,
    Unreachable,
    progress,
    serve,
    unknown_once_begun,
    until,
)
from redis_check import check
from redis_members import Cluster, memory
from redis_server import Member, View
from redis_switch import (
    confirm_failover,
    failover,
    finish,
    is_half_done,
    settled,
    undo_failover,
)

SETTLE = 0.5


def role(told: Told) -> None:
    print("primary" if Cluster(told).own.call("ROLE")[0] == "master" else "replica")


def drain(told: Told) -> Done | NotApplicable:
    """The clients have moved when no write was refused for a while. Clients that keep trying are disconnected again."""
    cluster = Cluster(told)
    own = cluster.own
    seen = cluster.looked()
    if seen[own].is_primary:
        return NotApplicable(f"{own} is no replica")
    finish(cluster, seen)
    refused, since = refused_writes(own), time.monotonic()
    ends = since + min(10, told.seconds_left())
    while time.monotonic() - since < SETTLE:
        if time.monotonic() > ends:
            raise Failed(f"clients still try to write on {own}")
        time.sleep(0.05)
        if refused_writes(own) != refused:
            own.send_clients_away()
            refused, since = refused_writes(own), time.monotonic()
    return Done()


def refused_writes(member: Member) -> str | None:
    return member.info("errorstats").get("errorstat_READONLY")


def restore(told: Told) -> Done:
    cluster = Cluster(told)
    own = cluster.own
    if why := until_loaded(own, told.seconds_left() - 1):
        raise Blocked(why)
    # After a restart of all members, a primary appears with a delay.
    if not until(lambda: cluster.primary(cluster.look()), 3, every=0.1):
        settled(cluster)
    seen = cluster.looked()
    primary = cluster.primary(seen)
    if primary is None:
        raise Blocked(cluster.no_primary())
    progress(f"{primary} is the primary")
    if not primary.is_at(seen[own].follows) and (why := cluster.keeps(own, primary, seen)):
        raise Blocked(why)
    doubt = cluster.own_doubt(primary, seen)
    cluster.gather(primary, {member: seen[member] for member in (own, primary)} if doubt else seen)
    if primary is not own:
        written = primary.look()
        if not until(lambda: has_arrived(own, written), told.seconds_left() - 1, every=0.02):
            raise Blocked(why_it_lacks(own, primary, written))
    if doubt:
        return Done(f"{own} is back alone, and moved no other member: {doubt}")
    memory().forget()
    return Done()


def until_loaded(member: Member, seconds: float) -> str:
    """Waits until the data are loaded; returns the reason if they are not."""
    def why_not() -> str:
        try:
            return "" if member.info("persistence").get("loading") == "0" else f"{member} loads its data"
        except Unreachable as error:
            return f"{member} is not up: {error}"

    said = [""]

    def is_loaded() -> bool:
        said[0] = why_not()
        return not said[0]

    until(is_loaded, seconds, every=0.02)
    return said[0]


def has_arrived(member: Member, written: View) -> bool:
    """Whether the member streams, and has all given writes. A switch meanwhile begins a history that contains the
    writes."""
    view = member.look()
    return view.is_linked and view.holds_all_of(written)


def why_it_lacks(member: Member, primary: Member, written: View) -> str:
    view = member.look()
    if not view.is_linked:
        why = member.why_unlinked(primary) or "see its log"
        return f"{member} does not stream from {primary}: {why}"
    return f"{member} has not caught up with {primary}: it is at {view.offset} of {written.offset}"


def ready(told: Told) -> Done:
    cluster = Cluster(told)
    seen = cluster.looked()
    own = cluster.own
    try:
        primary = cluster.primary(seen)
    except Rejected as error:
        # Sentinel refuses the hooks only. As "not ready" this member could be taken down without a failover.
        primaries = [member for member, view in seen.items() if view.is_primary]
        streams = seen[own].is_linked and any(member.is_at(seen[own].follows) for member in primaries)
        if primaries == [own] or (own not in primaries and streams):
            return Done(str(error))
        raise Blocked(str(error)) from error
    if primary is None and cluster.doubt and list(seen) == [own]:
        # Nobody contradicts. As "not ready" the only member that serves could be taken down without a failover.
        return Done(cluster.no_primary())
    if primary is None:
        raise Blocked(cluster.no_primary())
    if primary is not own and not (seen[own].is_linked and own.entry(seen[primary])):
        why = None if seen[own].is_linked else own.why_unlinked(primary)
        raise Blocked(f"{own} does not stream from {primary}" + (f": {why}" if why else ""))
    return Done()


if __name__ == "__main__":
    serve({
        "role": role,
        "check": check,
        "failover": unknown_once_begun(failover, is_half_done),
        "confirm-failover": confirm_failover,
        "undo-failover": undo_failover,
        "drain": drain,
        "restore": restore,
        "ready": ready,
    })
