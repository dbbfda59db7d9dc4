"""The effect of a restart of this VM's server: a running server has later changes, and does not show the files' values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from allclear_hook import Failed, Unreachable, call
from mariadb_members import Server

# The origin of a variable's value: a file and its path, the command line, or a statement.
ORIGIN = """SELECT global_value AS value, global_value_origin AS origin FROM information_schema.system_variables
  WHERE variable_name = 'READ_ONLY'"""
FILES = re.compile(r"--(no-defaults$|defaults-(file|extra-file|group-suffix)=)")
ON = ("1", "ON", "TRUE")
WHY = {
    "read_only": "after a restart it takes writes beside the new primary",
    "gtid_strict_mode": "after a restart nothing keeps transactions of its own out",
}


def wrong_configuration(here: Server) -> Iterator[str]:
    """Whether read_only and other options are in the files of the start command."""
    try:
        options = configured(here)
    except (Failed, Unreachable, OSError, ValueError) as error:
        found = here.ask(ORIGIN)[0][0]
        if found["origin"] not in ("CONFIG", "COMMAND-LINE") or found["value"].upper() not in ON:
            yield f"{here.vm}: nobody can tell what its configuration says ({error}), and it has to say read_only = 1"
        return
    for name, why in WHY.items():
        if options.get(name, "0").upper() not in ON:
            yield f"{here.vm}: its configuration does not say {name} = 1: {why}; write it below [mariadb]"
    if options.get("server_id") != here.look["id"]:
        configured_id = options.get("server_id", "nothing")
        yield f"{here.vm}: its server_id is {here.look['id']}, and its configuration says {configured_id}"


def configured(here: Server) -> dict[str, str]:
    """Options from the files and the command line; the last value counts."""
    found = here.ask("SELECT @@pid_file AS pid_file, @@datadir AS datadir")[0][0]
    pid = int((Path(found["datadir"]) / found["pid_file"]).read_text())
    command = Path(f"/proc/{pid}/cmdline").read_text(errors="surrogateescape").split("\0")[1:-1]
    files = [word for word in command if FILES.match(word)]
    lines = [] if "--no-defaults" in files else call(["my_print_defaults", *files, "--mysqld"]).splitlines()
    return dict(parsed([*lines, *(word for word in command if word not in files)]))


def parsed(words: Iterable[str]) -> Iterator[tuple[str, str]]:
    """`--skip-read-only`, `--loose-read_only`, `--read-only=ON` and so on."""
    for word in words:
        name, equals, value = word.removeprefix("--").partition("=")
        name = name.replace("-", "_").lower().removeprefix("loose_")
        off = re.match(r"(skip|disable)_(?=.)", name)
        if off and not equals:
            yield name[off.end() :], "0"
        else:
            yield name.removeprefix("enable_"), value if equals else "1"
