"""The data of a member of MariaDB that has lost them: how that is seen, and from whom they are copied."""

import subprocess

from allclear_hook import Blocked, Failed, Unreachable, call, members, progress, setting
from mariadb_members import Group, memory, option_file, over_tcp, patience
from mariadb_replication import runs

# Of what a fresh server has nothing is worth keeping.
USER_SCHEMAS = """SELECT COUNT(*) AS count FROM information_schema.schemata WHERE schema_name NOT IN
  ('mysql', 'information_schema', 'performance_schema', 'sys', 'test', 'allclear')"""


def data_here(told):
    """`whole` or `lost`; nothing as long as the server does not answer."""
    if memory().recall().get("filling"):
        return "lost"
    try:
        with Group(told, only=told.vm) as group:
            is_empty = group.here.one(USER_SCHEMAS) == "0" and not group.here.follows
    except Unreachable as error:
        # Accounts are lost with the rest; but it may be that the hooks' own is wrong.
        if "Access denied" not in str(error) and "not allowed to connect" not in str(error):
            return None
        is_empty = call(on_socket("--skip-column-names", "-e", USER_SCHEMAS)).strip() == "0"
        if not is_empty:
            raise Failed(f"{error}; and there are data") from error
    return "lost" if is_empty else "whole"


def on_socket(*arguments):
    return ["mariadb", "--no-defaults", f"--socket={setting('SOCKET', '/run/mysqld/mysqld.sock')}", *arguments]


def fill(told):
    """Copies everything from a member that is spared, a replica where there is one."""
    with Group(told, without={told.vm: "has no data"}) as group:
        primary = group.primary()
        if primary is None:
            raise Blocked("nobody is writable, so nobody knows whose data are the right ones")
        replicas = [one.vm for one in group.others(primary) if one.vm not in told.avoid and one.follows and runs(one)]
        source = (replicas or [primary.vm])[0]
    progress(f"{told.vm} has no data, and gets those of {source}")
    # Half of the data must not pass for all of them, should this be interrupted.
    memory().remember({"filling": source})
    call(on_socket("-e", "STOP SLAVE; RESET SLAVE ALL; RESET MASTER; SET GLOBAL gtid_slave_pos = ''"))
    copy(source, max(1.0, told.seconds_left() - 10))
    memory().forget()


def copy(source, seconds):
    """`gtid_slave_pos` comes with the dump, as of the moment that all of it is from."""
    dump = subprocess.Popen(
        ["mariadb-dump", f"--defaults-file={option_file()}", *over_tcp(members()[source]), "--all-databases",
         "--single-transaction", "--master-data=1", "--gtid", "--routines", "--events", "--flush-privileges",
         "--ignore-table=mysql.gtid_slave_pos"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        call(on_socket("--init-command=SET sql_log_bin = 0"), seconds, stdin=dump.stdout)
        if dump.wait(patience()) != 0:
            raise Blocked(f"mariadb-dump of {source}: {dump.stderr.read().strip()}")
    finally:
        dump.kill()
        dump.wait()
