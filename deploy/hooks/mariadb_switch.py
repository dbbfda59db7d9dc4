"""The switch of MariaDB from one primary to another, in the steps at the head of `mariadb.py`, and the undo."""

from __future__ import annotations

import os
import signal
import time
from typing import NoReturn

from allclear_hook import (
    Answer,
    Blocked,
    Done,
    Failed,
    NotApplicable,
    NotDone,
    Rejected,
    Told,
    Tries,
    Unknown,
    Unreachable,
    members,
    number,
    progress,
)
from mariadb_members import Group, Server, covers, memory, over_tcp, positions
from mariadb_replication import (
    doubt,
    has_more,
    is_following,
    is_refused,
    lead,
    names_connections,
    reconnect,
    refuses_options,
    resume,
    runs,
    wait_for_acknowledgement,
    why_not_running,
)
from mariadb_rights import lacks, refuses_replication

# Without the sessions of replication and of the server itself.
KILL_APPLICATIONS = """BEGIN NOT ATOMIC
  DECLARE CONTINUE HANDLER FOR 1094 BEGIN END;
  FOR one IN (SELECT id FROM information_schema.processlist
              WHERE user NOT IN ('system user', 'event_scheduler', SUBSTRING_INDEX(USER(), '@', 1))
              AND command NOT IN ('Binlog Dump', 'Daemon')) DO
    EXECUTE IMMEDIATE CONCAT('KILL ', one.id);
  END FOR;
END"""
# The sessions that delay read_only: the server waits for each write statement, and for table locks.
IN_THE_WAY = """SELECT CONCAT(user, ' since ', time, ' s: ', LEFT(COALESCE(info, state, command), 60)) AS one
  FROM information_schema.processlist WHERE id <> CONNECTION_ID() AND command NOT IN ('Binlog Dump', 'Daemon')
  AND user NOT IN ('system user', 'event_scheduler') ORDER BY info IS NULL, time DESC LIMIT 2"""


def why_not(old: Server, server: Server, comes_back: bool) -> str:
    """The reason against this candidate, or an empty text. A reason that waiting does not change is raised as `Rejected`.
    """
    server.look_again()
    named = names_connections(server)
    if named:
        return named
    follows = server.follows
    if server.is_copying:
        return "its data are half of a copy"
    if not follows or (follows["Master_Server_Id"] != old.look["id"] and not is_following(server, old)):
        return f"does not replicate from {old.vm}"
    if is_refused(server):
        raise Rejected(why_not_running(server))
    if not runs(server):
        return why_not_running(server)
    if follows["Using_Gtid"] == "No":
        return "replicates without GTID"
    if server.is_writable:
        return "its read_only is off"
    if server.look["log_bin"] != "1" or server.look["passes_on"] != "1":
        return "log_bin and log_slave_updates must be on"
    if why := has_more(server, old):
        return why
    if why := lacks(server):
        raise Rejected(why)
    if refused := refuses_replication(server.vm):
        if comes_back:
            raise refused
        progress(f"no replica can follow {server.vm}: {refused}")
    lag = number("MAX_LAG_MS", 500)
    return "" if server.reaches(old.where(), lag / 1000) else f"lags more than {lag:g} ms"


def choose(told: Told, group: Group, old: Server) -> Server:
    """The candidate. Without a candidate blocked, or failed if every member refuses an account: waiting repairs no
    password."""
    against, refusing = dict(group.lost), set(group.rejecting)
    for vm in members():
        if vm in told.avoid and vm != old.vm:
            against[vm] = "is on a VM to avoid"
    # A VM that does not come back would take the primary with it: then rather a primary that no replica can follow.
    for comes_back in (True,) if told.comes_back else (True, False):
        for vm in told.in_order_of_preference(group.servers):
            try:
                against[vm] = why_not(old, group.servers[vm], comes_back)
            except Unreachable as error:
                against[vm] = str(error)
                refusing |= {vm} if isinstance(error, Rejected) else set()
            if not against[vm]:
                return group.servers[vm]
    said = "; ".join(f"{vm}: {reason.removeprefix(f'{vm}: ')}" for vm, reason in sorted(against.items()))
    asked = told.in_order_of_preference(members())
    raise (Failed if asked and refusing.issuperset(asked) else Blocked)(f"no member can take over: {said}")


def prove(old: Server) -> None:
    """Finds later errors now, while the primary accepts writes."""
    why = names_connections(old) or lacks(old) or refuses_options(old)
    if why:
        raise Failed(f"{old.vm}: {why}")
    folder = memory().path.parent
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    if not os.access(folder, os.W_OK | os.X_OK):
        raise Failed(f"the hooks' user may not write in {folder}, where STATE_DIR is")


def failover(told: Told) -> Answer:
    with Group(told, locked=True) as group:
        old, primary = group.here, group.primary()
        if (old.follows or (old.named and not old.is_writable)) and not memory().recall():
            raise NotApplicable(f"{old.vm} is a replica")
        if told.is_dry_run:
            prove(old)
            return Done(f"would switch from {old.vm} to {choose(told, group, old).vm}")
        if primary not in (None, old):
            # An earlier attempt was ended after the promotion of the new primary.
            if why := doubt(group, primary, seconds=2):
                raise Blocked(why)
            return finish(told, group, primary)
        tries = Tries(told, "mariadb")
        if primary is None:
            # An earlier attempt was ended after the stop of the writes, or the server was restarted.
            was_begun = has_begun(told)
            take_back(group, was_primary=was_begun)
            group.refresh()
            if was_begun:
                tries.was_in_vain("an attempt was ended in the middle")
        tries.check()
        prove(old)
        reconnect(group, old, seconds=2)
        new = choose(told, group, old)
        memory().remember({"event": told.event})
        signal.signal(signal.SIGTERM, cancelled)
        try:
            return switch(told, group, old, new)
        except BaseException as error:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            group.close()
            lost = dict(group.lost)
            if new.lost and "candidate" not in memory().recall():
                # The candidate was not promoted, so the stopped writes need not wait for its answer.
                lost[new.vm] = new.lost
            if not take_back_at_once(told, lost):
                raise
            why = str(error) or type(error).__name__
            tries.was_in_vain(why)
            raise Failed(f"{why}; taken back") from error


def cancelled(*_: object) -> NoReturn:
    raise Failed("cancelled")


def switch(told: Told, group: Group, old: Server, new: Server) -> Answer:
    stopped = time.monotonic()
    pause = told.pause(number("CATCH_UP_MS", 2000) / 1000)
    stop_writes(old, told)
    catch_up(old, new, stopped + pause)
    # If this program ends now, no hook opens the old primary without a query of the candidate.
    memory().remember({"event": told.event, "candidate": new.vm})
    new.ask("STOP SLAVE ''", "RESET SLAVE '' ALL", "SET GLOBAL read_only = 0")
    took = (time.monotonic() - stopped) * 1000
    progress(f"{new.vm} is the primary; writes were stopped for {took:.0f} ms")
    return finish(told, group, new)


def stop_writes(old: Server, told: Told) -> None:
    # The server counts whole seconds, and without any wait a single write would fail the switch.
    patience = max(1, int(told.pause(number("STOP_SECONDS", 1))))
    try:
        old.ask(f"SET lock_wait_timeout = {patience}", "SET GLOBAL read_only = 1", KILL_APPLICATIONS)
    except Unreachable as error:
        raise Failed(f"{error}{in_the_way(old.vm)}") from error


def in_the_way(vm: str) -> str:
    server = Server(vm, over_tcp(members()[vm]))
    try:
        found = [row["one"] for row in server.ask(IN_THE_WAY)[0]]
    except Unreachable:
        return ""
    finally:
        server.close()
    return f" (connected: {'; '.join(found)})" if found else ""


def catch_up(old: Server, new: Server, ends: float) -> None:
    """Returns when the candidate has all present and future writes of the old primary."""
    while True:
        position = old.where()
        if not new.reaches(position, max(0.0, ends - time.monotonic())):
            new.look_again()
            why = "" if runs(new) else f": {why_not_running(new)}"
            raise Failed(f"{new.vm} did not get all of {old.vm} in time{why}")
        if old.where() == position:
            return


def finish(told: Told, group: Group, primary: Server) -> Answer:
    """After the switch: all others follow the new primary."""
    wrong = lead(group, primary)
    wait_for_acknowledgement(group, primary, told.affected, seconds=1)
    memory().forget()
    return Done("; ".join([f"{primary.vm} is the primary", *wrong]))


def has_begun(told: Told) -> bool:
    """Whether this VM has a note of its switch in this event: then this member was the primary in this event."""
    return bool(memory().recall().get("event") == told.event)


def is_half_done(told: Told) -> bool:
    """Whether an attempt of this event has stopped the writes, and this server does not accept writes now."""
    if not has_begun(told):
        return False
    try:
        with Group(told, only=told.vm) as group:
            return not group.here.is_primary
    except Unreachable:
        return True


def take_back(group: Group, was_primary: bool = False) -> bool:
    """Makes the old primary writable again, unless another member is writable, or may be, or has more. Returns whether
    the old primary is writable. `was_primary`: this VM has stopped the writes in this event, so no other member was the
    primary, and only the candidate of the attempt may be writable now."""
    here, primary = group.here, group.primary()
    if primary or here.follows:
        return primary is here
    candidate = memory().recall().get("candidate")
    if candidate in group.lost:
        raise Blocked(f"{candidate} may be writable, and does not answer: {group.lost[candidate]}")
    if not here.position or here.is_copying:
        raise Failed(f"{here.vm} has no data, or half of them, and nobody is writable: make another one the primary")
    for server in group.others(here):
        if not covers(positions(here.where()), server.position):
            raise Failed(
                f"{server.vm} has transactions that {here.vm} does not have, and nobody is writable: make the"
                " one with the most of them the primary"
            )
    if not was_primary and (why := doubt(group, here, seconds=2)):
        raise Blocked(f"nobody that answers is writable; {why}")
    here.ask("SET GLOBAL read_only = 0")
    here.look_again()
    for server in group.others(here):
        # The attempt had stopped this replica, and could not make the replica forget its primary.
        if server.vm == candidate and is_following(server, here) and not runs(server):
            resume(server.vm)
    lead(group, here)
    wait_for_acknowledgement(group, here, (), seconds=1)
    memory().forget()
    return True


def take_back_at_once(told: Told, lost: dict[str, str]) -> bool:
    """Repeats the undo until success, within the time of a hook that has to end. Afterwards `undo` continues."""
    ends = time.monotonic() + 4
    while True:
        try:
            with Group(told, locked=True, without=lost) as group:
                return take_back(group, was_primary=True)
        except (Unreachable, Blocked):
            if time.monotonic() > ends:
                raise


def undo_failover(told: Told) -> None:
    with Group(told, locked=True) as group:
        take_back(group, was_primary=has_begun(told))


def confirm_failover(told: Told) -> Answer:
    with Group(told) as group:
        primary = group.primary()
        if primary and primary.vm == told.vm:
            raise NotDone(f"{told.vm} is still the primary")
        if primary and told.vm in group.servers and not is_following(group.here, primary):
            raise NotDone(f"{told.vm} does not follow {primary.vm}")
        if primary and (why := doubt(group, primary)):
            raise Unknown(why)
        if primary:
            return Done(f"{primary.vm} is the primary")
        suspects = group.lost
        if has_begun(told):
            # This VM was the primary, so only the candidate may have become writable.
            own = (told.vm, memory().recall().get("candidate"))
            suspects = {vm: why for vm, why in suspects.items() if vm in own}
        if suspects:
            raise Unknown("; ".join(suspects.values()))
        raise NotDone("nobody is writable")
