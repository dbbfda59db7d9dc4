"""A pooler that does not let the hooks log in, or administer it, before a switch of PostgreSQL."""

import contextlib
import io
import os
import unittest
from unittest.mock import patch

import pgbouncer
import pgbouncer_pooler
import postgresql_restore
import postgresql_switch
from allclear_hook import Blocked, Done, Failed, Rejected, Told, Unreachable, members
from pgbouncer_pooler import Poolers
from postgresql_primaries import MEMBERS, Members, Server, primary, standby
from postgresql_server import Here
from psql import Refused

ADDRESSES = ["10.0.0.7:6432", "10.0.0.8:6432"]


class Console:
    """A session at a pooler's admin console without a pooler."""

    answers: dict[str, Exception | None]

    def __init__(self, name, host, port, *_):
        self.name, self.address, self.statement = name, f"{host}:{port}", ""

    def send(self, statement):
        self.statement = statement

    def answer(self, seconds=5):
        error = Console.answers.get(self.address)
        is_for_admins = self.statement.split()[0] in ("RESUME", "PAUSE", "SET", "RELOAD")
        if error and (is_for_admins or not isinstance(error, Refused)):
            raise error
        return ""


class OfThePoolersOwnVm(unittest.TestCase):
    def test_a_refused_login_fails_and_a_pooler_without_an_answer_is_waited_for(self):
        refused = Rejected("pooler 10.0.0.7:6432: FATAL:  login rejected")
        silent = Unreachable("pooler 10.0.0.8:6432: Connection refused")
        with (
            patch.dict(os.environ, {"POOLER": " ".join(ADDRESSES)}),
            patch.object(pgbouncer_pooler, "Psql", Console),
            contextlib.redirect_stdout(io.StringIO()),
        ):
            for phase in (pgbouncer.drain, pgbouncer.restore):
                Console.answers = {"10.0.0.7:6432": refused}
                with self.assertRaisesRegex(Rejected, "login rejected$"):
                    phase(Told({"ALLCLEAR_VM": "db-0"}))
                Console.answers["10.0.0.8:6432"] = silent
                with self.assertRaisesRegex(Blocked, "login rejected; .*Connection refused$"):
                    phase(Told({"ALLCLEAR_VM": "db-0"}))


class OfASwitch(Members):
    def setUp(self):
        super().setUp()
        self.has_data()
        Server.reports = {
            "db-0": primary(followers=["db-1", "db-2"]), "db-1": standby("db-0"), "db-2": standby("db-0"),
        }  # fmt: skip
        Server.reports["db-0"].update(superuser=True, can_rewind=True)
        Server.reports["db-1"]["superuser"] = True
        Console.answers = {}
        self.paused = []

        def pause(poolers, seconds):
            self.paused.append([pooler.console.address for pooler in poolers.reached()])
            raise Unreachable("that is far enough")

        for patched in (
            patch.dict(os.environ, {"POOLERS": " ".join(ADDRESSES), "PRIMARY_CONNINFO": "user=replicator"}),
            patch.object(pgbouncer_pooler, "Psql", Console),
            patch.object(Poolers, "check_processes", lambda poolers: None),
            patch.object(Poolers, "check", lambda poolers, vm: None),
            patch.object(Poolers, "pause", pause),
            patch.object(Here, "must_be", lambda here, server: None),
            patch.object(postgresql_switch, "senders", lambda *_: []),
            patch.object(postgresql_switch, "candidate", lambda *_: "db-1"),
            patch.object(postgresql_switch, "interrupted", lambda *_: ""),
            patch.object(postgresql_switch, "check_return", lambda *_: None),
            patch.object(postgresql_switch, "check_replay", lambda *_: None),
            patch.object(postgresql_switch.Switch, "take_back", lambda switch: None),
        ):
            patched.start()
            self.addCleanup(patched.stop)

    def failover(self, kind="Reboot", **more):
        told = {"MEMBERS": MEMBERS, "ALLCLEAR_VM": "db-0", "ALLCLEAR_EVENT_TYPE": kind, **more}
        return postgresql_switch.failover(Told(told))

    def refusals(self):
        yield Rejected("pooler 10.0.0.8:6432: fe_sendauth: no password supplied"), "no password supplied"
        yield Refused("pooler 10.0.0.8:6432: admin access needed"), "no admin of it: add it to admin_users"

    def test_a_refusal_fails_before_writes_are_stopped_and_in_a_dry_run(self):
        for error, why in self.refusals():
            Console.answers = {"10.0.0.8:6432": error}
            for more in ({}, {"ALLCLEAR_MODE": "dry_run"}):
                with self.assertRaisesRegex(Rejected, f"^pooler 10.0.0.8:6432: .*{why}: correct PGUSER, PGPASSFILE"):
                    self.failover(**more)
        self.assertEqual((self.paused, Server.asked), ([], []))
        self.assertFalse((self.data / "standby.signal").exists())

    def test_a_vm_that_does_not_come_back_is_left_all_the_same(self):
        for error, why in self.refusals():
            for kind in ("Preempt", "Terminate"):
                Console.answers = {"10.0.0.8:6432": error}
                said = io.StringIO()
                with contextlib.redirect_stdout(said), self.assertRaisesRegex(Failed, "that is far enough"):
                    self.failover(kind, ALLCLEAR_EVENT_ID=f"{kind} {why}")
                self.assertIn(why, said.getvalue())
                self.assertEqual(self.paused.pop(), ["10.0.0.7:6432"])

    def test_a_pooler_without_an_answer_holds_nothing_up(self):
        Console.answers = {"10.0.0.8:6432": Unreachable("pooler 10.0.0.8:6432: Connection refused")}
        self.assertIsInstance(self.failover(ALLCLEAR_MODE="dry_run"), Done)
        with self.assertRaisesRegex(Failed, "that is far enough"):
            self.failover()
        self.assertEqual(self.paused, [["10.0.0.7:6432"]])

    def test_an_admin_is_known_by_the_answer(self):
        Console.answers = {"10.0.0.8:6432": Refused("pooler 10.0.0.8:6432: no such database: allclear")}
        self.assertIsInstance(self.failover(ALLCLEAR_MODE="dry_run"), Done)


class OfAReturn(Members):
    """db-0 is the primary, and nothing is left of a switch."""

    def setUp(self):
        super().setUp()
        self.has_data()
        Server.reports = {
            "db-0": primary(followers=["db-1", "db-2"]), "db-1": standby("db-0"), "db-2": standby("db-0"),
        }  # fmt: skip
        self.gathered = []
        for patched in (
            patch.dict(os.environ, {"POOLERS": " ".join(ADDRESSES)}),
            patch.object(pgbouncer_pooler, "Psql", Console),
            patch.object(pgbouncer_pooler.Pooler, "rows", lambda *_: [["orders", *map(str, members()["db-0"])]]),
            patch.object(postgresql_restore, "gather", lambda *_: self.gathered.append("all")),
        ):
            patched.start()
            self.addCleanup(patched.stop)

    def test_a_refusal_fails_it_once_everything_else_is_done(self):
        for back in (postgresql_restore.restore, postgresql_switch.undo_failover):
            Console.answers = {"10.0.0.8:6432": Refused("pooler 10.0.0.8:6432: admin access needed")}
            with self.assertRaisesRegex(Failed, "^pooler 10.0.0.8:6432: admin access needed: correct PGUSER"):
                back(self.told("db-0"))
            Console.answers = {"10.0.0.8:6432": Unreachable("pooler 10.0.0.8:6432: Connection refused")}
            self.assertIsInstance(back(self.told("db-0")), Done)
        self.assertEqual(self.gathered, ["all"] * 2)


if __name__ == "__main__":
    unittest.main()
