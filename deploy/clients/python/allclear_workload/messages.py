"""The messages of `allclear.workload.v1`. Their classes are made from the description that the build put beside this
file, so no checker of types knows them: those that are sent are a `Message`, and what is read of received ones is
written down here."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from types import SimpleNamespace
from typing import Protocol

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import FileDescriptor
from google.protobuf.message import Message

from .enums import Intent, Mode, OnAbsent, OnFailure, Phase, Role, RunsOn

__all__ = [
    "Event", "Fence", "Intent", "Message", "Mode", "OnAbsent", "OnFailure", "Peer", "Phase", "Role", "RunsOn",
    "StepMessage", "millis", "pb",
]  # fmt: skip


def _described() -> FileDescriptor:
    described = resources.files(__package__).joinpath("workload.binpb").read_bytes()
    [file] = descriptor_pb2.FileDescriptorSet.FromString(described).file
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return pool.FindFileByName(file.name)


# the classes of all messages, by name
pb = SimpleNamespace(**{
    name: message_factory.GetMessageClass(message) for name, message in _described().message_types_by_name.items()
})  # fmt: skip


def millis(seconds: float | None) -> int | None:
    """A length of time as messages have it; one that is left out stays so."""
    return None if seconds is None else max(0, round(seconds * 1000))


class Fence(Protocol):
    """Orders what replicas ask for: by term, then by sequence."""

    term: int
    sequence: int


class Peer(Protocol):
    """A member of the group. `role` is a number of `Role`; `affected`: the event names its VM."""

    vm: str
    role: int
    connected: bool
    affected: bool


class Event(Protocol):
    """What the platform announced, and how far it is. Absent texts are empty, absent numbers 0; `HasField` tells absent
    values of the optional `status`, `not_before_unix_ms`, `duration_ms` and `blocker` apart."""

    id: str
    # Freeze, Reboot, Redeploy, Preempt, Terminate, or newer
    type: str
    # Platform or User
    source: str
    # the VMs that it names
    resources: Sequence[str]
    # Scheduled or Started; absent when it is in no document any more
    status: str
    # milliseconds since the Unix epoch
    not_before_unix_ms: int
    description: str
    # milliseconds; absent when the platform does not say
    duration_ms: int
    # announced, preparing, claimed, approved, started, restoring, closed
    stage: str
    # why it is not approved yet, for people
    blocker: str
    revision: int

    def HasField(self, field_name: str) -> bool: ...


class StepMessage(Protocol):
    """One attempt at one hook, as it is received; `Step` says what its fields mean."""

    attempt: str
    step: str
    fence: Fence
    intent: int
    mode: int
    phase: int
    ordinal: int
    event: Event
    vm: str
    group: str
    members: Sequence[Peer]
    avoid: Sequence[str]
    prefer: Sequence[str]
    time_left_ms: int
    traceparent: str

    def HasField(self, field_name: str) -> bool: ...
