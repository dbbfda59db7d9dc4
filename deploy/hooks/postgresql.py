#!/usr/bin/env python3
"""PostgreSQL 13 or later with streaming replication, asynchronous or synchronous. Runs beside each server, as its user.

The switch. It runs on the affected VM that holds the primary. First it looks, with everything still writable: a
standby must stream on the primary's timeline, under its VM's name, with little lag, not on a VM to avoid. Then
  1. `stopping` and the new primary's name go into STATE_DIR, standby.signal into PGDATA: whoever starts this server
     from now on gets a standby of the new primary;
  2. poolers are paused, and the server is stopped fast; it must say that it was shut down;
  3. the candidate must have replayed the checkpoint of that shutdown: it has every write that was acknowledged;
  4. `promoting` goes into STATE_DIR, the candidate is promoted, other standbys are pointed to it, poolers let go;
  5. `switched` goes into STATE_DIR. The server stays down until `restore` starts it as a standby.
A signal to end does not cut 2 to 4 in two. What fails before 4 is taken back: the old primary is started again. After
4 it is started only once the candidate answers that it neither is nor will be promoted. A run that was killed is gone
on with by the next, or taken back by `undo`. `confirm` says done when another member is primary and all of this is
done, not done when nobody else is primary, and unknown when somebody who might be does not answer.

Needs: application_name of every standby is its VM's name; recovery_target_timeline = latest and hot_standby
(defaults); a superuser that every member lets in from every other (PGUSER, PGPASSFILE); one for replication
(PRIMARY_CONNINFO); the same on all members. For a rejoin after a crash data checksums or wal_log_hints = on.
wal_keep_size or an archive for the time a member is away, because replication slots do not move: with
primary_slot_name set nothing is switched.
Promises: never two primaries; no acknowledged write is lost, synchronous or not; a member is back only when it has
replayed what was written on the primary after its return. A primary that was moved away comes back as a standby,
however its service starts it; one that others replaced without this hook is stopped by `restore`, and what it wrote kept.
Cannot promise: to act when no primary runs (it is not a failover manager for crashes); a primary at once when the
candidate is lost in the moment of its promotion: until it answers nobody can tell, and the answer is unknown; logical
slots before 17; commits on two members while every synchronous standby is away: then the primary acknowledges alone,
and says so in synchronous_standby_names.

checkpoint: flushes, so that the stop is short. A standby leaves the synchronous set, so that no commit waits.
failover: as above.    shutdown: stops a standby, never a primary.
restore: follows whoever is primary now; after a crash with pg_rewind, into an empty PGDATA with pg_basebackup; then
  takes its place in the synchronous set.    ready: whether that holds.    role: for the workload's role.

Settings, in the env table
  PGDATA, PGUSER, PGPASSFILE ...        as psql knows them
  MEMBERS           "db-0=10.0.0.4:5432 db-1=10.0.0.5:5432 db-2=10.0.0.6:5432"
  PRIMARY_CONNINFO  how a standby logs in: "user=replicator passfile=..."; host, port and application_name are added
  SYNCHRONOUS       "ANY 1" or "FIRST 1": the hooks write synchronous_standby_names; left out: asynchronous
  POOLERS           "10.0.0.7:6432 ..." admin addresses of PgBouncers; see pgbouncer.py
  START, STOP       commands; default: pg_ctl, and SIGINT to the server. Debian: "pg_ctlcluster 15 main start"
  CONFIG_FILE       where postgresql.conf is, when it is not in PGDATA (for pg_rewind, 15 or later)
  MAX_LAG (16777216 bytes), STOP_SECONDS (15), REPLAY_SECONDS (5), PROMOTE_SECONDS (10), PAUSE_SECONDS (5), STATE_DIR,
  BIN (/usr/lib/postgresql/VERSION/bin)
"""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import time
from pathlib import Path

from allclear_hook import (
    Answer, Blocked, Done, Failed, Memory, NotApplicable, NotDone, Unknown, Unreachable,
    call, members, progress, serve, setting, until,
)
from pgbouncer import Poolers
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
OWN_FILES = ("postgresql.conf", "postgresql.auto.conf", "pg_hba.conf", "pg_ident.conf")
OURSELVES = "allclear_hook"


def literal(text):
    return "'" + text.replace("'", "''") + "'"


def position(text):
    """A position in the log, as 3/5C001A28, as a number."""
    high, _, low = text.strip().partition("/")
    return (int(high, 16) << 32) + int(low, 16)


def number(name, default):
    return float(setting(name, str(default)))


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


class Here:
    """The server on this VM, as a process and a directory."""

    def __init__(self, told):
        self.vm = told.vm
        if self.vm not in members():
            raise Failed(f"MEMBERS does not have this VM, {self.vm}")
        self.path = Path(setting("PGDATA"))
        self.standby_signal = self.path / "standby.signal"

    def program(self, name):
        version = self.path / "PG_VERSION"
        known = f"/usr/lib/postgresql/{version.read_text().strip()}/bin" if version.exists() else ""
        found = shutil.which(name, path=setting("BIN", known)) or shutil.which(name)
        beside = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
        return found or (str(beside[-1]) if beside else name)

    def is_lost(self):
        return not (self.path / "global" / "pg_control").exists()

    def pid(self):
        """Of the server that runs on this directory; it lives in it, which tells it from a stale file's."""
        try:
            pid = int((self.path / "postmaster.pid").read_text().split()[0])
            return pid if os.readlink(f"/proc/{pid}/cwd") == str(self.path.resolve()) else None
        except (OSError, ValueError, IndexError):
            return None

    def control(self):
        said = call([self.program("pg_controldata"), "-D", self.path], env={**os.environ, "LC_ALL": "C"})
        return {name: value.strip() for name, _, value in (line.partition(":") for line in said.splitlines())}

    def be_standby(self):
        with self.standby_signal.open("w") as file:
            os.fsync(file.fileno())
        directory = os.open(self.path, os.O_RDONLY)
        os.fsync(directory)
        os.close(directory)

    def follow(self, to):
        """For a server that is down what ALTER SYSTEM is for one that runs."""
        path = self.path / "postgresql.auto.conf"
        lines = path.read_text().splitlines() if path.exists() else []
        lines = [line for line in lines if not line.startswith("primary_conninfo")]
        lines.append(f"primary_conninfo = {literal(primary_conninfo(self.vm, to))}")
        path.write_text("\n".join(lines) + "\n")

    def stop(self, expendable=()):
        """Stops it fast. `expendable` are the senders of log that it would wait for when their standby hangs."""
        pid, began = self.pid(), time.monotonic()
        if pid is None:
            return
        if setting("STOP", ""):
            subprocess.Popen(shlex.split(setting("STOP")), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        else:
            os.kill(pid, signal.SIGINT)
        is_down = lambda: self.pid() is None
        if until(is_down, 1, 0.002):
            return
        for sender in expendable:
            end(sender, signal.SIGTERM)
        if not until(is_down, number("STOP_SECONDS", 15) - (time.monotonic() - began), 0.002):
            raise Unreachable(f"{self.vm}: the server did not stop within {setting('STOP_SECONDS', '15')} s")

    def start(self):
        """Starts it and waits until it answers."""
        log = Path(setting("STATE_DIR", "/var/lib/allclear-hooks")) / "postgresql.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        default = f"{self.program('pg_ctl')} -D {shlex.quote(str(self.path))} -W -l {shlex.quote(str(log))} start"
        # The lock of a process that has just ended can make a first start fail.
        for _ in range(3):
            with log.open("ab") as out:
                command = shlex.split(setting("START", default))
                subprocess.run(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, timeout=120, check=False)
            until(self.pid, 5, 0.01)
            said = until(lambda: self.answering() or not self.pid(), 120, 0.02)
            if isinstance(said, Group):
                return said
        raise Failed(f"{self.vm}: the server does not answer after its start; see {log} and its own log")

    def answering(self):
        group = Group([self.vm])
        return group if group.seen else None

    def be_primary_again(self):
        """Takes back a stop. Only for whoever knows that nobody else was promoted."""
        if self.pid():
            is_starting_as_primary = not self.standby_signal.exists()
            group = until(self.answering, 120 if is_starting_as_primary else 0, 0.02)
            if group and group.primaries():
                self.standby_signal.unlink(missing_ok=True)
                return
            try:
                self.stop()
            except Unreachable:
                os.kill(self.pid(), signal.SIGQUIT)
                until(lambda: self.pid() is None, 10)
        self.standby_signal.unlink(missing_ok=True)
        if not self.start().primaries():
            raise Failed(f"{self.vm}: the server was started as a primary and came up as a standby; see its log")


def end(pid, how):
    try:
        os.kill(pid, how)
    except ProcessLookupError:
        pass


class Uninterrupted:
    """What is asked to end in here goes on to a state in which there is a primary. The wait for it is short."""

    def __enter__(self):
        self.before = signal.signal(signal.SIGTERM, lambda *_: None)

    def __exit__(self, *_):
        signal.signal(signal.SIGTERM, self.before)


# The synchronous set


def set_synchronous(primary, vms):
    mode = setting("SYNCHRONOUS", "")
    if not mode:
        return
    kind, count = mode.split()
    names = ", ".join(f'"{vm}"' for vm in sorted(vms))
    value = f"{kind} {min(int(count), len(vms))} ({names})" if vms else ""
    alter(primary, "synchronous_standby_names", value)


def synchronous(said):
    names = {quoted or plain for quoted, plain in re.findall(r'"([^"]+)"|(\w+)', said["synchronous"])}
    return names & set(members())


# The switch


def unfit(vm, told, group):
    """Why this member cannot become primary, or nothing."""
    primary, said = group.seen[told.vm], group.seen.get(vm)
    if vm in told.avoid:
        return "is affected by an event or out of reach"
    if not said:
        return group.silent[vm]
    if said["system"] != primary["system"]:
        return "is of another database cluster"
    if not said["streams"] or said["timeline"] != primary["timeline"]:
        return f"does not stream on timeline {primary['timeline']}"
    if said["holds_back"]:
        return "is told to replay later (paused, or recovery_min_apply_delay)"
    if said["slot"]:
        return f"uses the replication slot {said['slot']} (primary_slot_name), which does not move with the primary"
    if group.senders.get(vm) is None:
        return "does not stream from the primary under its VM's name (application_name)"
    if primary["lsn"] - said["lsn"] > number("MAX_LAG", 1 << 24):
        return f"is {(primary['lsn'] - said['lsn']) >> 20} MiB behind"
    return ""


def candidate(told, group):
    """Whom to promote."""
    rows = group.servers[told.vm].ask("SELECT pid, application_name FROM pg_stat_replication WHERE state = 'streaming'")
    group.senders = {name: int(pid) for pid, _, name in (row.partition("|") for row in rows.splitlines())}
    reasons = {vm: unfit(vm, told, group) for vm in group.servers if vm != told.vm}
    fit = sorted((vm for vm, why in reasons.items() if not why), key=lambda vm: -group.seen[vm]["lsn"])
    for vm in told.in_order_of_preference(fit):
        return vm
    raise Blocked("no standby can take over: " + "; ".join(f"{vm}: {why}" for vm, why in reasons.items()))


def flush(group, vms, seconds):
    """A checkpoint on each, and again on the first, which has gone on writing meanwhile."""
    first = group.servers[vms[0]]
    first.ask("CHECKPOINT", seconds)
    for vm in vms[1:]:
        group.servers[vm].send("CHECKPOINT")
    for vm in vms[1:]:
        group.servers[vm].answer(seconds)
    first.ask("CHECKPOINT", seconds)


class Switch:
    def __init__(self, told):
        self.told = told
        self.here = Here(told)
        self.group = Group()
        self.memory = Memory(f"postgresql-{told.vm}")
        self.facts = self.memory.recall()
        self.poolers = Poolers(setting("POOLERS", "").split())

    def step(self, step, to):
        self.facts = {"step": step, "to": to}
        self.memory.remember(self.facts)

    def begin(self):
        """Looks, prepares, and goes over to another primary."""
        told, group = self.told, self.group
        to = candidate(told, group)
        old, new = group.servers[told.vm], group.servers[to]
        if group.seen[told.vm]["synchronous"] and not setting("SYNCHRONOUS", ""):
            raise Failed("synchronous_standby_names is set: give SYNCHRONOUS in the hook's env table")
        if not group.seen[told.vm]["can_rewind"]:
            progress("after a crash this member must be copied anew: neither data checksums nor wal_log_hints")
        if told.is_dry_run:
            return Done(f"{to} would be promoted")
        if told.seconds_left() < 10:
            raise Blocked("less than 10 s are left, which may be too short for a switch")
        self.poolers.check(told.vm)
        progress(f"{to} is to be promoted")
        flush(group, [told.vm, to], told.seconds_left())
        self.step("stopping", to)
        streaming = {vm for vm in self.others(to) if group.seen[vm]["streams"]}
        set_synchronous(new, streaming - told.affected)
        alter(old, "primary_conninfo", primary_conninfo(told.vm, to))
        with Uninterrupted():
            self.here.be_standby()
            return self.go_over()

    def others(self, to):
        """The standbys of the new primary, beside this member."""
        return {vm for vm in self.group.seen if vm not in (to, self.told.vm)}

    def go_over(self):
        """From a stopping server to a primary: the new one, or the old one again."""
        to = self.facts["to"]
        try:
            if to in self.told.avoid or to not in self.group.seen:
                raise Unreachable(f"{to} can no longer take over")
            self.poolers.pause(number("PAUSE_SECONDS", 5))
            others = [pid for vm, pid in getattr(self.group, "senders", {}).items() if vm != to]
            self.here.stop(expendable=others)
            self.wait_for_the_last_write(to)
            self.step("promoting", to)
            self.promote(to)
        except (Answer, Unreachable) as error:
            self.take_back()
            raise Blocked(f"{self.told.vm} stays primary: {error}") from error
        return self.finish()

    def wait_for_the_last_write(self, to):
        control = self.here.control()
        state = control["Database cluster state"]
        # One that crashed and was started as a standby meanwhile may have writes that nobody else has. Once `promoting`
        # is noted it had been seen to be shut down before.
        was_seen = self.facts["step"] == "promoting" and state == "shut down in recovery"
        if state != "shut down" and not was_seen:
            raise Unreachable(f"it was not shut down cleanly ({state})")
        last = control["Latest checkpoint location"]
        has_it = f"SELECT pg_last_wal_replay_lsn() > {literal(last)}"
        if not comes_true(self.group.servers[to], has_it, number("REPLAY_SECONDS", 5)):
            raise Unreachable(f"{to} has not replayed {last}, the end of what was written")

    def promote(self, to):
        server = self.group.servers[to]
        server.ask("SELECT pg_promote(false)")
        if not comes_true(server, "SELECT NOT pg_is_in_recovery()", number("PROMOTE_SECONDS", 10)):
            raise Unreachable(f"{to} is not promoted after {setting('PROMOTE_SECONDS', '10')} s")

    def take_back(self):
        """Makes this server the primary again, unless another one may be."""
        if self.facts["step"] == "switched":
            self.group.the_primary()
        if self.facts["step"] == "promoting":
            self.group.servers[self.facts["to"]] = rule_out(self.facts["to"])
        self.here.be_primary_again()
        for vm in self.others(self.told.vm):
            self.tell(vm, self.told.vm)
        self.poolers.point_and_resume(self.told.vm)
        self.memory.forget()

    def finish(self):
        """The new primary is there. Everybody is told."""
        to = self.facts["to"]
        for vm in self.others(to):
            self.tell(vm, to)
        self.poolers.point_and_resume(to)
        new = self.group.again(to)
        ends = time.monotonic() + 5
        follow = {vm for vm in self.others(to) if self.follows(vm, new["timeline"], ends - time.monotonic())}
        if self.others(to) - follow:
            progress(f"{' '.join(self.others(to) - follow)}: does not follow {to} yet")
        if synchronous(new) != follow - self.told.affected:
            set_synchronous(self.group.servers[to], follow - self.told.affected)
        self.step("switched", to)
        return Done()

    def tell(self, vm, to):
        try:
            alter(self.group.servers[vm], "primary_conninfo", primary_conninfo(vm, to))
        except Unreachable as error:
            progress(f"was not told of the new primary: {error}")

    def follows(self, vm, timeline, seconds):
        streams = f"status = 'streaming' AND received_tli = {timeline}"
        question = f"SELECT EXISTS (SELECT FROM pg_stat_wal_receiver WHERE {streams})"
        try:
            return comes_true(self.group.servers[vm], question, seconds)
        except Unreachable:
            return False


def rule_out(vm):
    """A session at this member, when it is not promoted and will not be. Otherwise nobody can tell."""
    host, port = members()[vm]
    try:
        server = Psql(vm, host, port)
        # What an earlier attempt has sent and the server has not heard yet ends with its session.
        server.ask(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name = current_setting('application_name') AND pid <> pg_backend_pid()"
        )
        asked = server.ask("SELECT NOT pg_is_in_recovery() OR (pg_stat_file('promote', true)).size IS NOT NULL")
        # It is refused as soon as a promotion has begun.
        server.ask("SELECT pg_wal_replay_resume()")
    except Unreachable as error:
        raise Unknown(f"nobody can tell whether {vm} is promoted: {error}") from error
    if asked != "f":
        raise Unknown(f"{vm} was told to be promoted, and may be at any time")
    return server


def failover(told):
    switch = Switch(told)
    facts, primary = switch.facts, switch.group.primary()
    if primary and primary != told.vm:
        if facts.get("to") != primary:
            raise NotApplicable(f"{primary} is the primary")
        return Done() if facts["step"] == "switched" else switch.finish()
    if primary:
        return switch.begin()
    if not facts or facts["step"] == "switched":
        switch.group.the_primary()
    with Uninterrupted():
        return switch.go_over()


def confirm_failover(told):
    group = Group()
    primary = group.primary()
    facts = Memory(f"postgresql-{told.vm}").recall()
    if primary == told.vm:
        raise NotDone(f"{told.vm} is still the primary")
    if primary:
        return Done() if facts.get("step", "switched") == "switched" else NotDone("the others are not told yet")
    group.silent.pop(told.vm, None)
    if group.silent:
        raise Unknown("no member is known to be primary; " + "; ".join(group.silent.values()))
    raise NotDone("no member is primary")


def undo_failover(told):
    switch = Switch(told)
    primary = switch.group.primary()
    if primary and primary != told.vm:
        return switch.finish() if switch.facts.get("to") == primary else Done()
    if switch.facts:
        with Uninterrupted():
            switch.take_back()
    elif primary:
        switch.poolers.point_and_resume(primary)
    return Done()


# Around it


def checkpoint(told):
    group = Group()
    primary = group.the_primary()
    if primary == told.vm:
        standbys = [vm for vm, said in group.seen.items() if said["streams"] and vm not in told.avoid]
        flush(group, [primary, *standbys], told.seconds_left())
        return Done()
    leave(told, group, primary)
    if told.vm in group.seen:
        group.servers[told.vm].ask("CHECKPOINT", told.seconds_left())
    return Done()


def leave(told, group, primary):
    """No commit is to wait for a standby whose VM goes away."""
    now = synchronous(group.seen[primary])
    if not setting("SYNCHRONOUS", "") or not now & told.affected:
        return
    server = group.servers[primary]
    set_synchronous(server, now - told.affected)
    gone = ", ".join(literal(vm) for vm in told.affected)
    still = f"SELECT count(*) FROM pg_stat_replication WHERE sync_state <> 'async' AND application_name IN ({gone})"
    if not until(lambda: server.ask(still) == "0", 5, 0.005):
        raise Blocked(f"{primary} still waits for {told.vm}")


def shutdown(told):
    here = Here(told)
    if not here.standby_signal.exists():
        raise NotApplicable(f"{told.vm} is no standby")
    here.stop()


def restore(told):
    here, group = Here(told), Group()
    memory = Memory(f"postgresql-{told.vm}")
    primary = fenced(told, here, group, memory.recall())
    poolers = Poolers(setting("POOLERS", "").split())
    if primary != told.vm:
        rejoin(told, here, group, primary)
    poolers.point_and_resume(primary)
    memory.forget()
    return Done()


def fenced(told, here, group, facts):
    """Who is primary, when this server is not one beside it."""
    found = group.primaries()
    others = [vm for vm in found if vm != told.vm]
    if not found and facts.get("step", "switched") != "switched":
        undo_failover(told)
        return told.vm
    if len(others) != 1:
        return group.the_primary()
    other = others[0]
    was_started_as_primary = here.pid() and not here.standby_signal.exists()
    if told.vm in found and group.seen[told.vm]["timeline"] > group.seen[other]["timeline"]:
        return group.the_primary()
    if told.vm in found or was_started_as_primary:
        here.be_standby()
        here.stop()
        if facts.get("to") != other:
            Memory(f"postgresql-{told.vm}-data").remember({"step": "fenced"})
    return other


def rejoin(told, here, group, primary):
    """Makes this server a standby of the primary that has what is written there now."""
    server = group.servers[primary]
    memory = Memory(f"postgresql-{told.vm}-data")
    spoilt = memory.recall().get("step")
    if here.is_lost() or spoilt == "copying":
        copy(here, primary, memory, told)
    elif spoilt == "fenced" and has_diverged(here, group, primary):
        raise Failed(
            f"{told.vm} was writable beside {primary}, which was promoted after it, and has been stopped. Look for "
            f"writes that only it has; when there are none to keep, run pg_rewind or empty {here.path}"
        )
    elif spoilt == "rewinding" or has_diverged(here, group, primary):
        rewind(here, server, primary, memory, told)
    if here.pid():
        answering = until(here.answering, told.seconds_left() - 2, 0.1)
        if not answering:
            raise Blocked(f"{told.vm}: the server does not answer yet")
        alter(answering.servers[told.vm], "primary_conninfo", primary_conninfo(told.vm, primary))
    else:
        here.be_standby()
        here.follow(primary)
        here.start()
    prove(told, Group([primary, told.vm]), primary)
    memory.forget()


def has_diverged(here, group, primary):
    """Whether this server has written, or may have, what is not in the history of the primary."""
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


def rewind(here, server, primary, memory, told):
    here.stop()
    progress("pg_rewind")
    kept = memory.path.parent / "own-files"
    if memory.recall().get("step") != "rewinding":
        shutil.rmtree(kept, ignore_errors=True)
        kept.mkdir(parents=True)
        for name in OWN_FILES:
            if (here.path / name).exists():
                shutil.copy2(here.path / name, kept)
    memory.remember({"step": "rewinding"})
    # Without it pg_rewind reads the timeline from before the promotion, and spoils this directory.
    server.ask("CHECKPOINT", told.seconds_left())
    host, port = members()[primary]
    database = os.environ.get("PGDATABASE", "postgres")
    arguments = ["-D", here.path, f"--source-server=host={host} port={port} dbname={database}"]
    if setting("CONFIG_FILE", ""):
        arguments.append(f"--config-file={setting('CONFIG_FILE')}")
    here.standby_signal.unlink(missing_ok=True)
    try:
        call([here.program("pg_rewind"), *arguments], told.seconds_left())
    except Unreachable as error:
        raise Failed(f"pg_rewind: {error}. To have this member copied anew, empty {here.path}") from error
    for file in kept.iterdir():
        shutil.copy2(file, here.path)
    here.be_standby()
    memory.forget()


def copy(here, primary, memory, told):
    here.stop()
    progress("pg_basebackup")
    memory.remember({"step": "copying"})
    here.path.mkdir(mode=0o700, parents=True, exist_ok=True)
    for inside in here.path.iterdir():
        shutil.rmtree(inside) if inside.is_dir() and not inside.is_symlink() else inside.unlink()
    source = primary_conninfo(here.vm, primary)
    program = here.program("pg_basebackup")
    call([program, "-D", here.path, "-d", source, "-c", "fast", "-X", "stream"], told.seconds_left())
    here.be_standby()
    here.follow(primary)
    memory.forget()


def prove(told, group, primary):
    """A standby may say that it streams and be broken. What is written now has to arrive."""
    server = group.servers[primary]
    mark = int(server.ask(f"SELECT pg_logical_emit_message(true, {literal(OURSELVES)}, {literal(told.vm)}) - '0/0'"))
    if not until(lambda: has(told, group, primary, mark), told.seconds_left() - 2, 0.02):
        raise Blocked(f"{told.vm}: {behind(told, group, primary)}")
    if setting("SYNCHRONOUS", ""):
        set_synchronous(server, synchronous(group.again(primary)) | {told.vm})


def has(told, group, primary, mark):
    said = group.again(told.vm)
    return said["streams"] and said["lsn"] > mark and not behind(told, group, primary)


def behind(told, group, primary):
    """What this standby lacks, or nothing."""
    standby, ahead = group.again(told.vm), group.again(primary)
    if not standby["streams"] or standby["timeline"] != ahead["timeline"]:
        return f"does not stream on timeline {ahead['timeline']} of {primary}"
    lag = ahead["lsn"] - standby["lsn"]
    return f"is {lag >> 10} KiB behind" if lag > 1 << 20 else ""


def ready(told):
    group = Group()
    primary = group.the_primary()
    if told.vm not in group.seen:
        raise Blocked(group.silent[told.vm])
    lack = behind(told, group, primary) if primary != told.vm else ""
    if lack:
        raise Blocked(f"{told.vm}: {lack}")


def role(told):
    group = Group([told.vm], 1.5)
    if not group.seen:
        raise Blocked(group.silent[told.vm])
    print("primary" if group.primaries() else "replica")


if __name__ == "__main__":
    serve(
        {
            "role": role,
            "checkpoint": checkpoint,
            "failover": failover,
            "confirm-failover": confirm_failover,
            "undo-failover": undo_failover,
            "shutdown": shutdown,
            "restore": restore,
            "ready": ready,
        }
    )
