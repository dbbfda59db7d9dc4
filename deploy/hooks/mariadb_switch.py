"""The switch of MariaDB from one primary to another, as the head of `mariadb.py` has it, and how it is taken back."""

import signal
import time

from allclear_hook import (Blocked, Done, Failed, NotApplicable, NotDone, Unknown, Unreachable, members, number,
                           progress)
from mariadb_members import LOOK, POSITION, Group, covers, memory, positions
from mariadb_replication import (is_following, lead, reconnect, replication_account, runs,
                                 wait_for_acknowledgement)

# Those of replication and of the server itself have no part in what applications do.
KILL_APPLICATIONS = """BEGIN NOT ATOMIC
  DECLARE CONTINUE HANDLER FOR 1094 BEGIN END;
  FOR one IN (SELECT id FROM information_schema.processlist
              WHERE user NOT IN ('system user', 'event_scheduler', SUBSTRING_INDEX(USER(), '@', 1))
              AND command NOT IN ('Binlog Dump', 'Daemon')) DO
    EXECUTE IMMEDIATE CONCAT('KILL ', one.id);
  END FOR;
END"""


def why_not(old, server):
    """What speaks against this candidate."""
    follows = server.follows
    if not follows or follows["Master_Server_Id"] != old.look["id"]:
        return f"does not replicate from {old.vm}"
    if not runs(server):
        return follows["Last_SQL_Error"] or follows["Last_IO_Error"] or "its replication does not run"
    if follows["Using_Gtid"] == "No":
        return "replicates without GTID"
    if server.look["read_only"] in ("0", "OFF"):
        return "its read_only is off"
    if server.look["log_bin"] != "1" or server.look["passes_on"] != "1":
        return "log_bin and log_slave_updates must be on"
    now = old.one(POSITION)
    if not covers(positions(now), server.position):
        return f"has transactions that {old.vm} does not have"
    lag = number("MAX_LAG_MS", 500)
    return "" if server.reaches(now, lag / 1000) else f"lags more than {lag:g} ms"


def choose(told, group, old):
    against = dict(group.lost)
    for vm in members():
        if vm in told.avoid and vm != old.vm:
            against[vm] = "is on a VM to avoid"
    for vm in told.in_order_of_preference(group.servers):
        try:
            against[vm] = why_not(old, group.servers[vm])
        except Unreachable as error:
            against[vm] = str(error)
        if not against[vm]:
            return group.servers[vm]
    said = "; ".join(f"{vm}: {reason}" for vm, reason in sorted(against.items()))
    raise Blocked(f"no member can take over: {said}")


def failover(told):
    with Group(told, locked=True) as group:
        old, primary = group.here, group.primary()
        if old.follows and not memory().recall():
            raise NotApplicable(f"{old.vm} is a replica")
        if told.is_dry_run:
            return Done(f"would switch from {old.vm} to {choose(told, group, old).vm}")
        if primary not in (None, old):
            # An attempt before this one was ended after it had opened the new primary.
            return finish(told, group, primary)
        if primary is None:
            # An attempt before this one was ended after it had stopped the writes.
            take_back(group)
            group.refresh()
        reconnect(group, old, seconds=2)
        new = choose(told, group, old)
        # What would fail later had better fail now, while the primary takes writes.
        memory().remember({})
        replication_account()
        signal.signal(signal.SIGTERM, cancelled)
        try:
            return switch(told, group, old, new)
        except BaseException:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            group.close()
            lost = dict(group.lost)
            if new.lost and "candidate" not in memory().recall():
                # It was not opened, so that the writes, which stand still, need not wait for it to answer.
                lost[new.vm] = new.lost
            take_back_at_once(told, lost)
            raise


def cancelled(*_):
    raise Failed("cancelled")


def switch(told, group, old, new):
    stopped = time.monotonic()
    old.ask(f"SET lock_wait_timeout = {int(number('STOP_SECONDS', 1))}", "SET GLOBAL read_only = 1",
            KILL_APPLICATIONS)
    catch_up(old, new, stopped + number("CATCH_UP_MS", 2000) / 1000)
    # Should this be the last that this program does, then nobody opens the old primary without asking that one.
    memory().remember({"candidate": new.vm})
    new.ask("STOP SLAVE", "RESET SLAVE ALL", "SET GLOBAL read_only = 0")
    took = (time.monotonic() - stopped) * 1000
    progress(f"{new.vm} is the primary; writes were stopped for {took:.0f} ms")
    return finish(told, group, new)


def catch_up(old, new, ends):
    """Returns when the candidate has all that the old primary will ever have."""
    while True:
        position = old.one(POSITION)
        if not new.reaches(position, max(0.0, ends - time.monotonic())):
            raise Blocked(f"{new.vm} did not get all of {old.vm} in time; taken back")
        if old.one(POSITION) == position:
            return


def finish(told, group, primary):
    """The switch is made; what is left is that everybody follows."""
    wrong = lead(group, primary)
    wait_for_acknowledgement(group, primary, told.affected, seconds=1)
    memory().forget()
    return Done("; ".join([f"{primary.vm} is the primary", *wrong]))


def take_back(group):
    """The old primary is opened again, unless another one is open, or may be, or has more."""
    here, primary = group.here, group.primary()
    if primary or here.follows:
        return
    candidate = memory().recall().get("candidate")
    if candidate in group.lost:
        raise Blocked(f"{candidate} may be writable, and does not answer: {group.lost[candidate]}")
    for server in group.others(here):
        if not covers(here.position, server.position):
            raise Failed(f"{server.vm} has transactions that {here.vm} does not have, and nobody is writable: make the"
                         " one with the most of them the primary")
    here.ask("SET GLOBAL read_only = 0")
    here.see(here.ask(LOOK, "SHOW SLAVE STATUS"))
    lead(group, here)
    wait_for_acknowledgement(group, here, (), seconds=1)
    memory().forget()


def take_back_at_once(told, lost):
    """Until it succeeds, within the time that is left to a hook which has to end. After that `undo` does it."""
    ends = time.monotonic() + 4
    while True:
        try:
            with Group(told, locked=True, without=lost) as group:
                return take_back(group)
        except (Unreachable, Blocked):
            if time.monotonic() > ends:
                raise


def undo_failover(told):
    with Group(told, locked=True) as group:
        take_back(group)


def confirm_failover(told):
    with Group(told) as group:
        primary = group.primary()
        if primary and primary.vm == told.vm:
            raise NotDone(f"{told.vm} is still the primary")
        if primary and told.vm in group.servers and not is_following(group.here, primary):
            raise NotDone(f"{told.vm} does not follow {primary.vm}")
        if primary:
            return Done(f"{primary.vm} is the primary")
        if group.lost:
            raise Unknown("; ".join(f"{vm}: {reason}" for vm, reason in group.lost.items()))
        raise NotDone("nobody is writable")
