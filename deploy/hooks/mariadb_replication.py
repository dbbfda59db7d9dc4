"""The direction of replication among MariaDB members, and the replicas for which commits wait."""

from __future__ import annotations

from collections.abc import Collection

from allclear_hook import Failed, Unreachable, members, number, setting, until
from mariadb_members import (
    LOCK,
    REJECTED,
    Group,
    Row,
    Server,
    covers,
    errant,
    highest,
    listed,
    memory,
    one_line,
    over_tcp,
    positions,
)
from mariadb_rights import lacks, quoted, replication_account

# Could not initialize the master info structure, or the relay log's.
UNREADABLE = (1201, 1871, 1872)
# Whether the replica acknowledges, and has told the primary so at the begin of its connection.
ACKNOWLEDGES = """SELECT @@rpl_semi_sync_slave_enabled AND variable_value = 'ON' FROM information_schema.global_status
  WHERE variable_name = 'RPL_SEMI_SYNC_SLAVE_STATUS'"""


def change(primary: Server) -> str:
    """Always the connection without a name, whatever the session's default_master_connection is."""
    host, port = members()[primary.vm]
    user, password = replication_account()
    more = setting("MASTER_OPTIONS", "")
    account = (
        f"MASTER_HOST = {quoted(host)}, MASTER_PORT = {port},"
        f" MASTER_USER = {quoted(user)}, MASTER_PASSWORD = {quoted(password)}"
    )
    return f"CHANGE MASTER '' TO {account}, MASTER_USE_GTID = slave_pos{', ' + more if more else ''}"


def follow(server: Server, primary: Server) -> None:
    """Makes a member a replica of the primary, regardless of the member's role."""
    try:
        server.ask("SET GLOBAL read_only = 1", "STOP SLAVE ''")
        begin(server, primary)
    except Unreachable:
        # A server that was killed during the change of its primary has an unreadable file about the change.
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
    """Starts replication on a server without a running replication."""
    semi_sync = ["SET GLOBAL rpl_semi_sync_master_enabled = 0", "SET GLOBAL rpl_semi_sync_slave_enabled = 1"]
    server.ask(*(semi_sync if is_semi_sync() else []), *position_of(server), change(primary), "START SLAVE ''")


def position_of(server: Server) -> list[str]:
    """The slave position of a former primary lacks the former primary's own writes. A server that was killed during the
    change has no slave position, but the binlog has the position."""
    where, replicated = server.where(), server.one("SELECT @@gtid_slave_pos")
    return [] if set(listed(where)) == set(listed(replicated)) else [f"SET GLOBAL gtid_slave_pos = {quoted(where)}"]


def refuses_options(server: Server) -> str:
    """The reason why a server does not accept MASTER_OPTIONS. The server prepares the statement, and does not run it.
    """
    if not setting("MASTER_OPTIONS", ""):
        return ""
    try:
        server.ask(f"PREPARE allclear FROM {quoted(change(server))}", "DEALLOCATE PREPARE allclear")
    except Unreachable as error:
        return f"MASTER_OPTIONS are not understood by {error}"
    return ""


def by_hand(vm: str) -> str:
    """The command that repairs this member outside an event."""
    name = f"{vm}/{setting('ALLCLEAR_WORKLOAD', 'mariadb')}/restore"
    return f"run on its VM: allclear hook run --config FILE {name}"


def nobody_is_writable(group: Group) -> str:
    """The words for a group without a writable member. A member without an answer may be writable."""
    if group.lost:
        return "; ".join(["nobody is writable", *group.lost.values()])
    own = [one for one in group if not (one.follows or one.named or one.is_copying) and one.position]
    whole = [one.vm for one in own if all(covers(one.position, other.position) for other in group)]
    return "nobody is writable" + (f"; to make {whole[0]} the primary, {by_hand(whole[0])}" if whole else "")


def is_following(server: Server, primary: Server) -> bool:
    found = server.follows
    host, port = members()[primary.vm]
    return found is not None and (found["Master_Host"], found["Master_Port"]) == (host, str(port))


def replicates_from(server: Server, primary: Server) -> bool:
    """Whether a replica is connected to this primary, by any name of the primary's address."""
    found = server.follows
    if found is None or found["Slave_IO_Running"] != "Yes":
        return False
    return found["Master_Server_Id"] == primary.look["id"] or is_following(server, primary)


def was_replaced(silent: str, group: Group, primary: Server) -> bool:
    """Whether a replica still waits for this silent member, and the primary has all of the replica, whose newest
    transactions are not the primary's own: the primary was promoted after them."""
    host, port = members()[silent]
    for one in group.others(primary):
        follows = one.follows
        waits = follows is not None and (follows["Master_Host"], follows["Master_Port"]) == (host, str(port))
        newest = {gtid.split("-")[1] for gtid in listed(highest(one.look["binlog"], one.look["position"]))}
        if waits and newest and primary.look["id"] not in newest and primary.is_writable and not has_more(one, primary):
            return True
    return False


def doubt(
    group: Group, primary: Server, seconds: float = 0.0, beside: Collection[str] = (), not_by: str = ""
) -> str:
    """Why this member may be a former primary, or an empty text. A member that does not answer may be the present
    primary, so a member that replicates from this one is the proof; or the note that this VM has promoted it. Replicas
    of a primary that was away are given some seconds to connect. Members in `beside` are known to be no primary, and the
    replication of `not_by` is no proof."""
    if all(vm in beside or was_replaced(vm, group, primary) for vm in group.silent):
        return ""
    if primary.vm != group.vm and memory().recall().get("candidate") == primary.vm:
        return ""
    if seconds:
        reconnect(group, primary, seconds)
    if any(replicates_from(one, primary) for one in group.others(primary) if one.vm != not_by):
        return ""
    why = (
        f"{primary.vm} may be a former primary: no member replicates from it, and one that does not answer may be the"
        " present primary"
    )
    return "; ".join([why, *(f"{vm}: {said.removeprefix(f'{vm}: ')}" for vm, said in group.silent.items())])


def runs(server: Server) -> bool:
    found = server.follows
    return found is not None and found["Slave_IO_Running"] == found["Slave_SQL_Running"] == "Yes"


def stopped_by(follows: Row) -> str:
    """The error that stopped replication, in the server's words. An attempt to connect is not stopped."""
    errors = {
        one: f"error {follows[f'Last_{one}_Errno']}: {one_line(follows[f'Last_{one}_Error'])}"
        for one in ("SQL", "IO")
        if follows[f"Slave_{one}_Running"] == "No" and follows[f"Last_{one}_Errno"] != "0"
    }
    return "; ".join(f"its {one} thread has stopped with {words}" for one, words in errors.items())


def why_not_running(server: Server) -> str:
    """The reason why a replica does not replicate, by the report of the server."""
    follows = server.follows
    if not follows:
        return "it follows nobody"
    last = next((follows[name] for name in ("Last_SQL_Error", "Last_IO_Error") if follows[name]), "")
    threads = f"IO {follows['Slave_IO_Running']}, SQL {follows['Slave_SQL_Running']}"
    return stopped_by(follows) or f"its replication does not run ({threads})" + (f": {one_line(last)}" if last else "")


def is_refused(server: Server) -> bool:
    """Whether the primary refuses the login of this replica, by the report of the replica."""
    follows = server.follows
    return follows is not None and follows["Slave_IO_Running"] != "Yes" and int(follows["Last_IO_Errno"]) in REJECTED


def names_connections(server: Server) -> str:
    """The hooks move the connection without a name: a named connection would keep its primary."""
    if not server.named:
        return ""
    names = ", ".join(repr(name) for name in server.named)
    return (
        f"it replicates over the named connection {names}, and these hooks move the one without a name alone: make it"
        " that, with STOP SLAVE and RESET SLAVE of the name, then CHANGE MASTER"
    )


def reconnect(group: Group, primary: Server, seconds: float = 0.0) -> None:
    """Replicas that lost this primary connect at once, instead of 60 s after the first failure."""

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
            # The next query of this member reports the reason.
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
    """Makes all other members follow this primary. Returns the errors per member. A member with an error stays as
    before.
    """
    reconnect(group, primary)
    wrong, apart = [], []
    for server in group.others(primary):
        # A member without a position, or with an incomplete copy, needs a full copy.
        if server.position and not server.is_copying and not is_following(server, primary):
            why = cannot_follow(server, primary)
            if why and server.vm == group.vm:
                raise Failed(why)
            if why:
                wrong.append(why)
            else:
                apart.append(server)
    # This VM last: when this member follows, all other members have been changed.
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
    """The errors of a change, and reasons against the change."""
    try:
        why = names_connections(server) or has_more(server, primary) or lacks(server)
    except Unreachable as error:
        return str(error)
    return f"{server.vm}: {why}" if why else ""


def has_more(server: Server, primary: Server) -> str:
    """Transactions that this primary does not have: a member with such transactions cannot follow the primary, and no
    member follows it."""
    server.look_again()
    primary.look_again()
    own = errant(server, primary)
    if not own and covers(positions(primary.where()), server.position):
        return ""
    return f"has transactions that {primary.vm} does not have ({', '.join(own) or server.look['position']})"


def resume(vm: str) -> None:
    """Restarts a replica that was stopped and could not be changed."""
    server = Server(vm, over_tcp(members()[vm]))
    try:
        server.ask("START SLAVE ''")
    except Unreachable:
        # The next query of this member reports the reason.
        pass
    finally:
        server.close()


def is_semi_sync() -> bool:
    return bool(setting("SEMI_SYNC_MS", ""))


def acknowledge(replica: Server) -> None:
    """Has a replica acknowledge again. The servers' configuration does not say so, because a primary would cut its binlog
    (MDEV-33465), and a restart forgets the rest. The setting alone proves nothing: a hook may have been killed before it
    told the primary."""
    if is_semi_sync() and replica.one(ACKNOWLEDGES) != "1":
        replica.ask(
            "SET GLOBAL rpl_semi_sync_slave_enabled = 1",
            # The primary is told at the begin of a connection.
            "STOP SLAVE '' IO_THREAD",
            "START SLAVE '' IO_THREAD",
        )


def wait_for_acknowledgement(group: Group, primary: Server, without: Collection[str], seconds: float = 0.0) -> None:
    """A commit waits for a replica only if a replica can acknowledge; otherwise the commit would hang for the timeout.

    A timeout of 1 ms equals no wait, and needs no new connections of the replicas.
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
