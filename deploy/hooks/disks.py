"""The file systems of a server's data: whether they are mounted, and where the data were.

An empty folder below a mount point without its disk looks like lost data. A copy there would be on another disk.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from allclear_hook import Memory, setting

FSTAB = "/etc/fstab"
UNITS = Path("/etc/systemd/system")


def mounted() -> set[Path]:
    """All mount points. The device numbers prove nothing: a bind mount has the device of its parent."""
    lines = Path("/proc/self/mountinfo").read_text(errors="surrogateescape").splitlines()
    return {Path(unescaped(line.split(" ")[4])) for line in lines}


def unescaped(path: str) -> str:
    """A path without the octal escapes of blanks in fstab(5) and in the kernel's lists."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), path)


def mount_of(path: Path) -> Path:
    """The mount point of the file system of this path; the path need not exist."""
    resolved, points = path.resolve(), mounted()
    return next(folder for folder in (resolved, *resolved.parents) if folder in points)


def configured() -> set[Path]:
    """The mount points in fstab and in the units of systemd. A file system that is not mounted automatically is not
    missing."""
    try:
        lines = Path(setting("FSTAB", FSTAB)).read_text(errors="surrogateescape").splitlines()
    except OSError:
        lines = []
    entries = [line.split() for line in lines if not line.lstrip().startswith("#")]
    found = {unescaped(entry[1]) for entry in entries if len(entry) > 3 and mounts_itself(entry[3].split(","))}
    for unit in UNITS.glob("*.mount"):
        try:
            found |= {line[6:].strip() for line in unit.read_text().splitlines() if line.startswith("Where=")}
        except OSError:
            continue  # An unreadable unit belongs to another user, and not to this server.
    return {Path(os.path.normpath(point)) for point in found if point.startswith("/")}


def mounts_itself(options: list[str]) -> bool:
    return "noauto" not in options or "x-systemd.automount" in options


def unmounted(path: Path) -> str:
    """The reason why this path shows another content than with all disks of the machine mounted, or an empty text."""
    ways = {Path(os.path.abspath(path)), path.resolve()}
    expected = {point for point in configured() if any(point == way or point in way.parents for way in ways)}
    there = mounted()
    absent = [point for point in expected if point.resolve() not in there]
    if absent:
        deepest = max(absent, key=lambda point: len(point.parts))
        return f"{deepest} is not mounted, though this machine is to have a file system there: mount it"
    if path.is_symlink() and not path.exists():
        return f"{path} leads to {path.resolve()}, which is not there: is its disk mounted?"
    return ""


class Place:
    """The place of a server's complete data, so that another folder is never taken for the data."""

    def __init__(self, name: str) -> None:
        self._memory = Memory(f"{name}-place")

    def note(self, path: Path) -> None:
        now = {"folder": str(path.resolve()), "mount": str(mount_of(path))}
        if self._memory.recall() != now:
            self._memory.remember(now)

    def folder(self) -> str:
        """Empty if the data were never seen."""
        return str(self._memory.recall().get("folder", ""))

    def is_another(self, path: Path) -> str:
        """The reason why the known data would not be at this path, or an empty text."""
        before = self._memory.recall()
        if before and before["folder"] != str(path.resolve()):
            return (
                f"it is to run on {path}, and its data were in {before['folder']}: set it to where they are; if they"
                f" moved for good, remove {self._memory.path}"
            )
        return unmounted(path) or self.is_on_another_disk(path)

    def is_on_another_disk(self, path: Path) -> str:
        before, now = self._memory.recall().get("mount", ""), str(mount_of(path))
        if not before or before == now:
            return ""
        return (
            f"the data were on the file system at {before}, and {path} is on the one at {now}: {before} is not mounted,"
            f" mount it; if the disk was replaced for good, remove {self._memory.path}"
        )


def unwritable_state() -> list[str]:
    """The reasons why STATE_DIR cannot be written."""
    folder = Path(setting("STATE_DIR", "/var/lib/allclear-hooks"))
    there = folder if folder.exists() else folder.parent
    if os.access(there, os.W_OK | os.X_OK):
        return []
    return [f"{folder} cannot be written by the user of the hooks: make it theirs, or set STATE_DIR"]


class Process:
    """A server's process on this machine, from /proc."""

    def __init__(self, pid: int) -> None:
        self.folder = Path("/proc") / str(pid)
        status = (self.folder / "status").read_text()
        told = dict(line.split(":\t", 1) for line in status.split("\n") if ":\t" in line)
        self.name = told["Name"]
        # The second number is the effective id, which counts for access.
        self.user = int(told["Uid"].split()[1])
        self.groups = {int(told["Gid"].split()[1]), *map(int, told["Groups"].split())}

    def why_it_cannot_write(self, folder: Path) -> str:
        """The reason why the process cannot create files in this folder, or an empty text."""
        found = folder.stat()
        if found.st_uid == self.user:
            rights = found.st_mode >> 6
        else:
            rights = found.st_mode >> 3 if found.st_gid in self.groups else found.st_mode
        if self.user != 0 and rights & 3 != 3:
            return f"the server's user has no right to write in {folder}: chown or chgrp it, and give it the right"
        try:
            # From the view of the process: the unit may have made the folder read-only.
            flags = os.statvfs(f"{self.folder}/root{folder}").f_flag
        except PermissionError:
            return ""
        if flags & os.ST_RDONLY:
            return f"{folder} is read-only for the server: ReadWritePaths={folder} in its unit"
        return ""
