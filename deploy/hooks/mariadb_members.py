"""The members of a MariaDB replication, as the hooks of `mariadb.py` see them, and how they are asked."""

from allclear_hook import Blocked, Client, Failed, Memory, Unreachable, members, number, setting

LOCK = "SELECT GET_LOCK('allclear', 5) AS got"
POSITION = "SELECT @@gtid_binlog_pos AS position"
LOOK = ("SELECT @@server_id AS id, @@read_only AS read_only, @@log_bin AS log_bin, @@log_slave_updates AS passes_on,"
        " @@gtid_current_pos AS position")
END = "--allclear-end--"
DELIMITER = "$allclear$"


def option_file():
    return setting("OPTION_FILE", "/etc/allclear/mariadb.cnf")


def patience():
    return int(number("PATIENCE_SECONDS", 5))


class Server(Client):
    """A member, and the client that it is asked by."""

    def __init__(self, vm, how):
        super().__init__(vm, [
            "mariadb", f"--defaults-file={option_file()}", *how, "--batch", "--unbuffered", "--skip-reconnect",
            "--no-auto-rehash", f"--connect-timeout={patience()}", f"--delimiter={DELIMITER}"])
        self.vm = vm
        self.look = {}
        self.follows = None
        self._asked = []

    def send(self, *statements):
        """Statements in their order; the first that fails ends the client, and the rest is not run."""
        self._asked.append(len(statements))
        self.say("".join(f"{one}\n{DELIMITER}\nSELECT 1 AS `{END}`\n{DELIMITER}\n" for one in statements))

    def answer(self, seconds=None):
        """The rows of each statement of the eldest `send`."""
        return [rows(part) for part in self.hear(f"{END}\n1\n", seconds or patience(), self._asked.pop(0))]

    def ask(self, *statements, seconds=None):
        self.send(*statements)
        return self.answer(seconds)

    def one(self, statement):
        """The only value of the only row."""
        return next(iter(self.ask(statement)[0][0].values()))

    def why_it_ended(self, said):
        return super().why_it_ended([line for line in said if line.startswith("ERROR ")])

    def see(self, found):
        self.look, self.follows = found[0][0], (found[1] or [None])[0]

    @property
    def is_primary(self):
        return self.look["read_only"] in ("0", "OFF") and not self.follows

    @property
    def position(self):
        return positions(self.look["position"])

    def reaches(self, position, seconds, grace=1):
        """Whether it has all of that position, or gets there in time. A dead one is known by the grace after that."""
        found = self.ask(f"SELECT MASTER_GTID_WAIT('{position}', {seconds:.3f}) AS late", seconds=seconds + grace)
        return found[0][0]["late"] == "0"


def rows(text):
    """What the client prints in batches: a line of names, then one for each row."""
    lines = [line.split("\t") for line in text.splitlines()]
    return [dict(zip(lines[0], line)) for line in lines[1:]]


def positions(text):
    """`0-1-42,7-3-9` as {domain: number}."""
    parts = [one.strip().split("-") for one in text.split(",") if one.strip()]
    return {domain: int(number) for domain, _, number in parts}


def covers(all_of, these):
    return all(all_of.get(domain, 0) >= number for domain, number in these.items())


class Group:
    """The members that answer. As long as it is `locked`, no other hook changes what they are."""

    def __init__(self, told, locked=False, only=None, without=None):
        self.vm = told.vm
        self.lost = dict(without or {})
        if told.vm not in members():
            raise Failed(f"MEMBERS does not name {told.vm}, this VM")
        self.servers = {vm: Server(vm, over_tcp(address)) for vm, address in sorted(members().items())
                        if vm not in self.lost and only in (None, vm)}
        if locked:
            self._lock()
        self.refresh()

    def _lock(self):
        """Each in the same order: two hooks must not wait for each other. A lock ends with its connection."""
        for server in list(self):
            try:
                got = server.ask(LOCK, seconds=5 + patience())[0][0]["got"]
            except Unreachable as error:
                self._drop(server, error)
                continue
            if got != "1":
                self.close()
                raise Blocked(f"another hook works on {server.vm}")

    def refresh(self):
        for server in self:
            server.send(LOOK, "SHOW SLAVE STATUS")
        for server in list(self):
            try:
                server.see(server.answer())
            except Unreachable as error:
                self._drop(server, error)

    def _drop(self, server, error):
        del self.servers[server.vm]
        self.lost[server.vm] = str(error)

    def __iter__(self):
        return iter(self.servers.values())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        for server in self:
            server.close()

    @property
    def here(self):
        if self.vm not in self.servers:
            raise Unreachable(self.lost[self.vm])
        return self.servers[self.vm]

    def others(self, than):
        return [server for server in self if server is not than and not server.lost]

    def primary(self):
        writable = [server for server in self if server.is_primary]
        if len(writable) > 1:
            names = " and ".join(server.vm for server in writable)
            raise Failed(f"{names} are both writable; make all but one read-only, and see what they took")
        return writable[0] if writable else None


def over_tcp(address):
    host, port = address
    return [f"--host={host}", f"--port={port}", "--protocol=tcp"]


def memory():
    return Memory("mariadb")
