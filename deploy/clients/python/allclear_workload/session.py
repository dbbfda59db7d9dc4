"""One session with the replica: messages in both directions, and the end of the session."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import grpc

from .attempts import Attempts
from .journal import act_of
from .messages import Message, StepMessage, pb
from .outcome import Outcome, cut, failed

METHOD = "/allclear.workload.v1.Workloads/Session"
# Durations are seconds. A registration is answered when the log has the registration, or after 10 s.
ANSWER_WITHIN = 15.0
# A goodbye without a request has no answer, so the wait is short.
PARTS_WITHIN = 1.0
PROGRESS_EVERY = 1.0
LONGEST_ID = 512
OPTIONS = [
    # larger than every message of a replica
    ("grpc.max_receive_message_length", 1024 * 1024),
    # each connection is new, and the pause between two connections is decided here
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_http_proxy", 0),
    # a path is no valid name for an HTTP server
    ("grpc.default_authority", "localhost"),
]

log = logging.getLogger(__package__)


@dataclass(frozen=True)
class Standing:
    """The state of a workload's connection to the replica.

    word: dialling, refused, connected or stopped.
    why: the reason of `dialling`, or of the refusal with `refused`.
    vm: the replica's name, which is the VM's name, with `connected`.
    problems: the replica's warnings about the registration, each after its place; with `connected`.
    """

    word: Literal["dialling", "refused", "connected", "stopped"]
    why: str = ""
    vm: str = ""
    problems: tuple[str, ...] = ()


class SessionEnded(Exception):
    """The session is over, or did not begin. The next connection begins after at least `after` seconds."""

    def __init__(self, why: str, word: Literal["dialling", "refused"] = "dialling", after: float = 0.0) -> None:
        super().__init__(why)
        self.standing, self.after = Standing(word, why=why), after


class _CleanEnd(SessionEnded):
    """The replica has ended the session without a reason."""


class Session:
    """The messages of a session. `open` comes first, and `close` last. `wake` is called after a received message."""

    def __init__(self, socket: str | os.PathLike[str], attempts: Attempts, wake: Callable[[], None]) -> None:
        self._channel = grpc.aio.insecure_channel(f"unix:{socket}", options=OPTIONS)
        self._attempts, self._wake = attempts, wake
        self._loop = asyncio.get_running_loop()
        self._call: Any = self._channel.stream_stream(
            METHOD, request_serializer=pb.FromWorkload.SerializeToString, response_deserializer=pb.ToWorkload.FromString
        )()
        # attempts whose end was sent in this session and need not be sent again yet, the earliest first
        self.told: list[str] = []
        self._refused: list[tuple[str, Outcome]] = []
        self.lease = ANSWER_WITHIN
        self.heard_at = self.progress_at = self._loop.time()
        # ends with the session, with the reason; nothing is read before the session is open
        self.reading: asyncio.Future[None] = self._loop.create_future()

    async def open(self, hello: Message) -> Any:
        """The replica's welcome."""
        await self._call.write(pb.FromWorkload(hello=hello))
        first = await self._read()
        if first.WhichOneof("message") == "go_away":
            raise _away(first.go_away)
        if first.WhichOneof("message") != "welcome":
            raise SessionEnded("the replica did not begin with a welcome")
        self.lease = min(300, max(1, first.welcome.lease_ms / 1000))
        self.heard_at = self._loop.time()
        self.reading = asyncio.ensure_future(self._hear())
        self.reading.add_done_callback(lambda _: self._wake())
        return first.welcome

    async def say(self, **message: Message) -> None:
        try:
            await asyncio.wait_for(self._call.write(pb.FromWorkload(**message)), self.lease)
        except asyncio.InvalidStateError:
            # the call is over; reading raises the reason
            await self.reading
            raise SessionEnded("the replica ended the session") from None

    async def report(self) -> None:
        """Sends the pending reports of attempts."""
        for attempt, outcome in self._refused:
            await self.say(report=pb.Report(attempt=attempt, outcome=outcome.message()))
        self._refused = []
        now = self._loop.time()
        for report in self._attempts.due(self.told, now >= self.progress_at):
            if not report.HasField("outcome"):
                self.progress_at = now + PROGRESS_EVERY
            await self.say(report=report)

    async def part(self, unregister: bool) -> None:
        """Sends the goodbye, and waits until the replica has received the goodbye, or has refused the request. Only a
        clean end is a consent: a replica that stops sends the workload away instead."""
        await self.say(goodbye=pb.Goodbye(unregister=unregister))
        await self._call.done_writing()
        await asyncio.wait([self.reading], timeout=ANSWER_WITHIN if unregister else PARTS_WITHIN)
        if not unregister:
            return
        if not self.reading.done():
            raise asyncio.TimeoutError
        error = self.reading.exception()
        if error and not isinstance(error, _CleanEnd):
            raise error

    async def close(self) -> None:
        """Does not wait for messages under way: the session has said goodbye, or is lost."""
        self.reading.cancel()
        self._call.cancel()
        await self._channel.close()

    async def _read(self) -> Any:
        message = await self._call.read()
        if message is grpc.aio.EOF:
            if await self._call.code() != grpc.StatusCode.OK:
                raise grpc.aio.AioRpcError(
                    await self._call.code(), await self._call.initial_metadata(),
                    await self._call.trailing_metadata(), await self._call.details(),
                )  # fmt: skip
            raise _CleanEnd("the replica ended the session")
        return message

    async def _hear(self) -> None:
        while True:
            message = await self._read()
            self.heard_at = self._loop.time()
            what = message.WhichOneof("message")
            if what == "step":
                self._step(message.step)
            elif what == "cancel" and message.cancel.attempt in self._attempts.running:
                log.info("attempt %s is cancelled: %s", message.cancel.attempt, message.cancel.reason)
                self._attempts.running[message.cancel.attempt].cancel.set()
            elif what == "deadline" and message.deadline.attempt in self._attempts.running:
                self._attempts.running[message.deadline.attempt].set_time_left(message.deadline.time_left_ms)
            elif what == "acknowledged":
                self._attempts.acknowledge(message.acknowledged.attempt)
                self._wake()
            elif what == "go_away":
                raise _away(message.go_away)
            elif what == "problem":
                log.warning("the replica sees a problem: %s", told_problem(message.problem))

    def _step(self, step: StepMessage) -> None:
        if not all(0 < len(name) <= LONGEST_ID for name in (step.attempt, step.step)):
            log.warning("the replica sent a step without a proper id")
            return
        act = act_of(step)
        outcome: Outcome | None
        if act is None:
            outcome = failed("this workload does not know what the replica asks for; is the replica newer?")
        else:
            outcome = self._attempts.receive(step, act)
        if outcome:
            self._refused.append((step.attempt, outcome))
        if step.attempt in self.told:
            self.told.remove(step.attempt)
        self._wake()


def told_problem(problem: Any) -> str:
    """The text of a problem, after its place."""
    return f"{problem.place}: {problem.message}" if problem.place else str(problem.message)


def _away(away: Any) -> SessionEnded:
    return SessionEnded(cut(away.reason), after=away.after_ms / 1000)
