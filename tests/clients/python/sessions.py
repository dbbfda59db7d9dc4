"""The Python library against a replica of one process."""

import asyncio
import tempfile
import unittest

import grpc
from allclear_workload import Hook, Phase, Standing, StillRegistered, Workload, failed
from allclear_workload.messages import pb

SERVICE = "allclear.workload.v1.Workloads"


class Sessions(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.socket = f"{folder.name}/workloads.sock"

    async def serve(self, session=None):
        """A server; without `session` it does not serve workloads."""
        server = grpc.aio.server()
        if session:
            method = grpc.stream_stream_rpc_method_handler(
                session,
                request_deserializer=pb.FromWorkload.FromString,
                response_serializer=pb.ToWorkload.SerializeToString,
            )
            server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(SERVICE, {"Session": method})])
        server.add_insecure_port(f"unix:{self.socket}")
        await server.start()
        self.addAsyncCleanup(server.stop, None)

    async def test_the_outcome_of_a_lambda_that_is_not_async_is_unknown(self):
        outcome = asyncio.get_running_loop().create_future()

        async def session(received, context):
            await anext(received)
            yield pb.ToWorkload(welcome=pb.Welcome(lease_ms=10000, vm="vm-0"))
            yield pb.ToWorkload(step=pb.Step(attempt="a", step="s", intent=1, phase=Phase.DRAIN, time_left_ms=10000))
            async for message in received:
                if message.HasField("report") and not outcome.done():
                    outcome.set_result(message.report.outcome)

        await self.serve(session)
        async with Workload("orders", self.socket, [Hook(Phase.DRAIN, lambda step: 7)]):
            ended = await asyncio.wait_for(outcome, 10)
        self.assertEqual(ended.unknown, "the hook's code is not async: it returned 7; define it with `async def`")

    async def test_a_dry_run_calls_a_check_and_no_other_hook(self):
        called, outcomes, ended = [], {}, asyncio.Event()

        async def hook(step):
            called.append(step.phase)
            return failed("no right to switch")

        async def session(received, context):
            await anext(received)
            yield pb.ToWorkload(welcome=pb.Welcome(lease_ms=10000, vm="vm-0"))
            for phase in (Phase.CHECK, Phase.DRAIN):
                step = pb.Step(attempt=phase.name, step=phase.name, intent=1, mode=2, phase=phase, time_left_ms=10000)
                yield pb.ToWorkload(step=step)
            async for message in received:
                if message.HasField("report"):
                    outcomes[message.report.attempt] = message.report.outcome
                if len(outcomes) == 2:
                    ended.set()

        await self.serve(session)
        async with Workload("orders", self.socket, [Hook(Phase.CHECK, hook), Hook(Phase.DRAIN, hook)]):
            await asyncio.wait_for(ended.wait(), 10)
        self.assertEqual(outcomes["CHECK"].failed, "no right to switch")
        self.assertTrue(outcomes["DRAIN"].HasField("not_applicable"))
        self.assertEqual(called, [Phase.CHECK])

    async def test_a_warning_about_the_registration_names_its_place(self):
        async def session(received, context):
            await anext(received)
            places = {"hooks[0].can_confirm": "a doubt", "": "a doubt without a place"}
            problems = [pb.Problem(place=place or None, message=message) for place, message in places.items()]
            yield pb.ToWorkload(welcome=pb.Welcome(lease_ms=10000, vm="vm-0", problems=problems))
            await anext(received)

        await self.serve(session)
        with self.assertLogs("allclear_workload", "WARNING"):
            standing = await self.first_standing()
        self.assertEqual(standing.problems, ("hooks[0].can_confirm: a doubt", "a doubt without a place"))

    async def test_a_stop_waits_for_handlers_as_long_as_it_is_told(self):
        async def session(received, context):
            await anext(received)
            yield pb.ToWorkload(welcome=pb.Welcome(lease_ms=10000, vm="vm-0"))
            yield pb.ToWorkload(step=pb.Step(attempt="a", step="s", intent=1, phase=Phase.DRAIN, time_left_ms=10000))
            async for message in received:
                if message.HasField("report"):
                    outcomes.append(message.report.outcome)
                    yield pb.ToWorkload(acknowledged=pb.Acknowledged(attempt="a"))

        await self.serve(session)
        for longest, ends in ((0, False), (10, True)):
            begun, goes_on, outcomes = asyncio.Event(), asyncio.Event(), []

            async def drain(step, begun=begun, goes_on=goes_on):
                begun.set()
                await goes_on.wait()

            workload = Workload("orders", self.socket, [Hook(Phase.DRAIN, drain)])
            async with workload:
                await asyncio.wait_for(begun.wait(), 10)
                stop = asyncio.ensure_future(workload.stop(handlers_within=longest))
                if not ends:
                    await asyncio.wait_for(stop, 10)
                goes_on.set()
                await asyncio.wait_for(stop, 10)
            self.assertEqual([outcome.HasField("done") for outcome in outcomes], [True] if ends else [])

    async def test_a_workload_that_was_never_accepted_does_not_claim_a_registration(self):
        async with Workload("orders", self.socket) as orders:
            with self.assertRaisesRegex(StillRegistered, "^the workload was not connected, so nothing was taken back"):
                await orders.leave()

    async def test_a_workload_that_was_stopped_does_not_claim_that_it_left(self):
        async def session(received, context):
            await anext(received)
            yield pb.ToWorkload(welcome=pb.Welcome(lease_ms=10000, vm="vm-0"))
            async for message in received:
                if message.HasField("goodbye"):
                    unregistered.append(message.goodbye.unregister)

        await self.serve(session)
        unregistered, connected = [], asyncio.Queue()
        for stops in (True, False):
            async with Workload("orders", self.socket, on_standing=connected.put_nowait) as orders:
                self.assertEqual((await asyncio.wait_for(connected.get(), 10)).word, "connected")
                if stops:
                    await orders.stop()
                    with self.assertRaisesRegex(StillRegistered, "not taken back: it was stopped before; make a new"):
                        await orders.leave()
                else:
                    await orders.leave()
                    await orders.leave()
            self.assertEqual((await asyncio.wait_for(connected.get(), 10)).word, "stopped")
        self.assertEqual(unregistered, [False, True])

    async def test_an_exception_of_on_standing_does_not_end_the_connection(self):
        async def session(received, context):
            hellos.append(await anext(received))
            yield pb.ToWorkload(welcome=pb.Welcome(lease_ms=10000, vm="vm-0"))
            if len(hellos) == 2:
                again.set()
                await anext(received)

        def fails(standing):
            raise KeyError(standing.word)

        await self.serve(session)
        hellos, again = [], asyncio.Event()
        with self.assertLogs("allclear_workload", "ERROR") as logged:
            async with Workload("orders", self.socket, on_standing=fails):
                await asyncio.wait_for(again.wait(), 10)
        self.assertIn("on_standing failed at Standing(word='connected'", logged.output[0])

    async def test_an_estimate_beyond_the_bounds_counts_as_the_bound(self):
        said, heard, ended = [], asyncio.Event(), asyncio.Event()

        async def session(received, context):
            await anext(received)
            yield pb.ToWorkload(welcome=pb.Welcome(lease_ms=10000, vm="vm-0"))
            yield pb.ToWorkload(step=pb.Step(attempt="a", step="s", intent=1, phase=Phase.DRAIN, time_left_ms=10000))
            async for message in received:
                if message.HasField("report"):
                    said.append(message.report)
                if len(said) == 2:
                    heard.set()
                if len(said) == 3:
                    ended.set()

        async def drain(step):
            step.more_time(float("inf"))
            step.expect(-1)
            await asyncio.wait_for(heard.wait(), 10)
            step.more_time("1h")

        await self.serve(session)
        async with Workload("orders", self.socket, [Hook(Phase.DRAIN, drain)]):
            await asyncio.wait_for(ended.wait(), 10)
        self.assertEqual(said[0].progress.expected_end_in_ms, 0)
        self.assertEqual(said[1].extension.needs_ms, 30 * 24 * 3600 * 1000)
        self.assertEqual(said[2].outcome.failed, "more_time is '1h': give a number of seconds, such as 60")

    async def test_a_workload_is_entered_once(self):
        orders = Workload("orders", self.socket)
        async with orders:
            with self.assertRaisesRegex(RuntimeError, "this Workload was entered before: make a new Workload"):
                await orders.__aenter__()
        with self.assertRaisesRegex(RuntimeError, "this Workload was entered before: make a new Workload"):
            async with orders:
                pass

    async def first_standing(self):
        """The standing after the first connection."""
        standings = asyncio.Queue()
        async with Workload("orders", self.socket, on_standing=standings.put_nowait):
            return await asyncio.wait_for(standings.get(), 10)

    async def test_another_socket_of_the_replica_is_named(self):
        await self.serve()
        with self.assertLogs("allclear_workload", "WARNING"):
            standing = await self.first_standing()
        self.assertEqual(standing.word, "refused")
        text = f"the server at {self.socket} does not serve workloads: give the path of `workloads.socket`"
        self.assertEqual(standing.why, f"{text}, by default /run/allclear/workloads.sock")

    async def test_a_refusal_without_a_text_has_its_code_as_the_reason(self):
        async def session(received, context):
            # An abort before the first message races with the write of this message.
            await anext(received)
            await context.abort(grpc.StatusCode.UNAVAILABLE)
            yield

        await self.serve(session)
        self.assertEqual(await self.first_standing(), Standing("dialling", why="UNAVAILABLE"))


if __name__ == "__main__":
    unittest.main()
