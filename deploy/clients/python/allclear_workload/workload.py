"""The connection to the replica: repeated until the workload stops, kept alive, and resumed."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random
import secrets
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import grpc

from .arguments import check_member, check_path, duration, instances, is_async, text, texts
from .attempts import Attempts
from .hook import Hook
from .messages import Message, OnAbsent, Role, pb
from .outcome import cut
from .session import ANSWER_WITHIN, Session, SessionEnded, Standing, told_problem

if TYPE_CHECKING:
    # in the standard library since 3.11
    from typing_extensions import Self

__all__ = ["Standing", "StillRegistered", "Workload"]

# Durations are seconds.
FIRST_PAUSE, LONGEST_PAUSE, LATEST_DIAL = 0.1, 5, 30
# For at most this long after the stop, outcomes without an acknowledgement are delivered before the goodbye: with a
# journal in memory, no later process repeats the outcomes.
SETTLES_WITHIN, SETTLE_PAUSE = 5, 0.2
# Ends that are repeated with a heartbeat: a replica accepts at most 50 messages per second.
REPEATED = 10

# The replica's default of `workloads.socket`.
DEFAULT_SOCKET = "/run/allclear/workloads.sock"

log = logging.getLogger(__package__)


class StillRegistered(Exception):
    """`leave` removed no registration. The text has the reason. If there is a registration, of this run or of an
    earlier run, events still wait for this workload."""


class Workload:
    """A workload that takes part while entered: `async with Workload(...):`. The end of the `async with` is a `stop()`,
    which waits for no handler.

    name: unique on its VM. socket: the replica's socket for workloads, `workloads.socket` of its configuration.
    hooks: hooks of one phase run in the given order.
    group: the workloads that replicate the same data. Without a group the members are not limited, and a failover gets
        no members: `standing.problems` has a warning if the replica's configuration has groups.
    lease: how long the workload counts as connected after its last message, from 1 to 300 seconds; default 10.
    retain: how long the registration is kept without a session, from 1 s to 365 days; by default until `leave`.
    on_absent: the treatment of the hooks while the workload is disconnected.
    after: workloads, on any VM, that are prepared before this workload.
    journal: the file for the record of attempts; by default in memory only. A separate file for each workload. A hook
        whose effect ends with the process needs `confirm` and `fresh_for`: the journal says done after a restart too.
    on_standing: called with a Standing after every change. No async function. An exception is logged, and the
        workload stays connected.
    """

    def __init__(
        self, name: str, socket: str | os.PathLike[str], hooks: Iterable[Hook] = (), *, group: str | None = None,
        role: Role = Role.UNSPECIFIED, lease: float | None = None, retain: float | None = None,
        on_absent: OnAbsent = OnAbsent.UNSPECIFIED, after: Iterable[str] = (),
        journal: str | os.PathLike[str] | None = None, on_standing: Callable[[Standing], object] | None = None,
    ) -> None:  # fmt: skip
        check_member("role", role, Role)
        check_member("on_absent", on_absent, OnAbsent)
        check_path("socket", socket)
        if journal is not None:
            check_path("journal", journal)
        if on_standing is not None and not callable(on_standing):
            raise TypeError(f"on_standing is {on_standing!r}: give a function of a Standing")
        if on_standing is not None and is_async(on_standing):
            raise TypeError("on_standing is async, and would never run: give a function without `async`")
        self._socket, self._path, self._on_standing = socket, journal, on_standing
        self._hooks: tuple[Hook, ...] = instances("hooks", hooks, Hook, "Hook(Phase.DRAIN, drain)")
        self._hello: Message = pb.Hello(
            versions=[1], workload=text("name", name), group=None if group is None else text("group", group),
            boot=secrets.token_hex(8), on_absent=on_absent,
            lease_ms=duration("lease", lease, least=1), retain_ms=duration("retain", retain, least=1),
            after=texts("after", after), hooks=[hook.message for hook in self._hooks],
        )  # fmt: skip
        self._role = self._told_role = role
        self._is_entered = self._stopping = self._unregister = False
        # the end of the delivery after the stop
        self._settles_until: float | None = None
        self._stays: str | None = "it was stopped before there was a session"
        # whether a replica has accepted the registration
        self._is_accepted = False
        # the last argument of `on_standing`
        self.standing = Standing("dialling", why="not dialled yet")

    async def __aenter__(self) -> Self:
        """Reads the journal (JournalError) and begins to connect, in the background. A Workload is entered
        once (RuntimeError)."""
        if self._is_entered:
            raise RuntimeError("this Workload was entered before: make a new Workload for each `async with`")
        self._loop = asyncio.get_running_loop()
        # set when the session has something to do
        self._wake = asyncio.Event()
        self._attempts = Attempts(self._hooks, self._path, self._wake.set)
        self._session = asyncio.create_task(self._dial())
        self._is_entered = True
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    @property
    def role(self) -> Role:
        """The present role. Set the role at every change, also from another thread, but not before the workload is
        entered: the replica receives the role at once, and a failover runs on the primary."""
        return self._role

    @role.setter
    def role(self, role: Role) -> None:
        check_member("role", role, Role)
        if not self._is_entered:
            role_text = f"Role.{Role(role).name}"
            raise RuntimeError(f"role is set to {role_text} before `async with`: give Workload(role={role_text})")
        self._role = role
        self._loop.call_soon_threadsafe(self._wake.set)

    async def stop(self, *, handlers_within: float = 0) -> None:
        """Ends the session intentionally; the registration stays. Outcomes that the replica has not acknowledged are
        delivered before, also over a new connection, for at most 5 s.

        handlers_within: the session goes on until no handler runs, for at most this many seconds; by default it ends at
            once. A handler that still runs then is not cancelled, and `step.cancelled()` does not return: the handler
            goes on as long as the event loop. The end of `asyncio.run` cuts it off with CancelledError, its effect may
            be half done, and `confirm` decides. So wait for your handlers before you leave.
        """
        duration("handlers_within", handlers_within)
        self._attempts.takes_new = False
        await self._attempts.idle(handlers_within)
        self._stopping = True
        self._wake.set()
        await asyncio.wait([self._session])
        await self._attempts.flush()
        self._attempts.close()

    async def leave(self, *, handlers_within: float = 0) -> None:
        """Ends the session as `stop` does, and removes the registration. The replica refuses (StillRegistered) while an
        event prepares this workload or has not restored the workload. The session ends regardless."""
        self._unregister = True
        await self.stop(handlers_within=handlers_within)
        if self._stays and self._is_accepted:
            raise StillRegistered(f"the registration was not taken back: {self._stays}")
        if self._stays:
            earlier = "the registration of an earlier run, if there is one, stays"
            raise StillRegistered(
                f"the workload was not connected, so nothing was taken back: {self._stays}; {earlier}"
            )

    def _stand(self, standing: Standing) -> None:
        self.standing = standing
        if not self._on_standing:
            return
        try:
            self._on_standing(standing)
        except Exception:
            # the caller's function must not end the connection
            log.exception("on_standing failed at %s", standing)

    async def _dial(self) -> None:
        failures = 0
        while not self._stopping or self._settles():
            try:
                await self._one_session()
            except SessionEnded as end:
                if self.standing.word == "connected":
                    failures = 0
                longest = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(failures, 16))
                failures += 1
                self._stays = str(end)
                # A refusal needs a change of this program or of the replica's configuration.
                level = logging.WARNING if end.standing.word == "refused" else logging.INFO
                log.log(level, "no session with the replica: %s", end)
                self._stand(end.standing)
                await self._pause(max(random.uniform(longest / 2, longest), min(end.after, LATEST_DIAL)))
        self._stand(Standing("stopped"))

    def _settles(self) -> bool:
        """Whether outcomes are to be delivered after the stop."""
        if not self._stopping or not self._attempts.has_unsettled():
            return False
        if self._settles_until is None:
            self._settles_until = self._loop.time() + SETTLES_WITHIN
        return self._loop.time() < self._settles_until

    async def _pause(self, seconds: float) -> None:
        until = self._loop.time() + seconds
        while not self._stopping and self._loop.time() < until:
            await self._woken(until)
        if self._settles():
            await asyncio.sleep(min(max(0, until - self._loop.time()), SETTLE_PAUSE))

    async def _woken(self, until: float) -> None:
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._wake.wait(), max(0, until - self._loop.time()))
        self._wake.clear()

    async def _one_session(self) -> None:
        session = None
        try:
            session = Session(self._socket, self._attempts, self._wake.set)
            if await self._open(session):
                await self._converse(session)
        except grpc.aio.AioRpcError as error:
            if error.code() == grpc.StatusCode.UNIMPLEMENTED:
                text = f"the server at {self._socket} does not serve workloads: give the path of `workloads.socket`"
                raise SessionEnded(f"{text}, by default {DEFAULT_SOCKET}", "refused") from None
            is_refused = error.code() in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.PERMISSION_DENIED)
            why = cut(error.details() or error.code().name)
            raise SessionEnded(why, "refused" if is_refused else "dialling") from None
        except asyncio.TimeoutError:
            raise SessionEnded(f"the replica at {self._socket} does not answer") from None
        except SessionEnded:
            raise
        except Exception as error:
            # after any error the workload connects again
            log.exception("the session with the replica")
            raise SessionEnded(f"{type(error).__name__}: {error}") from error
        finally:
            if session:
                await session.close()

    async def _open(self, session: Session) -> bool:
        """Sends Hello and receives Welcome. False if the workload is stopped meanwhile."""
        hello = pb.Hello()
        hello.CopyFrom(self._hello)
        hello.role = self._told_role = self._role
        for record in self._attempts.journal.open():
            # the first message has the outcomes
            if record.outcome:
                session.told.append(record.attempt)
            outcome = record.outcome and record.outcome.message()
            hello.known.append(pb.Known(attempt=record.attempt, outcome=outcome))
        until = self._loop.time() + ANSWER_WITHIN
        if self._settles() and self._settles_until is not None:
            until = self._settles_until
        opening = asyncio.ensure_future(session.open(hello))
        opening.add_done_callback(lambda _: self._wake.set())
        try:
            while not opening.done():
                if self._stopping and not self._settles():
                    return False
                if self._loop.time() >= until:
                    raise asyncio.TimeoutError
                await self._woken(until)
            welcome = opening.result()
        finally:
            opening.cancel()
        for problem in welcome.problems:
            log.warning("odd about the registration: %s", told_problem(problem))
        for attempt in welcome.acknowledged:
            self._attempts.acknowledge(attempt)
        self._is_accepted = True
        problems = tuple(told_problem(problem) for problem in welcome.problems)
        self._stand(Standing("connected", vm=welcome.vm, problems=problems))
        return True

    async def _converse(self, session: Session) -> None:
        beat_at = self._loop.time() + session.lease / 3
        while True:
            await session.report()
            until = min(beat_at, session.progress_at) if self._attempts.has_something_to_say() else beat_at
            await self._woken(min(until, self._settles_until) if self._settles_until else until)
            if session.reading.done():
                session.reading.result()
            if self._stopping and not self._settles():
                await session.report()
                unregister = self._unregister
                await session.part(unregister)
                self._stays = None if unregister else "it was stopped before; make a new Workload, and let it leave"
                return
            now = self._loop.time()
            if self._role != self._told_role:
                self._told_role = self._role
                await session.say(heartbeat=pb.Heartbeat(role=self._told_role))
            if now >= beat_at:
                if now - session.heard_at >= session.lease:
                    raise SessionEnded("the replica has been silent for the whole lease")
                # outcomes without an acknowledgement are sent again
                del session.told[:REPEATED]
                await session.say(heartbeat=pb.Heartbeat())
                beat_at = now + session.lease / 3
