"""The members of a PostgreSQL cluster, as the hooks of `postgresql.py` see them: all are asked at once."""

import json
import re
import time

from allclear_hook import Blocked, Failed, Unreachable, members, setting, until
from psql import Psql

LOOK = """SELECT json_build_object(
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
  'can_rewind', 'on' IN (current_setting('wal_log_hints'), current_setting('data_checksums')))"""
LOOK = " ".join(LOOK.split())


def literal(text):
    return "'" + text.replace("'", "''") + "'"


def primary_conninfo(of, to):
    host, port = members()[to]
    return f"{setting('PRIMARY_CONNINFO')} host={host} port={port} application_name={of}"


def alter(server, name, value):
    server.ask(f"ALTER SYSTEM SET {name} = {literal(value)}")
    server.ask("SELECT pg_reload_conf()")


def comes_true(server, question, seconds):
    """Waits for a standby to get on.

    Its replay, and with it a promotion, can sleep for wal_retrieve_retry_interval (5 s) although there is news; to have
    the configuration read again wakes it.
    """
    asked = 0

    def holds():
        nonlocal asked
        asked += 1
        if asked % 10 == 0:
            server.ask("SELECT pg_reload_conf()")
        return server.ask(question) == "t"

    return until(holds, seconds, 0.002)


class Group:
    """The members that answer, and what they said."""

    def __init__(self, vms=None, seconds=4):
        self.servers, self.seen, self.silent = {}, {}, {}
        ends = time.monotonic() + seconds
        for vm, (host, port) in members().items():
            if vms is None or vm in vms:
                self.servers[vm] = Psql(vm, host, port)
        for vm, server in self.servers.items():
            self._hear(vm, lambda asked=server: asked.send(LOOK))
        for vm, server in self.servers.items():
            if vm not in self.silent:
                self._hear(vm, lambda asked=server: asked.answer(max(0.1, ends - time.monotonic())), keep=True)

    def _hear(self, vm, what, keep=False):
        try:
            said = what()
            if keep:
                self.seen[vm] = json.loads(said)
        except Unreachable as error:
            self.silent[vm] = str(error)

    def again(self, vm):
        self.seen[vm] = json.loads(self.servers[vm].ask(LOOK))
        return self.seen[vm]

    def primaries(self):
        return [vm for vm, said in self.seen.items() if said["primary"]]

    def primary(self):
        """The one primary, if there is one."""
        found = self.primaries()
        if len(found) > 1:
            raise Failed(f"{' and '.join(found)} are both primary: stop the one whose writes are not to be kept")
        return found[0] if found else None

    def the_primary(self):
        return self.primary() or self._none()

    def _none(self):
        raise Blocked("no member is primary" + "".join(f"; {why}" for why in self.silent.values()))


def set_synchronous(primary, vms):
    mode = setting("SYNCHRONOUS", "")
    if not mode:
        return
    kind, count = mode.split()
    names = ", ".join(f'"{vm}"' for vm in sorted(vms))
    value = f"{kind} {min(int(count), len(vms))} ({names})" if vms else ""
    alter(primary, "synchronous_standby_names", value)


WAITING = "SELECT pid, xact_start FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
NEWS = "BEGIN; SET LOCAL synchronous_commit = local; SELECT pg_logical_emit_message(true, 'allclear', ''); COMMIT"


def change_synchronous(primary, vms):
    """The same for a primary at work; false when it did not take it up.

    Whether a commit still has to wait is looked at when a standby answers, and standbys answer when there is news. So
    where every client waits, a commit that needs no more would wait on.
    """
    set_synchronous(primary, vms)
    names = ", ".join(map(literal, vms)) or "NULL"
    named = f"coalesce(application_name IN ({names}), false)"
    agrees = f"SELECT coalesce(bool_and((sync_priority > 0) = {named}), true) FROM pg_stat_replication"
    if setting("SYNCHRONOUS", "") and not until(lambda: primary.ask(agrees) == "t", 5):
        return False
    waiting = set(primary.ask(WAITING).splitlines())

    def are_through():
        primary.ask(NEWS)
        return not waiting & set(primary.ask(WAITING).splitlines())

    return not waiting or until(are_through, 5)


def synchronous(said):
    names = {quoted or plain for quoted, plain in re.findall(r'"([^"]+)"|(\w+)', said["synchronous"])}
    return names & set(members())
