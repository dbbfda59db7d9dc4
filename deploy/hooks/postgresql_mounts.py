"""Whether the file systems are mounted that the data of the PostgreSQL server on this VM are expected on.

A folder below a mount point that is not mounted looks like lost data, and what is copied there is on another disk.
"""

from __future__ import annotations

from pathlib import Path

from allclear_hook import Blocked, Memory
from postgresql_server import Here

UNITS = ("/etc/systemd/system/*.mount", "/run/systemd/generator/*.mount")


def mounted() -> set[Path]:
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return {Path(plain(line.split()[4])) for line in lines}


def configured(fstab: Path = Path("/etc/fstab")) -> set[Path]:
    """Where file systems are to be mounted, as fstab and the units of systemd have it."""
    lines = fstab.read_text().splitlines() if fstab.exists() else []
    words = [line.split() for line in lines if not line.lstrip().startswith("#")]
    found = {Path(plain(word[1])) for word in words if len(word) > 2 and word[1].startswith("/")}
    for pattern in UNITS:
        for unit in Path("/").glob(pattern[1:]):
            found |= {Path(line[6:].strip()) for line in unit.read_text().splitlines() if line.startswith("Where=")}
    return found


def plain(text: str) -> str:
    """Blanks stand there as octal numbers."""
    return text.replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\")


def mount_of(path: Path, points: set[Path]) -> Path:
    resolved = path.resolve()
    return next(folder for folder in (resolved, *resolved.parents) if folder in points)


def note_mount(here: Here) -> None:
    """For the time when it is not there."""
    memory, mount = marker(here), str(mount_of(here.path, mounted()))
    if memory.recall().get("mount") != mount:
        memory.remember({"mount": mount})


def marker(here: Here) -> Memory:
    return Memory(f"postgresql-{here.vm}-mount")


def missing_mount(here: Here, path: Path) -> str:
    """The mount point that this path is expected to be below and is not, or nothing."""
    noted = {Path(marker(here).recall().get("mount", "/"))} if path == here.path else set()
    resolved = path.resolve()
    expected = {point for point in configured() | noted if point in (resolved, *resolved.parents)}
    lacking = expected - mounted()
    return str(max(lacking, key=lambda point: len(point.parts))) if lacking else ""


def check_mounts(here: Here, path: Path | None = None) -> None:
    path = path or here.path
    point = missing_mount(here, path)
    if point:
        raise Blocked(f"{point}, which {path} has been on or is to be on, is not mounted; nothing was copied")
