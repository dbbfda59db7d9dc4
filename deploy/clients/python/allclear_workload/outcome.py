"""How an attempt ended."""

from __future__ import annotations

from dataclasses import dataclass

from .messages import Message, pb

# In bytes of UTF-8.
LONGEST_TEXT = 512
_BARE = ("done", "not_applicable", "not_done", "cancelled", "stale")
_REASONED = ("failed", "blocked", "unknown")


@dataclass(frozen=True)
class Outcome:
    """The end of an attempt. Answer one of the constants DONE, NOT_APPLICABLE, NOT_DONE and CANCELLED, or what
    `blocked`, `failed` and `unknown` make; anything else raises ValueError.

    word: done, not_applicable, not_done, cancelled, stale; or failed, blocked, unknown.
    reason: for people; of the latter three alone.
    """

    word: str
    reason: str | None = None

    def __post_init__(self) -> None:
        if self.word not in (_BARE if self.reason is None else _REASONED):
            raise ValueError(f"{self.word!r} is no outcome, or has no reason")

    def message(self) -> Message:
        """As it is sent."""
        told = pb.Nothing() if self.reason is None else self.reason
        message: Message = pb.Outcome(**{self.word: told})
        return message


DONE = Outcome("done")
# There is nothing to do here.
NOT_APPLICABLE = Outcome("not_applicable")
# An answer to confirm: it is not done.
NOT_DONE = Outcome("not_done")
# It ended because it was cancelled, before it had its effect.
CANCELLED = Outcome("cancelled")
# The step came from somebody who has been replaced. Answered by this library alone.
STALE = Outcome("stale")


def failed(reason: object) -> Outcome:
    """It went wrong, and `reason` says why. The text of a reason is cut after 512 bytes of UTF-8."""
    return Outcome("failed", cut(reason))


def blocked(reason: object) -> Outcome:
    """Nothing is wrong with the hook; it is to be tried again later."""
    return Outcome("blocked", cut(reason))


def unknown(reason: object) -> Outcome:
    """Nobody can say; it is settled by asking, never by running again."""
    return Outcome("unknown", cut(reason))


def cut(text: object) -> str:
    """The text of it, as far as a message takes it."""
    return str(text).encode(errors="replace")[:LONGEST_TEXT].decode(errors="ignore")
