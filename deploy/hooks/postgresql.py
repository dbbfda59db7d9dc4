#!/usr/bin/env python3
"""PostgreSQL 13 or later with streaming replication, asynchronous or synchronous. Runs beside each server, as its user.
The files that go with it are named at the head of postgresql.toml.

The switch. It runs on the affected VM that holds the primary. First it looks, with everything still writable: a
standby must stream on the primary's timeline, under its VM's name, with little lag, not on a VM to avoid. Then
  1. `stopping` and the new primary's name go into STATE_DIR, standby.signal into PGDATA: whoever starts this server
     from now on gets a standby of the new primary;
  2. poolers are paused, and the server is stopped fast; it must say that it was shut down;
  3. the candidate must have replayed the checkpoint of that shutdown: it has every write that was acknowledged;
  4. `promoting` goes into STATE_DIR, the candidate is promoted, other standbys are pointed to it, poolers let go;
  5. `switched` goes into STATE_DIR. The server stays down until `restore` starts it as a standby.
A signal to end does not cut 2 to 4 in two. What fails before 4 is taken back: the old primary is started again. After
4 it is started only once the candidate answers that it neither is nor will be promoted. A run that was killed is gone
on with by the next, or taken back by `undo`. `confirm` says done when another member is primary and all of this is
done, not done when nobody else is primary, and unknown when somebody who might be does not answer.

Needs: application_name of every standby is its VM's name; recovery_target_timeline = latest and hot_standby
(defaults); a superuser that every member lets in from every other (PGUSER, PGPASSFILE); one for replication
(PRIMARY_CONNINFO); the same on all members. For a rejoin after a crash data checksums or wal_log_hints = on.
wal_keep_size or an archive for the time a member is away, because replication slots do not move: with
primary_slot_name set nothing is switched.
Promises: never two primaries; no acknowledged write is lost, synchronous or not; a member is back only when it has
replayed what was written on the primary after its return. A primary that was moved away comes back as a standby,
however its service starts it; one that others replaced without this hook is stopped by `restore`, and what it wrote kept.
Cannot promise: to act when no primary runs (it is not a failover manager for crashes); a primary at once when the
candidate is lost in the moment of its promotion: until it answers nobody can tell, and the answer is unknown; logical
slots before 17; commits on two members while every synchronous standby is away: then the primary acknowledges alone,
and says so in synchronous_standby_names.

checkpoint: flushes, so that the stop is short. A standby leaves the synchronous set, so that no commit waits.
failover: as above.    shutdown: stops a standby, never a primary.
restore: follows whoever is primary now; after a crash with pg_rewind, into an empty PGDATA with pg_basebackup; then
  takes its place in the synchronous set.    ready: whether that holds.    role: for the workload's role.

Settings, in the env table
  PGDATA, PGUSER, PGPASSFILE ...        as psql knows them
  MEMBERS           "db-0=10.0.0.4:5432 db-1=10.0.0.5:5432 db-2=10.0.0.6:5432"
  PRIMARY_CONNINFO  how a standby logs in: "user=replicator passfile=..."; host, port and application_name are added
  SYNCHRONOUS       "ANY 1" or "FIRST 1": the hooks write synchronous_standby_names; left out: asynchronous
  POOLERS           "10.0.0.7:6432 ..." admin addresses of PgBouncers; see pgbouncer.py
  START, STOP       commands; default: pg_ctl, and SIGINT to the server. Debian: "pg_ctlcluster 15 main start"
  CONFIG_FILE       where postgresql.conf is, when it is not in PGDATA (for pg_rewind, 15 or later)
  MAX_LAG (16777216 bytes), STOP_SECONDS (15), REPLAY_SECONDS (5), PROMOTE_SECONDS (10), PAUSE_SECONDS (5), STATE_DIR,
  BIN (/usr/lib/postgresql/VERSION/bin)
"""

from allclear_hook import Blocked, Done, NotApplicable, serve, setting, until
from postgresql_members import Group, change_synchronous, synchronous
from postgresql_restore import behind, restore
from postgresql_server import Here
from postgresql_switch import confirm_failover, failover, flush, undo_failover


def checkpoint(told):
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


def leave(told, group, primary):
    """No commit is to wait for a standby whose VM goes away."""
    now = synchronous(group.seen[primary])
    if not setting("SYNCHRONOUS", "") or not now & told.affected:
        return
    left = now - told.affected
    if left and not any(group.seen.get(vm, {}).get("streams") for vm in left):
        raise Blocked(f"{' and '.join(sorted(left))} would have to stream: without {told.vm} no commit would be done")
    if not change_synchronous(group.servers[primary], left):
        raise Blocked(f"commits on {primary} still wait for {told.vm}, or for standbys that do not answer")


def shutdown(told):
    here = Here(told)
    if not here.standby_signal.exists():
        raise NotApplicable(f"{told.vm} is no standby")
    here.stop()


def ready(told):
    group = Group()
    primary = group.the_primary()
    if told.vm not in group.seen:
        raise Blocked(group.silent[told.vm])
    lack = behind(told, group, primary) if primary != told.vm else ""
    if lack:
        raise Blocked(f"{told.vm}: {lack}")


def role(told):
    group = Group([told.vm], 1.5)
    if not group.seen:
        raise Blocked(group.silent[told.vm])
    print("primary" if group.primaries() else "replica")


if __name__ == "__main__":
    serve(
        {
            "role": role,
            "checkpoint": checkpoint,
            "failover": failover,
            "confirm-failover": confirm_failover,
            "undo-failover": undo_failover,
            "shutdown": shutdown,
            "restore": restore,
            "ready": ready,
        }
    )
