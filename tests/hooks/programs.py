"""Waiting in hooks, and calls of system programs."""

import contextlib
import io
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest.mock import patch

import allclear_hook
from allclear_hook import Failed, Unreachable, call, progress, until
from settings import Clock


class Waiting(unittest.TestCase):
    def setUp(self):
        self.clock = Clock()
        patched = patch.object(allclear_hook, "time", self.clock)
        patched.start()
        self.addCleanup(patched.stop)

    def test_it_ends_with_what_was_said(self):
        said = iter([None, "", "there", "later"])
        self.assertEqual(until(lambda: next(said), 60), "there")
        self.assertEqual(next(said), "later", "it is not asked again")

    def test_what_never_holds_is_asked_until_the_time_is_up(self):
        asked = []
        said = until(lambda: asked.append(self.clock.now), 1, every=0.25)
        self.assertIsNone(said)
        self.assertEqual(asked, [100, 100.25, 100.5, 100.75, 101])
        self.assertEqual(until(list, 1), [], "the last word, whatever it is")

    def test_it_is_asked_once_though_there_is_no_time(self):
        self.assertEqual(until(lambda: "there", 0), "there")
        self.assertEqual(self.clock.now, 100, "and nothing is waited for")


class Calling(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def program(self, text, mode=0o755):
        path = self.folder / "program"
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(mode)
        return path

    def test_its_answer_is_what_it_printed_and_nothing_else(self):
        program = self.program('echo "collation version mismatch" >&2; echo "$1"; echo "hint" >&2; echo "$2"')
        self.assertEqual(call([program, "one", "two"]), "one\ntwo\n")

    def test_what_is_no_text_is_no_reason_to_fail(self):
        # A server with messages in Latin-1, after a successful request.
        self.assertEqual(call([self.program(r"printf 'gel\366scht\n'")]), "gel\ufffdscht\n")
        with self.assertRaisesRegex(Unreachable, "^Zugriff verweigert f\ufffdr allclear$"):
            call([self.program(r"printf 'Zugriff verweigert f\374r allclear\n' >&2; exit 1")])

    def test_it_has_the_environment_and_the_input_that_are_given(self):
        program = self.program('echo "$GIVEN-$ALLCLEAR_TEST"; cat')
        (self.folder / "input").write_text("from a file")
        with patch.dict(os.environ, {"ALLCLEAR_TEST": "of the hook"}), open(self.folder / "input") as file:
            self.assertEqual(call([program], stdin=file), "-of the hook\nfrom a file")
            self.assertEqual(call([program], stdin=file, env={"GIVEN": "of the call"}), "of the call-\n")

    def test_the_last_line_of_its_errors_is_the_reason(self):
        program = self.program('echo "an answer"; echo "a warning" >&2; echo "FATAL: it says no" >&2; exit 3')
        with self.assertRaisesRegex(Unreachable, "^FATAL: it says no$"):
            call([program])

    def test_without_errors_the_last_line_of_its_output_is(self):
        with self.assertRaisesRegex(Unreachable, "^second$"):
            call([self.program("echo first; echo second; exit 1")])

    def test_without_a_word_its_status_is(self):
        program = self.program("exit 3")
        with self.assertRaisesRegex(Unreachable, f"^{program} ended with 3$"):
            call([program])

    def test_what_does_not_answer_is_not_waited_for(self):
        program = self.program("echo half of it; exec sleep 600")
        with (
            patch("allclear_hook.subprocess.run", wraps=subprocess.run) as run,
            self.assertRaisesRegex(Unreachable, f"^{program} did not answer within 0.1 s$"),
        ):
            call([program], seconds=0.1)
        self.assertEqual(run.call_args.kwargs["timeout"], 0.1)

    def test_what_is_not_installed_has_failed(self):
        with self.assertRaisesRegex(Failed, "^/nowhere/psql is not installed$"):
            call(["/nowhere/psql"])

    def test_what_may_not_be_run_has_failed(self):
        program = self.program("echo never", mode=0o644)
        with self.assertRaisesRegex(Failed, f"^{program} may not be run: .*Permission denied"):
            call([program])

    def test_progress_is_printed_at_once(self):
        output = io.TextIOWrapper(io.BytesIO(), write_through=False)
        with contextlib.redirect_stdout(output):
            progress("half of it")
            # Unflushed text would be missing.
            self.assertEqual(output.buffer.getvalue(), b"progress: half of it\n")

    def test_a_name_is_looked_for_where_programs_are(self):
        self.program("echo found")
        with patch.dict(os.environ, {"PATH": f"{self.folder}:{os.environ['PATH']}"}):
            self.assertEqual(call(["program"]), "found\n")
        self.assertEqual(call([sys.executable, "-c", "print(7)"]), "7\n")


if __name__ == "__main__":
    unittest.main()
