"""The end of an attempt."""

from __future__ import annotations

from dataclasses import dataclass

from .messages import Message, pb

# In bytes of UTF-8.
LONGEST_TEXT = 512
_BARE = ("done", "not_applicable", "not_done", "cancelled", "stale")
_REASONED = ("failed", "blocked", "unknown")


@dataclass(frozen=True)
class Outcome:
    """The end of an attempt. Return one of the constants DONE, NOT_APPLICABLE, NOT_DONE and CANCELLED, or a result of
    `blocked`, `failed` and `unknown`; any other value raises ValueError.

    word: done, not_applicable, not_done, cancelled, stale; or failed, blocked, unknown.
    reason: for people; only with failed, blocked and unknown.
    """

    word: str
    reason: str | None = None

    def __post_init__(self) -> None:
        if self.word not in (_BARE if self.reason is None else _REASONED):
            raise ValueError(f"{self.word!r} is no outcome, or has no reason")

    def message(self) -> Message:
        """The outcome as a message."""
        told = pb.Nothing() if self.reason is None else self.reason
        message: Message = pb.Outcome(**{self.word: told})
        return message


# The effect of the hook is present.
DONE = Outcome("done")
# The hook has nothing to do on this member.
NOT_APPLICABLE = Outcome("not_applicable")
# An answer to confirm: the effect of the hook is absent.
NOT_DONE = Outcome("not_done")
# The attempt was stopped, after `Step.cancelled`, and nothing of it runs any more. At its deadline the attempt counts
# as timed out. Earlier, and without a cancellation, the hook has failed and is not tried again; only `restore` and
# `ready` hooks run again.
CANCELLED = Outcome("cancelled")
# The step's fence is lower than a known fence. Only this library returns this outcome.
STALE = Outcome("stale")


def failed(reason: object) -> Outcome:
    """The hook failed, with the reason; it is tried again until its `attempts` are used. The text of a reason is cut
    after 512 bytes of UTF-8."""
    return Outcome("failed", cut(reason))


def blocked(reason: object) -> Outcome:
    """Nothing was begun; try again later. With the reason."""
    return Outcome("blocked", cut(reason))


def unknown(reason: object) -> Outcome:
    """The workload cannot know the outcome. A confirm decides; without one the hook runs again, except a failover. With
    the reason."""
    return Outcome("unknown", cut(reason))


def cut(text: object) -> str:
    """The text of an object, as long as a message allows."""
    return str(text).encode(errors="replace")[:LONGEST_TEXT].decode(errors="ignore")
