"""Copies lost data of a MariaDB member from another member, and compares both.

1. Nothing is changed until the dump is complete on the disk: the program succeeded, the last line is there, and the
   source knows the position of the dump.
2. The server gets a schema `allclear` with a comment, and is read-only. As long as the comment exists, no hook takes
   these data for complete data, and only with the comment are data removed that are not empty.
3. The dump is loaded; events have the state of a replica's events.
4. The server gets the position of the dump, replicates up to a snapshot of the source, and every row is compared with
   the snapshot. Only then the comment of step 2 is removed.
A restart in steps 2 to 4 makes a read-only server. The server replicates from no member, or continues to replicate in
step 4. The comment prevents promotion, and the next attempt begins anew.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from allclear_hook import Blocked, Failed, Memory, Told, Unreachable, call, members, progress, setting
from mariadb_compare import compare
from mariadb_data import OTHERS, SCHEMAS, any_position, on_socket
from mariadb_members import (
    COPYING,
    FOLLOWS,
    LOOK,
    LOST_AND_FOUND,
    Group,
    Server,
    covers,
    one_line,
    option_file,
    over_tcp,
    positions,
)
from mariadb_replication import change, doubt, runs
from mariadb_rights import lacks, refuses_replication

DUMP = (
    "--all-databases", "--single-transaction", "--master-data=2", "--gtid", "--routines", "--events", "--triggers",
    "--flush-privileges", "--comments", "--default-character-set=utf8mb4", "--ignore-table=mysql.gtid_slave_pos",
    f"--ignore-database={LOST_AND_FOUND}",
)  # fmt: skip
# The part of the dump with the position, before any data.
HEAD = 8192
WHERE = re.compile(r"^-- CHANGE MASTER TO MASTER_LOG_FILE='([^'\n]+)', MASTER_LOG_POS=(\d+)", re.MULTILINE)
SIZE = "SELECT COALESCE(SUM(data_length), 0) AS size FROM information_schema.tables"
# An event that runs on the primary too would write here a second time.
EVENTS = """BEGIN NOT ATOMIC
  FOR one IN (SELECT event_schema AS s, event_name AS n FROM information_schema.events WHERE status = 'ENABLED') DO
    EXECUTE IMMEDIATE CONCAT('ALTER EVENT `', REPLACE(one.s, '`', '``'), '`.`', REPLACE(one.n, '`', '``'),
                             '` DISABLE ON SLAVE');
  END FOR;
END"""
# The incomplete copy of an earlier attempt.
DROP_HALF = f"""BEGIN NOT ATOMIC
  FOR one IN (SELECT schema_name AS s {OTHERS}) DO
    EXECUTE IMMEDIATE CONCAT('DROP DATABASE `', REPLACE(one.s, '`', '``'), '`');
  END FOR;
END"""
# A server may close a silent session during a dump.
STAY = "SET SESSION wait_timeout = 604800"


def fill(told: Told) -> None:
    """Copies all data from an unaffected member, from a replica if possible."""
    with Group(told, without={told.vm: "has no data"}) as group:
        primary = group.primary()
        if primary is None:
            raise Blocked("nobody is writable, so nobody knows whose data are the right ones")
        # A member without data loses nothing. The other VMs of its event, which the primary left before, count as lost too:
        # of two members without data none would be the first to return.
        beside = () if primary.vm in told.affected else told.affected
        if why := doubt(group, primary, seconds=2, beside=beside):
            raise Blocked(why)
        source = choose_source(told, group, primary)
        refused = refuses_replication(primary.vm)
        if refused:
            raise Failed(str(refused))
        progress(f"{told.vm} has no data, and gets those of {source.vm}")
        path = dump_folder() / "mariadb-copy.sql"
        try:
            position = dump(told, source, path)
            load(told, source, primary, path, position)
        finally:
            path.unlink(missing_ok=True)


def dump_folder() -> Path:
    return Path(setting("DUMP_DIR", setting("STATE_DIR", "/var/lib/allclear-hooks")))


def choose_source(told: Told, group: Group, primary: Server) -> Server:
    """A dump has a position in the source's own binlog, so the binlog must be complete."""
    against = dict(group.lost)
    replicas = [one for one in group.others(primary) if one.vm not in told.avoid and runs(one)]
    for server in [*replicas, primary]:
        why = "its data are half of a copy" if server.is_copying else lacks(server)
        if not why and not covers(positions(server.look["binlog"]), server.position):
            why = "its binlog does not have all of its position"
        if not why:
            return server
        against[server.vm] = why
    said = "; ".join(f"{vm}: {why.removeprefix(f'{vm}: ')}" for vm, why in against.items())
    raise Failed(f"nobody's data can be copied: {said}")


def dump(told: Told, source: Server, path: Path) -> str:
    """Writes the complete dump to the disk, and returns its position."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    source.ask(STAY)
    size, free = int(source.one(SIZE, seconds=60)), shutil.disk_usage(path.parent).free
    if size > free:
        raise Failed(
            f"the copy of {source.vm} takes some {size >> 20} MiB, and {path.parent} has {free >> 20} MiB free; make"
            " room, or name another folder as DUMP_DIR"
        )
    where, seconds = over_tcp(members()[source.vm]), max(1.0, told.seconds_left() - 5)
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "w+b") as file:
        try:
            ran = subprocess.run(
                ["mariadb-dump", f"--defaults-file={option_file()}", *where, *DUMP],
                stdout=file,
                stderr=subprocess.PIPE,
                stdin=subprocess.DEVNULL,
                timeout=seconds,
                check=False,
            )
        except FileNotFoundError as error:
            raise Failed("mariadb-dump is not installed") from error
        except subprocess.TimeoutExpired as error:
            raise Failed(f"mariadb-dump of {source.vm} was not done in time: give the hook more of it") from error
        if ran.returncode != 0:
            raise Failed(f"{source.vm}: {one_line(ran.stderr.decode(errors='replace'))}")
        os.fsync(file.fileno())
        head, end = file_ends(path)
    if not end.rstrip().rpartition("\n")[2].startswith("-- Dump completed"):
        raise Failed(f"the dump of {source.vm} is cut: its last line is missing")
    found = WHERE.search(head)
    if not found:
        raise Failed(f"the dump of {source.vm} does not say of which position it is")
    position = source.one(f"SELECT BINLOG_GTID_POS('{found[1]}', {found[2]}) AS position")
    if not positions(position if position != "NULL" else ""):
        raise Failed(f"{source.vm} does not know which GTID {found[1]} {found[2]} is")
    return position


def file_ends(path: Path) -> tuple[str, str]:
    with path.open("rb") as file:
        head = file.read(HEAD)
        file.seek(max(0, path.stat().st_size - HEAD))
        return head.decode(errors="replace"), file.read().decode(errors="replace")


def load(told: Told, source: Server, primary: Server, path: Path, position: str) -> None:
    here = Server(told.vm, on_socket(), "--no-defaults")
    try:
        here.see(here.ask(LOOK, FOLLOWS))
        here.ask(STAY, "SET SESSION sql_log_bin = 0")
        if here.is_copying:
            forget = ("STOP ALL SLAVES", "RESET SLAVE '' ALL", "RESET MASTER", "SET GLOBAL gtid_slave_pos = ''")
            here.ask(DROP_HALF, *forget, seconds=max(1.0, told.seconds_left() - 5))
        elif here.follows or here.named or any_position(here) or here.one(SCHEMAS):
            raise Failed(f"{told.vm} is not empty any more: somebody has brought data back while they were dumped")
        here.ask("SET GLOBAL read_only = 1", "CREATE DATABASE IF NOT EXISTS allclear")
        here.ask(f"ALTER DATABASE allclear COMMENT = '{COPYING}'")
        was_on = stop_events(here)
        with path.open("rb") as file:
            arguments = ["mariadb", "--no-defaults", *on_socket(), "--init-command=SET sql_log_bin = 0"]
            try:
                call(arguments, max(1.0, told.seconds_left() - 5), stdin=file)
            except Unreachable as error:
                raise Failed(f"{told.vm}: its server does not take the copy: {error}") from error
        here.ask(EVENTS, f"SET GLOBAL gtid_binlog_state = '{position}'", f"SET GLOBAL gtid_slave_pos = '{position}'")
        here.ask(change(primary))
        compare(told, source.vm, here)
        here.ask(*(["SET GLOBAL event_scheduler = ON"] if was_on else []), "ALTER DATABASE allclear COMMENT = ''")
        events().forget()
    finally:
        here.close()


def events() -> Memory:
    """Whether this server ran events before the first attempt."""
    return Memory("mariadb-events")


def stop_events(here: Server) -> bool:
    """Events arrive as a primary's events: they must not run before their state is changed."""
    was_on = here.one("SELECT @@event_scheduler") == "ON"
    was_on = bool(events().recall().get("on", was_on))
    events().remember({"on": was_on})
    if was_on:
        here.ask("SET GLOBAL event_scheduler = OFF")
    return was_on
