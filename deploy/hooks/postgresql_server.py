"""The PostgreSQL server on this VM: stop, start, and the change between standby and primary."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from allclear_hook import (
    Blocked,
    Failed,
    Told,
    Unreachable,
    call,
    members,
    number,
    setting,
    until,
)
from disks import Place, mount_of
from postgresql_members import Group, literal, primary_conninfo
from psql import Psql

# The folders of each version on Debian and RPM systems.
ROOTS = ("/usr/lib/postgresql/", "/usr/pgsql-")
SHUT_DOWN = ("shut down", "shut down in recovery")
# These processes end last, or with the rest: a stop does not wait for them.
NOT_IN_THE_WAY = re.compile(r"postgres: (.*: )?(logger|background writer|walwriter|stats collector|checkpointer)\b")
# The reasons in the server's log: in lines for people, in values separated by commas, or in JSON.
REASONS = re.compile(
    r"\b(?:FATAL|PANIC|ERROR|DETAIL):\s+(.*)|\b(?:FATAL|PANIC|ERROR),\w{5},(.*)"
    r'|"error_severity":"(?:FATAL|PANIC|ERROR)",(.*)|(hot standby is not possible.*)'
)
TAIL = 65536
# The room for a checkpoint beside two segments of WAL. Bytes.
ROOM = 1 << 24


class Stuck(Unreachable):
    """The server did not stop, and accepts no writes meanwhile."""


class Here:
    """The server on this VM, as a process and a directory."""

    def __init__(self, told: Told, path: Path | None = None) -> None:
        self.vm = told.vm
        if self.vm not in members():
            raise Failed(f"MEMBERS does not have this VM, {self.vm}")
        self.path = path or Path(setting("PGDATA"))
        self.place = Place(f"postgresql-{self.vm}")
        self.standby_signal = self.path / "standby.signal"
        self.log = Path(setting("STATE_DIR", "/var/lib/allclear-hooks")) / "postgresql.log"
        self._logs = {self.log}

    def major(self) -> str:
        """The version of the data; each database contains the version too."""
        for version in (self.path / "base/1/PG_VERSION", self.path / "PG_VERSION"):
            if version.exists():
                return version.read_text().strip()
        return ""

    def program(self, name: str) -> str:
        """The program of the data's version, from the folders of Debian and RPM; otherwise of any version."""
        own = ":".join(f"{root}{self.major()}/bin" for root in ROOTS) if self.major() else ""
        found = shutil.which(name, path=setting("BIN", own)) or shutil.which(name)
        beside = [path for root in ROOTS for path in sorted(Path("/").glob(f"{root[1:]}*/bin/{name}"))]
        return found or (str(beside[-1]) if beside else name)

    def pid(self) -> int | None:
        """The process of the server on this directory. The working directory distinguishes the server from a process
        with the number in a stale file."""
        try:
            pid = int((self.path / "postmaster.pid").read_text().split()[0])
            return pid if os.readlink(f"/proc/{pid}/cwd") == str(self.path.resolve()) else None
        except (OSError, ValueError, IndexError):
            return None

    def must_be(self, server: Psql) -> None:
        """Refuses a server that is not the server on PGDATA: this hook would stop one server, and switch another."""
        own = self.pid()
        if not own:
            raise Failed(f"{self.vm}: a server answers at {self.address()}, and none runs on {self.path}, here")
        if parent_of(int(server.ask("SELECT pg_backend_pid()"))) != own:
            raise Failed(f"{self.vm}: the server at {self.address()} is not the server on {self.path}, here (pid {own})")

    def address(self) -> str:
        host, port = members()[self.vm]
        return f"{host}:{port}"

    def is_stopping(self) -> bool:
        """The eighth line of the lock file has the state of the server."""
        try:
            return (self.path / "postmaster.pid").read_text().splitlines()[7].startswith("stopping")
        except (OSError, IndexError):
            return False

    def control(self) -> dict[str, str]:
        said = call([self.program("pg_controldata"), "-D", self.path], env={**os.environ, "LC_ALL": "C"})
        return {name: value.strip() for name, _, value in (line.partition(":") for line in said.splitlines())}

    def state(self) -> str:
        return self.control()["Database cluster state"]

    def cramped(self) -> str:
        """Why a checkpoint may lack room on a file system, or an empty text. The server then ends with PANIC, at a stop
        too: a switch would stop writes in vain."""
        needed = 2 * int(self.control().get("Bytes per WAL segment", 1 << 24)) + ROOM
        for folder in (self.path, self.path / "pg_wal"):
            found = os.statvfs(folder)
            free = found.f_bavail * found.f_frsize
            if free < needed:
                return (
                    f"{self.vm}: the file system at {mount_of(folder)} is full: {free >> 20} MiB are free for {folder}, and "
                    f"a checkpoint or a stop of the server needs {needed >> 20} MiB: free some"
                )
        return ""

    def newest_timeline(self) -> int:
        """The newest timeline of the data, also of a promotion before its first checkpoint."""
        control = self.control()
        known = [int(path.stem, 16) for path in (self.path / "pg_wal").glob("[0-9A-F]*.history")]
        return max(*timelines(control), *known, *(of for of, _, _ in self.wal(control)))

    def wal(self, control: dict[str, str]) -> list[tuple[int, int, int]]:
        """The segments in pg_wal: the timeline, the begin, and the end. The control file has the timelines of the last
        checkpoint or restartpoint, and a standby may have followed later timelines since."""
        size = int(control.get("Bytes per WAL segment", 1 << 24))
        names = [path.name for path in (self.path / "pg_wal").glob("[0-9A-F]" * 24)]
        begins = [(int(name[:8], 16), position(f"{name[8:16]}/0") + int(name[16:], 16) * size) for name in names]
        return [(timeline, begin, begin + size) for timeline, begin in begins]

    def be_standby(self) -> None:
        """From now on every start of the server makes a standby."""
        with self.standby_signal.open("w") as file:
            os.fsync(file.fileno())
        sync(self.path)

    def follow(self, to: str) -> None:
        """As ALTER SYSTEM, for a stopped server."""
        path = self.path / "postgresql.auto.conf"
        lines = path.read_text().splitlines() if path.exists() else []
        lines = [line for line in lines if not line.startswith("primary_conninfo")]
        lines.append(f"primary_conninfo = {literal(primary_conninfo(self.vm, to))}")
        replace(path, "\n".join(lines) + "\n")

    def ask_to_stop(self) -> None:
        """A fast stop: sessions end, and the last checkpoint is written."""
        pid = self.pid()
        if setting("STOP", ""):
            subprocess.Popen(shlex.split(setting("STOP")), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        elif pid:
            end(pid, signal.SIGINT)

    def stop_writes(self, expendable: Iterable[int], seconds: float) -> None:
        """Stops a primary, and returns when the last checkpoint is on the disk.

        From then on the server writes no more, whatever the server still waits for: an archiver, or a standby that does
        not confirm. The `expendable` WAL senders are ended if they delay the checkpoint.
        """
        began = time.monotonic()
        self.ask_to_stop()

        def is_done() -> bool:
            return self.pid() is None or self.state() == "shut down"

        while not until(is_done, min(1, seconds), 0.01):
            if time.monotonic() - began > seconds:
                why = f"the server did not stop within {seconds:.0f} s; in the way: {self.in_the_way()}"
                raise Stuck(f"{self.vm}: {why}")
            # A sender whose receiver does not read takes the first signal for a notice to the receiver, and waits on.
            for sender in expendable:
                end(sender, signal.SIGTERM)

    def stop(self, must_end: bool = False) -> None:
        """Stops the server and waits for the end. Processes after the last checkpoint are cut off; with `must_end` also
        processes before the checkpoint."""
        if self.pid() is None:
            return
        self.ask_to_stop()
        if self._ends_within(number("STOP_SECONDS", 8)):
            return
        why = self.in_the_way()
        if not must_end and self.state() not in SHUT_DOWN:
            raise Unreachable(f"{self.vm}: the server does not stop; in the way: {why}")
        self.cut_off()

    def cut_off(self) -> None:
        """Ends the server at once. The server itself kills processes that do not end within 5 s."""
        pid = self.pid()
        if pid:
            end(pid, signal.SIGQUIT)
        if not self._ends_within(15):
            raise Failed(f"{self.vm}: the server (pid {pid}) cannot be ended; in the way: {self.in_the_way()}")

    def _ends_within(self, seconds: float) -> bool:
        return until(lambda: self.pid() is None, seconds, 0.002)

    def in_the_way(self) -> str:
        """The processes that delay the stop, by the names in the system."""
        children = processes_of(self.pid())
        waited_for = {pid: name for pid, name in children.items() if not NOT_IN_THE_WAY.match(name)} or children
        for pid, name in list(waited_for.items()):
            if "archiver" in name:
                waited_for.update(processes_of(pid))
        named = [f"{name.replace('postgres: ', '', 1)} (pid {pid})" for pid, name in waited_for.items()]
        return ", ".join(named) or "the server itself"

    def start(self) -> Group:
        """Starts the server and waits for an answer."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        default = f"{self.program('pg_ctl')} -D {shlex.quote(str(self.path))} -W -l {shlex.quote(str(self.log))} start"
        words = self.words()
        # The lock of a process that has just ended can fail a first start.
        for _ in range(3):
            with self.log.open("ab") as out:
                command = shlex.split(setting("START", default))
                try:
                    subprocess.run(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, timeout=120, check=False)
                except OSError as error:
                    raise Failed(f"START: {command[0]} cannot be run: {error.strerror}") from error
            until(self.pid, 5, 0.01)
            said = until(lambda: self.answering() or not self.pid(), 120, 0.02)
            if isinstance(said, Group):
                return said
            if self.pid():
                raise Blocked(f"{self.vm}: the server was started, and does not answer yet{words()}")
        raise Failed(f"{self.vm}: the server does not answer after its start{words()}")

    def answering(self) -> Group | None:
        self._note_its_log()
        group = Group([self.vm])
        return group if group.seen else None

    def be_primary_again(self) -> None:
        """Undoes a stop. The caller must know that no other member was promoted."""
        if self.pid() and not self.is_stopping():
            is_starting_as_primary = not self.standby_signal.exists()
            group = until(self.answering, 120 if is_starting_as_primary else 0, 0.02)
            if group and group.primaries():
                self.standby_signal.unlink(missing_ok=True)
                return
        if self.is_stopping():
            self.cut_off()
        self.stop(must_end=True)
        self.standby_signal.unlink(missing_ok=True)
        if not self.start().primaries():
            raise Failed(f"{self.vm}: the server was started as a primary and came up as a standby; see its log")

    def words(self) -> Callable[[], str]:
        """The reasons in the server's log, from now on, for the end of a reason."""
        self._note_its_log()
        sizes = {log: size(log) for log in self._logs}

        def said() -> str:
            self._note_its_log()
            new = [reason for log in self._logs for reason in reasons(log, sizes.get(log, 0))]
            found = new or [reason for log in self._logs for reason in reasons(log, 0)]
            # A server in another language has other words for an error.
            last = found[-3:] or [line for log in self._logs for line in lines(log, sizes.get(log, 0))[-2:]]
            return "".join(f"; {reason}" for reason in dict.fromkeys(last))

        return said

    def _note_its_log(self) -> None:
        """The files of the log: the file behind standard error, or the files of the collector."""
        pid = self.pid()
        try:
            link = Path(os.readlink(f"/proc/{pid}/fd/2"))
            if pid and link.is_file():
                self._logs.add(link)
        except OSError:
            pass
        try:
            for line in (self.path / "current_logfiles").read_text().splitlines():
                self._logs.add(self.path / line.partition(" ")[2])
        except OSError:
            pass


def timelines(control: dict[str, str]) -> tuple[int, int]:
    """The timelines of the last checkpoint and of the recovery."""
    timeline = int(control["Latest checkpoint's TimeLineID"])
    return timeline, int(control["Min recovery ending loc's timeline"]) or timeline


def position(text: str) -> int:
    """A position in the WAL, such as 3/5C001A28, as a number."""
    high, _, low = text.strip().partition("/")
    return (int(high, 16) << 32) + int(low, 16)


def size(log: Path) -> int:
    return log.stat().st_size if log.exists() else 0


def lines(log: Path, since: int) -> list[str]:
    try:
        with log.open("rb") as file:
            file.seek(max(since, log.stat().st_size - TAIL))
            return [line for line in file.read().decode(errors="replace").split("\n") if line.strip()]
    except OSError:
        return []


def reasons(log: Path, since: int) -> list[str]:
    return [match[match.lastindex or 0] for match in map(REASONS.search, lines(log, since)) if match]


def processes_of(parent: int | None) -> dict[int, str]:
    """The children of a process, and their names."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if parent_of(int(entry.name)) == parent:
                found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
        except OSError:
            continue
    return found


def parent_of(pid: int) -> int | None:
    """The server's process is the parent of every session's process."""
    try:
        # After the name, which may contain any character: the state, and the parent.
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return None


def end(pid: int, how: signal.Signals) -> None:
    try:
        os.kill(pid, how)
    except ProcessLookupError:
        pass


def replace(path: Path, text: str) -> None:
    """Writes a file as a whole, and durably."""
    beside = path.with_name(f"{path.name}.allclear")
    with beside.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)
    sync(path.parent)


def sync(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
