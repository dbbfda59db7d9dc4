"""The choice of the standby of PostgreSQL that becomes primary, while everything is still writable."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from allclear_hook import Blocked, Failed, Memory, Told, number, progress, setting
from client import Lost
from postgresql_members import Group, comes_true, literal, lower_limits, member

SENDERS = """SELECT pid, coalesce(state, 'starting'), coalesce(pg_current_wal_lsn() - sent_lsn, 0)::bigint,
  application_name FROM pg_stat_replication"""
SENDERS = " ".join(SENDERS.split())

# A backup program may keep the session of a backup open, beside its copy of the files (pgBackRest, Barman, WAL-G).
BACKUPS = """SELECT count(*) FROM pg_stat_activity WHERE pid <> pg_backend_pid()
  AND query ~* 'pg_(backup_start|start_backup)' AND state LIKE 'idle%'"""
BACKUPS = " ".join(BACKUPS.split())

SLOTS = "SELECT slot_name FROM pg_replication_slots WHERE NOT temporary ORDER BY slot_name"

LONG_TRANSACTIONS = """SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'
  AND xact_start < now() - interval '10 s'"""
LONG_TRANSACTIONS = " ".join(LONG_TRANSACTIONS.split())
# The pause after the first loss of a session at a CHECKPOINT of an event; each further loss doubles it.
CRASHED_SECONDS = 60


class Sender(NamedTuple):
    """A process of the primary that sends WAL, in any state."""

    pid: int
    state: str
    behind: int
    vm: str

    def holds_up_a_stop(self) -> bool:
        """A fast stop waits until the process has sent all WAL, possibly a large amount."""
        return self.state not in ("streaming", "backup") or self.behind > number("MAX_LAG", 1 << 24)


def senders(group: Group, primary: str) -> list[Sender]:
    rows = [line.split("|", 3) for line in group.servers[primary].ask(SENDERS).splitlines()]
    return [Sender(int(pid), state, int(behind), member(name)) for pid, state, behind, name in rows]


def unfit(vm: str, told: Told, group: Group, sending: list[Sender]) -> str:
    """The reason why this member cannot become primary, or an empty text."""
    primary, said = group.seen[told.vm], group.seen.get(vm)
    if vm in told.avoid:
        return "is affected by an event or out of reach"
    if not said:
        return group.silent[vm]
    if why := crashed(told).get(vm):
        return why
    if said["system"] != primary["system"]:
        return "is of another database cluster"
    if not said["streams"] or said["timeline"] != primary["timeline"]:
        return f"does not stream on timeline {primary['timeline']}"
    if lower_limits(said, primary):
        return f"has {' and '.join(lower_limits(said, primary))} on {told.vm}: its replay stops, or will with a restart"
    if said["holds_back"]:
        return "is told to replay later (paused, or recovery_min_apply_delay)"
    if said["slot"]:
        return f"uses the replication slot {said['slot']} (primary_slot_name), which does not move with the primary"
    if said["synchronous"].strip() and not setting("SYNCHRONOUS", ""):
        return "has synchronous_standby_names, for which its commits would wait: give SYNCHRONOUS, or reset the setting"
    own = [sender for sender in sending if sender.vm == vm]
    if not any(sender.state == "streaming" for sender in own):
        return "does not stream from the primary under its VM's name (application_name)"
    for sender in own:
        if sender.holds_up_a_stop():
            state = f"{sender.state}, {sender.behind >> 20} MiB behind"
            return f"has a walsender (pid {sender.pid}) in {state}, which a stop would wait for"
    if primary["lsn"] - said["lsn"] > number("MAX_LAG", 1 << 24):
        return f"is {(primary['lsn'] - said['lsn']) >> 20} MiB behind"
    return ""


def candidate(told: Told, group: Group, sending: list[Sender]) -> str:
    """The standby to promote."""
    reasons = {vm: unfit(vm, told, group, sending) for vm in group.servers if vm != told.vm}
    fit = sorted((vm for vm, why in reasons.items() if not why), key=lambda vm: -group.seen[vm]["lsn"])
    for vm in told.in_order_of_preference(fit):
        for limit in lower_limits(group.seen[told.vm], group.seen[vm]):
            progress(f"{told.vm} cannot come back as a standby of {vm}: it has {limit} there")
        return vm
    raise Blocked("no standby can take over: " + "; ".join(f"{vm}: {why}" for vm, why in reasons.items()))


def interrupted(group: Group, primary: str, sending: list[Sender]) -> str:
    """The backups and long transactions on the primary that a switch ends, and the slots that do not move with the
    primary, in words for people."""
    server = group.servers[primary]
    backups = sum(sender.state == "backup" for sender in sending) + int(server.ask(BACKUPS))
    long, slots = int(server.ask(LONG_TRANSACTIONS)), server.ask(SLOTS).split()
    found = [f"{backups} base backup{'s' if backups > 1 else ''}"] if backups else []
    found += [f"{long} transaction{'s' if long > 1 else ''} of more than 10 s"] if long else []
    ends = "; the switch ends " + " and ".join(found) if found else ""
    return ends + (f"; these replication slots stay on {primary}: {', '.join(slots)}" if slots else "")


def flush(told: Told, group: Group, vms: list[str]) -> None:
    """A checkpoint on each member. If there are several, the first member writes a second one, because the first member has
    written more meanwhile.

    A server that cannot write its files, as on a full disk, ends all sessions at a checkpoint (PANIC), and starts again.
    That is a failure. For a minute the event's hooks write no further checkpoint on this server. Then a retry finds out
    whether an operator has made room. Each further loss doubles the pause: `restore` is repeated until it succeeds.
    """
    before = crashed(told)
    for why in (before[vm] for vm in vms if vm in before):
        raise Failed(f"no further CHECKPOINT before {time.strftime('%F %TZ', time.gmtime(pause_ends(told)))}: {why}")
    for at_once in (vms[:1], vms[1:], vms[:1] if vms[1:] else []):
        for vm in at_once:
            group.servers[vm].send("CHECKPOINT")
        for vm in at_once:
            try:
                group.servers[vm].answer(told.seconds_left())
            except Lost as error:
                why = f"the server ended the session at a CHECKPOINT, see its log (a full disk?): {error}"
                times = losses(told).get("times", 0) + 1
                facts = {"event": told.event, "at": time.time(), "times": times, "servers": {**before, vm: why}}
                crashes(told).remember(facts)
                raise Failed(why) from error


def crashes(told: Told) -> Memory:
    return Memory(f"postgresql-{told.vm}-checkpoint")


def losses(told: Told) -> dict[str, Any]:
    """The note about sessions that were lost at a CHECKPOINT of this event. A hook by hand has no event."""
    facts = crashes(told).recall()
    return facts if told.event and facts.get("event") == told.event else {}


def pause_ends(told: Told) -> float:
    """The end of the pause after the last loss, in seconds since 1970; 0 without a loss."""
    facts = losses(told)
    return facts["at"] + CRASHED_SECONDS * 2 ** (facts["times"] - 1) if facts.get("times") else 0


def crashed(told: Told) -> dict[str, str]:
    """The servers that get no further CHECKPOINT now, and the reasons."""
    found: dict[str, str] = losses(told).get("servers", {})
    return found if time.time() < pause_ends(told) else {}


def check_replay(group: Group, primary: str, to: str) -> None:
    """New WAL has to arrive while everything is writable: otherwise the WAL of a stopped primary would not arrive
    either."""
    now = group.servers[primary].ask("SELECT pg_current_wal_lsn()")
    began, seconds = time.monotonic(), number("REPLAY_SECONDS", 5)
    if not comes_true(group.servers[to], f"SELECT pg_last_wal_replay_lsn() >= {literal(now)}", seconds):
        pids = ", ".join(str(one.pid) for one in senders(group, primary) if one.vm == to) or "none"
        raise Blocked(f"{to} does not replay what is written: not {now} within {seconds:g} s (walsender: {pids})")
    progress(f"{to} replays within {(time.monotonic() - began) * 1000:.0f} ms")
