"""The PostgreSQL server on this VM: how it is stopped, started, and made a standby or a primary again."""

import os
import shlex
import shutil
import signal
import subprocess
import time
from pathlib import Path

from allclear_hook import Failed, Unreachable, call, members, number, setting, until
from postgresql_members import Group, literal, primary_conninfo


class Here:
    """The server on this VM, as a process and a directory."""

    def __init__(self, told):
        self.vm = told.vm
        if self.vm not in members():
            raise Failed(f"MEMBERS does not have this VM, {self.vm}")
        self.path = Path(setting("PGDATA"))
        self.standby_signal = self.path / "standby.signal"

    def program(self, name):
        version = self.path / "PG_VERSION"
        known = f"/usr/lib/postgresql/{version.read_text().strip()}/bin" if version.exists() else ""
        found = shutil.which(name, path=setting("BIN", known)) or shutil.which(name)
        beside = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
        return found or (str(beside[-1]) if beside else name)

    def is_lost(self):
        return not (self.path / "global" / "pg_control").exists()

    def pid(self):
        """Of the server that runs on this directory; it lives in it, which tells it from a stale file's."""
        try:
            pid = int((self.path / "postmaster.pid").read_text().split()[0])
            return pid if os.readlink(f"/proc/{pid}/cwd") == str(self.path.resolve()) else None
        except (OSError, ValueError, IndexError):
            return None

    def control(self):
        said = call([self.program("pg_controldata"), "-D", self.path], env={**os.environ, "LC_ALL": "C"})
        return {name: value.strip() for name, _, value in (line.partition(":") for line in said.splitlines())}

    def be_standby(self):
        with self.standby_signal.open("w") as file:
            os.fsync(file.fileno())
        directory = os.open(self.path, os.O_RDONLY)
        os.fsync(directory)
        os.close(directory)

    def follow(self, to):
        """For a server that is down what ALTER SYSTEM is for one that runs."""
        path = self.path / "postgresql.auto.conf"
        lines = path.read_text().splitlines() if path.exists() else []
        lines = [line for line in lines if not line.startswith("primary_conninfo")]
        lines.append(f"primary_conninfo = {literal(primary_conninfo(self.vm, to))}")
        path.write_text("\n".join(lines) + "\n")

    def stop(self, expendable=()):
        """Stops it fast. `expendable` are the senders of log that it would wait for when their standby hangs."""
        pid, began = self.pid(), time.monotonic()
        if pid is None:
            return
        if setting("STOP", ""):
            subprocess.Popen(shlex.split(setting("STOP")), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        else:
            os.kill(pid, signal.SIGINT)
        is_down = lambda: self.pid() is None
        if until(is_down, 1, 0.002):
            return
        for sender in expendable:
            end(sender, signal.SIGTERM)
        if not until(is_down, number("STOP_SECONDS", 15) - (time.monotonic() - began), 0.002):
            raise Unreachable(f"{self.vm}: the server did not stop within {number('STOP_SECONDS', 15):g} s")

    def start(self):
        """Starts it and waits until it answers."""
        log = Path(setting("STATE_DIR", "/var/lib/allclear-hooks")) / "postgresql.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        default = f"{self.program('pg_ctl')} -D {shlex.quote(str(self.path))} -W -l {shlex.quote(str(log))} start"
        # The lock of a process that has just ended can make a first start fail.
        for _ in range(3):
            with log.open("ab") as out:
                command = shlex.split(setting("START", default))
                subprocess.run(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, timeout=120, check=False)
            until(self.pid, 5, 0.01)
            said = until(lambda: self.answering() or not self.pid(), 120, 0.02)
            if isinstance(said, Group):
                return said
        raise Failed(f"{self.vm}: the server does not answer after its start; see {log} and its own log")

    def answering(self):
        group = Group([self.vm])
        return group if group.seen else None

    def be_primary_again(self):
        """Takes back a stop. Only for whoever knows that nobody else was promoted."""
        if self.pid():
            is_starting_as_primary = not self.standby_signal.exists()
            group = until(self.answering, 120 if is_starting_as_primary else 0, 0.02)
            if group and group.primaries():
                self.standby_signal.unlink(missing_ok=True)
                return
            try:
                self.stop()
            except Unreachable:
                os.kill(self.pid(), signal.SIGQUIT)
                until(lambda: self.pid() is None, 10)
        self.standby_signal.unlink(missing_ok=True)
        if not self.start().primaries():
            raise Failed(f"{self.vm}: the server was started as a primary and came up as a standby; see its log")


def end(pid, how):
    try:
        os.kill(pid, how)
    except ProcessLookupError:
        pass
