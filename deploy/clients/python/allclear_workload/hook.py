"""The hooks of a workload, and their code."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from .arguments import check_handler, check_member, duration, flag, number, text, texts
from .messages import Message, OnFailure, Phase, RunsOn, pb
from .outcome import Outcome
from .step import Step

# The replica's limit.
MOST_ATTEMPTS = 100

# None means done.
Handler = Callable[[Step], Awaitable[Outcome | None]]


class Hook:
    """One hook of a phase. Durations are seconds; an omitted value is the replica's default.

    `run`, `confirm`, `undo` and `dry_run` are async functions of a Step: see README.md for the accepted forms. Each
    returns an Outcome; None means done, and an exception means failed. An argument of a wrong type raises TypeError, a
    number out of range or a contradiction ValueError.

    phase: the phase of the hook; hooks of one phase run in the given order.
    run: has the effect. May be called again after an outcome other than done.
    confirm: checks whether the hook is done, changes nothing, and returns DONE, NOT_DONE or unknown(reason). Give every
        failover a confirm: without confirm a failover with an unknown outcome has failed. Any other hook runs again.
    undo: reverses the hook.
    dry_run: reports the planned actions in a dry run, and changes nothing. Without dry_run the hook does not take part
        in dry runs, and `run` is never called for a dry run. A CHECK hook needs no dry_run: it changes nothing, runs in
        dry runs only, and `run` is called.
    name: the identity of the hook across versions; unique in its phase, of letters, digits, - or _, and no number.
    timeout: the time from the begin of an attempt to its cancellation; from 0.001 s to 24 h.
    worst: the longest known duration.
    attempts: the maximum number of runs, from 1 to 100.
    on_failure: whether the event is held or goes on after a permanent failure.
    runs_on: the member of the group that runs the hook.
    min_freeze: the hook is skipped for freezes known to be shorter.
    fresh_for: an older `done` is confirmed again before the approval. Needs `confirm`.
    optional_if_short: the hook is skipped if the notice is shorter than `worst`.
    exclusive: at most one run at a time in the cluster.
    event_types: the types of events for the hook; empty: all types.
    """

    def __init__(
        self, phase: Phase, run: Handler, *, name: str | None = None, confirm: Handler | None = None,
        undo: Handler | None = None, dry_run: Handler | None = None, timeout: float | None = None,
        worst: float | None = None, attempts: int | None = None, on_failure: OnFailure = OnFailure.UNSPECIFIED,
        runs_on: RunsOn = RunsOn.UNSPECIFIED, min_freeze: float | None = None, fresh_for: float | None = None,
        optional_if_short: bool = False, exclusive: bool = False, event_types: Iterable[str] = (),
    ) -> None:  # fmt: skip
        check_member("phase", phase, Phase)
        if phase == Phase.UNSPECIFIED:
            raise ValueError("name the phase of the hook")
        name = None if name is None else text(f"name of the {Phase(phase).name} hook", name)
        of_hook = f"of the {Phase(phase).name} hook{'' if name is None else f' {name!r}'}"
        check_handler(f"run {of_hook}", run)
        for argument, handler in {"confirm": confirm, "undo": undo, "dry_run": dry_run}.items():
            if handler is not None:
                check_handler(f"{argument} {of_hook}", handler)
        if fresh_for is not None and confirm is None:
            raise ValueError("what is to stay fresh has to be looked at again: give it a confirm, or no fresh_for")
        self.phase, self.run, self.confirm, self.undo, self.dry_run = phase, run, confirm, undo, dry_run
        check_member(f"on_failure {of_hook}", on_failure, OnFailure)
        check_member(f"runs_on {of_hook}", runs_on, RunsOn)
        # in the form of the registration
        self.message: Message = pb.Hook(
            phase=phase, name=name, timeout_ms=duration(f"timeout {of_hook}", timeout, least=0.001),
            attempts=number(f"attempts {of_hook}", attempts, 1, MOST_ATTEMPTS),
            on_failure=on_failure, runs_on=runs_on, can_confirm=confirm is not None, can_undo=undo is not None,
            min_freeze_ms=duration(f"min_freeze {of_hook}", min_freeze),
            fresh_for_ms=duration(f"fresh_for {of_hook}", fresh_for),
            optional_if_short=flag(f"optional_if_short {of_hook}", optional_if_short),
            worst_ms=duration(f"worst {of_hook}", worst), exclusive=flag(f"exclusive {of_hook}", exclusive),
            event_types=texts(f"event_types {of_hook}", event_types), can_dry_run=dry_run is not None,
        )  # fmt: skip
