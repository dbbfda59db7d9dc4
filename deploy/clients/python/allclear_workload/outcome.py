"""How an attempt ended."""

from dataclasses import dataclass

from .messages import pb

LONGEST_TEXT = 512
_BARE = ("done", "not_applicable", "not_done", "cancelled", "stale")
_REASONED = ("failed", "blocked", "unknown")


@dataclass(frozen=True)
class Outcome:
    word: str
    reason: str | None = None

    def __post_init__(self):
        if self.word not in (_BARE if self.reason is None else _REASONED):
            raise ValueError(f"{self.word!r} is no outcome, or has no reason")

    def message(self):
        told = pb.Nothing() if self.reason is None else self.reason
        return pb.Outcome(**{self.word: told})


DONE = Outcome("done")
# There is nothing to do here.
NOT_APPLICABLE = Outcome("not_applicable")
# An answer to confirm: it is not done.
NOT_DONE = Outcome("not_done")
CANCELLED = Outcome("cancelled")
# The step came from somebody who has been replaced. Answered by this library alone.
STALE = Outcome("stale")


def failed(reason):
    return Outcome("failed", cut(reason))


def blocked(reason):
    """Nothing is wrong with the hook; it is to be tried again later."""
    return Outcome("blocked", cut(reason))


def unknown(reason):
    """Nobody can say; it is settled by asking, never by running again."""
    return Outcome("unknown", cut(reason))


def cut(text):
    return str(text).encode(errors="replace")[:LONGEST_TEXT].decode(errors="ignore")
