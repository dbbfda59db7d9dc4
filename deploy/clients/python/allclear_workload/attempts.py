"""The received attempts and their execution: order, journal, handler, deadline, end."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import os
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

from .hook import Handler, Hook
from .journal import Act, File, Journal, Line, ended
from .messages import Message, Phase, StepMessage, pb
from .outcome import CANCELLED, DONE, NOT_APPLICABLE, NOT_DONE, Outcome, blocked, failed, unknown
from .step import Controls, Step

# The time between the cancellation and the abort of a handler, in seconds. The replica waits 5 s for the outcome.
GRACE = 4

log = logging.getLogger(__package__)


class Attempts:
    """The attempts of one workload, over all sessions. `on_news` is called when there is something to send."""

    def __init__(self, hooks: Sequence[Hook], path: str | os.PathLike[str] | None, on_news: Callable[[], None]) -> None:
        self.running: dict[str, Controls] = {}
        self._hooks, self._on_news = hooks, on_news
        self._file = File(path) if path is not None else None
        self.journal = self._file.journal if self._file else Journal()
        self._turn = asyncio.Lock()
        self._unwritten: list[Line] = []
        self._ended = asyncio.Event()
        # keeps the tasks from being collected while running
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_over = False
        # the number of ended attempts whose outcomes are being written
        self._ending = 0
        # false once the workload stops
        self.takes_new = True

    def receive(self, step: StepMessage, act: Act) -> Outcome | None:
        """An outcome if the step is answered without a record in the journal."""
        if not self.takes_new and step.attempt not in self.journal.records:
            return blocked("the workload is stopping")
        received = self.journal.receive(step, act)
        if isinstance(received, Outcome):
            return received
        if received == "begin":
            controls = Controls(step.time_left_ms, self._on_news)
            self.running[step.attempt] = controls
            self._spawn(self._carry_out(step, act, controls))
        return None

    def acknowledge(self, attempt: str) -> None:
        if self.journal.acknowledge(attempt):
            self._unwritten.append({"acknowledged": {"attempt": attempt}})
            self._spawn(self.flush())

    def due(self, told: list[str], running: bool) -> list[Message]:
        """The pending messages to the replica: ends that are not in `told`, and reports of `running` handlers."""
        due: list[Message] = []
        for attempt, controls in self.running.items() if running else ():
            if controls.progress:
                due.append(pb.Report(attempt=attempt, progress=controls.progress))
            if controls.needs_ms is not None:
                due.append(pb.Report(attempt=attempt, extension=pb.Extension(needs_ms=controls.needs_ms)))
            controls.progress = controls.needs_ms = None
        for record in self.journal.open():
            if record.outcome and record.attempt not in told:
                told.append(record.attempt)
                due.append(pb.Report(attempt=record.attempt, outcome=record.outcome.message()))
        return due

    def has_unsettled(self) -> bool:
        """Whether the replica has yet to acknowledge the outcome of an ended attempt."""
        return self._ending > 0 or any(record.outcome for record in self.journal.open())

    def has_something_to_say(self) -> bool:
        return any(controls.progress or controls.needs_ms is not None for controls in self.running.values())

    async def flush(self) -> None:
        """Writes acknowledgements to the journal."""
        try:
            await self._write([])
        except OSError as error:
            # the outcome is sent and acknowledged again
            log.warning("the journal cannot be written: %s", error)

    async def idle(self, within: float) -> None:
        """Returns when no handler runs, at the latest after this many seconds."""
        loop = asyncio.get_running_loop()
        until = loop.time() + within
        while self.running and loop.time() < until:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._ended.wait(), until - loop.time())

    def close(self) -> None:
        """Closes the journal as soon as nothing runs any more."""
        self._is_over = True
        self._let_go()

    async def _carry_out(self, step: StepMessage, act: Act, controls: Controls) -> None:
        attempt = step.attempt
        handler = await self._prepare(step, act, controls)
        if isinstance(handler, Outcome):
            await self._end(attempt, handler, is_begun=False)
            return
        try:
            await self._write([self.journal.records[attempt].begun()])
        except OSError as error:
            # nothing begins without a record
            outcome = blocked(f"the workload cannot write its journal: {error}")
            await self._end(attempt, outcome, is_begun=False)
            return
        outcome = await _run(handler, Step(step, self.journal.standing(attempt), controls), controls)
        await self._end(attempt, outcome, is_begun=True)

    async def _prepare(self, step: StepMessage, act: Act, controls: Controls) -> Handler | Outcome:
        """The handler to call, or the outcome without a call."""
        of_phase = [hook for hook in self._hooks if hook.phase == step.phase]
        if step.ordinal >= len(of_phase):
            return failed("this workload has no such hook; was it registered by another version?")
        hook = of_phase[step.ordinal]
        await _first(controls.cancel.wait(), controls.time_is_up(), self._turn_of(step.attempt))
        if controls.cancel.is_set():
            return CANCELLED
        if controls.time_left() <= 0:
            why = "its time was up before it could begin"
            return unknown(why) if act == "confirm" else blocked(why)
        standing = self.journal.standing(step.attempt)
        if act == "run" and standing == DONE:
            return DONE
        if act == "confirm" and hook.confirm is None:
            return _from_the_journal(standing)
        if act == "dry_run" and hook.phase == Phase.CHECK:
            # a check changes nothing
            return hook.dry_run or hook.run
        handler: Handler | None = getattr(hook, act)
        return handler or NOT_APPLICABLE

    async def _turn_of(self, attempt: str) -> None:
        while not self.journal.is_turn_of(attempt):
            await self._ended.wait()

    async def _end(self, attempt: str, outcome: Outcome, *, is_begun: bool) -> None:
        self._ending += 1
        begun = [] if is_begun else [self.journal.records[attempt].begun()]
        try:
            await self._write([*begun, ended(attempt, outcome)])
        except OSError as error:
            # the outcome is sent regardless; the replica keeps the outcome
            log.warning("the end of attempt %s cannot be written into the journal: %s", attempt, error)
        self.journal.end(attempt, outcome)
        del self.running[attempt]
        self._ending -= 1
        self._ended.set()
        self._ended = asyncio.Event()
        self._on_news()

    async def _write(self, lines: list[Line]) -> None:
        async with self._turn:
            lines = [*lines, *self._unwritten]
            self._unwritten = []
            if self._file and lines:
                whole = self.journal.lines()
                await asyncio.to_thread(self._file.append, lines, lambda: whole)

    def _spawn(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._left)

    def _left(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._let_go()

    def _let_go(self) -> None:
        if self._is_over and not self._tasks and self._file:
            self._file.close()


def _from_the_journal(standing: Outcome | None) -> Outcome:
    """The answer to confirm for a hook without a confirm handler."""
    if standing in (DONE, NOT_DONE):
        return standing
    if standing:
        return unknown("it was begun, and the journal does not say that it was done")
    return unknown("the journal does not know it")


async def _run(handler: Handler, step: Step, controls: Controls) -> Outcome:
    task = asyncio.ensure_future(_told(handler, step))
    await _first(asyncio.shield(task), controls.cancel.wait(), controls.time_is_up())
    if not task.done():
        controls.cancel.set()
        await asyncio.wait([task], timeout=GRACE)
    if not task.done():
        task.cancel()
        return unknown(f"it was cancelled, and did not end within {GRACE} s")
    if task.cancelled():
        return unknown("the hook's code did not come to its end: its task was cancelled")
    return task.result()


async def _told(handler: Handler, step: Step) -> Outcome:
    try:
        awaitable = handler(step)
        if not inspect.isawaitable(awaitable):
            return unknown(f"the hook's code is not async: it returned {awaitable!r}; define it with `async def`")
        answer = await awaitable
    except Exception as error:
        log.exception("attempt %s", step.attempt)
        return failed(str(error) or type(error).__name__)
    if answer is None:
        # A handler that gave up because of a cancellation often says nothing.
        why = "it was cancelled, and the handler ended without an Outcome"
        return unknown(why) if step.is_cancelled else DONE
    return answer if isinstance(answer, Outcome) else unknown(f"the hook's code answered {answer!r}, not an Outcome")


async def _first(*coroutines: Awaitable[object]) -> None:
    """Waits for the first end. The rest is cancelled."""
    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
