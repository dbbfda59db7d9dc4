#!/usr/bin/env python3
"""PostgreSQL 13 or later with streaming replication, asynchronous or synchronous. Runs beside each server, as its user.
The files that go with it are named at the head of postgresql.toml.

The switch. It runs on the affected VM that holds the primary. First it looks, with everything still writable: a
standby must stream on the primary's timeline, under its VM's name, with little lag, not on a VM to avoid; no sender
under its name may be far behind, which a stop would wait for; and what is written now must arrive there. Then, with
what a restart of this server makes of a hook that is killed after it:
  1. `stopping` and the new primary's name go into STATE_DIR                                    the primary, as before
  2. primary_conninfo leads to the new primary, standby.signal goes into PGDATA                 a standby
  3. poolers are paused, the server is asked to stop fast, until its control file says that it is shut down: from then
     on it writes no more, whatever it still waits for (an archiver, a standby that hangs)      a standby
  4. the candidate has replayed the checkpoint of that shutdown: it has every write that was acknowledged   a standby
  5. `promoting` goes into STATE_DIR, the candidate is promoted                                 a standby
  6. other standbys are pointed to it, poolers let go, `switched` goes into STATE_DIR           a standby
The server stays down until `restore` starts it as a standby. A signal to end does not cut 2 to 6 in two. What fails
before 5 is taken back: the old primary is started again, at the latest 13 s after 3 began. After 5 it is started only
once the candidate answers that it neither is nor will be promoted; then standby.signal is removed (a restart: the
primary). A run that was killed is gone on with by the next, or taken back by `undo`. A stop that was in vain is not
tried again in the same event, any other switch once more; the reason names the processes in the way. `confirm` says
done when another member is primary and all of this is done, not done when nobody else is primary, and unknown when
somebody who might be does not answer. What a member is while it comes back: postgresql_restore.py and
postgresql_data.py.

Needs: application_name of every standby is its VM's name; recovery_target_timeline = latest and hot_standby
(defaults); a superuser that every member lets in from every other (PGUSER, PGPASSFILE); one for replication
(PRIMARY_CONNINFO); the same on all members. For a rejoin after a crash data checksums or wal_log_hints = on.
wal_keep_size or an archive for the time a member is away, because replication slots do not move: with
primary_slot_name set nothing is switched. `check` tells which of these does not hold.
Promises: never two primaries; no acknowledged write is lost, synchronous or not; a member is back only when it has
replayed what was written on the primary after its return. A primary that was moved away comes back as a standby,
however its service starts it; one that others replaced without this hook is stopped by `restore`, and its writes kept.
Nothing is copied over data that may be somebody's, nor below a mount point that is not mounted.
Cannot promise: to act when no primary runs (it is not a failover manager for crashes); a primary at once when the
candidate is lost in the moment of its promotion: until it answers nobody can tell, and the answer is unknown; logical
slots before 17; commits on two members while every synchronous standby is away: then the primary acknowledges alone,
and says so in synchronous_standby_names. That log which the archiver has not archived at the switch ever is: `failover`
does not wait for an archive that hangs, and says so.

check: whether all that is needed is there; changes nothing.
checkpoint: flushes, so that the stop is short. A standby leaves the synchronous set, so that no commit waits.
failover: as above.    shutdown: stops a standby, never a primary.
restore: follows whoever is primary now; after a crash with pg_rewind, into an empty PGDATA with pg_basebackup; then
  takes its place in the synchronous set.    ready: whether that holds.    role: for the workload's role.

Settings, in the env table
  PGDATA, PGUSER, PGPASSFILE ...        as psql knows them
  MEMBERS           "db-0=10.0.0.4:5432 db-1=10.0.0.5:5432 db-2=10.0.0.6:5432"
  PRIMARY_CONNINFO  how a standby logs in: "user=replicator passfile=..."; host, port and application_name are added
  SYNCHRONOUS       "ANY 1" or "FIRST 1": the hooks write synchronous_standby_names; left out: asynchronous
  POOLERS           "10.0.0.7:6432 ..." admin addresses of PgBouncers, one for each process; see pgbouncer.py
  START, STOP       commands; default: pg_ctl, and SIGINT to the server. Debian: "pg_ctlcluster 15 main start"
  CONFIG_FILE       where postgresql.conf is, when it is not in PGDATA
  MAX_LAG (16777216 bytes), STOP_SECONDS (8), REPLAY_SECONDS (5), PROMOTE_SECONDS (10), PAUSE_SECONDS (5), STATE_DIR,
  BIN (/usr/lib/postgresql/VERSION/bin or /usr/pgsql-VERSION/bin)
"""

from __future__ import annotations

from allclear_hook import Blocked, Done, Failed, NotApplicable, Told, serve, setting
from postgresql_candidate import flush
from postgresql_check import check
from postgresql_members import Group, change_synchronous, synchronous
from postgresql_restore import behind, restore
from postgresql_server import Here
from postgresql_switch import confirm_failover, failover, undo_failover


def checkpoint(told: Told) -> Done:
    group = Group()
    primary = group.the_primary()
    if primary == told.vm:
        standbys = [vm for vm, said in group.seen.items() if said["streams"] and vm not in told.avoid]
        flush(group, [primary, *standbys], told.seconds_left())
        return Done()
    leave(told, group, primary)
    if told.vm in group.seen:
        group.servers[told.vm].ask("CHECKPOINT", told.seconds_left())
    return Done()


def leave(told: Told, group: Group, primary: str) -> None:
    """No commit is to wait for a standby whose VM goes away."""
    now = synchronous(group, primary)
    if not now & told.affected:
        return
    if not setting("SYNCHRONOUS", ""):
        raise Failed(f"commits on {primary} wait for {told.vm}: give SYNCHRONOUS in the hook's env table")
    left = now - told.affected
    if left and not any(group.seen.get(vm, {}).get("streams") for vm in left):
        raise Blocked(f"{' and '.join(sorted(left))} would have to stream: without {told.vm} no commit would be done")
    if not change_synchronous(group.servers[primary], left):
        raise Blocked(f"commits on {primary} still wait for {told.vm}, or for standbys that do not answer")


def shutdown(told: Told) -> Done:
    here = Here(told)
    if not here.standby_signal.exists():
        raise NotApplicable(f"{told.vm} is no standby")
    here.place.note(here.path)
    if here.is_stopping():
        # A primary that was moved away: whatever it still archives is gained.
        return Done(f"{told.vm} is shut down, and ends with: {here.in_the_way()}")
    here.stop()
    return Done()


def ready(told: Told) -> None:
    group = Group()
    primary = group.the_primary()
    if told.vm not in group.seen:
        raise Blocked(group.silent[told.vm])
    lack = behind(told, group, primary) if primary != told.vm else ""
    if lack:
        raise Blocked(f"{told.vm}: {lack}")


def role(told: Told) -> None:
    group = Group([told.vm], 1.5)
    if not group.seen:
        raise Blocked(group.silent[told.vm])
    print("primary" if group.primaries() else "replica")


if __name__ == "__main__":
    serve(
        {
            "role": role,
            "check": check,
            "checkpoint": checkpoint,
            "failover": failover,
            "confirm-failover": confirm_failover,
            "undo-failover": undo_failover,
            "shutdown": shutdown,
            "restore": restore,
            "ready": ready,
        }
    )
