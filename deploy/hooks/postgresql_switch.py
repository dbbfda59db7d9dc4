"""The switch of PostgreSQL from one primary to another, in the steps at the head of `postgresql.py`."""

from __future__ import annotations

import signal
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from allclear_hook import (
    Answer,
    Blocked,
    Done,
    Failed,
    Memory,
    NotApplicable,
    NotDone,
    Rejected,
    Told,
    Tries,
    Unknown,
    Unreachable,
    members,
    number,
    progress,
    setting,
    until,
)
from pgbouncer_pooler import Poolers
from postgresql_candidate import candidate, check_replay, flush, interrupted, senders
from postgresql_data import identify, is_cut_off
from postgresql_members import (
    Group,
    alter,
    change_synchronous,
    comes_true,
    literal,
    primary_conninfo,
    set_synchronous,
    synchronous,
    timeline,
)
from postgresql_server import Here, Stuck
from psql import Psql

# A switch without a promotion is given up at this time after the pause of the clients, so that writes continue within
# 20 s. Seconds.
GIVEN_UP_AFTER = 13
# The undo of a switch. Seconds.
UNDONE_WITHIN = 12
# A shorter time may be too short for any switch, with its undo. The notice of a preemption leaves 20 s or more. Seconds.
LEAST = 15


class Uninterrupted:
    """A signal to end does not stop this block, which ends in a state with a primary. The wait is short."""

    def __enter__(self) -> None:
        self.before = signal.signal(signal.SIGTERM, lambda *_: None)

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _at: TracebackType | None
    ) -> None:
        signal.signal(signal.SIGTERM, self.before)


class Switch:
    def __init__(self, told: Told) -> None:
        self.told = told
        self.here = Here(told)
        self.group = Group()
        self.memory = Memory(f"postgresql-{told.vm}")
        self.facts = self.memory.recall()
        self.poolers = Poolers(setting("POOLERS", "").split())
        self.tries = Tries(told, f"postgresql-{told.vm}")
        # An obstacle of a stop does not disappear: each further attempt would be a further pause.
        self.stops = Tries(told, f"postgresql-{told.vm}-stop", most=1)
        self.ends = time.monotonic() + GIVEN_UP_AFTER

    def step(self, step: str, to: str) -> None:
        self.facts = {"step": step, "to": to}
        self.memory.remember(self.facts)

    def begin(self) -> Done:
        """Checks, prepares, and switches to another primary."""
        told, group = self.told, self.group
        self.here.must_be(group.servers[told.vm])
        if why := self.here.cramped():
            raise Blocked(why)
        sending = senders(group, told.vm)
        to = candidate(told, group, sending)
        old, new = group.servers[told.vm], group.servers[to]
        if synchronous(group, told.vm) and not setting("SYNCHRONOUS", ""):
            raise Failed("commits wait for standbys (synchronous_standby_names): give SYNCHRONOUS in the env table")
        if not group.seen[told.vm]["can_rewind"]:
            progress("after a crash this member must be copied anew: neither data checksums nor wal_log_hints")
        # A VM that does not come back takes its primary with it, with or without a switch.
        self.poolers.check_logins(must_move=told.comes_back)
        self.poolers.check_processes()
        group.need_superuser(told.vm, to)
        if told.seconds_left() < LEAST:
            raise Blocked(f"less than {LEAST} s are left, which may be too short for a switch")
        check_return(told, to)
        if told.is_dry_run:
            return Done(f"{to} would be promoted{interrupted(group, told.vm, sending)}")
        self.tries.check()
        self.stops.check()
        self.poolers.check(told.vm)
        progress(f"{to} is to be promoted{interrupted(group, told.vm, sending)}")
        self.here.place.note(self.here.path)
        flush(told, group, [told.vm, to])
        check_replay(group, told.vm, to)
        streaming = {vm for vm in self.others(to) if group.seen[vm]["streams"]}
        set_synchronous(new, streaming - told.affected)
        alter(old, "primary_conninfo", primary_conninfo(told.vm, to))
        expendable = [sender for sender in senders(group, told.vm) if sender.vm != to]
        if told.seconds_left() < LEAST:
            raise Blocked(f"the checkpoint took too long: less than {LEAST} s are left for the switch")
        self.step("stopping", to)
        with Uninterrupted():
            self.here.be_standby()
            self.ends = time.monotonic() + min(GIVEN_UP_AFTER, told.seconds_left() - UNDONE_WITHIN)
            try:
                self.poolers.pause(self.pause())
                seconds = self.left(number("STOP_SECONDS", 8))
                self.here.stop_writes([sender.pid for sender in expendable], seconds)
                self.go_over()
            except (Answer, Unreachable) as error:
                self.take_back()
                tries = self.stops if isinstance(error, Stuck) else self.tries
                tries.was_in_vain(str(error))
                raise Failed(f"{told.vm} is primary again, after writes were stopped in vain: {error}") from error
            return self.finish()

    def go_on(self) -> Done:
        """Continues after a kill: this server is down, or was started as a standby meanwhile."""
        with Uninterrupted():
            self.here.be_standby()
            self.ends = time.monotonic() + GIVEN_UP_AFTER
            try:
                if self.facts["to"] in self.told.avoid or self.facts["to"] not in self.group.seen:
                    raise Unreachable(f"{self.facts['to']} can no longer take over")
                self.here.stop()
                self.poolers.pause(self.pause())
                self.go_over()
            except (Answer, Unreachable) as error:
                self.take_back()
                self.tries.was_in_vain(str(error))
                raise Blocked(f"{self.told.vm} is primary again: {error}") from error
            return self.finish()

    def check_timelines(self) -> None:
        """Raises if a member has a later timeline than this server: a later primary has begun that timeline, and may be
        silent. The note of the own switch is older."""
        own, system = self.here.newest_timeline(), self.here.control()["Database system identifier"]
        if later := self.group.later(own, system):
            # After `promoting` the later primary may be the candidate.
            kind = Unknown if self.facts["step"] == "promoting" else Blocked
            silent = [why for vm, why in self.group.silent.items() if vm != self.told.vm]
            raise kind("; ".join([f"{self.told.vm} may be a former primary: {later}", *silent]))

    def left(self, seconds: float) -> float:
        return max(0.5, min(seconds, self.ends - time.monotonic()))

    def pause(self) -> float:
        """The seconds for the pause of the poolers: the stop of the server needs as long."""
        return min(self.told.pause(number("PAUSE_SECONDS", 5)), self.left(GIVEN_UP_AFTER) / 2)

    def others(self, to: str) -> set[str]:
        """The standbys of the new primary, without this member."""
        return {vm for vm in self.group.seen if vm not in (to, self.told.vm)}

    def go_over(self) -> None:
        """From a server that writes no more to another primary."""
        to = self.facts["to"]
        self.wait_for_the_last_write(to)
        self.step("promoting", to)
        server = self.group.servers[to]
        server.ask("SELECT pg_promote(false)")
        if not comes_true(server, "SELECT NOT pg_is_in_recovery()", number("PROMOTE_SECONDS", 10)):
            raise Unreachable(f"{to} is not promoted after {number('PROMOTE_SECONDS', 10):g} s")

    def wait_for_the_last_write(self, to: str) -> None:
        control = self.here.control()
        state = control["Database cluster state"]
        # A server that crashed and was started as a standby meanwhile may have additional writes. After `promoting` the
        # server had already been seen as shut down.
        was_seen = self.facts["step"] == "promoting" and state == "shut down in recovery"
        if state != "shut down" and not was_seen:
            raise Unreachable(f"it was not shut down cleanly ({state})")
        last = control["Latest checkpoint location"]
        has_it = f"SELECT pg_last_wal_replay_lsn() > {literal(last)}"
        if not comes_true(self.group.servers[to], has_it, self.left(number("REPLAY_SECONDS", 5))):
            raise Unreachable(f"{to} has not replayed {last}, the end of what was written")

    def take_back(self) -> None:
        """Makes this server the primary again, unless another member may be the primary."""
        if self.facts["step"] == "switched":
            self.group.the_primary()
        if self.facts["step"] == "promoting":
            self.group.servers[self.facts["to"]] = rule_out(self.facts["to"])
        self.here.be_primary_again()
        for vm in self.others(self.told.vm):
            self.tell(vm, self.told.vm)
        self.poolers.point_and_resume(self.told.vm)
        self.memory.forget()

    def finish(self) -> Done:
        """The new primary exists. Moves all members and poolers to the new primary."""
        to = self.facts["to"]
        for vm in self.others(to):
            self.tell(vm, to)
        self.poolers.point_and_resume(to)
        new = self.group.again(to)
        ends = time.monotonic() + 5
        follow = {vm for vm in self.others(to) if self.follows(vm, new["timeline"], ends - time.monotonic())}
        if self.others(to) - follow:
            progress(f"{' '.join(self.others(to) - follow)}: does not follow {to} yet")
        if synchronous(self.group, to) != follow - self.told.affected:
            change_synchronous(self.group.servers[to], follow - self.told.affected)
        if self.here.is_stopping():
            progress(f"{self.told.vm} is shut down, and has not ended yet; in the way: {self.here.in_the_way()}")
        self.step("switched", to)
        progress(f"{to} is the primary")
        return Done()

    def tell(self, vm: str, to: str) -> None:
        try:
            alter(self.group.servers[vm], "primary_conninfo", primary_conninfo(vm, to))
        except Unreachable as error:
            progress(f"was not told of the new primary: {error}")

    def follows(self, vm: str, timeline: int, seconds: float) -> bool:
        streams = f"status = 'streaming' AND received_tli = {timeline}"
        question = f"SELECT EXISTS (SELECT FROM pg_stat_wal_receiver WHERE {streams})"
        try:
            return comes_true(self.group.servers[vm], question, seconds)
        except Unreachable:
            return False


def check_return(told: Told, to: str) -> None:
    """The new primary has to accept this member as a standby. A login that is refused here is refused to the other
    standbys too, so the new primary would stay alone."""
    try:
        identify(primary_conninfo(told.vm, to), 3)
    except Unreachable as error:
        why = f"{told.vm} cannot come back as a standby of {to}: PRIMARY_CONNINFO: {error}"
        # Without a switch a VM that does not come back would take the primary with it.
        if isinstance(error, Rejected) and told.comes_back:
            raise Failed(why) from error
        progress(why)


def rule_out(vm: str) -> Psql:
    """A session at this member, if the member is not promoted and will not be promoted. Otherwise the answer is
    "unknown"."""
    host, port = members()[vm]
    try:
        server = Psql(vm, host, port)
        # Statements of earlier attempts that are still on the way end with the sessions of these attempts.
        earlier = "application_name = current_setting('application_name') AND pid <> pg_backend_pid()"
        server.ask(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {earlier}")
        if not until(lambda: server.ask(f"SELECT count(*) FROM pg_stat_activity WHERE {earlier}") == "0", 5):
            raise Unreachable(f"{vm}: sessions of earlier attempts do not end")
        asked = server.ask("SELECT NOT pg_is_in_recovery() OR (pg_stat_file('promote', true)).size IS NOT NULL")
        # The server refuses this as soon as a promotion has begun.
        server.ask("SELECT pg_wal_replay_resume()")
    except Unreachable as error:
        raise Unknown(f"nobody can tell whether {vm} is promoted: {error}") from error
    if asked != "f":
        raise Unknown(f"{vm} was told to be promoted, and may be at any time")
    return server


def believe(told: Told, here: Here, group: Group, primary: str, facts: Mapping[str, Any]) -> None:
    """Raises if this other primary may be a former primary. `facts` are the notes of a switch: a member that this server
    was to hand over to, and that is primary, is the present one.

    A member without data loses nothing. For its return the other VMs of its event, which the primary left before, count
    as lost too: of two members without data none would be the first to return."""
    if facts.get("to") == primary and not group.contradicts(primary):
        return
    if here.vm in group.silent and may_lead(here, facts) and here.newest_timeline() >= timeline(group.seen[primary]):
        raise Blocked(
            f"{primary} may be a former primary: {here.vm} does not answer, and its data are of a later timeline, or of the"
            f" same ({group.silent[here.vm]}); stop the one whose writes are not to be kept, and start the other"
        )
    has_data = (here.path / "global" / "pg_control").exists()
    beside = {here.vm} if has_data or primary in told.affected else {here.vm, *told.affected}
    if why := group.doubt(primary, beside):
        raise Blocked("; ".join([why, *(said for vm, said in group.silent.items() if vm != here.vm)]))


def present_primary(told: Told, group: Group) -> str:
    """The primary, also without a standby if this VM has handed over to it: then this server is down."""
    primary = group.primary()
    noted = Memory(f"postgresql-{told.vm}").recall().get("to")
    if primary and primary == noted and not group.contradicts(primary):
        return primary
    return group.the_primary()


def may_lead(here: Here, facts: Mapping[str, Any]) -> bool:
    """Whether this silent server may be a primary, by its directory. A switch marks a primary at work as a standby."""
    is_standby = here.standby_signal.exists() and not is_begun(facts)
    return not is_standby and (here.path / "global" / "pg_control").exists() and not is_cut_off(here)


def failover(told: Told) -> Done:
    switch = Switch(told)
    facts, primary = switch.facts, switch.group.primary()
    if primary and primary != told.vm:
        believe(told, switch.here, switch.group, primary, facts)
        if facts.get("to") != primary:
            raise NotApplicable(f"{primary} is the primary")
        return Done() if facts["step"] == "switched" else switch.finish()
    if primary:
        return switch.begin()
    if not facts or facts["step"] == "switched":
        switch.group.the_primary()
    switch.check_timelines()
    return switch.go_on()


def is_begun(facts: Mapping[str, Any]) -> bool:
    """Whether these are the notes of a switch that has not ended."""
    return facts.get("step") in ("stopping", "promoting")


def is_half_done(told: Told) -> bool:
    """Whether a switch from this server has not ended, and this server is not the primary now."""
    is_unended = is_begun(Memory(f"postgresql-{told.vm}").recall())
    return is_unended and Group([told.vm]).primary() != told.vm


def confirm_failover(told: Told) -> Done:
    group = Group()
    primary = group.primary()
    facts = Memory(f"postgresql-{told.vm}").recall()
    if primary == told.vm:
        raise NotDone(f"{told.vm} is still the primary")
    if primary:
        if facts.get("step", "switched") != "switched":
            raise NotDone("the others are not told yet")
        try:
            believe(told, Here(told), group, primary, facts)
        except (Blocked, Unreachable) as error:
            raise Unknown(str(error)) from error
        return Done()
    suspects = {vm: why for vm, why in group.silent.items() if vm != told.vm}
    if is_begun(facts):
        # This server was the primary, so only the candidate may have become primary, and not before `promoting`.
        may_be = [facts["to"]] if facts["step"] == "promoting" else []
        suspects = {vm: why for vm, why in suspects.items() if vm in may_be}
    if suspects:
        raise Unknown("no member is known to be primary; " + "; ".join(suspects.values()))
    raise NotDone("no member is primary")


def undo_failover(told: Told) -> Done:
    switch = Switch(told)
    answer = undo(told, switch)
    switch.poolers.check_moved()
    return answer


def undo(told: Told, switch: Switch) -> Done:
    primary = switch.group.primary()
    if primary and primary != told.vm:
        believe(told, switch.here, switch.group, primary, switch.facts)
        return switch.finish() if switch.facts.get("to") == primary else Done()
    if switch.facts:
        switch.check_timelines()
        with Uninterrupted():
            switch.take_back()
    elif primary and (why := switch.group.doubt(primary)):
        # Nothing of this VM's switch is left, and the poolers may be at the present primary.
        return Done(why)
    elif primary:
        switch.poolers.point_and_resume(primary)
    return Done()
