"""The members of a PostgreSQL cluster, for the hooks of `postgresql.py`: all members are queried at the same time."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Collection
from typing import Any

from allclear_hook import (
    Blocked,
    Failed,
    Rejected,
    Told,
    Unreachable,
    members,
    progress,
    setting,
    until,
    without_case,
)
from psql import HAS_ANSWERED, LacksRight, Psql

# A standby needs at least the primary's values. With lower values the standby stops, or the replay stops.
LIMITS = (
    "max_connections",
    "max_worker_processes",
    "max_wal_senders",
    "max_prepared_transactions",
    "max_locks_per_transaction",
)

LOOK = f"""SELECT json_build_object(
  'primary', NOT pg_is_in_recovery(),
  'system', (SELECT system_identifier::text FROM pg_control_system()),
  'timeline', CASE WHEN pg_is_in_recovery() THEN (SELECT received_tli FROM pg_stat_wal_receiver)
    ELSE ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int END,
  'reached', (SELECT greatest(timeline_id, min_recovery_end_timeline, (SELECT received_tli FROM pg_stat_wal_receiver))
    FROM pg_control_checkpoint(), pg_control_recovery()),
  'lsn', CASE WHEN pg_is_in_recovery() THEN coalesce(pg_last_wal_replay_lsn(), '0/0') ELSE pg_current_wal_lsn() END
    - '0/0'::pg_lsn,
  'streams', EXISTS (SELECT FROM pg_stat_wal_receiver WHERE status = 'streaming'),
  'holds_back', CASE WHEN pg_is_in_recovery() THEN pg_is_wal_replay_paused() END
    OR current_setting('recovery_min_apply_delay') <> '0',
  'told_to_follow', (SELECT setting FROM pg_settings WHERE name = 'primary_conninfo'),
  'from', (SELECT sender_host || ':' || sender_port FROM pg_stat_wal_receiver),
  'followers', (SELECT coalesce(json_agg(DISTINCT application_name), '[]') FROM pg_stat_replication
    WHERE state = 'streaming'),
  'heard_from', (SELECT coalesce(json_agg(DISTINCT application_name), '[]') FROM pg_stat_replication
    WHERE state = 'streaming' AND {HAS_ANSWERED}),
  'user', current_user,
  'superuser', (SELECT rolsuper FROM pg_roles WHERE rolname = current_user),
  'slot', current_setting('primary_slot_name'),
  'synchronous', current_setting('synchronous_standby_names'),
  'waited_for', (SELECT coalesce(json_agg(DISTINCT application_name), '[]') FROM pg_stat_replication
    WHERE sync_state <> 'async'),
  'limits', (SELECT json_object_agg(name, setting::int) FROM pg_settings
    WHERE name IN ({", ".join(f"'{name}'" for name in LIMITS)})),
  'can_rewind', 'on' IN (current_setting('wal_log_hints'), current_setting('data_checksums')))"""
LOOK = " ".join(LOOK.split())
# The newest timeline of a standby's WAL. The control file has the timeline of the last restartpoint, and the row of the WAL
# receiver disappears with the connection.
RECEIVED = """SELECT coalesce(max(('x' || substr(name, 1, 8))::bit(32)::int), 0) FROM pg_ls_waldir()
  WHERE pg_is_in_recovery() AND name ~ '^[0-9A-F]{24}$'"""
RECEIVED = " ".join(RECEIVED.split())
# A server may close idle sessions sooner than another server needs to stop, and end a long checkpoint.
STAY = """SELECT set_config(name, '0', false) FROM pg_settings WHERE name IN ('idle_session_timeout',
  'statement_timeout', 'transaction_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout')"""
STAY = " ".join(STAY.split())


def literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def primary_conninfo(of: str, to: str) -> str:
    host, port = members()[to]
    return f"{setting('PRIMARY_CONNINFO')} host={host} port={port} application_name={of}"


def alter(server: Psql, name: str, value: str) -> None:
    server.ask(f"ALTER SYSTEM SET {name} = {literal(value)}")
    server.ask("SELECT pg_reload_conf()")


def comes_true(server: Psql, question: str, seconds: float) -> bool:
    """Waits for the progress of a standby.

    The replay, and with it a promotion, can sleep for wal_retrieve_retry_interval (5 s) despite new WAL. A reload of
    the configuration wakes the replay.
    """
    asked = 0

    def holds() -> bool:
        nonlocal asked
        asked += 1
        if asked % 10 == 0:
            server.ask("SELECT pg_reload_conf()")
        return server.ask(question) == "t"

    return until(holds, seconds, 0.002)


class Group:
    """The answering members, and the answers."""

    def __init__(self, vms: Collection[str] | None = None, seconds: float = 4) -> None:
        self.servers: dict[str, Psql] = {}
        self.seen: dict[str, dict[str, Any]] = {}
        self.silent: dict[str, str] = {}
        self.rejecting: set[str] = set()
        ends = time.monotonic() + seconds
        for vm, (host, port) in members().items():
            if vms is None or vm in vms:
                self.servers[vm] = Psql(vm, host, port)
        for server in self.servers.values():
            server.send(STAY)
            server.send(LOOK)
            server.send(RECEIVED)
        for vm, server in self.servers.items():
            try:
                server.answer(max(0.1, ends - time.monotonic()))
                said = json.loads(server.answer(max(0.1, ends - time.monotonic())))
                said["reached"] = max(said["reached"], received(server, max(0.1, ends - time.monotonic())))
                self.seen[vm] = said
            except Unreachable as error:
                self.silent[vm] = str(error)
                if isinstance(error, Rejected):
                    self.rejecting.add(vm)

    def again(self, vm: str) -> dict[str, Any]:
        before = self.seen[vm]["reached"] if vm in self.seen else 0
        said = self.json(vm, LOOK)
        self.seen[vm] = {**said, "reached": max(said["reached"], before)}
        return self.seen[vm]

    def json(self, vm: str, question: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.servers[vm].ask(question))
        return found

    def primaries(self) -> list[str]:
        return [vm for vm, said in self.seen.items() if said["primary"]]

    def primary(self) -> str | None:
        """The only primary, or `None`."""
        found = self.primaries()
        if len(found) > 1:
            raise Failed(f"{' and '.join(found)} are both primary: stop the one whose writes are not to be kept")
        return found[0] if found else None

    def need_superuser(self, *vms: str) -> None:
        for vm in vms:
            if not self.seen[vm]["superuser"]:
                raise Failed(f"{vm}: {self.seen[vm]['user']} is no superuser: give one as PGUSER")

    def the_primary(self) -> str:
        primary = self.primary()
        doubt = self.doubt(primary) if primary else ""
        if primary and not doubt:
            return primary
        # A member that does not answer may be the primary.
        why = doubt or ("the primary is not known" if self.silent else "no member is primary")
        why = "; ".join([why, *self.silent.values()])
        # A member that is silent for another reason may be the primary again soon.
        raise Rejected(why) if self.silent and self.rejecting == set(self.silent) else Blocked(why)

    def doubt(self, primary: str, beside: Collection[str] = (), not_by: str = "") -> str:
        """Why this only primary may be a former primary, or an empty text. A member that does not answer may be the present
        primary, unless the member is one of `beside`; a standby that streams is the proof against that, unless the standby
        is `not_by`. The timeline is none: a silent member may have a higher one."""
        said, silent = self.seen[primary], set(self.silent) - set(beside)
        if not silent:
            return ""
        if later := self.contradicts(primary):
            return f"{primary} may be a former primary: {later}"
        proofs = following(said) - {not_by}
        if any(self._streams(vm, primary) for vm in proofs) or all(self._was_replaced(vm, said) for vm in silent):
            return ""
        return (
            f"{primary} may be a former primary: no standby streams from it, and a member that does not answer may be the"
            " present primary"
        )

    def later(self, than: int, system: str) -> str:
        """The members with a timeline later than this one, which a later primary began, or an empty text."""
        newer = [vm for vm, said in self.seen.items() if said["system"] == system and timeline(said) > than]
        return f"{' and '.join(newer)} has a later timeline" if newer else ""

    def contradicts(self, primary: str) -> str:
        """The members with a later timeline than this primary. They outweigh a note of an earlier switch."""
        return self.later(timeline(self.seen[primary]), self.seen[primary]["system"])

    def _was_replaced(self, vm: str, by: dict[str, Any]) -> bool:
        """Whether a standby still waits for this silent member, and that primary has been promoted since."""
        return any(
            other["system"] == by["system"] and is_newer(by, other) and source_of(other) == members()[vm]
            for other in self.seen.values()
            if not other["primary"]
        )

    def _streams(self, vm: str, primary: str) -> bool:
        """Whether a standby, which the primary names as its follower, agrees by its answer. Its name may be another's. Of a
        standby that does not answer here the primary has to have a recent answer."""
        said = self.seen.get(vm)
        if said is None:
            return without_case(vm) in map(without_case, self.seen[primary]["heard_from"])
        agrees = said["streams"] and said["timeline"] == self.seen[primary]["timeline"]
        return vm != primary and agrees and not follows_instead(said, primary)


def source_of(said: dict[str, Any]) -> tuple[str, int] | None:
    """The only server that a standby is told to follow."""
    options = dict(re.findall(r"\b(host|port)\s*=\s*'?([^\s']+)", said["told_to_follow"] or ""))
    host, port = options.get("host", ""), options.get("port", "5432")
    return (host, int(port)) if host and port.isdigit() else None


def received(server: Psql, seconds: float) -> int:
    """The answer to RECEIVED; 0 for a login without the right to it, which others report."""
    try:
        return int(server.answer(seconds) or 0)
    except LacksRight:
        return 0


def timeline(said: dict[str, Any]) -> int:
    """The newest timeline of a member's data."""
    return max(int(said["reached"]), int(said["timeline"] or 0))


def is_newer(said: dict[str, Any], than: dict[str, Any]) -> bool:
    return timeline(said) > timeline(than)


def lower_limits(of: dict[str, Any], than: dict[str, Any]) -> list[str]:
    """The settings that would stop this member as a standby of that member."""
    both = ((name, of["limits"][name], than["limits"][name]) for name in LIMITS)
    return [f"{name} = {own}, which is lower than {its}" for name, own, its in both if own < its]


def set_synchronous(primary: Psql, vms: Collection[str]) -> None:
    mode = setting("SYNCHRONOUS", "")
    if not mode:
        return
    kind, count = mode.split()
    names = ", ".join(f'"{vm}"' for vm in sorted(vms))
    value = f"{kind} {min(int(count), len(vms))} ({names})" if vms else ""
    alter(primary, "synchronous_standby_names", value)


WAITING = "SELECT pid, xact_start FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
NEWS = "BEGIN; SET LOCAL synchronous_commit = local; SELECT pg_logical_emit_message(true, 'allclear', ''); COMMIT"


def change_synchronous(primary: Psql, vms: Collection[str]) -> bool:
    """Sets the synchronous standbys of a primary at work; false if the primary did not apply the change.

    A waiting commit continues only when a standby answers, and standbys answer to new WAL. So if every client waits,
    commits would continue to wait without need.
    """
    set_synchronous(primary, vms)
    names = ", ".join(literal(vm.lower()) for vm in vms) or "NULL"
    named = f"coalesce(lower(application_name) IN ({names}), false)"
    agrees = f"SELECT coalesce(bool_and((sync_priority > 0) = {named}), true) FROM pg_stat_replication"
    if setting("SYNCHRONOUS", "") and not until(lambda: primary.ask(agrees) == "t", 5):
        return False
    waiting = set(primary.ask(WAITING).splitlines())

    def are_through() -> bool:
        primary.ask(NEWS)
        return not waiting & set(primary.ask(WAITING).splitlines())

    return not waiting or until(are_through, 5)


def synchronous(group: Group, primary: str) -> set[str]:
    """The members for which commits wait, now or after the return of the members: the synchronous standbys by the
    server's own view, and absent standbys in the setting. The server compares names without case."""
    said = group.seen[primary]
    words = re.findall(r'"((?:[^"]|"")*)"|([^\s,()"]+)', said["synchronous"])
    named = {without_case((quoted or plain).replace('""', '"')) for quoted, plain in words}
    waited_for = set(map(without_case, said["waited_for"]))
    every = {vm for vm in members() if vm != primary}
    return every if "*" in named else {vm for vm in every if without_case(vm) in named | waited_for}


def followers(group: Group, primary: str) -> set[str]:
    """The members that stream from the primary now, each under its VM's name."""
    return following(group.again(primary))


def following(primary: dict[str, Any]) -> set[str]:
    """The members that streamed from the primary when it answered."""
    names = set(map(without_case, primary["followers"]))
    return {vm for vm in members() if without_case(vm) in names}


def follows_instead(standby: dict[str, Any], primary: str) -> str | None:
    """The other member from which this standby streams, instead of the primary."""
    found = (vm for vm, (host, port) in members().items() if standby["from"] == f"{host}:{port}")
    return next((vm for vm in found if vm != primary), None)


def gather(told: Told, group: Group, primary: str) -> None:
    """Has every member that answers follow the primary, and commits wait for all of them.

    A member that was silent when the primary moved follows the former primary, and left the synchronous set. Nothing
    else would change that.
    """
    leads = group.seen[primary]
    of_cluster = {vm: said for vm, said in group.seen.items() if said["system"] == leads["system"]}
    # A standby of a later timeline could not follow, and is the standby of a later primary.
    standbys = {vm for vm, said in of_cluster.items() if not (said["primary"] or is_newer(said, leads))} - told.avoid

    def astray() -> set[str]:
        return standbys - followers(group, primary)

    # A standby that lost its connection needs a moment.
    if not until(lambda: not astray(), 2):
        for vm in sorted(astray()):
            progress(f"{vm} does not follow {primary}, and is told to")
            try:
                alter(group.servers[vm], "primary_conninfo", primary_conninfo(vm, primary))
            except Unreachable as error:
                # The return of one member does not depend on another standby.
                progress(str(error))
        if not until(lambda: not astray(), 5):
            progress(f"{' and '.join(sorted(astray()))}: does not follow {primary} yet")
    if not setting("SYNCHRONOUS", ""):
        return
    now, found = synchronous(group, primary), followers(group, primary) - told.avoid
    if not found <= now:
        change_synchronous(group.servers[primary], now | found)


def member(application_name: str) -> str:
    """The member of this name, in the spelling of MEMBERS."""
    return next((vm for vm in members() if without_case(vm) == without_case(application_name)), application_name)
