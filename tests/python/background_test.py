#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""`await x_async ()`: every function that waits, on a thread of its own."""
import asyncio
import os
import sys
import threading

sys.path.insert(0, os.path.abspath(os.path.join(os.path.dirname(__file__), "../../python")))
import case
from case import FOREVER, Gio, Muster, MusterEngine
from gi import _gi
from gi.overrides import Muster as overrides
from muster import _calls


def waiting():
    """All functions that wait, and what has them."""
    for info in _gi.Repository.get_default().get_infos("Muster"):
        methods = [info] if isinstance(info, _gi.FunctionInfo) else info.get_methods() if hasattr(info, "get_methods") else []
        for function in methods:
            if _calls.Signature(function, overrides._Namespace).blocks and not function.get_name().startswith("deadline_"):
                yield function, getattr(Muster, info.get_name()) if function is not info else Muster


class EveryCall(case.TestCase):
    def test_can_be_awaited(self):
        names = {function.get_name() for function, home in waiting() if hasattr(home, function.get_name() + "_async")}
        self.assertEqual({function.get_name() for function, _ in waiting()} - names, set())
        self.assertTrue({"run", "create_session", "restore", "read", "verify", "claim", "train", "checkpoint_copy"} <= names, names)

    def test_ends_with_its_task(self):
        """A function that waits for its cancellable, as if it were the library's, in the place of each."""
        ended = threading.Semaphore(0)

        def wait_in_c(*args):
            own = next((each for each in args if isinstance(each, Gio.Cancellable)), None) or Gio.Cancellable.get_current()
            while not own.is_cancelled():
                own_ended.wait(0.01)
            ended.release()
            own.set_error_if_cancelled()

        own_ended = threading.Event()

        async def cancel(start, args):
            task = asyncio.ensure_future(wrap(start(*args)))
            await asyncio.sleep(0)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task

        async def wrap(awaitable):
            return await awaitable

        async def every():
            n = 0
            for function, _ in waiting():
                _, start = _calls.adapt(wait_in_c, function, overrides._Namespace)
                start = start.__func__ if isinstance(start, (classmethod, staticmethod)) else start
                before = [None] if function.is_method() or function.is_constructor() else []
                await cancel(start, before + [None] * len(_calls.Signature(function, overrides._Namespace).names))
                n += 1
            return n

        n = asyncio.run(every())
        self.assertGreater(n, 90)
        for _ in range(n):
            self.assertTrue(ended.acquire(timeout=60))


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
        training.set_batches(Muster.Batches.new([case.tensor("f", [1, 2]), case.tensor("f", [3, 5])], 2, 7), ["x:0", "y:0"])
        training.until_step = 6

        async def program():
            session = await Muster.MonitoredSession.new_async(scaffold=scaffold, master=master)
            await session.run_async(scaffold.train_op(), {"x:0": [1.0], "y:0": [3.0]})
            steps = int(await session.run_async("global_step:0", with_hooks=False))
            await session.end_async()
            trained = Muster.Trained.new()
            self.assertTrue(await Muster.train_async(training, trained))
            return steps, trained.step

        self.assertEqual(asyncio.run(program()), (1, 6))

    def test_with_a_callback_they_are_cs(self):
        scaffold = case.linreg()
        saver, session = Muster.Saver.new(scaffold.meta_graph(), None), case.session(scaffold)
        prefix = saver.save_finish(self.in_background(saver.save_async, session, self.folder, 7, FOREVER))
        options, restored = Muster.RestoreOptions.new(prefix, None), Muster.Restored.new()
        self.assertTrue(saver.restore_finish(self.in_background(saver.restore_async, session, options, FOREVER), restored))
        self.assertEqual(restored.prefix, prefix)
        training = Muster.Training.new(scaffold, MusterEngine.Master.new())
        training.set_batches(Muster.Batches.new([case.tensor("f", [1, 2]), case.tensor("f", [3, 5])], 2, 7), ["x:0", "y:0"])
        training.until_step, trained = 2, Muster.Trained.new()
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
            what, readiness = Muster.WatchFor.new(), Muster.Readiness.new()
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
