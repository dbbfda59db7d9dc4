"""The members of a MariaDB replication, for the hooks of `mariadb.py`, and their queries."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from allclear_hook import Blocked, Failed, Memory, Rejected, Told, Unreachable, members, number, setting
from client import Client

if TYPE_CHECKING:
    from typing_extensions import Self

Row = dict[str, str]

LOCK = "SELECT GET_LOCK('allclear', 5) AS got"
# The comment of the schema allclear while the copy of lost data is incomplete. A separate schema would have to be
# dropped: a server that is killed during the drop writes the drop into its binlog at the next start, whatever the
# session had set about binlogs, and then has an additional transaction.
COPYING = "half of a copy"
LOOK = (
    "SELECT @@server_id AS id, @@read_only AS read_only, @@log_bin AS log_bin, @@log_slave_updates AS passes_on,"
    " @@gtid_current_pos AS position, @@gtid_binlog_pos AS binlog, @@gtid_binlog_state AS state,"
    " @@gtid_slave_pos AS replicated, @@datadir AS datadir, @@socket AS socket,"
    " (SELECT COUNT(*) FROM information_schema.schemata"
    f" WHERE schema_name = 'allclear' AND schema_comment = '{COPYING}') AS copying"
)
FOLLOWS = "SHOW ALL SLAVES STATUS"
# With a mount point as data directory, the server takes this folder for a schema, unless ignore_db_dirs names the
# folder.
LOST_AND_FOUND = "#mysql50#lost+found"
DELIMITER = "$allclear$"
# The escapes of `--batch` for the ends of fields and rows.
ESCAPED = re.compile(r"\\(.)")
MEANT = {"n": "\n", "t": "\t", "0": "\0"}
# Access denied, to a schema or a table too, for lack of a privilege, or by the plugin of the account; a host without
# permission. Waiting grants no right.
REJECTED = (1044, 1045, 1130, 1142, 1143, 1227, 1698)
# Those of a login.
LOGIN = (1045, 1130, 1698)
ERROR = re.compile(r"ERROR (\d+) \((\w+)\)(?: at line \d+)?: ")


def option_file() -> str:
    return setting("OPTION_FILE", "/etc/allclear/mariadb.cnf")


def patience() -> int:
    return int(number("PATIENCE_SECONDS", 5))


def one_line(words: str) -> str:
    """A reason is one line, whatever the server's text is."""
    return " ".join(words.split())


class Server(Client):
    """A member, and the client for its queries."""

    def __init__(self, vm: str, how: Sequence[str], options: str = "") -> None:
        super().__init__(
            vm,
            [
                "mariadb",
                options or f"--defaults-file={option_file()}",
                *how,
                "--batch",
                "--unbuffered",
                "--skip-reconnect",
                "--no-auto-rehash",
                "--default-character-set=utf8mb4",
                f"--connect-timeout={patience()}",
                f"--delimiter={DELIMITER}",
            ],
        )
        self.vm = vm
        # The place of the user and the password.
        self.login = "" if options else f"[client] of {option_file()}"
        self.look: Row = {}
        # The connection without a name, and the names of further connections.
        self.follows: Row | None = None
        self.named: list[str] = []
        # The number of the error that ended the client.
        self.error = 0
        self._asked: list[int] = []
        # A random mark, which no value can contain.
        self._end = f"end-{secrets.token_hex(8)}"

    def send(self, *statements: str) -> None:
        """Sends statements in order. The first error ends the client, and the rest does not run."""
        self._asked.append(len(statements))
        self.say("".join(f"{one}\n{DELIMITER}\nSELECT 1 AS `{self._end}`\n{DELIMITER}\n" for one in statements))

    def answer(self, seconds: float | None = None) -> list[list[Row]]:
        """The rows of each statement of the oldest `send`."""
        return [rows(part) for part in self.hear(f"{self._end}\n1\n", seconds or patience(), self._asked.pop(0))]

    def ask(self, *statements: str, seconds: float | None = None) -> list[list[Row]]:
        self.send(*statements)
        return self.answer(seconds)

    def one(self, statement: str, seconds: float | None = None) -> str:
        """The only value of the only row."""
        return next(iter(self.ask(statement, seconds=seconds)[0][0].values()))

    def is_rejected(self) -> bool:
        return self.error in REJECTED

    def why_it_ended(self, said: list[str]) -> str:
        """An error may have several lines, and warnings at log-in may precede the error."""
        words = one_line(" ".join(said))
        found = ERROR.search(words)
        if not found:
            return words or "the connection was lost"
        self.error = int(found[1])
        repair = f"; mend the account, or {self.login}" if self.login and self.error in LOGIN else ""
        return f"error {found[1]}: {words[found.end() :]}{repair}"

    def look_again(self) -> None:
        self.see(self.ask(LOOK, FOLLOWS))

    def see(self, found: list[list[Row]]) -> None:
        self.look = found[0][0]
        connections = {row["Connection_name"]: row for row in found[1]}
        self.follows = connections.pop("", None)
        self.named = sorted(connections)

    @property
    def is_writable(self) -> bool:
        return self.look["read_only"] in ("0", "OFF")

    @property
    def is_primary(self) -> bool:
        return self.is_writable and not self.follows

    @property
    def is_copying(self) -> bool:
        return self.look["copying"] != "0"

    @property
    def position(self) -> dict[str, int]:
        return positions(highest(self.look["binlog"], self.look["position"]))

    def where(self) -> str:
        """The present position: from the binlog, which contains all passed-on transactions, and from the slave
        position, which has domains without writes since the begin of the binlog."""
        found = self.ask("SELECT @@gtid_binlog_pos AS binlog, @@gtid_current_pos AS position")[0][0]
        return highest(found["binlog"], found["position"])

    def reaches(self, position: str, seconds: float, grace: float = 1) -> bool:
        """Whether the server has this position, or reaches the position in time. After the grace time the server counts
        as absent."""
        statement = f"SELECT MASTER_GTID_WAIT('{position}', {seconds:.3f}) AS late"
        return self.one(statement, seconds=seconds + grace) == "0"


def rows(text: str) -> list[Row]:
    """The client's batch output: a line of names, then a line for each row. Tabs end fields and newlines end rows; both
    are escaped inside. No other character ends a field or a row."""
    lines = [[meant(field) for field in line.split("\t")] for line in text[:-1].split("\n")] if text else []
    return [dict(zip(lines[0], line)) for line in lines[1:]]


def meant(field: str) -> str:
    return ESCAPED.sub(lambda found: MEANT.get(found[1], found[1]), field)


def listed(gtids: str) -> list[str]:
    return [one.strip() for one in gtids.split(",") if one.strip()]


def positions(gtids: str) -> dict[str, int]:
    """`0-1-42,7-3-9` as {domain: number}."""
    parts = [one.split("-") for one in listed(gtids)]
    return {domain: int(number) for domain, _, number in parts}


def highest(*gtids: str) -> str:
    """The last transaction of each domain in several positions."""
    last = {one.split("-")[0]: one for one in sorted(listed(",".join(gtids)), key=lambda one: int(one.split("-")[2]))}
    return ",".join(last.values())


def covers(all_of: Mapping[str, int], these: Mapping[str, int]) -> bool:
    return all(all_of.get(domain, 0) >= number for domain, number in these.items())


def errant(server: Server, primary: Server) -> list[str]:
    """Transactions of this member that the primary never had. Numbers alone do not show this, because a domain counts
    the transactions of all members. Transactions before the primary's own binlog are not visible in its state.

    Transactions that the member has received and not applied count too: a change of the primary removes the relay log, and
    with semi-synchronous replication a client may have the acknowledgment."""
    known = {tuple(one.split("-")[:2]): int(one.split("-")[2]) for one in listed(primary.look["state"])}
    replicated = positions(primary.look["replicated"])
    found = []
    received = listed(server.follows.get("Gtid_IO_Pos", "")) if server.follows else []
    for one in dict.fromkeys([*listed(server.look["state"]), *received]):
        domain, by, count = one.split("-")
        least = known.get((domain, by), replicated.get(domain, 0))
        if int(count) > least:
            found.append(one)
    return found


class Group:
    """The members that answer. While `locked`, no other hook changes their roles."""

    def __init__(
        self, told: Told, locked: bool = False, only: str | None = None, without: Mapping[str, str] | None = None
    ) -> None:
        self.vm = told.vm
        # The members without an answer, and the members that the caller left out: only the former may be the primary.
        self.lost = dict(without or {})
        self.left_out = set(self.lost)
        self.rejecting: set[str] = set()
        if told.vm not in members():
            raise Failed(f"MEMBERS does not name {told.vm}, this VM")
        self.servers = {
            vm: Server(vm, over_tcp(address))
            for vm, address in sorted(members().items())
            if vm not in self.lost and only in (None, vm)
        }
        if locked:
            self._lock()
        self.refresh()

    def _lock(self) -> None:
        """Locks in one order, so two hooks do not wait for each other. A lock ends with its connection."""
        for server in list(self):
            try:
                got = server.one(LOCK, seconds=5 + patience())
            except Unreachable as error:
                self._drop(server, error)
                continue
            if got != "1":
                self.close()
                raise Blocked(f"another hook works on {server.vm}")

    def refresh(self) -> None:
        for server in self:
            server.send(LOOK, FOLLOWS)
        for server in list(self):
            try:
                server.see(server.answer())
            except Unreachable as error:
                self._drop(server, error)

    def _drop(self, server: Server, error: Unreachable) -> None:
        del self.servers[server.vm]
        self.lost[server.vm] = str(error)
        if isinstance(error, Rejected):
            self.rejecting.add(server.vm)

    def __iter__(self) -> Iterator[Server]:
        return iter(self.servers.values())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for server in self:
            server.close()

    @property
    def silent(self) -> dict[str, str]:
        return {vm: why for vm, why in self.lost.items() if vm not in self.left_out}

    @property
    def here(self) -> Server:
        if self.vm not in self.servers:
            raise (Rejected if self.vm in self.rejecting else Unreachable)(self.lost[self.vm])
        return self.servers[self.vm]

    def others(self, than: Server) -> list[Server]:
        return [server for server in self if server is not than and not server.lost]

    def primary(self) -> Server | None:
        """The only writable member. While a member is silent, `doubt` tells whether the writable member may be a former
        primary."""
        writable = [server for server in self if server.is_primary]
        if len(writable) > 1:
            names = " and ".join(server.vm for server in writable)
            raise Failed(f"{names} are both writable; make all but one read-only, and see what they took")
        return writable[0] if writable else None


def over_tcp(address: tuple[str, int]) -> list[str]:
    host, port = address
    return [f"--host={host}", f"--port={port}", "--protocol=tcp"]


def memory() -> Memory:
    return Memory("mariadb")
