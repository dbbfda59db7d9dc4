"""The data directory of the PostgreSQL server on this VM: rewound to another history, or copied anew.

A start of the server during these steps, or after a kill at any step, never makes a second primary.

rewind
  1. standby.signal is created: the server is a standby, and follows no member of another history.
  2. After a crash the server recovers as a standby that reads its own WAL only: as before.
  3. pg_rewind runs without effect. If pg_rewind cannot work, or a file cannot be written, nothing is changed.
  4. PG_VERSION is replaced durably by an invalid version: from here on the server refuses to start. pg_rewind removes
     standby.signal, which the new primary does not have, and keeps this file.
  5. pg_rewind runs. After a kill pg_rewind runs again; if pg_rewind cannot work then, the directory is copied anew.
  6. The member's own files, standby.signal and primary_conninfo are written: the server still refuses to start.
  7. PG_VERSION is written back: a standby of the new primary.
copy
  1. The source accepts this member, and is the same cluster. The expected file systems are mounted. Tablespaces hold
     only this member's data. Nothing is changed before.
  2. `copying` is noted, pg_control is removed, then everything else: from here on the server refuses to start.
  3. pg_basebackup copies into a folder inside PGDATA.
  4. standby.signal and primary_conninfo are written there. Everything is moved up: standby.signal first, and global
     (with pg_control) last. From then on the server is a standby of the new primary.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from allclear_hook import (
    Blocked,
    Failed,
    Memory,
    Rejected,
    Told,
    Unreachable,
    call,
    members,
    progress,
    setting,
    until,
)
from disks import unmounted
from postgresql_candidate import flush
from postgresql_members import Group, primary_conninfo
from postgresql_server import SHUT_DOWN, Here, end, replace, size, sync
from psql import REJECTED, Psql, first_error

OWN_FILES = ("postgresql.conf", "postgresql.auto.conf", "pg_hba.conf", "pg_ident.conf")
# In place of a version. The server prints the text up to the first blank as the reason of the refusal.
CUT_OFF = "0:pg_rewind-has-not-ended,-run-the-restore-hook-again"
COPY = "allclear-copy"
# The connection of a standby, with a request for the server's identity.
IDENTIFY = ("psql", "-X", "-w", "-A", "-t", "-c", "IDENTIFY_SYSTEM")
# The allowed content of a folder without data.
NO_DATA = {"lost+found", "standby.signal"}


def is_cut_off(here: Here) -> bool:
    """Whether a rewind has begun and not ended."""
    version = here.path / "PG_VERSION"
    return version.exists() and version.read_text().startswith(CUT_OFF)


def is_lost(here: Here) -> bool:
    """Whether there are no data. If only a part is missing, an operator has to find the reason."""
    found = {inside.name for inside in here.path.iterdir()} if here.path.exists() else set()
    if not found - NO_DATA or COPY in found:
        return True
    if not (here.path / "global" / "pg_control").exists():
        raise Failed(
            f"{here.path} has no global/pg_control, but other contents: look what happened; empty it to have it copied"
        )
    return False


def rewind(told: Told, here: Here, group: Group, primary: str, memory: Memory) -> None:
    was_cut_off = is_cut_off(here)
    here.be_standby()
    here.stop(must_end=True)
    facts = memory.recall()
    if facts.get("step") not in ("rewinding", "rewound"):
        keep_own_files(here)
        facts = {"step": "rewinding"}
        memory.remember(facts)
    if facts["step"] == "rewinding":
        # Without the checkpoint pg_rewind reads the timeline from before the promotion, and damages this directory.
        flush(told, group, [primary])
        if not was_cut_off:
            for why in barred(here):
                raise Failed(f"nothing was changed: {why}")
            recover(told, here)
        try:
            run_rewind(told, here, primary, "--dry-run")
        except Unreachable as error:
            if not was_cut_off:
                why = f"pg_rewind cannot work, and nothing was changed: {error}"
                raise Failed(f"{why}. To have this member copied anew, empty {here.path}") from error
            progress(f"pg_rewind was cut off, and cannot be gone on with: {error}")
            return copy(told, here, group, primary, memory)
        replace(here.path / "PG_VERSION", CUT_OFF)
        try:
            run_rewind(told, here, primary)
        except Unreachable as error:
            raise Blocked(f"pg_rewind: {error}") from error
        memory.remember({"step": "rewound"})
    for file in own_files(here).iterdir():
        shutil.copy2(file, here.path)
    here.follow(primary)
    here.be_standby()
    replace(here.path / "PG_VERSION", f"{here.major()}\n")
    memory.forget()


def barred(here: Here) -> Iterator[str]:
    """Files that this user cannot read and write, which a dry run of pg_rewind does not report. Removed files and the
    linked files are no obstacle; in linked folders (WAL, tablespaces) files are written."""

    def is_open(path: Path) -> bool:
        rights = os.R_OK | os.W_OK | (os.X_OK if path.is_dir() else 0)
        is_linked_file = path.is_symlink() and not path.is_dir()
        return is_linked_file or os.access(path, rights) or not path.exists()

    inside = [*here.path.iterdir(), *here.path.glob("pg_tblspc/*")]
    found = sorted(str(path.relative_to(here.path)) for path in inside if not is_open(path))
    if found:
        yield (
            f"{here.path} has {', '.join(found)}, which its owner cannot read and write: pg_rewind fails at that, and"
            f" pg_basebackup; give it to the owner with all rights, or move it out of PGDATA"
        )


def own_files(here: Here) -> Path:
    return here.log.parent / f"postgresql-{here.vm}-files"


def keep_own_files(here: Here) -> None:
    kept = own_files(here)
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir(parents=True)
    for name in OWN_FILES:
        if (here.path / name).exists():
            shutil.copy2(here.path / name, kept)


def run_rewind(told: Told, here: Here, primary: str, *more: str) -> None:
    host, port = members()[primary]
    database = os.environ.get("PGDATABASE", "postgres")
    source = f"--source-server=host={host} port={port} dbname={database}"
    progress(" ".join(["pg_rewind", *more]))
    call([here.program("pg_rewind"), "-D", here.path, source, "--no-ensure-shutdown", *more], told.seconds_left())


def recover(told: Told, here: Here) -> None:
    """Makes the data consistent after a crash and shuts the server down, as pg_rewind requires: as a standby without a
    primary."""
    if here.state() in SHUT_DOWN:
        return
    progress("recovery from a crash")
    words, since = here.words(), size(here.log)
    settings = {
        # No client can find the server, and no other server uses this socket.
        "listen_addresses": "",
        "unix_socket_directories": str(here.log.parent),
        "hot_standby": "off",
        "recovery_target_timeline": "current",
        "primary_conninfo": "",
        "primary_slot_name": "",
        "restore_command": "",
        "logging_collector": "off",
        "log_destination": "stderr",
        "lc_messages": "C",
    }
    if setting("CONFIG_FILE", ""):
        settings["config_file"] = setting("CONFIG_FILE")
    command = [here.program("postgres"), "-D", str(here.path)]
    for name, value in settings.items():
        command += ["-c", f"{name}={value}"]
    with here.log.open("ab") as out:
        server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True)

    def is_consistent() -> bool:
        return "consistent recovery state reached" in here.log.read_bytes()[since:].decode(errors="replace")

    until(lambda: server.poll() is not None or is_consistent(), told.seconds_left() - 2, 0.05)
    end(server.pid, signal.SIGINT)
    try:
        server.wait(max(5.0, told.seconds_left() - 1))
    except subprocess.TimeoutExpired as error:
        raise Blocked(f"{here.vm}: recovery has not ended yet") from error
    if here.state() not in SHUT_DOWN:
        raise Failed(f"{here.vm}: the server does not recover from its crash{words()}")


def copy(told: Told, here: Here, group: Group, primary: str, memory: Memory) -> None:
    source = primary_conninfo(here.vm, primary)
    prove_source(source, group.seen[primary]["system"])
    if why := here.place.is_another(here.path):
        raise Blocked(f"PGDATA: {why}; nothing was copied")
    facts = memory.recall()
    places = tablespaces(here, group.servers[primary], facts)
    wal = here.path / "pg_wal"
    link = os.readlink(wal) if wal.is_symlink() else facts.get("wal", "") if facts.get("step") == "copying" else ""
    if link and (why := unmounted(Path(link))):
        raise Blocked(f"{why}, for the log of PostgreSQL; nothing was copied")
    here.stop(must_end=True)
    memory.remember({"step": "copying", "tablespaces": [str(place.parent) for place in places], "wal": link})
    here.path.mkdir(mode=0o700, parents=True, exist_ok=True)
    here.path.chmod(0o700)
    (here.path / "global" / "pg_control").unlink(missing_ok=True)
    for place in [*places, *([Path(link)] if link else []), here.path]:
        if place.exists():
            empty(place)
    for place in places:
        if place.exists():
            place.rmdir()
    progress("pg_basebackup")
    to = here.path / COPY
    more = [f"--waldir={link}"] if link else []
    command = [here.program("pg_basebackup"), "-D", str(to), "-d", source, "-c", "fast", "-X", "stream", *more]
    try:
        call(command, told.seconds_left())
    except Unreachable as error:
        raise Blocked(f"pg_basebackup: {error}") from error
    copied = Here(told, to)
    copied.be_standby()
    copied.follow(primary)
    for inside in sorted(to.iterdir(), key=lambda path: (path.name == "global", path.name != "standby.signal")):
        inside.rename(here.path / inside.name)
    to.rmdir()
    sync(here.path)
    memory.forget()


def identify(source: str, seconds: float = 10) -> str:
    """The source's answer to the login of a standby."""
    try:
        return call([*IDENTIFY, f"{source} replication=true"], seconds, reason=first_error)
    except Unreachable as error:
        raise (Rejected if REJECTED.search(str(error)) else Unreachable)(str(error)) from error


def prove_source(source: str, system: str) -> None:
    """Whether the source accepts this member as a standby, and belongs to the same cluster."""
    asked = identify(source)
    if asked.partition("|")[0].strip() != system:
        raise Failed(f"PRIMARY_CONNINFO leads to another database cluster, {asked.strip()}; nothing was changed")


def tablespaces(here: Here, primary: Psql, facts: dict[str, Any]) -> list[Path]:
    """The places of this cluster's tablespaces on this VM. Their content is this member's if the data directory links
    there, or if a copy was begun there; otherwise an operator has to decide."""
    version = primary.ask(
        "SELECT 'PG_' || current_setting('server_version_num')::int / 10000 || '_' || catalog_version_no"
        " FROM pg_control_system()"
    )
    asked = primary.ask("SELECT pg_tablespace_location(oid) FROM pg_tablespace WHERE pg_tablespace_location(oid) <> ''")
    links = here.path / "pg_tblspc"
    own = {os.readlink(link) for link in links.iterdir() if link.is_symlink()} if links.is_dir() else set()
    own |= set(facts.get("tablespaces", []))
    found = []
    for location in map(Path, asked.splitlines()):
        held = {inside.name for inside in location.iterdir()} if location.exists() else set()
        if held - {version} or (held and str(location) not in own):
            raise Failed(
                f"{location}, where a tablespace has to be, holds {', '.join(sorted(held))}, which is not known to be "
                f"this member's: empty it to have it copied; nothing was changed"
            )
        if why := unmounted(location):
            raise Blocked(f"{why}, for a tablespace; nothing was copied")
        found.append(location / version)
    return found


def empty(folder: Path) -> None:
    for inside in folder.iterdir():
        if inside.name != "lost+found":
            shutil.rmtree(inside) if inside.is_dir() and not inside.is_symlink() else inside.unlink()
