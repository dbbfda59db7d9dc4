"""The protocol of Redis over a socket, as much of it as the hooks of Redis and Sentinel need."""

import socket

from allclear_hook import Unreachable

CONNECT_SECONDS = 1.0
ANSWER_SECONDS = 1.5


class Refused(Unreachable):
    """The server is there and does not listen: nothing of it is left that could still act."""


class Closed(Unreachable):
    """The server closed the connection."""


class Error(Unreachable):
    """The server answered with an error."""


class Connection:
    """One connection. Every wait has an end."""

    def __init__(self, host, port, user="", password=""):
        self.place = f"{host}:{port}"
        try:
            self._socket = socket.create_connection((host, port), CONNECT_SECONDS)
        except ConnectionRefusedError as error:
            raise Refused(f"{self.place} refuses connections") from error
        except OSError as error:
            raise Unreachable(f"{self.place} cannot be reached: {error}") from error
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.settimeout(ANSWER_SECONDS)
        self._answers = self._socket.makefile("rb")
        if password:
            self.call("AUTH", *([user] if user else []), password)

    def call(self, *words):
        return self.all([words])[0]

    def all(self, commands):
        """The answers to commands that are sent together. The first error among them is raised."""
        try:
            self._socket.sendall(b"".join(map(encoded, commands)))
            answers = [self._answer() for _ in commands]
        except ConnectionError as error:
            self.close()
            raise Closed(f"{self.place} closed the connection") from error
        except OSError as error:
            self.close()
            raise Unreachable(f"{self.place} did not answer {commands[0][0]}: {error}") from error
        for answer in answers:
            if isinstance(answer, Error):
                raise answer
        return answers

    def close(self):
        self._socket.close()

    def _answer(self):
        line = self._answers.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionResetError("it closed the connection")
        kind, rest = line[:1], line[1:-2].decode(errors="replace")
        if kind == b"-":
            return Error(f"{self.place} says: {rest}")
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return None if rest == "-1" else self._answers.read(int(rest) + 2)[:-2].decode(errors="replace")
        if kind == b"*":
            return None if rest == "-1" else [self._answer() for _ in range(int(rest))]
        return rest


def encoded(words):
    parts = [str(word).encode() for word in words]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)


def pairs(flat):
    """`[name, value, name, value]` as Redis answers it, as {name: value}."""
    return dict(zip(flat[::2], flat[1::2]))


def facts(info):
    """What INFO says, as {name: value}."""
    return dict(line.split(":", 1) for line in info.splitlines() if ":" in line)
