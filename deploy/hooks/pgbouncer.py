#!/usr/bin/env python3
"""PgBouncer: pauses the clients while the primary moves, and moves the clients when the pooler's own VM is affected.

Around a switch, the failover hook of postgresql.py pauses and resumes each pooler in POOLERS. For this purpose only the
files below are necessary. The name of the configuration file selects the primary, because an admin can change the name
over the network. Each member has one file, with the address of the member and an include of the rest. `SET conffile`,
`RELOAD` and `RESUME` are one step from one primary to the other.

  /etc/pgbouncer/primary-db-0.ini:   %include /etc/pgbouncer/common.ini
                                     [databases]
                                     orders = host=10.0.0.4 port=5432
  /etc/pgbouncer/pgbouncer.ini:      a link to one of these files, made by `pgbouncer.py point` before each start

Needs: the members' addresses in these files as in MEMBERS; transaction or statement pooling (a pause would wait for the
end of a session); an admin account for psql (PGUSER, PGPASSFILE); for `point` a login at the members. With so_reuseport
several processes share an address, and a connection reaches any process. Name each process by an address of its own:
the folder of its Unix socket (unix_socket_dir, as /run/pgbouncer/1:6432) or a further port. The hooks detect an unnamed
process on its own machine, and with peers (1.21 or later) from every machine. Otherwise the hooks detect only that
there are several processes. Guarantees: a pause waits for running transactions and never interrupts them. An incomplete
pause ends after PAUSE_SECONDS. Limits: a pooler without an answer is not paused and not moved. `restore` of the
database, or the next start of the pooler, moves such a pooler to the new primary.

Each step, and the effect of a restart of the pooler after the hook was killed there: drain: this VM goes down.
  1. New clients are refused, and connect to another pooler                                    accepts clients
  2. Clients still there after LEAVE_SECONDS are dropped between two transactions              accepts clients
restore, undo of drain: accepts clients again, and may run any number of times. point: links CONFIG to the file of the
present primary, for ExecStartPre of the pooler's unit. The link is either the old link or the new link. While a member
is silent, the link moves only to a primary from which a standby streams. A link that leads to the only primary that
answers stays. check: verifies the requirements; changes nothing.

Settings: POOLER (this VM's admin addresses, HOST:PORT, one for each process), POOLER_DATABASES (databases to drain;
default: all configured databases), LEAVE_SECONDS (5), PAUSE_SECONDS (5), each at most a quarter of the time that is
left; for point: MEMBERS, POOLER_CONFIG (/etc/pgbouncer/primary-{vm}.ini), CONFIG (/etc/pgbouncer/pgbouncer.ini), whose
folder the user of the pooler can write.
"""

from __future__ import annotations

import os
import pwd
import time
from collections.abc import Iterator
from pathlib import Path

from allclear_hook import (
    Blocked,
    Done,
    Failed,
    Rejected,
    Told,
    Unreachable,
    checked,
    members,
    number,
    progress,
    serve,
    setting,
    until,
    without_case,
)
from pgbouncer_pooler import Pooler, Poolers, config_for, lacks
from psql import HAS_ANSWERED, Psql

TIMELINE = """SELECT ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int
  WHERE NOT pg_is_in_recovery()"""
FOLLOWERS = f"""SELECT coalesce(application_name, '?') FROM pg_stat_replication
  WHERE coalesce(state, 'streaming') = 'streaming' AND {HAS_ANSWERED}"""


def own_processes() -> Poolers:
    """All processes of the pooler on this VM."""
    poolers = Poolers(setting("POOLER").split())
    if poolers.silent:
        why = "; ".join(poolers.silent.values())
        raise Rejected(why) if poolers.rejecting == set(poolers.silent) else Blocked(why)
    return poolers


def drained(pooler: Pooler) -> list[str]:
    return setting("POOLER_DATABASES", "").split() or pooler.databases()


def drain(told: Told) -> Done:
    poolers = own_processes()
    poolers.check_processes()
    each = [(pooler, drained(pooler)) for pooler in poolers.reached()]
    for pooler, databases in each:
        for database in databases:
            pooler.ask(f'DISABLE "{database}"')

    def count() -> int:
        return sum(pooler.clients(databases) for pooler, databases in each)

    until(lambda: not count(), told.pause(number("LEAVE_SECONDS", 5)), 0.1)
    left, ends = count(), time.monotonic() + told.pause(number("PAUSE_SECONDS", 5))
    for pooler, databases in each:
        for database in databases:
            pooler.ask(f'PAUSE "{database}"', max(0.1, ends - time.monotonic()), unless="already")
            pooler.ask(f'KILL "{database}"')
    return Done(f"{left} clients did not leave and were dropped between two transactions" if left else "")


def restore(_told: Told) -> None:
    try:
        for pooler in own_processes().reached():
            for database in drained(pooler):
                pooler.ask(f'ENABLE "{database}"')
                pooler.ask(f'RESUME "{database}"', unless="not paused")
    except Rejected:
        raise
    except Unreachable as error:
        raise Blocked(str(error)) from error


def primary(told_of: set[str]) -> tuple[str | None, str]:
    """The primary, and the reason for a doubt. If two members claim to be the primary, the member with the latest
    promotion. A member that does not answer may be the present primary: then a standby has to stream from the claimant,
    and without this proof only a single claimant is named. A silent member is told of once; `told_of` has these members.
    """
    found: dict[str, tuple[int, bool]] = {}
    silent = []
    for vm, (host, port) in members().items():
        try:
            server = Psql(vm, host, port)
            timeline = server.ask(TIMELINE)
            if timeline:
                found[vm] = int(timeline), is_followed(vm, server.ask(FOLLOWERS))
        except Unreachable as error:
            if vm not in told_of:
                progress(str(error))
            told_of.add(vm)
            silent.append(str(error))
    if not found:
        return None, "; ".join(["no member is primary", *silent])
    vm = max(found, key=lambda vm: found[vm])
    if not silent or found[vm][1]:
        return vm, ""
    why = f"{vm} may be a former primary: no standby streams from it, and a member that does not answer may be the primary"
    return vm if len(found) == 1 else None, "; ".join([why, *silent])


def is_followed(vm: str, names: str) -> bool:
    """Whether a member follows. An account without pg_monitor sees the followers, and not their names."""
    known = {without_case(other) for other in members() if other != vm}
    return any(without_case(name) in {"?", *known} for name in names.splitlines())


def point(told: Told) -> None:
    found: tuple[str | None, str] = None, ""
    told_of: set[str] = set()

    def is_known() -> bool:
        nonlocal found
        found = primary(told_of)
        return not found[1]

    until(is_known, min(30, told.seconds_left()), 0.5)
    vm, doubt = found
    link = config()
    if not vm or (doubt and not leads_to(link, vm)):
        raise Blocked(doubt)
    if doubt:
        # The start moves no client: a pooler that runs stays at this member too.
        progress(f"{link} still leads to {vm}, and stays: {doubt}")
        return
    beside = link.with_suffix(".new")
    try:
        beside.unlink(missing_ok=True)
        os.symlink(config_for(vm), beside)
        beside.replace(link)
    except OSError as error:
        raise Failed(f"{link} cannot be linked to {config_for(vm)} ({error.strerror}): {remedy(link, os.geteuid())}") from error


def config() -> Path:
    return Path(setting("CONFIG", "/etc/pgbouncer/pgbouncer.ini"))


def of_link() -> Iterator[str]:
    """`point` replaces the link to the file of the primary as the user of the pooler. The file system may be read-only for
    this hook in its sandbox, so the rights of the folder count too."""
    link = config()
    own_files = Path(config_for("*"))
    is_beside = own_files.parent == link.parent and any(link.parent.glob(own_files.name))
    if not (link.is_symlink() or is_beside):
        return
    user, groups = service_user()
    try:
        found = link.parent.stat()
    except OSError as error:
        yield f"CONFIG: {link.parent} cannot be read: {error.strerror}"
        return
    rights = found.st_mode >> (6 if found.st_uid == user else 3 if found.st_gid in groups else 0)
    is_open = user == os.geteuid() and os.access(link.parent, os.W_OK | os.X_OK)
    if user != 0 and rights & 3 != 3 and not is_open:
        yield f"the pooler's user cannot write in {link.parent}, where `pgbouncer.py point` replaces a link: {remedy(link, user)}"


def remedy(link: Path, user: int) -> str:
    try:
        name = pwd.getpwuid(user).pw_name
    except KeyError:
        name = str(user)
    return f"run chown {name} {link.parent}"


def service_user() -> tuple[int, set[int]]:
    """The user of the poolers on this machine, with all groups; the own user, unless a single user has them all."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            told = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines() if ":" in line)
        except (OSError, ValueError):
            continue
        if told["Name"].strip() == "pgbouncer":
            # The second number is the effective id.
            groups = {int(told["Gid"].split()[1]), *map(int, told.get("Groups", "").split())}
            found[int(told["Uid"].split()[1])] = groups
    return found.popitem() if len(found) == 1 else (os.geteuid(), {os.getegid(), *os.getgroups()})


def leads_to(link: Path, vm: str) -> bool:
    return os.path.realpath(link) == os.path.realpath(config_for(vm))


def check(_told: Told) -> Done:
    """Changes nothing. Verifies that the console accepts the account as an admin, and that each process is named."""
    poolers = Poolers(setting("POOLER").split())
    wrong = [f"{why}: start it, or correct POOLER and PGUSER" for why in poolers.silent.values()]
    for pooler in poolers.reached():
        wrong += lacks(pooler)
    return checked([*wrong, *poolers.lacking(), *of_link()])


if __name__ == "__main__":
    serve({"drain": drain, "undo-drain": restore, "restore": restore, "point": point, "check": check})
