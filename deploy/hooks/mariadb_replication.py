"""Who follows whom among the members of a MariaDB replication, and for whom a commit waits."""

from __future__ import annotations

from collections.abc import Collection

from allclear_hook import Failed, Unreachable, members, number, setting, until
from mariadb_members import LOCK, Group, Row, Server, covers, errant, listed, one_line, over_tcp, positions
from mariadb_rights import lacks, quoted, replication_account

# Could not initialize master info structure, or that of the relay log.
UNREADABLE = (1201, 1871, 1872)


def change(primary: Server) -> str:
    """No session's default_master_connection changes that the connection without a name is meant."""
    host, port = members()[primary.vm]
    user, password = replication_account()
    more = setting("MASTER_OPTIONS", "")
    account = (
        f"MASTER_HOST = {quoted(host)}, MASTER_PORT = {port},"
        f" MASTER_USER = {quoted(user)}, MASTER_PASSWORD = {quoted(password)}"
    )
    return f"CHANGE MASTER '' TO {account}, MASTER_USE_GTID = slave_pos{', ' + more if more else ''}"


def follow(server: Server, primary: Server) -> None:
    """Makes a member a replica of that one, whatever it was."""
    try:
        server.ask("SET GLOBAL read_only = 1", "STOP SLAVE ''")
        begin(server, primary)
    except Unreachable:
        # A server that was killed while it changed its primary has a file about it that it cannot read.
        if server.error not in UNREADABLE:
            raise
        again = Server(server.vm, over_tcp(members()[server.vm]))
        try:
            again.ask(LOCK, "SET GLOBAL read_only = 1", "RESET SLAVE '' ALL")
            begin(again, primary)
        finally:
            again.close()
    else:
        server.look_again()


def begin(server: Server, primary: Server) -> None:
    """Of one that replicates from nobody at this moment."""
    semi_sync = ["SET GLOBAL rpl_semi_sync_master_enabled = 0", "SET GLOBAL rpl_semi_sync_slave_enabled = 1"]
    server.ask(*(semi_sync if is_semi_sync() else []), *position_of(server), change(primary), "START SLAVE ''")


def position_of(server: Server) -> list[str]:
    """What a former primary wrote itself is not in its slave position; and a server that was killed while this was set
    has none, but its binlog tells."""
    where, replicated = server.where(), server.one("SELECT @@gtid_slave_pos")
    return [] if set(listed(where)) == set(listed(replicated)) else [f"SET GLOBAL gtid_slave_pos = {quoted(where)}"]


def refuses_options(server: Server) -> str:
    """Why a server does not understand MASTER_OPTIONS; it is asked to prepare the statement, and does not run it."""
    if not setting("MASTER_OPTIONS", ""):
        return ""
    try:
        server.ask(f"PREPARE allclear FROM {quoted(change(server))}", "DEALLOCATE PREPARE allclear")
    except Unreachable as error:
        return f"MASTER_OPTIONS are not understood by {error}"
    return ""


def is_following(server: Server, primary: Server) -> bool:
    found = server.follows
    host, port = members()[primary.vm]
    return found is not None and (found["Master_Host"], found["Master_Port"]) == (host, str(port))


def runs(server: Server) -> bool:
    found = server.follows
    return found is not None and found["Slave_IO_Running"] == found["Slave_SQL_Running"] == "Yes"


def stopped_by(follows: Row) -> str:
    """What stopped its replication, in the server's words. That it still connects stops nothing."""
    errors = {
        one: f"error {follows[f'Last_{one}_Errno']}: {one_line(follows[f'Last_{one}_Error'])}"
        for one in ("SQL", "IO")
        if follows[f"Slave_{one}_Running"] == "No" and follows[f"Last_{one}_Errno"] != "0"
    }
    return "; ".join(f"its {one} thread has stopped with {words}" for one, words in errors.items())


def why_not_running(server: Server) -> str:
    """Why a member that should replicate does not, as far as its server knows."""
    follows = server.follows
    if not follows:
        return "it follows nobody"
    last = next((follows[name] for name in ("Last_SQL_Error", "Last_IO_Error") if follows[name]), "")
    threads = f"IO {follows['Slave_IO_Running']}, SQL {follows['Slave_SQL_Running']}"
    return stopped_by(follows) or f"its replication does not run ({threads})" + (f": {one_line(last)}" if last else "")


def names_connections(server: Server) -> str:
    """The hooks move one connection, the one without a name: a named one would stay where it is."""
    if not server.named:
        return ""
    names = ", ".join(repr(name) for name in server.named)
    return (
        f"it replicates over the named connection {names}, and these hooks move the one without a name alone: make it"
        " that, with STOP SLAVE and RESET SLAVE of the name, then CHANGE MASTER"
    )


def reconnect(group: Group, primary: Server, seconds: float = 0.0) -> None:
    """Those that lost this primary for a while connect at once, instead of 60 s after the first failure."""

    def waiting() -> list[Server]:
        return [
            one
            for one in group.others(primary)
            if one.follows and is_following(one, primary) and one.follows["Slave_IO_Running"] == "Connecting"
        ]

    for server in waiting():
        server.send("STOP SLAVE '' IO_THREAD", "START SLAVE '' IO_THREAD")
        try:
            server.answer()
        except Unreachable:
            # Whoever needs it asks it again, and tells why.
            pass

    def all_are_connected() -> bool:
        for server in waiting():
            try:
                server.look_again()
            except Unreachable:
                pass
        return not waiting()

    until(all_are_connected, seconds)


def lead(group: Group, primary: Server) -> list[str]:
    """All others follow this one. Returns what went wrong on whom; who cannot be changed stays as it is."""
    reconnect(group, primary)
    wrong, apart = [], []
    for server in group.others(primary):
        # One without a position, or with half of a copy, needs more than that.
        if server.position and not server.is_copying and not is_following(server, primary):
            why = cannot_follow(server, primary)
            if why and server.vm == group.vm:
                raise Failed(why)
            if why:
                wrong.append(why)
            else:
                apart.append(server)
    # This VM last: once it follows, all others have been told.
    apart.sort(key=lambda one: one.vm == group.vm)
    for server in apart:
        try:
            follow(server, primary)
        except Unreachable as error:
            if server.vm == group.vm:
                raise
            wrong.append(str(error))
            resume(server.vm)
    return wrong


def cannot_follow(server: Server, primary: Server) -> str:
    """What would fail in the middle of it, or should not be done."""
    try:
        why = names_connections(server) or has_more(server, primary) or lacks(server)
    except Unreachable as error:
        return str(error)
    return f"{server.vm}: {why}" if why else ""


def has_more(server: Server, primary: Server) -> str:
    """Transactions that this primary does not have: whoever has them cannot follow it, and is never followed."""
    server.look_again()
    primary.look_again()
    own = errant(server, primary)
    if not own and covers(positions(primary.where()), server.position):
        return ""
    return f"has transactions that {primary.vm} does not have ({', '.join(own) or server.look['position']})"


def resume(vm: str) -> None:
    """A replica that was stopped and could not be changed goes on as before."""
    server = Server(vm, over_tcp(members()[vm]))
    try:
        server.ask("START SLAVE ''")
    except Unreachable:
        # It tells so itself when it is looked at.
        pass
    finally:
        server.close()


def is_semi_sync() -> bool:
    return bool(setting("SEMI_SYNC_MS", ""))


def wait_for_acknowledgement(group: Group, primary: Server, without: Collection[str], seconds: float = 0.0) -> None:
    """A commit waits for a replica only where one is left that can acknowledge; else it would hang for the timeout.

    A timeout of 1 ms is as good as none, and replicas need not connect anew for it.
    """
    if not is_semi_sync():
        return
    left = [server for server in group.others(primary) if server.vm not in without]

    def one_acknowledges() -> bool:
        for server in left:
            server.send("SHOW STATUS LIKE 'Rpl_semi_sync_slave_status'")
        return "ON" in [server.answer()[0][0]["Value"] for server in left]

    timeout = int(number("SEMI_SYNC_MS", 0)) if until(one_acknowledges, seconds) else 1
    primary.ask(
        f"SET GLOBAL rpl_semi_sync_master_timeout = {timeout}",
        "SET GLOBAL rpl_semi_sync_master_enabled = 1",
    )
