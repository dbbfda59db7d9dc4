"""What a workload wants run, and the code that does it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from .messages import Message, OnFailure, Phase, RunsOn, millis, pb
from .outcome import Outcome
from .step import Step

# None means done.
Handler = Callable[[Step], Awaitable[Outcome | None]]


class Hook:
    """One hook of a phase. Lengths of time are seconds; what is left out is the replica's default.

    `run`, `confirm`, `undo` and `dry_run` are async functions of a Step. They answer an Outcome; None means done, and
    an exception failed. What does not fit together raises ValueError.

    phase: when it runs; of those of one phase, in the order in which they are given.
    run: has the effect. It may be called again after an outcome other than done.
    confirm: looks whether it is done, changes nothing, and answers DONE, NOT_DONE or unknown(why). Give a failover
        one: without it an unknown outcome is never tried again by itself.
    undo: takes it back.
    dry_run: says in a dry run what would be done, and changes nothing. Without it the hook is left out of dry runs,
        and `run` is never called for one.
    name: by which it is the same though it stands elsewhere in another version; unique in its phase, of letters,
        digits, - or _, and no number.
    timeout: when an attempt is cancelled, from its beginning.
    worst: how long it takes at the worst.
    attempts: how often it is run at the most.
    on_failure: whether the event is held or goes on when it has failed.
    runs_on: on which member of the group it runs.
    min_freeze: freezes that are known to be shorter are not worth it.
    fresh_for: a `done` older than this is confirmed again before the all-clear. Needs `confirm`.
    optional_if_short: left out when the notice does not hold its worst.
    exclusive: one at a time in the cluster.
    event_types: the types of events it is for; all when empty.
    """

    def __init__(
        self, phase: Phase, run: Handler, *, name: str | None = None, confirm: Handler | None = None,
        undo: Handler | None = None, dry_run: Handler | None = None, timeout: float | None = None,
        worst: float | None = None, attempts: int | None = None, on_failure: OnFailure = OnFailure.UNSPECIFIED,
        runs_on: RunsOn = RunsOn.UNSPECIFIED, min_freeze: float | None = None, fresh_for: float | None = None,
        optional_if_short: bool = False, exclusive: bool = False, event_types: Iterable[str] = (),
    ) -> None:  # fmt: skip
        if phase not in list(Phase) or phase == Phase.UNSPECIFIED:
            raise ValueError("name the phase of the hook")
        if fresh_for is not None and confirm is None:
            raise ValueError("what is to stay fresh has to be looked at again: give it a confirm, or no fresh_for")
        self.phase, self.run, self.confirm, self.undo, self.dry_run = phase, run, confirm, undo, dry_run
        # as it is registered
        self.message: Message = pb.Hook(
            phase=phase, name=name, timeout_ms=millis(timeout), attempts=attempts, on_failure=on_failure,
            runs_on=runs_on, can_confirm=confirm is not None, can_undo=undo is not None,
            min_freeze_ms=millis(min_freeze), fresh_for_ms=millis(fresh_for), optional_if_short=optional_if_short,
            worst_ms=millis(worst), exclusive=exclusive, event_types=event_types, can_dry_run=dry_run is not None,
        )  # fmt: skip
