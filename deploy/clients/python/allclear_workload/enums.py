"""The enumerations of `allclear.workload.v1`, under the names of workload.proto without their prefix. The build
compares both, and refuses what differs."""

from enum import IntEnum


class Role(IntEnum):
    """Which part a member of a group has."""

    # not known; in a heartbeat: as before
    UNSPECIFIED = 0
    PRIMARY = 1
    REPLICA = 2


class OnAbsent(IntEnum):
    """What happens to the hooks of a workload while it is not connected."""

    # as HOLD
    UNSPECIFIED = 0
    # they are waited for
    HOLD = 1
    # they are not needed
    SKIP = 2
    # those of the replica's configuration for a workload of the same name stand in
    COMMAND = 3


class Phase(IntEnum):
    """When in an event a hook runs; the phases come in this order, CHECK before all others."""

    # names no phase; no hook has it
    UNSPECIFIED = 0
    CHECKPOINT = 1
    FAILOVER = 2
    DRAIN = 3
    SHUTDOWN = 4
    RESTORE = 5
    READY = 6
    # in a dry run alone: whether the others could do what they may have to; changes nothing
    CHECK = 7


class OnFailure(IntEnum):
    """What becomes of the event when a hook has failed for good."""

    # as HOLD
    UNSPECIFIED = 0
    # the event is not approved
    HOLD = 1
    # the event goes on without the hook
    CONTINUE = 2


class RunsOn(IntEnum):
    """On which member of the group a hook runs."""

    # as AFFECTED
    UNSPECIFIED = 0
    # the member on the VM that the event names
    AFFECTED = 1
    # another member
    PEER = 2
    # whichever is there
    ANY = 3


class Intent(IntEnum):
    """What an attempt is asked for."""

    UNSPECIFIED = 0
    RUN = 1
    # whether it is done; changes nothing
    CONFIRM = 2
    UNDO = 3


class Mode(IntEnum):
    """Whether the event is real."""

    # as LIVE
    UNSPECIFIED = 0
    LIVE = 1
    # a drill: what would be done is said, and nothing changed
    DRY_RUN = 2
    # a drill: everything is done, and nothing approved
    REHEARSAL = 3
