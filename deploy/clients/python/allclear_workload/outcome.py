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


DONE = Outcome("done")
# The hook has nothing to do here.
NOT_APPLICABLE = Outcome("not_applicable")
# The answer to confirm: the hook is not done.
NOT_DONE = Outcome("not_done")
# The attempt was cancelled before it had an effect.
CANCELLED = Outcome("cancelled")
# The step has a lower fence than a known fence. Only this library returns this outcome.
STALE = Outcome("stale")


def failed(reason: object) -> Outcome:
    """The hook failed, for this reason. The text of a reason is cut after 512 bytes of UTF-8."""
    return Outcome("failed", cut(reason))


def blocked(reason: object) -> Outcome:
    """Nothing was begun; try again later."""
    return Outcome("blocked", cut(reason))


def unknown(reason: object) -> Outcome:
    """The handler cannot know the outcome. A confirm decides; without one the hook runs again, except a failover."""
    return Outcome("unknown", cut(reason))


def cut(text: object) -> str:
    """The text of an object, as long as a message allows."""
    return str(text).encode(errors="replace")[:LONGEST_TEXT].decode(errors="ignore")
