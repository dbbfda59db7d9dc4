#!/usr/bin/env python3
"""PgBouncer: holds the clients while the primary moves, and lets them go when its own VM is affected.

Around a switch it is the failover of postgresql.py that pauses and resumes each pooler of its POOLERS; nothing here
has to be configured for that but the files below. A pooler is told where the primary is by the name of its
configuration file, because that can be told over the network: for each member one file, which says where that member is
and includes all else. `SET conffile`, `RELOAD` and `RESUME` are one step from one primary to the other.

  /etc/pgbouncer/primary-db-0.ini:   %include /etc/pgbouncer/common.ini
                                     [databases]
                                     orders = host=10.0.0.4 port=5432
  /etc/pgbouncer/pgbouncer.ini:      a link to one of them, made by `pgbouncer.py point` before each start

Needs: the members' addresses in these files as in MEMBERS; transaction or statement pooling (a session would have to
end before a pause is complete); an admin whom psql can be (PGUSER, PGPASSFILE); for `point` a login at the members.
With so_reuseport several processes share an address, and a connection to it is to any of them: give the address that
each has alone, the folder of its Unix socket (unix_socket_dir, as /run/pgbouncer/1:6432) or a port of its own. When one
is not named this is seen on its own machine, and with peers (1.21 or later) from everywhere; else only that there are
several.
Promises: a transaction that runs is waited for and never cut off by a pause; a pause that does not come about within
PAUSE_SECONDS is taken back.
Cannot promise: that a pooler that does not answer is paused or pointed. It is pointed when `restore` of the database
reaches it, or at its next start.

Each step, and what a restart of the pooler makes of it when the hook is killed after it:
drain: this VM goes down.
  1. New clients are refused, so that they go to another pooler                                 lets them in
  2. Those that stay longer than LEAVE_SECONDS are dropped between two transactions             lets them in
restore, undo of drain: lets clients in again, and may be run as often as one likes.
point: links CONFIG to the file of the member that is primary now, for ExecStartPre of the pooler's service; the link is
  the old or the new one.
check: whether all that is needed is there; changes nothing.

Settings: POOLER (this VM's admin address, HOST:PORT; several, one for each process), POOLER_DATABASES (those to drain;
default: all that are configured), LEAVE_SECONDS (5), PAUSE_SECONDS (5); for point: MEMBERS, POOLER_CONFIG
(/etc/pgbouncer/primary-{vm}.ini), CONFIG (/etc/pgbouncer/pgbouncer.ini).
"""

from __future__ import annotations

import os
from pathlib import Path

from allclear_hook import (
    Blocked,
    Done,
    Told,
    Unreachable,
    checked,
    members,
    number,
    progress,
    serve,
    setting,
    until,
)
from pgbouncer_pooler import Pooler, Poolers, config_for, lacks
from psql import Psql


def own_processes() -> Poolers:
    """All processes of the pooler on this VM."""
    poolers = Poolers(setting("POOLER").split())
    if poolers.silent:
        raise Blocked("; ".join(poolers.silent.values()))
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

    until(lambda: not count(), min(number("LEAVE_SECONDS", 5), told.seconds_left()), 0.1)
    left = count()
    for pooler, databases in each:
        for database in databases:
            pooler.ask(f'PAUSE "{database}"', number("PAUSE_SECONDS", 5), unless="already")
            pooler.ask(f'KILL "{database}"')
    return Done(f"{left} clients did not leave and were dropped between two transactions" if left else "")


def restore(_told: Told) -> None:
    try:
        for pooler in own_processes().reached():
            for database in drained(pooler):
                pooler.ask(f'ENABLE "{database}"')
                pooler.ask(f'RESUME "{database}"', unless="not paused")
    except Unreachable as error:
        raise Blocked(str(error)) from error


def primary() -> str | None:
    """The member that is primary; the one that was promoted last, should two of them say so."""
    found: dict[str, int] = {}
    for vm, (host, port) in members().items():
        try:
            server = Psql(vm, host, port)
            timeline = server.ask(
                "SELECT ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int"
                " WHERE NOT pg_is_in_recovery()"
            )
            if timeline:
                found[vm] = int(timeline)
        except Unreachable as error:
            progress(str(error))
    return max(found, key=lambda vm: found[vm]) if found else None


def point(told: Told) -> None:
    vm = until(primary, min(30, told.seconds_left()), 0.5)
    if not vm:
        raise Blocked("no member is primary")
    link = Path(setting("CONFIG", "/etc/pgbouncer/pgbouncer.ini"))
    beside = link.with_suffix(".new")
    beside.unlink(missing_ok=True)
    os.symlink(config_for(vm), beside)
    beside.replace(link)


def check(_told: Told) -> Done:
    """Changes nothing. That the console lets in whoever asks, as an admin, and each process of the pooler is named."""
    poolers = Poolers(setting("POOLER").split())
    wrong = [f"{why}: start it, or correct POOLER and PGUSER" for why in poolers.silent.values()]
    for pooler in poolers.reached():
        wrong += lacks(pooler)
    return checked([*wrong, *poolers.lacking()])


if __name__ == "__main__":
    serve({"drain": drain, "undo-drain": restore, "restore": restore, "point": point, "check": check})
