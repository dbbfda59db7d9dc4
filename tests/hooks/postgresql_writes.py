"""Writes of a returning PostgreSQL member that the present primary lacks, while the control file is old."""

import os
import unittest
from pathlib import Path
from unittest.mock import patch

import postgresql_restore
from allclear_hook import Failed
from postgresql_members import Group
from postgresql_primaries import Members, Server, primary, standby
from postgresql_server import Here

SEGMENT = 1 << 24
# The forks of the primary's timeline 9: each is 0x100 after the begin of a segment with the number of the timeline.
HISTORY = "6\t0/6000100\tno recovery target specified\n7\t0/7000100\tno\n8\t0/8000100\tno\n"
# Prints the commits that the environment has for a timeline, and ends as at the end of WAL.
WALDUMP = """#!/bin/sh
echo "$4 $6" >>"$ASKED"
[ "$4" = "$FAILS_AT" ] && { echo "pg_waldump: error: could not find file \\"0000000$4\\"" >&2; exit 1; }
[ "$4" = "$COMMITS_AT" ] && echo 'rmgr: Transaction len: 34, desc: COMMIT 2026-12-01'
echo 'pg_waldump: error: error in WAL record at 0/8000100: invalid record length' >&2
exit 1
"""


class OfAMember(Members):
    """db-1 streamed timeline 8. Its last restartpoint is of timeline 6. db-2 was promoted to timeline 9."""

    def setUp(self):
        super().setUp()
        self.asked = self.data.parent / "asked"
        program = self.data.parent / "pg_waldump"
        program.write_text(WALDUMP)
        program.chmod(0o755)
        more = {"ASKED": str(self.asked), "COMMITS_AT": "8", "PRIMARY_CONNINFO": "user=replicator"}
        patched = patch.dict(os.environ, {"BIN": str(self.data.parent), **more})
        patched.start()
        self.addCleanup(patched.stop)
        self.has_data(6, is_standby=True)
        self.control |= {
            "Database cluster state": "in archive recovery", "Bytes per WAL segment": str(SEGMENT),
            "Latest checkpoint location": "0/6000028", "Minimum recovery ending location": "0/7000080",
            "Min recovery ending loc's timeline": "7",
        }  # fmt: skip
        for timeline in (6, 7, 8):
            self.segment(timeline, timeline)
        self.at(0x8000200)

    def at(self, lsn, **more):
        Server.reports = {
            "db-1": {**standby("db-0", 7, streams=False), "lsn": lsn, **more},
            "db-2": {**primary(9), "history": HISTORY},
        }

    def segment(self, timeline, number):
        (self.data / "pg_wal" / f"{timeline:08X}00000000{number:08X}").touch()

    def rejoin(self):
        """Whether the member would be rewound; raises if its writes are kept."""
        told, group, rewound = self.told("db-1"), Group(), []
        with (
            patch.object(postgresql_restore, "rewind", lambda *_: rewound.append("rewind")),
            patch.object(postgresql_restore, "prove", lambda *_: None),
            patch.object(postgresql_restore, "alter", lambda *_: None),
        ):
            postgresql_restore.rejoin(told, Here(told), group, "db-2")
        return bool(rewound)

    def dumped(self):
        return self.asked.read_text().splitlines() if self.asked.exists() else []

    def test_the_timeline_after_the_last_restartpoint_is_examined(self):
        why = (
            "^db-1 has 1 committed transactions after 0/8000100, which db-2 lacks: save them, then run restore with "
            "LOST_WRITES = discard. Its data were not changed$"
        )
        with self.assertRaisesRegex(Failed, why):
            self.rejoin()
        self.assertEqual(self.dumped(), ["6 0/6000100", "7 0/7000100", "8 0/8000100"])

    def test_a_stopped_member_is_examined_as_well(self):
        del Server.reports["db-1"]
        with self.assertRaisesRegex(Failed, "has 1 committed transactions after 0/8000100"):
            self.rejoin()

    def test_writes_that_are_received_and_not_replayed_are_kept_too(self):
        self.at(0x8000080)
        with self.assertRaisesRegex(Failed, "has 1 committed transactions after 0/8000100"):
            self.rejoin()

    def test_a_timeline_that_cannot_be_examined_is_kept(self):
        with (
            patch.dict(os.environ, {"FAILS_AT": "8"}),
            self.assertRaisesRegex(Failed, "db-1 may have writes after 0/8"),
        ):
            self.rejoin()
        # The WAL around the live position is gone.
        (self.data / "pg_wal" / "000000080000000000000008").unlink()
        with (
            patch.dict(os.environ, {"FAILS_AT": "7"}),
            self.assertRaisesRegex(Failed, "db-1 may have writes after 0/7"),
        ):
            self.rejoin()
        self.segment(8, 8)
        with patch.dict(os.environ, {"BIN": "/nowhere", "PATH": "/nowhere"}):
            patched = patch.object(Here, "program", lambda here, name: f"/nowhere/{name}")
            with patched, self.assertRaisesRegex(Failed, "db-1 may have writes after 0/6000100"):
                self.rejoin()

    def test_a_timeline_of_its_own_is_kept(self):
        self.segment(10, 8)
        with patch.dict(os.environ, {"COMMITS_AT": ""}), self.assertRaisesRegex(Failed, "on a timeline 10 of its own"):
            self.rejoin()

    def test_another_promotion_to_the_same_timeline_is_kept(self):
        own = self.data / "pg_wal" / "00000009.history"
        own.write_text(HISTORY)
        with patch.dict(os.environ, {"COMMITS_AT": ""}):
            self.segment(9, 8)
            self.at(0x8000200)
            self.assertFalse(self.rejoin(), "it has followed db-2 already")
            own.write_text(HISTORY.replace("0/8000100", "0/8000080"))
            with self.assertRaisesRegex(Failed, "on a timeline 9 of its own"):
                self.rejoin()
            # A crash before the first checkpoint after the promotion.
            own.write_text(HISTORY)
            self.control["Database cluster state"] = "in production"
            with self.assertRaisesRegex(Failed, "on a timeline 9 of its own"):
                self.rejoin()

    def test_without_commits_it_is_rewound_and_with_consent(self):
        with patch.dict(os.environ, {"COMMITS_AT": ""}):
            self.assertTrue(self.rejoin())
        with patch.dict(os.environ, {"LOST_WRITES": "discard"}):
            self.assertTrue(self.rejoin())

    def test_what_lags_behind_the_fork_is_not_rewound(self):
        self.at(0x80000C0)
        with patch.dict(os.environ, {"COMMITS_AT": ""}):
            self.assertFalse(self.rejoin())

    def test_writes_that_arrive_before_the_stop_are_kept(self):
        with (
            patch.dict(os.environ, {"COMMITS_AT": ""}),
            patch.object(Here, "stop", lambda here, must_end=False: os.environ.update({"COMMITS_AT": "8"})),
            self.assertRaisesRegex(Failed, "Its data were not changed; db-1 has been stopped$"),
        ):
            self.rejoin()

    def test_remains_of_timelines_before_the_last_checkpoint_say_nothing(self):
        self.segment(5, 4)
        with patch.dict(os.environ, {"COMMITS_AT": "5"}):
            self.assertTrue(self.rejoin())
        self.assertNotIn("5", "".join(line[0] for line in self.dumped()))


class OfTheNewestTimeline(Members):
    def test_it_is_the_one_of_the_wal(self):
        self.has_data(6)
        here = Here(self.told("db-0"))
        self.assertEqual(here.newest_timeline(), 6)
        Path(self.data / "pg_wal" / "000000080000000000000008").touch()
        self.assertEqual(here.newest_timeline(), 8)


if __name__ == "__main__":
    unittest.main()
