"""The return of a PostgreSQL member: as a standby of the present primary, with all WAL of the primary.

  1. The primary is determined. A second primary here is noted as `fenced`, gets standby.signal, and is stopped.
  2. Writes that the primary does not have are rewound, and lost data are copied: see postgresql_data.py.
  3. standby.signal and primary_conninfo are written, and the server is started.
  4. A record of WAL that was written on the primary afterwards arrives; then the member joins the synchronous set.
  5. Poolers are moved to the primary, other members that do not follow the primary are told to, and the notes about
     the switch are removed. If this standby is the only proof of the primary, poolers and other members stay where they
     are, and the notes remain.
A start of the server after any step makes a standby. After a kill the next run begins anew.
"""

from __future__ import annotations

import os
import re
import subprocess
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
    following,
    follows_instead,
    gather,
    literal,
    lower_limits,
    primary_conninfo,
    synchronous,
)
from postgresql_server import Here, position, timelines
from postgresql_switch import Switch, believe, undo

OURSELVES = "allclear_hook"
# The complaint of pg_waldump about the end of the WAL of a server that crashed.
END_OF_WAL = re.compile(r"error in WAL record at|could not find a valid record after")
# The states of a server that wrote, and was not shut down.
WROTE = ("in production", "shutting down", "in crash recovery")
# A standby without progress for so long, despite new WAL, has a reason in its log. Seconds.
GETS_ON_WITHIN = 30


def restore(told: Told) -> Done:
    here, group = Here(told), Group()
    memory = Memory(f"postgresql-{told.vm}")
    facts = memory.recall()
    try:
        primary = fenced(told, here, group, facts)
    except Blocked:
        if not start_as_before(told, here, group):
            raise
        group = Group()
        primary = fenced(told, here, group, facts)
    doubt = own_doubt(told, group, primary, facts)
    poolers = Poolers(setting("POOLERS", "").split())
    if primary != told.vm:
        rejoin(told, here, group, primary)
    here.place.note(here.path)
    if doubt:
        return Done(f"{told.vm} is back alone, and moved no pooler and no other member: {doubt}")
    poolers.point_and_resume(primary)
    gather(told, Group(), primary)
    poolers.check_moved()
    memory.forget()
    return Done()


def own_doubt(told: Told, group: Group, primary: str, facts: dict[str, Any]) -> str:
    """The doubt about the primary that remains if this standby does not count as proof, or an empty text. A standby that
    was down during a promotion streams from the former primary after its start. The standby loses no data, but poolers and
    other members would leave the present primary."""
    streams_here = told.vm in group.seen and group.seen[told.vm]["streams"]
    if not streams_here or facts.get("to") == primary:
        return ""
    return group.doubt(primary, not_by=told.vm)


def fenced(told: Told, here: Here, group: Group, facts: dict[str, Any]) -> str:
    """The primary, if this server is not a second primary."""
    found = group.primaries()
    others = [vm for vm in found if vm != told.vm]
    if not found and facts.get("step", "switched") != "switched":
        undo(told, Switch(told))
        return told.vm
    if len(others) != 1:
        return group.the_primary()
    other = others[0]
    was_started_as_primary = here.pid() and not here.standby_signal.exists()
    # Of two primaries on one timeline, nothing shows which one has the writes to keep.
    if told.vm in found and group.seen[told.vm]["timeline"] >= group.seen[other]["timeline"]:
        return group.the_primary()
    believe(told, here, group, other, facts)
    if told.vm in found or was_started_as_primary:
        # The note comes first: otherwise writes of this server only would be rewound as after a crash.
        if facts.get("to") != other:
            Memory(f"postgresql-{told.vm}-data").remember({"step": "fenced"})
        here.be_standby()
        here.stop(must_end=True)
    return other


def start_as_before(told: Told, here: Here, group: Group) -> bool:
    """Starts a stopped standby with its own settings, and returns whether it streams. That believes nobody, and is the
    proof that this standby needs for its own return: of two standbys that were stopped, none would be the first."""
    copies = Memory(f"postgresql-{told.vm}-data").recall().get("step")
    is_stopped = told.vm in group.silent and not here.pid() and here.standby_signal.exists()
    if copies or not is_stopped or is_cut_off(here) or is_lost(here) or len(group.primaries()) != 1:
        return False
    here.start()
    return until(lambda: streams(told.vm), min(5, told.seconds_left()), 0.1)


def streams(vm: str) -> bool:
    group = Group([vm])
    return vm in group.seen and bool(group.seen[vm]["streams"])


def rejoin(told: Told, here: Here, group: Group, primary: str) -> None:
    """Makes this server a standby of the primary, with the primary's present data."""
    memory = Memory(f"postgresql-{told.vm}-data")
    spoilt = memory.recall().get("step")
    if spoilt == "copying" or is_lost(here):
        copy(told, here, group, primary, memory)
    elif spoilt in ("rewinding", "rewound") or is_cut_off(here):
        rewind(told, here, group, primary, memory)
    elif not follows(group, told.vm, primary):
        keep(here, group, primary, "was writable beside it, and has been stopped" if spoilt == "fenced" else "")
        if has_diverged(here, group, primary):
            here.be_standby()
            here.stop(must_end=True)
            # Until the stop this standby may have received writes of a former primary.
            keep(here, group, primary, "has been stopped")
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


def follows(group: Group, vm: str, primary: str) -> bool:
    seen = group.seen.get(vm)
    return bool(seen and seen["streams"] and seen["timeline"] == group.seen[primary]["timeline"])


def has_diverged(here: Here, group: Group, primary: str) -> bool:
    """Whether this server has written or replayed, or may have written, WAL outside the primary's history."""
    if follows(group, here.vm, primary):
        return False
    control, now, forks = here.control(), group.seen[primary]["timeline"], history(group, primary)
    if control["Database cluster state"] in WROTE or is_another(here, now, forks):
        return True
    return any(lsn > position(forks.get(of, "0/0")) for of, lsn in reached(here, group, control) if of != now)


def reached(here: Here, group: Group, control: dict[str, str]) -> list[tuple[int, int]]:
    """The timelines and the positions that this server has replayed. The control file has those of the last restartpoint,
    which may be many timelines old. The live position is on the newest timeline of the WAL around it."""
    timeline, recovered = timelines(control)
    live = group.seen[here.vm]["lsn"] if here.vm in group.seen else 0
    around = [of for of, begin, end in here.wal(control) if begin < live <= end]
    return [
        (timeline, position(control["Latest checkpoint location"]) + 1),
        (recovered, position(control["Minimum recovery ending location"])),
        (max([timeline, recovered, *around]), live),
    ]


def history(group: Group, primary: str) -> dict[int, str]:
    """The positions in the WAL at which the primary's history left earlier timelines."""
    now = group.seen[primary]["timeline"]
    return forks_of(group.servers[primary].ask(f"SELECT pg_read_file('pg_wal/{now:08X}.history', 0, 1048576, true)"))


def forks_of(text: str) -> dict[int, str]:
    return {int(row[0]): row[1] for row in map(str.split, text.splitlines()) if row and row[0].isdigit()}


def is_another(here: Here, now: int, forks: dict[int, str]) -> bool:
    """Whether this server's WAL of the primary's timeline is of another promotion, with the same number."""
    own = here.path / "pg_wal" / f"{now:08X}.history"
    return own.exists() and any(here.path.glob(f"pg_wal/{now:08X}" + "[0-9A-F]" * 16)) and forks_of(own.read_text()) != forks


def keep(here: Here, group: Group, primary: str, what: str) -> None:
    """Raises if this server has, or may have, committed writes that the primary lacks."""
    if setting("LOST_WRITES", "keep") == "discard" or not (why := kept(here, group, primary)):
        return
    # The remedy is near the begin, because a long reason is cut.
    raise Failed(
        f"{here.vm} {why}, which {primary} lacks: save them, then run restore with LOST_WRITES = discard. "
        f"Its data were not changed{f'; {here.vm} {what}' if what else ''}"
    )


def kept(here: Here, group: Group, primary: str) -> str:
    """What speaks against a loss of this server's WAL outside the primary's history, or an empty text: proof that
    this WAL commits nothing. Each timeline in pg_wal since the last checkpoint counts: of all of them, the control file has
    the first only."""
    control, now, forks = here.control(), group.seen[primary]["timeline"], history(group, primary)
    ends: dict[int, int] = {}
    for of, end in [*reached(here, group, control), *((of, end) for of, _, end in here.wal(control))]:
        ends[of] = max(end, ends.get(of, 0))
    wrote = control["Database cluster state"] in WROTE
    for of in sorted(of for of in ends if of >= timelines(control)[0]):
        if of == now and not wrote and not is_another(here, now, forks):
            continue
        fork = forks.get(of)
        if not fork or of == now:
            return f"has writes on a timeline {of} of its own"
        if ends[of] > position(fork) and (why := committed(here, of, fork)):
            return why
    return ""


def committed(here: Here, timeline: int, fork: str) -> str:
    """The committed writes on this timeline after this position, also possible ones, or an empty text."""
    command = [here.program("pg_waldump"), "-p", str(here.path / "pg_wal"), "-t", str(timeline), "-s", fork]
    try:
        ran = subprocess.run(
            [*command, "-r", "Transaction"],
            capture_output=True,
            errors="replace",
            timeout=60,
            env={**os.environ, "LC_ALL": "C"},
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"may have writes after {fork} ({error})"
    ends = [line for line in ran.stdout.splitlines() if re.search(r"desc: (COMMIT|PREPARE)", line)]
    if ends:
        return f"has {len(ends)} committed transactions after {fork}"
    complaint = ran.stderr.strip().splitlines()[-1:]
    return "" if not complaint or END_OF_WAL.search(complaint[0]) else f"may have writes after {fork} ({complaint[0]})"


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
    if told.vm not in following(ahead) and (other := follows_instead(standby, primary)):
        return f"streams from {other} and not from {primary}: run its restore hook (allclear hook run)"
    lag = ahead["lsn"] - standby["lsn"]
    return f"is {lag >> 10} KiB behind" if lag > 1 << 20 else ""
