"""The messages of `allclear.workload.v1`. The classes are made at run time from the description beside this file, so no
type checker knows the classes: sent messages are a `Message`, and the fields of received messages are declared here."""

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
    """A duration in the form of messages; None stays None."""
    return None if seconds is None else max(0, round(seconds * 1000))


class Fence(Protocol):
    """The order of requests from replicas: by term, then by sequence."""

    term: int
    sequence: int


class Peer(Protocol):
    """A member of the group. `role` is a number of `Role`; `affected`: the event names the member's VM."""

    vm: str
    role: int
    connected: bool
    affected: bool


class Event(Protocol):
    """An event of Azure, and its progress. Absent texts are empty, absent numbers 0. `HasField` shows whether the
    optional `status`, `not_before_unix_ms`, `duration_ms` and `blocker` are present."""

    id: str
    # Freeze, Reboot, Redeploy, Preempt, Terminate, or a newer type
    type: str
    # Platform or User
    source: str
    # the VMs of the event
    resources: Sequence[str]
    # Scheduled or Started; absent when no document lists the event any more
    status: str
    # milliseconds since the Unix epoch
    not_before_unix_ms: int
    description: str
    # milliseconds; absent if Azure gives no duration
    duration_ms: int
    # announced, preparing, claimed, approved, started, restoring, closed
    stage: str
    # why the event is not approved yet, for people
    blocker: str
    revision: int

    def HasField(self, field_name: str) -> bool: ...


class StepMessage(Protocol):
    """One attempt at one hook, as received; `Step` describes the fields."""

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
