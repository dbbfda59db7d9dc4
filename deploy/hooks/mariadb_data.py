"""Whether the data of this VM's member of MariaDB are there, by what its server says of itself."""

from __future__ import annotations

import os
import re
from pathlib import Path

from allclear_hook import Blocked, Failed, Memory, Told, Unreachable, setting
from mariadb_members import FOLLOWS, LOOK, LOST_AND_FOUND, Group, Server
from mariadb_rights import missing

# Debian has the first, RPM systems have the second.
SOCKETS = ("/run/mysqld/mysqld.sock", "/var/lib/mysql/mysql.sock")
# Schemas beside those that a fresh server has. Asked of an account that sees all of them.
OTHERS = f"""FROM information_schema.schemata WHERE schema_name NOT IN
  ('mysql', 'information_schema', 'performance_schema', 'sys', 'test', 'allclear', '{LOST_AND_FOUND}')"""
SCHEMAS = f"SELECT COALESCE(GROUP_CONCAT(schema_name SEPARATOR ', '), '') AS names {OTHERS}"
# Access denied, and a host that may not connect. A client that expects TLS has the latter within an error of its own.
REFUSED = re.compile(r"error (1044|1045|1130|1698):|\b1130 - |Access denied|not allowed to connect")


def socket() -> str:
    """Where this VM's server is asked as its own user."""
    there = [path for path in SOCKETS if Path(path).exists()]
    return setting("SOCKET", (there or list(SOCKETS))[0])


def on_socket() -> list[str]:
    return [f"--socket={socket()}", "--protocol=socket"]


def data_here(told: Told) -> str:
    """`whole` or `lost`; nothing as long as the server does not answer. They are lost only when the server has no GTID
    position at all, replicates from nobody, and has no schemas that an account with all rights would see."""
    try:
        with Group(told, only=told.vm) as group:
            here = group.here
            if not here.is_copying and (here.follows or here.named or any_position(here)):
                remember_where(here)
                return "whole"
    except Unreachable as error:
        # Accounts are lost with the rest; but it may be that the hooks' own is wrong.
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
        where_it_was(here)
        return "lost"
    if refused:
        raise Failed(f"{refused}; and there are data: create the accounts, or mend the password")
    raise Failed(f"{told.vm} has no GTID position, but it has schemas ({names}): see what they are, then empty it")


def copier_lacks(rights: list[str]) -> str:
    return (
        f"the account that the hook's user has over {socket()} without a password lacks {', '.join(rights)}, which the"
        " copy of lost data needs: it has to be one with all rights, as root@localhost via unix_socket"
    )


def any_position(server: Server) -> bool:
    return any(server.look[name] for name in ("position", "binlog", "state", "replicated"))


def place() -> Memory:
    """Where the data were when they were whole."""
    return Memory("mariadb-place")


def remember_where(server: Server) -> None:
    now = {"datadir": server.look["datadir"], "mount": str(mount_of(server.look["datadir"]))}
    if place().recall() != now:
        place().remember(now)


def where_it_was(server: Server) -> None:
    """An empty folder where a disk should be mounted is no lost disk: a copy would go below the mount point."""
    wrong = not_mounted(server.look["datadir"])
    if wrong:
        raise Blocked(wrong)


def not_mounted(datadir: str) -> str:
    """Why this may not be where the data belong; nothing where all is as it was."""
    before, now = place().recall(), str(mount_of(datadir))
    if before and before["datadir"] != datadir:
        return f"the server runs on {datadir}, and its data were in {before['datadir']}: start it where they are"
    if before and before["mount"] != now:
        return (
            f"{datadir} is on the file system at {now}, and its data were on the one at {before['mount']}: mount that,"
            f" and start the server again; if the disk was replaced for good, remove {place().path}"
        )
    expected = [mount for mount in expected_mounts() if lies_in(datadir, mount)]
    absent = [mount for mount in expected if os.path.realpath(mount) not in mounted()]
    return f"{absent[0]} is not mounted, though {fstab()} has it, and {datadir} is there: mount it" if absent else ""


def mount_of(path: str) -> Path:
    """The mount point of the file system that holds it."""
    folder, points = Path(path).resolve(), mounted()
    while str(folder) not in points and folder != folder.parent:
        folder = folder.parent
    return folder


def mounted() -> set[str]:
    lines = Path("/proc/self/mountinfo").read_text(errors="surrogateescape").splitlines()
    return {unescaped(line.split(" ")[4]) for line in lines}


def unescaped(path: str) -> str:
    """As fstab(5) and the kernel write blanks in names."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), path)


def lies_in(path: str, folder: str) -> bool:
    return Path(folder) == Path(path) or Path(folder) in Path(os.path.abspath(path)).parents


def fstab() -> str:
    return setting("FSTAB", "/etc/fstab")


def expected_mounts() -> list[str]:
    """Mount points but the root, the longest first. A line that nobody mounts at the start is none that is missing."""
    try:
        lines = Path(fstab()).read_text(errors="replace").splitlines()
    except OSError:
        return []
    fields = [line.split() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    points = [unescaped(words[1]) for words in fields if len(words) > 3 and "noauto" not in words[3].split(",")]
    return sorted((point for point in points if point.startswith("/") and point != "/"), key=len, reverse=True)
