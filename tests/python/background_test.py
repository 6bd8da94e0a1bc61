#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""`await x_async ()`: every function that waits, on a thread of its own."""
import asyncio
import os
import sys
import threading

sys.path.insert(0, os.path.abspath(os.path.join(os.path.dirname(__file__), "../../python")))
import case
from case import FOREVER, Gio, GLib, Muster, MusterEngine
from gi import _gi
from gi.overrides import Muster as overrides
from muster import _calls

PATIENCE_S = 60


def waiting():
    """All functions that wait, and what has them."""
    for info in _gi.Repository.get_default().get_infos("Muster"):
        methods = [info] if isinstance(info, _gi.FunctionInfo) else info.get_methods() if hasattr(info, "get_methods") else []
        for function in methods:
            if _calls.Signature(function, overrides._Namespace).blocks:
                yield function, getattr(Muster, info.get_name()) if function is not info else Muster


class EveryCall(case.TestCase):
    def test_can_be_awaited(self):
        without = [function.get_symbol() for function, home in waiting() if not hasattr(home, function.get_name_unescaped() + "_async")]
        self.assertEqual(without, [])
        names = {function.get_symbol() for function, _ in waiting()}
        for name in ("session_run_op", "master_create_session", "saver_restore", "bundle_reader_read", "checkpoint_copy", "train"):
            self.assertIn("muster_" + name, names)

    def begin(self, function, cancellables):
        """The awaitable form of a function that waits until it is cancelled, as if it were the library's."""

        def wait_in_c(*args):
            own = next((each for each in args if isinstance(each, Gio.Cancellable)), None) or Gio.Cancellable.get_current()
            cancellables.append(own)
            ended = threading.Event()
            own.connect(lambda *_: ended.set())
            ended.wait(PATIENCE_S)
            own.set_error_if_cancelled()

        _, start = _calls.adapt(wait_in_c, function, overrides._Namespace)
        start = start.__func__ if isinstance(start, (classmethod, staticmethod)) else start
        before = [None] if function.is_method() or function.is_constructor() else []
        return lambda given: start(*before, *[given if name == "cancellable" else None
                                              for name in _calls.Signature(function, overrides._Namespace).names])

    def test_ends_with_its_task_at_once_and_leaves_the_callers_cancellable(self):
        async def every():
            for function, _ in waiting():
                used, given = [], Gio.Cancellable()
                call = self.begin(function, used)(given)
                call.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await call
                self.assertTrue(used[0].is_cancelled(), function.get_symbol())
                self.assertFalse(given.is_cancelled(), function.get_symbol())

        asyncio.run(every())

    def test_ends_with_the_callers_cancellable(self):
        async def every():
            for function, _ in waiting():
                if "cancellable" in _calls.Signature(function, overrides._Namespace).names:
                    given = Gio.Cancellable()
                    call = self.begin(function, [])(given)
                    given.cancel()
                    with self.assertRaises(GLib.Error):
                        await call

        asyncio.run(every())


class Cancelling(case.TestCase):
    def test_goes_on_until_the_call_has_ended(self):
        """What it was given is its own until then."""
        scaffold, may_end, has_ended = case.linreg(), threading.Event(), []
        session = case.session(scaffold)
        slow = _calls.awaitable("slow", lambda: lambda cancellable: (may_end.wait(PATIENCE_S), has_ended.append(True)), overrides._Namespace)

        async def program():
            task = asyncio.ensure_future(slow())
            task.cancel()
            asyncio.get_running_loop().call_soon(may_end.set)
            with self.assertRaises(asyncio.CancelledError):
                await task
            self.assertEqual(has_ended, [True])
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(_calls.awaitable("wait", lambda: wait_for, overrides._Namespace)(), 0)
            self.assertEqual(int(await session.fetch_async("global_step:0")), 0)

        def wait_for(cancellable):
            ended = threading.Event()
            cancellable.connect(lambda *_: ended.set())
            ended.wait(PATIENCE_S)

        asyncio.run(program())

    def test_the_feeds_are_those_of_the_call(self):
        scaffold = case.linreg()
        session, feeds = case.session(scaffold), {"x:0": [1.0], "y:0": [3.0]}

        async def program():
            call = session.run_async("loss:0", feeds)
            feeds.clear()
            return await call

        self.assertGreaterEqual(float(asyncio.run(program())), 0)

    def test_an_iteration_that_stops_is_an_error(self):
        def stop(cancellable):
            raise StopIteration("over")

        async def program():
            with self.assertRaisesRegex(RuntimeError, "over"):
                await _calls.awaitable("stop", lambda: stop, overrides._Namespace)()

        asyncio.run(program())


class Here(case.TestCase):
    def manager(self, scaffold):
        return Muster.SessionManager.new_for_ops(scaffold.graph(), scaffold.ready_op(), scaffold.ready_for_local_init_op(), scaffold.local_init_op())

    def test_a_model_is_trained_saved_and_restored(self):
        scaffold = case.linreg()
        saver = Muster.Saver.new(scaffold.meta_graph(), None)
        manager = self.manager(scaffold)
        feeds = {"x:0": [1.0, 2.0], "y:0": [3.0, 5.0]}

        async def program():
            session = await manager.prepare_session_async(MusterEngine.Master.new(), init_op=scaffold.init_op())
            _, loss = await session.run_async([scaffold.train_op(), "loss:0"], feeds, timeout=60)
            self.assertGreater(float(loss), 0)
            prefix = await saver.save_async(session, self.folder, 1)
            self.assertTrue(await saver.check_compatible_async(prefix))
            await session.run_async(scaffold.train_op(), feeds)
            self.assertTrue(await saver.restore_async(session, Muster.RestoreOptions.new(prefix, None)))
            step = int(await session.fetch_async(scaffold.global_step()))
            reader = await Muster.BundleReader.open_async(None, prefix)
            self.assertEqual(int(await reader.read_async("global_step")), step)
            with self.assertRaises(Muster.NotFound):
                await reader.read_async("nothing")
            return step

        self.assertEqual(asyncio.run(program()), 1)

    def test_a_monitored_session_and_a_whole_training(self):
        scaffold, master = case.linreg(), MusterEngine.Master.new()
        training = Muster.Training.new(case.linreg(), MusterEngine.Master.new())
        training.batches, training.feeds = Muster.Batches.new([case.tensor("f", [1, 2]), case.tensor("f", [3, 5])], 2, 7), ["x:0", "y:0"]
        training.until_step = 6

        async def program():
            session = await Muster.MonitoredSession.new_async(scaffold=scaffold, master=master)
            await session.run_async(scaffold.train_op(), {"x:0": [1.0], "y:0": [3.0]})
            steps = int(await session.run_async("global_step:0", with_hooks=False))
            await session.end_async()
            trained = Muster.Trained()
            self.assertTrue(await Muster.train_async(training, trained))
            return steps, trained.step

        self.assertEqual(asyncio.run(program()), (1, 6))

    def test_with_a_callback_they_are_cs(self):
        scaffold = case.linreg()
        saver, session = Muster.Saver.new(scaffold.meta_graph(), None), case.session(scaffold)
        prefix = saver.save_finish(self.in_background(saver.save_async, session, self.folder, 7, FOREVER))
        options, restored = Muster.RestoreOptions.new(prefix, None), Muster.Restored()
        self.assertTrue(saver.restore_finish(self.in_background(
            lambda none, done: saver.restore_async(session, options, timeout=60, callback=done)), restored))
        self.assertEqual(restored.prefix, prefix)
        training = Muster.Training.new(scaffold, MusterEngine.Master.new())
        training.batches, training.feeds = Muster.Batches.new([case.tensor("f", [1, 2]), case.tensor("f", [3, 5])], 2, 7), ["x:0", "y:0"]
        training.until_step, trained = 2, Muster.Trained()
        self.assertTrue(Muster.train_finish(self.in_background(Muster.train_async, training), trained))
        self.assertEqual(trained.step, 2)

    def test_a_report_comes_with_the_failure(self):
        scaffold = case.linreg()
        manager = self.manager(scaffold)

        async def program():
            with self.assertRaises(Muster.NotReady) as caught:
                await manager.wait_for_session_async(MusterEngine.Master.new(), timeout=0.1)
            return caught.exception.report

        self.assertEqual(asyncio.run(program()).outcome, Muster.Outcome.NOT_READY)


class Served(case.TestCase):
    def test_a_chiefs_lease_a_watch_and_a_membership(self):
        scaffold = case.linreg()
        master = Muster.Master.new_for_target(self.serve())

        async def program():
            self.assertEqual((await master.list_devices_async())[0].type, "CPU")
            session = await master.create_session_async(scaffold.graph())
            lease, before = await session.claim_async(Muster.Claim.new("linreg", "chief:0"))
            self.assertIsNone(before)
            self.assertTrue(await lease.announce_phase_async(Muster.ChiefPhase.PREPARED))
            what, readiness = Muster.WatchFor(), Muster.Readiness()
            what.ready_op = scaffold.ready_op()
            watch = await session.watch_async(what, FOREVER)
            self.assertTrue(await watch.next_async(readiness))
            self.assertFalse(readiness.is_ready)
            member = await master.join_async(Muster.Join.new("linreg", "worker:0", 4))
            self.assertTrue(await member.wait_async(0))
            self.assertTrue(await member.leave_async())
            self.assertTrue(await session.close_async())

        asyncio.run(program())


if __name__ == "__main__":
    case.main()
