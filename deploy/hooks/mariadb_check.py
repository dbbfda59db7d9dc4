"""Verifies the requirements before an event: `mariadb.py check` runs on each member, and changes nothing."""

from __future__ import annotations

import configparser
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from allclear_hook import Answer, Done, Failed, Told, Unreachable, call, checked, members, number, setting
from mariadb_configuration import wrong_configuration
from mariadb_copy import SIZE, dump_folder
from mariadb_data import copier_lacks, data_here, on_socket, place, socket
from mariadb_members import Group, Row, Server, memory, option_file, over_tcp
from mariadb_replication import (
    ACKNOWLEDGES,
    by_hand,
    has_more,
    is_following,
    is_semi_sync,
    names_connections,
    nobody_is_writable,
    refuses_options,
    runs,
    why_not_running,
)
from mariadb_rights import lacks, missing, refuses_replication, replication_account

LEAST = (10, 6)
VERSION = re.compile(r"(\d+)\.(\d+)\.\d+-MariaDB")
MORE = f"""SELECT VERSION() AS version, @@gtid_strict_mode AS strict, @@hostname AS hostname,
  COALESCE(@@report_host, '') AS report_host, @@event_scheduler AS scheduler,
  @@rpl_semi_sync_master_enabled AS awaits, @@rpl_semi_sync_slave_enabled AS acknowledges,
  ({ACKNOWLEDGES}) AS is_heard,
  @@innodb_flush_log_at_trx_commit AS flushes, @@sync_binlog AS syncs"""
EVENTS = """SELECT CONCAT(event_schema, '.', event_name) AS name, status FROM information_schema.events
  WHERE status <> 'DISABLED'"""
# Accounts that can write despite read_only. Before 10.11 SUPER was enough.
MAY_WRITE = """SELECT DISTINCT REPLACE(grantee, '''', '') AS account FROM information_schema.user_privileges
  WHERE REPLACE(grantee, '''', '') <> CURRENT_USER() AND (privilege_type = 'READ_ONLY ADMIN'
    OR (privilege_type = 'SUPER' AND VERSION() REGEXP '^10[.]([6-9]|10)[.]'))"""
LOCAL = "root@localhost mysql@localhost mariadb.sys@localhost"


def check(told: Told) -> Done:
    wrong = [*wrong_files(), *wrong_programs()]
    if not os.access(option_file(), os.R_OK):
        # Without the file no member accepts a login.
        return checked(wrong)
    with Group(told) as group:
        more: dict[str, Row] = {}
        for server in list(group):
            try:
                more[server.vm] = server.ask(MORE)[0][0]
                wrong += wrong_member(server, more[server.vm])
            except Unreachable as error:
                wrong.append(str(error))
        empty = list(empty_here(told, group))
        wrong += empty
        wrong += wrong_members(group)
        # An empty server has no account to mend.
        lost = {vm: why for vm, why in group.lost.items() if not (empty and vm == told.vm)}
        wrong += [one for vm, why in lost.items() for one in wrong_server(vm, why)]
        wrong += wrong_semi_sync(group, more)
        if told.vm in group.servers and not group.here.lost:
            wrong += wrong_here(told, group)
        doubtful = list(doubts(group, more))
    return checked(dict.fromkeys(wrong), doubtful)


def wrong_files() -> Iterator[str]:
    path = Path(option_file())
    try:
        mode = path.stat().st_mode
        if mode & (stat.S_IRWXG | stat.S_IRWXO):
            yield f"{path} has passwords, and others than its owner may read it: chmod 600 {path}"
        file = configparser.ConfigParser(allow_no_value=True, interpolation=None, strict=False)
        with path.open() as lines:
            file.read_file(lines)
        if not file.has_option("client", "user"):
            yield f"{path} has no user in [client]"
        if not replication_account()[1]:
            yield f"{path} has no password in [replication]"
    except OSError as error:
        yield f"{path}, the OPTION_FILE, cannot be read by the hooks' user: {error.strerror}"
    except (Failed, configparser.Error) as error:
        yield str(error)
    folder = memory().path.parent
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    if not os.access(folder, os.W_OK | os.X_OK):
        yield f"the hooks' user may not write in {folder}, where STATE_DIR is"


def wrong_programs() -> Iterator[str]:
    for name in ("mariadb", "mariadb-dump"):
        try:
            yield from wrong_version(name, call([name, "--version"]))
        except (Failed, Unreachable) as error:
            yield str(error)


def wrong_version(whose: str, said: str) -> Iterator[str]:
    found = VERSION.search(said)
    if not found:
        yield f"{whose} is not MariaDB's, and MySQL is not supported: {said.strip()}"
    elif (int(found[1]), int(found[2])) < LEAST:
        yield f"{whose} is MariaDB {found[1]}.{found[2]}, and has to be 10.6 or later"


def empty_here(told: Told, group: Group) -> Iterator[str]:
    """A new server has no accounts before it has the data of the others."""
    try:
        if told.vm in group.rejecting and data_here(told) == "lost":
            yield f"{told.vm}: its server is empty; to copy the data and the accounts of the others, {by_hand(told.vm)}"
    except (Answer, Unreachable):
        # The refused login is reported by the caller.
        pass


def wrong_server(vm: str, why: str) -> Iterator[str]:
    """The problems of a server without the answers of MariaDB."""
    server = Server(vm, over_tcp(members()[vm]))
    try:
        found = list(wrong_version(vm, server.one("SELECT VERSION()")))
        rights = [] if found else [lacks(server)]
        yield from found or [f"{why}; {rights[0]}" if rights[0] else why]
    except Unreachable:
        yield why
    finally:
        server.close()


def wrong_member(server: Server, more: Row) -> Iterator[str]:
    yield from wrong_version(server.vm, more["version"])
    for why in (lacks(server), names_connections(server)):
        if why:
            yield f"{server.vm}: {why}"
    for name, value in {
        "log_bin": server.look["log_bin"],
        "log_slave_updates": server.look["passes_on"],
        "gtid_strict_mode": more["strict"],
    }.items():
        if value != "1":
            yield f"{server.vm}: {name} is off; write {name} into its configuration, and restart it"
    if server.is_copying:
        yield f"{server.vm}: its data are half of a copy; let `restore` on it make it whole"
    host = more["hostname"].partition(".")[0].lower()
    if host != server.vm.lower() and host in [vm.lower() for vm in members()]:
        yield f"MEMBERS has the server that calls itself {more['hostname']} as {server.vm}"
    address = members()[server.vm][0]
    if more["report_host"] and more["report_host"] not in (address, server.vm, more["hostname"]):
        yield f"{server.vm}: its report_host is {more['report_host']}, and MEMBERS has {address}"


def wrong_members(group: Group) -> Iterator[str]:
    """Whether the members replicate from one primary."""
    ids: dict[str, str] = {}
    for server in group:
        other = ids.setdefault(server.look["id"], server.vm)
        if other != server.vm:
            yield f"{other} and {server.vm} have the same server_id, {server.look['id']}, or are one server"
    try:
        primary = group.primary()
    except Failed as error:
        yield str(error)
        return
    if primary is None:
        if not group.lost:
            yield nobody_is_writable(group)
        return
    for server in group.others(primary):
        try:
            why = wrong_replica(server, primary)
        except Unreachable as error:
            why = str(error)
        if why:
            yield f"{server.vm}: {why}"
    yield from wrong_accounts(primary)


def wrong_replica(server: Server, primary: Server) -> str:
    follows = server.follows
    if not follows:
        return "" if server.named else f"it follows nobody, and is not the primary; {by_hand(server.vm)}"
    if not is_following(server, primary):
        address = "{}:{}".format(*members()[primary.vm])
        its = f"{follows['Master_Host']}:{follows['Master_Port']}"
        return f"it follows {its}, and MEMBERS has the primary at {address}; {by_hand(server.vm)}"
    if server.is_writable:
        return "it is a replica, and its read_only is off"
    if not runs(server):
        return why_not_running(server)
    if follows["Using_Gtid"] == "No":
        return "it replicates without GTID: CHANGE MASTER TO MASTER_USE_GTID = slave_pos"
    why = has_more(server, primary)
    if why:
        return why
    lag = number("MAX_LAG_MS", 500)
    return "" if server.reaches(primary.where(), lag / 1000) else f"it lags more than {lag:g} ms"


def wrong_accounts(primary: Server) -> Iterator[str]:
    may = {row["account"] for row in primary.ask(MAY_WRITE)[0]} - set(setting("ADMINS", LOCAL).split())
    if may:
        yield (
            f"read_only does not hold {', '.join(sorted(may))}: REVOKE READ_ONLY ADMIN ON *.* from what writes, and"
            " name the rest in ADMINS"
        )


def doubts(group: Group, more: dict[str, Row]) -> Iterator[str]:
    for vm, found in more.items():
        if (found["flushes"], found["syncs"]) != ("1", "1"):
            yield (
                f"{vm}: innodb_flush_log_at_trx_commit or sync_binlog is not 1, so a crash may lose acknowledged writes,"
                " and its data may then differ from the others' data: set both to 1 in its configuration, and with"
                " SET GLOBAL"
            )
    try:
        primary = group.primary()
        events = primary.ask(EVENTS)[0] if primary else []
    except (Failed, Unreachable):
        # `wrong` has the reason.
        return
    enabled = [row["name"] for row in events if row["status"] == "ENABLED"]
    if enabled:
        yield f"a switch leaves scheduled events disabled on the new primary, to be enabled there: {', '.join(enabled)}"
    for row in events:
        if row["status"] == "SLAVESIDE_DISABLED" and primary:
            yield f"{primary.vm}: the scheduled event {row['name']} is disabled since a switch: ALTER EVENT ... ENABLE"


def wrong_semi_sync(group: Group, more: dict[str, Row]) -> Iterator[str]:
    for vm in more:
        server = group.servers.get(vm)
        is_primary = server.is_primary if server else False
        value, name = (
            (more[vm]["awaits"], "rpl_semi_sync_master_enabled")
            if is_primary
            else (more[vm]["acknowledges"], "rpl_semi_sync_slave_enabled")
        )
        if is_semi_sync() and value != "1":
            yield f"{vm}: SEMI_SYNC_MS is set, and {name} is off" + ("" if is_primary else f"; {by_hand(vm)}")
        elif is_semi_sync() and not is_primary and more[vm]["is_heard"] != "1" and server and runs(server):
            yield f"{vm}: {name} is on, and its connection to the primary is older: no commit waits for it; {by_hand(vm)}"
        if not is_semi_sync() and is_primary and value == "1":
            yield f"{vm}: {name} is on; set SEMI_SYNC_MS, or commits hang while no replica answers"


def wrong_here(told: Told, group: Group) -> Iterator[str]:
    """Checks on this VM only: the start of the server, the disks, and the connections to the others."""
    here = group.here
    yield from wrong_configuration(here)
    if not os.access(here.look["datadir"], os.R_OK | os.X_OK):
        yield f"the hooks' user may not look into {here.look['datadir']}: run the hooks as the server's user"
    if why := place().is_another(Path(here.look["datadir"])):
        yield why
    yield from wrong_socket(here)
    for server in group.others(here):
        refused = refuses_replication(server.vm)
        if refused:
            yield f"from {told.vm}: {refused}"
    options = refuses_options(here)
    if options:
        yield options
        return
    folder = dump_folder()
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    size, free = int(here.one(SIZE, seconds=60)), shutil.disk_usage(folder).free
    if size > free:
        yield (
            f"a copy of lost data takes some {size >> 20} MiB, and {folder} has {free >> 20} MiB free: name another"
            " folder as DUMP_DIR"
        )


def wrong_socket(here: Server) -> Iterator[str]:
    """Whether the same server answers at the socket, to an account with the rights for a copy."""
    own = Server(here.vm, on_socket(), "--no-defaults")
    lock = f"allclear-{secrets.token_hex(8)}"
    try:
        here.ask(f"SELECT GET_LOCK('{lock}', 0)")
        if own.one(f"SELECT COALESCE(IS_USED_LOCK('{lock}'), '')") == "":
            yield f"the server at {socket()} is not the one that MEMBERS has as {here.vm}"
        lacking = missing(own, copier=True)
        if lacking:
            yield copier_lacks(lacking)
    except Unreachable as error:
        yield f"{error}, over {socket()} (the server has {here.look['socket']}), as a copy of lost data needs it"
    finally:
        own.close()
