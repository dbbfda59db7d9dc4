"""The switch of Redis from one primary to another, in the steps at the head of `redis_hook.py`, and the undo."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

import resp
from allclear_hook import (
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
    number,
    progress,
    until,
)
from disks import unwritable_state
from redis_members import Cluster, Seen, memory, steer
from redis_server import Member, Server, View

# The end of CLIENT PAUSE. Longer than all actions under the pause, as short as possible after a crash of the hook.
PAUSE = 5.0
CATCH_UP = 0.5
# After a full resynchronisation the primary may send nothing for a second, although both report a link: it waits for the
# replica's next acknowledgement.
FOLLOWS = 2.5
SENTINEL_SEES = 12
# After this time a Sentinel has promoted, or is reset.
PROMOTED = 1.2


@contextmanager
def uninterrupted() -> Iterator[None]:
    """SIGTERM waits until the end of the switch, for less than the 5 s until SIGKILL."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


def successor(cluster: Cluster, told: Told, seen: Seen) -> Member:
    """The member that takes over. Without such a member blocked, or failed if a login of each of them is refused, with the
    reason for each member."""
    reasons, fit = [], []
    ends = time.monotonic() + min(FOLLOWS, told.seconds_left() / 4)
    for member in cluster.others():
        reason = unfit(cluster, told, member, seen) or why_behind(member, seen[cluster.own], ends)
        reasons += [reason] if reason else []
        fit += [] if reason else [member]
    if not fit:
        why = "no member can take over: " + "; ".join(reasons or ["there is no other"])
        asked = [member for member in cluster.others() if member.vm not in told.avoid]
        raise cluster.rejected_or_blocked(asked, why)
    # A member already preferred by Sentinel needs no second wait.
    fit.sort(key=lambda member: (seen[member].priority == 0, -seen[member].offset))
    return cluster.members[told.in_order_of_preference([member.vm for member in fit])[0]]


def unfit(cluster: Cluster, told: Told, member: Member, seen: Seen) -> str:
    primary = seen[cluster.own]
    if member.vm in told.avoid:
        return f"{member} is on a VM to avoid"
    if member not in seen:
        return cluster.unseen[member]
    view, entry = seen[member], member.entry(primary)
    lag = primary.offset - view.offset
    if view.is_primary:
        return f"{member} is a primary itself"
    if not entry or entry.get("state") != "online" or not view.is_linked:
        why = None if view.is_linked else member.why_unlinked(cluster.own)
        if isinstance(why, Rejected):
            cluster.rejecting.add(member)
        return f"{member} does not stream from {cluster.own}" + (f": {why}" if why else "")
    if (cluster.priority(member) if cluster.sentinels else view.priority) == 0:
        return f"{member} has replica-priority 0"
    if lag > number("MAX_LAG", 1 << 20):
        return f"{member} lags {lag} bytes behind"
    return ""


def why_behind(member: Member, primary: View, ends: float) -> str:
    """Waits until the member has the earlier view's writes: under the pause of writes would be no time for that."""
    try:
        if until(lambda: member.look().holds_all_of(primary), ends - time.monotonic(), every=0.01):
            return ""
        return f"{member} is linked, but does not reach offset {primary.offset}"
    except Unreachable as error:
        return str(error)


def look_first(cluster: Cluster, heir: Member, comes_back: bool) -> None:
    """Checks for later errors, while everything is still writable."""
    own = cluster.own
    if wrong := unwritable_state():
        raise Failed(wrong[0])
    for member in (own, heir):
        if refused := member.refuses():
            raise Failed(f"{member} refuses the hooks' user what a switch needs, {refused}")
        if member.config("replica-read-only") != "yes":
            raise Failed(f"{member} has replica-read-only no: as a replica it would take writes, and lose them")
    if comes_back and (why := own.why_unlinked(heir)):
        raise Failed(f"{own} could not follow {heir}: {why}; set masterauth, and masteruser where users have names")
    if not cluster.sentinels and (watchers := own.watchers()):
        raise Failed(f"a Sentinel watches {own}, at {', '.join(watchers)}, and would undo a switch; set SENTINELS")


def keep_files(cluster: Cluster, heir: Member) -> None:
    """Proves that both members can write their configuration files, which contain the primary for a restart."""
    for member in (cluster.own, heir):
        try:
            member.call("CONFIG", "REWRITE")
        except resp.Error as error:
            raise Failed(f"a switch would not outlive a restart of {member}: {error}") from error


def failover(told: Told) -> Done | NotApplicable:
    cluster = Cluster(told)
    own = cluster.own
    seen = cluster.looked() if told.is_dry_run else settled(cluster)
    if not seen[own].is_primary:
        if not told.is_dry_run:
            finish(cluster, seen)
        return NotApplicable(f"{own} is a replica")
    heir = successor(cluster, told, seen)
    look_first(cluster, heir, told.comes_back)
    if told.is_dry_run:
        return Done(f"{heir} would take over")
    tries = Tries(told, "redis")
    tries.check()
    keep_files(cluster, heir)
    progress(f"{heir} takes over")
    if cluster.sentinels:
        steer(cluster, cluster.sentinels, heir, seen, min(SENTINEL_SEES, told.seconds_left()))
        cluster.sentinels.ask("CKQUORUM")
        first = cluster.sentinels.reachable()[0]
        cluster.sentinels.wait_for_glance(heir, first, min(SENTINEL_SEES, told.seconds_left() / 4))
    hand_over(cluster, heir, tries, told.pause(PAUSE))
    finish(cluster, cluster.looked())
    return Done(f"{heir} has taken over")


def hand_over(cluster: Cluster, heir: Member, tries: Tries, pause: float) -> None:
    own, sentinels = cluster.own, cluster.sentinels
    asked = sentinels.reachable() if sentinels else []
    with uninterrupted():
        if not own.look().is_primary:
            raise Blocked(f"{own} is no longer the primary")
        try:
            ends = time.monotonic() + pause
            own.call("CLIENT", "PAUSE", max(1, int(pause * 1000)), "WRITE")
            step_down(own, heir, min(CATCH_UP, pause / 2), ends, tries.event)
        except (Blocked, Unreachable) as error:
            tries.was_in_vain(str(error))
            # No member was asked to take over.
            if not own.look().is_primary:
                own.lead()
            memory().forget()
            raise Failed(f"{error}; {own} is the primary as before") from error
        else:
            take_over(cluster, heir, asked, tries, min(PROMOTED, pause / 2))
        finally:
            release(own)
        if sentinels:
            until(lambda: heir.is_at(sentinels.published()), 1.5)
        own.send_clients_away()


def take_over(cluster: Cluster, heir: Member, asked: list[Server], tries: Tries, seconds: float) -> None:
    try:
        if cluster.sentinels:
            cluster.sentinels.promote(heir, asked, seconds)
        else:
            heir.lead()
    except (Blocked, Unreachable) as error:
        tries.was_in_vain(str(error))
        if settled(cluster)[cluster.own].is_primary:
            memory().forget()
            raise Failed(f"{error}; {cluster.own} is the primary as before") from error


def release(member: Member) -> None:
    """After an error here the pause ends automatically."""
    try:
        member.call("CLIENT", "UNPAUSE")
    except Unreachable as error:
        progress(str(error))


def step_down(own: Member, heir: Member, seconds: float, ends: float, event: str) -> None:
    """First down, then up: at no moment, and after no restart, are there two primaries. `ends`: the end of the pause, after
    which clients write again, so the noted offset is no longer all that they have an acknowledgement for."""
    before = own.look()
    catch_up(heir, before, seconds)
    memory().remember({"event": event, "to": heir.vm, "history": before.history, "offset": before.offset})
    if time.monotonic() >= ends:
        raise Blocked(f"the pause of writes ended before {own} stepped down")
    stepped = own.step_down_for(heir)
    if stepped.history != before.history:
        raise Blocked(f"{own} was restarted while it stepped down")
    catch_up(heir, stepped, seconds / 5)


def catch_up(heir: Member, view: View, seconds: float) -> None:
    if not until(lambda: heir.look().holds_all_of(view), seconds, every=0.001):
        raise Blocked(f"{heir} did not catch up within {seconds:g} s")


def is_half_done(told: Told) -> bool:
    """Whether this member may have stepped down in an attempt of this event that has not ended."""
    if memory().recall().get("event") != told.event:
        return False
    try:
        return not Cluster(told).own.look().is_primary
    except Unreachable:
        return True


def settled(cluster: Cluster) -> Seen:
    """Ends the rest of a killed attempt, and returns the views."""
    if cluster.sentinels:
        cluster.sentinels.give_up(5)
    seen = cluster.looked()
    if any(view.is_primary for view in seen.values()):
        return seen
    lead_again(cluster, seen)
    # The replicas try once a second to follow.
    until(lambda: cluster.own.look().replicas or not cluster.own.look().is_primary, 2.5, every=0.05)
    return cluster.looked()


def lead_again(cluster: Cluster, seen: Seen) -> None:
    """No member is a primary: the hook was killed after this member stepped down, or a member restarted empty and
    follows another member. Makes a complete member lead, and no other member can lead."""
    facts = memory().recall()
    heir = cluster.members.get(facts.get("to", ""))
    if heir and heir not in seen:
        raise Blocked(f"{cluster.own} stepped down for {heir}, which may have taken over: {cluster.unseen[heir]}")
    # Commands still on the way, for example from a Sentinel that was reset, are no longer executed.
    for member in cluster.others():
        if member in seen:
            member.send_clients_away()
            seen[member] = member.look()
            if seen[member].is_primary:
                return
    complete = [member for member, view in seen.items() if heir and view.has(facts["history"], int(facts["offset"]))]
    complete.sort(key=lambda member: (member is not cluster.own, member is not heir))
    leader = complete[0] if complete else best(cluster, seen)
    progress(f"no member is a primary; {leader} has everything, and leads")
    if cluster.sentinels and leader is not cluster.own:
        asked = cluster.sentinels.reachable()
        steer(cluster, cluster.sentinels, leader, seen, SENTINEL_SEES)
        cluster.sentinels.promote(leader, asked, PROMOTED)
    else:
        leader.lead()


def best(cluster: Cluster, seen: Seen) -> Member:
    """The member with the data of all others, if every member answers."""
    if cluster.unseen:
        raise Blocked(cluster.no_primary())
    if linked := [str(member) for member, view in seen.items() if view.is_linked]:
        raise Blocked(f"no member is a primary, and {', '.join(linked)} follow one that is not among MEMBERS")
    first = max(seen, key=lambda member: (seen[member].offset, member is cluster.own))
    apart = [member for member, view in seen.items() if not (seen[first].holds_all_of(view) or member.is_empty())]
    if apart:
        raise Blocked(
            f"no member is a primary, and nobody can tell whether {first} has all that {', '.join(map(str, apart))}"
            " holds: compare them, and say REPLICAOF NO ONE and CONFIG REWRITE on the one that is to lead"
        )
    return first


def finish(cluster: Cluster, seen: Seen) -> None:
    """Completes a change of roles. May be repeated by any hook."""
    primary = cluster.at(seen[cluster.own].follows)
    if primary is None or primary not in seen or not seen[primary].is_primary:
        return
    if not cluster.unseen or cluster.is_proven(primary, seen):
        cluster.gather(primary, seen)
        memory().forget()


def confirm_failover(told: Told) -> Done | NotDone | Unknown:
    cluster = Cluster(told)
    seen = cluster.look()
    own = seen.get(cluster.own)
    if own is None:
        return Unknown(cluster.unseen[cluster.own])
    primary = cluster.at(own.follows)
    if primary in seen and primary is not None and seen[primary].is_primary:
        return Done()
    if own.is_primary:
        return NotDone(f"{cluster.own} is a primary")
    heir = cluster.members.get(memory().recall().get("to", ""))
    if heir in cluster.unseen:
        return Unknown(f"{cluster.own} stepped down for {heir}, which may have taken over: {cluster.unseen[heir]}")
    return NotDone("; ".join([f"{cluster.own} follows no primary", *cluster.unseen.values()]))


def undo_failover(told: Told) -> Done:
    cluster = Cluster(told)
    release(cluster.own)
    seen = settled(cluster)
    primary = cluster.primary(seen)
    if primary is None:
        cluster.put_priorities_back(seen)
        if cluster.doubt and seen[cluster.own].is_primary:
            # Nothing of this VM's switch is left; whose primary the others follow is no matter of the undo.
            memory().forget()
            return Done(cluster.no_primary())
        raise Blocked(cluster.no_primary())
    cluster.gather(primary, seen)
    memory().forget()
    return Done(f"{primary} is the primary")
