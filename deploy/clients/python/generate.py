"""Writes a description of the messages from the .proto file during the build of the package. The source contains no
generated code, so nothing can differ from the .proto. Every version of protobuf reads a description, unlike generated
code. The hand-written enumerations are compared with the .proto here."""

from __future__ import annotations

import runpy
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Describe(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        # only for the build
        from grpc_tools import protoc

        root = Path(self.root)
        # beside this file in a source distribution
        places = [root, root / "../../../proto/allclear/workload/v1"]
        place = next((place for place in places if (place / "workload.proto").exists()), None)
        if place is None:
            raise RuntimeError(f"workload.proto is not in {root}: copy it from proto/allclear/workload/v1")
        self.folder = tempfile.TemporaryDirectory()
        described = f"{self.folder.name}/workload.binpb"
        if protoc.main(["protoc", f"-I{place}", f"--descriptor_set_out={described}", "workload.proto"]) != 0:
            raise RuntimeError(f"protoc failed on {place}/workload.proto")
        _compare(Path(described), root / "allclear_workload/enums.py")
        build_data["force_include"][described] = "allclear_workload/workload.binpb"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        self.folder.cleanup()


def _compare(described: Path, written: Path) -> None:
    """Fails unless the hand-written enumerations equal the described enumerations."""
    from google.protobuf import descriptor_pb2

    found = runpy.run_path(str(written))
    [file] = descriptor_pb2.FileDescriptorSet.FromString(described.read_bytes()).file
    for enum in file.enum_type:
        prefix = enum.value[0].name.removesuffix("UNSPECIFIED")
        values = {value.name.removeprefix(prefix): value.number for value in enum.value}
        members = {member.name: member.value for member in found.get(enum.name, ())}
        if members != values:
            raise RuntimeError(f"{written}: {enum.name} has {members}, and workload.proto {values}")
