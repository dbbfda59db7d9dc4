"""What a hook of allclear is told, and how it answers. Python 3.9 and its standard library are all it needs.

A hook set is a program called with the name of what it is to do: `postgresql.py failover`. It describes each as a
function from what it is told to an answer, and hands them to `serve`. An answer is returned or raised; what goes wrong
otherwise has failed, with the reason.
"""

import json
import os
import select
import subprocess
import sys
import time
import traceback
from pathlib import Path


class Answer(Exception):
    """How a hook ends: src/workloads/README.md, "What it answers"."""

    status = 1

    def __init__(self, reason=""):
        super().__init__(reason)
        self.reason = reason


class Done(Answer):
    status = 0


class Failed(Answer):
    status = 1


class NotApplicable(Answer):
    status = 11


class NotDone(Answer):
    """To `confirm`: it has not happened."""

    status = 12


class Unknown(Answer):
    """Nobody can tell whether it has happened."""

    status = 13


class Blocked(Answer):
    """Not now; it is tried again."""

    status = 75


class Told:
    """What allclear told this hook."""

    def __init__(self, environment=os.environ):
        listed = [word.partition("=")[0] for word in environment.get("MEMBERS", "").split()]
        spelling = {without_case(vm): vm for vm in listed}

        def vms(name):
            """As MEMBERS spells them. The platform may have another case, and an underscore before a name."""
            return [spelling.get(without_case(vm), vm) for vm in environment.get(name, "").split()]

        self.vm = "".join(vms("ALLCLEAR_VM"))
        self.intent = environment.get("ALLCLEAR_INTENT", "run")
        self.is_dry_run = environment.get("ALLCLEAR_MODE") == "dry_run"
        # A VM that the event names is as good as gone, whatever the list of what to avoid says.
        self.affected = set(vms("ALLCLEAR_EVENT_RESOURCES")) | {self.vm}
        self.avoid = self.affected | set(vms("ALLCLEAR_AVOID_VMS"))
        self.prefer = vms("ALLCLEAR_PREFER_VMS")
        left = environment.get("ALLCLEAR_TIME_LEFT_MS")
        self._ends = time.monotonic() + (int(left) / 1000 if left else 60)

    def seconds_left(self):
        return max(0.0, self._ends - time.monotonic())

    def in_order_of_preference(self, vms):
        """Those of these VMs that nothing speaks against, the best first."""
        place = {vm: number for number, vm in enumerate(self.prefer)}
        return sorted((vm for vm in vms if vm not in self.avoid), key=lambda vm: place.get(vm, len(place)))


def without_case(vm):
    """What two spellings of one VM have in common, as allclear compares them."""
    return vm.removeprefix("_").lower()


def setting(name, default=None):
    """A value of the hook's `env` table."""
    value = os.environ.get(name, default)
    if value is None:
        raise Failed(f"{name} is not set; give it in the hook's env table")
    return value


def number(name, default):
    value = setting(name, str(default))
    try:
        return float(value)
    except ValueError as error:
        raise Failed(f"{name} is {value!r}, which is not a number") from error


def members(name="MEMBERS"):
    """`MEMBERS = "db-0=10.0.0.4:5432 db-1=10.0.0.5:5432"` as {vm: (host, port)}."""
    found = {}
    for word in setting(name).split():
        vm, equals, address = word.partition("=")
        host, colon, port = address.rpartition(":")
        if not (equals and colon and host and port.isdigit()):
            raise Failed(f"{name} has {word!r}, which is not VM=HOST:PORT")
        found[vm] = (host.strip("[]"), int(port))
    return found


def progress(text):
    print(f"progress: {text}", flush=True)


def until(holds, seconds, every=0.005):
    """Waits until `holds()` is true, and returns what it said; the last word when it never was."""
    ends = time.monotonic() + seconds
    while True:
        said = holds()
        if said or time.monotonic() >= ends:
            return said
        time.sleep(every)


def call(arguments, seconds=10, **more):
    """Runs a program of the system, and returns what it printed."""
    try:
        ran = subprocess.run(arguments, capture_output=True, text=True, timeout=seconds, check=False, **more)
    except FileNotFoundError as error:
        raise Failed(f"{arguments[0]} is not installed") from error
    except subprocess.TimeoutExpired as error:
        raise Unreachable(f"{arguments[0]} did not answer within {seconds} s") from error
    if ran.returncode != 0:
        lines = (ran.stderr or ran.stdout).strip().splitlines()
        raise Unreachable(lines[-1] if lines else f"{arguments[0]} ended with {ran.returncode}")
    return ran.stdout


class Unreachable(Exception):
    """A server did not answer, or refused. Whether that matters is for the caller to say."""


class Client:
    """A database's own client program, which stays: a switch has no time to start one for each question."""

    def __init__(self, name, arguments, environment=None):
        self.name, self.lost = name, ""
        self._said = b""
        # A session of its own, so that a signal to the hook does not end it in the middle of a switch. It ends with the
        # hook, because its input does.
        self._process = subprocess.Popen(  # pylint: disable=consider-using-with
            arguments,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            bufsize=0,
            env=environment,
            start_new_session=True,
        )

    def say(self, text):
        self._check()
        try:
            self._process.stdin.write(text.encode())
        except BrokenPipeError:
            pass  # Why it ended is in its output.

    def hear(self, mark, seconds, count=1):
        """What it says before each of so many marks. Who is late is not asked again: what it says from then on would be
        taken for the answer to something else."""
        self._check()
        mark, ends = mark.encode(), time.monotonic() + seconds
        while self._said.count(mark) < count:
            ready = select.select([self._process.stdout], [], [], max(0, ends - time.monotonic()))[0]
            read = os.read(self._process.stdout.fileno(), 65536) if ready else b""
            if not read:
                said = self._said.decode(errors="replace").strip().splitlines()
                self.lost = self.why_it_ended(said) if ready else f"did not answer within {seconds:g} s"
                self.close()
            self._check()
            self._said += read
        *parts, self._said = self._said.split(mark, count)
        return [part.decode(errors="replace") for part in parts]

    def why_it_ended(self, said):
        """By the lines of its output."""
        return said[-1] if said else "the connection was lost"

    def _check(self):
        if self.lost:
            raise Unreachable(f"{self.name}: {self.lost}")

    def close(self):
        self._process.kill()
        self._process.wait()
        self._process.stdin.close()
        self._process.stdout.close()


class Memory:
    """Facts that outlive an attempt: what to put back, and how it was. One file, replaced as a whole."""

    def __init__(self, name):
        self.path = Path(setting("STATE_DIR", "/var/lib/allclear-hooks")) / f"{name}.json"

    def recall(self):
        try:
            return json.loads(self.path.read_text())
        except FileNotFoundError:
            return {}
        except ValueError as error:
            raise Failed(f"{self.path} cannot be read ({error}); look at it, and remove it") from error

    def remember(self, facts):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        beside = self.path.with_suffix(".new")
        with beside.open("w") as file:
            json.dump(facts, file)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(self.path)

    def forget(self):
        self.path.unlink(missing_ok=True)


def serve(hooks):
    """Does what the first argument names, and exits with its answer.

    `hooks` has {name: function}; a name with `confirm-` or `undo-` before it is used for these intents where there is
    one. A role is printed, and everything else answered.
    """
    told = Told()
    name = sys.argv[1] if len(sys.argv) == 2 else ""
    if told.intent != "run" and f"{told.intent}-{name}" in hooks:
        name = f"{told.intent}-{name}"
    if name not in hooks:
        print(f"usage: {sys.argv[0]} {'|'.join(sorted(hooks))}", file=sys.stderr)
        sys.exit(2)
    try:
        answer = hooks[name](told) or Done()
    except Answer as raised:
        answer = raised
    except Unreachable as error:
        answer = Blocked(str(error))
    except Exception as error:  # pylint: disable=broad-except
        traceback.print_exc()
        answer = Failed(f"{type(error).__name__}: {error}")
    if answer.reason:
        print(answer.reason, file=sys.stderr)
    sys.exit(answer.status)
