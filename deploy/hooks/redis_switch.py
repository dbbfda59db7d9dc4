"""The switch of Redis from one primary to another, as the head of `redis_hook.py` has it, and how it is taken back."""

import signal
import time
from contextlib import contextmanager

import resp
from allclear_hook import (Blocked, Done, Failed, NotApplicable, NotDone, Unknown, Unreachable, number, progress,
                           until)
from redis_members import Cluster, steer

# FAILOVER gives up after this. It waits for an acknowledgement, which comes once a second.
FAILOVER_MS = 1500
# After an acknowledgement of the successor the next one comes in 1 s; FAILOVER is sent this much earlier.
EARLY = 0.06
# CLIENT PAUSE ends by itself after this. Longer than all that is done under it, as short as a dead hook allows.
PAUSE_MS = 5000
CATCH_UP = 0.5
SENTINEL_SEES = 12


@contextmanager
def uninterrupted():
    """SIGTERM waits until the switch is over. It takes less than the 5 s after which SIGKILL follows."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


def successor(cluster, told, seen):
    """The member that takes over; blocked with the reason for each when there is none."""
    reasons, fit = [], []
    for member in cluster.others():
        reason = unfit(cluster, told, member, seen)
        reasons += [f"{member} {reason}"] if reason else []
        fit += [] if reason else [member]
    if not fit:
        raise Blocked("no member can take over: " + "; ".join(reasons or ["there is no other"]))
    # One that Sentinel was steered to already needs no second wait.
    fit.sort(key=lambda member: (seen[member].priority == 0, -seen[member].offset))
    return cluster.members[told.in_order_of_preference([member.vm for member in fit])[0]]


def unfit(cluster, told, member, seen):
    primary = seen[cluster.own]
    if member.vm in told.avoid:
        return "is on a VM to avoid"
    if member not in seen:
        return "does not answer"
    view, entry = seen[member], member.entry(primary)
    lag = primary.offset - view.offset
    if view.is_primary:
        return "is a primary itself"
    if not entry or entry["state"] != "online" or not view.is_linked:
        return f"does not stream from {cluster.own}"
    if (cluster.priority(member) if cluster.sentinels else view.priority) == 0:
        return "has replica-priority 0"
    if lag > number("MAX_LAG", 1 << 20):
        return f"lags {lag} bytes behind"
    return None


def look_first(cluster, heir):
    """What would go wrong later, while everything is still writable."""
    own = cluster.own
    if own.config("replica-read-only") != "yes":
        raise Failed(f"{own} has replica-read-only no: as a replica it would take writes, and lose them")
    if own.config("requirepass") and not own.config("masterauth"):
        raise Failed(f"{own} has no masterauth: it could not follow {heir}")
    for member in (own, heir):
        try:
            member.call("CONFIG", "REWRITE")
        except resp.Error as error:
            raise Failed(f"a switch would not outlive a restart of {member}: {error}") from error


def checkpoint(told):
    cluster = Cluster(told)
    seen = looked(cluster)
    if not seen[cluster.own].is_primary:
        return NotApplicable(f"{cluster.own} is no primary")
    heir = successor(cluster, told, seen)
    if cluster.sentinels and not told.is_dry_run:
        steer(cluster, heir, seen, min(SENTINEL_SEES, told.seconds_left()))
    return Done(f"{heir} would take over")


def failover(told):
    cluster = Cluster(told)
    own = cluster.own
    seen = settled(cluster)
    if not seen[own].is_primary:
        finish(cluster, seen)
        return NotApplicable(f"{own} is a replica")
    heir = successor(cluster, told, seen)
    if told.is_dry_run:
        return Done(f"{heir} would take over")
    look_first(cluster, heir)
    progress(f"{heir} takes over")
    if cluster.sentinels:
        steer(cluster, heir, seen, min(SENTINEL_SEES, told.seconds_left()))
        hand_over_by_sentinel(cluster, heir, min(SENTINEL_SEES, told.seconds_left() / 2))
    else:
        hand_over(own, heir, heir.entry(seen[own]))
    finish(cluster, looked(cluster))
    return Done(f"{heir} has taken over")


def hand_over(own, heir, entry):
    wait_for_acknowledgement(own, heir)
    with uninterrupted():
        own.call("FAILOVER", "TO", entry["ip"], entry["port"], "TIMEOUT", FAILOVER_MS)
        if not until(lambda: not own.look().is_handing_over, FAILOVER_MS / 1000 + 1):
            give_up(own, heir)
    if own.look().is_primary:
        raise Blocked(f"{heir} did not catch up within {FAILOVER_MS} ms; {own} is the primary as before")
    own.send_clients_away()


def wait_for_acknowledgement(own, heir):
    """Comes back shortly before the next one is due. Where nothing is written FAILOVER has nothing to wait for."""
    def acknowledged():
        return (heir.entry(own.look()) or {}).get("offset")

    last = acknowledged()
    if until(lambda: acknowledged() != last, 1.3, every=0.002):
        time.sleep(1 - EARLY)


def give_up(own, heir, though_it_hangs=False):
    """FAILOVER waits without end for a successor that went away. It may be ended while that has not taken over. As long
    as nobody is followed, nothing is handed over."""
    try:
        has_taken_over = heir is not None and heir.look().is_primary
    except resp.Refused:
        has_taken_over = False
    except Unreachable as error:
        if not though_it_hangs:
            raise Unknown(f"{heir} hangs while it takes over: {error}") from error
        has_taken_over = False
    if not has_taken_over:
        own.call("FAILOVER", "ABORT")


def hand_over_by_sentinel(cluster, heir, seconds):
    own, sentinels = cluster.own, cluster.sentinels
    sentinels.ask("CKQUORUM")
    if asked := sentinels.reachable():
        sentinels.wait_for_glance(heir, asked[0], seconds)
    asked = sentinels.reachable()
    if not asked:
        raise Blocked("no Sentinel answers, or all are in TILT")
    with uninterrupted():
        own.call("CLIENT", "PAUSE", PAUSE_MS, "WRITE")
        try:
            written = own.look().offset
            if not until(lambda: heir.look().offset >= written, CATCH_UP, every=0.001):
                raise Blocked(f"{heir} did not catch up within {CATCH_UP} s")
            # First down, then up: whatever happens in between, there are no two.
            written = own.step_down_for(heir)
            if not until(lambda: heir.look().offset >= written, CATCH_UP / 5, every=0.001):
                own.lead()
                raise Blocked(f"{own} was written to while it stepped down; it is the primary as before")
            if not sentinels.promote(heir, asked, 1.2):
                own.lead()
                raise Blocked(f"no Sentinel promoted {heir}; {own} is the primary as before")
            until(lambda: heir.is_at(sentinels.primary()), 1.5)
            own.send_clients_away()
        finally:
            own.call("CLIENT", "UNPAUSE")


def settled(cluster, is_last=False):
    """Ends what an attempt that was killed has left under way, and looks."""
    own = cluster.own
    if not until(lambda: not own.look().is_handing_over, FAILOVER_MS / 1000 + 1):
        give_up(own, cluster.at(own.look().follows), is_last)
    if cluster.sentinels:
        cluster.sentinels.give_up(5)
    seen = looked(cluster)
    if is_half_way(cluster, seen):
        own.lead()
        # The others try once a second.
        until(lambda: own.look().replicas, 2.5, every=0.05)
        seen = looked(cluster)
    return seen


def looked(cluster):
    seen = cluster.look()
    if cluster.own not in seen:
        raise Blocked(f"{cluster.own} does not answer")
    return seen


def is_half_way(cluster, seen):
    """Whether this member stepped down and nobody stepped up: the two follow each other, and it has everything. One
    that came back empty may look like that too, and has less."""
    own = seen[cluster.own]
    heir = cluster.at(own.follows)
    return heir in seen and cluster.own.is_at(seen[heir].follows) and own.offset >= seen[heir].offset


def finish(cluster, seen):
    """What is left when the roles have changed. It may be done again, by whichever hook comes first."""
    primary = cluster.at(seen[cluster.own].follows)
    if primary in seen and seen[primary].is_primary:
        cluster.gather(primary, seen)


def confirm_failover(told):
    cluster = Cluster(told)
    seen = cluster.look()
    own = seen.get(cluster.own)
    if own is None or own.is_handing_over:
        return Unknown(f"{cluster.own} does not answer" if own is None else "FAILOVER is still under way")
    primary = cluster.at(own.follows)
    if primary in seen and seen[primary].is_primary:
        return Done()
    return NotDone(f"{cluster.own} is a primary" if own.is_primary else f"{cluster.own} follows no primary")


def undo_failover(told):
    cluster = Cluster(told)
    seen = settled(cluster, is_last=True)
    cluster.own.call("CLIENT", "UNPAUSE")
    primary = cluster.primary(seen)
    if primary is None:
        cluster.put_priorities_back(seen)
        raise Blocked("no member is a primary")
    cluster.gather(primary, seen)
    return Done(f"{primary} is the primary")
