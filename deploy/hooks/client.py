"""A database's own client program, as the connection of a hook to a server."""

from __future__ import annotations

import os
import select
import subprocess
import time
from collections.abc import Mapping, Sequence

from allclear_hook import Failed, Rejected, Unreachable, until

# Endless warnings of a server must not fill the memory.
MOST_WARNINGS = 4096


class Lost(Unreachable):
    """The connection ended: the server went down, or ended the session."""


class Client:
    """A client process for many statements: a switch has no time to start a process per statement.

    Standard output has the answers. Standard error has warnings, or the reason of an error.
    """

    def __init__(self, name: str, arguments: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        self.name, self.lost, self._has_ended = name, "", False
        self._said = b""
        self._warned = b""
        # The client has a session of its own, so a signal to the hook does not end the client during a switch. The
        # client ends with the hook, because the input ends.
        try:
            self._process = subprocess.Popen(
                arguments,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            raise Failed(f"{arguments[0]} cannot be run: {error.strerror}") from error
        assert self._process.stdin and self._process.stdout and self._process.stderr
        self._input, self._output, self._errors = self._process.stdin, self._process.stdout, self._process.stderr

    def say(self, text: str) -> None:
        self._check()
        try:
            self._input.write(text.encode())
        except BrokenPipeError:
            pass  # The output has the reason.

    def hear(self, mark: str, seconds: float, count: int = 1) -> list[str]:
        """The text before each of `count` marks. A late server is not asked again: later output would be taken for the
        answer to another statement."""
        self._check()
        end, ends = mark.encode(), time.monotonic() + seconds
        while self._said.count(end) < count:
            outputs = [one for one in (self._output, self._errors) if not one.closed]
            ready = select.select(outputs, [], [], max(0.0, ends - time.monotonic()))[0]
            if self._errors in ready:
                self._hear_warnings()
                continue
            read = os.read(self._output.fileno(), 65536) if ready else b""
            if not read:
                self._has_ended = bool(ready)
                self.lost = self._why_it_was_lost() if ready else f"did not answer within {seconds:g} s"
                self.close()
            self._check()
            self._said += read
        *parts, self._said = self._said.split(end, count)
        return [part.decode(errors="replace") for part in parts]

    def warnings(self) -> str:
        """The standard error since the last call. The warnings of a statement are complete when the answer is there."""
        while not self._errors.closed and select.select([self._errors], [], [], 0)[0]:
            self._hear_warnings()
        warned, self._warned = self._warned.decode(errors="replace"), b""
        return warned.strip()

    def _hear_warnings(self) -> None:
        read = os.read(self._errors.fileno(), 65536)
        if not read:
            self._errors.close()
        self._warned = (self._warned + read)[-MOST_WARNINGS:]

    def _why_it_was_lost(self) -> str:
        # The end of the client closes standard output and standard error.
        until(lambda: self._errors.closed or not self._hear_the_last_warnings(), 1)
        return self.why_it_ended(self.warnings().splitlines())

    def _hear_the_last_warnings(self) -> bool:
        if select.select([self._errors], [], [], 0.2)[0]:
            self._hear_warnings()
        return not self._errors.closed

    def why_it_ended(self, said: list[str]) -> str:
        """The reason, from the lines of standard error."""
        return said[-1] if said else "the connection was lost"

    def is_rejected(self) -> bool:
        """Whether the server did not let the client log in, by the reason of the loss."""
        return False

    def _check(self) -> None:
        if self.lost:
            kind = Rejected if self.is_rejected() else Lost if self._has_ended else Unreachable
            raise kind(f"{self.name}: {self.lost}")

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._input, self._output, self._errors):
            pipe.close()
