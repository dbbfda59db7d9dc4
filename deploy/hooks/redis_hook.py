#!/usr/bin/env python3
"""Hooks of allclear for Redis replication, with Sentinel or without. Not for Redis Cluster.

Runs beside each Redis and talks to all of them. The tables to paste are in `redis.toml`.

Needs
- Redis 6.2 or newer, or Valkey; Python 3.9 or newer. No TLS.
- A configuration file in a folder that Redis may write: a switch is kept by CONFIG REWRITE. Without one nothing is
  switched, for an old primary that is restarted would be a primary again.
- `replica-read-only yes` (the default), and `masterauth` on every member where there is a password.
- A machine that is set up anew should start with `replicaof` another member. As an empty primary it would take writes
  until `restore` has made it a replica.
- On every member these rights: +info +ping +role +multi +exec +discard +replicaof +config|get +config|set
  +config|rewrite +client|list +client|pause +client|unpause +client|kill; of Sentinel +sentinel +info.

Promises
- No acknowledged write is lost by a switch, wherever the hook is killed, and there are never two writable primaries.
- It goes only to a member that streams, lags less than MAX_LAG and is on no VM to avoid. Otherwise it is blocked and
  says why for each.
- The old primary steps down before the other one leads; with Sentinel, before Sentinel promotes, which can choose only
  one member then. Writes wait for some milliseconds; with Sentinel for a second, most of which Sentinel takes to tell
  the new address. Writes on the old one are paused for 5 s at the most, whatever becomes of the hook.
- `restore` ends when this member has everything that was written before it was asked, in the primary's own history.
- A member that takes writes is made a replica only of one that has everything it has. Two that took writes apart are
  left to people.
- Writes are stopped in vain twice at the most for one event.

Steps of a switch, and what a restart makes of it when the hook is killed after each
 1. CONFIG REWRITE on both members: nothing has changed.
 2. Sentinel: replica-priority 0 on all but the successor, until a restart of theirs, `restore`, or the end.
 3. CLIENT PAUSE WRITE on the primary, for 5 s; a restart ends it. The successor must reach the primary's offset.
 4. STATE_DIR/redis.json: to whom, and at which offset.
 5. The primary steps down: its offset, REPLICAOF and CONFIG REWRITE in one transaction. Restarted, it is a replica, and
    so is the successor. Nobody takes writes until the hook comes again (another attempt, `undo` or `restore`): then one
    leads that has everything up to the offset of step 4. Sentinel promotes by itself, after down-after-milliseconds
    and 20 s.
 6. The successor leads: REPLICAOF NO ONE and CONFIG REWRITE in one transaction; with Sentinel SENTINEL FAILOVER, which
    does the same. Each is what it is after a restart.
 7. The pause ends, clients are sent away, and the others follow, each with its file in one transaction.
`restore` does step 7, and what step 5 says. Nothing is taken back as long as the successor does not answer: it may have
taken over.

Cannot promise
- Replication is asynchronous: a primary that dies without a switch takes with it what no replica has.
- A primary that comes back empty, without a switch before and without `replicaof` in its file, empties its replicas
  before any hook runs. With `replicaof` nobody is primary then, and `restore` makes that member primary that has all.
- A successor that hangs in the very moment it takes over leaves writes refused until it answers or is restarted.
- With two members and min-replicas-to-write the remaining one refuses writes; `check` says so.

Settings
- MEMBERS         VM=HOST:PORT of every member, by the address at which they know each other
- REDIS_USER, REDIS_PASSWORD or REDIS_PASSWORD_FILE
- MAX_LAG         bytes a successor may lag when the switch begins; 1048576
- SENTINELS       VM=HOST:PORT of every Sentinel; left out: there is none
- SENTINEL_NAME   how Sentinel calls this replication; mymaster
- SENTINEL_USER, SENTINEL_PASSWORD or SENTINEL_PASSWORD_FILE
- PRIORITIES      VM=NUMBER: the replica-priority of members whose configuration gives another one than 100. With
                  Sentinel the others have 0 from checkpoint to the end of the switch, and are then set to this.
- PERSISTENCE     none: `check` takes it that nothing is kept on disk
- STATE_DIR       /var/lib/allclear-hooks; on each VM's own disk, and the hooks' user may write there
"""

from __future__ import annotations

import time

from allclear_hook import (
    Blocked,
    Done,
    Failed,
    NotApplicable,
    Told,
    Unreachable,
    progress,
    serve,
    until,
)
from redis_check import check
from redis_members import Cluster
from redis_server import Member, View
from redis_switch import (
    checkpoint,
    confirm_failover,
    failover,
    finish,
    memory,
    settled,
    undo_failover,
)

SETTLE = 0.5


def role(told: Told) -> None:
    print("primary" if Cluster(told).own.call("ROLE")[0] == "master" else "replica")


def drain(told: Told) -> Done | NotApplicable:
    """Clients have gone when none was refused a write for a while. Those that keep trying are sent away again."""
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
    # A primary is not there at once where all come back.
    if not until(lambda: cluster.primary(cluster.look()), 3, every=0.1):
        settled(cluster)
    seen = cluster.looked()
    primary = cluster.primary(seen)
    if primary is None:
        raise Blocked(cluster.no_primary())
    progress(f"{primary} is the primary")
    cluster.gather(primary, seen)
    if primary is not own:
        written = primary.look()
        if not until(lambda: has_arrived(own, written), told.seconds_left() - 1, every=0.02):
            raise Blocked(why_it_lacks(own, primary, written))
    memory().forget()
    return Done()


def until_loaded(member: Member, seconds: float) -> str:
    """Waits until its data are loaded; returns why they are not."""
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
    """Whether it streams, and has what was written. A switch while it is waited for begins a history that has that."""
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
    primary, own = cluster.primary(seen), cluster.own
    if primary is None:
        raise Blocked(cluster.no_primary())
    if primary is not own and not (seen[own].is_linked and own.entry(seen[primary])):
        why = "" if seen[own].is_linked else own.why_unlinked(primary)
        raise Blocked(f"{own} does not stream from {primary}" + (f": {why}" if why else ""))
    return Done()


if __name__ == "__main__":
    serve({
        "role": role,
        "check": check,
        "checkpoint": checkpoint,
        "failover": failover,
        "confirm-failover": confirm_failover,
        "undo-failover": undo_failover,
        "drain": drain,
        "restore": restore,
        "ready": ready,
    })
