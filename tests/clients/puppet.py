"""A scripted workload process: prints each call of its handlers, and ends each call as standard input commands.
`puppet.rs` is the Rust equivalent."""

import asyncio
import os
import resource
import sys

from allclear_workload import (
    CANCELLED,
    NOT_DONE,
    Hook,
    JournalError,
    Mode,
    OnAbsent,
    OnFailure,
    Phase,
    Role,
    RunsOn,
    StillRegistered,
    Workload,
    blocked,
)

STRINGS = {}


def say(text):
    print("@", text, flush=True)


def told(step):
    def listed(name, items):
        return f" {name}={','.join(items)}" if items else ""

    def member(peer):
        marks = ("" if peer.connected else ":gone") + (":affected" if peer.affected else "")
        return f"{peer.vm}:{Role(peer.role).name.lower()}{marks}"

    members = [member(peer) for peer in step.members]
    mode = " dry" if step.mode == Mode.DRY_RUN else ""
    lists = listed("members", members) + listed("avoid", step.avoid) + listed("prefer", step.prefer)
    journaled = f" journaled={step.journaled.word}" if step.journaled else ""
    return f"{step.attempt} {step.intent.name.lower()} {step.phase.name.lower()}{mode}{lists}{journaled}"


async def dance(step):
    said = STRINGS[step.attempt] = asyncio.Queue()
    say(told(step))
    cancelled = asyncio.ensure_future(step.cancelled())
    while True:
        line = asyncio.ensure_future(said.get())
        await asyncio.wait([line, cancelled], return_when=asyncio.FIRST_COMPLETED)
        if not line.done():
            say(f"{step.attempt} cancelled")
            return CANCELLED
        verb, _, rest = line.result().partition(" ")
        if verb == "progress":
            step.progress(rest)
        elif verb == "expect":
            step.expect(int(rest) / 1000)
        elif verb == "more":
            step.more_time(int(rest) / 1000)
        elif verb == "minutes":
            say(f"{step.attempt} has {int(step.time_left / 60)} min")
        elif verb == "deaf":
            say(f"{step.attempt} is deaf")
            await asyncio.Event().wait()
        elif verb == "mute":
            say(f"{step.attempt} is mute")
            await cancelled
            return None
        elif verb == "done":
            return None
        elif verb == "not_done":
            return NOT_DONE
        elif verb == "failed":
            raise RuntimeError(rest)
        elif verb == "blocked":
            return blocked(rest)
        else:
            raise SystemExit(f"{verb} is nothing to do")


def stand(standing):
    if standing.word == "connected":
        say(f"connected to {standing.vm}")
        for problem in standing.problems:
            say(f"problem {problem}")
    elif standing.word == "refused":
        say(f"refused: {standing.why}")


def make_room(length):
    """Limits the size of files to `length` bytes; `enough` removes the limit."""
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most if length == "enough" else int(length), most))


async def main():
    hooks = [
        Hook(
            Phase.CHECKPOINT, dance, timeout=20, attempts=3, worst=5, on_failure=OnFailure.CONTINUE,
            optional_if_short=True, event_types=["Reboot", "Redeploy"],
        ),
        Hook(
            Phase.FAILOVER, dance, confirm=dance, undo=dance, dry_run=dance, runs_on=RunsOn.PEER, min_freeze=4,
            fresh_for=30, exclusive=True,
        ),
        Hook(Phase.CHECK, dance),
    ]  # fmt: skip
    workload = Workload(
        "orders", os.environ["ALLCLEAR_TEST_SOCKET"], hooks, group="shop", lease=2, retain=3600,
        on_absent=OnAbsent.SKIP, after=["cache"], role=Role.REPLICA, journal=os.environ.get("ALLCLEAR_TEST_JOURNAL"),
        on_standing=stand,
    )  # fmt: skip
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    try:
        async with workload:
            while line := (await lines.readline()).decode().strip():
                if line == "stop":
                    return
                if line == "leave":
                    try:
                        await workload.leave()
                    except StillRegistered as error:
                        say(error)
                    return
                if line == "role primary":
                    workload.role = Role.PRIMARY
                elif line.startswith("room "):
                    make_room(line.removeprefix("room "))
                    say("has room")
                else:
                    attempt, _, rest = line.partition(" ")
                    STRINGS[attempt].put_nowait(rest)
    except JournalError as error:
        say(f"cannot start: {error}")


asyncio.run(main())
