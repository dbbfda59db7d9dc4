"""The record of attempts: begun, ended, acknowledged. With a path on disk: one line of JSON for each of these, in the
format of the Rust library (src/client)."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any, Literal

from .messages import Intent, Mode, StepMessage
from .outcome import DONE, NOT_DONE, STALE, Outcome, blocked, unknown

# Acknowledged attempts beyond this number are removed, the oldest first.
REMEMBERED = 1000
# The maximum of running and unacknowledged attempts; further attempts are blocked.
OPEN = 64
# A file with more lines is replaced by a new file with the recorded attempts.
LINES = 8000

# The purpose of an attempt; the name of a Hook's function.
Act = Literal["run", "confirm", "undo", "dry_run"]
# One line of the file: {kind: facts}.
Line = dict[str, dict[str, Any]]

_KEYS = {
    "journal": {"version"},
    "begun": {"attempt", "step", "act", "event", "vm", "fence"},
    "ended": {"attempt", "outcome", "reason"},
    "acknowledged": {"attempt"},
}
_ACTS: dict[int, Act] = {Intent.RUN: "run", Intent.CONFIRM: "confirm", Intent.UNDO: "undo"}


class JournalError(Exception):
    """The journal is unusable: the file cannot be read or written, or another process uses the file. The text has the
    reason."""


@dataclass
class Record:
    """The record of one attempt."""

    attempt: str
    step: str
    act: Act
    # Event and VM. Fences are compared within the scope only: of different scopes, a lower fence may come later.
    scope: tuple[str, str]
    fence: tuple[int, int]
    outcome: Outcome | None = None
    is_acknowledged: bool = False
    # A previous run of this process began the attempt, and did not end the attempt.
    is_interrupted: bool = False

    @property
    def is_open(self) -> bool:
        return not self.is_acknowledged and not self.is_interrupted

    def begun(self) -> Line:
        event, vm = self.scope
        told = {"attempt": self.attempt, "step": self.step, "act": self.act, "event": event, "vm": vm}
        return {"begun": {**told, "fence": list(self.fence)}}


def act_of(step: StepMessage) -> Act | None:
    """run, confirm, undo or dry_run; None for an unknown intent of a newer replica."""
    if step.intent not in _ACTS or step.mode not in list(Mode):
        return None
    return "dry_run" if step.mode == Mode.DRY_RUN else _ACTS[step.intent]


def ended(attempt: str, outcome: Outcome) -> Line:
    return {"ended": {"attempt": attempt, "outcome": outcome.word, "reason": outcome.reason}}


class Journal:
    """The records of all attempts, in memory."""

    def __init__(self) -> None:
        # by attempt, in the order of receipt
        self.records: dict[str, Record] = {}

    def receive(self, step: StepMessage, act: Act) -> Literal["begin", "known"] | Outcome:
        """`begin` for a new attempt, `known` for a running or ended attempt, or an outcome if the journal is full."""
        known = self.records.get(step.attempt)
        if known:
            if known.is_interrupted:
                known.outcome, known.is_interrupted = _interrupted(), False
            known.is_acknowledged = False
            return "known"
        if len(self.open()) >= OPEN:
            return blocked(f"{OPEN} attempts are open at this workload")
        fence = (step.fence.term, step.fence.sequence)
        scope = (step.event.id, step.vm)
        is_stale = any(record.scope == scope and record.fence > fence for record in self.records.values())
        self._begin(step.attempt, step.step, act, scope, fence)
        if is_stale:
            self.end(step.attempt, STALE)
            return "known"
        return "begin"

    def _begin(self, attempt: str, step: str, act: Act, scope: tuple[str, str], fence: tuple[int, int]) -> None:
        if len(self.records) >= REMEMBERED:
            oldest = next((record for record in self.records.values() if not record.is_open), None)
            if oldest:
                del self.records[oldest.attempt]
        self.records[attempt] = Record(attempt, step, act, scope, fence)

    def end(self, attempt: str, outcome: Outcome) -> None:
        if attempt in self.records:
            self.records[attempt].outcome = outcome

    def acknowledge(self, attempt: str) -> bool:
        """Whether the acknowledgement is new."""
        record = self.records.get(attempt)
        if not record or record.outcome is None or record.is_acknowledged:
            return False
        record.is_acknowledged = True
        return True

    def is_turn_of(self, attempt: str) -> bool:
        """Whether all earlier attempts at the same step have ended."""
        return all(record.outcome or record.is_interrupted for record in self._earlier(attempt))

    def standing(self, attempt: str) -> Outcome | None:
        """The state of the step before this attempt: done or not done, or unknown after a possible partial effect. None
        without an earlier attempt."""
        standing: Outcome | None = None
        for record in self._earlier(attempt):
            act, outcome = record.act, record.outcome
            if act in ("run", "confirm") and outcome == DONE:
                standing = DONE
            elif (act, outcome) in (("undo", DONE), ("confirm", NOT_DONE)):
                # a step is not done any more after an undo, or after a confirm without the effect
                standing = NOT_DONE
            elif act in ("run", "undo") and outcome is None:
                standing = _interrupted()
            elif act in ("run", "undo") and outcome and outcome.word not in ("blocked", "not_applicable", "stale"):
                standing = outcome
        return standing

    def _earlier(self, attempt: str) -> Iterator[Record]:
        step = self.records[attempt].step
        for record in self.records.values():
            if record.attempt == attempt:
                return
            if record.step == step:
                yield record

    def open(self) -> list[Record]:
        """The attempts in `Hello`: running attempts, and all unacknowledged ends."""
        return [record for record in self.records.values() if record.is_open]

    def lines(self) -> list[Line]:
        """All records, as at the begin of a journal file."""
        lines: list[Line] = [{"journal": {"version": 1}}]
        for record in self.records.values():
            lines.append(record.begun())
            if record.outcome:
                lines.append(ended(record.attempt, record.outcome))
            if record.is_acknowledged:
                lines.append({"acknowledged": {"attempt": record.attempt}})
        return lines

    @classmethod
    def read(cls, lines: Iterable[Line]) -> Journal:
        """The journal of these lines. Raises ValueError, TypeError, KeyError or AttributeError for any other line."""
        journal = cls()
        for line in lines:
            [(what, told)] = line.items()
            if told.keys() != _KEYS[what]:
                raise ValueError(f"{line} is no line of a journal")
            if what == "journal":
                if told["version"] != 1:
                    raise ValueError(f"it has version {told['version']}, this program knows 1")
            elif what == "begun":
                scope = (told["event"], told["vm"])
                journal._begin(told["attempt"], told["step"], told["act"], scope, tuple(told["fence"]))
            elif what == "ended":
                journal.end(told["attempt"], Outcome(told["outcome"], told["reason"]))
            else:
                journal.acknowledge(told["attempt"])
        for record in journal.records.values():
            record.is_interrupted = record.outcome is None
        return journal


def _interrupted() -> Outcome:
    return unknown("the workload was restarted while it ran")


class File:
    """A journal on disk: lines are appended and synced, and from time to time a new file replaces the old file."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        try:
            if self.path.is_dir():
                raise JournalError(f"the journal {path} is a directory: give a file, such as {self.path}/NAME.journal")
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # held until the end of the process
            self._lock = FileIO(f"{path}.lock", "a")
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self._lock.close()
                text = f"the journal {path} is in use by another process; give each workload its own"
                raise JournalError(text) from None
            self._file: FileIO | None = None
            self._lines, self._is_torn = 0, False
            self.journal = self._read()
            self._replace(self.journal.lines())
        except OSError as error:
            raise JournalError(f"cannot use the journal {path}: {error}") from error

    def _read(self) -> Journal:
        try:
            text = self.path.read_bytes()
        except FileNotFoundError:
            return Journal()
        try:
            # an incomplete last line was interrupted by a kill, before any action
            lines = [json.loads(line) for line in text[: text.rfind(b"\n") + 1].splitlines()]
            if not lines or "journal" not in lines[0]:
                raise ValueError("it does not begin as a journal does")
            return Journal.read(lines)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            self._lock.close()
            raise JournalError(
                f"the journal {self.path} cannot be read: {error}; it tells what was done already, so it is not taken "
                "for an empty one: move it away if hooks may be run again"
            ) from error

    def append(self, lines: list[Line], whole: Callable[[], list[Line]]) -> None:
        """The lines are on disk at the return. `whole()` returns all earlier lines."""
        if self._file is None or self._is_torn or self._lines + len(lines) > LINES:
            self._replace(whole() + lines)
            return
        self._is_torn = True
        self._write(self._file, lines)
        self._is_torn = False
        self._lines += len(lines)

    def _replace(self, lines: list[Line]) -> None:
        """A crash leaves the complete old file or the complete new file."""
        following = f"{self.path}.next"
        with open(following, "wb", buffering=0) as file:
            self._write(file, lines)
        os.replace(following, self.path)
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        self.close_file()
        self._file = FileIO(self.path, "a")
        self._lines, self._is_torn = len(lines), False

    @staticmethod
    def _write(file: FileIO, lines: list[Line]) -> None:
        rest = memoryview("".join(json.dumps(line) + "\n" for line in lines).encode())
        while rest:
            rest = rest[file.write(rest) :]
        os.fsync(file.fileno())

    def close_file(self) -> None:
        if self._file:
            self._file.close()

    def close(self) -> None:
        """From now on another process may use the journal."""
        self.close_file()
        self._lock.close()
