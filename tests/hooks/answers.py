"""The exit of a hook, and the choice of the function to call."""

import contextlib
import io
import os
import unittest
from unittest.mock import patch

from allclear_hook import Blocked, Done, Failed, NotApplicable, NotDone, Rejected, Unknown, Unreachable, checked, serve

# The exit statuses of deploy/docs/hooks.md.
STATUSES = {Done: 0, Failed: 1, NotApplicable: 11, NotDone: 12, Unknown: 13, Blocked: 75}


def served(hooks, *arguments, **environment):
    """The exit status of the hook, and the lines on standard error."""
    errors = io.StringIO()
    with (
        patch.dict(os.environ, environment),
        patch("sys.argv", ["/usr/lib/allclear/hooks/example.py", *arguments]),
        contextlib.redirect_stderr(errors),
    ):
        try:
            serve(hooks)
        except SystemExit as end:
            return end.code, errors.getvalue().splitlines()


def answering(answer):
    return {"failover": lambda told: answer}


def raising(error):
    def failover(told):
        raise error

    return {"failover": failover}


class Ends(unittest.TestCase):
    def test_each_answer_has_its_status(self):
        for answer, status in STATUSES.items():
            with self.subTest(answer.__name__):
                self.assertEqual(served(answering(answer()), "failover"), (status, []))
                self.assertEqual(served(raising(answer()), "failover"), (status, []))

    def test_the_reason_is_on_standard_error(self):
        for answer, status in STATUSES.items():
            with self.subTest(answer.__name__):
                self.assertEqual(served(answering(answer("why")), "failover"), (status, ["why"]))
                self.assertEqual(served(raising(answer("why")), "failover"), (status, ["why"]))

    def test_who_answers_nothing_has_done_it(self):
        self.assertEqual(served(answering(None), "failover"), (0, []))

    def test_a_server_that_does_not_answer_is_tried_again(self):
        self.assertEqual(served(raising(Unreachable("db-1: timeout")), "failover"), (75, ["db-1: timeout"]))

    def test_a_login_that_is_refused_has_failed_and_the_server_is_ready(self):
        error = Rejected("db-1: access denied")
        self.assertEqual(served(raising(error), "failover"), (1, ["db-1: access denied"]))
        ready = {"ready": raising(error)["failover"]}
        self.assertEqual(served(ready, "ready", ALLCLEAR_VM="db-1"), (0, ["db-1: access denied"]))
        self.assertEqual(served(ready, "ready", ALLCLEAR_VM="db-2"), (1, ["db-1: access denied"]))

    def test_what_goes_wrong_has_failed_and_the_last_line_says_why(self):
        status, errors = served(raising(ValueError("it says no")), "failover")
        self.assertEqual((status, errors[-1]), (1, "ValueError: it says no"))
        self.assertIn("Traceback (most recent call last):", errors, "whoever wants to mend it finds the place")


HOOKS = {
    "failover": lambda told: Failed("run"),
    "confirm-failover": lambda told: Failed("confirm"),
    "drain": lambda told: Failed(f"drain for {told.intent}"),
}


class Calls(unittest.TestCase):
    def test_the_intent_chooses_the_function(self):
        for intent in ("run", "confirm"):
            self.assertEqual(served(HOOKS, "failover", ALLCLEAR_INTENT=intent), (1, [intent]))

    def test_one_function_may_do_for_all_intents(self):
        for intent in ("run", "confirm", "undo"):
            expected = (1, [f"drain for {intent}"])
            self.assertEqual(served(HOOKS, "drain", ALLCLEAR_INTENT=intent), expected)

    def test_a_function_is_handed_what_the_hook_was_told(self):
        hooks = {"failover": lambda told: Failed(f"{told.vm} {told.event}")}
        told = {"MEMBERS": "db-0=h:1", "ALLCLEAR_VM": "_DB-0", "ALLCLEAR_EVENT_ID": "E-1"}
        self.assertEqual(served(hooks, "failover", **told), (1, ["db-0 E-1"]))

    def test_what_is_not_known_is_answered_with_what_is(self):
        usage = ["usage: /usr/lib/allclear/hooks/example.py confirm-failover|drain|failover"]
        for arguments in ([], ["fail-over"], ["failover", "drain"]):
            with self.subTest(arguments):
                self.assertEqual(served(HOOKS, *arguments), (2, usage))


class Checks(unittest.TestCase):
    def check(self, *wrong):
        return served({"check": lambda told: checked(iter(wrong))}, "check")

    def test_nothing_wrong_is_done(self):
        self.assertEqual(self.check(), (0, []))

    def test_one_thing_is_the_reason(self):
        self.assertEqual(self.check("grant SUPER to allclear"), (1, ["grant SUPER to allclear"]))

    def test_several_have_a_line_each_and_all_are_in_the_last(self):
        expected = ["grant SUPER to allclear", "set wal_log_hints", "grant SUPER to allclear; set wal_log_hints"]
        self.assertEqual(self.check(*expected[:2]), (1, expected))


if __name__ == "__main__":
    unittest.main()
