"""The input of a handler, and its messages to the replica."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from .arguments import duration
from .messages import Event, Intent, Message, Mode, Peer, Phase, StepMessage, pb
from .outcome import Outcome, cut

# The upper limit of a time left, in seconds.
LONGEST = 30 * 24 * 3600


class Controls:
    """The library's side of a running step."""

    def __init__(self, time_left_ms: float, on_news: Callable[[], None]) -> None:
        self.loop = asyncio.get_running_loop()
        self.cancel = asyncio.Event()
        # reports of the handler that are not sent yet
        self.progress: Message | None = None
        self.needs_ms: int | None = None
        self._on_news = on_news
        self._changed = asyncio.Event()
        self.set_time_left(time_left_ms)

    def set_time_left(self, ms: float) -> None:
        # by the event loop's clock, in seconds
        self.deadline = self.loop.time() + min(ms / 1000, LONGEST)
        self._changed.set()

    def time_left(self) -> float:
        return max(0.0, self.deadline - self.loop.time())

    async def time_is_up(self) -> None:
        while self.time_left() > 0:
            self._changed.clear()
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._changed.wait(), self.time_left())

    def say(self, progress: Message | None = None, needs_ms: int | None = None) -> None:
        """May be called from another thread."""

        def say() -> None:
            if progress is not None:
                self.progress = self.progress or pb.Progress()
                self.progress.MergeFrom(progress)
            if needs_ms is not None:
                self.needs_ms = needs_ms
            self._on_news()

        self.loop.call_soon_threadsafe(say)


class Step:
    """One attempt at one hook.

    attempt: unique.
    id: equal for every attempt at the same hook for the same event: the key for the record of an effect.
    fence: term and number. A fence lower than a known fence for the same event and VM is refused already; pass the
        fence on to systems that can refuse too.
    intent, mode, phase: the kind of the attempt.
    event: id, type, source, resources, description and more, as in `allclear.workload.v1`.
    vm: the affected VM; another VM than the workload's if the workload replaces an unavailable member.
    group, members: the members of the group, with this member: vm, role, connected, affected.
    avoid: VMs to which the primary must not move.
    prefer: preferred VMs for the primary, the best VM first.
    traceparent: the trace of the attempt, by W3C Trace Context; None without traces.
    journaled: the journal's outcome of an earlier attempt at this step; None without an earlier attempt.
    """

    def __init__(self, step: StepMessage, journaled: Outcome | None, controls: Controls) -> None:
        self.attempt, self.id = step.attempt, step.step
        self.fence = (step.fence.term, step.fence.sequence)
        self.intent, self.mode, self.phase = Intent(step.intent), Mode(step.mode), Phase(step.phase)
        self.event: Event = step.event
        self.vm = step.vm
        self.group = step.group if step.HasField("group") else None
        self.members: list[Peer] = list(step.members)
        self.avoid, self.prefer = list(step.avoid), list(step.prefer)
        self.traceparent = step.traceparent if step.HasField("traceparent") else None
        self.journaled = journaled
        self._controls = controls

    @property
    def time_left(self) -> float:
        """In seconds. At zero the attempt is cancelled."""
        return self._controls.time_left()

    def progress(self, text: object) -> None:
        """Reports progress, for people. Of several reports within a second, the last is sent."""
        self._controls.say(progress=pb.Progress(text=cut(text)))

    def expect(self, seconds: float) -> None:
        """Reports the expected time from now to the end."""
        self._controls.say(progress=pb.Progress(expected_end_in_ms=_millis("expect", seconds)))

    def more_time(self, seconds: float) -> None:
        """Requests this much time from now on, within a second. Granted up to the end of the preparation, and after the
        event up to 10 min. The only answer is `time_left`: read it again, a second or two later."""
        self._controls.say(needs_ms=_millis("more_time", seconds))

    async def cancelled(self) -> None:
        """Returns when the attempt is cancelled or its time is over. A handler that has not ended 4 s later is
        cancelled as a task, and the outcome is unknown."""
        await self._controls.cancel.wait()

    @property
    def is_cancelled(self) -> bool:
        """Whether `cancelled()` has returned."""
        return self._controls.cancel.is_set()


def _millis(argument: str, seconds: float) -> int | None:
    """The milliseconds of a handler's estimate: an estimate beyond the bounds counts as the bound."""
    if isinstance(seconds, (int, float)):
        seconds = max(0, min(seconds, LONGEST))
    return duration(argument, seconds)
