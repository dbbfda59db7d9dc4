"""The stream to the replica: dialled until the workload is stopped, kept alive, and resumed where it was."""

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

from .attempts import Attempts
from .hook import Hook
from .messages import Message, OnAbsent, Role, millis, pb
from .outcome import cut
from .session import ANSWER_WITHIN, Session, SessionEnded, Standing

if TYPE_CHECKING:
    # Python's own is of 3.11
    from typing_extensions import Self

__all__ = ["Standing", "StillRegistered", "Workload"]

# Lengths of time are seconds.
FIRST_PAUSE, LONGEST_PAUSE, LATEST_DIAL = 0.1, 5, 30
# Ends that are told again with a heartbeat: a replica takes no more than 50 messages a second.
REPEATED = 10

log = logging.getLogger(__package__)


class StillRegistered(Exception):
    """The registration was not taken back, and with it stays that events wait for this workload. The text says why."""


class Workload:
    """A workload that takes part as long as it is entered: `async with Workload(...):`.

    name: unique on its VM. socket: where the replica waits for workloads.
    hooks: those of one phase run in the order in which they are given.
    group: the workloads that are replicas of each other.
    lease: how long it counts as connected after its last message, in seconds; 10 unless it is said.
    retain: how long the registration is kept without a session; until it is taken back, unless it is said.
    on_absent: what happens to its hooks while it is not there.
    after: workloads, on whichever VM, that are prepared before this one.
    journal: where it is remembered what was begun and how it ended; in memory alone, unless it is said. One for each
        workload.
    on_standing: called with a Standing whenever it changes.
    """

    def __init__(
        self, name: str, socket: str | os.PathLike[str], hooks: Iterable[Hook] = (), *, group: str | None = None,
        role: Role = Role.UNSPECIFIED, lease: float | None = None, retain: float | None = None,
        on_absent: OnAbsent = OnAbsent.UNSPECIFIED, after: Iterable[str] = (),
        journal: str | os.PathLike[str] | None = None, on_standing: Callable[[Standing], object] | None = None,
    ) -> None:  # fmt: skip
        self._socket, self._hooks, self._path, self._on_standing = socket, tuple(hooks), journal, on_standing
        self._hello: Message = pb.Hello(
            versions=[1], workload=name, group=group, boot=secrets.token_hex(8), lease_ms=millis(lease),
            retain_ms=millis(retain), on_absent=on_absent, after=after, hooks=[hook.message for hook in self._hooks],
        )  # fmt: skip
        self._role = self._told_role = role
        self._stopping = self._unregister = False
        self._stays: str | None = "it was stopped before there was a session"
        # the last that `on_standing` was called with
        self.standing = Standing("dialling", why="not dialled yet")

    async def __aenter__(self) -> Self:
        """Reads the journal (JournalError) and begins to dial, in the background."""
        self._loop = asyncio.get_running_loop()
        # something has happened that the session has to look at
        self._wake = asyncio.Event()
        self._attempts = Attempts(self._hooks, self._path, self._wake.set)
        self._session = asyncio.create_task(self._dial())
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    @property
    def role(self) -> Role:
        """What it is now. Set it whenever it changes, also from another thread, but not before the workload is entered:
        it is told at once, and a failover runs on the primary."""
        return self._role

    @role.setter
    def role(self, role: Role) -> None:
        self._role = role
        self._loop.call_soon_threadsafe(self._wake.set)

    async def stop(self) -> None:
        """Ends the session on purpose; the registration stays."""
        self._stopping = True
        self._wake.set()
        await asyncio.wait([self._session])
        await self._attempts.flush()
        self._attempts.close()

    async def leave(self) -> None:
        """Ends the session and takes the registration back, which the replica refuses (StillRegistered) while an event
        has begun to prepare this workload and has yet to put it back. The session has ended all the same."""
        self._unregister = True
        await self.stop()
        if self._stays:
            raise StillRegistered(f"the registration was not taken back: {self._stays}")

    def _stand(self, standing: Standing) -> None:
        self.standing = standing
        if self._on_standing:
            self._on_standing(standing)

    async def _dial(self) -> None:
        failures = 0
        while not self._stopping:
            try:
                await self._one_session()
            except SessionEnded as end:
                if self.standing.word == "connected":
                    failures = 0
                longest = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(failures, 16))
                failures += 1
                self._stays = str(end)
                log.info("no session with the replica: %s", end)
                self._stand(end.standing)
                await self._pause(max(random.uniform(longest / 2, longest), min(end.after, LATEST_DIAL)))
        self._stand(Standing("stopped"))

    async def _pause(self, seconds: float) -> None:
        until = self._loop.time() + seconds
        while not self._stopping and self._loop.time() < until:
            await self._woken(until)

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
            is_refused = error.code() in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.PERMISSION_DENIED)
            raise SessionEnded(cut(error.details()), "refused" if is_refused else "dialling") from None
        except asyncio.TimeoutError:
            raise SessionEnded(f"the replica at {self._socket} does not answer") from None
        except SessionEnded:
            raise
        except Exception as error:
            # whatever it is, the workload dials again
            log.exception("the session with the replica")
            raise SessionEnded(f"{type(error).__name__}: {error}") from error
        finally:
            if session:
                await session.close()

    async def _open(self, session: Session) -> bool:
        """Says hello and hears the welcome. False when the workload is stopped meanwhile."""
        hello = pb.Hello()
        hello.CopyFrom(self._hello)
        hello.role = self._told_role = self._role
        for record in self._attempts.journal.open():
            # their ends are told in the first message
            if record.outcome:
                session.told.append(record.attempt)
            outcome = record.outcome and record.outcome.message()
            hello.known.append(pb.Known(attempt=record.attempt, outcome=outcome))
        until = self._loop.time() + ANSWER_WITHIN
        opening = asyncio.ensure_future(session.open(hello))
        opening.add_done_callback(lambda _: self._wake.set())
        try:
            while not opening.done():
                if self._stopping:
                    return False
                if self._loop.time() >= until:
                    raise asyncio.TimeoutError
                await self._woken(until)
            welcome = opening.result()
        finally:
            opening.cancel()
        for problem in welcome.problems:
            log.warning("odd about the registration: %s %s", problem.place, problem.message)
        for attempt in welcome.acknowledged:
            self._attempts.acknowledge(attempt)
        problems = tuple(problem.message for problem in welcome.problems)
        self._stand(Standing("connected", vm=welcome.vm, problems=problems))
        return True

    async def _converse(self, session: Session) -> None:
        beat_at = self._loop.time() + session.lease / 3
        while True:
            await session.report()
            await self._woken(min(beat_at, session.progress_at) if self._attempts.has_something_to_say() else beat_at)
            if session.reading.done():
                session.reading.result()
            if self._stopping:
                await session.report()
                await session.part(self._unregister)
                self._stays = None
                return
            now = self._loop.time()
            if self._role != self._told_role:
                self._told_role = self._role
                await session.say(heartbeat=pb.Heartbeat(role=self._told_role))
            if now >= beat_at:
                if now - session.heard_at >= session.lease:
                    raise SessionEnded("the replica has been silent for the whole lease")
                # what is not acknowledged by now is told once more
                del session.told[:REPEATED]
                await session.say(heartbeat=pb.Heartbeat())
                beat_at = now + session.lease / 3
