"""The stream to the replica: dialled until the workload is stopped, kept alive, and resumed where it was."""

import asyncio
import logging
import random
import secrets
from dataclasses import dataclass

import grpc

from .attempts import Attempts
from .hook import millis
from .journal import act_of
from .messages import OnAbsent, Role, pb
from .outcome import cut, failed

METHOD = "/allclear.workload.v1.Workloads/Session"
# Lengths of time are seconds.
# A registration is answered when it is in the log, or after 10 s.
ANSWER_WITHIN = 15
# A goodbye that asks for nothing is not answered, and need not be waited for.
PARTS_WITHIN = 1
# Ends that are told again with a heartbeat: a replica takes no more than 50 messages a second.
REPEATED = 10
FIRST_PAUSE, LONGEST_PAUSE, LATEST_DIAL = 0.1, 5, 30
PROGRESS_EVERY = 1
LONGEST_ID = 512
OPTIONS = [
    # nothing that a replica says is larger
    ("grpc.max_receive_message_length", 1024 * 1024),
    # each dial is a new one, and how long to wait between two is decided here
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_http_proxy", 0),
    # a path is no name that an HTTP server takes
    ("grpc.default_authority", "localhost"),
]

log = logging.getLogger(__package__)


@dataclass(frozen=True)
class Standing:
    """`dialling`, with the reason; `refused`, with what the replica does not understand; `connected`, with the VM, and
    with what the replica finds odd about the registration; or `stopped`."""

    word: str
    why: str = ""
    vm: str = ""
    problems: tuple = ()


class StillRegistered(Exception):
    """The registration was not taken back, and with it stays that events wait for this workload."""


class _End(Exception):
    def __init__(self, why, word="dialling", after=0.0):
        super().__init__(why)
        self.standing, self.after = Standing(word, why=why), after


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
        self, name, socket, hooks=(), *, group=None, role=Role.UNSPECIFIED, lease=None, retain=None,
        on_absent=OnAbsent.UNSPECIFIED, after=(), journal=None, on_standing=None,
    ):  # fmt: skip
        self._socket, self._hooks, self._path, self._on_standing = socket, tuple(hooks), journal, on_standing
        self._hello = pb.Hello(
            versions=[1], workload=name, group=group, boot=secrets.token_hex(8), lease_ms=millis(lease),
            retain_ms=millis(retain), on_absent=on_absent, after=after, hooks=[hook.message for hook in self._hooks],
        )  # fmt: skip
        self._role = self._told_role = role
        self._stopping = self._unregister = False
        self._stays = "it was stopped before there was a session"
        self.standing = Standing("dialling", why="not dialled yet")

    async def __aenter__(self):
        """Reads the journal (JournalError) and begins to dial, in the background."""
        self._loop = asyncio.get_running_loop()
        # something has happened that the session has to look at
        self._wake = asyncio.Event()
        self._attempts = Attempts(self._hooks, self._path, self._wake.set)
        self._session = asyncio.create_task(self._dial())
        return self

    async def __aexit__(self, *_):
        await self.stop()

    @property
    def role(self):
        return self._role

    @role.setter
    def role(self, role):
        """Says at once what it is now; also from another thread. Say it whenever it changes: a failover runs on the
        primary."""
        self._role = role
        self._loop.call_soon_threadsafe(self._wake.set)

    async def stop(self):
        """Ends the session on purpose; the registration stays."""
        self._stopping = True
        self._wake.set()
        await asyncio.wait([self._session])
        await self._attempts.flush()
        self._attempts.close()

    async def leave(self):
        """Ends the session and takes the registration back, which the replica refuses (StillRegistered) while an event
        has begun to prepare this workload and has yet to put it back. The session has ended all the same."""
        self._unregister = True
        await self.stop()
        if self._stays:
            raise StillRegistered(f"the registration was not taken back: {self._stays}")

    def _stand(self, standing):
        self.standing = standing
        if self._on_standing:
            self._on_standing(standing)

    async def _dial(self):
        failures = 0
        while not self._stopping:
            try:
                await self._one_session()
            except _End as end:
                if self.standing.word == "connected":
                    failures = 0
                longest = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(failures, 16))
                failures += 1
                self._stays = str(end)
                log.info("no session with the replica: %s", end)
                self._stand(end.standing)
                await self._pause(max(random.uniform(longest / 2, longest), min(end.after, LATEST_DIAL)))
        self._stand(Standing("stopped"))

    async def _pause(self, seconds):
        until = self._loop.time() + seconds
        while not self._stopping and self._loop.time() < until:
            await self._woken(until)

    async def _woken(self, until):
        try:
            await asyncio.wait_for(self._wake.wait(), max(0, until - self._loop.time()))
        except asyncio.TimeoutError:
            pass
        self._wake.clear()

    async def _one_session(self):
        channel = grpc.aio.insecure_channel(f"unix:{self._socket}", options=OPTIONS)
        method = channel.stream_stream(
            METHOD, request_serializer=pb.FromWorkload.SerializeToString, response_deserializer=pb.ToWorkload.FromString
        )
        talk = None
        try:
            talk = _Talk(method(), self._attempts, self._wake.set)
            if await self._open(talk):
                await self._talk(talk)
        except grpc.aio.AioRpcError as error:
            is_refused = error.code() == grpc.StatusCode.INVALID_ARGUMENT
            raise _End(cut(error.details()), "refused" if is_refused else "dialling") from None
        except asyncio.TimeoutError:
            raise _End(f"the replica at {self._socket} does not answer") from None
        except _End:
            raise
        except Exception as error:
            # whatever it is, the workload dials again
            log.exception("the session with the replica")
            raise _End(f"{type(error).__name__}: {error}") from error
        finally:
            if talk:
                talk.close()
            # what was under way is not waited for: it has been said goodbye to, or is lost
            await channel.close()

    async def _open(self, talk):
        """Says hello and hears the welcome. False when the workload is stopped meanwhile."""
        hello = pb.Hello()
        hello.CopyFrom(self._hello)
        hello.role = self._told_role = self._role
        for record in self._attempts.journal.open():
            # their ends are told in the first message
            if record.outcome:
                talk.told.append(record.attempt)
            outcome = record.outcome and record.outcome.message()
            hello.known.append(pb.Known(attempt=record.attempt, outcome=outcome))
        until = self._loop.time() + ANSWER_WITHIN
        opening = asyncio.ensure_future(talk.open(hello))
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

    async def _talk(self, talk):
        beat_at = self._loop.time() + talk.lease / 3
        while True:
            await talk.report()
            await self._woken(min(beat_at, talk.progress_at) if self._attempts.has_something_to_say() else beat_at)
            if talk.reading.done():
                talk.reading.result()
            if self._stopping:
                await talk.report()
                await talk.part(self._unregister)
                self._stays = None
                return
            now = self._loop.time()
            if self._role != self._told_role:
                self._told_role = self._role
                await talk.say(heartbeat=pb.Heartbeat(role=self._told_role))
            if now >= beat_at:
                if now - talk.heard_at >= talk.lease:
                    raise _End("the replica has been silent for the whole lease")
                # what is not acknowledged by now is told once more
                del talk.told[:REPEATED]
                await talk.say(heartbeat=pb.Heartbeat())
                beat_at = now + talk.lease / 3


class _Talk:
    """What is said and heard in one session."""

    def __init__(self, call, attempts, wake):
        self._call, self._attempts, self._wake = call, attempts, wake
        self._loop = asyncio.get_running_loop()
        # attempts whose end was told in this session and need not be told again yet, the earliest first
        self.told = []
        self._refused = []
        self.lease = ANSWER_WITHIN
        self.heard_at = self.progress_at = self._loop.time()
        self.reading = None

    async def open(self, hello):
        await self._call.write(pb.FromWorkload(hello=hello))
        first = await self._read()
        if first.WhichOneof("message") == "go_away":
            raise _away(first.go_away)
        if first.WhichOneof("message") != "welcome":
            raise _End("the replica did not begin with a welcome")
        self.lease = min(300, max(1, first.welcome.lease_ms / 1000))
        self.heard_at = self._loop.time()
        self.reading = asyncio.ensure_future(self._hear())
        self.reading.add_done_callback(lambda _: self._wake())
        return first.welcome

    async def say(self, **message):
        try:
            await asyncio.wait_for(self._call.write(pb.FromWorkload(**message)), self.lease)
        except asyncio.InvalidStateError:
            # the call is over; reading says why
            await self.reading
            raise _End("the replica ended the session") from None

    async def report(self):
        for attempt, outcome in self._refused:
            await self.say(report=pb.Report(attempt=attempt, outcome=outcome.message()))
        self._refused = []
        now = self._loop.time()
        for report in self._attempts.due(self.told, now >= self.progress_at):
            if not report.HasField("outcome"):
                self.progress_at = now + PROGRESS_EVERY
            await self.say(report=report)

    async def part(self, unregister):
        """Says goodbye, and waits until the replica has heard it, or has answered what it does not grant."""
        await self.say(goodbye=pb.Goodbye(unregister=unregister))
        await self._call.done_writing()
        await asyncio.wait([self.reading], timeout=ANSWER_WITHIN if unregister else PARTS_WITHIN)
        if unregister and not self.reading.done():
            raise asyncio.TimeoutError
        if unregister and isinstance(self.reading.exception(), grpc.aio.AioRpcError):
            raise self.reading.exception()

    def close(self):
        if self.reading:
            self.reading.cancel()
        self._call.cancel()

    async def _read(self):
        message = await self._call.read()
        if message is grpc.aio.EOF:
            if await self._call.code() != grpc.StatusCode.OK:
                raise grpc.aio.AioRpcError(
                    await self._call.code(), await self._call.initial_metadata(),
                    await self._call.trailing_metadata(), await self._call.details(),
                )  # fmt: skip
            raise _End("the replica ended the session")
        return message

    async def _hear(self):
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
            elif what == "go_away":
                raise _away(message.go_away)
            elif what == "problem":
                log.warning("the replica sees a problem: %s", message.problem.message)

    def _step(self, step):
        if not all(0 < len(name) <= LONGEST_ID for name in (step.attempt, step.step)):
            log.warning("the replica sent a step without a proper id")
            return
        act = act_of(step)
        if act is None:
            outcome = failed("this workload does not know what the replica asks for; is the replica newer?")
        else:
            outcome = self._attempts.receive(step, act)
        if outcome:
            self._refused.append((step.attempt, outcome))
        if step.attempt in self.told:
            self.told.remove(step.attempt)
        self._wake()


def _away(away):
    return _End(cut(away.reason), after=away.after_ms / 1000)
