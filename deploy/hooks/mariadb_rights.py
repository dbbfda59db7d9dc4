"""The rights of the hooks' account and the replication account, proven without an effect.

Each statement names a value or an object that does not exist. The error shows whether the server refuses the account or
the value. Grants have too many spellings to parse: roles, ALL PRIVILEGES, and SUPER, which included other rights.
"""

from __future__ import annotations

import configparser
import os

from allclear_hook import Failed, Rejected, Unreachable, members, setting
from mariadb_members import Server, option_file, over_tcp

NOWHERE = "allclear_there_is_no_such_schema"
# The right, and a statement that needs the right.
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
# Rights without a harmless statement, as columns of mysql.user. A dump silently leaves out the objects of the last
# three.
COLUMNS = {
    "BINLOG MONITOR": "GREATEST(Repl_client_priv, Super_priv)",
    "SHOW VIEW": "Show_view_priv",
    "TRIGGER": "Trigger_priv",
    "EVENT": "Event_priv",
}
# Further rights for a copy of lost data on this VM's server.
COPIER = {"BINLOG ADMIN": "SET SESSION sql_log_bin = 'x'", "SUPER": "SET GLOBAL gtid_binlog_state = 'x'"}
COPIER_COLUMNS = {
    name: f"{name.title()}_priv" for name in ("CREATE", "DROP", "INSERT", "ALTER", "EVENT")
}

ACCOUNT = """(User = LEFT(CURRENT_USER(), CHAR_LENGTH(CURRENT_USER()) - LOCATE('@', REVERSE(CURRENT_USER())))
  AND Host = SUBSTRING_INDEX(CURRENT_USER(), '@', -1))
  OR (is_role = 'Y' AND User IN (SELECT role_name FROM information_schema.enabled_roles))"""
# Access denied: to a schema, to a table, for lack of a privilege.
REFUSED = "(1044, 1142, 1143, 1227)"


def missing(server: Server, copier: bool = False) -> list[str]:
    """The rights that the account of this session lacks on this member."""
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
    """The repair of missing rights; empty if no right is missing."""
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


def refuses_replication(vm: str) -> Unreachable | None:
    """The reason why a replica on this VM could not follow that member; `Rejected` if waiting does not change that."""
    user, password = replication_account()
    # The options of the replication account, in a file without a name.
    escaped = password.replace("\\", "\\\\").replace('"', '\\"')
    more = "ssl\n" if "MASTER_SSL" in setting("MASTER_OPTIONS", "").upper().replace(" ", "") else ""
    descriptor = os.memfd_create("replication")
    try:
        os.fchmod(descriptor, 0o600)
        os.write(descriptor, f'[client]\nuser = "{user}"\npassword = "{escaped}"\n{more}'.encode())
        options = f"--defaults-file=/proc/{os.getpid()}/fd/{descriptor}"
        server = Server(vm, over_tcp(members()[vm]), options)
        server.login = f"[replication] of {option_file()}"
        try:
            statement = "SELECT COUNT(*) AS may FROM information_schema.user_privileges WHERE privilege_type IN"
            may = server.one(f"{statement} ('REPLICATION SLAVE', 'REPLICATION REPLICA')")
        finally:
            server.close()
    except Unreachable as error:
        kind = Rejected if isinstance(error, Rejected) else Unreachable
        return kind(f"the replication account cannot log in to {error}")
    finally:
        os.close(descriptor)
    return None if may != "0" else Rejected(f"{vm}: the replication account lacks GRANT REPLICATION SLAVE ON *.*")
