"""The enumerations of `allclear.workload.v1`, under the names of workload.proto without the prefix. The build compares
both, and fails on a difference."""

from enum import IntEnum


class Role(IntEnum):
    """The role of a member in the group."""

    # unknown; in a heartbeat: unchanged
    UNSPECIFIED = 0
    PRIMARY = 1
    REPLICA = 2


class OnAbsent(IntEnum):
    """The treatment of the workload's hooks while the workload is disconnected."""

    # as HOLD
    UNSPECIFIED = 0
    # events wait for the workload
    HOLD = 1
    # the hooks are not required
    SKIP = 2
    # the hooks of the configured workload with the same name run instead
    COMMAND = 3


class Phase(IntEnum):
    """The phase of a hook; in the order of execution, with CHECK before all others."""

    # no phase; no hook has this value
    UNSPECIFIED = 0
    CHECKPOINT = 1
    FAILOVER = 2
    DRAIN = 3
    SHUTDOWN = 4
    RESTORE = 5
    READY = 6
    # in a dry run only: verifies the requirements of the other hooks; changes nothing
    CHECK = 7


class OnFailure(IntEnum):
    """The effect of a permanently failed hook on the event."""

    # as HOLD
    UNSPECIFIED = 0
    # the event is not approved
    HOLD = 1
    # the event goes on without the hook
    CONTINUE = 2


class RunsOn(IntEnum):
    """The member of the group that runs a hook."""

    # as AFFECTED
    UNSPECIFIED = 0
    # the member on the affected VM
    AFFECTED = 1
    # another member
    PEER = 2
    # the affected member, or another member while the affected VM is unreachable
    ANY = 3


class Intent(IntEnum):
    """The purpose of an attempt."""

    UNSPECIFIED = 0
    RUN = 1
    # asks whether the hook is done; changes nothing
    CONFIRM = 2
    UNDO = 3


class Mode(IntEnum):
    """Whether the event is real."""

    # as LIVE
    UNSPECIFIED = 0
    LIVE = 1
    # a drill: report the planned actions, change nothing
    DRY_RUN = 2
    # a drill: run everything, approve nothing
    REHEARSAL = 3
