"""The return of a PostgreSQL member: as a standby of the present primary, with all WAL of the primary.

  1. The primary is determined. A second primary here is noted as `fenced`, gets standby.signal, and is stopped.
  2. Writes that the primary does not have are rewound, and lost data are copied: see postgresql_data.py.
  3. standby.signal and primary_conninfo are written, and the server is started.
  4. A record of WAL that was written on the primary afterwards arrives; then the member joins the synchronous set.
  5. Poolers are moved to the primary, and the notes about the switch are removed.
A start of the server after any step makes a standby. After a kill the next run begins anew.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from allclear_hook import Blocked, Done, Failed, Memory, Told, setting, until
from pgbouncer_pooler import Poolers
from postgresql_data import copy, is_cut_off, is_lost, rewind
from postgresql_members import (
    Group,
    alter,
    change_synchronous,
    literal,
    lower_limits,
    primary_conninfo,
    synchronous,
)
from postgresql_server import Here
from postgresql_switch import undo_failover

OURSELVES = "allclear_hook"
# A standby without progress for so long, despite new WAL, has a reason in its log. Seconds.
GETS_ON_WITHIN = 30


def restore(told: Told) -> Done:
    here, group = Here(told), Group()
    memory = Memory(f"postgresql-{told.vm}")
    primary = fenced(told, here, group, memory.recall())
    poolers = Poolers(setting("POOLERS", "").split())
    if primary != told.vm:
        rejoin(told, here, group, primary)
    here.place.note(here.path)
    poolers.point_and_resume(primary)
    memory.forget()
    return Done()


def fenced(told: Told, here: Here, group: Group, facts: dict[str, Any]) -> str:
    """The primary, if this server is not a second primary."""
    found = group.primaries()
    others = [vm for vm in found if vm != told.vm]
    if not found and facts.get("step", "switched") != "switched":
        undo_failover(told)
        return told.vm
    if len(others) != 1:
        return group.the_primary()
    other = others[0]
    was_started_as_primary = here.pid() and not here.standby_signal.exists()
    # Of two primaries on one timeline, nothing shows which one has the writes to keep.
    if told.vm in found and group.seen[told.vm]["timeline"] >= group.seen[other]["timeline"]:
        return group.the_primary()
    if told.vm in found or was_started_as_primary:
        # The note comes first: otherwise writes of this server only would be rewound as after a crash.
        if facts.get("to") != other:
            Memory(f"postgresql-{told.vm}-data").remember({"step": "fenced"})
        here.be_standby()
        here.stop(must_end=True)
    return other


def rejoin(told: Told, here: Here, group: Group, primary: str) -> None:
    """Makes this server a standby of the primary, with the primary's present data."""
    memory = Memory(f"postgresql-{told.vm}-data")
    spoilt = memory.recall().get("step")
    if spoilt == "copying" or is_lost(here):
        copy(told, here, group, primary, memory)
    elif spoilt in ("rewinding", "rewound") or is_cut_off(here):
        rewind(told, here, group, primary, memory)
    elif has_diverged(here, group, primary):
        if spoilt == "fenced":
            raise Failed(
                f"{told.vm} was writable beside {primary}, which was promoted after it, and has been stopped. Look for "
                f"writes that only it has; when there are none to keep, run pg_rewind or empty {here.path}"
            )
        rewind(told, here, group, primary, memory)
    if here.is_stopping():
        here.stop(must_end=True)
    words = here.words()
    answering = until(lambda: here.answering() or not here.pid(), told.seconds_left() - 2, 0.1)
    if isinstance(answering, Group):
        alter(answering.servers[told.vm], "primary_conninfo", primary_conninfo(told.vm, primary))
    elif answering:
        here.be_standby()
        here.follow(primary)
        here.start()
    else:
        raise Blocked(f"{told.vm}: the server does not answer yet{words()}")
    prove(told, Group([primary, told.vm]), primary, words)
    memory.forget()


def has_diverged(here: Here, group: Group, primary: str) -> bool:
    """Whether this server has written, or may have written, WAL outside the primary's history."""
    now, seen = group.seen[primary]["timeline"], group.seen.get(here.vm)
    if seen and seen["streams"] and seen["timeline"] == now:
        return False
    control = here.control()
    if control["Database cluster state"] in ("in production", "shutting down", "in crash recovery"):
        return True
    timeline = int(control["Latest checkpoint's TimeLineID"])
    recovered = int(control["Min recovery ending loc's timeline"]) or timeline
    reached = [
        (timeline, position(control["Latest checkpoint location"]) + 1),
        (recovered, position(control["Minimum recovery ending location"])),
        (recovered, seen["lsn"] if seen else 0),
    ]
    if {timeline, recovered} == {now}:
        return False
    history = group.servers[primary].ask(f"SELECT pg_read_file('pg_wal/{now:08X}.history')")
    forks = {int(row[0]): position(row[1]) for row in map(str.split, history.splitlines()) if row}
    return any(lsn > forks.get(of, 0) for of, lsn in reached if of != now)


def prove(told: Told, group: Group, primary: str, words: Callable[[], str]) -> None:
    """A standby may report streaming and be broken. A new record has to arrive; the hook waits as long as there is
    progress."""
    for vm in (primary, told.vm):
        if vm in group.silent:
            raise Blocked(group.silent[vm])
    server = group.servers[primary]
    mark = int(server.ask(f"SELECT pg_logical_emit_message(true, {literal(OURSELVES)}, {literal(told.vm)}) - '0/0'"))
    reached, since = -1, time.monotonic()
    while not has(told, group, primary, mark):
        lsn = group.seen[told.vm]["lsn"]
        if lsn > reached:
            reached, since = lsn, time.monotonic()
        if time.monotonic() - since > GETS_ON_WITHIN or told.seconds_left() < 2:
            why = behind(told, group, primary) or "does not replay what is written"
            raise Blocked(f"{told.vm}: {why}{words()}")
        time.sleep(0.02)
    if setting("SYNCHRONOUS", ""):
        group.again(primary)
        change_synchronous(server, synchronous(group, primary) | {told.vm})


def has(told: Told, group: Group, primary: str, mark: int) -> bool:
    said = group.again(told.vm)
    return bool(said["streams"] and said["lsn"] > mark and not behind(told, group, primary))


def behind(told: Told, group: Group, primary: str) -> str:
    """The missing part of this standby, or an empty text."""
    standby, ahead = group.again(told.vm), group.again(primary)
    if lower_limits(standby, ahead):
        return f"has {' and '.join(lower_limits(standby, ahead))} on {primary}"
    if not standby["streams"] or standby["timeline"] != ahead["timeline"]:
        return f"does not stream on timeline {ahead['timeline']} of {primary}"
    lag = ahead["lsn"] - standby["lsn"]
    return f"is {lag >> 10} KiB behind" if lag > 1 << 20 else ""


def position(text: str) -> int:
    """A position in the WAL, such as 3/5C001A28, as a number."""
    high, _, low = text.strip().partition("/")
    return (int(high, 16) << 32) + int(low, 16)
