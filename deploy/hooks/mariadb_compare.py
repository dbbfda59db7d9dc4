"""Whether a copy equals its source: every table, row by row, at one transaction on both."""

from __future__ import annotations

from allclear_hook import Failed, Told, Unreachable, members, progress
from mariadb_members import LOST_AND_FOUND, Row, Server, one_line, over_tcp
from mariadb_replication import stopped_by

OWN = f"('mysql', 'sys', 'information_schema', 'performance_schema', 'allclear', '{LOST_AND_FOUND}')"
# Each kind of object in a schema, by name.
THINGS = f"""SELECT 'schema' AS kind, schema_name AS name, '' AS part FROM information_schema.schemata
    WHERE schema_name NOT IN {OWN}
  UNION ALL SELECT LOWER(table_type), table_schema, CONCAT(table_name, ' ', COALESCE(engine, ''))
    FROM information_schema.tables WHERE table_schema NOT IN {OWN}
  UNION ALL SELECT LOWER(routine_type), routine_schema, routine_name FROM information_schema.routines
    WHERE routine_schema NOT IN {OWN}
  UNION ALL SELECT 'trigger', trigger_schema, trigger_name FROM information_schema.triggers
    WHERE trigger_schema NOT IN {OWN}
  UNION ALL SELECT 'event', event_schema, event_name FROM information_schema.events WHERE event_schema NOT IN {OWN}
  UNION ALL SELECT 'account', user, host FROM mysql.global_priv"""
# The tables with snapshots: engines other than InnoDB have no snapshot.
COLUMNS = f"""SELECT table_schema AS s, table_name AS t, column_name AS c FROM information_schema.columns
  JOIN information_schema.tables USING (table_schema, table_name)
  WHERE engine = 'InnoDB' AND table_type = 'BASE TABLE' AND table_schema NOT IN {OWN} AND is_generated = 'NEVER'
  ORDER BY table_schema, table_name, ordinal_position"""
SNAPSHOT = (
    "SET SESSION time_zone = '+00:00'",
    "START TRANSACTION WITH CONSISTENT SNAPSHOT",
    "SHOW STATUS LIKE 'binlog_snapshot_%'",
)
# Repeated when a table is altered, or created, during the comparison.
TIMES = 3


def compare(told: Told, source: str, here: Server) -> None:
    """Returns when both are equal. `here` is set to follow the primary, and has not begun to follow."""
    here.ask("SET SESSION time_zone = '+00:00'")
    differs = ""
    for attempt in range(1, TIMES + 1):
        snapshot = Server(source, over_tcp(members()[source]))
        try:
            differs = differs_from(told, snapshot, here)
        finally:
            snapshot.close()
        if not differs:
            return
        progress(f"compared {here.vm} with {source}, {attempt} of {TIMES} times: {differs}")
    raise Failed(f"the copy is not what {source} has: {differs}")


def differs_from(told: Told, source: Server, here: Server) -> str:
    seconds = max(1.0, told.seconds_left() - 5)
    found = {row["Variable_name"]: row["Value"] for row in source.ask(*SNAPSHOT)[-1]}
    file, place = found["Binlog_snapshot_file"], found["Binlog_snapshot_position"]
    catch_up(told, here, source.one(f"SELECT BINLOG_GTID_POS('{file}', {place}) AS position"))
    try:
        return things_that_differ(source, here, seconds) or rows_that_differ(source, here, seconds)
    except Unreachable as error:
        # The server with the snapshot refuses tables that were altered afterwards.
        if here.lost:
            raise
        return str(error)


def catch_up(told: Told, here: Server, position: str) -> None:
    """The member is exactly at the position, because replication stops there."""
    here.ask(f"START SLAVE '' UNTIL master_gtid_pos = '{position}'")
    while not here.reaches(position, 1, 5):
        here.look_again()
        why = stopped_by(here.follows) if here.follows else "it follows nobody"
        if why or told.seconds_left() < 5:
            raise Failed(f"{here.vm} does not get to {position}: {why or 'not in time'}")
    here.ask("STOP SLAVE ''")


def things_that_differ(source: Server, here: Server, seconds: float) -> str:
    theirs, ours = (
        {(row["kind"], row["name"], row["part"]) for row in server.ask(THINGS, seconds=seconds)[0]}
        for server in (source, here)
    )
    only = [f"{kind} {name} {part} is not here" for kind, name, part in sorted(theirs - ours)]
    only += [f"{kind} {name} {part} is only here" for kind, name, part in sorted(ours - theirs)]
    return one_line("; ".join(only[:3]))


def rows_that_differ(source: Server, here: Server, seconds: float) -> str:
    columns = here.ask(COLUMNS, seconds=seconds)[0]
    for table in sorted({(row["s"], row["t"]) for row in columns}):
        sums = checksum([row for row in columns if (row["s"], row["t"]) == table])
        source.send(sums)
        here.send(sums)
        theirs, ours = source.answer(seconds)[0][0], here.answer(seconds)[0][0]
        if theirs != ours:
            return f"{'.'.join(table)}: {ours['count']} rows beside {theirs['count']}, or others"
    return ""


def checksum(columns: list[Row]) -> str:
    """A checksum over the bytes of each row, in any order. NULL and an empty value differ."""
    names = [name(row["c"]) for row in columns]
    values = ", ".join(f"IFNULL(CAST({one} AS BINARY), '')" for one in names)
    nulls = ", ".join(f"ISNULL({one})" for one in names)
    table = f"{name(columns[0]['s'])}.{name(columns[0]['t'])}"
    both = f"SUM(CRC32(CONCAT_WS(0x1f, CONCAT({nulls}), {values}))) AS sum"
    return f"SELECT COUNT(*) AS count, {both} FROM {table}"


def name(identifier: str) -> str:
    return "`" + identifier.replace("`", "``") + "`"
