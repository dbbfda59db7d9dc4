"""Whether the data of this VM's MariaDB member exist, by the server's own report."""

from __future__ import annotations

import re
from pathlib import Path

from allclear_hook import Blocked, Failed, Told, Unreachable, setting
from disks import Place
from mariadb_members import FOLLOWS, LOOK, LOST_AND_FOUND, Group, Server
from mariadb_rights import missing

# The socket of Debian, and of RPM systems.
SOCKETS = ("/run/mysqld/mysqld.sock", "/var/lib/mysql/mysql.sock")
# Schemas beside a fresh server's, in the view of an account that sees all schemas.
OTHERS = f"""FROM information_schema.schemata WHERE schema_name NOT IN
  ('mysql', 'information_schema', 'performance_schema', 'sys', 'test', 'allclear', '{LOST_AND_FOUND}')"""
SCHEMAS = f"SELECT COALESCE(GROUP_CONCAT(schema_name SEPARATOR ', '), '') AS names {OTHERS}"
# Access denied, and a host without permission. A client that expects TLS reports the latter inside another error.
REFUSED = re.compile(r"error (1044|1045|1130|1698):|\b1130 - |Access denied|not allowed to connect")


def socket() -> str:
    """The socket of this VM's server."""
    there = [path for path in SOCKETS if Path(path).exists()]
    return setting("SOCKET", (there or list(SOCKETS))[0])


def on_socket() -> list[str]:
    return [f"--socket={socket()}", "--protocol=socket"]


def data_here(told: Told) -> str:
    """`whole` or `lost`; empty as long as the server does not answer. Data are lost only if the server has no GTID
    position, replicates from no member, and has no schemas in the view of an account with all rights."""
    try:
        with Group(told, only=told.vm) as group:
            here = group.here
            if not here.is_copying and (here.follows or here.named or any_position(here)):
                place().note(Path(here.look["datadir"]))
                return "whole"
    except Unreachable as error:
        # Accounts are lost with the data; but the hooks' own account may be wrong.
        return by_socket(told, str(error)) if REFUSED.search(str(error)) else ""
    return by_socket(told, "")


def by_socket(told: Told, refused: str) -> str:
    here = Server(told.vm, on_socket(), "--no-defaults")
    try:
        here.see(here.ask(LOOK, FOLLOWS))
        lacking = missing(here, copier=True)
        if lacking:
            raise Failed(copier_lacks(lacking))
        names = here.one(SCHEMAS)
    except Unreachable as error:
        raise Failed(f"{refused or told.vm}; over {socket()}: {error}") from error
    finally:
        here.close()
    if here.is_copying:
        return "lost"
    if not names and not (here.follows or here.named or any_position(here)):
        # An empty folder below an unmounted disk is no lost disk: a copy would go below the mount point.
        if why := place().is_another(Path(here.look["datadir"])):
            raise Blocked(why)
        return "lost"
    if refused:
        raise Failed(f"{refused}; and there are data")
    raise Failed(f"{told.vm} has no GTID position, but it has schemas ({names}): see what they are, then empty it")


def copier_lacks(rights: list[str]) -> str:
    return (
        f"the account that the hook's user has over {socket()} without a password lacks {', '.join(rights)}, which the"
        " copy of lost data needs: it has to be one with all rights, as root@localhost via unix_socket"
    )


def any_position(server: Server) -> bool:
    return any(server.look[name] for name in ("position", "binlog", "state", "replicated"))


def place() -> Place:
    return Place("mariadb")
