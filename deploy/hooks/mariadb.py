#!/usr/bin/env python3
"""Hooks for MariaDB with GTID replication, asynchronous or semi-synchronous: one primary and its replicas. The head of
mariadb.toml names the files of this set.

Needs
  MariaDB 10.6 or later, the `mariadb` client, and for lost data `mariadb-dump`. On every member log_bin,
  log_slave_updates, gtid_strict_mode, and `read_only = 1` in the configuration file. Only the file has an effect
  after a restart; without the file a restarted old primary accepts writes beside the new primary. The price: a
  primary that restarts outside an event stays read-only until an operator changes that (`mariadb.py restore` on the
  member does, if no other member is writable and the member has all data).
  An account for the hooks and an account for replication, equal on all members; mariadb.toml has the grants.
  Replication over the connection without a name.
  `mariadb.py check` on each member reports missing requirements, and changes nothing.

The switch, by `failover` on the primary, and the effect of a restart of its server after a kill of the hook
  0  All requirements of all steps are verified: rights on both members, the replication account, and that the
     candidate has the primary's writes. Nothing is changed. A problem is "blocked" or "failed".
  1  STATE_DIR has the event.              The server restarts read-only, without a primary to follow.
  2  read_only = 1 on the primary, and clients are disconnected.                              As in 1.
  3  The hook waits until the candidate has everything. STATE_DIR has the candidate's name.   As in 1.
  4  The candidate forgets its primary and becomes writable.         As in 1, beside the new primary.
  5  All others follow the new primary, this VM last. STATE_DIR is cleared.     The server restarts as a replica.
  After a kill in 1 to 3, the next attempt, `undo` or `restore` makes the old primary writable again. After a kill in
  4, the old primary stays read-only as long as the candidate does not answer; the next attempt continues with 5. An
  attempt that failed after 2 is undone automatically. An event has two such attempts.

The return, by `restore`, and the effect of a restart
  Data present: 1 read_only = 1, replication stops; 2 the position and the new primary are set; 3 replication starts;
  4 a new transaction has to arrive. The server is read-only at any time; the next attempt begins with 1. Before, the
  member's transactions are compared with the primary's: an additional transaction is left to an operator.
  Data lost: mariadb_copy.py has the steps. Data are lost only if the server has no GTID position, follows no member,
  has no schemas in the view of an account with all rights, and is at its usual place: not below a disk that is not
  mounted.

Guarantees
  A planned switch loses no acknowledged write: the old primary accepts no writes before the new primary has all of
  them and accepts writes. Two members are never writable at a time, wherever the hook is stopped or killed. A switch
  beyond its limits is undone, and the old primary is writable again. A member has returned when a transaction from
  after the switch has arrived; a copy has returned when every row equals the source's row.

  While a member is silent, a writable member is believed to be the primary only if a member replicates from it, if a
  replica still waits for the silent member and the writable member was promoted after the replica's transactions, or
  if this VM has noted the promotion: the silent member may be the present primary. Otherwise `restore` is blocked,
  and no member is opened, copied or moved.

Limits
  Users with READ ONLY ADMIN can write despite read_only. While these users write, there is no switch.
  With semi-synchronous replication the first writes after a switch are on one member only: writes are open some
  100 ms before the others have connected to the new primary. Afterwards every commit waits again, if an unaffected
  member can acknowledge.
  MariaDB disables scheduled events on replicas, and the events stay disabled on the new primary.
  Long write statements delay a switch: the hook waits for STOP_SECONDS, then the switch is undone.
  `mariadb-dump` copies lost data as SQL: suitable for tens of gigabytes and InnoDB. Source and copy are read once
  more for the comparison; of tables of other engines only the names are compared. The copy needs an empty running
  server, as the package installs, and an account with all rights that the hook's user can use over SOCKET without a
  password.
  A member with transactions that the primary does not have is left alone; an operator has to empty the member.
  MySQL is not supported: its GTIDs, its statements and its client differ.

Settings (env)
  MEMBERS          "db-0=10.0.0.4:3306 db-1=10.0.0.5:3306": each VM and its server, for hooks and replicas
  OPTION_FILE      default /etc/allclear/mariadb.cnf: [client] with the hooks' account, [replication] with user and
                   password of the replication account
  MASTER_OPTIONS   further options of CHANGE MASTER, as "MASTER_SSL = 1"
  MAX_LAG_MS       default 500: before the switch a candidate must receive the primary's writes within this time
  CATCH_UP_MS      default 2000: the longest wait for the candidate while writes are stopped, but at most a quarter of
                   the time that is left; then undo
  PATIENCE_SECONDS default 5: a member without an answer within this time counts as absent
  STOP_SECONDS     default 1: the longest wait for write statements before the primary is read-only
  SETTLE_MS        default 500: time for clients to move before the end of the drain
  SEMI_SYNC_MS     rpl_semi_sync_master_timeout of the whole group; without: asynchronous. The hooks enable both sides;
                   leave rpl_semi_sync_slave_enabled out of the configuration files, as `check` explains
  SOCKET           the socket of this VM's server, for the case of lost accounts; default /run/mysqld/mysqld.sock
                   (Debian), or the only existing /var/lib/mysql/mysql.sock (RPM systems)
  STATE_DIR        default /var/lib/allclear-hooks; on each VM's own disk, writable for the hooks' user
  DUMP_DIR         default STATE_DIR: room for all data as SQL during a copy
  FSTAB            default /etc/fstab: the disks that should be mounted
  ADMINS           accounts that may have READ ONLY ADMIN; default: accounts of this machine only
"""

from __future__ import annotations

import time
from pathlib import Path

from allclear_hook import (
    Answer,
    Blocked,
    Done,
    Failed,
    Rejected,
    Told,
    Unknown,
    Unreachable,
    number,
    serve,
    unknown_once_begun,
    until,
)
from mariadb_check import check
from mariadb_copy import fill
from mariadb_data import data_here, place
from mariadb_members import Group, Server, memory, patience
from mariadb_replication import (
    acknowledge,
    by_hand,
    doubt,
    follow,
    has_more,
    is_following,
    lead,
    names_connections,
    nobody_is_writable,
    runs,
    stopped_by,
    wait_for_acknowledgement,
    why_not_running,
)
from mariadb_rights import lacks, refuses_replication
from mariadb_switch import KILL_APPLICATIONS, confirm_failover, failover, is_half_done, take_back, undo_failover


def role(told: Told) -> None:
    with Group(told, only=told.vm) as group:
        here = group.here
        if not here.follows and not here.named and not here.is_primary:
            # Either a primary whose writes are stopped, or a server without data.
            raise Unknown(f"read-only, and follows nobody; if no member is writable, {by_hand(told.vm)}")
        print("primary" if here.is_primary else "replica")


def drain(told: Told) -> None:
    """Gives clients SETTLE_MS to move, then disconnects the remaining clients: a frozen server would not answer them."""
    with Group(told) as group:
        primary = group.primary()
        if primary and not doubt(group, primary):
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
            raise Blocked(nobody_is_writable(group))
        alone = settle(group, here, primary)
        if primary is here:
            wrong = lead(group, here)
            wait_for_acknowledgement(group, here, told.affected - {told.vm}, seconds=1)
            memory().forget()
            return Done("; ".join([f"{here.vm} is the primary", *wrong]))
        rejoin(here, primary)
        if alone:
            wrong = [f"{here.vm} is back alone, and moved no other member: {alone}"]
        else:
            # Other members may still follow this member, after an interrupted attempt.
            wrong = lead(group, primary)
            memory().forget()
    return prove(told, wrong)


def settle(group: Group, here: Server, primary: Server) -> str:
    """Raises if the primary may be a former primary. Returns the doubt that remains if this replica does not count as
    proof, or an empty text. A replica that was down during a promotion replicates from the former primary after its start.
    The replica loses no data, but other members would leave the present primary."""
    alone = doubt(group, primary, seconds=2, not_by=here.vm)
    if alone and primary is not here and is_following(here, primary) and not runs(here):
        # A restart of the server would start the replication too, so the start needs no proof. The replication may then
        # be the proof for this member's own return.
        try:
            here.ask("START SLAVE ''")
            here.look_again()
        except Rejected:
            raise
        except Unreachable as error:
            raise Blocked(f"{alone}; {error}") from error
    if alone and (why := doubt(group, primary, seconds=2)):
        raise Blocked(why)
    return alone


def ready(told: Told) -> Done:
    """A replica is ready while the replication runs. Without replication the replica is no second copy, so the other
    members have to stay in service."""
    with Group(told) as group:
        here, primary = group.here, group.primary()
        if primary is None:
            raise Blocked(nobody_is_writable(group))
        why = doubt(group, primary)
        if why and primary is here and not group.others(here):
            # No member contradicts. A primary that is "not ready" could be stopped without a failover, although no other
            # member serves.
            return Done(why)
        if why:
            raise Blocked(why)
        if primary is not here and not is_following(here, primary):
            raise Blocked(f"{here.vm} does not follow {primary.vm}; {by_hand(here.vm)}")
        if primary is not here and not runs(here):
            raise Blocked(f"{here.vm}: {why_not_running(here)}")
        return Done()


def rejoin(here: Server, primary: Server) -> None:
    """Makes this member a replica of the primary. All checks precede the first change, so a failed check changes nothing.
    """
    named = names_connections(here)
    if named:
        raise Failed(f"{here.vm}: {named}")
    if is_following(here, primary) and runs(here):
        acknowledge(here)
        return
    more = has_more(here, primary)
    if more:
        raise Failed(f"{here.vm} {more}, which has {primary.look['position']}; see what they are, then empty it")
    why = lacks(here) or refuses_replication(primary.vm)
    if why:
        raise Failed(f"{here.vm}: {why}")
    follow(here, primary)


def prove(told: Told, wrong: list[str]) -> Answer:
    """Waits until a new transaction of the primary has arrived: running threads are no proof that data arrive."""
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
            "failover": unknown_once_begun(failover, is_half_done),
            "confirm-failover": confirm_failover,
            "undo-failover": undo_failover,
            "drain": drain,
            "restore": restore,
            "ready": ready,
            "check": check,
        }
    )
