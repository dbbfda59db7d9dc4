"""The members of an etcd cluster over its JSON gateway, for the hooks of `etcd.py`."""

from __future__ import annotations

import base64
import json
import re
import ssl
import urllib.error
import urllib.request
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from allclear_hook import Blocked, Failed, Rejected, Told, Unreachable, members, setting

Answer = dict[str, Any]

# Answers to a user without a password or a right. etcd gives some of them with status 400.
REFUSAL = re.compile("user name is empty|permission denied|authentication failed|invalid auth token")


def coded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


class Member:
    def __init__(self, vm: str, address: tuple[str, int]) -> None:
        host, port = address
        secure = setting("CACERT", "")
        self.vm = vm
        self.url = f"{'https' if secure else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"
        self._tls = None
        try:
            if secure:
                self._tls = ssl.create_default_context(cafile=secure)
                if setting("CERT", ""):
                    self._tls.load_cert_chain(setting("CERT"), setting("KEY"))
        except OSError as error:
            raise Failed(f"CACERT, CERT or KEY cannot be read: {error}") from error

    def post(self, path: str, body: Mapping[str, Any] | None = None, seconds: float = 1.0) -> Answer:
        request = urllib.request.Request(f"{self.url}/v3/{path}", json.dumps(body or {}).encode())
        # Requests go directly to the members, without the proxy of the environment.
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=self._tls)
        )
        try:
            with opener.open(request, timeout=seconds) as answer:
                said = json.load(answer)
        except urllib.error.HTTPError as error:
            said = why(error)
            is_refusal = error.code in (401, 403) or REFUSAL.search(said)
            raise (Rejected if is_refusal else Unreachable)(f"{self.vm}: {said}") from error
        except (OSError, ValueError) as error:
            raise Unreachable(f"{self.vm}: {error}") from error
        if not isinstance(said, dict):
            raise Unreachable(f"{self.vm}: {said!r:.80} is no answer of etcd")
        return said

    def status(self) -> Answer:
        return self.post("maintenance/status")

    def agrees(self) -> Answer:
        """A read that needs a majority, with all earlier writes of the majority."""
        return self.post("kv/range", {"key": coded("allclear"), "count_only": True})

    def why_it_does_not_serve(self) -> str:
        """The error of a read that needs a majority; empty if the member serves."""
        try:
            self.agrees()
        except Unreachable as error:
            return str(error)
        return ""


def why(error: urllib.error.HTTPError) -> str:
    """The reason, in the server's own words."""
    said = error.read(2000).decode(errors="replace").strip()
    try:
        told = json.loads(said)
        return str(told.get("message") or told.get("error") or said)
    except (ValueError, AttributeError):
        return f"HTTP {error.code}: {said[:200]}"


class Cluster:
    """The status of every answering member, queried at the same time."""

    def __init__(self) -> None:
        self.members = {vm: Member(vm, address) for vm, address in members().items()}
        self.lost: dict[str, str] = {}
        # The lost members that refuse the hooks.
        self.rejecting: set[str] = set()
        self.status: dict[str, Answer] = {}
        with ThreadPoolExecutor(len(self.members)) as threads:
            for vm, said in zip(self.members, threads.map(asked, self.members.values())):
                if isinstance(said, Unreachable):
                    self.lost[vm] = str(said)
                    self.rejecting |= {vm} if isinstance(said, Rejected) else set()
                else:
                    self.status[vm] = said

    def id(self, vm: str) -> str:
        return str(self.status[vm]["header"]["member_id"])

    def leader(self) -> str | None:
        """The leader's VM; `None` if no answering member is the leader."""
        return next((vm for vm, status in self.status.items() if status.get("leader") == self.id(vm)), None)

    def any(self, without: Collection[str] = ()) -> Member:
        """A member to ask about the whole cluster."""
        found = [vm for vm in self.status if vm not in without]
        if not found:
            why = "; ".join(self.lost.values()) or "there is no other member"
            raise (Rejected if self.all_refuse(without) else Unreachable)(why)
        return self.members[found[0]]

    def all_refuse(self, without: Collection[str]) -> bool:
        """Whether the missing members, except these, all refuse the hooks: no wait changes that."""
        lost = set(self.lost) - set(without)
        return bool(lost) and lost <= self.rejecting

    def rejected_or_blocked(self, why: str, without: Collection[str]) -> Rejected | Blocked:
        return Rejected(why) if self.all_refuse(without) else Blocked(why)

    def listed(self, without: Collection[str] = ()) -> list[Answer]:
        listed = self.any(without).post("cluster/member/list")["members"]
        return [one for one in listed if isinstance(one, dict)]

    def spared(self, without: Collection[str]) -> list[str]:
        """The healthy members with a quorum without the given members. Without a quorum blocked, or failed if the others
        refuse the hooks."""
        voters = [one for one in self.listed(without) if not one.get("isLearner")]
        ids = {str(one["ID"]) for one in voters}
        spared = [vm for vm in self.status if vm not in without and self.id(vm) in ids]
        needed = len(voters) // 2 + 1
        if len(spared) < needed:
            reasons = "".join(f"; {reason}" for reason in self.lost.values())
            raise self.rejected_or_blocked(
                f"{len(spared)} of {len(voters)} members are healthy and spared by the event, and {needed} are needed:"
                f" their VMs must go one after the other{reasons}",
                without,
            )
        return spared


def asked(member: Member) -> Answer | Unreachable:
    try:
        member.agrees()
        return member.status()
    except Unreachable as error:
        return error


def here(told: Told) -> Member:
    address = members().get(told.vm)
    if not address:
        raise Failed(f"MEMBERS does not name {told.vm}, this VM")
    return Member(told.vm, address)
