"""The members of a PostgreSQL cluster, as the hooks of `postgresql.py` see them: all are asked at once."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Collection
from typing import Any

from allclear_hook import (
    Blocked,
    Failed,
    Unreachable,
    members,
    setting,
    until,
    without_case,
)
from psql import Psql

# What a standby needs at least as much of as its primary has; with less it stops, or its replay does.
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
  'lsn', CASE WHEN pg_is_in_recovery() THEN coalesce(pg_last_wal_replay_lsn(), '0/0') ELSE pg_current_wal_lsn() END
    - '0/0'::pg_lsn,
  'streams', EXISTS (SELECT FROM pg_stat_wal_receiver WHERE status = 'streaming'),
  'holds_back', CASE WHEN pg_is_in_recovery() THEN pg_is_wal_replay_paused() END
    OR current_setting('recovery_min_apply_delay') <> '0',
  'slot', current_setting('primary_slot_name'),
  'synchronous', current_setting('synchronous_standby_names'),
  'waited_for', (SELECT coalesce(json_agg(DISTINCT application_name), '[]') FROM pg_stat_replication
    WHERE sync_state <> 'async'),
  'limits', (SELECT json_object_agg(name, setting::int) FROM pg_settings
    WHERE name IN ({", ".join(f"'{name}'" for name in LIMITS)})),
  'can_rewind', 'on' IN (current_setting('wal_log_hints'), current_setting('data_checksums')))"""
LOOK = " ".join(LOOK.split())
# A server may part from whoever is silent for as long as another one takes to stop; from version 14 on it can.
STAY = "SELECT set_config(name, '0', false) FROM pg_settings WHERE name = 'idle_session_timeout'"


def literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def primary_conninfo(of: str, to: str) -> str:
    host, port = members()[to]
    return f"{setting('PRIMARY_CONNINFO')} host={host} port={port} application_name={of}"


def alter(server: Psql, name: str, value: str) -> None:
    server.ask(f"ALTER SYSTEM SET {name} = {literal(value)}")
    server.ask("SELECT pg_reload_conf()")


def comes_true(server: Psql, question: str, seconds: float) -> bool:
    """Waits for a standby to get on.

    Its replay, and with it a promotion, can sleep for wal_retrieve_retry_interval (5 s) although there is news; to have
    the configuration read again wakes it.
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
    """The members that answer, and what they said."""

    def __init__(self, vms: Collection[str] | None = None, seconds: float = 4) -> None:
        self.servers: dict[str, Psql] = {}
        self.seen: dict[str, dict[str, Any]] = {}
        self.silent: dict[str, str] = {}
        ends = time.monotonic() + seconds
        for vm, (host, port) in members().items():
            if vms is None or vm in vms:
                self.servers[vm] = Psql(vm, host, port)
        for server in self.servers.values():
            server.send(STAY)
            server.send(LOOK)
        for vm, server in self.servers.items():
            try:
                server.answer(max(0.1, ends - time.monotonic()))
                self.seen[vm] = json.loads(server.answer(max(0.1, ends - time.monotonic())))
            except Unreachable as error:
                self.silent[vm] = str(error)

    def again(self, vm: str) -> dict[str, Any]:
        self.seen[vm] = self.json(vm, LOOK)
        return self.seen[vm]

    def json(self, vm: str, question: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.servers[vm].ask(question))
        return found

    def primaries(self) -> list[str]:
        return [vm for vm, said in self.seen.items() if said["primary"]]

    def primary(self) -> str | None:
        """The one primary, if there is one."""
        found = self.primaries()
        if len(found) > 1:
            raise Failed(f"{' and '.join(found)} are both primary: stop the one whose writes are not to be kept")
        return found[0] if found else None

    def the_primary(self) -> str:
        primary = self.primary()
        if not primary:
            raise Blocked("no member is primary" + "".join(f"; {why}" for why in self.silent.values()))
        return primary


def lower_limits(of: dict[str, Any], than: dict[str, Any]) -> list[str]:
    """What would stop this one as a standby of that one."""
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
    """The same for a primary at work; false when it did not take it up.

    Whether a commit still has to wait is looked at when a standby answers, and standbys answer when there is news. So
    where every client waits, a commit that needs no more would wait on.
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
    """The members that commits wait for, now or when they are there: those that the server counts as synchronous, and
    those that are away and that its setting names. It compares names without their case."""
    said = group.seen[primary]
    words = re.findall(r'"((?:[^"]|"")*)"|([^\s,()"]+)', said["synchronous"])
    named = {without_case((quoted or plain).replace('""', '"')) for quoted, plain in words}
    waited_for = set(map(without_case, said["waited_for"]))
    every = {vm for vm in members() if vm != primary}
    return every if "*" in named else {vm for vm in every if without_case(vm) in named | waited_for}


def member(application_name: str) -> str:
    """The member of this name, as MEMBERS spells it."""
    return next((vm for vm in members() if without_case(vm) == without_case(application_name)), application_name)
