#!/usr/bin/env python3
"""PostgreSQL 13 or later with streaming replication, asynchronous or synchronous. Runs beside each server, as its user.
The head of postgresql.toml names the files of this set.

The switch runs on the affected VM with the primary. The hook first checks, with everything writable: a standby must
stream on the primary's timeline, under its VM's name, with little lag, not on a VM to avoid; no sender under its name
may be far behind, because a stop would wait for the sender; and new WAL must arrive there. Then, with the effect of a
restart of this server after a kill of the hook at each step:
  1. `stopping` and the new primary's name go into STATE_DIR                                    the primary, as before
  2. primary_conninfo leads to the new primary, standby.signal goes into PGDATA                 a standby
  3. poolers are paused, the server stops fast, until its control file has the state "shut down": from then on the
     server writes no more, whatever still delays its end (an archiver, a standby that hangs)   a standby
  4. the candidate has replayed the checkpoint of the shutdown, so all acknowledged writes      a standby
  5. `promoting` goes into STATE_DIR, the candidate is promoted                                 a standby
  6. other standbys follow the new primary, poolers resume, `switched` goes into STATE_DIR      a standby
The server stays down until `restore` starts a standby. SIGTERM does not interrupt steps 2 to 6. An error before step 5
is undone: the old primary starts again, at the latest 13 s after step 3 began. After step 5 the old primary starts only
after the candidate's answer that no promotion has happened or will happen; then standby.signal is removed (a restart:
the primary). The next run continues a killed run, or `undo` undoes it. A stop without success is not repeated in the
same event, any other switch is repeated once; the reason names the processes that delayed the stop. `confirm` answers
"done" when another member is primary and all steps are complete, "not done" when no other member is primary, and
"unknown" when a possible primary does not answer. The state of a returning member: postgresql_restore.py and
postgresql_data.py.

Needs: the application_name of every standby is its VM's name; recovery_target_timeline = latest and hot_standby
(defaults); a superuser with a login from every member to every member (PGUSER, PGPASSFILE); an account for replication
(PRIMARY_CONNINFO); the same settings on all members. Data checksums or wal_log_hints = on, for a return after a crash.
wal_keep_size or an archive for the absence of a member, because replication slots do not move: with primary_slot_name
there is no switch. `check` reports the missing requirements. Guarantees: never two primaries; no acknowledged write is
lost, synchronous or not; a member has returned only after replaying WAL that was written on the primary after the
return. An old primary returns as a standby, however the service starts the server. While a member is silent, that
member may be the present primary. Then a primary is believed only if a standby streams from it, if a standby of the
silent member has an earlier timeline, or if this VM has handed over to it; and never beside a member with a later
timeline. A standby that is the only proof returns alone: poolers and other members stay. A primary that was replaced
without this hook is stopped by `restore`, and the writes that only it has are kept. No copy overwrites data of unknown
origin, or goes below a mount point without its disk.

Limits: no failover without a running primary (this is no failover manager for crashes). No primary at once if the
candidate is lost at the moment of its promotion: the answer is "unknown" until the candidate answers. No logical slots
before 17. No commits on two members while every synchronous standby is absent: the primary then acknowledges alone, as
synchronous_standby_names shows. No guarantee that WAL not yet archived at the switch is ever archived: `failover` does
not wait for a hanging archive, and reports that.

check: verifies the requirements; changes nothing. checkpoint: flushes, for a short stop. failover: as above. drain: all
standbys that follow join the synchronous set, and this one leaves it, so that no commit waits. shutdown: the same, and
stops a standby. restore: follows the present primary; after a crash with pg_rewind, into an empty PGDATA with
pg_basebackup; then the member joins the synchronous set. ready: whether that state holds. role: for the workload's
role.

Settings, in the env table
  PGDATA, PGUSER, PGPASSFILE ...        as for psql
  MEMBERS           "db-0=10.0.0.4:5432 db-1=10.0.0.5:5432 db-2=10.0.0.6:5432"
  PRIMARY_CONNINFO  the login of a standby: "user=replicator passfile=..."; host, port and application_name are added
  SYNCHRONOUS       "ANY 1" or "FIRST 1": the hooks write synchronous_standby_names; without: asynchronous
  POOLERS           "10.0.0.7:6432 ..." admin addresses of PgBouncers, one for each process; see pgbouncer.py
  START, STOP       commands; default: pg_ctl, and SIGINT to the server. Debian: "systemctl start postgresql@15-main"
  CONFIG_FILE       the path of postgresql.conf, if not in PGDATA
  LOST_WRITES       "discard": a member returns although it has committed writes that the present primary lacks, after a
                    promotion without these hooks. Without: `restore` fails, and the writes are kept
  MAX_LAG (16777216 bytes), STOP_SECONDS (8), REPLAY_SECONDS (5), PROMOTE_SECONDS (10), STATE_DIR,
  PAUSE_SECONDS (5, but at most a quarter of the time that is left),
  BIN (/usr/lib/postgresql/VERSION/bin or /usr/pgsql-VERSION/bin)
"""

from __future__ import annotations

from allclear_hook import (
    Blocked,
    Done,
    Failed,
    NotApplicable,
    Rejected,
    Told,
    Unreachable,
    members,
    progress,
    serve,
    setting,
    unknown_once_begun,
)
from postgresql_candidate import flush
from postgresql_check import check
from postgresql_members import Group, change_synchronous, followers, gather, set_synchronous, synchronous
from postgresql_restore import behind, restore
from postgresql_server import Here
from postgresql_switch import confirm_failover, failover, is_half_done, present_primary, undo_failover


def checkpoint(told: Told) -> Done:
    group = Group()
    claimed = group.primary()
    if claimed and (why := group.doubt(claimed)):
        # A checkpoint is harmless. Standbys are not moved, because this primary may be a former primary.
        if told.vm in group.seen:
            flush_here(told, group, [told.vm])
        return Done(why)
    primary = group.the_primary()
    try:
        gather(told, group, primary)
    except Unreachable as error:
        progress(str(error))
    if primary == told.vm:
        standbys = [vm for vm, said in group.seen.items() if said["streams"] and vm not in told.avoid]
        flush_here(told, group, [primary, *standbys])
    elif told.vm in group.seen:
        flush_here(told, group, [told.vm])
    return Done()


def flush_here(told: Told, group: Group, vms: list[str]) -> None:
    """A failure, and no blocked hook: allclear goes on, and the switch decides by itself."""
    if why := Here(told).cramped():
        raise Failed(why)
    flush(told, group, vms)


def drain(told: Told) -> Done | NotApplicable:
    group = Group()
    return leave(told, group, present_primary(told, group))


def leave(told: Told, group: Group, primary: str) -> Done | NotApplicable:
    """Takes the standbys of the event out of the synchronous set, so that no commit waits for a VM that is down."""
    if setting("SYNCHRONOUS", ""):
        # The other standbys join the synchronous set, because this standby leaves the set.
        gather(told, group, primary)
    now = synchronous(group, primary)
    if primary == told.vm or not now & told.affected:
        return NotApplicable(f"no commit on {primary} waits for {told.vm}")
    if not setting("SYNCHRONOUS", ""):
        raise Failed(f"commits on {primary} wait for {told.vm}: give SYNCHRONOUS in the hook's env table")
    left = now - told.affected
    others = {vm for vm in members() if vm != primary} - told.affected
    if len(left & followers(group, primary)) < min(int(setting("SYNCHRONOUS").split()[1]), len(others)):
        wanted = " and ".join(sorted(others))
        raise Blocked(f"{wanted} would have to follow {primary}: without {told.vm} too few members have each commit")
    if not change_synchronous(group.servers[primary], left):
        # The former set is written again. With the new set, the next attempt would end without a change, while commits
        # still wait.
        set_synchronous(group.servers[primary], now)
        raise Blocked(f"commits on {primary} still wait for {told.vm}, or for standbys that do not answer")
    return Done()


def shutdown(told: Told) -> Done:
    here = Here(told)
    if not here.standby_signal.exists():
        raise NotApplicable(f"{told.vm} is no standby")
    here.place.note(here.path)
    group = Group([told.vm])
    if told.vm in group.seen:
        here.must_be(group.servers[told.vm])
    if here.is_stopping():
        # The former primary has written its last checkpoint, and may still archive WAL. Archiving goes on until the VM
        # stops, so that the archive gets as much WAL as possible.
        return Done(f"{told.vm} is shut down, and ends with: {here.in_the_way()}")
    everybody = Group()
    try:
        primary = present_primary(told, everybody)
    except (Blocked, Rejected) as error:
        if setting("SYNCHRONOUS", "") and here.pid():
            raise Failed(str(error)) from error
        # Without SYNCHRONOUS no commit waits for this standby. Without a process no server has to stop.
        progress(str(error))
        here.stop()
        return Done()
    # The drain hook may not have run: an operator can skip the hook, and a policy can omit the hook.
    try:
        leave(told, everybody, primary)
    except Blocked as error:
        # A failed hook ends now, and `on_failure` decides. A blocked hook would repeat its attempts until the timeout.
        raise Failed(error.reason) from error
    here.stop()
    return Done()


def ready(told: Told) -> Done:
    group = Group()
    if told.vm in group.rejecting:
        raise Rejected(group.silent[told.vm])
    if told.vm not in group.seen:
        raise Blocked(group.silent[told.vm])
    if group.primaries() == list(group.seen) == [told.vm] and (why := group.doubt(told.vm)):
        # No member contradicts. A primary that is "not ready" could be stopped without a failover, although no other
        # member serves.
        return Done(why)
    primary = group.the_primary()
    lack = behind(told, group, primary) if primary != told.vm else ""
    if lack:
        raise Blocked(f"{told.vm}: {lack}")
    return Done()


def role(told: Told) -> None:
    group = Group([told.vm], 8)
    if not group.seen:
        raise Blocked(group.silent[told.vm])
    print("primary" if group.primaries() else "replica")


if __name__ == "__main__":
    serve(
        {
            "role": role,
            "check": check,
            "checkpoint": checkpoint,
            "failover": unknown_once_begun(failover, is_half_done),
            "confirm-failover": confirm_failover,
            "undo-failover": undo_failover,
            "drain": drain,
            "shutdown": shutdown,
            "restore": restore,
            "ready": ready,
        }
    )
