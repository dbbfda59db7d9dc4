"""What the accounts of the hooks and of replication may do, proven without an effect.

Each statement names a value or an object that there is not, and it tells whether the server refuses the account or the
value. Grants have too many spellings to be read: roles, ALL PRIVILEGES, and SUPER, which had others of them in it.
"""

from __future__ import annotations

import configparser
import os

from allclear_hook import Failed, Unreachable, members, setting
from mariadb_members import Server, option_file, over_tcp

NOWHERE = "allclear_there_is_no_such_schema"
# The right, and what asks for it.
HOOKS = {
    "READ_ONLY ADMIN": "SET GLOBAL read_only = 'x'",
    "CONNECTION ADMIN": "SET GLOBAL max_connections = 'x'",
    "PROCESS": "SELECT COUNT(*) INTO @allclear FROM information_schema.innodb_trx",
    "REPLICATION MASTER ADMIN": "SET GLOBAL rpl_semi_sync_master_timeout = 'x'",
    "REPLICATION SLAVE ADMIN": "SET GLOBAL gtid_slave_pos = 'x'",
    "RELOAD": "RESET SLAVE 'there is no such connection' ALL",
    "SELECT": f"SELECT 1 INTO @allclear FROM {NOWHERE}.t",
    "CREATE ON allclear.*": f"CREATE TABLE allclear.t LIKE {NOWHERE}.t",
}
# Rights for which no statement is without an effect or an answer, as columns of mysql.user. A dump leaves out without a
# word what the last three would have shown.
COLUMNS = {
    "BINLOG MONITOR": "GREATEST(Repl_client_priv, Super_priv)",
    "SHOW VIEW": "Show_view_priv",
    "TRIGGER": "Trigger_priv",
    "EVENT": "Event_priv",
}
# What copies lost data on this VM's server, beside.
COPIER = {"BINLOG ADMIN": "SET SESSION sql_log_bin = 'x'", "SUPER": "SET GLOBAL gtid_binlog_state = 'x'"}
COPIER_COLUMNS = {
    name: f"{name.title()}_priv" for name in ("CREATE", "DROP", "INSERT", "ALTER", "EVENT")
}

ACCOUNT = """(User = LEFT(CURRENT_USER(), CHAR_LENGTH(CURRENT_USER()) - LOCATE('@', REVERSE(CURRENT_USER())))
  AND Host = SUBSTRING_INDEX(CURRENT_USER(), '@', -1))
  OR (is_role = 'Y' AND User IN (SELECT role_name FROM information_schema.enabled_roles))"""
# Access denied: to a schema, for a table, for want of a privilege.
REFUSED = "(1044, 1142, 1143, 1227)"


def missing(server: Server, copier: bool = False) -> list[str]:
    """Rights that this member does not give to whom it is asked as."""
    trials = {**HOOKS, **COPIER} if copier else HOOKS
    columns = COPIER_COLUMNS if copier else COLUMNS
    tried = "\n".join(
        f"SET refused = FALSE; EXECUTE IMMEDIATE {quoted(statement)};"
        f" IF refused THEN SET found = CONCAT(found, {quoted(f'{name}|')}); END IF;"
        for name, statement in trials.items()
    )
    listed = ", ".join(
        f"IF(COALESCE(MAX({column} = 'Y'), 0), '', {quoted(f'{name}|')})" for name, column in columns.items()
    )
    told = server.one(
        f"""BEGIN NOT ATOMIC
DECLARE code INT; DECLARE refused BOOL; DECLARE found, more TEXT DEFAULT '';
DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN
  GET DIAGNOSTICS CONDITION 1 code = MYSQL_ERRNO; SET refused = code IN {REFUSED};
END;
{tried}
SELECT CONCAT({listed}) INTO more FROM mysql.user WHERE {ACCOUNT};
SELECT CONCAT(found, more) AS missing;
END"""
    )
    return told.strip("|").split("|") if told else []


def lacks(server: Server) -> str:
    """What to do about rights that are missing; nothing where they are all there."""
    names = missing(server)
    everywhere = ", ".join(name for name in names if " ON " not in name)
    grants = [f"GRANT {everywhere} ON *.*"] if everywhere else []
    grants += [f"GRANT {name}" for name in names if " ON " in name]
    return f"the account of the hooks lacks {' and '.join(grants)}" if names else ""


def quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def replication_account() -> tuple[str, str]:
    file = configparser.ConfigParser(allow_no_value=True, interpolation=None, strict=False)
    try:
        found = file.read(option_file())
    except (configparser.Error, UnicodeDecodeError) as error:
        raise Failed(f"{option_file()} cannot be read: {error}") from error
    if not found or not file.has_section("replication"):
        raise Failed(f"{option_file()} cannot be read, or has no [replication]")
    user, password = ((file["replication"].get(name) or "").strip("\"'") for name in ("user", "password"))
    if not user:
        raise Failed(f"{option_file()} has no user in [replication]")
    return user, password


def refuses_replication(vm: str) -> str:
    """Why a replica on this VM could not follow that member; nothing where it could."""
    user, password = replication_account()
    # The same options but for the account, in a file that has no name.
    escaped = password.replace("\\", "\\\\").replace('"', '\\"')
    more = "ssl\n" if "MASTER_SSL" in setting("MASTER_OPTIONS", "").upper().replace(" ", "") else ""
    descriptor = os.memfd_create("replication")
    try:
        os.fchmod(descriptor, 0o600)
        os.write(descriptor, f'[client]\nuser = "{user}"\npassword = "{escaped}"\n{more}'.encode())
        options = f"--defaults-file=/proc/{os.getpid()}/fd/{descriptor}"
        server = Server(vm, over_tcp(members()[vm]), options)
        try:
            statement = "SELECT COUNT(*) AS may FROM information_schema.user_privileges WHERE privilege_type IN"
            may = server.one(f"{statement} ('REPLICATION SLAVE', 'REPLICATION REPLICA')")
        finally:
            server.close()
    except Unreachable as error:
        return f"the replication account cannot log in to {error}"
    finally:
        os.close(descriptor)
    return "" if may != "0" else f"{vm}: the replication account lacks GRANT REPLICATION SLAVE ON *.*"
