"""A member of a toy database that counts: `kv.py NAME SOCKET FOLDER`, once for each VM. `kv.rs` does the same. All
members share the folder. The file `primary` names the primary, and has the count at the last checkpoint."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from allclear_workload import DONE, NOT_APPLICABLE, NOT_DONE, Hook, Outcome, Phase, Role, Step, Workload, blocked


class Kv:
    def __init__(self, name: str, folder: str) -> None:
        self.name, self.folder = name, Path(folder)
        # the primary's count; None on a replica
        self.count: int | None = None if (self.folder / "primary").exists() else 0

    def look(self) -> Role:
        """Reads whether this member is the primary, and counts on the primary. A new primary continues from the
        checkpoint."""
        primary, _, saved = (self.folder / "primary").read_text().partition(" ")
        self.count = (int(saved) if self.count is None else self.count) + 1 if primary == self.name else None
        return Role.REPLICA if self.count is None else Role.PRIMARY

    async def save(self, primary: str | None) -> Outcome:
        """Checkpoint and switch in one step: at any time the file is the complete old file or the complete new file."""
        # without an await, so the count stays unchanged meanwhile
        if self.count is None or primary is None:
            return NOT_APPLICABLE if self.count is None else blocked("there is no member to switch to")
        with open(self.folder / self.name, "w") as following:  # noqa: ASYNC230
            following.write(f"{primary} {self.count}")
            following.flush()
            os.fsync(following.fileno())
        os.replace(following.name, self.folder / "primary")
        print(f"{self.name}: {primary} is the primary, and has {self.count}", flush=True)
        self.count = self.count if primary == self.name else None
        return DONE

    async def is_over(self, step: Step) -> Outcome:
        return DONE if self.look() == Role.REPLICA else NOT_DONE

    async def rejoin(self, step: Step) -> None:
        print(f"{self.name}: is back as {self.look().name.lower()}", flush=True)


async def main(name: str, socket: str, folder: str) -> None:
    kv = Kv(name, folder)
    if kv.count == 0:
        await kv.save(name)
    hooks = [
        Hook(Phase.CHECKPOINT, lambda step: kv.save(name)),
        Hook(Phase.FAILOVER, lambda step: kv.save(next(iter(step.prefer), None)), confirm=kv.is_over, timeout=5),
        Hook(Phase.RESTORE, kv.rejoin),
    ]
    async with Workload("kv", socket, hooks, group="kv", journal=f"{folder}/{name}.journal") as workload:
        while True:
            workload.role = kv.look()
            await asyncio.sleep(0.05)


asyncio.run(main(*sys.argv[1:]))
