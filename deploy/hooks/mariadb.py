#!/usr/bin/env python3
"""Hooks for MariaDB with GTID replication, asynchronous or semi-synchronous: one primary, the rest replicas of it.

Needs
  MariaDB 10.6 or later, the `mariadb` client, and for lost data `mariadb-dump`. On every member log_bin,
  log_slave_updates, and in its configuration file `read_only = 1`: only there does it hold after a restart, and
  without it a primary that comes back takes writes beside the new one. No hook can check what the file says. What it
  costs: a primary that restarts outside of an event stays read-only until somebody says otherwise (`mariadb.py
  restore` on it does, when nobody else is writable and it has all there is).
  An account for the hooks and one for replication, the same on all members; mariadb.toml has the grants.

Promises
  A planned switch loses no acknowledged write: the old primary takes none before the new one has all of them and takes
  some. No two members are writable, wherever the hook is stopped or killed. What cannot be switched within the bounds
  is taken back, and the old primary is writable again. A member is back when a transaction that was written after the
  switch has arrived on it.

Cannot promise
  That users with READ ONLY ADMIN stop writing: read_only does not hold them. While they do, there is no switch.
  That with semi-synchronous replication a second member has the first writes after a switch: writes are open before the
  others have connected to the new primary, some 100 ms. After that every commit waits again, as far as a member that is
  spared is there to wait for.
  That scheduled events run on the new primary: MariaDB disables them on replicas, and so they stay.
  A switch that is short with long statements: those that write are waited for (STOP_SECONDS), then it is taken back.
  Lost data are copied by `mariadb-dump` as SQL: right for tens of gigabytes and InnoDB. It needs an empty server that
  runs, as the package leaves behind, and an account of it that the hook's user may use over SOCKET without a password.
  A member with transactions that the primary does not have is left alone; emptying it is for people.
  MySQL is not supported: its GTIDs, its statements and its client differ.

Settings (env)
  MEMBERS          "db-0=10.0.0.4:3306 db-1=10.0.0.5:3306": each VM and its server, as hooks and replicas reach it
  OPTION_FILE      default /etc/allclear/mariadb.cnf: [client] with the hooks' account, [replication] with user and
                   password of the other
  MASTER_OPTIONS   more for CHANGE MASTER, as "MASTER_SSL = 1"
  MAX_LAG_MS       default 500: a candidate must have what the primary wrote within this long, looked at before
  CATCH_UP_MS      default 2000: so long may it take while writes are stopped; after that it is taken back
  PATIENCE_SECONDS default 5: a member that does not answer within this long is not there
  STOP_SECONDS     default 1: so long may statements that write keep the primary from being read-only
  SETTLE_MS        default 500: clients have this long to move before the drain ends
  SEMI_SYNC_MS     rpl_semi_sync_master_timeout of a whole group; left out: asynchronous
  SOCKET           default /run/mysqld/mysqld.sock: of this VM's server, asked when its accounts are lost
  STATE_DIR        default /var/lib/allclear-hooks; on each VM's own disk, and the hooks' user may write there
"""

import configparser
import os
import select
import signal
import subprocess
import time

from allclear_hook import (Blocked, Done, Failed, Memory, NotApplicable, NotDone, Unknown, Unreachable, call, members,
                           progress, serve, setting, until)

LOCK = "SELECT GET_LOCK('allclear', 5) AS got"
POSITION = "SELECT @@gtid_binlog_pos AS position"
LOOK = ("SELECT @@server_id AS id, @@read_only AS read_only, @@log_bin AS log_bin, @@log_slave_updates AS passes_on,"
        " @@gtid_current_pos AS position")
END = "--allclear-end--"
DELIMITER = "$allclear$"
# Those of replication and of the server itself have no part in what applications do.
KILL_APPLICATIONS = """BEGIN NOT ATOMIC
  DECLARE CONTINUE HANDLER FOR 1094 BEGIN END;
  FOR one IN (SELECT id FROM information_schema.processlist
              WHERE user NOT IN ('system user', 'event_scheduler', SUBSTRING_INDEX(USER(), '@', 1))
              AND command NOT IN ('Binlog Dump', 'Daemon')) DO
    EXECUTE IMMEDIATE CONCAT('KILL ', one.id);
  END FOR;
END"""
# Of what a fresh server has nothing is worth keeping.
USER_SCHEMAS = """SELECT COUNT(*) AS count FROM information_schema.schemata WHERE schema_name NOT IN
  ('mysql', 'information_schema', 'performance_schema', 'sys', 'test', 'allclear')"""


def option_file():
    return setting("OPTION_FILE", "/etc/allclear/mariadb.cnf")


def patience():
    return int(setting("PATIENCE_SECONDS", "5"))


def milliseconds(name, default):
    return int(setting(name, default)) / 1000


class Server:
    """A member, and one client process that stays: nothing is started while writes are stopped."""

    def __init__(self, vm, how):
        self.vm = vm
        self.lost = None
        self.look = {}
        self.follows = None
        # Without a session of its own it would get the signals for the hook's group, and die before what is taken back.
        self._client = subprocess.Popen(
            ["mariadb", f"--defaults-file={option_file()}", *how, "--batch", "--unbuffered", "--skip-reconnect",
             "--no-auto-rehash", f"--connect-timeout={patience()}", f"--delimiter={DELIMITER}"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0, start_new_session=True)
        self._said = b""
        self._asked = []

    def send(self, *statements):
        """Statements in their order; the first that fails ends the client, and the rest is not run."""
        if self.lost:
            raise Unreachable(f"{self.vm}: {self.lost}")
        text = "".join(f"{one}\n{DELIMITER}\nSELECT 1 AS `{END}`\n{DELIMITER}\n" for one in statements)
        self._asked.append(len(statements))
        try:
            self._client.stdin.write(text.encode())
        except BrokenPipeError:
            pass  # Why it ended is in its output.

    def answer(self, seconds=None):
        """The rows of each statement of the eldest `send`."""
        count, ends = self._asked.pop(0), time.monotonic() + (seconds or patience())
        mark = f"{END}\n1\n".encode()
        while self._said.count(mark) < count:
            ready = select.select([self._client.stdout], [], [], max(0, ends - time.monotonic()))[0]
            read = os.read(self._client.stdout.fileno(), 65536) if ready else b""
            if not read:
                self._lose("did not answer" if not ready else "")
            self._said += read
        *parts, self._said = self._said.split(mark, count)
        return [rows(part.decode(errors="replace")) for part in parts]

    def ask(self, *statements, seconds=None):
        self.send(*statements)
        return self.answer(seconds)

    def one(self, statement):
        """The only value of the only row."""
        return next(iter(self.ask(statement)[0][0].values()))

    def _lose(self, reason):
        lines = [line for line in self._said.decode(errors="replace").splitlines() if line.startswith("ERROR ")]
        self.lost = reason or (lines[-1] if lines else "closed the connection")
        self.close()
        raise Unreachable(f"{self.vm}: {self.lost}")

    def close(self):
        self._client.kill()
        self._client.wait()
        self._client.stdin.close()
        self._client.stdout.close()

    def see(self, found):
        self.look, self.follows = found[0][0], (found[1] or [None])[0]

    @property
    def is_primary(self):
        return self.look["read_only"] in ("0", "OFF") and not self.follows

    @property
    def position(self):
        return positions(self.look["position"])

    def reaches(self, position, seconds, grace=1):
        """Whether it has all of that position, or gets there in time. A dead one is known by the grace after that."""
        found = self.ask(f"SELECT MASTER_GTID_WAIT('{position}', {seconds:.3f}) AS late", seconds=seconds + grace)
        return found[0][0]["late"] == "0"


def rows(text):
    """What the client prints in batches: a line of names, then one for each row."""
    lines = [line.split("\t") for line in text.splitlines()]
    return [dict(zip(lines[0], line)) for line in lines[1:]]


def positions(text):
    """`0-1-42,7-3-9` as {domain: number}."""
    parts = [one.strip().split("-") for one in text.split(",") if one.strip()]
    return {domain: int(number) for domain, _, number in parts}


def covers(all_of, these):
    return all(all_of.get(domain, 0) >= number for domain, number in these.items())


class Group:
    """The members that answer. As long as it is `locked`, no other hook changes what they are."""

    def __init__(self, told, locked=False, only=None, without=None):
        self.vm = told.vm
        self.lost = dict(without or {})
        if told.vm not in members():
            raise Failed(f"MEMBERS does not name {told.vm}, this VM")
        self.servers = {vm: Server(vm, over_tcp(address)) for vm, address in sorted(members().items())
                        if vm not in self.lost and only in (None, vm)}
        if locked:
            self._lock()
        self.refresh()

    def _lock(self):
        """Each in the same order: two hooks must not wait for each other. A lock ends with its connection."""
        for server in list(self):
            try:
                got = server.ask(LOCK, seconds=5 + patience())[0][0]["got"]
            except Unreachable as error:
                self._drop(server, error)
                continue
            if got != "1":
                self.close()
                raise Blocked(f"another hook works on {server.vm}")

    def refresh(self):
        for server in self:
            server.send(LOOK, "SHOW SLAVE STATUS")
        for server in list(self):
            try:
                server.see(server.answer())
            except Unreachable as error:
                self._drop(server, error)

    def _drop(self, server, error):
        del self.servers[server.vm]
        self.lost[server.vm] = str(error)

    def __iter__(self):
        return iter(self.servers.values())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        for server in self:
            server.close()

    @property
    def here(self):
        if self.vm not in self.servers:
            raise Unreachable(self.lost[self.vm])
        return self.servers[self.vm]

    def others(self, than):
        return [server for server in self if server is not than and not server.lost]

    def primary(self):
        writable = [server for server in self if server.is_primary]
        if len(writable) > 1:
            names = " and ".join(server.vm for server in writable)
            raise Failed(f"{names} are both writable; make all but one read-only, and see what they took")
        return writable[0] if writable else None


def over_tcp(address):
    host, port = address
    return [f"--host={host}", f"--port={port}", "--protocol=tcp"]


def memory():
    return Memory("mariadb")


# --- Who follows whom


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


def lead(group, primary):
    """All others follow this one. Returns what went wrong on whom."""
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


# --- Semi-synchronous replication


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

    timeout = int(setting("SEMI_SYNC_MS")) if until(one_acknowledges, seconds) else 1
    primary.ask(f"SET GLOBAL rpl_semi_sync_master_timeout = {timeout}",
                "SET GLOBAL rpl_semi_sync_master_enabled = 1")


# --- Failover


def why_not(old, server):
    """What speaks against this candidate."""
    follows = server.follows
    if not follows or follows["Master_Server_Id"] != old.look["id"]:
        return f"does not replicate from {old.vm}"
    if not runs(server):
        return follows["Last_SQL_Error"] or follows["Last_IO_Error"] or "its replication does not run"
    if follows["Using_Gtid"] == "No":
        return "replicates without GTID"
    if server.look["read_only"] in ("0", "OFF"):
        return "its read_only is off"
    if server.look["log_bin"] != "1" or server.look["passes_on"] != "1":
        return "log_bin and log_slave_updates must be on"
    now = old.one(POSITION)
    if not covers(positions(now), server.position):
        return f"has transactions that {old.vm} does not have"
    lag = milliseconds("MAX_LAG_MS", "500")
    return "" if server.reaches(now, lag) else f"lags more than {lag * 1000:.0f} ms"


def choose(told, group, old):
    against = dict(group.lost)
    for vm in members():
        if vm in told.avoid and vm != old.vm:
            against[vm] = "is on a VM to avoid"
    for vm in told.in_order_of_preference(group.servers):
        try:
            against[vm] = why_not(old, group.servers[vm])
        except Unreachable as error:
            against[vm] = str(error)
        if not against[vm]:
            return group.servers[vm]
    said = "; ".join(f"{vm}: {reason}" for vm, reason in sorted(against.items()))
    raise Blocked(f"no member can take over: {said}")


def failover(told):
    with Group(told, locked=True) as group:
        old, primary = group.here, group.primary()
        if old.follows and not memory().recall():
            raise NotApplicable(f"{old.vm} is a replica")
        if told.is_dry_run:
            return Done(f"would switch from {old.vm} to {choose(told, group, old).vm}")
        if primary not in (None, old):
            # An attempt before this one was ended after it had opened the new primary.
            return finish(told, group, primary)
        if primary is None:
            # An attempt before this one was ended after it had stopped the writes.
            take_back(group)
            group.refresh()
        new = choose(told, group, old)
        # What would fail later had better fail now, while the primary takes writes.
        memory().remember({})
        replication_account()
        signal.signal(signal.SIGTERM, cancelled)
        try:
            return switch(told, group, old, new)
        except BaseException:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            group.close()
            take_back_at_once(told, group.lost)
            raise


def cancelled(*_):
    raise Failed("cancelled")


def switch(told, group, old, new):
    stopped = time.monotonic()
    old.ask(f"SET lock_wait_timeout = {int(setting('STOP_SECONDS', '1'))}", "SET GLOBAL read_only = 1",
            KILL_APPLICATIONS)
    catch_up(old, new, stopped + milliseconds("CATCH_UP_MS", "2000"))
    # Should this be the last that this program does, then nobody opens the old primary without asking that one.
    memory().remember({"candidate": new.vm})
    new.ask("STOP SLAVE", "RESET SLAVE ALL", "SET GLOBAL read_only = 0")
    took = (time.monotonic() - stopped) * 1000
    progress(f"{new.vm} is the primary; writes were stopped for {took:.0f} ms")
    return finish(told, group, new)


def catch_up(old, new, ends):
    """Returns when the candidate has all that the old primary will ever have."""
    while True:
        position = old.one(POSITION)
        if not new.reaches(position, max(0.0, ends - time.monotonic())):
            raise Blocked(f"{new.vm} did not get all of {old.vm} in time; taken back")
        if old.one(POSITION) == position:
            return


def finish(told, group, primary):
    """The switch is made; what is left is that everybody follows."""
    wrong = lead(group, primary)
    wait_for_acknowledgement(group, primary, told.affected, seconds=1)
    memory().forget()
    return Done("; ".join([f"{primary.vm} is the primary", *wrong]))


def take_back(group):
    """The old primary is opened again, unless another one is open, or may be, or has more."""
    here, primary = group.here, group.primary()
    if primary or here.follows:
        return
    candidate = memory().recall().get("candidate")
    if candidate in group.lost:
        raise Blocked(f"{candidate} may be writable, and does not answer: {group.lost[candidate]}")
    for server in group.others(here):
        if not covers(here.position, server.position):
            raise Failed(f"{server.vm} has transactions that {here.vm} does not have, and nobody is writable: make the"
                         " one with the most of them the primary")
    here.ask("SET GLOBAL read_only = 0")
    here.see(here.ask(LOOK, "SHOW SLAVE STATUS"))
    lead(group, here)
    wait_for_acknowledgement(group, here, (), seconds=1)
    memory().forget()


def take_back_at_once(told, lost):
    """Until it succeeds, within the time that is left to a hook which has to end. After that `undo` does it."""
    ends = time.monotonic() + 4
    while True:
        try:
            with Group(told, locked=True, without=lost) as group:
                return take_back(group)
        except (Unreachable, Blocked):
            if time.monotonic() > ends:
                raise


def undo_failover(told):
    with Group(told, locked=True) as group:
        take_back(group)


def confirm_failover(told):
    with Group(told) as group:
        primary = group.primary()
        if primary and primary.vm == told.vm:
            raise NotDone(f"{told.vm} is still the primary")
        if primary and told.vm in group.servers and not is_following(group.here, primary):
            raise NotDone(f"{told.vm} does not follow {primary.vm}")
        if primary:
            return Done(f"{primary.vm} is the primary")
        if group.lost:
            raise Unknown("; ".join(f"{vm}: {reason}" for vm, reason in group.lost.items()))
        raise NotDone("nobody is writable")


# --- Before and after


def role(told):
    with Group(told, only=told.vm) as group:
        here = group.here
        if not here.follows and not here.is_primary:
            # A primary whose writes are stopped, or a server that has lost everything.
            raise Unknown("read-only, and follows nobody")
        print("primary" if here.is_primary else "replica")


def drain(told):
    """Gives clients time to move, and parts from those that have not: a frozen server would keep them waiting."""
    with Group(told) as group:
        primary = group.primary()
        if primary:
            wait_for_acknowledgement(group, primary, told.affected)
        time.sleep(milliseconds("SETTLE_MS", "500"))
        if not group.here.is_primary:
            group.here.ask(KILL_APPLICATIONS)


def restore(told):
    data = until(lambda: data_here(told), max(0.0, told.seconds_left() - 2), every=0.2)
    if not data:
        raise Blocked(f"{told.vm}: its server does not answer")
    if data == "lost":
        fill(told)
    with Group(told, locked=True) as group:
        if group.primary() is None and not group.here.follows and group.others(group.here):
            take_back(group)
            group.refresh()
        here, primary = group.here, group.primary()
        if primary is None:
            raise Blocked("nobody is writable: " + "; ".join(group.lost.values()))
        if primary is here:
            lead(group, here)
            wait_for_acknowledgement(group, here, told.affected - {told.vm}, seconds=1)
            return Done(f"{here.vm} is the primary")
        rejoin(here, primary)
    return prove(told)


def rejoin(here, primary):
    if is_following(here, primary) and runs(here):
        return
    primary.see(primary.ask(LOOK, "SHOW SLAVE STATUS"))
    if not covers(primary.position, here.position):
        raise Failed(f"{here.vm} has transactions that {primary.vm} does not have ({here.look['position']} beside"
                     f" {primary.look['position']}); see what they are, then empty it")
    here.ask(*following(primary))


def prove(told):
    """A transaction written now has to arrive: that threads run says little."""
    with Group(told) as group:
        here, primary = group.here, group.primary()
        if primary is None:
            raise Blocked("nobody is writable")
        position = primary.ask("CREATE DATABASE IF NOT EXISTS allclear", POSITION)[1][0]["position"]
        while not here.reaches(position, min(1.0, told.seconds_left()), patience()):
            here.see(here.ask(LOOK, "SHOW SLAVE STATUS"))
            if told.seconds_left() < 2:
                errors = here.follows["Last_IO_Error"] or here.follows["Last_SQL_Error"] or "it still catches up"
                raise Blocked(f"{here.vm} is not where {primary.vm} is: {errors}")
        wait_for_acknowledgement(group, primary, told.affected - {told.vm}, seconds=1)
        return Done(f"{here.vm} has what {primary.vm} wrote, up to {position}")


# --- Lost data


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


serve({
    "role": role,
    "failover": failover,
    "confirm-failover": confirm_failover,
    "undo-failover": undo_failover,
    "drain": drain,
    "restore": restore,
})
