"""The library of session workloads: connects a database to the replica of allclear on its VM, registers hooks, and runs
the hooks on demand. See README.md for an example."""

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
