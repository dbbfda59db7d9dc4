"""What is remembered of attempts: which were begun, how they ended, and which ends are acknowledged. On disk, where a
path is given: one line of JSON for each of these, the same as the Rust library writes (src/workload)."""

import fcntl
import json
import os
from dataclasses import dataclass
from pathlib import Path

from .messages import Intent, Mode
from .outcome import DONE, NOT_DONE, STALE, Outcome, blocked, unknown

# Acknowledged attempts are forgotten beyond this number, the oldest first.
REMEMBERED = 1000
# As many may run or wait to be acknowledged; who asks for more is told to come later.
OPEN = 64
# The file is written anew when it has more lines than this, and holds what is remembered.
LINES = 8000

_KEYS = {
    "journal": {"version"},
    "begun": {"attempt", "step", "act", "event", "vm", "fence"},
    "ended": {"attempt", "outcome", "reason"},
    "acknowledged": {"attempt"},
}
_ACTS = {Intent.RUN: "run", Intent.CONFIRM: "confirm", Intent.UNDO: "undo"}


class JournalError(Exception):
    pass


@dataclass
class Record:
    attempt: str
    step: str
    act: str
    # Event and VM. Fences are compared within it: of different ones, a lower one may come later.
    scope: tuple
    fence: tuple
    outcome: Outcome | None = None
    is_acknowledged: bool = False
    # A former life of this process had begun it, and did not live to its end.
    is_interrupted: bool = False

    @property
    def is_open(self):
        return not self.is_acknowledged and not self.is_interrupted

    def begun(self):
        event, vm = self.scope
        told = {"attempt": self.attempt, "step": self.step, "act": self.act, "event": event, "vm": vm}
        return {"begun": {**told, "fence": list(self.fence)}}


def act_of(step):
    """run, confirm, undo or dry_run; None for what a newer replica may mean."""
    if step.intent not in _ACTS or step.mode not in list(Mode):
        return None
    return "dry_run" if step.mode == Mode.DRY_RUN else _ACTS[step.intent]


def ended(attempt, outcome):
    return {"ended": {"attempt": attempt, "outcome": outcome.word, "reason": outcome.reason}}


class Journal:
    def __init__(self):
        # by attempt, in the order in which they were received
        self.records = {}

    def receive(self, step, act):
        """`begin` for what is new, `known` for what runs or has ended, or an outcome for which there is no room."""
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

    def _begin(self, attempt, step, act, scope, fence):
        if len(self.records) >= REMEMBERED:
            oldest = next((record for record in self.records.values() if not record.is_open), None)
            if oldest:
                del self.records[oldest.attempt]
        self.records[attempt] = Record(attempt, step, act, scope, fence)

    def end(self, attempt, outcome):
        if attempt in self.records:
            self.records[attempt].outcome = outcome

    def acknowledge(self, attempt):
        """Whether that is news."""
        record = self.records.get(attempt)
        if not record or record.outcome is None or record.is_acknowledged:
            return False
        record.is_acknowledged = True
        return True

    def is_turn_of(self, attempt):
        """Whether everything that was received earlier for the same step has ended."""
        return all(record.outcome or record.is_interrupted for record in self._earlier(attempt))

    def standing(self, attempt):
        """How its step stands before this attempt: done or not, or unknown where an effect may have been had in part.
        None where it was never begun."""
        standing = None
        for record in self._earlier(attempt):
            act, outcome = record.act, record.outcome
            if act in ("run", "confirm") and outcome == DONE:
                standing = DONE
            elif (act, outcome) in (("undo", DONE), ("confirm", NOT_DONE)):
                # what was taken back, or looked at and found missing, is not done any more
                standing = NOT_DONE
            elif act in ("run", "undo") and outcome is None:
                standing = _interrupted()
            elif act in ("run", "undo") and outcome.word not in ("blocked", "not_applicable", "stale"):
                standing = outcome
        return standing

    def _earlier(self, attempt):
        step = self.records[attempt].step
        for record in self.records.values():
            if record.attempt == attempt:
                return
            if record.step == step:
                yield record

    def open(self):
        """What a replica is told when the workload dials: what runs, and every end that was not acknowledged."""
        return [record for record in self.records.values() if record.is_open]

    def lines(self):
        """Everything, as the file of a journal begins."""
        lines = [{"journal": {"version": 1}}]
        for record in self.records.values():
            lines.append(record.begun())
            if record.outcome:
                lines.append(ended(record.attempt, record.outcome))
            if record.is_acknowledged:
                lines.append({"acknowledged": {"attempt": record.attempt}})
        return lines

    @classmethod
    def read(cls, lines):
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


def _interrupted():
    return unknown("the workload was restarted while it ran")


class File:
    """A journal on disk: lines that are appended and synced, and now and then a whole new file in place of the old."""

    def __init__(self, path):
        self.path = Path(path)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # held as long as the process lives
            self._lock = open(f"{path}.lock", "a")
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self._lock.close()
                text = f"the journal {path} is in use by another process; give each workload its own"
                raise JournalError(text) from None
            self._file = None
            self.journal = self._read()
            self._replace(self.journal.lines())
        except OSError as error:
            raise JournalError(f"cannot use the journal {path}: {error}") from error

    def _read(self):
        try:
            text = self.path.read_bytes()
        except FileNotFoundError:
            return Journal()
        try:
            # what follows the last line's end was being written when the process was killed: nothing was done on it yet
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

    def append(self, lines, whole):
        """On disk when it returns. `whole()` is everything that was written before."""
        if self._is_torn or self._lines + len(lines) > LINES:
            return self._replace(whole() + lines)
        self._is_torn = True
        self._write(self._file, lines)
        self._is_torn = False
        self._lines += len(lines)

    def _replace(self, lines):
        """A crash leaves the old file or the new one, whole."""
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
        self._file = open(self.path, "ab", buffering=0)
        self._lines, self._is_torn = len(lines), False

    @staticmethod
    def _write(file, lines):
        rest = memoryview("".join(json.dumps(line) + "\n" for line in lines).encode())
        while rest:
            rest = rest[file.write(rest) :]
        os.fsync(file.fileno())

    def close_file(self):
        if self._file:
            self._file.close()

    def close(self):
        self.close_file()
        self._lock.close()
