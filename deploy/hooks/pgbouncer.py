#!/usr/bin/env python3
"""PgBouncer: holds the clients while the primary moves, and lets them go when its own VM is affected.

Around a switch it is the failover of postgresql.py that pauses and resumes each pooler of its POOLERS; nothing here
has to be configured for that but the files below. A pooler is told where the primary is by the name of its configuration
file, because that can be told over the network: for each member one file, which says where that member is and includes
all else. `SET conffile`, `RELOAD` and `RESUME` are one step from one primary to the other.

  /etc/pgbouncer/primary-db-0.ini:   %include /etc/pgbouncer/common.ini
                                     [databases]
                                     orders = host=10.0.0.4 port=5432
  /etc/pgbouncer/pgbouncer.ini:      a link to one of them, made by `pgbouncer.py point` before each start

Needs: the members' addresses in these files as in MEMBERS; transaction or statement pooling (a session would have to end
before a pause is complete); an admin whom psql can be (PGUSER, PGPASSFILE); for `point` a login at the members.
Promises: a transaction that runs is waited for and never cut off by a pause; a pause that does not come about within
PAUSE_SECONDS is taken back.
Cannot promise: that a pooler that does not answer is paused or pointed. It is pointed when `restore` of the database
reaches it, or at its next start.

drain: this VM goes down. New clients are refused, so that they go to another pooler; those that stay longer than
  LEAVE_SECONDS are dropped between two transactions.
restore, undo of drain: lets clients in again.
point: links CONFIG to the file of the member that is primary now, for ExecStartPre of the pooler's service.

Settings: POOLER (this VM's admin address, HOST:PORT), POOLER_DATABASES (those to drain; default: all that are
configured), LEAVE_SECONDS (5), PAUSE_SECONDS (5); for point: MEMBERS, POOLER_CONFIG (/etc/pgbouncer/primary-{vm}.ini),
CONFIG (/etc/pgbouncer/pgbouncer.ini).
"""

import os
import time
from pathlib import Path

from allclear_hook import Blocked, Done, Failed, Unreachable, members, number, progress, serve, setting, until
from psql import Psql, Refused


def config_for(vm):
    return setting("POOLER_CONFIG", "/etc/pgbouncer/primary-{vm}.ini").format(vm=vm)


class Pooler:
    """One PgBouncer, by its admin console."""

    def __init__(self, address):
        host, colon, port = address.rpartition(":")
        if not (colon and host and port.isdigit()):
            raise Failed(f"{address!r} is not the HOST:PORT of a pooler")
        self.console = Psql(f"pooler {address}", host.strip("[]"), int(port), "pgbouncer")

    def ask(self, command, seconds=2, unless=None):
        """An error that says `unless` is none: it is so already."""
        self.console.send(command)
        return self.answer(seconds, unless)

    def answer(self, seconds=2, unless=None):
        try:
            return self.console.answer(seconds)
        except Refused as error:
            if unless and unless in str(error):
                return ""
            raise

    def point(self, vm):
        self.ask(f"SET conffile='{config_for(vm)}'")
        self.ask("RELOAD")
        # A file that is not there is no error to it.
        host, port = members()[vm]
        rows = [line.split("|") for line in self.ask("SHOW DATABASES").splitlines()]
        if not any(row[1:3] == [host, str(port)] for row in rows):
            raise Refused(f"{self.console.name} has read {config_for(vm)}, and has no database at {host}:{port}")

    def lets_clients_go_on_at(self, vm):
        return succeeds(lambda: self.point(vm)) & succeeds(self.resume)

    def resume(self):
        self.ask("RESUME", unless="not paused")

    def databases(self):
        configured = [line.split("|")[0] for line in self.ask("SHOW DATABASES").splitlines()]
        return [name for name in configured if name != "pgbouncer"]

    def clients(self, databases):
        rows = [line.split("|") for line in self.ask("SHOW CLIENTS").splitlines()]
        return sum(row[2] in databases for row in rows)


class Poolers:
    """All that stand before one primary."""

    def __init__(self, addresses):
        self.asked = {address: Pooler(address) for address in addresses}
        for pooler in self.asked.values():
            pooler.console.send("SHOW VERSION")
        # As long as a member: one that is only slow would not be paused, and its clients would see errors.
        ends = time.monotonic() + 4
        has_answered = lambda pooler: succeeds(lambda: pooler.answer(max(0.1, ends - time.monotonic())))
        self.silent = [address for address, pooler in self.asked.items() if not has_answered(pooler)]

    def reached(self):
        return [pooler for address, pooler in self.asked.items() if address not in self.silent]

    def check(self, vm):
        """That they can be pointed, as long as it does no harm."""
        for pooler in self.reached():
            pooler.point(vm)
            pooler.resume()

    def pause(self, seconds):
        """When not all of those that answer can be paused, none may stay so: let them go on."""
        for pooler in self.reached():
            pooler.console.send("PAUSE")
        try:
            for pooler in self.reached():
                pooler.answer(seconds, unless="already suspended/paused")
        except Unreachable as error:
            raise Blocked(f"clients could not be paused, a transaction may run for long: {error}") from error

    def point_and_resume(self, vm):
        """Lets the clients go on at this member. Who does not answer is asked once more when all others are done."""
        left = [one for one in self.asked if one in self.silent or not self.asked[one].lets_clients_go_on_at(vm)]
        for address in left:
            self.asked[address] = Pooler(address)
            if not self.asked[address].lets_clients_go_on_at(vm):
                progress(f"pooler {address} is not pointed to {vm}, and may be paused")


def succeeds(what):
    try:
        what()
        return True
    except Unreachable as error:
        progress(str(error))
        return False


def drain(told):
    pooler = Pooler(setting("POOLER"))
    databases = setting("POOLER_DATABASES", "").split() or pooler.databases()
    for database in databases:
        pooler.ask(f'DISABLE "{database}"')
    until(lambda: not pooler.clients(databases), min(number("LEAVE_SECONDS", 5), told.seconds_left()), 0.1)
    left = pooler.clients(databases)
    for database in databases:
        pooler.ask(f'PAUSE "{database}"', number("PAUSE_SECONDS", 5), unless="already")
        pooler.ask(f'KILL "{database}"')
    return Done(f"{left} clients did not leave and were dropped between two transactions" if left else "")


def restore(_told):
    try:
        pooler = Pooler(setting("POOLER"))
        databases = setting("POOLER_DATABASES", "").split() or pooler.databases()
        for database in databases:
            pooler.ask(f'ENABLE "{database}"')
            pooler.ask(f'RESUME "{database}"', unless="not paused")
    except Unreachable as error:
        raise Blocked(str(error)) from error


def primary():
    """The member that is primary; the one that was promoted last, should two of them say so."""
    found = {}
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
    return max(found, key=found.get) if found else None


def point(told):
    vm = until(primary, min(30, told.seconds_left()), 0.5)
    if not vm:
        raise Blocked("no member is primary")
    link = Path(setting("CONFIG", "/etc/pgbouncer/pgbouncer.ini"))
    beside = link.with_suffix(".new")
    beside.unlink(missing_ok=True)
    os.symlink(config_for(vm), beside)
    beside.replace(link)


if __name__ == "__main__":
    serve({"drain": drain, "undo-drain": restore, "restore": restore, "point": point})
