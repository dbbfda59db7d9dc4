"""A member of a toy database that takes part: `kv.py NAME SOCKET FOLDER`, once for each VM.
A folder that all members share is their replication: `primary` names who may write, `data` is its last checkpoint.
`kv.rs` does the same."""

import asyncio
import json
import os
import sys
from pathlib import Path

from allclear_workload import DONE, NOT_APPLICABLE, NOT_DONE, Hook, Phase, Role, Workload, blocked


class Kv:
    def __init__(self, name, folder):
        self.name, self.folder, self.role, self.data = name, Path(folder), None, {}
        if not (self.folder / "primary").exists():
            self.put("data", "{}")
            self.put("primary", name)

    def is_primary(self):
        return (self.folder / "primary").read_text() == self.name

    def put(self, file, text):
        """The file is the old one or the new one, whatever happens."""
        following = self.folder / f"{file}.{self.name}"
        with open(following, "w") as written:
            written.write(text)
            written.flush()
            os.fsync(written.fileno())
        os.replace(following, self.folder / file)

    def go_on(self):
        """A primary writes something. A replica, and who has just become the primary, reads the last checkpoint."""
        role = Role.PRIMARY if self.is_primary() else Role.REPLICA
        if (self.role, role) != (Role.PRIMARY, Role.PRIMARY):
            self.data = json.loads((self.folder / "data").read_text())
        self.role = role
        if role == Role.PRIMARY:
            self.data["writes"] = self.data.get("writes", 0) + 1
        return role

    async def checkpoint(self, step):
        if self.role != Role.PRIMARY:
            return NOT_APPLICABLE
        print(f"{self.name}: writes {self.data} to disk", flush=True)
        self.put("data", json.dumps(self.data))

    async def fail_over(self, step):
        # nothing is written meanwhile: there is one thread, and it is here
        if self.role != Role.PRIMARY:
            return NOT_APPLICABLE
        if not step.prefer:
            return blocked("there is no member to switch to")
        self.put("data", json.dumps(self.data))
        self.put("primary", step.prefer[0])
        self.role = Role.REPLICA
        print(f"{self.name}: {step.prefer[0]} is the primary, and has {self.data}", flush=True)

    async def is_over(self, step):
        return NOT_DONE if self.is_primary() else DONE

    async def rejoin(self, step):
        print(f"{self.name}: is back as {self.go_on().name.lower()}", flush=True)


async def main(name, socket, folder):
    kv = Kv(name, folder)
    hooks = [
        Hook(Phase.CHECKPOINT, kv.checkpoint),
        Hook(Phase.FAILOVER, kv.fail_over, confirm=kv.is_over, timeout=5),
        Hook(Phase.RESTORE, kv.rejoin),
    ]
    async with Workload("kv", socket, hooks, group="kv", journal=kv.folder / f"{name}.journal") as workload:
        while True:
            workload.role = kv.go_on()
            await asyncio.sleep(0.05)


asyncio.run(main(*sys.argv[1:]))
