"""The facts kept between attempts."""

import json
import os
import stat
import tempfile
import unittest
from pathlib import Path
from unittest.mock import patch

from allclear_hook import Failed, Memory, Told, Tries


class Remembering(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        # The folder does not exist yet.
        self.folder = Path(folder.name, "state", "hooks")
        patched = patch.dict(os.environ, {"STATE_DIR": str(self.folder)})
        patched.start()
        self.addCleanup(patched.stop)


class Facts(Remembering):
    def test_nothing_is_remembered_at_first(self):
        self.assertEqual(Memory("postgresql").recall(), {})
        self.assertFalse(self.folder.exists(), "who only looks changes nothing")

    def test_what_is_remembered_is_recalled_until_it_is_forgotten(self):
        facts = {"position": "0/3000060", "slots": ["db_1"], "was_on": True}
        Memory("postgresql").remember(facts)
        self.assertEqual(Memory("postgresql").recall(), facts)
        self.assertEqual(Memory("pgbouncer").recall(), {}, "each name for itself")
        Memory("postgresql").remember({"position": None})
        self.assertEqual(Memory("postgresql").recall(), {"position": None}, "the whole of it is replaced")
        for _ in range(2):
            Memory("postgresql").forget()
            self.assertEqual(Memory("postgresql").recall(), {})

    def test_what_cannot_be_read_is_not_taken_for_nothing(self):
        memory = Memory("postgresql")
        memory.remember({})
        for text in (b"", b'{"position": ', b"\xff\xfe"):
            memory.path.write_bytes(text)
            with (
                self.subTest(text),
                self.assertRaisesRegex(Failed, f"^{memory.path} cannot be read .*; look at it, and remove it$"),
            ):
                memory.recall()

    def test_what_is_no_object_is_not_taken_for_one(self):
        memory = Memory("postgresql")
        memory.remember({})
        for text in ("[]", "null", "7", '"text"'):
            memory.path.write_text(text)
            with self.subTest(text), self.assertRaisesRegex(Failed, f"^{memory.path} holds no object; "):
                memory.recall()

    def test_who_is_killed_while_it_writes_leaves_what_was_there(self):
        memory = Memory("postgresql")
        memory.remember({"position": "old"})

        def half(_facts, file):
            file.write('{"posi')
            file.flush()
            raise KeyboardInterrupt

        with patch("allclear_hook.json.dump", half), self.assertRaises(KeyboardInterrupt):
            memory.remember({"position": "new"})
        self.assertEqual(memory.recall(), {"position": "old"})
        memory.remember({"position": "newer"})
        self.assertEqual(memory.recall(), {"position": "newer"})

    def test_it_is_on_the_disk_before_it_has_its_name_and_so_is_the_name(self):
        memory = Memory("postgresql")
        memory.remember({"position": "old"})
        synced = []

        def sync(handle):
            is_folder = stat.S_ISDIR(os.fstat(handle).st_mode)
            whole = "" if is_folder else Path(f"/proc/self/fd/{handle}").read_text()
            synced.append((is_folder, whole and json.loads(whole), json.loads(memory.path.read_text())))

        new = {"position": "new"}
        with patch("allclear_hook.os.fsync", sync):
            memory.remember(new)
        self.assertEqual(synced, [(False, new, {"position": "old"}), (True, "", new)])


class Attempts(Remembering):
    def tries(self, event="E-1", **more):
        return Tries(Told({"ALLCLEAR_EVENT_ID": event}), "redis", **more)

    def test_writes_are_stopped_in_vain_twice_and_not_again(self):
        self.tries().check()
        self.tries().was_in_vain("the first reason")
        self.tries().check()
        self.tries().was_in_vain("db-1 did not catch up")
        why = "^writes were stopped 2 times in vain, and are not stopped again for this event: db-1 did not catch up$"
        for _ in range(2):
            with self.assertRaisesRegex(Failed, why):
                self.tries().check()

    def test_once_may_be_all(self):
        self.tries(most=1).check()
        self.tries(most=1).was_in_vain("it says no")
        with self.assertRaisesRegex(Failed, "^writes were stopped once in vain, .*: it says no$"):
            self.tries(most=1).check()

    def test_another_event_begins_anew(self):
        for _ in range(2):
            self.tries().was_in_vain("it says no")
        self.tries("E-2").check()
        self.tries("E-2").was_in_vain("it says no again")
        self.tries("E-2").check()

    def test_hook_sets_count_for_themselves(self):
        for _ in range(2):
            self.tries().was_in_vain("it says no")
        Tries(Told({"ALLCLEAR_EVENT_ID": "E-1"}), "mariadb").check()
        self.assertEqual(Memory("redis").recall(), {}, "and beside what the hook remembers")


if __name__ == "__main__":
    unittest.main()
