"""A PostgreSQL server without room on its disk: a checkpoint ends all sessions, and so does a stop."""

import os
import time
import types
import unittest
from unittest.mock import patch

import postgresql
import postgresql_candidate
import postgresql_switch
from allclear_hook import Blocked, Done, Failed, Told
from client import Lost
from postgresql_members import Group
from postgresql_primaries import MEMBERS, Members, Server, primary, standby
from postgresql_server import Here

FULL = (
    "^db-0: the file system at .* is full: 20 MiB are free for .*{}, and a checkpoint or a stop .* needs 48 MiB: free"
)


class OfAFullDisk(Members):
    def setUp(self):
        super().setUp()
        self.has_data()
        self.free = {}
        Server.reports = {
            "db-0": primary(followers=["db-1", "db-2"]), "db-1": standby("db-0"), "db-2": standby("db-0"),
        }  # fmt: skip

        def statvfs(folder):
            free = self.free.get(os.path.basename(folder), 100)
            return types.SimpleNamespace(f_bavail=free << 8, f_frsize=4096)

        for patched in (
            patch.object(os, "statvfs", statvfs),
            patch.object(Here, "must_be", lambda here, server: None),
        ):
            patched.start()
            self.addCleanup(patched.stop)

    def checkpoints(self):
        return [vm for vm, statement in Server.asked if statement == "CHECKPOINT"]

    def test_no_checkpoint_is_written_without_room(self):
        for folder in ("data", "pg_wal"):
            self.free = {folder: 20}
            with self.assertRaisesRegex(Failed, FULL.format(folder)):
                postgresql.checkpoint(self.told("db-0"))
        self.assertEqual(self.checkpoints(), [])
        self.free = {}
        self.assertIsInstance(postgresql.checkpoint(self.told("db-0")), Done)
        self.assertEqual(self.checkpoints(), ["db-0", "db-1", "db-2", "db-0"])

    def test_no_switch_begins_without_room(self):
        self.free = {"pg_wal": 20}
        for told in (self.told("db-0"), Told({"MEMBERS": MEMBERS, "ALLCLEAR_VM": "db-0", "ALLCLEAR_MODE": "dry_run"})):
            with self.assertRaisesRegex(Blocked, FULL.format("pg_wal")):
                postgresql_switch.failover(told)
        self.assertEqual(Server.asked, [])

    def test_a_larger_segment_needs_more_room(self):
        self.control["Bytes per WAL segment"] = str(64 << 20)
        self.assertRegex(Here(self.told("db-0")).cramped(), "100 MiB are free .* needs 144 MiB")


class OfALostSession(Members):
    """The server ends with PANIC at a checkpoint, and is there again soon."""

    def setUp(self):
        super().setUp()
        Server.reports = {"db-0": primary(followers=["db-1"]), "db-1": standby("db-0"), "db-2": standby("db-0")}

    def flush(self, event, *vms):
        told = Told({"MEMBERS": MEMBERS, "ALLCLEAR_VM": "db-0", "ALLCLEAR_EVENT_ID": event})
        postgresql_candidate.flush(told, Group(), list(vms))

    def lose(self, lost):
        answer = Server.answer

        def answers(server, seconds=5):
            if server.vm == lost and server.statements[0] == "CHECKPOINT":
                Server.asked.append((server.vm, "CHECKPOINT"))
                raise Lost(f"{server.vm}: the connection was lost")
            return answer(server, seconds)

        return patch.object(Server, "answer", answers)

    def test_it_is_a_failure_that_is_repeated_more_and_more_seldom(self):
        why = "the server ended the session at a CHECKPOINT, see its log .a full disk.*: db-1: the connection was lost$"
        with self.lose("db-1"):
            with self.assertRaisesRegex(Failed, f"^{why}"):
                self.flush("E-1", "db-0", "db-1", "db-2")
            Server.asked = []
            with self.assertRaisesRegex(Failed, f"^no further CHECKPOINT before .*Z: {why}"):
                self.flush("E-1", "db-0", "db-1")
            self.assertEqual(Server.asked, [])
            self.flush("E-1", "db-0", "db-2")
            self.assertEqual(Server.asked, [(vm, "CHECKPOINT") for vm in ("db-0", "db-2", "db-0")])
            unfit = postgresql_candidate.unfit("db-1", self.told("db-0"), Group(), [])
            self.assertRegex(unfit, f"^{why}", "another standby may take over")
            with self.assertRaisesRegex(Failed, f"^{why}"):
                self.flush("E-2", "db-0", "db-1")
        # An operator has made room, and retries the hook.
        late = time.time() + 61
        with patch.object(postgresql_candidate.time, "time", lambda: late):
            self.flush("E-2", "db-0", "db-1")

    def test_a_restore_that_is_repeated_for_a_day_seldom_ends_the_sessions_of_the_primary(self):
        Server.asked, began = [], time.time()
        with self.lose("db-1"):
            for minute in range(24 * 60):
                with (
                    patch.object(postgresql_candidate.time, "time", lambda minute=minute: began + minute * 60.5),
                    self.assertRaisesRegex(Failed, "the server ended the session at a CHECKPOINT"),
                ):
                    self.flush("E-1", "db-1")
        self.assertEqual(len(Server.asked), 11)

    def test_a_hook_by_hand_has_no_event_to_wait_for(self):
        with self.lose("db-0"):
            for _ in range(2):
                with self.assertRaisesRegex(Failed, "^the server ended the session"):
                    self.flush("", "db-0")


if __name__ == "__main__":
    unittest.main()
