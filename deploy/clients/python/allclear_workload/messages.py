"""The messages of `allclear.workload.v1`, and their enumerations as Python's own."""

from enum import IntEnum
from importlib import resources
from types import SimpleNamespace

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory


def _described():
    described = resources.files(__package__).joinpath("workload.binpb").read_bytes()
    [file] = descriptor_pb2.FileDescriptorSet.FromString(described).file
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return pool.FindFileByName(file.name)


def _enum(name):
    values = _FILE.enum_types_by_name[name].values
    prefix = values[0].name.removesuffix("UNSPECIFIED")
    return IntEnum(name, {value.name.removeprefix(prefix): value.number for value in values})


_FILE = _described()
pb = SimpleNamespace(**{
    name: message_factory.GetMessageClass(message) for name, message in _FILE.message_types_by_name.items()
})  # fmt: skip

Intent = _enum("Intent")
Mode = _enum("Mode")
OnAbsent = _enum("OnAbsent")
OnFailure = _enum("OnFailure")
Phase = _enum("Phase")
Role = _enum("Role")
RunsOn = _enum("RunsOn")
