"""Options with which a crashed primary of MariaDB cuts acknowledged transactions off its binlog."""

import os
import types
import unittest
from unittest.mock import patch

import mariadb
import mariadb_check
import mariadb_configuration
from allclear_hook import Unreachable
from mariadb_configuration import cuts_less, wrong_configuration
from mariadb_replication import acknowledge

# A file with all that is needed otherwise.
WHOLE = {"read_only": "1", "gtid_strict_mode": "1", "server_id": "1"}


class Member:
    vm = "db-0"
    look = {"id": "1"}  # noqa: RUF012 -- a report, which nobody changes

    def __init__(self, version="10.11.8-MariaDB-log", acknowledges="0", origins=(), is_set="0"):
        self.version, self.acknowledges, self.origins, self.asked = version, acknowledges, origins, []
        self.is_set = is_set

    def one(self, statement):
        if "VERSION" in statement:
            return self.version
        return self.acknowledges if "RPL_SEMI_SYNC_SLAVE_STATUS" in statement else self.is_set

    def ask(self, *statements):
        self.asked += statements
        return [[{"name": name, "value": value, "origin": origin} for name, value, origin in self.origins]]


class Versions(unittest.TestCase):
    def test_each_series_has_its_first_release(self):
        for version in ("10.6.19", "10.11.9", "11.1.6", "11.2.5", "11.4.3", "11.6.2", "11.8.2", "12.0.1"):
            self.assertTrue(cuts_less(f"{version}-MariaDB-deb12"), version)
        for version in (
            "10.6.18",
            "10.10.7",
            "10.11.8",
            "11.0.6",
            "11.1.5",
            "11.2.4",
            "11.3.2",
            "11.4.2",
            "11.5.2",
            "next",
        ):
            self.assertFalse(cuts_less(f"{version}-MariaDB-deb12"), version)
        self.assertFalse(cuts_less("of tomorrow"))


class Found(unittest.TestCase):
    def wrong(self, version, **options):
        with patch.object(mariadb_configuration, "configured", lambda here: {**WHOLE, **options}):
            return list(wrong_configuration(Member(f"{version}-MariaDB")))

    def test_before_the_release_the_option_of_replicas_is_told_with_what_to_do(self):
        for value in ("1", "ON", "true"):
            (why,) = self.wrong("10.11.8", rpl_semi_sync_slave_enabled=value)
            self.assertIn("rpl_semi_sync_slave_enabled = 1, and its version is 10.11.8-MariaDB: after a crash", why)
            self.assertIn("MDEV-33465", why)
            self.assertIn("remove it, because the hooks enable it on replicas, or upgrade to 10.6.19, 10.11.9, ", why)
        self.assertEqual(self.wrong("10.11.8", rpl_semi_sync_slave_enabled="0"), [])
        self.assertEqual(self.wrong("10.11.8", init_rpl_role="SLAVE"), [])
        self.assertEqual(self.wrong("10.11.8"), [])

    def test_since_the_release_the_role_is_told(self):
        for role in ("SLAVE", "slave", "sl", "1"):
            (why,) = self.wrong("10.11.9", init_rpl_role=role)
            self.assertIn(f"its configuration says init_rpl_role = {role.upper()}: after a crash", why)
        for role in ("MASTER", "0", ""):
            self.assertEqual(self.wrong("10.11.9", init_rpl_role=role), [])
        self.assertEqual(self.wrong("10.11.9", rpl_semi_sync_slave_enabled="1"), [])

    def test_files_that_cannot_be_read_are_told_by_the_server(self):
        def unreadable(here):
            raise Unreachable("no pid file")

        for origin, is_told in (("CONFIG", True), ("COMMAND-LINE", True), ("SQL", False), ("COMPILE-TIME", False)):
            origins = (("read_only", "ON", "CONFIG"), ("rpl_semi_sync_slave_enabled", "ON", origin))
            with patch.object(mariadb_configuration, "configured", unreadable):
                wrong = list(wrong_configuration(Member(origins=origins)))
            self.assertEqual(bool(wrong), is_told, wrong)
        with patch.object(mariadb_configuration, "configured", unreadable):
            (why,) = wrong_configuration(Member(origins=(("read_only", "OFF", "COMPILE-TIME"),)))
        self.assertIn("(no pid file), and it has to say read_only = 1", why)


class Replaced(unittest.TestCase):
    def test_a_restarted_replica_acknowledges_again(self):
        with patch.dict(os.environ, {"SEMI_SYNC_MS": "1000"}):
            member = Member()
            acknowledge(member)
            self.assertEqual(member.asked[0], "SET GLOBAL rpl_semi_sync_slave_enabled = 1")
            self.assertEqual(member.asked[1:], ["STOP SLAVE '' IO_THREAD", "START SLAVE '' IO_THREAD"])
            member = Member(acknowledges="1", is_set="1")
            acknowledge(member)
            self.assertEqual(member.asked, [])
        member = Member()
        acknowledge(member)
        self.assertEqual(member.asked, [])

    def test_a_hook_that_was_killed_after_the_setting_is_repaired_by_the_next_one(self):
        with patch.dict(os.environ, {"SEMI_SYNC_MS": "1000"}):
            member = Member(acknowledges="0", is_set="1")
            acknowledge(member)
            self.assertIn("START SLAVE '' IO_THREAD", member.asked)

    def test_a_setting_that_the_primary_was_not_told_is_reported(self):
        def wrong(io="Yes", **report):
            follows = {"Slave_IO_Running": io, "Slave_SQL_Running": "Yes"}
            member = types.SimpleNamespace(is_primary=False, follows=follows)
            more = {"db-0": {"awaits": "0", "acknowledges": "1", "is_heard": "1", **report}}
            return list(mariadb_check.wrong_semi_sync(types.SimpleNamespace(servers={"db-0": member}), more))

        self.assertEqual(wrong(is_heard="0"), [], "asynchronous")
        with patch.dict(os.environ, {"SEMI_SYNC_MS": "1000"}):
            (why,) = wrong(is_heard="0")
            self.assertRegex(
                why, "^db-0: rpl_semi_sync_slave_enabled is on, and its connection .*db-0/mariadb/restore$"
            )
            self.assertEqual(wrong(), [])
            self.assertEqual(wrong(io="No", is_heard="0"), [], "the reason is another one")
            (why,) = wrong(acknowledges="0", is_heard="0")
            self.assertRegex(why, "rpl_semi_sync_slave_enabled is off")

    def test_a_restore_of_a_replica_that_runs_sees_to_it(self):
        member, primary = Member(), types.SimpleNamespace(vm="db-1")
        with (
            patch.dict(os.environ, {"SEMI_SYNC_MS": "1000"}),
            patch.object(mariadb, "names_connections", lambda here: ""),
            patch.object(mariadb, "is_following", lambda here, primary: True),
            patch.object(mariadb, "runs", lambda here: True),
        ):
            mariadb.rejoin(member, primary)
        self.assertIn("SET GLOBAL rpl_semi_sync_slave_enabled = 1", member.asked)


if __name__ == "__main__":
    unittest.main()
