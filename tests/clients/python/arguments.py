"""The Python library refuses wrong arguments at once. The error names the argument, the value and a remedy."""

import functools
import unittest
import unittest.mock

from allclear_workload import Hook, OnAbsent, OnFailure, Phase, Role, RunsOn, Workload


async def drain(step):
    pass


def plain(step):
    pass


class Drainer:
    async def drain(self, step):
        pass

    async def __call__(self, step):
        pass


class Plain:
    def __call__(self, step):
        pass


def decorated(function):
    @functools.wraps(function)
    def wrapper(step):
        return function(step)

    return wrapper


def in_a_thread(function):
    @functools.wraps(function)
    async def wrapper(step):
        return function(step)

    return wrapper


def workload(**arguments):
    return Workload("orders", "/run/allclear/workloads.sock", **arguments)


class Arguments(unittest.TestCase):
    def refused(self, error, text, make, *arguments, **named):
        with self.assertRaises(error) as raised:
            make(*arguments, **named)
        self.assertIn(text, str(raised.exception))

    def test_a_hook_without_a_function_is_refused(self):
        text = "run of the DRAIN hook is None: give an async function of a Step"
        self.refused(TypeError, text, Hook, Phase.DRAIN, None)
        text = "undo of the DRAIN hook 'queue' is True: give an async function"
        self.refused(TypeError, text, Hook, Phase.DRAIN, drain, undo=True, name="queue")

    def test_a_function_that_is_not_async_is_refused(self):
        text = "run of the DRAIN hook 'queue' is plain, which is not async: define it with `async def`"
        self.refused(TypeError, text, Hook, Phase.DRAIN, plain, name="queue")
        for argument in ("confirm", "undo", "dry_run"):
            text = f"{argument} of the DRAIN hook is plain, which is not async"
            self.refused(TypeError, text, Hook, Phase.DRAIN, drain, **{argument: plain})
        for handler in (Plain(), functools.partial(plain, None), decorated(plain), print, Drainer):
            self.refused(TypeError, "which is not async", Hook, Phase.DRAIN, handler)

    def test_every_form_of_an_async_function_is_accepted(self):
        for handler in (
            drain, Drainer().drain, Drainer(), functools.partial(drain, None), functools.partial(Drainer(), None),
            decorated(drain), in_a_thread(plain), lambda _: drain(None), unittest.mock.AsyncMock(),
        ):  # fmt: skip
            self.assertIs(Hook(Phase.DRAIN, handler, confirm=handler).run, handler)

    def test_a_text_in_the_place_of_a_list_is_refused(self):
        text = "after is 'pooler': give a list of texts, such as ['pooler']"
        self.refused(TypeError, text, workload, after="pooler")
        self.refused(TypeError, "after is [1]: give a list of texts, such as ['1']", workload, after=[1])
        text = "event_types of the DRAIN hook is 'Reboot': give a list of texts, such as ['Reboot']"
        self.refused(TypeError, text, Hook, Phase.DRAIN, drain, event_types="Reboot")
        hook = Hook(Phase.DRAIN, drain, event_types=(word for word in ("Reboot", "Redeploy")))
        self.assertEqual(hook.message.event_types, ["Reboot", "Redeploy"])

    def test_a_duration_out_of_range_or_of_another_type_is_refused(self):
        seconds = "give a number of seconds, "
        for value in (-1, 0, float("nan"), float("inf")):
            text = f"timeout of the DRAIN hook is {value!r}: {seconds}at least 0.001"
            self.refused(ValueError, text, Hook, Phase.DRAIN, drain, timeout=value)
            self.refused(ValueError, f"lease is {value!r}: {seconds}at least 1", workload, lease=value)
            self.refused(ValueError, f"retain is {value!r}: {seconds}at least 1", workload, retain=value)
        text = f"timeout of the DRAIN hook is '60s': {seconds}such as 60"
        self.refused(TypeError, text, Hook, Phase.DRAIN, drain, timeout="60s")
        for argument in ("worst", "min_freeze", "fresh_for"):
            text = f"{argument} of the DRAIN hook is -1: {seconds}at least 0"
            self.refused(ValueError, text, Hook, Phase.DRAIN, drain, confirm=drain, **{argument: -1})
        self.assertEqual(Hook(Phase.DRAIN, drain, timeout=0.5, min_freeze=0).message.timeout_ms, 500)

    def test_a_duration_that_no_message_can_carry_is_refused(self):
        self.refused(ValueError, "retain is 1e+30: give a number of seconds, ", workload, retain=1e30)
        text = "worst of the DRAIN hook is 1e+30: give a number of seconds, "
        self.refused(ValueError, text, Hook, Phase.DRAIN, drain, worst=1e30)

    def test_a_number_of_attempts_out_of_range_or_of_another_type_is_refused(self):
        for value, error in ((-1, ValueError), (0, ValueError), (101, ValueError), ("2", TypeError), (True, TypeError)):
            text = f"attempts of the DRAIN hook is {value!r}: give a whole number from 1 to 100"
            self.refused(error, text, Hook, Phase.DRAIN, drain, attempts=value)
        self.assertEqual(Hook(Phase.DRAIN, drain, attempts=3).message.attempts, 3)

    def test_a_value_that_is_no_text_is_refused(self):
        self.refused(TypeError, "name is 5: give a text", Workload, 5, "/run/allclear/workloads.sock")
        self.refused(TypeError, "group is 5: give a text", workload, group=5)
        self.refused(TypeError, "name of the DRAIN hook is 5: give a text", Hook, Phase.DRAIN, drain, name=5)
        self.refused(TypeError, "socket is 5: give the path of a file", Workload, "orders", 5)
        self.refused(TypeError, "journal is 5: give the path of a file", workload, journal=5)

    def test_a_switch_that_is_not_true_or_false_is_refused(self):
        for argument in ("optional_if_short", "exclusive"):
            text = f"{argument} of the DRAIN hook is 'yes': give True or False"
            self.refused(TypeError, text, Hook, Phase.DRAIN, drain, **{argument: "yes"})

    def test_hooks_that_are_no_hooks_are_refused(self):
        text = "hooks has drain: give a Hook, such as Hook(Phase.DRAIN, drain)"
        self.refused(TypeError, text, workload, hooks=[drain])
        self.refused(TypeError, "hooks is ", workload, hooks=Hook(Phase.DRAIN, drain))
        self.refused(TypeError, "on_standing is 5: give a function of a Standing", workload, on_standing=5)

        async def never_runs(standing):
            pass

        self.refused(TypeError, "on_standing is async, and would never run", workload, on_standing=never_runs)

    def test_a_value_outside_of_its_enumeration_is_refused(self):
        text = "role is 'primary': give one of Role.PRIMARY, Role.REPLICA"
        self.refused(TypeError, text, workload, role="primary")
        self.refused(ValueError, "role is 7: give one of Role.", workload, role=7)
        self.refused(TypeError, "on_absent is 'hold': give one of OnAbsent.", workload, on_absent="hold")
        self.refused(TypeError, "phase is 'drain': give one of Phase.", Hook, "drain", drain)
        for argument, kind in (("on_failure", OnFailure), ("runs_on", RunsOn)):
            text = f"{argument} of the DRAIN hook is 'any': give one of {kind.__name__}."
            self.refused(TypeError, text, Hook, Phase.DRAIN, drain, **{argument: "any"})
        self.assertIs(workload(role=Role.PRIMARY, on_absent=OnAbsent.SKIP).role, Role.PRIMARY)

    def test_a_role_is_not_set_before_the_workload_is_entered(self):
        orders = workload()
        text = "role is set to Role.PRIMARY before `async with`: give Workload(role=Role.PRIMARY)"
        self.refused(RuntimeError, text, setattr, orders, "role", Role.PRIMARY)
        self.refused(TypeError, "role is 'primary': give one of Role.", setattr, orders, "role", "primary")


if __name__ == "__main__":
    unittest.main()
