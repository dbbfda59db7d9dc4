"""One Redis server and its own report, for the hooks of `redis_hook.py`."""

from __future__ import annotations

import functools
import os
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import resp
from allclear_hook import Failed, Unreachable

# All commands of all steps. Within MULTI a server refuses a command without the right at once.
NEEDED: Sequence[resp.Command] = [
    ("INFO", "replication"),
    ("ROLE",),
    ("CONFIG", "GET", "dir"),
    ("CONFIG", "SET", "replica-priority", "100"),
    ("CONFIG", "REWRITE"),
    ("REPLICAOF", "NO", "ONE"),
    ("CLIENT", "LIST"),
    ("CLIENT", "PAUSE", "1", "WRITE"),
    ("CLIENT", "UNPAUSE"),
    ("CLIENT", "KILL", "TYPE", "normal"),
]

# Commands whose subcommands are separate rights.
DIVIDED = ("CONFIG", "CLIENT")


def secret(name: str) -> str:
    """`NAME`, or the content of the file `NAME_FILE`."""
    file = os.environ.get(f"{name}_FILE")
    try:
        return Path(file).read_text().strip() if file else os.environ.get(name, "")
    except OSError as error:
        raise Failed(f"{name}_FILE cannot be read: {error}") from error


@functools.cache
def addresses(host: str) -> frozenset[str]:
    """All addresses of a host, so that a name and an address of the host have a common element."""
    try:
        found = {str(each[4][0]).partition("%")[0] for each in socket.getaddrinfo(host, None)}
    except OSError:
        found = set()
    return frozenset({host.lower()} | {address.replace("::ffff:", "") for address in found})


class Server:
    """A Redis or a Sentinel. Connects at the first request, and again after a lost connection."""

    def __init__(self, vm: str, host: str, port: int, kind: str) -> None:
        self.vm, self.host, self.port, self.kind = vm, host, port, kind
        self._connection: resp.Connection | None = None

    def __str__(self) -> str:
        return self.vm

    def call(self, *words: object) -> Any:
        return self.all([words])[0]

    def all(self, commands: Sequence[resp.Command]) -> list[Any]:
        try:
            return self._ask(commands)
        except resp.Closed:
            # A Sentinel that changes the role of a Redis closes all connections. A repeated query is harmless.
            return self._ask(commands)

    def _ask(self, commands: Sequence[resp.Command]) -> list[Any]:
        connection = self._connected()
        try:
            return connection.all(commands)
        except resp.Error:
            raise
        except Unreachable:
            self._connection = None
            raise

    def _connected(self) -> resp.Connection:
        if self._connection is None:
            user, password = os.environ.get(f"{self.kind}_USER", ""), secret(f"{self.kind}_PASSWORD")
            self._connection = resp.Connection(self.host, self.port, user, password)
        return self._connection

    def is_at(self, place: tuple[str, int] | None) -> bool:
        """Whether this (host, port), from a server's report, is this server."""
        return place is not None and place[1] == self.port and bool(addresses(place[0]) & addresses(self.host))


class View:
    """A member's report: INFO replication."""

    def __init__(self, member: Server, info: dict[str, str]) -> None:
        try:
            self.is_primary = info["role"] == "master"
            self.follows = None if self.is_primary else (info["master_host"], int(info["master_port"]))
            self.offset = int(info["master_repl_offset" if self.is_primary else "slave_repl_offset"])
            self.history = info["master_replid"]
            self.former = info["master_replid2"]
            # The former history is part of this history up to this offset.
            self.branched = int(info["second_repl_offset"])
        except (KeyError, ValueError) as error:
            raise Unreachable(f"{member}: INFO replication is not what a Redis says: {error}") from error
        self.is_linked = info.get("master_link_status") == "up" and info.get("master_sync_in_progress") == "0"
        self.priority = int(info.get("slave_priority", 1))
        lines = (info[f"slave{number}"] for number in range(len(info)) if f"slave{number}" in info)
        self.replicas = [resp.parted(line.split(","), "=") for line in lines]

    def has(self, history: str, offset: int) -> bool:
        """Whether the member has the writes of a history up to this offset."""
        if self.history == history:
            return self.offset >= offset
        return self.former == history and self.branched > offset

    def holds_all_of(self, other: View) -> bool:
        return self.has(other.history, other.offset)

    def beyond(self, ahead: View, primary: Server) -> str:
        """The writes that this member has and that primary does not have, in words."""
        if self.history in (ahead.history, ahead.former):
            end = ahead.offset if self.history == ahead.history else ahead.branched - 1
            return f"has {self.offset - end} bytes of writes that {primary} never got"
        return f"has another history than {primary}, and perhaps writes that {primary} never got"


class Member(Server):
    def __init__(self, vm: str, host: str, port: int) -> None:
        super().__init__(vm, host, port, "REDIS")

    def info(self, section: str) -> dict[str, str]:
        return resp.facts(self.call("INFO", section))

    def look(self) -> View:
        return View(self, self.info("replication"))

    def entry(self, view: View) -> dict[str, str] | None:
        """This member in the list of replicas of the primary of this view, or `None`."""
        mine = (each for each in view.replicas if self.is_at((each.get("ip", ""), int(each.get("port", 0)))))
        return next(mine, None)

    def follow(self, primary: Server) -> None:
        self._change(("REPLICAOF", primary.host, primary.port))

    def lead(self) -> None:
        self._change(("REPLICAOF", "NO", "ONE"))

    def step_down_for(self, successor: Server) -> View:
        """Becomes a replica, and returns the last view as a primary: no write comes between the two."""
        self.call("PING")
        return View(self, resp.facts(self._change(("REPLICAOF", successor.host, successor.port))))

    def _change(self, change: resp.Command) -> str:
        """Changes the role and writes the configuration file in one transaction: a restarted server has both changes or
        none. Returns the view before the change."""
        commands: list[resp.Command] = [("MULTI",), ("INFO", "replication"), change, ("CONFIG", "REWRITE"), ("EXEC",)]
        connection = self._connected()
        try:
            info, *changed = connection.all(commands)[-1]
        except resp.Error:
            # A refused command ends the transaction.
            raise
        except Unreachable:
            # The result is unknown, so the command is not repeated.
            self._connection = None
            raise
        for answer in (info, *changed):
            if isinstance(answer, resp.Error):
                raise answer
        return str(info)

    def config(self, name: str) -> str:
        return resp.pairs(self.call("CONFIG", "GET", name)).get(name, "")

    def send_clients_away(self) -> None:
        """Disconnects the clients, as Sentinel does: a client that returns asks for the primary again."""
        for kind in ("normal", "pubsub"):
            self.call("CLIENT", "KILL", "TYPE", kind)

    def watchers(self) -> list[str]:
        """The addresses of Sentinels, which name their connections."""
        clients = [resp.parted(line.split(" "), "=") for line in self.call("CLIENT", "LIST").split("\n")]
        return sorted({each["addr"] for each in clients if each.get("name", "").startswith("sentinel-")})

    def is_empty(self) -> bool:
        return not self.info("keyspace")

    def refuses(self) -> str:
        """The necessary commands that this server refuses, with the reason for the first command."""
        answers = self._connected().each([("MULTI",), *NEEDED, ("DISCARD",)])[1:]
        refused = [(words, answer) for words, answer in zip(NEEDED, answers) if isinstance(answer, resp.Error)]
        names = ", ".join(" ".join(map(str, words[: 1 + (words[0] in DIVIDED)])) for words, _ in refused)
        return f"{names}: {refused[0][1]}" if refused else ""

    def why_unlinked(self, primary: Server) -> Unreachable | None:
        """The primary's answer to this replica's own user and password; None if the login succeeds."""
        try:
            user, password = self.config("masteruser"), self.config("masterauth")
            connection = resp.Connection(primary.host, primary.port, user if password else "", password)
            connection.all([("PING",), ("REPLCONF", "capa", "psync2")])
            connection.close()
        except Unreachable as error:
            return type(error)(f"by its masteruser and masterauth, {error}")
        return None
