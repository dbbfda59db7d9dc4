"""The Sentinels that watch a Redis replication, for the hooks of `redis_hook.py`."""

from __future__ import annotations

from typing import Any

import resp
from allclear_hook import Blocked, Failed, Rejected, Told, Unreachable, members, setting, until
from redis_server import Member, Server

# The number of Sentinels to ask for a promotion, one after another: writes wait for all of them.
ASKED = 2


def no_sentinel(what: str, errors: list[Unreachable]) -> Unreachable:
    """The error of all Sentinels: failed if all of them refuse the hooks' user, blocked otherwise."""
    is_refusal = bool(errors) and all(isinstance(error, Rejected) for error in errors)
    return (Rejected if is_refusal else Unreachable)(f"{what}: {'; '.join(map(str, errors))}")


class Sentinels:
    """The servers of SENTINELS; unaffected VMs come first."""

    def __init__(self, told: Told) -> None:
        self.name = setting("SENTINEL_NAME", "mymaster")
        places = sorted(members("SENTINELS").items(), key=lambda each: each[0] in told.avoid)
        self.servers = [Server(vm, *place, "SENTINEL") for vm, place in places]

    def ask(self, *words: object) -> Any:
        """The first answer."""
        errors = []
        for server in self.servers:
            try:
                return server.call("SENTINEL", words[0], self.name, *words[1:])
            except Unreachable as error:
                errors.append(error)
        raise no_sentinel("no Sentinel answers", errors)

    def published(self) -> tuple[str, int]:
        """The primary's address by the first Sentinel that answers."""
        return self._place(self.ask("GET-MASTER-ADDR-BY-NAME"))

    def primary(self) -> tuple[tuple[str, int], bool]:
        """The primary's address by most Sentinels, and whether a majority of SENTINELS names it. A Sentinel that was away
        during a switch names the former primary until it has heard from the others."""
        votes: dict[tuple[str, int], int] = {}
        errors: list[Unreachable] = []
        for server in self.servers:
            try:
                place = self._place(server.call("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self.name))
            except Unreachable as error:
                errors.append(error)
                continue
            votes[place] = votes.get(place, 0) + 1
            if 2 * votes[place] > len(self.servers):
                return place, True
        if not votes:
            raise no_sentinel("no Sentinel answers", errors)
        return max(votes, key=lambda place: votes[place]), False

    def _place(self, told: Any) -> tuple[str, int]:
        if not told:
            raise Failed(f"Sentinel watches nothing that is called {self.name}; set SENTINEL_NAME")
        return told[0], int(told[1])

    def reachable(self) -> list[Server]:
        """The Sentinels that answer and act: a Sentinel in TILT mistrusts the clock, and does nothing."""
        found: list[Server] = []
        errors: list[Unreachable] = []
        for server in self.servers:
            try:
                if resp.facts(server.call("INFO", "sentinel")).get("sentinel_tilt") == "0":
                    found.append(server)
                else:
                    errors.append(Unreachable(f"the one on {server} is in TILT, or no Sentinel"))
            except Unreachable as error:
                errors.append(error)
        if not found:
            raise no_sentinel("no Sentinel acts", errors)
        return found

    def replicas(self, server: Server) -> list[dict[str, str]]:
        return [resp.pairs(flat) for flat in server.call("SENTINEL", "REPLICAS", self.name)]

    def what_it_sees(self, server: Server) -> dict[str, str]:
        return resp.pairs(server.call("SENTINEL", "MASTER", self.name))

    def would_choose_only(self, successor: Member, server: Server) -> bool:
        """Whether this Sentinel, by the Sentinel's own view, cannot promote another member."""
        open_to_it: list[tuple[str, int]] = []
        for replica in self.replicas(server):
            is_gone = {"s_down", "disconnected"} & set(replica["flags"].split(","))
            if replica["slave-priority"] != "0" and not is_gone:
                open_to_it.append((replica["ip"], int(replica["port"])))
        return bool(open_to_it) and all(map(successor.is_at, open_to_it))

    def switching(self) -> list[Server]:
        """The Sentinels with a running failover."""
        def is_at_it(server: Server) -> bool:
            try:
                return "failover_in_progress" in self.what_it_sees(server)["flags"]
            except Unreachable:
                return False

        return [server for server in self.servers if is_at_it(server)]

    def give_up(self, seconds: float) -> None:
        """Waits for running failovers, and ends the rest."""
        until(lambda: not self.switching(), seconds, every=0.1)
        for server in self.switching():
            server.call("SENTINEL", "RESET", self.name)

    def wait_for_glance(self, successor: Member, server: Server, seconds: float) -> None:
        """Returns at a good time for a promotion by this Sentinel. Sentinel publishes the new address after a poll of
        the successor: every 10 s, but 1 s after the last poll during a switch. A promotion takes 0.3 s. A request 0.55
        s after a poll is complete shortly before the next poll, and needs no further poll."""
        def looked_lately() -> bool:
            mine = (each for each in self.replicas(server) if successor.is_at((each["ip"], int(each["port"]))))
            return any(500 <= int(each["info-refresh"]) <= 600 for each in mine)

        until(looked_lately, seconds, every=0.02)

    def promote(self, successor: Member, asked: list[Server], seconds: float) -> None:
        """Has the successor promoted by the first willing Sentinel. An error means: no promotion, and none later."""
        reasons = []
        for server in asked[:ASKED]:
            try:
                server.call("SENTINEL", "FAILOVER", self.name)
            except resp.Error as error:
                reasons.append(str(error))
                if "INPROG" not in str(error):
                    continue
            if until(lambda: successor.look().is_primary, seconds):
                return
            reasons.append(f"the one on {server} did not within {seconds:g} s")
            server.call("SENTINEL", "RESET", self.name)
        if not successor.look().is_primary:
            raise Blocked(f"no Sentinel promoted {successor}: {'; '.join(reasons)}")
