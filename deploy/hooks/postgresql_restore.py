"""How a member of PostgreSQL comes back: as a standby of whoever is primary now, and with all that is written there."""

import os
import shutil

from allclear_hook import Blocked, Done, Failed, Memory, Unreachable, call, members, progress, setting, until
from pgbouncer import Poolers
from postgresql_members import Group, alter, change_synchronous, literal, primary_conninfo, synchronous
from postgresql_server import Here
from postgresql_switch import undo_failover

OWN_FILES = ("postgresql.conf", "postgresql.auto.conf", "pg_hba.conf", "pg_ident.conf")
OURSELVES = "allclear_hook"


def restore(told):
    here, group = Here(told), Group()
    memory = Memory(f"postgresql-{told.vm}")
    primary = fenced(told, here, group, memory.recall())
    poolers = Poolers(setting("POOLERS", "").split())
    if primary != told.vm:
        rejoin(told, here, group, primary)
    poolers.point_and_resume(primary)
    memory.forget()
    return Done()


def fenced(told, here, group, facts):
    """Who is primary, when this server is not one beside it."""
    found = group.primaries()
    others = [vm for vm in found if vm != told.vm]
    if not found and facts.get("step", "switched") != "switched":
        undo_failover(told)
        return told.vm
    if len(others) != 1:
        return group.the_primary()
    other = others[0]
    was_started_as_primary = here.pid() and not here.standby_signal.exists()
    if told.vm in found and group.seen[told.vm]["timeline"] > group.seen[other]["timeline"]:
        return group.the_primary()
    if told.vm in found or was_started_as_primary:
        here.be_standby()
        here.stop()
        if facts.get("to") != other:
            Memory(f"postgresql-{told.vm}-data").remember({"step": "fenced"})
    return other


def rejoin(told, here, group, primary):
    """Makes this server a standby of the primary that has what is written there now."""
    server = group.servers[primary]
    memory = Memory(f"postgresql-{told.vm}-data")
    spoilt = memory.recall().get("step")
    if here.is_lost() or spoilt == "copying":
        copy(here, primary, memory, told)
    elif spoilt == "fenced" and has_diverged(here, group, primary):
        raise Failed(
            f"{told.vm} was writable beside {primary}, which was promoted after it, and has been stopped. Look for "
            f"writes that only it has; when there are none to keep, run pg_rewind or empty {here.path}"
        )
    elif spoilt == "rewinding" or has_diverged(here, group, primary):
        rewind(here, server, primary, memory, told)
    if here.pid():
        answering = until(here.answering, told.seconds_left() - 2, 0.1)
        if not answering:
            raise Blocked(f"{told.vm}: the server does not answer yet")
        alter(answering.servers[told.vm], "primary_conninfo", primary_conninfo(told.vm, primary))
    else:
        here.be_standby()
        here.follow(primary)
        here.start()
    prove(told, Group([primary, told.vm]), primary)
    memory.forget()


def has_diverged(here, group, primary):
    """Whether this server has written, or may have, what is not in the history of the primary."""
    now, seen = group.seen[primary]["timeline"], group.seen.get(here.vm)
    if seen and seen["streams"] and seen["timeline"] == now:
        return False
    control = here.control()
    if control["Database cluster state"] in ("in production", "shutting down", "in crash recovery"):
        return True
    timeline = int(control["Latest checkpoint's TimeLineID"])
    recovered = int(control["Min recovery ending loc's timeline"]) or timeline
    reached = [
        (timeline, position(control["Latest checkpoint location"]) + 1),
        (recovered, position(control["Minimum recovery ending location"])),
        (recovered, seen["lsn"] if seen else 0),
    ]
    if {timeline, recovered} == {now}:
        return False
    history = group.servers[primary].ask(f"SELECT pg_read_file('pg_wal/{now:08X}.history')")
    forks = {int(row[0]): position(row[1]) for row in map(str.split, history.splitlines()) if row}
    return any(lsn > forks.get(of, 0) for of, lsn in reached if of != now)


def rewind(here, server, primary, memory, told):
    here.stop()
    progress("pg_rewind")
    kept = memory.path.parent / "own-files"
    if memory.recall().get("step") != "rewinding":
        shutil.rmtree(kept, ignore_errors=True)
        kept.mkdir(parents=True)
        for name in OWN_FILES:
            if (here.path / name).exists():
                shutil.copy2(here.path / name, kept)
    memory.remember({"step": "rewinding"})
    # Without it pg_rewind reads the timeline from before the promotion, and spoils this directory.
    server.ask("CHECKPOINT", told.seconds_left())
    host, port = members()[primary]
    database = os.environ.get("PGDATABASE", "postgres")
    arguments = ["-D", here.path, f"--source-server=host={host} port={port} dbname={database}"]
    if setting("CONFIG_FILE", ""):
        arguments.append(f"--config-file={setting('CONFIG_FILE')}")
    here.standby_signal.unlink(missing_ok=True)
    try:
        call([here.program("pg_rewind"), *arguments], told.seconds_left())
    except Unreachable as error:
        raise Failed(f"pg_rewind: {error}. To have this member copied anew, empty {here.path}") from error
    for file in kept.iterdir():
        shutil.copy2(file, here.path)
    here.be_standby()
    memory.forget()


def copy(here, primary, memory, told):
    here.stop()
    progress("pg_basebackup")
    memory.remember({"step": "copying"})
    here.path.mkdir(mode=0o700, parents=True, exist_ok=True)
    for inside in here.path.iterdir():
        shutil.rmtree(inside) if inside.is_dir() and not inside.is_symlink() else inside.unlink()
    source = primary_conninfo(here.vm, primary)
    program = here.program("pg_basebackup")
    call([program, "-D", here.path, "-d", source, "-c", "fast", "-X", "stream"], told.seconds_left())
    here.be_standby()
    here.follow(primary)
    memory.forget()


def prove(told, group, primary):
    """A standby may say that it streams and be broken. What is written now has to arrive."""
    server = group.servers[primary]
    mark = int(server.ask(f"SELECT pg_logical_emit_message(true, {literal(OURSELVES)}, {literal(told.vm)}) - '0/0'"))
    if not until(lambda: has(told, group, primary, mark), told.seconds_left() - 2, 0.02):
        raise Blocked(f"{told.vm}: {behind(told, group, primary)}")
    if setting("SYNCHRONOUS", ""):
        change_synchronous(server, synchronous(group.again(primary)) | {told.vm})


def has(told, group, primary, mark):
    said = group.again(told.vm)
    return said["streams"] and said["lsn"] > mark and not behind(told, group, primary)


def behind(told, group, primary):
    """What this standby lacks, or nothing."""
    standby, ahead = group.again(told.vm), group.again(primary)
    if not standby["streams"] or standby["timeline"] != ahead["timeline"]:
        return f"does not stream on timeline {ahead['timeline']} of {primary}"
    lag = ahead["lsn"] - standby["lsn"]
    return f"is {lag >> 10} KiB behind" if lag > 1 << 20 else ""


def position(text):
    """A position in the log, as 3/5C001A28, as a number."""
    high, _, low = text.strip().partition("/")
    return (int(high, 16) << 32) + int(low, 16)
