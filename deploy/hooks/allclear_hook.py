"""The input and the answers of a hook of allclear. Needs Python 3.9 and its standard library only.

A hook set is a program whose argument names the task: `postgresql.py failover`. The program maps each task to a
function from the input to an answer, and passes the map to `serve`. A function returns or raises an answer. Any other
exception means "failed", with the reason.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NoReturn, TypeVar

Said = TypeVar("Said")


class Answer(Exception):
    """The outcome of a hook: deploy/docs/hooks.md, "Answer"."""

    status = 1

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = reason


class Done(Answer):
    status = 0


class Failed(Answer):
    status = 1


class NotApplicable(Answer):
    status = 11


class NotDone(Answer):
    """The answer to `confirm`: the action has not happened."""

    status = 12


class Unknown(Answer):
    """The hook cannot know whether the action has happened."""

    status = 13


class Blocked(Answer):
    """Nothing was begun; allclear tries again."""

    status = 75


class Unreachable(Exception):
    """A server did not answer, or refused. The caller decides about the consequence."""


class Rejected(Unreachable):
    """A server answered, and does not let this hook log in. Waiting repairs no password. A reason that begins with a VM
    and a colon is about the server of this VM."""


class Told:
    """The input of this hook."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        listed = [word.partition("=")[0] for word in environment.get("MEMBERS", "").split()]
        spelling = {without_case(vm): vm for vm in listed}

        def vms(name: str) -> list[str]:
            """VM names in the spelling of MEMBERS. Azure may use another case, and an underscore before a name."""
            return [spelling.get(without_case(vm), vm) for vm in environment.get(name, "").split()]

        self.vm = "".join(vms("ALLCLEAR_VM"))
        self.event = environment.get("ALLCLEAR_EVENT_ID", "")
        self.comes_back = environment.get("ALLCLEAR_EVENT_TYPE", "") not in ("Preempt", "Terminate")
        self.intent = environment.get("ALLCLEAR_INTENT", "run")
        self.is_dry_run = environment.get("ALLCLEAR_MODE") == "dry_run"
        # A VM of the event is as good as gone, also if ALLCLEAR_AVOID_VMS does not name the VM.
        self.affected = set(vms("ALLCLEAR_EVENT_RESOURCES")) | {self.vm}
        self.avoid = self.affected | set(vms("ALLCLEAR_AVOID_VMS"))
        self.prefer = vms("ALLCLEAR_PREFER_VMS")
        left = environment.get("ALLCLEAR_TIME_LEFT_MS")
        self._ends = time.monotonic() + (int(left) / 1000 if left else 60)

    def seconds_left(self) -> float:
        return max(0.0, self._ends - time.monotonic())

    def pause(self, most: float) -> float:
        """The seconds for which clients or their writes may be stopped: at most a quarter of the time that is left. The rest
        of the switch, and the stop of the server, have to fit too."""
        return min(most, self.seconds_left() / 4)

    def in_order_of_preference(self, vms: Iterable[str]) -> list[str]:
        """The VMs that are not to be avoided, the best VM first."""
        place = {vm: number for number, vm in enumerate(self.prefer)}
        return sorted((vm for vm in vms if vm not in self.avoid), key=lambda vm: place.get(vm, len(place)))


def without_case(vm: str) -> str:
    """The common form of all spellings of a VM, by the rule of allclear."""
    return vm[vm.startswith("_") :].lower()


def setting(name: str, default: str | None = None) -> str:
    """A value of the `env` table of the workload or the hook."""
    value = os.environ.get(name, default)
    if value is None:
        raise Failed(f"{name} is not set; give it in the hook's env table")
    return value


def number(name: str, default: float) -> float:
    value = setting(name, str(default))
    try:
        found = float(value)
    except ValueError as error:
        raise Failed(f"{name} is {value!r}, which is not a number") from error
    # No value is beyond a bound of NaN.
    if not math.isfinite(found):
        raise Failed(f"{name} is {value!r}, which is not a number")
    return found


def members(name: str = "MEMBERS") -> dict[str, tuple[str, int]]:
    """`MEMBERS = "db-0=10.0.0.4:5432 db-1=10.0.0.5:5432"` as {vm: (host, port)}."""
    found = {}
    for word in setting(name).split():
        vm, equals, address = word.partition("=")
        host, colon, port = address.rpartition(":")
        if not (equals and colon and host and port.isdigit()):
            raise Failed(f"{name} has {word!r}, which is not VM=HOST:PORT")
        found[vm] = (host.strip("[]"), int(port))
    return found


def progress(text: str) -> None:
    print(f"progress: {text}", flush=True)


def until(holds: Callable[[], Said], seconds: float, every: float = 0.005) -> Said:
    """Waits until `holds()` is true, and returns the last result of `holds()`."""
    ends = time.monotonic() + seconds
    while True:
        said = holds()
        if said or time.monotonic() >= ends:
            return said
        time.sleep(every)


def call(
    arguments: Sequence[str | os.PathLike[str]],
    seconds: float = 10,
    stdin: IO[Any] | None = None,
    env: Mapping[str, str] | None = None,
    reason: Callable[[list[str]], str] = lambda lines: lines[-1],
) -> str:
    """Runs a program of the system, and returns the standard output. `reason` chooses from the lines of an error."""
    name = os.fspath(arguments[0])
    try:
        ran = subprocess.run(
            arguments, stdin=stdin, capture_output=True, errors="replace", timeout=seconds, env=env, check=False
        )
    except FileNotFoundError as error:
        raise Failed(f"{name} is not installed") from error
    except PermissionError as error:
        raise Failed(f"{name} may not be run: {error}") from error
    except subprocess.TimeoutExpired as error:
        raise Unreachable(f"{name} did not answer within {seconds:g} s") from error
    if ran.returncode != 0:
        lines = (ran.stderr or ran.stdout).strip().splitlines()
        raise Unreachable(reason(lines) if lines else f"{name} ended with {ran.returncode}")
    return ran.stdout


class Memory:
    """Facts that outlive an attempt: the actions to undo, and the previous state. One file, replaced as a whole."""

    def __init__(self, name: str) -> None:
        self.path = Path(setting("STATE_DIR", "/var/lib/allclear-hooks")) / f"{name}.json"

    def recall(self) -> dict[str, Any]:
        try:
            facts = json.loads(self.path.read_text())
        except FileNotFoundError:
            return {}
        except ValueError as error:
            raise Failed(f"{self.path} cannot be read ({error}); look at it, and remove it") from error
        if not isinstance(facts, dict):
            raise Failed(f"{self.path} holds no object; look at it, and remove it")
        return facts

    def remember(self, facts: dict[str, Any]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        beside = self.path.with_suffix(".new")
        with beside.open("w") as file:
            json.dump(facts, file)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(self.path)
        # A name is as durable as its folder.
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def forget(self) -> None:
        self.path.unlink(missing_ok=True)


class Tries:
    """The count of useless interruptions of writes in one event. Each further interruption costs every client a pause,
    and the obstacle may still exist, so the count has a limit."""

    def __init__(self, told: Told, name: str, most: int = 2) -> None:
        self._memory, self.event, self._most = Memory(f"{name}-tries"), told.event, most

    def check(self) -> None:
        """Fails before an interruption if the limit is reached."""
        facts = self._memory.recall()
        if facts.get("event") == self.event and facts.get("times", 0) >= self._most:
            times = "once" if facts["times"] == 1 else f"{facts['times']} times"
            raise Failed(f"writes were stopped {times} in vain, and are not stopped again for this event: {facts['why']}")

    def was_in_vain(self, why: str) -> None:
        """Records that writes were interrupted and continue on the same primary."""
        facts = self._memory.recall()
        times = facts.get("times", 0) if facts.get("event") == self.event else 0
        self._memory.remember({"event": self.event, "times": times + 1, "why": why})


def checked(wrong: Iterable[str], doubts: Iterable[str] = ()) -> Done:
    """Ends a `check`. Each problem contains the repair; all problems are reported together. No hook fails on a doubt,
    which `allclear doctor` shows as a warning.
    """
    for doubt in doubts:
        progress(doubt)
    found = list(wrong)
    if len(found) > 1:
        # A reason is cut after 300 characters.
        print("\n".join(found), file=sys.stderr)
    if found:
        raise Failed("; ".join(found))
    return Done()


Hook = Callable[[Told], "Answer | None"]


def unknown_once_begun(failover: Hook, is_half_done: Callable[[Told], bool]) -> Hook:
    """A failover that answers "unknown" instead of "blocked" while nobody accepts writes because of an attempt. "Blocked"
    means that nothing was begun: allclear would let the failover wait for members that are not ready, and these members
    may wait for the primary. After "unknown", allclear asks for a confirmation, and then runs the failover again."""

    def run(told: Told) -> Answer | None:
        try:
            return failover(told)
        except Rejected:
            raise
        except (Blocked, Unreachable) as error:
            if not told.is_dry_run and is_half_done(told):
                raise Unknown(str(error)) from error
            raise

    return run


def serve(hooks: Mapping[str, Hook]) -> NoReturn:
    """Runs the function that the first argument names, and exits with the answer.

    `hooks` is {name: function}. A function named `confirm-NAME` or `undo-NAME` handles this intent, if such a function
    exists. A role is printed; every other task has an answer.
    """
    told = Told()
    name = sys.argv[1] if len(sys.argv) == 2 else ""
    if told.intent != "run" and f"{told.intent}-{name}" in hooks:
        name = f"{told.intent}-{name}"
    if name not in hooks:
        print(f"usage: {sys.argv[0]} {'|'.join(sorted(hooks))}", file=sys.stderr)
        sys.exit(2)
    answer: Answer
    try:
        answer = hooks[name](told) or Done()
    except Answer as raised:
        answer = raised
    except Rejected as error:
        # The own server serves, and only the hooks cannot log in: "not ready" would make an event of this VM a repair.
        is_own = name == "ready" and str(error).startswith(f"{told.vm}: ")
        answer = Done(str(error)) if is_own else Failed(str(error))
    except Unreachable as error:
        answer = Blocked(str(error))
    except Exception as error:  # noqa: BLE001 -- any error means "failed", with the reason
        traceback.print_exc()
        answer = Failed(f"{type(error).__name__}: {error}")
    if answer.reason:
        print(answer.reason, file=sys.stderr)
    sys.exit(answer.status)
