"""The options with which this VM's server starts. A running server shows present values only, and statements may have
changed these values since the start.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from allclear_hook import Failed, Unreachable, call
from mariadb_members import Server

# `origin` is CONFIG for a value from a file, COMMAND-LINE for an argument, and SQL for a statement.
ORIGIN = """SELECT LOWER(variable_name) AS name, global_value AS value, global_value_origin AS origin
  FROM information_schema.system_variables WHERE variable_name IN ('READ_ONLY', 'RPL_SEMI_SYNC_SLAVE_ENABLED')"""
FILES = re.compile(r"--(no-defaults$|defaults-(file|extra-file|group-suffix)=)")
ON = ("1", "ON", "TRUE")
# MDEV-33465: after a crash, a server with rpl_semi_sync_slave_enabled = 1 cuts transactions off its binlog. From these
# releases on, only a server with init_rpl_role = SLAVE does. Series that are missing here ended without the change, up to
# ALL_CUT_LESS_SINCE.
CUTS_LESS_SINCE = {(10, 6): 19, (10, 11): 9, (11, 1): 6, (11, 2): 5, (11, 4): 3}
ALL_CUT_LESS_SINCE = (11, 6)
NUMBER = re.compile(r"(\d+)\.(\d+)\.(\d+)")
WHY = {
    "read_only": "after a restart it takes writes beside the new primary",
    "gtid_strict_mode": "after a restart nothing keeps transactions of its own out",
}


def wrong_configuration(here: Server) -> Iterator[str]:
    """Reports the options that a restart of the server would lack. If the files of the start command cannot be read, the
    report covers only the options whose origin the server knows."""
    try:
        options = configured(here)
    except (Failed, Unreachable, OSError, ValueError) as error:
        found = here.ask(ORIGIN)[0]
        options = {row["name"]: row["value"] for row in found if row["origin"] in ("CONFIG", "COMMAND-LINE")}
        if not is_on(options, "read_only"):
            yield f"{here.vm}: nobody can tell what its configuration says ({error}), and it has to say read_only = 1"
        yield from wrong_recovery(here, options)
        return
    yield from wrong_recovery(here, options)
    for name, why in WHY.items():
        if not is_on(options, name):
            yield f"{here.vm}: its configuration does not say {name} = 1: {why}; write it below [mariadb]"
    if options.get("server_id") != here.look["id"]:
        configured_id = options.get("server_id", "nothing")
        yield f"{here.vm}: its server_id is {here.look['id']}, and its configuration says {configured_id}"


def is_on(options: Mapping[str, str], name: str) -> bool:
    return options.get(name, "0").upper() in ON


def wrong_recovery(here: Server, options: Mapping[str, str]) -> Iterator[str]:
    """Reports the options with which a crashed primary cuts transactions off its binlog at the next start. A replica may
    have acknowledged these transactions. The primary would then return without acknowledged writes."""
    version = here.one("SELECT VERSION()")
    effect = "after a crash this server cuts transactions off its binlog that a replica may have acknowledged (MDEV-33465)"
    if cuts_less(version):
        # The server accepts the name of a role, the first letters of the name, or the number of the role.
        role = options.get("init_rpl_role", "").upper()
        if role == "1" or (role and "SLAVE".startswith(role)):
            yield f"{here.vm}: its configuration says init_rpl_role = {role}: {effect}; remove it"
    elif is_on(options, "rpl_semi_sync_slave_enabled"):
        releases = ", ".join(f"{series[0]}.{series[1]}.{patch}" for series, patch in CUTS_LESS_SINCE.items())
        yield (
            f"{here.vm}: its configuration says rpl_semi_sync_slave_enabled = 1, and its version is {version}: {effect};"
            f" remove it, because the hooks enable it on replicas, or upgrade to {releases} or 11.8"
        )


def cuts_less(version: str) -> bool:
    """Whether only init_rpl_role = SLAVE makes this version cut its binlog, and not rpl_semi_sync_slave_enabled."""
    found = NUMBER.match(version)
    if not found:
        return False
    series = int(found[1]), int(found[2])
    return series >= ALL_CUT_LESS_SINCE or int(found[3]) >= CUTS_LESS_SINCE.get(series, 1 << 30)


def configured(here: Server) -> dict[str, str]:
    """Reads the options from the configuration files and the command line. The last value of an option counts."""
    found = here.ask("SELECT @@pid_file AS pid_file, @@datadir AS datadir")[0][0]
    pid = int((Path(found["datadir"]) / found["pid_file"]).read_text())
    command = Path(f"/proc/{pid}/cmdline").read_text(errors="surrogateescape").split("\0")[1:-1]
    files = [word for word in command if FILES.match(word)]
    lines = [] if "--no-defaults" in files else call(["my_print_defaults", *files, "--mysqld"]).splitlines()
    return dict(parsed([*lines, *(word for word in command if word not in files)]))


def parsed(words: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yields name and value of each option. The server accepts several spellings, such as `--skip-read-only`,
    `--loose-read_only` and `--read-only=ON`."""
    for word in words:
        name, equals, value = word.removeprefix("--").partition("=")
        name = name.replace("-", "_").lower().removeprefix("loose_")
        off = re.match(r"(skip|disable)_(?=.)", name)
        if off and not equals:
            yield name[off.end() :], "0"
        else:
            yield name.removeprefix("enable_"), value if equals else "1"
