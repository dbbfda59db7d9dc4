"""The environment of a hook: the variables of allclear, and the hook's `env` table."""

import os
import unittest
from unittest.mock import patch

import allclear_hook
from allclear_hook import Failed, Told, members, number, setting

MEMBERS = "db-0=10.0.0.4:5432 Db-1=10.0.0.5:5432 db-2=10.0.0.6:5432"


class Clock:
    """A replacement of the module `time`; only `sleep` advances the time."""

    def __init__(self):
        self.now = 100.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


class WhatIsTold(unittest.TestCase):
    def test_vms_are_spelled_as_members_spells_them(self):
        told = Told({
            "MEMBERS": MEMBERS, "ALLCLEAR_VM": "_DB-0", "ALLCLEAR_EVENT_RESOURCES": "DB-0 _db-1",
            "ALLCLEAR_AVOID_VMS": "dB-2", "ALLCLEAR_PREFER_VMS": "db-1 _Db-2",
        })  # fmt: skip
        self.assertEqual(told.vm, "db-0")
        self.assertEqual(told.affected, {"db-0", "Db-1"})
        self.assertEqual(told.avoid, {"db-0", "Db-1", "db-2"})
        self.assertEqual(told.prefer, ["Db-1", "db-2"])

    def test_a_vm_that_members_does_not_name_stays_as_it_is(self):
        told = Told({"MEMBERS": MEMBERS, "ALLCLEAR_VM": "Web-7", "ALLCLEAR_EVENT_RESOURCES": "_Web-8"})
        self.assertEqual((told.vm, told.affected), ("Web-7", {"Web-7", "_Web-8"}))
        self.assertEqual(Told({"ALLCLEAR_VM": "DB-0"}).vm, "DB-0")

    def test_an_underscore_within_a_name_is_part_of_it(self):
        told = Told({"MEMBERS": "db_0=10.0.0.4:1 db0=10.0.0.5:1", "ALLCLEAR_VM": "_DB_0"})
        self.assertEqual(told.vm, "db_0")

    def test_its_own_vm_is_affected_though_the_event_names_none(self):
        told = Told({"MEMBERS": MEMBERS, "ALLCLEAR_VM": "db-0", "ALLCLEAR_AVOID_VMS": "db-2"})
        self.assertEqual((told.affected, told.avoid), ({"db-0"}, {"db-0", "db-2"}))

    def test_what_is_preferred_comes_first_and_what_is_avoided_never(self):
        told = Told({
            "MEMBERS": "a=h:1 b=h:1 c=h:1 d=h:1 e=h:1", "ALLCLEAR_VM": "A", "ALLCLEAR_AVOID_VMS": "c",
            "ALLCLEAR_PREFER_VMS": "C E",
        })  # fmt: skip
        # VMs without a preference keep their order.
        self.assertEqual(told.in_order_of_preference(["a", "d", "b", "c", "e"]), ["e", "d", "b"])

    def test_intent_mode_and_event(self):
        told = Told({})
        self.assertEqual((told.intent, told.is_dry_run, told.event), ("run", False, ""))
        told = Told({"ALLCLEAR_INTENT": "undo", "ALLCLEAR_MODE": "dry_run", "ALLCLEAR_EVENT_ID": "E-1"})
        self.assertEqual((told.intent, told.is_dry_run, told.event), ("undo", True, "E-1"))
        self.assertFalse(Told({"ALLCLEAR_MODE": "live"}).is_dry_run)

    def test_time_left_goes_down_to_nothing(self):
        clock = Clock()
        with patch.object(allclear_hook, "time", clock):
            told, untold = Told({"ALLCLEAR_TIME_LEFT_MS": "2500"}), Told({})
            self.assertEqual((told.seconds_left(), untold.seconds_left()), (2.5, 60))
            clock.now += 2
            self.assertEqual(told.seconds_left(), 0.5)
            clock.now += 2
            self.assertEqual(told.seconds_left(), 0)


class EnvTable(unittest.TestCase):
    def test_a_setting_that_is_missing_is_named(self):
        with patch.dict(os.environ, {"PORT": "5"}, clear=True):
            self.assertEqual((setting("PORT", "6"), setting("OTHER", "6")), ("5", "6"))
            with self.assertRaisesRegex(Failed, "^OTHER is not set; give it in the hook's env table$"):
                setting("OTHER")

    def test_what_is_no_number_is_named(self):
        with patch.dict(os.environ, {"LAG": "1.5", "WRONG": "1,5", "NONE": "nan", "ENDLESS": "inf"}, clear=True):
            self.assertEqual((number("LAG", 3), number("OTHER", 3)), (1.5, 3))
            for name in ("NONE", "ENDLESS"):
                with self.assertRaisesRegex(Failed, f"^{name} is '.*', which is not a number$"):
                    number(name, 3)
            with self.assertRaisesRegex(Failed, "^WRONG is '1,5', which is not a number$"):
                number("WRONG", 3)

    def test_members_have_hosts_and_ports(self):
        told = "db-0=10.0.0.4:5432  db-1=[fd00::5]:5433\n db-2=pg.example.org:5434"
        expected = {"db-0": ("10.0.0.4", 5432), "db-1": ("fd00::5", 5433), "db-2": ("pg.example.org", 5434)}
        with patch.dict(os.environ, {"MEMBERS": told, "POOLERS": "db-0=10.0.0.4:6432"}, clear=True):
            self.assertEqual(members(), expected)
            self.assertEqual(members("POOLERS"), {"db-0": ("10.0.0.4", 6432)})

    def test_a_member_that_cannot_be_read_is_named(self):
        for word in ("db-1", "db-1=10.0.0.5", "db-1=:5432", "db-1=10.0.0.5:", "db-1=10.0.0.5:post", "10.0.0.5:5432"):
            with (
                self.subTest(word),
                patch.dict(os.environ, {"MEMBERS": f"db-0=10.0.0.4:5432 {word}"}, clear=True),
                self.assertRaisesRegex(Failed, f"^MEMBERS has '{word}', which is not VM=HOST:PORT$"),
            ):
                members()

    def test_members_that_are_missing_are_missed(self):
        with patch.dict(os.environ, clear=True), self.assertRaisesRegex(Failed, "^MEMBERS is not set; "):
            members()


if __name__ == "__main__":
    unittest.main()
