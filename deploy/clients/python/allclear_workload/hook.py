"""What a workload wants run, and the code that does it."""

from .messages import OnFailure, Phase, RunsOn, pb


class Hook:
    """One hook of a phase. Lengths of time are seconds; what is left out is the replica's default.

    `run`, `confirm`, `undo` and `dry_run` are async functions of a Step. They answer an Outcome; None means done, and
    an exception failed.

    run: has the effect. It may be called again after an outcome other than done.
    confirm: looks whether it is done, changes nothing, and answers DONE, NOT_DONE or unknown(why). Give a failover
        one: without it an unknown outcome is never tried again by itself.
    undo: takes it back.
    dry_run: says in a dry run what would be done, and changes nothing. Without it the hook is left out of dry runs,
        and `run` is never called for one.
    name: by which it is the same though it stands elsewhere in another version; unique in its phase, of letters,
        digits, - or _, and no number.
    worst: how long it takes at the worst.
    attempts: how often it is run at the most.
    min_freeze: freezes that are known to be shorter are not worth it.
    fresh_for: a `done` older than this is confirmed again before the all-clear. Needs `confirm`.
    optional_if_short: left out when the notice does not hold its worst.
    exclusive: one at a time in the cluster.
    event_types: the types of events it is for; all when empty.
    """

    def __init__(
        self, phase, run, *, name=None, confirm=None, undo=None, dry_run=None, timeout=None, worst=None, attempts=None,
        on_failure=OnFailure.UNSPECIFIED, runs_on=RunsOn.UNSPECIFIED, min_freeze=None, fresh_for=None,
        optional_if_short=False, exclusive=False, event_types=(),
    ):  # fmt: skip
        if phase not in list(Phase) or phase == Phase.UNSPECIFIED:
            raise ValueError("name the phase of the hook")
        if fresh_for is not None and confirm is None:
            raise ValueError("what is to stay fresh has to be looked at again: give it a confirm, or no fresh_for")
        self.phase, self.run, self.confirm, self.undo, self.dry_run = phase, run, confirm, undo, dry_run
        self.message = pb.Hook(
            phase=phase, name=name, timeout_ms=millis(timeout), attempts=attempts, on_failure=on_failure, runs_on=runs_on,
            can_confirm=confirm is not None, can_undo=undo is not None, min_freeze_ms=millis(min_freeze),
            fresh_for_ms=millis(fresh_for), optional_if_short=optional_if_short, worst_ms=millis(worst),
            exclusive=exclusive, event_types=event_types, can_dry_run=dry_run is not None,
        )  # fmt: skip


def millis(seconds):
    return None if seconds is None else max(0, round(seconds * 1000))
