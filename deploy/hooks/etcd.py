#!/usr/bin/env python3
"""Hooks for etcd 3.4 or later: the leader goes to a member that is spared, and a member that lost its data comes back.

Needs
  The JSON gateway of every member (on by default) over HTTP, or HTTPS with CACERT; no client certificates for users and
  no passwords: etcd's own access control is not supported.
  Members named as their VMs are, or reached at the addresses in MEMBERS.
  For lost data DATA_DIR and START, and a service that reads the file STATE_DIR/etcd.env if it is there, after its own
  environment (systemd: `EnvironmentFile=-`), with ETCD_INITIAL_CLUSTER and ETCD_INITIAL_CLUSTER_STATE=new there and not
  among the arguments: so an etcd whose data are lost refuses to start until it has been added anew. With "existing" it
  would start under its old name without what it had promised, and break.

Promises
  The leader moves in one step, and only where the members that are spared can decide without the others. It never goes
  to a VM to avoid. What etcd acknowledged is on a majority, so it is never lost.
  A member is back when a read through it gave what the whole cluster agrees on.

Cannot promise
  That every request in flight is answered: a few are dropped, and their clients see an error or their own timeout.
  Anything when an event takes the majority: it is blocked, and says so. Clients that know one member only need another.
  A member whose data are lost is removed from the cluster and added anew. Until it has started again, the others must
  not lose one more.

Settings (env)
  MEMBERS      "db-0=10.0.0.4:2379 db-1=10.0.0.5:2379 db-2=10.0.0.6:2379": each VM and its client address
  CACERT, CERT, KEY   files, for HTTPS
  STOP, START  commands that stop and start this VM's etcd, as "sudo systemctl stop etcd"; both left out: it is not
               stopped. A stopped member gives its clients an error at once, a frozen one keeps them waiting.
  DATA_DIR     of this VM's etcd; left out: what is lost is for people
  SETTLE_MS    default 500: clients have this long to move before the drain ends
  STATE_DIR    default /var/lib/allclear-hooks
"""

import base64
import json
import os
import shlex
import ssl
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from allclear_hook import (Blocked, Done, Failed, Memory, NotApplicable, NotDone, Unknown, Unreachable, call, members,
                           number, progress, serve, setting, until)

ANY_KEY = base64.b64encode(b"allclear").decode()


class Member:
    def __init__(self, vm, address):
        host, port = address
        secure = setting("CACERT", "")
        self.vm = vm
        self.url = f"{'https' if secure else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"
        self._tls = ssl.create_default_context(cafile=secure) if secure else None
        if secure and setting("CERT", ""):
            self._tls.load_cert_chain(setting("CERT"), setting("KEY"))

    def post(self, path, body=None, seconds=1.0):
        request = urllib.request.Request(f"{self.url}/v3/{path}", json.dumps(body or {}).encode())
        # Members are asked directly, whatever proxy the environment names.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}),
                                             urllib.request.HTTPSHandler(context=self._tls))
        try:
            with opener.open(request, timeout=seconds) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise Unreachable(f"{self.vm}: {error.read(500).decode(errors='replace').strip()}") from error
        except (OSError, ValueError) as error:
            raise Unreachable(f"{self.vm}: {error}") from error

    def status(self):
        return self.post("maintenance/status")

    def agrees(self):
        """A read that needs a majority, and all that it had agreed on before."""
        self.post("kv/range", {"key": ANY_KEY, "count_only": True})


class Cluster:
    """What every member that answers says of itself, all asked at once."""

    def __init__(self):
        self.members = {vm: Member(vm, address) for vm, address in members().items()}
        self.lost, self.status = {}, {}

        def ask(member):
            try:
                member.agrees()
                return member.status(), None
            except Unreachable as error:
                return None, str(error)
        with ThreadPoolExecutor(len(self.members)) as threads:
            for vm, (status, reason) in zip(self.members, threads.map(ask, self.members.values())):
                if status:
                    self.status[vm] = status
                else:
                    self.lost[vm] = reason

    def id(self, vm):
        return self.status[vm]["header"]["member_id"]

    def leader(self):
        """Its VM; nothing when none of those that answer is the leader."""
        return next((vm for vm, status in self.status.items() if status.get("leader") == self.id(vm)), None)

    def any(self):
        """Somebody to ask about all."""
        if not self.status:
            raise Unreachable("; ".join(self.lost.values()))
        return self.members[next(iter(self.status))]

    def listed(self):
        return self.any().post("cluster/member/list")["members"]

    def spared(self, without):
        """The healthy members that can decide without those; blocked where they are too few."""
        voters = [one for one in self.listed() if not one.get("isLearner")]
        ids = {one["ID"] for one in voters}
        spared = [vm for vm in self.status if vm not in without and self.id(vm) in ids]
        needed = len(voters) // 2 + 1
        if len(spared) < needed:
            why = "".join(f"; {reason}" for reason in self.lost.values())
            raise Blocked(f"{len(spared)} of {len(voters)} members are healthy and spared by the event, and {needed}"
                          f" are needed: their VMs must go one after the other{why}")
        return spared


def memory():
    return Memory("etcd")


def role(told):
    status = Member(told.vm, address_here(told)).status()
    print("primary" if status.get("leader") == status["header"]["member_id"] else "replica")


def address_here(told):
    found = members().get(told.vm)
    if not found:
        raise Failed(f"MEMBERS does not name {told.vm}, this VM")
    return found


def failover(told):
    cluster = Cluster()
    leader = cluster.leader()
    if leader and leader not in told.affected:
        raise NotApplicable(f"{leader} leads")
    spared = cluster.spared(told.affected)
    if not leader:
        raise Blocked("nobody that answers leads")
    fit = told.in_order_of_preference(spared)
    if not fit:
        raise Blocked(f"{', '.join(spared)}: on VMs to avoid")
    if told.is_dry_run:
        return Done(f"would move the leader from {leader} to {fit[0]}")
    began = time.monotonic()
    try:
        cluster.members[leader].post("maintenance/transfer-leadership", {"targetID": cluster.id(fit[0])}, seconds=5)
    except Unreachable as error:
        # It may have gone there all the same: the leader's answer is lost with its being the leader.
        progress(str(error))
    target = cluster.members[fit[0]]
    if not until(lambda: target.status().get("leader") == cluster.id(fit[0]), 2):
        raise Blocked(f"{fit[0]} did not become the leader")
    return Done(f"{fit[0]} leads, after {(time.monotonic() - began) * 1000:.0f} ms")


def confirm_failover(told):
    cluster = Cluster()
    leader = cluster.leader()
    if not leader:
        raise Unknown("; ".join(["nobody that answers leads", *cluster.lost.values()]))
    if leader in told.affected:
        raise NotDone(f"{leader} leads")
    return Done(f"{leader} leads")


def drain(told):
    """Clients settle on the new leader; those of a member that is stopped get an error rather than wait."""
    Cluster().spared(told.affected)
    time.sleep(number("SETTLE_MS", 500) / 1000)
    stop = setting("STOP", "")
    if stop:
        call(shlex.split(stop), 30)


def restore(told):
    here = Member(told.vm, address_here(told))
    if is_lost() and not reads(here):
        start(added_anew(told))
    elif not until(lambda: reads(here), 5, every=0.1):
        # It did not come up by itself, or that was tried before it was added anew.
        start(memory().recall().get("environment", {}))
    if not until(lambda: reads(here), max(0.0, told.seconds_left() - 2), every=0.1):
        raise Blocked(f"{told.vm} does not answer reads that need a majority; see etcd's own log there")
    memory().forget()
    environment_file().unlink(missing_ok=True)
    return Done(f"{told.vm} has what the cluster agrees on")


def start(environment):
    if setting("START", ""):
        call(shlex.split(setting("START")), 60, env={**os.environ, **environment})


def reads(member):
    try:
        member.agrees()
        return not member.status().get("isLearner")
    except Unreachable:
        return False


# --- Lost data


def is_lost():
    folder = setting("DATA_DIR", "")
    return bool(folder) and not any(Path(folder).glob("member/wal/*.wal"))


def added_anew(told):
    """Removes this VM's member and adds it, each unless that is done. Returns what its etcd must be started with."""
    cluster = Cluster()
    cluster.spared({told.vm})
    peers, listed = memory().recall().get("peers"), cluster.listed()
    url = cluster.members[told.vm].url
    own = next((one for one in listed if one.get("name") == told.vm or url in one.get("clientURLs", [])
                or one["peerURLs"] == peers), None)
    if not own and not peers:
        raise Failed(f"the cluster has no member {told.vm} any more; add it with etcdctl")
    # One without a name was added and has not started since.
    if own and own.get("name"):
        peers = own["peerURLs"]
        memory().remember({"peers": peers})
        progress(f"{told.vm} lost its data; it is removed from the cluster and added anew")
        cluster.any().post("cluster/member/remove", {"ID": own["ID"]}, seconds=5)
        own = None
    if not own:
        listed = cluster.any().post("cluster/member/add", {"peerURLs": peers}, seconds=5)["members"]
    everybody = ",".join(f"{one.get('name') or told.vm}={peer}" for one in listed for peer in one["peerURLs"])
    environment = {"ETCD_INITIAL_CLUSTER": everybody, "ETCD_INITIAL_CLUSTER_STATE": "existing"}
    memory().remember({"peers": peers, "environment": environment})
    environment_file().write_text("".join(f"{name}={value}\n" for name, value in environment.items()))
    return environment


def environment_file():
    return memory().path.with_suffix(".env")


serve({
    "role": role,
    "failover": failover,
    "confirm-failover": confirm_failover,
    "drain": drain,
    "restore": restore,
})
