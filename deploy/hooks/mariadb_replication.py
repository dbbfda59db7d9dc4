"""Who follows whom among the members of a MariaDB replication, and for whom a commit waits."""

import configparser

from allclear_hook import Failed, Unreachable, members, number, setting, until
from mariadb_members import LOOK, option_file


def text(value):
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"


def replication_account():
    file = configparser.ConfigParser(allow_no_value=True, interpolation=None, strict=False)
    if not file.read(option_file()) or not file.has_section("replication"):
        raise Failed(f"{option_file()} cannot be read, or has no [replication]")
    return [file["replication"].get(name, "").strip("\"'") for name in ("user", "password")]


def following(primary):
    """Makes a member a replica of that one, whatever it was."""
    host, port = members()[primary.vm]
    user, password = replication_account()
    more = setting("MASTER_OPTIONS", "")
    semi_sync = ["SET GLOBAL rpl_semi_sync_master_enabled = 0", "SET GLOBAL rpl_semi_sync_slave_enabled = 1"]
    return ["SET GLOBAL read_only = 1",
            "STOP SLAVE",
            *(semi_sync if is_semi_sync() else []),
            # What a former primary wrote itself is not in its slave position.
            "SET GLOBAL gtid_slave_pos = @@gtid_current_pos",
            f"CHANGE MASTER TO MASTER_HOST = {text(host)}, MASTER_PORT = {port}, MASTER_USER = {text(user)},"
            f" MASTER_PASSWORD = {text(password)}, MASTER_USE_GTID = slave_pos{', ' + more if more else ''}",
            "START SLAVE"]


def is_following(server, primary):
    found = server.follows
    host, port = members()[primary.vm]
    return bool(found) and (found["Master_Host"], found["Master_Port"]) == (host, str(port))


def runs(server):
    return server.follows["Slave_IO_Running"] == "Yes" and server.follows["Slave_SQL_Running"] == "Yes"


def reconnect(group, primary, seconds=0.0):
    """Those that lost this primary for a while connect at once, instead of 60 s after the first failure."""
    def waiting():
        return [one for one in group.others(primary)
                if is_following(one, primary) and one.follows["Slave_IO_Running"] == "Connecting"]

    for server in waiting():
        server.send("STOP SLAVE IO_THREAD", "START SLAVE IO_THREAD")
        try:
            server.answer()
        except Unreachable:
            # Whoever needs it asks it again, and tells why.
            pass

    def all_are_connected():
        for server in waiting():
            try:
                server.see(server.ask(LOOK, "SHOW SLAVE STATUS"))
            except Unreachable:
                pass
        return not waiting()

    until(all_are_connected, seconds)


def lead(group, primary):
    """All others follow this one. Returns what went wrong on whom."""
    reconnect(group, primary)
    statements, wrong = following(primary), []
    # One without a position has no data either, and needs more than that. This VM last: once it follows, all others
    # have been told.
    apart = sorted((one for one in group.others(primary) if one.position and not is_following(one, primary)),
                   key=lambda one: one.vm == group.vm)
    for server in apart:
        server.send(*statements)
    for server in apart:
        try:
            server.answer()
        except Unreachable as error:
            if server.vm == group.vm:
                raise
            wrong.append(str(error))
    return wrong


def is_semi_sync():
    return bool(setting("SEMI_SYNC_MS", ""))


def wait_for_acknowledgement(group, primary, without, seconds=0.0):
    """A commit waits for a replica only where one is left that can acknowledge; else it would hang for the timeout.

    A timeout of 1 ms is as good as none, and replicas need not connect anew for it.
    """
    if not is_semi_sync():
        return
    left = [server for server in group.others(primary) if server.vm not in without]

    def one_acknowledges():
        for server in left:
            server.send("SHOW STATUS LIKE 'Rpl_semi_sync_slave_status'")
        return "ON" in [server.answer()[0][0]["Value"] for server in left]

    timeout = int(number("SEMI_SYNC_MS", 0)) if until(one_acknowledges, seconds) else 1
    primary.ask(f"SET GLOBAL rpl_semi_sync_master_timeout = {timeout}",
                "SET GLOBAL rpl_semi_sync_master_enabled = 1")
