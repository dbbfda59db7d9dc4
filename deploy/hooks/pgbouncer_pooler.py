"""The processes of PgBouncer, through their admin consoles."""

from __future__ import annotations

import csv
import io
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from allclear_hook import Blocked, Failed, Rejected, Unreachable, members, progress, setting
from psql import Psql, Refused


def config_for(vm: str) -> str:
    return setting("POOLER_CONFIG", "/etc/pgbouncer/primary-{vm}.ini").format(vm=vm)


class Pooler:
    """One process of PgBouncer, through its admin console."""

    def __init__(self, address: str) -> None:
        host, colon, self.port = address.rpartition(":")
        if not (colon and host and self.port.isdigit()):
            raise Failed(f"{address!r} is not the HOST:PORT of a pooler, nor the FOLDER:PORT of its Unix socket")
        self.host = host.strip("[]")
        # CSV, because clients choose their names freely.
        self.console = Psql(f"pooler {address}", self.host, int(self.port), "pgbouncer", "-Pformat=csv")

    def ask(self, command: str, seconds: float = 2, unless: str | None = None) -> str:
        """An error with the text `unless` is a success: the state is reached already."""
        self.console.send(command)
        return self.answer(seconds, unless)

    def answer(self, seconds: float = 2, unless: str | None = None) -> str:
        try:
            return self.console.answer(seconds)
        except Refused as error:
            if unless and unless in str(error):
                return ""
            raise

    def rows(self, command: str) -> list[list[str]]:
        return list(csv.reader(io.StringIO(self.ask(command), newline="")))

    def settings(self) -> dict[str, str]:
        return {row[0]: row[1] for row in self.rows("SHOW CONFIG") if len(row) > 1}

    def peers(self) -> set[str]:
        """The numbers of the processes with shared clients; PgBouncer has peers since 1.21."""
        try:
            return {row[0] for row in self.rows("SHOW PEERS")}
        except Refused:
            return set()

    def is_one_of_several(self) -> bool:
        """Whether a connection to this address reaches any of several processes (so_reuseport). Each of these processes
        has an own Unix socket, or a further port."""
        settings = self.settings()
        is_shared = not self.host.startswith("/") and self.port == settings.get("listen_port")
        return settings.get("so_reuseport", "0") not in ("0", "no", "off") and is_shared

    def point(self, vm: str) -> None:
        self.ask(f"SET conffile='{config_for(vm)}'")
        self.ask("RELOAD")
        # PgBouncer reports no error for a missing file.
        host, port = members()[vm]
        if not any(row[1:3] == [host, str(port)] for row in self.rows("SHOW DATABASES")):
            raise Refused(f"{self.console.name} has read {config_for(vm)}, and has no database at {host}:{port}")

    def resume(self) -> None:
        self.ask("RESUME", unless="not paused")

    def is_administered(self) -> bool:
        """Whether the login is an admin. The statement has no effect: no such database exists."""
        try:
            self.ask('RESUME "allclear: no such database"')
        except Refused as error:
            return "admin access needed" not in str(error)
        return True

    def databases(self) -> list[str]:
        return [row[0] for row in self.rows("SHOW DATABASES") if row[0] != "pgbouncer"]

    def clients(self, databases: list[str]) -> int:
        return sum(row[2] in databases for row in self.rows("SHOW CLIENTS"))


class Poolers:
    """All poolers of one primary, or all processes of one pooler."""

    def __init__(self, addresses: Iterable[str]) -> None:
        self.asked = {address: Pooler(address) for address in addresses}
        for pooler in self.asked.values():
            pooler.console.send("SHOW VERSION")
        # As long as for a member: a slow pooler would not be paused, and the clients of the pooler would receive
        # errors.
        ends = time.monotonic() + 4
        # The poolers without an answer, and the reasons.
        self.silent: dict[str, str] = {}
        self.rejecting: set[str] = set()
        # The poolers that answered and were not moved, and the reasons: no start of such a pooler repairs this.
        self.refusals: dict[str, str] = {}
        for address, pooler in self.asked.items():
            try:
                pooler.answer(max(0.1, ends - time.monotonic()))
            except Unreachable as error:
                progress(str(error))
                self.silent[address] = str(error)
                if isinstance(error, Rejected):
                    self.rejecting.add(address)

    def reached(self) -> list[Pooler]:
        return [pooler for address, pooler in self.asked.items() if address not in self.silent]

    def lacking(self) -> list[str]:
        """The reasons why some processes with clients cannot be reached."""
        found, numbers, peers = [], set(), set()
        for pooler in self.reached():
            if pooler.is_one_of_several():
                found.append(
                    f"{pooler.console.name} is one of several processes at this address (so_reuseport): name for each "
                    f"the address that it has alone, FOLDER:PORT of its unix_socket_dir or a port of its own"
                )
            numbers.add(pooler.settings().get("peer_id", "0"))
            peers |= pooler.peers()
        found += self.unnamed()
        if peers - numbers:
            found.append(f"the pooler's processes with peer_id {' and '.join(sorted(peers - numbers))} are not named")
        return found

    def unnamed(self) -> Iterator[str]:
        """Processes on this machine that share a port with the processes named by Unix sockets."""
        named: dict[str, set[str]] = {}
        for pooler in self.reached():
            if pooler.host.startswith("/"):
                named.setdefault(pooler.settings().get("listen_port", ""), set()).add(os.path.realpath(pooler.host))
        for port, folders in named.items():
            count = listening(port)
            if count > len(folders):
                yield (
                    f"{count} processes of a pooler listen at port {port} of this machine (so_reuseport), and"
                    f" {len(folders)} of them {'is' if len(folders) == 1 else 'are'} named"
                    f" ({', '.join(sorted(folders))}): name the FOLDER:PORT of each one's unix_socket_dir"
                )

    def check_processes(self) -> None:
        """Fails unless each process is named: clients of an unnamed process would stay at the old primary."""
        if self.lacking():
            raise Failed("; ".join(self.lacking()))

    def check_logins(self, must_move: bool) -> None:
        """Fails if a pooler refuses the login, or is not administered by it: the clients of this pooler would stay at the
        old primary. Unless the poolers must move, such a pooler is left out."""
        refused = {address: self.silent[address] for address in self.rejecting}
        for address, pooler in self.asked.items():
            if address not in self.silent and not pooler.is_administered():
                refused[address] = not_admin(pooler)
        why = "; ".join(refused.values())
        if refused and must_move:
            raise Rejected(f"{why}: correct PGUSER, PGPASSFILE or the pooler; its clients would stay at the old primary")
        for address, said in refused.items():
            if address not in self.silent:
                progress(said)
                self.silent[address] = said

    def check(self, vm: str) -> None:
        """Changes the configuration file of every pooler to this member's, while this is harmless."""
        for pooler in self.reached():
            pooler.point(vm)
            pooler.resume()

    def pause(self, seconds: float) -> None:
        """Pauses all reachable poolers. After an error some poolers may be paused: the caller resumes them."""
        ends = time.monotonic() + seconds
        for pooler in self.reached():
            pooler.console.send("PAUSE")
        for address, pooler in self.asked.items():
            if address in self.silent:
                continue
            try:
                pooler.answer(max(0.1, ends - time.monotonic()), unless="already suspended/paused")
            except Unreachable as error:
                raise Blocked(f"clients could not be paused: {error}{in_transactions(address)}") from error

    def point_and_resume(self, vm: str) -> None:
        """Lets the clients continue at this member. Poolers without an answer are tried again at the end."""
        left = [one for one in self.asked if one in self.silent or not self.lets_clients_go_on(one, vm)]
        for address in left:
            self.asked[address] = Pooler(address)
            if not self.lets_clients_go_on(address, vm):
                progress(f"pooler {address} is not pointed to {vm}, and may be paused")

    def lets_clients_go_on(self, address: str, vm: str) -> bool:
        pooler = self.asked[address]
        self.refusals.pop(address, None)
        # The clients are resumed also if the pooler cannot be pointed: they then receive errors instead of waiting.
        return self.succeeds(address, lambda: pooler.point(vm)) & self.succeeds(address, pooler.resume)

    def succeeds(self, address: str, what: Callable[[], object]) -> bool:
        try:
            what()
            return True
        except Unreachable as error:
            progress(str(error))
            if isinstance(error, (Rejected, Refused)):
                self.refusals.setdefault(address, str(error))
            return False

    def check_moved(self) -> None:
        """Fails if a pooler refused to move its clients. A pooler without an answer moves them at its next start."""
        if self.refusals:
            raise Failed(
                f"{'; '.join(self.refusals.values())}: correct PGUSER, PGPASSFILE or the pooler; its clients may be paused, "
                f"or at another member"
            )


def listening(port: str) -> int:
    """The number of sockets of this machine that share an address with this port, from the kernel's list."""
    found: Counter[str] = Counter()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        if port.isdigit() and Path(table).exists():
            words = [line.split() for line in Path(table).read_text().splitlines()[1:]]
            found.update(each[1] for each in words if each[1].endswith(f":{int(port):04X}") and each[3] == "0A")
    return max(found.values(), default=0)


def in_transactions(address: str) -> str:
    """The server processes whose transactions delay a pause, as the end of a reason."""
    try:
        pooler = Pooler(address)
        rows = list(csv.DictReader(io.StringIO(pooler.ask("\\pset tuples_only off\nSHOW SERVERS"), newline="")))
    except Unreachable:
        return ""
    pids = [row["remote_pid"] for row in rows if row.get("state") == "active" and row.get("remote_pid", "0") != "0"]
    return f"; transactions run in the server's processes {', '.join(pids)}" if pids else ""


def not_admin(pooler: Pooler) -> str:
    return f"{pooler.console.name}: {os.environ.get('PGUSER', 'the user')} is no admin of it: add it to admin_users"


def lacks(pooler: Pooler) -> Iterator[str]:
    """The missing requirements of a switch or a drain, for this process of a pooler."""
    name, settings = pooler.console.name, pooler.settings()
    if not pooler.is_administered():
        yield not_admin(pooler)
    if settings.get("pool_mode") == "session":
        yield f"{name}: pool_mode = session, in which a pause waits until all clients leave: use transaction"
    if setting("MEMBERS", ""):
        known = {tuple(row[1:3]) for row in pooler.rows("SHOW DATABASES")}
        if not any((host, str(port)) in known for host, port in members().values()):
            yield f"{name} has no database at an address of MEMBERS: write there what its configuration has"
    missing = [database for database in setting("POOLER_DATABASES", "").split() if database not in pooler.databases()]
    if missing:
        yield f"{name} has no database {' and '.join(missing)}: correct POOLER_DATABASES"
