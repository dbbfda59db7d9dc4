"""The members of a Redis replication, and who of them is the primary, as the hooks of `redis_hook.py` see them."""

from __future__ import annotations

import os

from allclear_hook import Blocked, Failed, Told, Unreachable, members, setting, until
from redis_sentinels import Sentinels
from redis_server import Member, View

Seen = dict[Member, View]


class Cluster:
    def __init__(self, told: Told) -> None:
        self.members = {vm: Member(vm, *place) for vm, place in members().items()}
        if told.vm not in self.members:
            raise Failed(f"MEMBERS does not name {told.vm}, this VM")
        self.own = self.members[told.vm]
        self.sentinels = Sentinels(told) if os.environ.get("SENTINELS") else None
        # Why those did not answer that were not seen when all were looked at last.
        self.unseen: dict[Member, str] = {}

    def others(self) -> list[Member]:
        return [member for member in self.members.values() if member is not self.own]

    def at(self, place: tuple[str, int] | None) -> Member | None:
        return next((member for member in self.members.values() if member.is_at(place)), None)

    def look(self) -> Seen:
        """{member: view} of those that answer."""
        seen: Seen = {}
        self.unseen = {}
        for member in self.members.values():
            try:
                seen[member] = member.look()
            except Unreachable as error:
                self.unseen[member] = f"{member} does not answer: {error}"
        return seen

    def looked(self) -> Seen:
        """The same, with this VM's member among them."""
        seen = self.look()
        if self.own not in seen:
            raise Blocked(self.unseen[self.own])
        return seen

    def primary(self, seen: Seen) -> Member | None:
        """Who is it? Sentinel knows. Without it: of several, the one with the longest history, for one that came back
        empty has the shortest."""
        primaries = [member for member, view in seen.items() if view.is_primary]
        if self.sentinels:
            named = self.sentinels.primary()
            return next((member for member in primaries if member.is_at(named)), None)
        return max(primaries, key=lambda member: (seen[member].offset, member is not self.own), default=None)

    def no_primary(self) -> str:
        return "; ".join(["no member is a primary", *self.unseen.values()])

    def priority(self, member: Member) -> int:
        """The replica-priority that its configuration gives it. What it has now may be what a checkpoint left."""
        given = dict(word.split("=", 1) for word in setting("PRIORITIES", "").split() if "=" in word)
        return int(given.get(member.vm, 100))

    def put_priorities_back(self, seen: Seen) -> None:
        if self.sentinels:
            for member in seen:
                if member.config("replica-priority") != str(self.priority(member)):
                    member.call("CONFIG", "SET", "replica-priority", self.priority(member))

    def gather(self, primary: Member, seen: Seen) -> None:
        """All follow this primary and no other, also when they are restarted. May be done again."""
        # First, for what is written to the files holds them too.
        self.put_priorities_back(seen)
        for member, view in seen.items():
            try:
                if member is not primary and not primary.is_at(view.follows):
                    self.let_follow(member, seen, primary)
                else:
                    member.call("CONFIG", "REWRITE")
            except Unreachable:
                if member in (self.own, primary):
                    raise

    def let_follow(self, member: Member, seen: Seen, primary: Member) -> None:
        """A replica follows another. A primary gives up all that it has, so that the other must have that first, but
        for one that is empty; Sentinel asks nobody."""
        view = seen[member]
        is_spare = not view.is_primary or seen[primary].holds_all_of(view)
        if not is_spare and member is self.own:
            is_spare = self.sentinels is not None or member.is_empty()
            if not is_spare:
                raise Failed(
                    f"{member} takes writes beside {primary}, and nobody can tell whether {primary} has all that it"
                    f" holds: compare them, save what is missing, and say REPLICAOF {primary.host} {primary.port} there"
                )
        if is_spare:
            member.follow(primary)


def steer(cluster: Cluster, sentinels: Sentinels, successor: Member, seen: Seen, seconds: float) -> None:
    """Leaves Sentinel one choice. It asks for priorities every 10 s."""
    for member, view in seen.items():
        wanted = cluster.priority(member) if member is successor else 0
        if not view.is_primary and view.priority != wanted:
            member.call("CONFIG", "SET", "replica-priority", wanted)
    asked = sentinels.reachable()
    if not until(lambda: all(sentinels.would_choose_only(successor, each) for each in asked), seconds, every=0.1):
        cluster.put_priorities_back(seen)
        raise Blocked(f"Sentinel might choose another member than {successor}, or none: {what_it_knows(sentinels)}")


def what_it_knows(sentinels: Sentinels) -> str:
    """Of the replicas, for people."""
    known = [
        f"{replica.get('name')} has priority {replica.get('slave-priority')} and is {replica.get('flags')}"
        for replica in sentinels.replicas(sentinels.reachable()[0])
    ]
    return ", ".join(known) or "it knows no replica"
