"""Which member of a PostgreSQL cluster is the primary, while a member does not answer."""

import contextlib
import io
import json
import os
import tempfile
import unittest
from pathlib import Path
from typing import ClassVar
from unittest.mock import patch

import pgbouncer
import postgresql
import postgresql_members
import postgresql_restore
import postgresql_switch
from allclear_hook import Blocked, Done, Failed, Memory, NotApplicable, Told, Unknown, Unreachable
from postgresql_members import LOOK, RECEIVED, Group
from postgresql_server import Here

MEMBERS = "db-0=10.0.0.4:5432 db-1=10.0.0.5:5432 db-2=10.0.0.6:5432"
HOSTS = {"db-0": "10.0.0.4", "db-1": "10.0.0.5", "db-2": "10.0.0.6"}


def primary(timeline=1, followers=()):
    return {"primary": True, "timeline": timeline, "reached": timeline, "followers": list(followers), "streams": False}


def standby(of, timeline=1, streams=True):
    told = f"user=replicator host={HOSTS[of]} port=5432 application_name=x"
    said = {"primary": False, "timeline": timeline if streams else None, "reached": timeline, "streams": streams}
    return {**said, "told_to_follow": told, "from": f"{HOSTS[of]}:5432" if streams else None}


class Server:
    """A session at a member without a server: it answers with a report, and notes all statements."""

    reports: ClassVar = {}
    asked: ClassVar = []

    def __init__(self, vm, host, port, *_):
        self.vm, self.statements = vm, []

    def send(self, statement):
        self.statements.append(statement)

    def answer(self, seconds=5):
        statement = self.statements.pop(0)
        if self.vm not in Server.reports:
            raise Unreachable(f"{self.vm}: did not answer within 4 s")
        if statement == LOOK:
            rest = {"system": "1", "lsn": 100, "followers": [], "from": None, "told_to_follow": "", "waited_for": []}
            said = {**rest, "synchronous": "", "limits": {}, **Server.reports[self.vm]}
            return json.dumps({"heard_from": said["followers"], **said})
        said = Server.reports[self.vm]
        if statement == RECEIVED:
            return str(said.get("received", 0))
        if statement.startswith("SELECT pg_read_file('pg_wal/"):
            return said["history"]
        if statement == pgbouncer.TIMELINE:
            return str(said["timeline"]) if said["primary"] else ""
        if statement == pgbouncer.FOLLOWERS:
            return "\n".join(said["followers"])
        if "set_config" not in statement:
            Server.asked.append((self.vm, statement))
        return ""

    def ask(self, statement, seconds=5):
        self.send(statement)
        return self.answer()


class Members(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        Server.reports, Server.asked = {}, []
        self.data = Path(folder.name) / "data"
        (self.data / "global").mkdir(parents=True)
        (self.data / "pg_wal").mkdir()
        self.control = {
            "Latest checkpoint's TimeLineID": "1", "Min recovery ending loc's timeline": "0",
            "Database cluster state": "in production", "Database system identifier": "1",
        }  # fmt: skip
        settings = {
            "MEMBERS": MEMBERS,
            "STATE_DIR": folder.name,
            "PGDATA": str(self.data),
            "CONFIG": f"{folder.name}/link",
        }
        for patched in (
            patch.dict(os.environ, settings),
            patch.object(postgresql_members, "Psql", Server),
            patch.object(pgbouncer, "Psql", Server),
            patch.object(pgbouncer, "until", lambda holds, *_: holds()),
            patch.object(postgresql_members, "until", lambda holds, *_: holds()),
            patch.object(Here, "control", lambda here: self.control),
            patch.object(Here, "pid", lambda here: None),
            contextlib.redirect_stdout(io.StringIO()),
        ):
            patched.__enter__()
            self.addCleanup(patched.__exit__, None, None, None)

    def told(self, vm):
        return Told({"MEMBERS": MEMBERS, "ALLCLEAR_VM": vm, "ALLCLEAR_EVENT_ID": "E-1"})

    def has_data(self, timeline=1, is_standby=False):
        (self.data / "global" / "pg_control").touch()
        (self.data / "PG_VERSION").write_text("15\n")
        self.control["Latest checkpoint's TimeLineID"] = str(timeline)
        if is_standby:
            (self.data / "standby.signal").touch()

    def doubt(self):
        group = Group()
        return group.doubt(group.primary())


FORMER = "^db-0 may be a former primary: no standby streams from it, .*; db-1: did not answer within 4 s$"


class OfAFormerPrimary(Members):
    """db-1 is the present primary, and silent."""

    def setUp(self):
        super().setUp()
        Server.reports = {"db-0": primary(), "db-2": standby("db-1", streams=False)}

    def test_no_member_is_restored_by_it(self):
        self.has_data(is_standby=True)
        for vm in ("db-0", "db-2"):
            with self.assertRaisesRegex(Blocked, FORMER):
                postgresql_restore.restore(self.told(vm))
        self.assertEqual(Server.asked, [])

    def test_a_standby_of_a_later_timeline_contradicts(self):
        Server.reports = {"db-0": primary(followers=["db-2"]), "db-2": standby("db-1", timeline=2)}
        with self.assertRaisesRegex(Blocked, "^db-0 may be a former primary: db-2 has a later timeline; db-1: did not"):
            postgresql_restore.restore(self.told("db-0"))

    def test_a_standby_of_a_later_timeline_contradicts_also_before_its_first_restartpoint(self):
        """db-2 streamed from db-1, and its control file still has the timeline before that."""
        lost = standby("db-1", timeline=1, streams=False)
        for received, why in ((2, "db-2 has a later timeline"), (1, "no standby streams from it")):
            Server.reports = {"db-0": primary(), "db-2": {**lost, "received": received}}
            self.assertRegex(self.doubt(), f"^db-0 may be a former primary: {why}")
        Server.reports = {"db-0": primary(3), "db-2": {**lost, "received": 3}}
        self.assertRegex(self.doubt(), "no standby streams from it", "db-1 was not replaced by db-0")

    def test_no_standby_is_moved_to_it_and_a_checkpoint_is_written_all_the_same(self):
        self.assertRegex(postgresql.checkpoint(self.told("db-0")).reason, "may be a former primary")
        self.assertEqual(Server.asked, [("db-0", "CHECKPOINT")])
        with self.assertRaisesRegex(Blocked, FORMER):
            postgresql.drain(self.told("db-2"))

    def test_it_is_not_ready(self):
        for vm in ("db-0", "db-2"):
            with self.assertRaisesRegex(Blocked, FORMER):
                postgresql.ready(self.told(vm))

    def test_the_only_member_that_answers_is_ready_and_says_what_is_not_known(self):
        del Server.reports["db-2"]
        answer = postgresql.ready(self.told("db-0"))
        self.assertIsInstance(answer, Done)
        self.assertRegex(answer.reason, "^db-0 may be a former primary")

    def test_the_silent_primary_of_this_vm_is_neither_switched_from_nor_confirmed(self):
        Server.reports["db-2"] = standby("db-0", streams=True)
        Server.reports["db-0"]["followers"] = ["db-2"]
        for timeline in (1, 2):
            self.has_data(timeline)
            why = "^db-0 may be a former primary: db-1 does not answer, and its data are of a later timeline"
            with self.assertRaisesRegex(Blocked, why):
                postgresql_switch.failover(self.told("db-1"))
            with self.assertRaisesRegex(Unknown, why):
                postgresql_switch.confirm_failover(self.told("db-1"))
            with self.assertRaisesRegex(Blocked, why):
                postgresql_restore.restore(self.told("db-1"))
        self.assertFalse((self.data / "standby.signal").exists())

    def test_a_promotion_shows_before_its_first_checkpoint(self):
        Server.reports["db-0"] = primary(2, ["db-2"])
        Server.reports["db-2"] = standby("db-0", 2)
        self.has_data()
        for name in ("00000002.history", "00000002.history.tmp"):
            (self.data / "pg_wal" / name).touch()
        with self.assertRaisesRegex(Blocked, "of a later timeline"):
            postgresql_switch.failover(self.told("db-1"))

    def test_an_undo_moves_no_pooler_to_it(self):
        moved = []
        with patch.object(postgresql_switch.Poolers, "point_and_resume", lambda poolers, vm: moved.append(vm)):
            self.assertRegex(postgresql_switch.undo_failover(self.told("db-0")).reason, "may be a former primary")
        self.assertEqual(moved, [])

    def test_no_pooler_starts_at_it(self):
        with self.assertRaisesRegex(Blocked, FORMER.replace("present primary", "primary")):
            pgbouncer.point(self.told("db-2"))
        for names in ("pg_receivewal", "db-0"):
            Server.reports["db-0"]["followers"] = [names]
            with self.assertRaisesRegex(Blocked, "may be a former primary"):
                pgbouncer.point(self.told("db-2"))
        for names in ("DB-2", "?"):
            Server.reports["db-0"]["followers"] = [names]
            pgbouncer.point(self.told("db-2"))
        self.assertEqual(os.readlink(os.environ["CONFIG"]), "/etc/pgbouncer/primary-db-0.ini")


class OfAPooler(Members):
    """The other member of a pair, or the standby that would be the proof, is away."""

    def setUp(self):
        super().setUp()
        self.link = Path(os.environ["CONFIG"])
        os.environ["POOLER_CONFIG"] = f"{self.link.parent}/primary-{{vm}}.ini"

    def leads_to(self, vm):
        self.link.unlink(missing_ok=True)
        self.link.symlink_to(f"primary-{vm}.ini")

    def test_a_link_to_the_only_primary_that_answers_stays(self):
        for reports in ({"db-0": primary()}, {"db-0": primary(), "db-2": standby("db-0", streams=False)}):
            Server.reports = reports
            self.leads_to("db-0")
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                pgbouncer.point(self.told("db-0"))
            self.assertRegex(said.getvalue(), "link still leads to db-0, and stays: db-0 may be a former primary")
            self.assertEqual(os.readlink(self.link), "primary-db-0.ini")

    def test_a_silent_member_is_told_of_once(self):
        Server.reports = {"db-0": primary()}
        said = io.StringIO()

        def thrice(holds, *_):
            return [holds() for _ in range(3)][-1]

        with patch.object(pgbouncer, "until", thrice), contextlib.redirect_stdout(said), self.assertRaises(Blocked):
            pgbouncer.point(self.told("db-0"))
        lines = said.getvalue().splitlines()
        self.assertEqual(lines, [f"progress: {vm}: did not answer within 4 s" for vm in ("db-1", "db-2")])

    def test_the_user_of_the_pooler_has_to_write_in_the_folder_of_the_link(self):
        folder = self.link.parent
        folder.chmod(0o755)
        nobody = (54321, {54321})
        with patch.object(pgbouncer, "service_user", lambda: nobody):
            self.assertEqual(list(pgbouncer.of_link()), [], "no link, and no file of a primary")
            self.leads_to("db-0")
            why = f"the pooler's user cannot write in {folder}, where `pgbouncer.py point` replaces a link: "
            self.assertEqual(list(pgbouncer.of_link()), [f"{why}run chown 54321 {folder}"])
            self.link.unlink()
            (folder / "primary-db-1.ini").touch()
            self.assertEqual(list(pgbouncer.of_link()), [f"{why}run chown 54321 {folder}"])
            folder.chmod(0o777)
            self.assertEqual(list(pgbouncer.of_link()), [])
        with patch.object(pgbouncer, "service_user", lambda: (os.geteuid(), set())):
            folder.chmod(0o700)
            self.assertEqual(list(pgbouncer.of_link()), [])

    def test_a_folder_that_cannot_be_written_is_told_in_a_sentence(self):
        Server.reports = {"db-0": primary(followers=["db-1", "db-2"])}
        why = (
            f"^{self.link} cannot be linked to .*primary-db-0.ini .Permission denied.: run chown .* {self.link.parent}$"
        )
        with (
            patch.object(os, "symlink", side_effect=PermissionError(13, "Permission denied")),
            self.assertRaisesRegex(Failed, why),
        ):
            pgbouncer.point(self.told("db-0"))

    def test_no_other_link_moves_to_it(self):
        Server.reports = {"db-0": primary()}
        with self.assertRaisesRegex(Blocked, "^db-0 may be a former primary"):
            pgbouncer.point(self.told("db-0"))
        self.leads_to("db-1")
        with self.assertRaisesRegex(Blocked, "^db-0 may be a former primary"):
            pgbouncer.point(self.told("db-0"))
        self.assertEqual(os.readlink(self.link), "primary-db-1.ini")

    def test_a_link_to_one_of_two_primaries_says_nothing(self):
        Server.reports = {"db-0": primary(2), "db-2": primary(1)}
        for vm in ("db-0", "db-2"):
            self.leads_to(vm)
            with self.assertRaisesRegex(Blocked, "^db-0 may be a former primary"):
                pgbouncer.point(self.told("db-0"))

    def test_a_link_stays_nowhere_without_a_primary(self):
        Server.reports = {"db-0": standby("db-1", streams=False)}
        self.leads_to("db-0")
        with self.assertRaisesRegex(Blocked, "^no member is primary"):
            pgbouncer.point(self.told("db-0"))


class Believed(Members):
    def test_a_standby_is_proof_also_a_silent_one(self):
        Server.reports = {"db-0": primary(followers=["db-2"]), "db-2": standby("db-0")}
        self.assertEqual(self.doubt(), "")
        Server.reports = {"db-0": primary(followers=["DB-1"]), "db-2": standby("db-1", streams=False)}
        self.assertEqual(self.doubt(), "")

    def test_a_silent_standby_is_proof_by_its_recent_answers_to_the_primary_only(self):
        Server.reports = {"db-0": {**primary(followers=["db-1", "db-2"]), "heard_from": ["db-2"]}}
        self.assertEqual(self.doubt(), "")
        Server.reports["db-0"]["heard_from"] = []
        self.assertRegex(self.doubt(), "no standby streams from it")
        Server.reports["db-2"] = standby("db-0")
        self.assertEqual(self.doubt(), "", "its own answer is enough")
        for statement in (LOOK, pgbouncer.FOLLOWERS):
            self.assertIn("coalesce(reply_time > now() - interval '15 s', true)", statement)

    def test_a_standby_that_contradicts_is_none(self):
        for other in (standby("db-0", streams=False), standby("db-1")):
            Server.reports = {"db-0": primary(followers=["db-2", "db-0"]), "db-2": other}
            self.assertRegex(self.doubt(), "no standby streams from it")

    def test_a_promotion_in_place_of_the_silent_member_is_proof(self):
        Server.reports = {"db-1": primary(2), "db-2": standby("db-0", 1, streams=False)}
        self.assertEqual(self.doubt(), "")
        self.assertEqual(postgresql.ready(self.told("db-1")).reason, "")
        for other in (standby("db-0", 2, streams=False), standby("db-1", 1, streams=False)):
            Server.reports["db-2"] = other
            self.assertRegex(self.doubt(), "no standby streams from it")
        members = MEMBERS + " db-3=10.0.0.7:5432"
        Server.reports["db-2"] = standby("db-0", 1, streams=False)
        Server.reports["db-3"] = standby("db-0", 3, streams=False)
        with patch.dict(os.environ, {"MEMBERS": members}):
            self.assertRegex(self.doubt(), "db-3 has a later timeline")

    def test_the_stopped_server_of_this_vm_is_no_primary(self):
        Server.reports = {"db-1": primary(2), "db-2": standby("db-1", 2, streams=False)}
        self.has_data()
        with self.assertRaises(NotApplicable):
            postgresql_switch.failover(self.told("db-0"))
        self.assertIsInstance(postgresql_switch.confirm_failover(self.told("db-0")), Done)
        self.has_data(2, is_standby=True)
        self.assertIsInstance(postgresql_switch.confirm_failover(self.told("db-0")), Done)
        (self.data / "global" / "pg_control").unlink()
        (self.data / "standby.signal").unlink()
        self.assertIsInstance(postgresql_switch.confirm_failover(self.told("db-0")), Done, "its data are lost")

    def test_a_mark_that_a_switch_has_just_made_says_nothing(self):
        Server.reports = {"db-1": primary(2), "db-2": standby("db-1", 2, streams=False)}
        self.has_data(2, is_standby=True)
        Memory("postgresql-db-0").remember({"step": "stopping", "to": "db-2"})
        with self.assertRaisesRegex(Blocked, "db-0 does not answer, and its data are of a later timeline"):
            postgresql_switch.failover(self.told("db-0"))

    def test_who_has_handed_over_knows_the_primary(self):
        Server.reports = {"db-1": primary(2)}
        self.has_data(2, is_standby=True)
        Memory("postgresql-db-0").remember({"step": "switched", "to": "db-1"})
        self.assertIsInstance(postgresql_switch.confirm_failover(self.told("db-0")), Done)

    def test_a_stop_needs_the_primary_only_for_the_commits_that_wait(self):
        stopped = []
        Server.reports = {"db-2": primary()}
        self.has_data(is_standby=True)
        with patch.object(Here, "stop", lambda here: stopped.append(here.vm)):
            self.assertIsInstance(postgresql.shutdown(self.told("db-1")), Done)
            with patch.dict(os.environ, {"SYNCHRONOUS": "FIRST 1"}):
                self.assertIsInstance(postgresql.shutdown(self.told("db-1")), Done, "nothing is left to stop")
                with (
                    patch.object(Here, "pid", lambda here: 1),
                    self.assertRaisesRegex(Failed, "^db-2 may be a former primary"),
                ):
                    postgresql.shutdown(self.told("db-1"))
                self.assertEqual(stopped, ["db-1", "db-1"])
                with self.assertRaisesRegex(Blocked, "^db-2 may be a former primary"):
                    postgresql.drain(self.told("db-0"))
                Memory("postgresql-db-0").remember({"step": "switched", "to": "db-2"})
                for phase in (postgresql.drain, postgresql.shutdown):
                    phase(self.told("db-0"))

    def test_of_two_members_without_data_the_first_returns(self):
        Server.reports = {"db-2": primary()}
        resources = {"MEMBERS": MEMBERS, "ALLCLEAR_VM": "db-0", "ALLCLEAR_EVENT_RESOURCES": "db-0 db-1"}
        here, group = Here(Told(resources)), Group()
        postgresql_switch.believe(Told(resources), here, group, "db-2", {})
        doubtful = [
            {**resources, "ALLCLEAR_EVENT_RESOURCES": "db-0"},
            {**resources, "ALLCLEAR_EVENT_RESOURCES": "db-0 db-1 db-2"},
        ]
        for told in doubtful:
            with self.assertRaisesRegex(Blocked, "^db-2 may be a former primary"):
                postgresql_switch.believe(Told(told), here, group, "db-2", {})
        self.has_data(is_standby=True)
        with self.assertRaisesRegex(Blocked, "^db-2 may be a former primary"):
            postgresql_switch.believe(Told(resources), here, group, "db-2", {})


class OfANoteThatIsContradicted(Members):
    """db-0 has a note of its switch to db-1. The later primary db-2 is silent. Its standby db-3 has its timeline."""

    def setUp(self):
        super().setUp()
        for patched in (
            patch.dict(os.environ, {"MEMBERS": MEMBERS + " db-3=10.0.0.7:5432"}),
            patch.object(postgresql_restore, "start_as_before", lambda *_: False),
        ):
            patched.start()
            self.addCleanup(patched.stop)
        self.has_data(is_standby=True)

    def noted(self, step):
        Memory("postgresql-db-0").remember({"step": step, "to": "db-1"})
        return self.told("db-0")

    def test_the_member_that_it_handed_over_to_is_a_former_primary(self):
        why = "^db-1 may be a former primary: db-3 has a later timeline; db-2: did not answer within 4 s"
        Server.reports = {"db-1": primary(2), "db-3": standby("db-1", 3, streams=False)}
        for step in ("promoting", "switched"):
            for phase in (postgresql_restore.restore, postgresql_switch.failover, postgresql_switch.undo_failover):
                with self.assertRaisesRegex(Blocked, why):
                    phase(self.noted(step))
        with self.assertRaisesRegex(Unknown, why):
            postgresql_switch.confirm_failover(self.noted("switched"))
        with self.assertRaisesRegex(Blocked, "^db-1 may be a former primary: db-3 has a later timeline"):
            postgresql.drain(self.noted("switched"))
        self.assertEqual(Server.asked, [])

    def test_nothing_is_taken_back_or_gone_on_with(self):
        Server.reports = {"db-1": standby("db-0", streams=False), "db-3": standby("db-2", 2)}
        why = "^db-0 may be a former primary: db-3 has a later timeline; db-2: did not answer within 4 s$"
        done = []
        with (
            patch.object(postgresql_switch.Switch, "take_back", lambda switch: done.append("back")),
            patch.object(postgresql_switch.Switch, "go_over", lambda switch: done.append("over")),
            patch.object(postgresql_switch.Switch, "finish", lambda switch: Done()),
        ):
            for step, kind in (("stopping", Blocked), ("promoting", Unknown)):
                for phase in (postgresql_switch.undo_failover, postgresql_switch.failover, postgresql_restore.restore):
                    with self.assertRaisesRegex(kind, why):
                        phase(self.noted(step))
            Server.reports["db-0"] = primary()
            with self.assertRaisesRegex(Blocked, why):
                postgresql_switch.undo_failover(self.noted("stopping"))
            self.assertEqual(done, [])
            Server.reports = {"db-1": standby("db-0", streams=False), "db-3": standby("db-0", streams=False)}
            postgresql_switch.undo_failover(self.noted("stopping"))
            postgresql_switch.failover(self.noted("stopping"))
        self.assertEqual(done, ["back", "over"])


class OfItsOwnProof(Members):
    """db-0 is a standby that was stopped. It leads to db-1, which is the primary or a former one: db-2 is silent."""

    def setUp(self):
        super().setUp()
        self.has_data(is_standby=True)
        Server.reports = {"db-1": primary()}
        self.done = []

        def start(here):
            self.done.append("start")
            Server.reports = {"db-0": standby("db-1"), "db-1": primary(followers=["db-0"])}

        for patched in (
            patch.object(Here, "start", start),
            patch.object(postgresql_restore, "rejoin", lambda *_: self.done.append("rejoin")),
            patch.object(postgresql_restore, "gather", lambda *_: self.done.append("gather")),
            patch.object(postgresql_restore.Poolers, "point_and_resume", lambda *_: self.done.append("point")),
        ):
            patched.start()
            self.addCleanup(patched.stop)

    def test_a_standby_starts_as_before_and_brings_back_nobody_else(self):
        answer = postgresql_restore.restore(self.told("db-0"))
        self.assertIsInstance(answer, Done)
        self.assertRegex(
            answer.reason, "^db-0 is back alone, .*: db-1 may be a former primary: no standby streams from it"
        )
        self.assertEqual(self.done, ["start", "rejoin"])

    def test_a_second_run_finds_no_better_proof(self):
        Memory("postgresql-db-0").remember({"step": "switched", "to": "db-2"})
        for _ in range(2):
            self.assertRegex(postgresql_restore.restore(self.told("db-0")).reason, "^db-0 is back alone")
        self.assertEqual(self.done, ["start", "rejoin", "rejoin"])
        self.assertEqual(Memory("postgresql-db-0").recall()["to"], "db-2", "that may be the present primary")

    def test_another_proof_counts_as_before(self):
        both = primary(followers=["db-0", "db-2"])
        noted = {"step": "switched", "to": "db-1"}
        Server.reports = {"db-0": standby("db-1"), "db-1": both}
        self.assertEqual(postgresql_restore.restore(self.told("db-0")).reason, "", "db-2 answers to the primary")
        Memory("postgresql-db-0").remember(noted)
        Server.reports["db-1"] = primary(followers=["db-0"])
        self.assertEqual(postgresql_restore.restore(self.told("db-0")).reason, "", "this VM has handed over to db-1")
        Server.reports["db-2"] = standby("db-1", streams=False)
        self.assertEqual(postgresql_restore.restore(self.told("db-0")).reason, "", "everybody answers")
        self.assertEqual(self.done, ["rejoin", "point", "gather"] * 3)


if __name__ == "__main__":
    unittest.main()
