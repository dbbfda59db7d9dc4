"""Which member of a Redis replication is the primary, and which member would lose writes by following it."""

import contextlib
import io
import os
import tempfile
import unittest
from unittest.mock import patch

import redis_hook
import redis_switch
from allclear_hook import (
    Blocked,
    Done,
    Failed,
    Memory,
    NotDone,
    Told,
    Tries,
    Unknown,
    Unreachable,
    unknown_once_begun,
)
from redis_members import Cluster
from redis_server import Member, Server, View
from settings import Clock

MEMBERS = "db-0=127.0.0.1:7000 db-1=127.0.0.1:7001 db-2=127.0.0.1:7002"
OLD, NEW, OTHER = "a" * 40, "b" * 40, "c" * 40


def primary(*replicas, history=OLD, offset=1000, former="0" * 40, branched=-1, **lags):
    """The report of a primary with these replicas, by their ports; `lag` counts for all of them."""
    info = {
        "role": "master",
        "master_repl_offset": str(offset),
        "master_replid": history,
        "master_replid2": former,
        "second_repl_offset": str(branched),
    }
    for number, port in enumerate(replicas):
        state, lag = lags.get("state", "online"), lags.get("lag", 0)
        info[f"slave{number}"] = f"ip=127.0.0.1,port={port},state={state},offset={offset},lag={lag}"
    return info


def replica(of, history=OLD, offset=1000, link="up"):
    return {
        "role": "slave",
        "master_host": "127.0.0.1",
        "master_port": str(of),
        "slave_repl_offset": str(offset),
        "master_replid": history,
        "master_replid2": "0" * 40,
        "second_repl_offset": "-1",
        "master_link_status": link,
        "master_sync_in_progress": "0",
    }


class Members(unittest.TestCase):
    """Members that answer with reports; the others are silent. `asked` has the changes of members."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.reports, self.empty, self.asked, self.sentinels = {}, set(), [], {}

        def look(member):
            if member.vm not in self.reports:
                raise Unreachable("timed out")
            return View(member, self.reports[member.vm])

        def call(server, *words):
            if server.kind == "SENTINEL":
                if server.vm not in self.sentinels:
                    raise Unreachable(f"{server.vm} timed out")
                return self.sentinels[server.vm]
            return self.asked.append((server.vm, *words))

        for patched in (
            patch.dict(os.environ, {"MEMBERS": MEMBERS, "STATE_DIR": folder.name}),
            patch.object(Member, "look", look),
            patch.object(Member, "is_empty", lambda member: member.vm in self.empty),
            patch.object(Member, "follow", lambda member, to: self.asked.append((member.vm, "follow", to.vm))),
            patch.object(Member, "config", lambda member, name: "100"),
            patch.object(Server, "call", call),
            patch.object(redis_hook, "until_loaded", lambda member, seconds: ""),
            patch.object(redis_hook, "until", lambda holds, seconds, every=0: holds()),
            contextlib.redirect_stdout(io.StringIO()),
        ):
            patched.__enter__()
            self.addCleanup(patched.__exit__, None, None, None)

    def told(self, vm):
        return Told({"MEMBERS": os.environ["MEMBERS"], "ALLCLEAR_VM": vm})

    def cluster(self, vm="db-0"):
        cluster = Cluster(self.told(vm))
        return cluster, cluster.look()

    def primary(self, vm="db-0"):
        cluster, seen = self.cluster(vm)
        found = cluster.primary(seen)
        return found and found.vm, cluster.no_primary()


class Believed(Members):
    def test_the_only_primary_of_members_that_all_answer_needs_no_proof(self):
        self.reports = {"db-0": primary(), "db-1": replica(7002, link="down"), "db-2": replica(7001, link="down")}
        self.assertEqual(self.primary()[0], "db-0")

    def test_a_former_primary_is_not_believed_while_the_present_one_is_silent(self):
        self.reports = {"db-0": primary(), "db-2": replica(7001, history=NEW, link="down")}
        for vm in ("db-0", "db-2"):
            found, why = self.primary(vm)
            self.assertIsNone(found)
            self.assertRegex(why, "^the primary is not known; db-0 takes writes, but may be a former primary")
            self.assertRegex(why, "; db-1 does not answer: timed out$")

    def test_a_replica_is_proof_though_it_does_not_answer(self):
        self.reports = {"db-0": primary(7001)}
        self.assertEqual(self.primary()[0], "db-0")

    def test_a_replica_that_left_without_a_word_is_none(self):
        for more in ({"lag": 4}, {"lag": -1}, {"state": "wait_bgsave"}):
            self.reports = {"db-0": primary(7001, **more)}
            self.assertIsNone(self.primary()[0], more)

    def test_a_replica_that_says_it_follows_another_is_none(self):
        self.reports = {"db-0": primary(7002), "db-2": replica(7001)}
        self.assertIsNone(self.primary()[0])

    def test_a_replica_that_is_no_member_is_none(self):
        self.reports = {"db-0": primary(7009)}
        self.assertIsNone(self.primary()[0])

    def test_who_stepped_down_for_it_knows_the_primary(self):
        Memory("redis").remember({"to": "db-1", "history": OLD, "offset": 1000})
        self.reports = {"db-0": replica(7001, link="down"), "db-1": primary()}
        self.assertEqual(self.primary()[0], "db-1")
        self.reports = {"db-0": primary()}
        self.assertIsNone(self.primary()[0], "and is no proof of itself")

    def test_a_promotion_in_place_of_the_silent_member_is_proof(self):
        promoted = primary(history=NEW, offset=1000, former=OLD, branched=1001)
        waits = replica(7000, link="down")
        self.reports = {"db-1": promoted, "db-2": waits}
        self.assertEqual(self.primary("db-2")[0], "db-1")
        for other in (
            replica(7000, offset=1001, link="down"),
            replica(7000, NEW, link="down"),
            replica(7001, link="down"),
        ):
            self.reports["db-2"] = other
            self.assertIsNone(self.primary("db-2")[0], other)
        self.reports = {"db-1": promoted}
        self.assertIsNone(self.primary("db-1")[0], "nobody says whom it was promoted after")


class Watched(Members):
    def setUp(self):
        super().setUp()
        more = {"SENTINELS": MEMBERS.replace(":70", ":170")}
        patched = patch.dict(os.environ, more)
        patched.start()
        self.addCleanup(patched.stop)

    def test_a_majority_of_sentinels_is_proof(self):
        self.reports = {"db-0": primary()}
        self.sentinels = {"db-1": ["127.0.0.1", "7000"], "db-2": ["127.0.0.1", "7000"]}
        self.assertEqual(self.primary()[0], "db-0")

    def test_a_sentinel_that_was_away_is_outvoted(self):
        self.reports = {"db-0": primary(), "db-1": primary(7002, history=NEW), "db-2": replica(7001, history=NEW)}
        self.sentinels = {"db-0": ["127.0.0.1", "7000"], "db-1": ["127.0.0.1", "7001"], "db-2": ["127.0.0.1", "7001"]}
        self.assertEqual(self.primary("db-2")[0], "db-1")

    def test_a_single_sentinel_proves_nothing(self):
        self.reports = {"db-0": primary(), "db-2": replica(7001, history=NEW)}
        self.sentinels = {"db-0": ["127.0.0.1", "7000"]}
        self.assertIsNone(self.primary("db-2")[0])
        self.reports["db-0"] = primary(7002)
        self.reports["db-2"] = replica(7000)
        self.assertEqual(self.primary("db-2")[0], "db-0", "but a replica does")

    def test_without_any_sentinel_nobody_knows(self):
        self.reports = {"db-0": primary(7001, 7002)}
        with self.assertRaisesRegex(Unreachable, "^no Sentinel answers: "):
            self.primary()


class Restored(Members):
    def restore(self, vm):
        return redis_hook.restore(self.told(vm))

    def test_nobody_is_told_to_follow_a_former_primary(self):
        self.reports = {"db-0": primary(), "db-2": replica(7001, offset=900, link="down")}
        for vm in ("db-0", "db-2"):
            with self.assertRaisesRegex(Blocked, "^the primary is not known; db-0 takes writes"):
                self.restore(vm)
        self.assertEqual(self.asked, [])

    def test_a_replica_with_more_than_the_primary_is_kept(self):
        present = primary(7002, history=NEW, offset=1100, former=OLD, branched=901)
        for own, why in (
            (
                replica(7002, offset=1000, link="down"),
                "db-0 has 100 bytes of writes that db-1 never got, and would lose",
            ),
            (replica(7002, history=NEW, offset=1200, link="down"), "db-0 has 100 bytes of writes that db-1 never got"),
            (replica(7002, history=OTHER, link="down"), "db-0 has another history than db-1, and perhaps writes"),
        ):
            self.reports = {"db-0": own, "db-1": present, "db-2": replica(7001, history=NEW)}
            with self.assertRaisesRegex(Blocked, f"^{why}.*say SAVE on db-0.*REPLICAOF 127.0.0.1 7001"):
                self.restore("db-0")
            self.assertEqual(self.asked, [], why)

    def test_a_replica_with_less_follows(self):
        present = primary(7002, history=NEW, offset=1100, former=OLD, branched=901)
        for own in (replica(7002, offset=900, link="down"), replica(7002, history=NEW, offset=1100, link="down")):
            self.reports = {"db-0": own, "db-1": present, "db-2": replica(7001, history=NEW)}
            self.asked = []
            with patch.object(redis_hook, "has_arrived", lambda member, written: True):
                self.restore("db-0")
            self.assertIn(("db-0", "follow", "db-1"), self.asked)

    def test_an_empty_member_and_one_that_stepped_down_for_the_primary_follow(self):
        present = primary(7002, history=NEW, offset=1100, former=OLD, branched=1001)
        for is_empty in (True, False):
            self.reports = {"db-0": replica(7002, history=OTHER, offset=0, link="down"), "db-1": present}
            self.reports["db-2"] = replica(7001, history=NEW)
            self.empty, self.asked = {"db-0"} if is_empty else set(), []
            if not is_empty:
                Memory("redis").remember({"to": "db-1", "history": OLD, "offset": 1000})
            with patch.object(redis_hook, "has_arrived", lambda member, written: True):
                self.restore("db-0")
            self.assertIn(("db-0", "follow", "db-1"), self.asked)

    def test_a_replica_that_is_the_only_proof_of_the_primary_brings_back_nobody_else(self):
        Memory("redis").remember({"to": "db-1", "history": OLD, "offset": 900})
        alone = {"db-0": primary(7002), "db-2": replica(7000), "db-3": replica(7001, offset=900, link="down")}
        with patch.dict(os.environ, {"MEMBERS": MEMBERS + " db-3=127.0.0.1:7003"}):
            self.reports = alone
            answer = self.restore("db-2")
            self.assertIsInstance(answer, Done)
            why = "^db-2 is back alone, .*: only db-2 follows db-0, which may be a former primary: db-1 does not answer"
            self.assertRegex(answer.reason, why)
            self.assertEqual(sorted(self.asked), [("db-0", "CONFIG", "REWRITE"), ("db-2", "CONFIG", "REWRITE")])
            self.assertEqual(Memory("redis").recall()["to"], "db-1", "that may be the present primary")
            for proof in ({"db-1": replica(7000)}, {"db-0": primary(7002, 7001)}):
                self.reports, self.asked = {**alone, **proof}, []
                self.assertEqual(self.restore("db-2").reason, "")
                self.assertIn(("db-3", "follow", "db-0"), self.asked)

    def test_another_member_with_more_is_left_alone(self):
        self.reports = {"db-0": primary(7001), "db-1": replica(7000), "db-2": replica(7001, history=OTHER)}
        self.restore("db-0")
        self.assertFalse([asked for asked in self.asked if asked[1] == "follow"])

    def test_of_two_primaries_with_different_writes_none_is_chosen(self):
        self.reports = {"db-0": primary(), "db-1": primary(history=NEW)}
        with self.assertRaisesRegex(Failed, "compare them"):
            self.restore("db-0")


class Ready(Members):
    def test_a_former_primary_that_somebody_does_not_follow_is_not_ready(self):
        self.reports = {"db-0": primary(), "db-2": replica(7001, history=NEW)}
        with self.assertRaisesRegex(Blocked, "may be a former primary"):
            redis_hook.ready(self.told("db-0"))

    def test_the_only_member_that_answers_is_ready_and_says_what_is_not_known(self):
        self.reports = {"db-0": primary()}
        answer = redis_hook.ready(self.told("db-0"))
        self.assertIsInstance(answer, Done)
        self.assertRegex(answer.reason, "^the primary is not known; db-0 takes writes, but may be a former primary")


class Switch(Members):
    def test_an_undo_of_the_only_member_that_answers_ends(self):
        self.reports = {"db-0": primary()}
        Memory("redis").remember({"to": "db-1", "history": OLD, "offset": 1000})
        self.assertIsInstance(redis_switch.undo_failover(self.told("db-0")), Done)
        self.assertEqual(Memory("redis").recall(), {})

    def test_a_member_does_not_step_down_after_the_end_of_the_pause(self):
        """The note is on a slow disk, and clients write again."""
        self.reports = {"db-0": primary(7001, 7002), "db-1": replica(7000), "db-2": replica(7000)}
        clock, (cluster, _seen), remember = Clock(), self.cluster(), Memory.remember

        def slow(note, facts):
            clock.sleep(6)
            remember(note, facts)

        why = "^the pause of writes ended before db-0 .*db-0 is the primary as before$"
        with (
            patch.object(redis_switch, "time", clock),
            patch.object(Memory, "remember", slow),
            self.assertRaisesRegex(Failed, why),
        ):
            redis_switch.hand_over(cluster, cluster.members["db-1"], Tries(self.told("db-0"), "redis"), 5.0)
        self.assertEqual(self.asked, [("db-0", "CLIENT", "PAUSE", 5000, "WRITE"), ("db-0", "CLIENT", "UNPAUSE")])
        self.assertEqual(Memory("redis").recall(), {})

    def test_a_failover_whose_member_has_stepped_down_is_not_blocked(self):
        failover = unknown_once_begun(redis_switch.failover, redis_switch.is_half_done)
        stepped_down = replica(7001, link="down")
        heir = "^db-0 stepped down for db-1, which may have taken over: db-1 does not answer"
        for of, own, expected, words in (
            ("", stepped_down, Unknown, heir),
            ("E-0", stepped_down, Blocked, heir),
            ("", primary(), Blocked, "^no member can take over: "),
        ):
            Memory("redis").remember({"event": of, "to": "db-1", "history": OLD, "offset": 1000})
            self.reports = {"db-0": own, "db-2": replica(7001, link="down")}
            with self.assertRaisesRegex(expected, words):
                failover(self.told("db-0"))
        self.assertEqual(self.asked, [])

    def test_a_failover_is_not_done_only_if_the_successor_says_so(self):
        Memory("redis").remember({"event": "E-0", "to": "db-1", "history": OLD, "offset": 1000})
        for silent, expected in (("db-1", Unknown), ("db-2", NotDone)):
            self.reports = {vm: replica(7001, link="down") for vm in ("db-0", "db-1", "db-2") if vm != silent}
            self.assertIsInstance(redis_switch.confirm_failover(self.told("db-0")), expected)

    def test_a_replica_gathers_nobody_around_a_former_primary(self):
        self.reports = {"db-0": primary(), "db-2": replica(7000, link="down")}
        cluster, seen = self.cluster("db-2")
        redis_switch.finish(cluster, seen)
        self.assertEqual(self.asked, [])


if __name__ == "__main__":
    unittest.main()
