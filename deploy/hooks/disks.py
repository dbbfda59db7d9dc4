"""Where a server keeps its data, and whether the disk of that is there."""

from __future__ import annotations

import os
from pathlib import Path

from allclear_hook import setting

FSTAB = "/etc/fstab"


def mount_of(path: Path) -> Path:
    """The mount point that a path is on, by the device of each folder against its parent's."""
    place = Path(os.path.realpath(path))
    while not os.path.ismount(place) and place != place.parent:
        place = place.parent
    return place


def expected_mounts(path: Path) -> list[Path]:
    """The mount points above a path, or at it, that the machine's table of file systems names."""
    try:
        lines = Path(setting("FSTAB", FSTAB)).read_text(errors="replace").split("\n")
    except FileNotFoundError:
        return []
    entries = [line.split() for line in lines if not line.lstrip().startswith("#")]
    # A blank in a name is written so there.
    places = {Path(os.path.normpath(entry[1].replace("\\040", " "))) for entry in entries if len(entry) > 1}
    whole = [Path(os.path.abspath(path)), Path(os.path.realpath(path))]
    return sorted(place for place in places if place.is_absolute() and any(is_under(each, place) for each in whole))


def is_under(path: Path, folder: Path) -> bool:
    return path == folder or folder in path.parents


def unmounted(path: Path) -> str:
    """Why what is seen at this path is not what the machine has there when all its disks are mounted, or nothing."""
    for place in expected_mounts(path):
        if not os.path.ismount(place):
            return f"{place} is not mounted, and {setting('FSTAB', FSTAB)} says that it is a disk of its own: mount it"
    if path.is_symlink() and not path.exists():
        return f"{path} leads to {os.path.realpath(path)}, which is not there: is its disk mounted?"
    return ""


def unwritable_state() -> list[str]:
    """Why the hooks' own memory cannot be kept, or nothing."""
    folder = Path(setting("STATE_DIR", "/var/lib/allclear-hooks"))
    there = folder if folder.exists() else folder.parent
    if os.access(there, os.W_OK | os.X_OK):
        return []
    return [f"{folder} cannot be written by the user of the hooks: make it theirs, or set STATE_DIR"]


class Process:
    """A server's process on this machine, by what /proc says."""

    def __init__(self, pid: int) -> None:
        self.folder = Path("/proc") / str(pid)
        status = (self.folder / "status").read_text()
        told = dict(line.split(":\t", 1) for line in status.split("\n") if ":\t" in line)
        self.name = told["Name"]
        # The second of each is what counts where rights are looked at.
        self.user = int(told["Uid"].split()[1])
        self.groups = {int(told["Gid"].split()[1]), *map(int, told["Groups"].split())}

    def why_it_cannot_write(self, folder: Path) -> str:
        """What keeps it from making files in there, or nothing."""
        found = folder.stat()
        if found.st_uid == self.user:
            rights = found.st_mode >> 6
        else:
            rights = found.st_mode >> 3 if found.st_gid in self.groups else found.st_mode
        if self.user != 0 and rights & 3 != 3:
            return f"the server's user has no right to write in {folder}: chown or chgrp it, and give it the right"
        try:
            # As the process sees it: its service may have made it read-only for it.
            flags = os.statvfs(f"{self.folder}/root{folder}").f_flag
        except PermissionError:
            return ""
        if flags & os.ST_RDONLY:
            return f"{folder} is read-only for the server: ReadWritePaths={folder} in its unit"
        return ""
