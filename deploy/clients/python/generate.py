"""Describes the messages from the one .proto while the package is built. Nothing generated is kept in the source, where
it could differ from the .proto; and a description, unlike generated code, is read by every version of protobuf."""

import tempfile
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Describe(BuildHookInterface):
    def initialize(self, version, build_data):
        # needed for building only
        from grpc_tools import protoc

        root = Path(self.root)
        # beside this file in a source distribution
        places = [root, root / "../../../proto/allclear/workload/v1"]
        place = next(place for place in places if (place / "workload.proto").exists())
        self.folder = tempfile.TemporaryDirectory()
        described = f"{self.folder.name}/workload.binpb"
        if protoc.main(["protoc", f"-I{place}", f"--descriptor_set_out={described}", "workload.proto"]) != 0:
            raise RuntimeError(f"protoc failed on {place}/workload.proto")
        build_data["force_include"][described] = "allclear_workload/workload.binpb"

    def finalize(self, version, build_data, artifact_path):
        self.folder.cleanup()
