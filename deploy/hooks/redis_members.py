"""The members of a Redis replication and the primary, for the hooks of `redis_hook.py`."""

from __future__ import annotations

import os
from collections.abc import Collection

from allclear_hook import Blocked, Failed, Memory, Rejected, Told, Unreachable, members, progress, setting, until
from redis_sentinels import Sentinels
from redis_server import Member, View

Seen = dict[Member, View]

# A replica acknowledges every second. A primary lists a replica that has left without a word for a minute. Seconds.
FOLLOWED_WITHIN = 3


class Cluster:
    def __init__(self, told: Told) -> None:
        self.members = {vm: Member(vm, *place) for vm, place in members().items()}
        if told.vm not in self.members:
            raise Failed(f"MEMBERS does not name {told.vm}, this VM")
        self.own = self.members[told.vm]
        self.sentinels = Sentinels(told) if os.environ.get("SENTINELS") else None
        # The reasons of members without an answer in the last `look`.
        self.unseen: dict[Member, str] = {}
        # The members to which a login is refused, of the hooks' user or at the primary: waiting repairs no password.
        self.rejecting: set[Member] = set()
        # Why the only primary that answers may be a former primary.
        self.doubt = ""

    def others(self) -> list[Member]:
        return [member for member in self.members.values() if member is not self.own]

    def at(self, place: tuple[str, int] | None) -> Member | None:
        return next((member for member in self.members.values() if member.is_at(place)), None)

    def look(self) -> Seen:
        """{member: view} of the members that answer."""
        seen: Seen = {}
        self.unseen = {}
        self.rejecting = set()
        for member in self.members.values():
            try:
                seen[member] = member.look()
            except Rejected as error:
                self.unseen[member] = f"{member}: {error}"
                self.rejecting.add(member)
            except Unreachable as error:
                self.unseen[member] = f"{member} does not answer: {error}"
        return seen

    def looked(self) -> Seen:
        """As `look`, and without an answer of this VM's member blocked, or failed if it refuses the hooks' user."""
        seen = self.look()
        if self.own not in seen:
            raise self.rejected_or_blocked([self.own], self.unseen[self.own])
        return seen

    def rejected_or_blocked(self, members: Collection[Member], why: str) -> Rejected | Blocked:
        """The answer if the task needs one of these members: blocked, unless a login of each of them is refused."""
        return Rejected(why) if members and self.rejecting.issuperset(members) else Blocked(why)

    def primary(self, seen: Seen) -> Member | None:
        """The primary. While a member does not answer, only a proven primary: the silent member may be the present primary,
        and the answering one a former primary that has not noticed."""
        self.doubt = ""
        claimed, is_sure = self._claimed(seen)
        if claimed is None or is_sure or self.is_proven(claimed, seen):
            return claimed
        self.doubt = (
            f"{claimed} takes writes, but may be a former primary: no member follows it, and one that does not answer may"
            " be the present primary"
        )
        return None

    def _claimed(self, seen: Seen) -> tuple[Member | None, bool]:
        """The primary by Sentinel; without Sentinel, of several primaries, the primary with all data of the others. And
        whether no other member can be the primary."""
        primaries = [member for member, view in seen.items() if view.is_primary]
        if self.sentinels:
            named, by_majority = self.sentinels.primary()
            found = next((member for member in primaries if member.is_at(named)), None)
            return found, by_majority or (not self.unseen and primaries == [found])
        whole = self._whole(primaries, seen)
        is_sure = whole is not None and all(self._was_replaced(member, whole, seen) for member in self.unseen)
        return whole, is_sure

    def _was_replaced(self, silent: Member, primary: Member, seen: Seen) -> bool:
        """Whether a replica still waits for this silent member, and that primary has been promoted since, with all that
        the replica has."""
        by = seen[primary]
        waiting = [view for view in seen.values() if silent.is_at(view.follows)]
        return any(by.former == view.history and by.holds_all_of(view) for view in waiting)

    def own_doubt(self, primary: Member, seen: Seen) -> str:
        """The doubt about the primary that remains if this replica does not count as proof, or an empty text. A replica that
        was down during a promotion follows the former primary after its start."""
        if not self.unseen or primary is self.own or self._claimed(seen)[1] or self.is_proven(primary, seen, self.own):
            return ""
        return f"only {self.own} follows {primary}, which may be a former primary: {'; '.join(self.unseen.values())}"

    def is_proven(self, primary: Member, seen: Seen, not_by: Member | None = None) -> bool:
        """Whether a member other than `not_by` follows this primary now, or this VM's member has stepped down for it."""
        stepped_down = self.own in seen and not seen[self.own].is_primary
        if stepped_down and memory().recall().get("to") == primary.vm:
            return True
        return any(self._follows(member, primary, seen) for member in self.members.values() if member is not not_by)

    def _follows(self, member: Member, primary: Member, seen: Seen) -> bool:
        entry = member.entry(seen[primary])
        if member is primary or not entry or entry.get("state") != "online":
            return False
        if member in seen and not primary.is_at(seen[member].follows):
            return False
        return 0 <= int(entry.get("lag", -1)) <= FOLLOWED_WITHIN

    def _whole(self, primaries: list[Member], seen: Seen) -> Member | None:
        whole = [member for member in primaries if all(self.is_spare(other, member, seen) for other in primaries)]
        if primaries and not whole:
            names = " and ".join(map(str, primaries))
            raise Failed(
                f"{names} take writes, and nobody can tell whether one has all that the other"
                " holds: compare them, save what is missing, and say REPLICAOF on the one that is to follow"
            )
        return max(whole, key=lambda member: (seen[member].offset, member is not self.own), default=None)

    def is_spare(self, member: Member, primary: Member, seen: Seen) -> bool:
        """Whether no data are lost when this member follows that primary."""
        return not self.keeps(member, primary, seen)

    def keeps(self, member: Member, primary: Member, seen: Seen) -> str:
        """The writes that are lost when this member follows that primary, and how to save them; or an empty text. A
        replica too may have such writes: of a former primary, or of its own time as a primary. Sentinel makes the member
        follow in any case."""
        if member is primary or self.sentinels is not None:
            return ""
        # The primary has gone on since the members were looked at.
        view, ahead = seen[member], primary.look()
        if ahead.holds_all_of(view) or member.is_empty() or self._stepped_down(member, view, ahead):
            return ""
        return (
            f"{member} {view.beyond(ahead, primary)}, and would lose them: it was not made to follow. Compare both; to save"
            f" what is missing, say SAVE on {member} and copy its dump file, or export the keys; then say REPLICAOF"
            f" {primary.host} {primary.port} and CONFIG REWRITE on {member}"
        )

    def _stepped_down(self, member: Member, view: View, ahead: View) -> bool:
        """Whether this is the member of this VM, and the primary has all up to the noted end of its writes."""
        facts = memory().recall()
        is_noted = member is self.own and not view.is_primary and "history" in facts
        return is_noted and ahead.has(facts["history"], int(facts["offset"]))

    def no_primary(self) -> str:
        # A member that does not answer may be the primary.
        words = "the primary is not known" if self.unseen or self.doubt else "no member is a primary"
        return "; ".join([words, *([self.doubt] if self.doubt else []), *self.unseen.values()])

    def priority(self, member: Member) -> int:
        """The replica-priority by the member's configuration. The present value may come from a switch."""
        given = dict(word.split("=", 1) for word in setting("PRIORITIES", "").split() if "=" in word)
        return int(given.get(member.vm, 100))

    def put_priorities_back(self, seen: Seen) -> None:
        if self.sentinels:
            for member in seen:
                if member.config("replica-priority") != str(self.priority(member)):
                    member.call("CONFIG", "SET", "replica-priority", self.priority(member))

    def gather(self, primary: Member, seen: Seen) -> None:
        """Makes all members follow this primary and no other, also after a restart. May be repeated."""
        # First, because the files contain the priorities too.
        self.put_priorities_back(seen)
        for member, view in seen.items():
            try:
                if member is primary or primary.is_at(view.follows):
                    member.call("CONFIG", "REWRITE")
                elif why := self.keeps(member, primary, seen):
                    progress(why)
                else:
                    member.follow(primary)
            except Unreachable:
                if member in (self.own, primary):
                    raise


def memory() -> Memory:
    """The successor, and the offset up to which the successor has all data."""
    return Memory("redis")


def steer(cluster: Cluster, sentinels: Sentinels, successor: Member, seen: Seen, seconds: float) -> None:
    """Leaves Sentinel one choice. Sentinel reads priorities every 10 s."""
    for member, view in seen.items():
        wanted = cluster.priority(member) if member is successor else 0
        if not view.is_primary and view.priority != wanted:
            member.call("CONFIG", "SET", "replica-priority", wanted)
    asked = sentinels.reachable()
    if not until(lambda: all(sentinels.would_choose_only(successor, each) for each in asked), seconds, every=0.1):
        cluster.put_priorities_back(seen)
        raise Blocked(f"Sentinel might choose another member than {successor}, or none: {what_it_knows(sentinels)}")


def what_it_knows(sentinels: Sentinels) -> str:
    """Sentinel's view of the replicas, for people."""
    known = [
        f"{replica.get('name')} has priority {replica.get('slave-priority')} and is {replica.get('flags')}"
        for replica in sentinels.replicas(sentinels.reachable()[0])
    ]
    return ", ".join(known) or "it knows no replica"
