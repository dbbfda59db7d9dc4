"""The protocol of Redis over a socket, as far as the hooks of Redis and Sentinel need."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Sequence
from typing import Any

from allclear_hook import Rejected, Unreachable

CONNECT_SECONDS = 1.0
ANSWER_SECONDS = 1.5

Command = Sequence[object]


class Closed(Unreachable):
    """The server closed the connection."""


class Error(Unreachable):
    """The server answered with an error."""


class Refused(Error, Rejected):
    """The server refuses this client for its password or its rights, which no wait changes."""


# The first words of such answers: no password, a wrong password, a missing right, and a password for a server without
# passwords.
REFUSALS = ("NOAUTH ", "WRONGPASS ", "NOPERM ", "ERR AUTH ")


class Connection:
    """One connection. Every wait is limited."""

    def __init__(self, host: str, port: int, user: str = "", password: str = "") -> None:
        self.place = f"{host}:{port}"
        try:
            self._socket = socket.create_connection((host, port), CONNECT_SECONDS)
        except ConnectionRefusedError as error:
            raise Unreachable(f"{self.place} refuses connections") from error
        except OSError as error:
            raise Unreachable(f"{self.place} cannot be reached: {error}") from error
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.settimeout(ANSWER_SECONDS)
        self._answers = self._socket.makefile("rb")
        if password:
            self.call("AUTH", *([user] if user else []), password)

    def call(self, *words: object) -> Any:
        return self.all([words])[0]

    def all(self, commands: Sequence[Command]) -> list[Any]:
        """The answers to commands that are sent together. Raises the first error."""
        answers = self.each(commands)
        for answer in answers:
            if isinstance(answer, Error):
                raise answer
        return answers

    def each(self, commands: Sequence[Command]) -> list[Any]:
        """As `all`, but with errors among the answers."""
        try:
            self._send(b"".join(map(encoded, commands)))
            return [self._answer() for _ in commands]
        except ConnectionError as error:
            self.close()
            raise Closed(f"{self.place} closed the connection") from error
        except (OSError, ValueError) as error:
            self.close()
            raise Unreachable(f"{self.place} did not answer {commands[0][0]}: {error}") from error

    def close(self) -> None:
        self._socket.close()

    def _send(self, sent: bytes) -> None:
        try:
            self._socket.sendall(sent)
        except ConnectionError:
            # A server that rejects a client sends the reason, and closes: in protected mode, or with too many clients.
            if self._socket.recv(1, socket.MSG_PEEK) == b"":
                raise

    def _answer(self) -> Any:
        line = self._answers.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionResetError("it closed the connection")
        kind, rest = line[:1], line[1:-2].decode(errors="replace")
        if kind == b"-":
            return (Refused if rest.startswith(REFUSALS) else Error)(f"{self.place} says: {rest}")
        if kind == b"+":
            return rest
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return None if rest == "-1" else self._text(int(rest))
        if kind == b"*":
            return None if rest == "-1" else [self._answer() for _ in range(int(rest))]
        raise ValueError(f"this is not the protocol of Redis: {line[:80]!r}")

    def _text(self, length: int) -> str:
        text = self._answers.read(length + 2)
        if len(text) < length + 2:
            raise ConnectionResetError("it closed the connection")
        return text[:-2].decode(errors="replace")


def encoded(words: Command) -> bytes:
    parts = [str(word).encode() for word in words]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)


def pairs(flat: Sequence[str]) -> dict[str, str]:
    """`[name, value, name, value]`, the form of Redis, as {name: value}."""
    return dict(zip(flat[::2], flat[1::2]))


def facts(info: str) -> dict[str, str]:
    """The text of INFO as {name: value}. A value may contain any line separator except a newline."""
    return parted((line.rstrip("\r") for line in info.split("\n")), ":")


def parted(texts: Iterable[str], mark: str) -> dict[str, str]:
    """`name:value` as {name: value}; a text without the mark is ignored."""
    split = (text.partition(mark) for text in texts)
    return {name: value for name, found, value in split if found}
