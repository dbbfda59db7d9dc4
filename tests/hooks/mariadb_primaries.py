"""Which member of a MariaDB replication is the primary, while a member does not answer."""

import contextlib
import os
import tempfile
import unittest
from typing import ClassVar
from unittest.mock import patch

import mariadb
import mariadb_check
import mariadb_copy
import mariadb_members
import mariadb_replication
import mariadb_switch
from allclear_hook import Blocked, Done, Memory, NotDone, Rejected, Told, Unknown, Unreachable, unknown_once_begun
from mariadb_members import Group, Server

MEMBERS = "db-0=10.0.0.4:3306 db-1=10.0.0.5:3306 db-2=10.0.0.6:3306"
HOSTS = {"db-0": "10.0.0.4", "db-1": "10.0.0.5", "db-2": "10.0.0.6"}


def follows(vm, io="Yes"):
    return {
        "Connection_name": "", "Master_Host": HOSTS[vm], "Master_Port": "3306", "Master_Server_Id": f"{vm[-1]}",
        "Slave_IO_Running": io, "Slave_SQL_Running": "Yes", "Last_IO_Errno": "0", "Last_SQL_Errno": "0",
        "Last_IO_Error": "", "Last_SQL_Error": "", "Using_Gtid": "Slave_Pos",
    }  # fmt: skip


class Member(Server):
    """A member without a server: it answers with a report, and notes all changes."""

    reports: ClassVar = {}
    asked: ClassVar = []

    def __init__(self, vm, how, options=""):
        self.vm, self.name, self.lost, self.error, self.named = vm, vm, "", 0, []

    def send(self, *statements):
        Member.asked += [(self.vm, one) for one in statements if not one.startswith(("SELECT", "SHOW"))]

    def answer(self, seconds=None):
        if self.vm not in Member.reports:
            raise Unreachable(f"{self.vm}: did not answer within 5 s")
        is_writable, source, position = Member.reports[self.vm][:3]
        number = self.vm[-1]
        state = ",".join([*Member.reports[self.vm][3:], position])
        look = {
            "id": number, "read_only": "0" if is_writable else "1", "log_bin": "1", "passes_on": "1", "copying": "0",
            "position": position, "binlog": position, "state": state, "replicated": position, "datadir": "/data",
        }  # fmt: skip
        return [[look], [source] if source else []]

    def where(self):
        return Member.reports[self.vm][2]

    def close(self):
        pass


def primary(position="0-0-100", *more):
    """`more`: the last transactions of other members in its binlog."""
    return True, None, position, *more


def replica(of, io="Yes", position="0-0-100"):
    return False, follows(of, io), position


def closed(position="0-0-100"):
    """A server that was restarted: read-only, and a replica of nobody."""
    return False, None, position


class Members(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        Member.reports, Member.asked = {}, []
        for patched in (
            patch.dict(os.environ, {"MEMBERS": MEMBERS, "STATE_DIR": folder.name}),
            patch.object(mariadb_members, "Server", Member),
            patch.object(Group, "_lock", lambda group: None),
            patch.object(mariadb, "data_here", lambda told: "whole"),
            patch.object(mariadb_replication, "until", lambda holds, seconds: holds()),
            patch.object(mariadb, "wait_for_acknowledgement", lambda *_, **__: None),
            patch.object(mariadb_switch, "wait_for_acknowledgement", lambda *_, **__: None),
            patch.object(mariadb, "lead", lambda group, primary: []),
            patch.object(mariadb_switch, "lead", lambda group, primary: []),
        ):
            patched.start()
            self.addCleanup(patched.stop)

    def told(self, vm):
        return Told(
            {"MEMBERS": MEMBERS, "ALLCLEAR_VM": vm, "ALLCLEAR_EVENT_ID": "E-1", "ALLCLEAR_TIME_LEFT_MS": "9000"}
        )

    def changes(self):
        return [one for one in Member.asked if "IO_THREAD" not in one[1]]


FORMER = "^db-0 may be a former primary: no member replicates from it, .*; db-1: did not answer within 5 s$"


class OfAFormerPrimary(Members):
    """db-1 is the present primary, and silent."""

    def setUp(self):
        super().setUp()
        Member.reports = {"db-0": primary(), "db-2": replica("db-1", "Connecting")}

    def test_no_member_is_restored_by_it(self):
        for vm in ("db-0", "db-2"):
            with self.assertRaisesRegex(Blocked, FORMER):
                mariadb.restore(self.told(vm))
        self.assertEqual(self.changes(), [])

    def test_no_data_are_copied_from_it(self):
        with self.assertRaisesRegex(Blocked, FORMER):
            mariadb_copy.fill(self.told("db-2"))

    def test_it_is_not_ready(self):
        for vm in ("db-0", "db-2"):
            with self.assertRaisesRegex(Blocked, FORMER):
                mariadb.ready(self.told(vm))

    def test_a_switch_to_it_is_neither_confirmed_nor_gone_on_with(self):
        Member.reports["db-2"] = closed()
        with self.assertRaisesRegex(Unknown, FORMER):
            mariadb_switch.confirm_failover(self.told("db-1"))
        with self.assertRaisesRegex(Blocked, FORMER):
            mariadb_switch.failover(self.told("db-2"))
        self.assertEqual(self.changes(), [])

    def test_the_only_member_that_answers_is_ready_and_says_what_is_not_known(self):
        del Member.reports["db-2"]
        answer = mariadb.ready(self.told("db-0"))
        self.assertIsInstance(answer, Done)
        self.assertRegex(answer.reason, "^db-0 may be a former primary")


class OfAClosedPrimary(Members):
    """db-0 has been restarted, and is read-only."""

    def test_it_is_not_opened_beside_a_silent_member_that_may_be_writable(self):
        Member.reports = {"db-0": closed(), "db-2": replica("db-1", "Connecting")}
        why = "^nobody that answers is writable; db-0 may be a former primary"
        with self.assertRaisesRegex(Blocked, why):
            mariadb.restore(self.told("db-0"))
        with self.assertRaisesRegex(Blocked, why):
            mariadb_switch.undo_failover(self.told("db-0"))
        self.assertEqual(self.changes(), [])

    def test_it_is_opened_if_a_replica_has_stayed_with_it(self):
        Member.reports = {"db-0": closed(), "db-2": replica("db-0")}
        mariadb_switch.undo_failover(self.told("db-0"))
        self.assertEqual(self.changes(), [("db-0", "SET GLOBAL read_only = 0")])

    def test_it_is_opened_if_everybody_answers(self):
        Member.reports = {"db-0": closed(), "db-1": replica("db-2", "No"), "db-2": replica("db-1", "No")}
        mariadb_switch.undo_failover(self.told("db-0"))
        self.assertEqual(self.changes(), [("db-0", "SET GLOBAL read_only = 0")])

    def test_an_attempt_of_this_event_that_was_killed_in_the_promotion_is_taken_back(self):
        Member.reports = {"db-0": closed(), "db-1": replica("db-0", "No")}
        resumed = []
        with (
            patch.object(mariadb_switch, "resume", resumed.append),
            patch.object(mariadb_switch, "prove", side_effect=ReferenceError),
        ):
            for event in ("E-0", "E-1"):
                for attempt in (mariadb_switch.undo_failover, mariadb_switch.failover):
                    Memory("mariadb").remember({"event": event, "candidate": "db-1"})
                    if event == "E-0":
                        with self.assertRaisesRegex(Blocked, "^nobody that answers is writable; db-0 may be a former"):
                            attempt(self.told("db-0"))
                        self.assertEqual(Member.asked, [])
                    else:
                        Member.asked = []
                        with contextlib.suppress(ReferenceError):
                            attempt(self.told("db-0"))
                        self.assertEqual(self.changes(), [("db-0", "SET GLOBAL read_only = 0")])
        self.assertEqual(resumed, ["db-1", "db-1"])

    def test_the_candidate_of_such_an_attempt_has_to_answer(self):
        Memory("mariadb").remember({"event": "E-1", "candidate": "db-1"})
        Member.reports = {"db-0": closed(), "db-2": replica("db-0", "Connecting")}
        with self.assertRaisesRegex(Blocked, "^db-1 may be writable, and does not answer"):
            mariadb_switch.undo_failover(self.told("db-0"))
        self.assertEqual(self.changes(), [])

    def test_a_failover_that_has_closed_it_is_not_blocked(self):
        failover = unknown_once_begun(mariadb_switch.failover, mariadb_switch.is_half_done)
        candidate, replicas = "^db-1 may be writable, and does not answer", {"db-2": replica("db-0", "Connecting")}
        for of, here, expected, words in (
            ("E-1", closed(), Unknown, candidate),
            ("E-0", closed(), Blocked, candidate),
            ("E-1", primary(), Blocked, "^no member can take over: "),
        ):
            Memory("mariadb").remember({"event": of, "candidate": "db-1"})
            Member.reports = {"db-0": here, **replicas}
            with (
                patch.object(mariadb_switch, "prove"),
                patch.object(mariadb_switch, "why_not", return_value="is too old"),
                self.assertRaisesRegex(expected, words),
            ):
                failover(self.told("db-0"))
        self.assertEqual(self.changes(), [])

    def test_a_failover_that_has_closed_it_is_confirmed_by_the_candidate_alone(self):
        for silent, expected in (("db-1", Unknown), ("db-2", NotDone)):
            Memory("mariadb").remember({"event": "E-1", "candidate": "db-1"})
            Member.reports = {"db-0": closed(), "db-1": replica("db-0", "No"), "db-2": replica("db-0", "Connecting")}
            del Member.reports[silent]
            with self.assertRaises(expected):
                mariadb_switch.confirm_failover(self.told("db-0"))
        Memory("mariadb").remember({"event": "E-0", "candidate": "db-1"})
        with self.assertRaisesRegex(Unknown, "^db-2: did not answer"):
            mariadb_switch.confirm_failover(self.told("db-0"))

    def test_the_hook_that_has_just_closed_it_opens_it(self):
        Member.reports = {"db-0": closed(), "db-2": replica("db-1", "No")}
        self.assertTrue(mariadb_switch.take_back_at_once(self.told("db-0"), {}))
        self.assertEqual(self.changes(), [("db-0", "SET GLOBAL read_only = 0")])


class OfAnEmptyServer(Members):
    def test_its_owner_is_told_to_copy_the_data_and_not_to_mend_an_account(self):
        for data, rejecting, told in (("lost", "db-0", True), ("whole", "db-0", False), ("lost", "db-1", False)):
            with (
                patch.object(mariadb_check, "data_here", lambda _told, data=data: data),
                Group(self.told("db-0")) as group,
            ):
                group.rejecting = {rejecting}
                found = list(mariadb_check.empty_here(self.told("db-0"), group))
            self.assertEqual(bool(found), told)
            self.assertRegex("".join(found) or "db-0/mariadb/restore", "db-0/mariadb/restore$")


class Believed(Members):
    def doubt(self, vm="db-0"):
        with Group(self.told(vm)) as group:
            return mariadb_replication.doubt(group, group.primary())

    def test_a_replica_is_proof_by_the_address_and_by_the_number_of_its_primary(self):
        Member.reports = {"db-0": primary(), "db-2": replica("db-0")}
        self.assertEqual(self.doubt(), "")
        self.assertIsInstance(mariadb.restore(self.told("db-0")), Done)
        for name, other in (("Master_Host", "primary.example.org"), ("Master_Server_Id", "9")):
            Member.reports["db-2"][1][name] = other
        self.assertRegex(self.doubt(), FORMER)
        Member.reports["db-2"][1]["Master_Server_Id"] = "0"
        self.assertEqual(self.doubt(), "")

    def test_a_replica_that_does_not_reach_it_is_none(self):
        for io in ("No", "Connecting", "Preparing"):
            Member.reports = {"db-0": primary(), "db-2": replica("db-0", io)}
            self.assertRegex(self.doubt(), FORMER)

    def test_a_promotion_in_place_of_the_silent_member_is_proof(self):
        Member.reports = {"db-1": primary("0-1-105", "0-0-100"), "db-2": replica("db-0", "Connecting", "0-0-100")}
        self.assertEqual(self.doubt("db-2"), "")
        for other in (
            replica("db-0", "Connecting", "0-1-105"),
            replica("db-0", "Connecting", "0-0-106"),
            replica("db-1", "Connecting", "0-0-100"),
            closed("0-0-100"),
        ):
            Member.reports["db-2"] = other
            self.assertRegex(self.doubt("db-2"), "^db-1 may be a former primary: no member replicates from it")
        Member.reports = {"db-1": closed("0-1-105"), "db-2": replica("db-0", "Connecting", "0-0-100")}
        with self.assertRaisesRegex(Blocked, "^nobody that answers is writable; db-1 may be a former primary"):
            mariadb_switch.undo_failover(self.told("db-1"))

    def test_the_note_of_the_own_switch_is_proof_and_none_of_itself(self):
        Memory("mariadb").remember({"event": "E-1", "candidate": "db-0"})
        Member.reports = {"db-0": primary(), "db-2": closed()}
        self.assertEqual(self.doubt("db-2"), "")
        self.assertRegex(self.doubt("db-0"), FORMER)

    def test_of_two_members_without_data_the_first_returns(self):
        Member.reports = {"db-2": primary()}
        resources = {"MEMBERS": MEMBERS, "ALLCLEAR_VM": "db-0", "ALLCLEAR_EVENT_RESOURCES": "db-0 db-1"}
        with patch.object(mariadb_copy, "choose_source", side_effect=ReferenceError):
            with self.assertRaises(ReferenceError):
                mariadb_copy.fill(Told(resources))
            for affected in ("db-0", "db-0 db-1 db-2"):
                with self.assertRaisesRegex(Blocked, "^db-2 may be a former primary"):
                    mariadb_copy.fill(Told({**resources, "ALLCLEAR_EVENT_RESOURCES": affected}))

    def test_a_member_whose_data_are_lost_is_no_primary(self):
        Member.reports = {"db-0": primary(), "db-2": replica("db-1")}
        with Group(self.told("db-1"), without={"db-1": "has no data"}) as group:
            self.assertEqual(mariadb_replication.doubt(group, group.primary()), "")


class OfItsOwnProof(Members):
    """db-2 is a replica that was stopped. It follows db-0, which is the primary or a former one: db-1 is silent."""

    def setUp(self):
        super().setUp()
        Member.reports = {"db-0": primary(), "db-2": replica("db-0", "No")}
        self.led = []

        def ask(member, *statements):
            Member.asked += [(member.vm, one) for one in statements]
            if "START SLAVE ''" in statements:
                Member.reports["db-2"] = replica("db-0")

        for patched in (
            patch.object(Member, "ask", ask),
            patch.object(Member, "look_again", lambda member: member.see(member.answer())),
            patch.object(mariadb, "lead", lambda group, primary: self.led.append(primary.vm) or []),
            patch.object(mariadb, "prove", lambda told, wrong: Done("; ".join(wrong))),
        ):
            patched.start()
            self.addCleanup(patched.stop)

    def test_a_replica_starts_as_before_and_brings_back_nobody_else(self):
        Memory("mariadb").remember({"event": "E-0", "candidate": "db-1"})
        for _ in range(2):
            answer = mariadb.restore(self.told("db-2"))
            self.assertIsInstance(answer, Done)
            self.assertRegex(
                answer.reason, "^db-2 is back alone, .*: db-0 may be a former primary: no member replicates"
            )
        self.assertEqual(Member.asked, [("db-2", "START SLAVE ''")])
        self.assertEqual(self.led, [], "a second run finds no better proof")
        self.assertEqual(Memory("mariadb").recall()["candidate"], "db-1", "that may be the present primary")

    def test_a_replica_whose_start_fails_tells_the_doubt_too(self):
        unreadable, refused = Unreachable("db-2: error 1201: unreadable"), Rejected("db-2: error 1227: no right")
        for error, expected, words in (
            (unreadable, Blocked, f"{FORMER[:-1]}; {unreadable}$"),
            (refused, Rejected, f"^{refused}$"),
        ):
            with patch.object(Member, "ask", side_effect=error), self.assertRaisesRegex(expected, words):
                mariadb.restore(self.told("db-2"))
        self.assertEqual(self.led, [])

    def test_a_replica_starts_only_if_nothing_else_is_a_proof(self):
        for note, reports in (({"candidate": "db-0"}, {}), ({}, {"db-1": replica("db-0")})):
            Memory("mariadb").remember({"event": "E-1", **note})
            Member.reports = {"db-0": primary(), "db-2": replica("db-0", "No"), **reports}
            with patch.object(mariadb, "rejoin", side_effect=ReferenceError), self.assertRaises(ReferenceError):
                mariadb.restore(self.told("db-2"))
            self.assertEqual(Member.asked, [])

    def test_a_replica_of_another_member_does_not_start(self):
        Member.reports["db-2"] = replica("db-1", "No")
        with self.assertRaisesRegex(Blocked, FORMER):
            mariadb.restore(self.told("db-2"))
        self.assertEqual(Member.asked, [])

    def test_another_proof_counts_as_before(self):
        Member.reports["db-2"] = replica("db-0")
        Memory("mariadb").remember({"event": "E-1", "candidate": "db-0"})
        self.assertEqual(mariadb.restore(self.told("db-2")).reason, "", "this VM has handed over to db-0")
        Member.reports["db-1"] = replica("db-0", "No")
        self.assertEqual(mariadb.restore(self.told("db-2")).reason, "", "everybody answers")
        self.assertEqual(self.led, ["db-0", "db-0"])


class OfTransactionsOfAReplica(Members):
    """db-1 is the primary now, and db-2 followed db-0, which is gone."""

    def more(self, received, *known):
        behind = {**follows("db-0", "Connecting"), "Gtid_IO_Pos": received}
        Member.reports = {"db-1": primary("0-1-101", *known), "db-2": (False, behind, "0-0-99")}
        with patch.object(Member, "look_again", lambda member: member.see(member.answer())):
            return mariadb_replication.has_more(Member("db-2", []), Member("db-1", []))

    def test_what_is_received_and_not_applied_counts(self):
        self.assertEqual(self.more("0-0-100", "0-0-100"), "")
        self.assertEqual(self.more("", "0-0-99"), "", "after a restart without a connection")
        why = "has transactions that db-1 does not have (0-0-100)"
        self.assertEqual(self.more("0-0-100", "0-0-99"), why)


if __name__ == "__main__":
    unittest.main()
