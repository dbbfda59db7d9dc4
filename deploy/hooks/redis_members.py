"""The members of a Redis replication, and the Sentinels that watch it, as the hooks of `redis_hook.py` see them."""

import os
import socket
from pathlib import Path

import resp
from allclear_hook import Blocked, Failed, Unreachable, members, setting, until


def secret(name):
    """`NAME`, or what the file named by `NAME_FILE` holds."""
    file = os.environ.get(f"{name}_FILE")
    return Path(file).read_text().strip() if file else os.environ.get(name, "")


class Server:
    """A Redis or a Sentinel. It is connected to when it is first asked, and again after it was lost."""

    def __init__(self, vm, host, port, kind):
        self.vm, self.host, self.port, self.kind = vm, host, port, kind
        self._connection = None
        self._addresses = None

    def __str__(self):
        return self.vm

    def call(self, *words):
        return self.all([words])[0]

    def all(self, commands):
        try:
            return self._ask(commands)
        except resp.Closed:
            # A Sentinel that changes the role of a Redis closes all its connections. Asking twice does no harm.
            return self._ask(commands)

    def _ask(self, commands):
        if self._connection is None:
            user, password = os.environ.get(f"{self.kind}_USER", ""), secret(f"{self.kind}_PASSWORD")
            self._connection = resp.Connection(self.host, self.port, user, password)
        try:
            return self._connection.all(commands)
        except resp.Error:
            raise
        except Unreachable:
            self._connection = None
            raise

    def is_at(self, place):
        """Whether this (host, port), as a server tells it, is this one."""
        if self._addresses is None:
            try:
                self._addresses = {found[4][0] for found in socket.getaddrinfo(self.host, None)} | {self.host}
            except OSError:
                self._addresses = {self.host}
        return place is not None and place[0] in self._addresses and place[1] == self.port


class View:
    """What a member says of itself: INFO replication."""

    def __init__(self, info):
        self.is_primary = info["role"] == "master"
        self.follows = None if self.is_primary else (info["master_host"], int(info["master_port"]))
        self.offset = int(info["master_repl_offset" if self.is_primary else "slave_repl_offset"])
        self.is_linked = info.get("master_link_status") == "up" and info.get("master_sync_in_progress") == "0"
        self.history = info["master_replid"]
        self.histories = {self.history, info["master_replid2"]} - {"0" * 40}
        self.priority = int(info.get("slave_priority", 1))
        self.is_handing_over = info.get("master_failover_state", "no-failover") != "no-failover"
        lines = [info[f"slave{number}"] for number in range(100) if f"slave{number}" in info]
        self.replicas = [dict(part.split("=", 1) for part in line.split(",")) for line in lines]


class Member(Server):
    def __init__(self, vm, host, port):
        super().__init__(vm, host, port, "REDIS")

    def look(self):
        return View(resp.facts(self.call("INFO", "replication")))

    def entry(self, view):
        """This member among the replicas that the primary of this view has, or None."""
        mine = (each for each in view.replicas if self.is_at((each["ip"], int(each["port"]))))
        return next(mine, None)

    def follow(self, primary):
        self.call("REPLICAOF", primary.host, primary.port)

    def lead(self):
        self.call("REPLICAOF", "NO", "ONE")

    def step_down_for(self, successor):
        """Becomes a replica, and tells up to where it had written as a primary: nothing comes between the two."""
        commands = [("MULTI",), ("INFO", "replication"), ("REPLICAOF", successor.host, successor.port), ("EXEC",)]
        info, became = self.all(commands)[-1]
        if isinstance(became, resp.Error):
            raise became
        return View(resp.facts(info)).offset

    def config(self, name):
        return resp.pairs(self.call("CONFIG", "GET", name)).get(name, "")

    def send_clients_away(self):
        """As Sentinel does it: who comes back asks anew who the primary is."""
        for kind in ("normal", "pubsub"):
            self.call("CLIENT", "KILL", "TYPE", kind)


class Cluster:
    def __init__(self, told):
        self.members = {vm: Member(vm, *place) for vm, place in members().items()}
        if told.vm not in self.members:
            raise Failed(f"MEMBERS does not name {told.vm}")
        self.own = self.members[told.vm]
        self.sentinels = Sentinels(told) if os.environ.get("SENTINELS") else None
        self._priorities = dict(word.split("=", 1) for word in setting("PRIORITIES", "").split())

    def others(self):
        return [member for member in self.members.values() if member is not self.own]

    def at(self, place):
        return next((member for member in self.members.values() if member.is_at(place)), None)

    def look(self):
        """{member: view} of those that answer."""
        seen = {}
        for member in self.members.values():
            try:
                seen[member] = member.look()
            except Unreachable:
                pass
        return seen

    def primary(self, seen):
        """Who is it? Sentinel knows. Without it: of several, the one with the longest history, for one that came back
        empty has the shortest."""
        primaries = [member for member, view in seen.items() if view.is_primary]
        if self.sentinels:
            return next((member for member in primaries if member.is_at(self.sentinels.primary())), None)
        return max(primaries, key=lambda member: (seen[member].offset, member is not self.own), default=None)

    def priority(self, member):
        """The replica-priority that its configuration gives it. What it has now may be what a checkpoint left."""
        return int(self._priorities.get(member.vm, 100))

    def put_priorities_back(self, seen):
        if self.sentinels:
            for member in seen:
                if member.config("replica-priority") != str(self.priority(member)):
                    member.call("CONFIG", "SET", "replica-priority", self.priority(member))

    def gather(self, primary, seen):
        """All follow this primary and no other, also when they are restarted. May be done again."""
        for member, view in seen.items():
            try:
                if member is not primary and not primary.is_at(view.follows) and self.may_follow(member, seen, primary):
                    member.follow(primary)
                member.call("CONFIG", "REWRITE")
            except Unreachable:
                if member in (self.own, primary):
                    raise
        self.put_priorities_back(seen)

    def may_follow(self, member, seen, primary):
        """Another primary gives up what it has. This one's restore may have it do so; others only where both come from
        one history, as when a successor took over after it was given up."""
        view = seen[member]
        return not view.is_primary or member is self.own or bool(view.histories & seen[primary].histories)


class Sentinels:
    """SENTINELS, those first whose VM stays."""

    def __init__(self, told):
        self.name = setting("SENTINEL_NAME", "mymaster")
        places = sorted(members("SENTINELS").items(), key=lambda each: each[0] in told.avoid)
        self.servers = [Server(vm, *place, "SENTINEL") for vm, place in places]

    def ask(self, *words):
        """The first answer."""
        reasons = []
        for server in self.servers:
            try:
                return server.call("SENTINEL", words[0], self.name, *words[1:])
            except Unreachable as error:
                reasons.append(str(error))
        raise Unreachable("no Sentinel answers: " + "; ".join(reasons))

    def primary(self):
        host, port = self.ask("GET-MASTER-ADDR-BY-NAME") or ("", 0)
        return host, int(port)

    def reachable(self):
        """Those that answer and act: one in TILT mistrusts its clock, and does nothing."""
        def answers(server):
            try:
                return resp.facts(server.call("INFO", "sentinel"))["sentinel_tilt"] == "0"
            except Unreachable:
                return False

        return [server for server in self.servers if answers(server)]

    def replicas(self, server):
        return [resp.pairs(flat) for flat in server.call("SENTINEL", "REPLICAS", self.name)]

    def would_choose_only(self, successor, server):
        """Whether this Sentinel, by what it knows, cannot promote another one."""
        open_to_it = []
        for replica in self.replicas(server):
            is_gone = {"s_down", "disconnected"} & set(replica["flags"].split(","))
            if replica["slave-priority"] != "0" and not is_gone:
                open_to_it.append((replica["ip"], int(replica["port"])))
        return bool(open_to_it) and all(map(successor.is_at, open_to_it))

    def switching(self):
        """Those that are in the middle of a failover."""
        def is_at_it(server):
            try:
                flags = resp.pairs(server.call("SENTINEL", "MASTER", self.name))["flags"]
            except Unreachable:
                return False
            return "failover_in_progress" in flags

        return [server for server in self.servers if is_at_it(server)]

    def give_up(self, seconds):
        """Lets them finish, and ends what they do not."""
        until(lambda: not self.switching(), seconds, every=0.1)
        for server in self.switching():
            server.call("SENTINEL", "RESET", self.name)

    def wait_for_glance(self, successor, server, seconds):
        """Comes back when it is good to have this Sentinel promote. It tells the new address when it has looked at the
        successor again, every 10 s, but 1 s after the last look during a switch. It needs 0.3 s to promote. Asked
        0.55 s after a look, it has promoted shortly before the next one and does not need another."""
        def looked_lately():
            mine = (each for each in self.replicas(server) if successor.is_at((each["ip"], int(each["port"]))))
            return any(500 <= int(each["info-refresh"]) <= 600 for each in mine)

        until(looked_lately, seconds, every=0.02)

    def promote(self, successor, asked, seconds):
        """Has it promoted by the first of these Sentinels that does so. False: none has, and none will later."""
        for server in asked:
            try:
                server.call("SENTINEL", "FAILOVER", self.name)
            except resp.Error as error:
                if "INPROG" not in str(error):
                    continue
            if until(lambda: successor.look().is_primary, seconds):
                return True
            server.call("SENTINEL", "RESET", self.name)
        return successor.look().is_primary


def steer(cluster, successor, seen, seconds):
    """Leaves Sentinel one choice. It asks for priorities every 10 s."""
    sentinels = cluster.sentinels
    for member, view in seen.items():
        wanted = cluster.priority(member) if member is successor else 0
        if not view.is_primary and view.priority != wanted:
            member.call("CONFIG", "SET", "replica-priority", wanted)
    asked = sentinels.reachable()
    if not asked:
        raise Blocked("no Sentinel answers, or all are in TILT")
    if not until(lambda: all(sentinels.would_choose_only(successor, each) for each in asked), seconds, every=0.1):
        cluster.put_priorities_back(seen)
        raise Blocked(f"Sentinel might choose another member than {successor}: it does not see their replica-priority")
