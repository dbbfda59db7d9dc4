#!/usr/bin/env python3
"""Hooks for MariaDB with GTID replication, asynchronous or semi-synchronous: one primary, the rest replicas of it.
The files that go with this one are named at the head of mariadb.toml.

Needs
  MariaDB 10.6 or later, the `mariadb` client, and for lost data `mariadb-dump`. On every member log_bin,
  log_slave_updates, and in its configuration file `read_only = 1`: only there does it hold after a restart, and
  without it a primary that comes back takes writes beside the new one. No hook can check what the file says. What it
  costs: a primary that restarts outside of an event stays read-only until somebody says otherwise (`mariadb.py
  restore` on it does, when nobody else is writable and it has all there is).
  An account for the hooks and one for replication, the same on all members; mariadb.toml has the grants.

Promises
  A planned switch loses no acknowledged write: the old primary takes none before the new one has all of them and takes
  some. No two members are writable, wherever the hook is stopped or killed. What cannot be switched within the bounds
  is taken back, and the old primary is writable again. A member is back when a transaction that was written after the
  switch has arrived on it.

Cannot promise
  That users with READ ONLY ADMIN stop writing: read_only does not hold them. While they do, there is no switch.
  That with semi-synchronous replication a second member has the first writes after a switch: writes are open before the
  others have connected to the new primary, some 100 ms. After that every commit waits again, as far as a member that is
  spared is there to wait for.
  That scheduled events run on the new primary: MariaDB disables them on replicas, and so they stay.
  A switch that is short with long statements: those that write are waited for (STOP_SECONDS), then it is taken back.
  Lost data are copied by `mariadb-dump` as SQL: right for tens of gigabytes and InnoDB. It needs an empty server that
  runs, as the package leaves behind, and an account of it that the hook's user may use over SOCKET without a password.
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
  SOCKET           default /run/mysqld/mysqld.sock: of this VM's server, asked when its accounts are lost
  STATE_DIR        default /var/lib/allclear-hooks; on each VM's own disk, and the hooks' user may write there
"""

import time

from allclear_hook import Blocked, Done, Failed, Unknown, number, serve, until
from mariadb_data import data_here, fill
from mariadb_members import LOOK, POSITION, Group, covers, patience
from mariadb_replication import following, is_following, lead, runs, wait_for_acknowledgement
from mariadb_switch import KILL_APPLICATIONS, confirm_failover, failover, take_back, undo_failover


def role(told):
    with Group(told, only=told.vm) as group:
        here = group.here
        if not here.follows and not here.is_primary:
            # A primary whose writes are stopped, or a server that has lost everything.
            raise Unknown("read-only, and follows nobody")
        print("primary" if here.is_primary else "replica")


def drain(told):
    """Gives clients time to move, and parts from those that have not: a frozen server would keep them waiting."""
    with Group(told) as group:
        primary = group.primary()
        if primary:
            wait_for_acknowledgement(group, primary, told.affected)
        time.sleep(number("SETTLE_MS", 500) / 1000)
        if not group.here.is_primary:
            group.here.ask(KILL_APPLICATIONS)


def restore(told):
    data = until(lambda: data_here(told), max(0.0, told.seconds_left() - 2), every=0.2)
    if not data:
        raise Blocked(f"{told.vm}: its server does not answer")
    if data == "lost":
        fill(told)
    with Group(told, locked=True) as group:
        if group.primary() is None and not group.here.follows and group.others(group.here):
            take_back(group)
            group.refresh()
        here, primary = group.here, group.primary()
        if primary is None:
            raise Blocked("nobody is writable: " + "; ".join(group.lost.values()))
        if primary is here:
            lead(group, here)
            wait_for_acknowledgement(group, here, told.affected - {told.vm}, seconds=1)
            return Done(f"{here.vm} is the primary")
        rejoin(here, primary)
    return prove(told)


def rejoin(here, primary):
    if is_following(here, primary) and runs(here):
        return
    primary.see(primary.ask(LOOK, "SHOW SLAVE STATUS"))
    if not covers(primary.position, here.position):
        raise Failed(f"{here.vm} has transactions that {primary.vm} does not have ({here.look['position']} beside"
                     f" {primary.look['position']}); see what they are, then empty it")
    here.ask(*following(primary))


def prove(told):
    """A transaction written now has to arrive: that threads run says little."""
    with Group(told) as group:
        here, primary = group.here, group.primary()
        if primary is None:
            raise Blocked("nobody is writable")
        position = primary.ask("CREATE DATABASE IF NOT EXISTS allclear", POSITION)[1][0]["position"]
        while not here.reaches(position, min(1.0, told.seconds_left()), patience()):
            here.see(here.ask(LOOK, "SHOW SLAVE STATUS"))
            if told.seconds_left() < 2:
                errors = here.follows["Last_IO_Error"] or here.follows["Last_SQL_Error"] or "it still catches up"
                raise Blocked(f"{here.vm} is not where {primary.vm} is: {errors}")
        wait_for_acknowledgement(group, primary, told.affected - {told.vm}, seconds=1)
        return Done(f"{here.vm} has what {primary.vm} wrote, up to {position}")


serve({
    "role": role,
    "failover": failover,
    "confirm-failover": confirm_failover,
    "undo-failover": undo_failover,
    "drain": drain,
    "restore": restore,
})
