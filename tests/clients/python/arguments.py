"""The Python library refuses wrong arguments at once. The error names the argument, the value and a remedy."""

import functools
import unittest
import unittest.mock

from allclear_workload import Hook, Phase, Workload


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


if __name__ == "__main__":
    unittest.main()
