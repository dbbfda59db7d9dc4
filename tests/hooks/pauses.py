"""Clients wait for at most a quarter of the time that is left: a preemption leaves 30 s for the switch and the stop."""

import contextlib
import io
import os
import tempfile
import types
import unittest
from unittest.mock import patch

import allclear_hook
import mariadb_switch
import pgbouncer
import postgresql_switch
import redis_switch
from allclear_hook import Failed, Memory, Told, Tries, Unreachable
from postgresql_switch import Switch
from settings import Clock


class Pauses(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.clock = Clock()
        modules = (allclear_hook, postgresql_switch, mariadb_switch, pgbouncer)
        for patched in (
            patch.dict(os.environ, {"STATE_DIR": folder.name}),
            *(patch.object(module, "time", self.clock) for module in modules),
            contextlib.redirect_stdout(io.StringIO()),
        ):
            patched.__enter__()
            self.addCleanup(patched.__exit__, None, None, None)

    def told(self, seconds):
        return Told({"ALLCLEAR_VM": "db-0", "ALLCLEAR_EVENT_ID": "E-1", "ALLCLEAR_TIME_LEFT_MS": str(seconds * 1000)})


class OfAny(Pauses):
    def test_a_quarter_of_what_is_left_now(self):
        told = self.told(20)
        self.assertEqual((told.pause(5), told.pause(3)), (5, 3))
        self.clock.now += 12
        self.assertEqual(told.pause(5), 2)
        self.clock.now += 12
        self.assertEqual(told.pause(5), 0)


class OfPostgresql(Pauses):
    def pause(self, seconds_left, window):
        switch = object.__new__(Switch)
        switch.told, switch.ends = self.told(seconds_left), self.clock.now + window
        return switch.pause()

    def test_the_poolers_leave_as_long_for_the_stop_of_the_server(self):
        self.assertEqual(self.pause(60, 13), 5)
        self.assertEqual(self.pause(18, 6), 3)
        self.assertEqual(self.pause(15, 3), 1.5)
        self.assertEqual(self.pause(8, 13), 2)

    def test_a_switch_asks_for_it(self):
        asked = []

        def stops(*_):
            raise Unreachable("it does not stop")

        switch = object.__new__(Switch)
        switch.told, switch.facts = self.told(16), {"step": "stopping", "to": "db-1"}
        switch.group = types.SimpleNamespace(seen={"db-1": {}})
        switch.here = types.SimpleNamespace(be_standby=lambda: None, stop=lambda: None)
        switch.poolers = types.SimpleNamespace(pause=asked.append)
        switch.tries = types.SimpleNamespace(was_in_vain=lambda why: None)
        with (
            patch.object(Switch, "go_over", stops),
            patch.object(Switch, "take_back", lambda switch: None),
            self.assertRaisesRegex(allclear_hook.Blocked, "it does not stop"),
        ):
            switch.go_on()
        self.assertEqual(asked, [4])


class OfPgbouncer(Pauses):
    def test_all_databases_share_it(self):
        asked = []

        class Pooler:
            console = types.SimpleNamespace(name="pooler")

            def databases(pooler):
                return ["one", "two", "three"]

            def clients(pooler, databases):
                return 1

            def ask(pooler, command, seconds=2, unless=None):
                if command.startswith("PAUSE"):
                    asked.append(seconds)
                    self.clock.now += 2

        poolers = types.SimpleNamespace(reached=lambda: [Pooler()], check_processes=lambda: None)
        began = self.clock.now
        with patch.object(pgbouncer, "own_processes", lambda: poolers):
            pgbouncer.drain(self.told(16))
        # The clients had a quarter of 16 s to leave.
        self.assertAlmostEqual(asked[0], 3, places=1)
        self.assertAlmostEqual(asked[1], 1, places=1)
        self.assertAlmostEqual(asked[2], 0.1)
        self.assertLess(self.clock.now - began, 12)


class OfMariaDb(Pauses):
    def switch(self, seconds_left):
        """The limits of the wait for write statements, and of the wait for the candidate; in seconds."""
        limits = {}

        def ask(*statements):
            limits["statements"] = statements[0]
            self.clock.now += 1

        def catch_up(old, new, ends):
            limits["candidate"] = ends - self.clock.now
            raise Failed("not in time")

        old = types.SimpleNamespace(ask=ask)
        with patch.object(mariadb_switch, "catch_up", catch_up), self.assertRaisesRegex(Failed, "not in time"):
            mariadb_switch.switch(self.told(seconds_left), None, old, None)
        return limits["statements"], limits["candidate"]

    def test_the_wait_for_statements_is_part_of_it(self):
        self.assertEqual(self.switch(60), ("SET lock_wait_timeout = 1", 1))
        self.assertEqual(self.switch(6), ("SET lock_wait_timeout = 1", 0.5))
        self.assertEqual(self.switch(2), ("SET lock_wait_timeout = 1", -0.5))
        with patch.dict(os.environ, {"STOP_SECONDS": "9", "CATCH_UP_MS": "50"}):
            self.assertEqual([self.switch(left)[0][-1] for left in (60, 12)], ["9", "3"])


class OfRedis(Pauses):
    def hand_over(self, pause):
        """CLIENT PAUSE, and the wait for the successor in seconds."""
        asked = []
        view = types.SimpleNamespace(is_primary=True, history="a", offset=1)
        own = types.SimpleNamespace(
            look=lambda: view, call=lambda *words: asked.append(words), lead=lambda: None, vm="db-0"
        )
        heir = types.SimpleNamespace(vm="db-1", look=lambda: types.SimpleNamespace(holds_all_of=lambda view: False))
        cluster = types.SimpleNamespace(own=own, sentinels=None)
        waits = []

        def until(holds, seconds, every=0):
            waits.append(seconds)
            return holds()

        with patch.object(redis_switch, "until", until), self.assertRaisesRegex(Failed, "did not catch up"):
            redis_switch.hand_over(cluster, heir, Tries(self.told(20), "redis", most=99), pause)
        return asked[0], waits[0]

    def test_it_ends_by_itself(self):
        self.assertEqual(self.hand_over(5), (("CLIENT", "PAUSE", 5000, "WRITE"), 0.5))
        self.assertEqual(self.hand_over(0.5), (("CLIENT", "PAUSE", 500, "WRITE"), 0.25))
        self.assertEqual(self.hand_over(0), (("CLIENT", "PAUSE", 1, "WRITE"), 0))
        self.assertEqual(Memory("redis").recall(), {})

    def test_a_switch_asks_for_it(self):
        asked = []
        own = "db-0"
        cluster = types.SimpleNamespace(own=own, sentinels=None, looked=dict)
        view = types.SimpleNamespace(is_primary=True)
        with (
            patch.object(redis_switch, "Cluster", lambda told: cluster),
            patch.object(redis_switch, "settled", lambda cluster: {own: view}),
            patch.object(redis_switch, "successor", lambda *_: own),
            patch.object(redis_switch, "look_first", lambda *_: None),
            patch.object(redis_switch, "keep_files", lambda *_: None),
            patch.object(redis_switch, "finish", lambda *_: None),
            patch.object(redis_switch, "hand_over", lambda *arguments: asked.append(arguments[-1])),
        ):
            for seconds in (60, 12):
                redis_switch.failover(self.told(seconds))
        self.assertEqual(asked, [5, 3])


if __name__ == "__main__":
    unittest.main()
