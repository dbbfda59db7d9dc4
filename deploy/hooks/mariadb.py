#!/usr/bin/env python3
"""Hooks for MariaDB with GTID replication, asynchronous or semi-synchronous: one primary, the rest replicas of it.
The files that go with this one are named at the head of mariadb.toml.

Needs
  MariaDB 10.6 or later, the `mariadb` client, and for lost data `mariadb-dump`. On every member log_bin,
  log_slave_updates, gtid_strict_mode, and in its configuration file `read_only = 1`: only there does it hold after a
  restart, and without it a primary that comes back takes writes beside the new one. What it costs: a primary that
  restarts outside of an event stays read-only until somebody says otherwise (`mariadb.py restore` on it does, when
  nobody else is writable and it has all there is).
  An account for the hooks and one for replication, the same on all members; mariadb.toml has the grants. Replication
  over the connection without a name.
  `mariadb.py check` on each member tells what of this is missing, and changes nothing.

The switch, by `failover` on the primary, and what a restart of its server makes of it when the hook was killed there
  0  Everything that any step needs is looked at: rights on both, the replication account, that the candidate has what
     the primary wrote. Nothing is changed, and what is wrong is Blocked or Failed.
  1  STATE_DIR has the event.           The server comes back read-only, and follows nobody.
  2  read_only = 1 on the primary, and clients are parted from.                                           The same.
  3  It is waited until the candidate has everything. STATE_DIR has the candidate's name.                 The same.
  4  The candidate forgets its primary and is writable.     The same, beside the new primary.
  5  All others follow it, this VM last. STATE_DIR forgets.                          It comes back as a replica.
  What is killed in 1 to 3 the next attempt, `undo` or `restore` takes back: the old primary is writable again. In 4 it
  is not as long as the candidate does not answer. Then the next attempt goes on with 5. An attempt that failed after 2
  is taken back by itself, and there are two for an event.

The return, by `restore`, and what a restart makes of it
  Data there: 1 read_only = 1, replication is stopped; 2 it gets its position and the new primary; 3 it is started; 4 a
  transaction that is written then has to arrive. Read-only at any time; the next attempt begins with 1. Before that
  the transactions that it has are compared with those of the primary: one more, and it is left to people.
  Data lost: mariadb_copy.py has the steps. They are lost only when the server has no GTID position, follows nobody and
  has no schemas, seen by an account with all rights, and is where it was: not below a disk that is not mounted.

Promises
  A planned switch loses no acknowledged write: the old primary takes none before the new one has all of them and takes
  some. No two members are writable, wherever the hook is stopped or killed. What cannot be switched within the bounds
  is taken back, and the old primary is writable again. A member is back when a transaction that was written after the
  switch has arrived on it; a copy, when every row of it is what the source has.

Cannot promise
  That users with READ ONLY ADMIN stop writing: read_only does not hold them. While they do, there is no switch.
  That with semi-synchronous replication a second member has the first writes after a switch: writes are open before the
  others have connected to the new primary, some 100 ms. After that every commit waits again, as far as a member that is
  spared is there to wait for.
  That scheduled events run on the new primary: MariaDB disables them on replicas, and so they stay.
  A switch that is short with long statements: those that write are waited for (STOP_SECONDS), then it is taken back.
  Lost data are copied by `mariadb-dump` as SQL: right for tens of gigabytes and InnoDB. Source and copy are read once
  more to compare them; of tables of other engines only the names are. It needs an empty server that runs, as the
  package leaves behind, and an account with all rights that the hook's user may use over SOCKET without a password.
  A member with transactions that the primary does not have is left alone; emptying it is for people.
  MySQL is not supported: its GTIDs, its statements and its client differ.

Settings (env)
  MEMBERS          "db-0=10.0.0.4:3306 db-1=10.0.0.5:3306": each VM and its server, as hooks and replicas reach it
  OPTION_FILE      default /etc/allclear/mariadb.cnf: [client] with the hooks' account, [replication] with user and
                   password of the other
  MASTER_OPTIONS   more for CHANGE MASTER, as "MASTER_SSL = 1"
  MAX_LAG_MS       default 500: a candidate must have what the primary wrote within this long, looked at before
  CATCH_UP_MS      default 2000: so long may it take while writes are stopped; after that it is taken back
  PATIENCE_SECONDS default 5: a member that does not answer within this long is not there
  STOP_SECONDS     default 1: so long may statements that write keep the primary from being read-only
  SETTLE_MS        default 500: clients have this long to move before the drain ends
  SEMI_SYNC_MS     rpl_semi_sync_master_timeout of a whole group; left out: asynchronous
  SOCKET           of this VM's server, asked when its accounts are lost; default /run/mysqld/mysqld.sock (Debian), or
                   where only that is there /var/lib/mysql/mysql.sock (RPM systems)
  STATE_DIR        default /var/lib/allclear-hooks; on each VM's own disk, and the hooks' user may write there
  DUMP_DIR         default STATE_DIR: room for all data as SQL, while lost ones are copied
  FSTAB            default /etc/fstab: which disks should be mounted
  ADMINS           accounts that may have READ ONLY ADMIN; default those of this machine alone
"""

from __future__ import annotations

import time
from pathlib import Path

from allclear_hook import Answer, Blocked, Done, Failed, Told, Unknown, number, serve, until
from mariadb_check import check
from mariadb_copy import fill
from mariadb_data import data_here, place
from mariadb_members import Group, Server, memory, patience
from mariadb_replication import (
    follow,
    has_more,
    is_following,
    lead,
    names_connections,
    runs,
    stopped_by,
    wait_for_acknowledgement,
    why_not_running,
)
from mariadb_rights import lacks, refuses_replication
from mariadb_switch import KILL_APPLICATIONS, confirm_failover, failover, take_back, undo_failover


def role(told: Told) -> None:
    with Group(told, only=told.vm) as group:
        here = group.here
        if not here.follows and not here.named and not here.is_primary:
            # A primary whose writes are stopped, or a server that has lost everything.
            raise Unknown("read-only, and follows nobody")
        print("primary" if here.is_primary else "replica")


def drain(told: Told) -> None:
    """Gives clients time to move, and parts from those that have not: a frozen server would keep them waiting."""
    with Group(told) as group:
        primary = group.primary()
        if primary:
            wait_for_acknowledgement(group, primary, told.affected)
        time.sleep(number("SETTLE_MS", 500) / 1000)
        if not group.here.is_primary:
            group.here.ask(KILL_APPLICATIONS)


def restore(told: Told) -> Answer:
    data = until(lambda: data_here(told), max(0.0, told.seconds_left() - 2), every=0.2)
    if not data:
        before = place().folder()
        why = place().is_another(Path(before)) if before else ""
        raise Blocked(f"{told.vm}: its server does not answer" + (f"; {why}" if why else ""))
    if data == "lost":
        fill(told)
    with Group(told, locked=True) as group:
        if group.primary() is None and not group.here.follows and group.others(group.here):
            take_back(group)
            group.refresh()
        here, primary = group.here, group.primary()
        if primary is None:
            raise Blocked("; ".join(["nobody is writable", *group.lost.values()]))
        if primary is here:
            wrong = lead(group, here)
            wait_for_acknowledgement(group, here, told.affected - {told.vm}, seconds=1)
            memory().forget()
            return Done("; ".join([f"{here.vm} is the primary", *wrong]))
        rejoin(here, primary)
        # Others may follow this one still, after an attempt that was ended in the middle.
        wrong = lead(group, primary)
        memory().forget()
    return prove(told, wrong)


def rejoin(here: Server, primary: Server) -> None:
    """Nothing is changed on it before everything is known that could fail in the middle."""
    named = names_connections(here)
    if named:
        raise Failed(f"{here.vm}: {named}")
    if is_following(here, primary) and runs(here):
        return
    more = has_more(here, primary)
    if more:
        raise Failed(f"{here.vm} {more}, which has {primary.look['position']}; see what they are, then empty it")
    why = lacks(here) or refuses_replication(primary.vm)
    if why:
        raise Failed(f"{here.vm}: {why}")
    follow(here, primary)


def prove(told: Told, wrong: list[str]) -> Answer:
    """A transaction written now has to arrive: that threads run says little."""
    with Group(told) as group:
        here, primary = group.here, group.primary()
        if primary is None:
            raise Blocked("nobody is writable")
        primary.ask("CREATE DATABASE IF NOT EXISTS allclear")
        position = primary.where()
        while not here.reaches(position, min(1.0, told.seconds_left()), patience()):
            here.look_again()
            why = stopped_by(here.follows) if here.follows else "it follows nobody"
            if why:
                raise Failed(f"{here.vm}: {why}")
            if told.seconds_left() < 2:
                why = "it still catches up" if runs(here) else why_not_running(here)
                raise Blocked(f"{here.vm} is not where {primary.vm} is: {why}")
        wait_for_acknowledgement(group, primary, told.affected - {told.vm}, seconds=1)
        return Done("; ".join([f"{here.vm} has what {primary.vm} wrote, up to {position}", *wrong]))


if __name__ == "__main__":
    serve(
        {
            "role": role,
            "failover": failover,
            "confirm-failover": confirm_failover,
            "undo-failover": undo_failover,
            "drain": drain,
            "restore": restore,
            "check": check,
        }
    )
