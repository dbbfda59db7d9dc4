"""Verifies the replication between the members, for the check of the PostgreSQL hooks. Changes nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from allclear_hook import members, setting
from postgresql_members import Group, followers, follows_instead, lower_limits, synchronous

# The form of SYNCHRONOUS.
MODE = re.compile(r"((FIRST|ANY) [1-9]\d*)?")
# The default of libpq for each option, as pg_basebackup writes the defaults.
DEFAULTS = {
    "sslmode": "prefer",
    "gssencmode": "prefer",
    "channel_binding": "prefer",
    "sslcompression": "0",
    "sslcertmode": "allow",
    "sslsni": "1",
    "ssl_min_protocol_version": "TLSv1.2",
    "sslnegotiation": "postgres",
    "gssdelegation": "0",
    "krbsrvname": "postgres",
}
# Options from the hooks or from a password file, and options without effect on a connection to a single server.
GIVEN = {
    "host",
    "hostaddr",
    "port",
    "user",
    "password",
    "passfile",
    "dbname",
    "application_name",
    "fallback_application_name",
    "replication",
    "target_session_attrs",
    "load_balance_hosts",
}
SECURITY = re.compile(r"ssl|gss|channel_binding|require_auth|krb")


def of_replication(group: Group, details: dict[str, dict[str, Any]]) -> Iterator[str]:
    """The replication between the members; visible to a superuser only."""
    found = group.primaries()
    if len(details) < len(group.seen):
        return
    if len(found) != 1:
        # A member that does not answer may be the primary.
        if found or not group.silent:
            yield f"{' and '.join(found)} are both primary" if found else "no member is primary"
        return
    primary, sending = group.seen[found[0]], followers(group, found[0])
    for vm, said in group.seen.items():
        if not said["can_rewind"]:
            yield f"{vm}: neither data checksums nor wal_log_hints: it would be copied anew after a crash"
        # pg_basebackup takes two. Other receivers are not counted.
        senders_needed = len(members()) + 1
        if said["limits"]["max_wal_senders"] < senders_needed:
            few = said["limits"]["max_wal_senders"]
            yield f"{vm}: max_wal_senders = {few}: as primary it needs {senders_needed}, for the others and a copy"
        if said["slot"]:
            yield f"{vm}: primary_slot_name is set, and slots do not move with the primary: unset it, use wal_keep_size"
        if vm == found[0]:
            continue
        if said["synchronous"].strip() and not setting("SYNCHRONOUS", ""):
            yield f"{vm}: commits would wait for synchronous_standby_names after a switch: set SYNCHRONOUS, or reset it"
        if said["holds_back"]:
            yield f"{vm} is told to replay later (paused, or recovery_min_apply_delay): it cannot become primary"
        if said["system"] != primary["system"]:
            yield f"{vm} is of another database cluster than {found[0]}"
        elif not said["streams"] or said["timeline"] != primary["timeline"]:
            yield f"{vm} does not stream from {found[0]}: see its log"
        elif vm not in sending and (other := follows_instead(said, found[0])):
            yield f"{vm} streams from {other} and not from {found[0]}: run its restore hook (allclear hook run)"
        elif vm not in sending:
            yield (
                f"{vm} streams under another name, or from another server ({said['from']}): "
                f"set application_name={vm} in its primary_conninfo"
            )
        for limit in lower_limits(said, primary):
            yield f"{vm} has {limit} on {found[0]}: it would not start"
        for limit in lower_limits(primary, said):
            yield f"{found[0]} has {limit} on {vm}: it could not come back as its standby"
    yield from of_commits(group, found[0])
    yield from of_left_slots(details)
    yield from of_connections(details)


def of_commits(group: Group, primary: str) -> Iterator[str]:
    """The synchronous set has the mode of SYNCHRONOUS, and contains every standby that follows the primary."""
    now, wanted = synchronous(group, primary), setting("SYNCHRONOUS", "")
    if not wanted or not MODE.fullmatch(wanted):
        if now and not wanted:
            yield f"commits on {primary} wait for standbys (synchronous_standby_names): set SYNCHRONOUS in the env table"
        return
    text = group.seen[primary]["synchronous"]
    if left_out := sorted(followers(group, primary) - now):
        yield (
            f"no commit on {primary} waits for {' and '.join(left_out)} (synchronous_standby_names = {text!r}): run the "
            f"restore hook of {left_out[0]} (allclear hook run), or unset SYNCHRONOUS"
        )
    found = re.match(r"\s*(?:(FIRST|ANY)\s+)?(\d+)\s*\(", text, re.IGNORECASE)
    mode = f"{(found[1] or 'FIRST').upper()} {found[2]}" if found else "FIRST 1"
    kind, count = wanted.split()
    if now and mode not in (wanted, f"{kind} {min(int(count), len(now))}"):
        yield f"synchronous_standby_names on {primary} is {text!r}, and SYNCHRONOUS is {wanted!r}: make them agree"


def options(conninfo: str) -> dict[str, str]:
    found = re.findall(r"(\w+)\s*=\s*(?:'((?:[^'\\]|\\.)*)'|(\S*))", conninfo)
    return {name: quoted or plain for name, quoted, plain in found}


def lost_options(details: dict[str, dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """Each option of a standby's connection that the next switch drops, because PRIMARY_CONNINFO lacks it."""
    kept = options(setting("PRIMARY_CONNINFO", ""))
    for vm, said in details.items():
        now = options(said["conninfo"]) if said["is_standby"] else {}
        for name, value in now.items():
            if name not in GIVEN and value not in (DEFAULTS.get(name, ""), kept.get(name)):
                yield vm, name


def of_connections(details: dict[str, dict[str, Any]]) -> Iterator[str]:
    for vm, name in lost_options(details):
        if SECURITY.match(name):
            yield f"{vm}: its primary_conninfo has {name}, which a switch would drop: add it to PRIMARY_CONNINFO"


def doubts(details: dict[str, dict[str, Any]]) -> Iterator[str]:
    yield from of_slots(details)
    yield from of_other_options(details)


def of_other_options(details: dict[str, dict[str, Any]]) -> Iterator[str]:
    for vm, name in lost_options(details):
        if not SECURITY.match(name):
            yield f"{vm}: a switch drops {name} of its primary_conninfo, which PRIMARY_CONNINFO lacks"


def of_slots(details: dict[str, dict[str, Any]]) -> Iterator[str]:
    for vm, said in details.items():
        for name, is_active, kept in said["slots"]:
            if is_active:
                yield f"{vm}: the replication slot {name} does not move with the primary: its reader needs it anew then"
            elif not said["is_standby"]:
                yield (
                    f"{vm}: nobody reads the replication slot {name}, which keeps {kept} on its disk: "
                    f"drop the slot if its reader does not come back"
                )


def of_left_slots(details: dict[str, dict[str, Any]]) -> Iterator[str]:
    """A slot that stayed behind when the primary moved fills the disk of the standby."""
    for vm, said in details.items():
        for name, is_active, kept in said["slots"]:
            if said["is_standby"] and not is_active:
                yield (
                    f"{vm}: the replication slot {name} on this standby has no reader, and keeps {kept} on its disk: "
                    f"have the reader use the primary, and drop the slot here"
                )
