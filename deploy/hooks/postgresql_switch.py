"""The switch of PostgreSQL from one primary to another, step by step as the head of `postgresql.py` has it."""

import signal
import time

from allclear_hook import (
    Answer, Blocked, Done, Failed, Memory, NotApplicable, NotDone, Unknown, Unreachable,
    members, number, progress, setting,
)
from pgbouncer import Poolers
from postgresql_members import (Group, alter, change_synchronous, comes_true, literal, primary_conninfo, set_synchronous,
                                synchronous)
from postgresql_server import Here
from psql import Psql


class Uninterrupted:
    """What is asked to end in here goes on to a state in which there is a primary. The wait for it is short."""

    def __enter__(self):
        self.before = signal.signal(signal.SIGTERM, lambda *_: None)

    def __exit__(self, *_):
        signal.signal(signal.SIGTERM, self.before)


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
            raise Unreachable(f"{to} is not promoted after {number('PROMOTE_SECONDS', 10):g} s")

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
            change_synchronous(self.group.servers[to], follow - self.told.affected)
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
