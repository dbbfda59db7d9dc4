"""Verifies the requirements of the PostgreSQL hooks before any event. Changes nothing."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from allclear_hook import (
    Done,
    Failed,
    Told,
    Unreachable,
    call,
    checked,
    members,
    setting,
)
from pgbouncer_pooler import Poolers, lacks
from postgresql_check_replication import MODE, doubts, of_replication
from postgresql_data import barred, identify
from postgresql_members import Group, primary_conninfo
from postgresql_server import Here

PROGRAMS = ("postgres", "pg_controldata", "pg_rewind", "pg_waldump", "pg_basebackup")
# With more waiting segments than this, the archive is too slow.
SEGMENTS = 32

DETAILS = """SELECT json_build_object(
  'version', current_setting('server_version_num')::int,
  'data', current_setting('data_directory'),
  'config', current_setting('config_file'),
  'hot_standby', current_setting('hot_standby'),
  'target_timeline', current_setting('recovery_target_timeline'),
  'full_page_writes', current_setting('full_page_writes'),
  'no_alter_system', coalesce(current_setting('allow_alter_system', true), 'on') = 'off',
  'fixed', (SELECT coalesce(json_agg(name), '[]') FROM pg_settings
    WHERE name IN ('primary_conninfo', 'synchronous_standby_names') AND source = 'command line'),
  'keeps', current_setting('wal_keep_size') <> '0' OR current_setting('restore_command') <> '',
  'archives', current_setting('archive_mode') <> 'off',
  'archive_fails', (SELECT last_failed_wal FROM pg_stat_archiver
    WHERE last_failed_time > coalesce(last_archived_time, '-infinity')),
  'archiver', (SELECT pid FROM pg_stat_activity WHERE backend_type = 'archiver'),
  'conninfo', current_setting('primary_conninfo'),
  'is_standby', pg_is_in_recovery(),
  'slots', (SELECT coalesce(json_agg(json_build_array(slot_name, active,
      coalesce(pg_size_pretty(pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn()
        ELSE pg_current_wal_lsn() END, restart_lsn)), 'no WAL'))), '[]')
    FROM pg_replication_slots AS slot WHERE NOT temporary AND coalesce(to_jsonb(slot)->>'synced', '') <> 'true'),
  'unarchived', (SELECT count(*) FROM pg_ls_archive_statusdir() WHERE name LIKE '%.ready'))"""
DETAILS = " ".join(DETAILS.split())


def check(told: Told) -> Done:
    here, group = Here(told), Group()
    details: dict[str, dict[str, Any]] = {}
    wrong = [*group.silent.values()]
    for vm in group.seen:
        try:
            group.need_superuser(vm)
            details[vm] = group.json(vm, DETAILS)
        except Failed as error:
            wrong.append(str(error))
    for found in (
        of_directory(here),
        of_server(here, group),
        of_programs(here),
        of_start(here, details.get(told.vm)),
        of_members(details),
        of_replication(group, details),
        of_settings(),
        of_logins(told, group),
        of_poolers(),
    ):
        wrong += found
    return checked(wrong, doubts(details))


def of_directory(here: Here) -> Iterator[str]:
    if why := here.place.is_another(here.path):
        yield f"PGDATA: {why}"
    if not (here.path / "global" / "pg_control").exists():
        yield f"PGDATA: {here.path} has no data (no global/pg_control in it)"
        return
    owner = here.path.stat().st_uid
    if owner != os.geteuid():
        yield f"{here.path} is of the user with the number {owner}: give it as `user` of the hooks"
    else:
        yield from barred(here)
    if why := here.cramped():
        yield why
    pid = here.pid()
    if not pid:
        yield f"no server runs on {here.path} on this VM: start it, or correct PGDATA"
    elif user_of(pid) not in (None, os.geteuid()) and not setting("STOP", ""):
        yield "the server runs as another user, which the hooks cannot stop: give its user as `user` of the hooks"
    folder = here.log.parent
    nearest = next(path for path in (folder, *folder.parents) if path.exists())
    if not os.access(nearest, os.W_OK | os.X_OK):
        yield f"STATE_DIR: {nearest} cannot be written: make {folder}, for the user of the hooks"


def of_server(here: Here, group: Group) -> Iterator[str]:
    """The server at this VM's address of MEMBERS is the server on PGDATA. Paths are equal on all VMs."""
    if here.vm in group.seen and here.pid():
        try:
            here.must_be(group.servers[here.vm])
        except Failed as error:
            yield str(error)


def user_of(pid: int) -> int | None:
    """The user of a process; `None` after the process has ended."""
    try:
        return Path(f"/proc/{pid}").stat().st_uid
    except OSError:
        return None


def of_programs(here: Here) -> Iterator[str]:
    for name in PROGRAMS:
        try:
            said = call([here.program(name), "--version"])
        except (Failed, Unreachable) as error:
            yield f"{error}: install the server's package, or set BIN"
            continue
        version = re.search(r"\) (\d+)", said)
        if version and here.major() and version[1] != here.major():
            yield f"{name} is of version {version[1]} and the data of {here.major()}: set BIN"
    if not shutil.which("psql"):
        yield "psql is not installed"


def of_start(here: Here, details: dict[str, Any] | None) -> Iterator[str]:
    """The start and the stop of the server, and the configuration file."""
    config = Path(details["config"]) if details else None
    if details and Path(details["data"]).resolve() != here.path.resolve():
        yield f"PGDATA is {here.path}, and the server at this VM's address of MEMBERS has {details['data']}"
    if config and config.parent.resolve() != here.path.resolve():
        if not setting("START", ""):
            yield f"START: the configuration is {config}, which pg_ctl does not find: give the command of the system"
        if Path(setting("CONFIG_FILE", "")).resolve() != config.resolve():
            yield f'CONFIG_FILE: the server has {config}: set CONFIG_FILE = "{config}"'
    for name in ("START", "STOP"):
        words = shlex.split(setting(name, ""))
        if words:
            yield from of_command(name, words, here)


def of_command(name: str, words: list[str], here: Here) -> Iterator[str]:
    if not shutil.which(words[0]):
        yield f"{name}: there is no {words[0]}"
        return
    if Path(words[0]).name == "sudo":
        command = [word for word in words[1:] if not word.startswith("-")]
        try:
            call([words[0], "-n", "-l", *command])
        except Unreachable as error:
            yield f"{name}: sudo does not let this user run {' '.join(command)} without a password: {error}"
        if "-n" not in words:
            yield f"{name}: write sudo -n: there is nobody to give a password"
        words = command
    if words and Path(words[0]).name == "pg_ctlcluster":
        yield from of_cluster(name, [word for word in words[1:] if not word.startswith("-")], here)
    if words and Path(words[0]).name == "systemctl":
        yield from of_unit(name, words[-1], here)


def of_cluster(name: str, arguments: list[str], here: Here) -> Iterator[str]:
    """pg_ctlcluster of Debian takes the version and name of a cluster, whose configuration names the data directory."""
    root = os.environ.get("PG_CLUSTER_CONF_ROOT", "/etc/postgresql")
    config = Path(root, *arguments[:2], "postgresql.conf")
    if not config.exists():
        yield f"{name}: there is no {config}: see pg_lsclusters"
        return
    line = re.search(r"^\s*data_directory\s*=?\s*'([^']*)'", config.read_text(), re.MULTILINE)
    data = Path(line[1]) if line else config.parent
    if data.resolve() != here.path.resolve():
        yield f"{name} is for the cluster at {data}, and PGDATA is {here.path}"


def of_unit(name: str, unit: str, here: Here) -> Iterator[str]:
    try:
        shown = call(["systemctl", "show", "-p", "LoadState", "-p", "ActiveState", "-p", "Environment", unit])
    except Unreachable as error:
        yield f"{name}: {error}"
        return
    if "LoadState=loaded" not in shown:
        yield f"{name}: systemd does not know the unit {unit}"
    elif "ActiveState=active" in shown and name == "START":
        # The start of an active unit changes nothing, and needs the same right.
        try:
            call(["systemctl", "--no-ask-password", "start", unit])
        except Unreachable as error:
            yield f"{name}: this user may not start {unit}: {error}; install polkitd and systemd/units-of-hooks.rules"
    data = re.search(r"\bPGDATA=(\S+)", shown)
    if data and Path(data[1]).resolve() != here.path.resolve():
        yield f"{name} is for the server at {data[1]}, and PGDATA is {here.path}"


def of_members(details: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Each member by itself."""
    for vm, said in details.items():
        if said["version"] < 130000:
            yield f"{vm}: version {said['version'] // 10000} is too old: 13 or later"
        if said["hot_standby"] != "on" or said["target_timeline"] != "latest":
            yield f"{vm}: set hot_standby = on and recovery_target_timeline = 'latest'"
        if said["full_page_writes"] != "on":
            yield f"{vm}: full_page_writes = {said['full_page_writes']}, with which pg_rewind does not work"
        if said["no_alter_system"]:
            yield f"{vm}: allow_alter_system = off: the hooks set primary_conninfo with it"
        for name in said["fixed"]:
            yield f"{vm}: {name} is given to the server as an argument, so that ALTER SYSTEM cannot change it"
        if not said["keeps"]:
            yield f"{vm}: set wal_keep_size, or restore_command: a standby that was away would not catch up"
        if said["archive_fails"]:
            segment, pid = said["archive_fails"], said["archiver"]
            yield f"{vm}: archive_command fails for {segment} (archiver: pid {pid}); see the server's log"
        elif said["archives"] and said["unarchived"] > SEGMENTS:
            yield f"{vm}: {said['unarchived']} segments wait for the archiver (pid {said['archiver']})"
    if len({said["version"] // 10000 for said in details.values()}) > 1:
        yield "the members are of different versions, and do not replicate"


def of_settings() -> Iterator[str]:
    if not MODE.fullmatch(setting("SYNCHRONOUS", "")):
        yield f'SYNCHRONOUS is {setting("SYNCHRONOUS")!r}: "ANY 1" or "FIRST 1"'


def of_logins(told: Told, group: Group) -> Iterator[str]:
    """Whether each member accepts this member as a standby."""
    for vm in members():
        if vm != told.vm and vm in group.seen:
            try:
                identify(primary_conninfo(told.vm, vm))
            except Unreachable as error:
                yield f"PRIMARY_CONNINFO does not let {told.vm} replicate from {vm} (pg_hba.conf, password): {error}"


def of_poolers() -> Iterator[str]:
    poolers = Poolers(setting("POOLERS", "").split())
    for why in poolers.silent.values():
        yield f"{why}: start it, or correct POOLERS"
    for pooler in poolers.reached():
        yield from lacks(pooler)
    yield from poolers.lacking()
