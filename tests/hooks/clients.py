"""A client program for several requests: answers, warnings, and the end of the program."""

import os
import sys
import tempfile
import unittest
from unittest.mock import patch

import allclear_hook
from allclear_hook import Failed, Unreachable
from client import MOST_WARNINGS, Client, Lost
from settings import Clock

# Executes the command of each line, and ends each answer with `;END`.
PROGRAM = r"""
import os, sys

def out(text):
    os.write(1, text.encode())

for line in sys.stdin:
    verb, _, rest = line.rstrip("\n").partition(" ")
    if verb == "answer":
        out(rest + ";END")
    elif verb == "in-parts":
        for part in ("an", "swer;E", "N", "D"):
            out(part)
    elif verb == "bytes":
        os.write(1, b"\xff\xfe;END")
    elif verb == "warn":
        os.write(2, rest.encode() + b"\n")
        out("answered;END")
    elif verb == "flood":
        for number in range(20000):
            os.write(2, b"warning %d: there is something about this row\n" % number)
        out("answered;END")
    elif verb == "deaf-of-warnings":
        os.close(2)
        out("answered;END")
    elif verb == "end-slowly":
        os.close(1)
        open(rest).read()
        os.write(2, b"FATAL: it says no\n")
        break
    elif verb == "end":
        os.close(1)
        if rest:
            os.write(2, b"a warning\n" + rest.encode() + b"\n")
        break
"""
# Longer than any step takes on a busy machine.
LIMIT = 60


class Conversation(unittest.TestCase):
    def setUp(self):
        self.client = Client("db-0", [sys.executable, "-c", PROGRAM])
        self.addCleanup(self.client.close)

    def ask(self, text, count=1):
        self.client.say(f"{text}\n")
        return self.client.hear(";END", LIMIT, count)

    def test_answers_are_told_apart_by_their_mark(self):
        self.assertEqual(self.ask("answer one"), ["one"])
        self.assertEqual(self.ask("in-parts"), ["answer"])
        self.client.say("answer two\nanswer three\nanswer four\n")
        self.assertEqual(self.client.hear(";END", LIMIT, 2), ["two", "three"])
        self.assertEqual(self.client.hear(";END", LIMIT), ["four"], "what was said beyond is kept")

    def test_what_is_no_text_is_no_reason_to_fail(self):
        self.assertEqual(self.ask("bytes"), ["\ufffd\ufffd"])

    def test_a_warning_is_no_answer(self):
        self.assertEqual(self.ask("warn collation version mismatch"), ["answered"])
        self.assertEqual(self.ask("answer one"), ["one"])
        self.assertEqual(self.client.warnings(), "collation version mismatch")
        self.assertEqual(self.client.warnings(), "", "they are told once")
        self.assertEqual(self.ask("warn another"), ["answered"])
        self.assertEqual(self.client.warnings(), "another")

    def test_warnings_without_end_fill_no_memory_and_hold_nothing_up(self):
        self.assertEqual(self.ask("flood"), ["answered"])
        self.assertLessEqual(len(self.client._warned), MOST_WARNINGS)
        warned = self.client.warnings()
        self.assertLessEqual(len(warned), MOST_WARNINGS)
        self.assertTrue(warned.endswith("warning 19999: there is something about this row"), warned[-100:])

    def test_who_closes_its_standard_error_is_heard_all_the_same(self):
        self.assertEqual(self.ask("deaf-of-warnings"), ["answered"])
        self.assertEqual(self.client.warnings(), "")
        self.assertEqual(self.ask("answer one"), ["one"])

    def test_who_is_late_is_never_heard_again(self):
        self.client.say("silence\n")
        late = "^db-0: did not answer within 0.1 s$"
        with self.assertRaisesRegex(Unreachable, late) as raised:
            self.client.hear(";END", 0.1)
        self.assertNotIsInstance(raised.exception, Lost, "the server may be at work")
        # A later output would be the answer to the previous question.
        with self.assertRaisesRegex(Unreachable, late):
            self.client.say("answer two\n")
        with self.assertRaisesRegex(Unreachable, late):
            self.client.hear(";END", LIMIT)
        self.assertIsNotNone(self.client._process.poll(), "and it has ended")

    def test_half_an_answer_is_none(self):
        self.client.say("in-parts\n")
        with self.assertRaisesRegex(Unreachable, "did not answer"):
            self.client.hear(";END", 0.1, count=2)

    def test_who_ends_says_why(self):
        with self.assertRaisesRegex(Unreachable, "^db-0: FATAL: it says no$"):
            self.ask("end FATAL: it says no")
        with self.assertRaisesRegex(Unreachable, "^db-0: FATAL: it says no$"):
            self.ask("answer one")

    def test_why_it_ended_is_waited_for(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = f"{folder.name}/go"
        os.mkfifo(path)
        why_it_was_lost = self.client._why_it_was_lost

        def lost():
            # Its output has ended; only now the program may print the reason.
            with open(path, "w"):
                pass
            return why_it_was_lost()

        with (
            patch.object(allclear_hook, "time", Clock()),
            patch.object(self.client, "_why_it_was_lost", lost),
            self.assertRaisesRegex(Unreachable, "^db-0: FATAL: it says no$"),
        ):
            self.ask(f"end-slowly {path}")

    def test_who_ends_without_a_word_has_lost_the_connection(self):
        with self.assertRaisesRegex(Lost, "^db-0: the connection was lost$"):
            self.ask("end")

    def test_who_has_ended_before_it_is_asked_says_why(self):
        self.client.say("end FATAL: it says no\n")
        self.client._process.wait()
        # The pipe is broken now.
        self.client.say("answer one\n")
        with self.assertRaisesRegex(Unreachable, "^db-0: FATAL: it says no$"):
            self.client.hear(";END", LIMIT)

    def test_a_warning_of_earlier_is_not_why_it_ended_when_it_was_asked_for(self):
        self.ask("warn of no importance")
        self.assertEqual(self.client.warnings(), "of no importance")
        with self.assertRaisesRegex(Unreachable, "^db-0: the connection was lost$"):
            self.ask("end")

    def test_a_signal_to_the_hook_is_none_to_it(self):
        self.assertNotEqual(os.getpgid(self.client._process.pid), os.getpgid(0))


class Beginning(unittest.TestCase):
    def test_what_cannot_be_run_has_failed(self):
        with self.assertRaisesRegex(Failed, "^/nowhere/psql cannot be run: No such file or directory$"):
            Client("db-0", ["/nowhere/psql"])

    def test_it_has_the_environment_that_is_given(self):
        program = "import os; os.write(1, (os.environ.get('GIVEN', '-') + ';END').encode())"
        given = Client("db-0", [sys.executable, "-c", program], {"GIVEN": "of the call"})
        self.addCleanup(given.close)
        self.assertEqual(given.hear(";END", LIMIT), ["of the call"])

    def test_it_ends_with_its_input(self):
        client = Client("db-0", [sys.executable, "-c", PROGRAM])
        self.addCleanup(client.close)
        # The same happens when the hook is killed.
        client._input.close()
        self.assertEqual(client._process.wait(LIMIT), 0)


if __name__ == "__main__":
    unittest.main()
