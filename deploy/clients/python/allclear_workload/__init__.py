"""What a database embeds to take part: it dials the replica of allclear on its VM, says what it wants run, and is told
when. See README.md for an example."""

from .hook import Hook
from .journal import JournalError
from .messages import Intent, Mode, OnAbsent, OnFailure, Phase, Role, RunsOn
from .outcome import CANCELLED, DONE, NOT_APPLICABLE, NOT_DONE, Outcome, blocked, failed, unknown
from .step import Step
from .workload import Standing, StillRegistered, Workload

__all__ = [
    "CANCELLED", "DONE", "NOT_APPLICABLE", "NOT_DONE", "Hook", "Intent", "JournalError", "Mode", "OnAbsent",
    "OnFailure", "Outcome", "Phase", "Role", "RunsOn", "Standing", "Step", "StillRegistered", "Workload", "blocked",
    "failed", "unknown",
]  # fmt: skip
