"""What a handler is given: what it is about, and how to speak to the replica meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from .messages import Event, Intent, Message, Mode, Peer, Phase, StepMessage, millis, pb
from .outcome import Outcome, cut

# A time left is never taken for longer. In seconds.
LONGEST = 30 * 24 * 3600


class Controls:
    """The other end of a step that runs."""

    def __init__(self, time_left_ms: float, on_news: Callable[[], None]) -> None:
        self.loop = asyncio.get_running_loop()
        self.cancel = asyncio.Event()
        # what the handler said, and is not sent yet
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
        """Also from another thread."""

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
    id: the same for every attempt at the same hook for the same event: what an effect is remembered under.
    fence: term and number. One lower than was seen for the same event and VM has been refused already; hand it on to
        what can refuse, too.
    intent, mode, phase: what is asked for.
    event: id, type, source, resources, description and more, as in `allclear.workload.v1`.
    vm: the affected one; another than its own where it stands in for a member that cannot.
    group, members: the members of the group, this one among them: vm, role, connected, affected.
    avoid: VMs to which nothing may be moved.
    prefer: VMs to which it is best moved, the best first.
    traceparent: of the trace that the attempt belongs to, as W3C Trace Context has it; None where nothing is traced.
    journaled: what the journal says of an earlier attempt at this step; None where there was none.
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
        """In seconds. When it is over, the attempt is cancelled."""
        return self._controls.time_left()

    def progress(self, text: object) -> None:
        """Says where it is. Shown to people; the last of many within a second is told."""
        self._controls.say(progress=pb.Progress(text=cut(text)))

    def expect(self, seconds: float) -> None:
        """Says how long it is going to take from now on."""
        self._controls.say(progress=pb.Progress(expected_end_in_ms=millis(seconds)))

    def more_time(self, seconds: float) -> None:
        """Asks for this much time from now on, within a second. It is granted as far as the event allows; `time_left`
        then says so."""
        self._controls.say(needs_ms=millis(seconds))

    async def cancelled(self) -> None:
        """Ends when the attempt is cancelled or its time is up. What has not ended 4 s later is cancelled as a task,
        and its outcome is unknown."""
        await self._controls.cancel.wait()

    @property
    def is_cancelled(self) -> bool:
        """Whether `cancelled()` has ended."""
        return self._controls.cancel.is_set()
