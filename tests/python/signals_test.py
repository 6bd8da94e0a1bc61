#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C in every blocking call, and what becomes of the program's own signal handlers."""
import asyncio
import contextlib
import faulthandler
import os
import signal
import socket
import sys
import threading

sys.path.insert(0, os.path.abspath(os.path.join(os.path.dirname(__file__), "../../python")))
import case
from case import FOREVER, Gio, GLib, Muster, MusterEngine
from gi import _gi
from gi.overrides import Muster as overrides
from muster import _calls, _signals

# What has a time and doesn't wait: arithmetic, and the hook's constructor.
NOT_BLOCKING = {"deadline_after", "deadline_remaining", "deadline_check", "ran_out", "finish_barrier_hook_new"}
# What keeps a cancellable for later.
KEEPING = {"set_cancellable"}


def blocking():
    """All functions that wait, by the names of their arguments: (what binds it, its name)."""
    for info in _gi.Repository.get_default().get_infos("Muster"):
        for function in [info] if isinstance(info, _gi.FunctionInfo) else info.get_methods() if hasattr(info, "get_methods") else []:
            names = {argument.get_name() for argument in function.get_arguments()}
            if not function.get_name().endswith("_async") and names & {"cancellable", "timeout_us", "deadline_us"}:
                yield function


def queue():
    """A graph in which "take" waits until "put" has run, and fetching "n" gives 5."""
    builder = Muster.GraphBuilder.new()
    builder.node("FIFOQueueV2", "queue")
    builder.attr_types("component_types", [Muster.DType.FLOAT])
    builder.constant("item", Muster.Tensor(1.0))
    builder.constant("n", Muster.Tensor(5))
    builder.node("QueueEnqueueV2", "put")
    builder.input("queue")
    builder.input("item")
    builder.attr_types("Tcomponents", [Muster.DType.FLOAT])
    builder.node("QueueDequeueV2", "take")
    builder.input("queue")
    builder.attr_types("component_types", [Muster.DType.FLOAT])
    return builder.end()


def manage(name="never"):
    scaffold = case.linreg()
    return scaffold, Muster.SessionManager.new_for_ops(scaffold.graph(), scaffold.ready_op(), scaffold.ready_for_local_init_op(),
                                                       scaffold.local_init_op(), name, "chief:0")


class Ours(Exception):
    """Of a handler."""


class TestCase(case.TestCase):
    def setUp(self):
        super().setUp()
        faulthandler.dump_traceback_later(60, exit=True)
        self.addCleanup(faulthandler.cancel_dump_traceback_later)
        self.addCleanup(signal.signal, signal.SIGINT, signal.getsignal(signal.SIGINT))
        signal.signal(signal.SIGINT, signal.default_int_handler)

    def soon(self, act):
        """Calls act () on a thread once the main thread waits in one of the library's calls."""
        native = threading.get_native_id()

        def switches():
            """How often it has been switched to; None if it isn't asleep in a call."""
            with open("/proc/self/task/%d/status" % native) as status:
                text = status.read()
            return text.partition("voluntary_ctxt_switches")[2] if "State:\tS" in text and _signals._calls else None

        def watch():
            before = None
            while not over.wait(0.005):  # a thread that sleeps because this one has the interpreter wakes here
                now = switches()
                if now is not None and now == before:
                    act()
                    return
                before = now

        over, thread = threading.Event(), threading.Thread(target=watch)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(over.set)  # before it
        return thread

    def press(self, number=signal.SIGINT):
        return self.soon(lambda: os.kill(os.getpid(), number))

    def assertInterrupted(self, call, *args, **keywords):
        self.press()
        with self.assertRaises(KeyboardInterrupt):
            call(*args, **keywords)
        self.assertIs(signal.getsignal(signal.SIGINT), signal.default_int_handler)
        self.assertEqual(_signals._calls, [])

    def silent(self):
        """The target of a server that accepts connections and never answers."""
        listener = socket.create_server(("127.0.0.1", 0), backlog=50)
        self.addCleanup(listener.close)
        return "grpc://127.0.0.1:%d" % listener.getsockname()[1]

    def waiting(self):
        """A session whose step "take" waits."""
        return MusterEngine.Master.new().create_session(queue())


def wait_in_c(*args):
    """As one of the library's functions: waits for the cancellable that it was given."""
    own = next((each for each in args if isinstance(each, Gio.Cancellable)), None) or Gio.Cancellable.get_current()
    return WAIT(Muster.system_clock(), FOREVER, own)


WAIT = next(method for method in _gi.Repository.get_default().find_by_name("Muster", "Clock").get_methods() if method.get_name() == "wait_until")


class EveryCall(TestCase):
    def test_ends_by_ctrl_c(self):
        n = 0
        for function in blocking():
            if function.get_name() in NOT_BLOCKING | KEEPING:
                continue
            with self.subTest(function=function.get_symbol()):
                adapted, _ = _calls.adapt(wait_in_c, function, overrides._Namespace)
                call = adapted.__func__ if isinstance(adapted, (classmethod, staticmethod)) else adapted
                before = [None] if function.is_method() or function.is_constructor() else []
                self.assertInterrupted(call, *before, *[None] * len(_calls.Signature(function, overrides._Namespace).names))
                n += 1
        self.assertGreater(n, 90)

    def test_is_reached_by_its_name(self):
        for function in blocking():
            if function.get_name() in KEEPING:
                continue
            container = function.get_container()
            home = getattr(Muster, container.get_name()) if container is not None else Muster
            bound = getattr(home, function.get_name())
            self.assertTrue(function.get_name().startswith("deadline_") or not hasattr(bound, "get_symbol"), function.get_symbol())


class Sessions(TestCase):
    def test_go_on_after_a_step_was_interrupted(self):
        for master in (MusterEngine.Master.new(), Muster.Master.new_for_target(self.serve())):
            session = master.create_session(queue())
            self.assertInterrupted(session.run, "take:0")
            self.assertInterrupted(session.run, "take:0", timeout=600)
            self.assertEqual(int(session.run("n:0")), 5)
            for _ in range(3):  # a server may learn of the two only after they have got theirs
                session.run("put")
            self.assertEqual(float(session.run("take:0")), 1)

    def test_are_waited_for_and_prepared_until_ctrl_c(self):
        scaffold, manager = manage()
        served = Muster.Master.new_for_target(self.serve())
        self.assertInterrupted(manager.wait_for_session, served)
        self.assertInterrupted(manager.wait_for_session, served, timeout=600)
        silent = Muster.Master.new_for_target(self.silent())
        self.assertInterrupted(manager.wait_for_session, silent)
        self.assertInterrupted(manager.prepare_session, silent, init_op=scaffold.init_op())
        self.assertEqual(int(manager.prepare_session(served, init_op=scaffold.init_op()).run(scaffold.global_step())), 0)

    def test_train_ends_where_a_worker_waits(self):
        training = Muster.Training.new(case.linreg(), Muster.Master.new_for_target(self.serve()))
        training.batches, training.feeds = Muster.Batches.new([case.tensor("f", [1, 2, 3, 4]), case.tensor("f", [2, 4, 6, 8])], 2, 0), ["x:0", "y:0"]
        training.model, training.loss, training.until_step, training.task, training.n_tasks = "never", "loss:0", 5, "worker:0", 2
        training.is_worker = True
        self.assertInterrupted(Muster.train, training, Muster.Trained())

    def test_with_hooks_go_on_too(self):
        class Hook(Muster.Hook):
            waits = True

            def do_before_run(self, context):
                return not self.waits or wait_in_c(context.cancellable())

        hook = Hook()
        opened = Muster.MonitoredSession.new(scaffold=case.linreg(), master=MusterEngine.Master.new(), hooks=[hook])
        self.assertInterrupted(opened.run, case.linreg().global_step())
        hook.waits = False
        self.assertEqual(int(opened.run(case.linreg().global_step())), 0)
        opened.end()


class Files(TestCase):
    """Functions without a time or a cancellable."""

    def test_of_a_store_that_never_answers_end_by_ctrl_c(self):
        os.environ.update(AWS_ACCESS_KEY_ID="id", AWS_SECRET_ACCESS_KEY="secret", no_proxy="127.0.0.1")
        options = Muster.S3Options()
        options.endpoint_url, options.region = self.silent().replace("grpc", "http"), "eu-central-1"
        options.clock = Muster.system_clock()
        store = Muster.s3_storage_new(options)
        self.assertInterrupted(store.read, "s3://bucket/run/checkpoint")
        self.assertInterrupted(Muster.latest_checkpoint, store, "s3://bucket/run")
        saver = Muster.SaverOptions()
        saver.storage = store
        self.assertInterrupted(Muster.Saver.new(case.linreg().meta_graph(), saver).latest_checkpoint, "s3://bucket/run")


class Signals(TestCase):
    def wait(self):
        Muster.system_clock().wait_until(FOREVER)

    def test_a_cancellable_of_the_programs_still_ends_the_call(self):
        cancellable, session = Gio.Cancellable(), self.waiting()
        self.soon(cancellable.cancel)
        with self.assertRaises(GLib.Error) as caught:
            session.run("take:0", cancellable=cancellable)
        self.assertTrue(caught.exception.matches(Gio.io_error_quark(), Gio.IOErrorEnum.CANCELLED))
        with self.assertRaises(GLib.Error):  # cancelled before
            session.run("take:0", cancellable=cancellable)

    def test_ctrl_c_leaves_a_cancellable_of_the_programs_alone(self):
        cancellable, session = Gio.Cancellable(), self.waiting()
        self.assertInterrupted(session.run, "take:0", cancellable=cancellable)
        self.assertFalse(cancellable.is_cancelled())
        session.run("put", cancellable=cancellable)

    def test_a_cancellable_ends_what_a_call_has_made(self):
        cancellable = Gio.Cancellable()
        opened = Muster.MonitoredSession.new(scaffold=case.linreg(), master=MusterEngine.Master.new(), cancellable=cancellable)
        cancellable.cancel()
        with self.assertRaises(GLib.Error) as caught:
            opened.run(case.linreg().global_step())
        self.assertTrue(caught.exception.matches(Gio.io_error_quark(), Gio.IOErrorEnum.CANCELLED))

    def test_a_failure_at_the_same_time_is_no_other_error(self):
        """The handler's exception isn't raised where the call's error is converted."""
        session = self.waiting()
        for _ in range(50):
            with self.assertRaises(KeyboardInterrupt):
                self.press()
                while True:
                    with contextlib.suppress(Muster.DeadlineExceeded):
                        session.run("take:0", timeout=0.01)

    def test_a_handler_of_the_programs_lets_the_call_go_on(self):
        seen, session = [], self.waiting()
        signal.signal(signal.SIGINT, lambda number, frame: seen.append((number, frame is not None)))
        mine = signal.getsignal(signal.SIGINT)
        self.soon(lambda: (os.kill(os.getpid(), signal.SIGINT), session.run("put")))
        self.assertEqual(float(session.run("take:0")), 1)
        self.assertEqual(seen, [(signal.SIGINT, True)])
        self.assertIs(signal.getsignal(signal.SIGINT), mine)

    def test_what_a_handler_raises_is_raised_after_the_call(self):
        def fail(number, frame):
            raise Ours()

        session = self.waiting()
        self.addCleanup(signal.signal, signal.SIGTERM, signal.signal(signal.SIGTERM, fail))
        self.soon(lambda: (os.kill(os.getpid(), signal.SIGTERM), session.run("put")))
        with self.assertRaises(Ours):
            session.run("take:0")
        self.press(signal.SIGTERM)
        with self.assertRaises(Ours):
            session.run("take:0", timeout=1)
        self.assertIs(signal.getsignal(signal.SIGTERM), fail)

    def test_an_ignored_ctrl_c_stays_ignored(self):
        session = self.waiting()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self.soon(lambda: (os.kill(os.getpid(), signal.SIGINT), session.run("put")))
        self.assertEqual(float(session.run("take:0")), 1)

    def test_other_threads_call_as_before(self):
        session, seen = self.waiting(), []
        thread = threading.Thread(target=lambda: seen.append(float(session.run("take:0"))))
        thread.start()
        self.assertInterrupted(session.run, "take:0")
        session.run("put")
        thread.join()
        self.assertEqual(seen, [1])

    def test_a_wakeup_descriptor_gets_the_signals_and_is_restored(self):
        readable, writable = os.pipe()
        for end in (readable, writable):
            os.set_blocking(end, False)
            self.addCleanup(os.close, end)
        signal.set_wakeup_fd(writable)
        self.addCleanup(signal.set_wakeup_fd, -1)
        self.assertInterrupted(self.wait)
        self.assertEqual(os.read(readable, 16), bytes([signal.SIGINT]))
        self.assertEqual(signal.set_wakeup_fd(writable), writable)

    def test_a_callback_is_interrupted_at_once(self):
        class Hook(Muster.Hook):
            def do_before_run(self, context):
                os.kill(os.getpid(), signal.SIGINT)
                threading.Event().wait(600)
                return True

        opened = Muster.MonitoredSession.new(scaffold=case.linreg(), master=MusterEngine.Master.new(), hooks=[Hook()])
        with self.assertRaises(KeyboardInterrupt):
            opened.run(case.linreg().global_step())
        self.assertIs(signal.getsignal(signal.SIGINT), signal.default_int_handler)

    def test_a_child_of_fork_has_its_own(self):
        self.assertInterrupted(self.wait)
        child = os.fork()
        if child == 0:
            self.press()
            try:
                self.wait()
            except KeyboardInterrupt:
                os._exit(0)
            os._exit(1)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)


class Asyncio(TestCase):
    def test_ctrl_c_ends_a_call_inside_a_coroutine(self):
        session = self.waiting()

        async def take():
            with self.assertRaises(KeyboardInterrupt):
                session.run("take:0")
            raise Ours()

        self.press()
        with self.assertRaises((Ours, KeyboardInterrupt)):
            asyncio.run(take())
        self.assertIs(signal.getsignal(signal.SIGINT), signal.default_int_handler)

    def test_a_loop_gets_its_signals_after_the_call(self):
        session, seen = self.waiting(), []

        async def take():
            loop, heard = asyncio.get_running_loop(), asyncio.Event()
            loop.add_signal_handler(signal.SIGUSR1, lambda: (seen.append("heard"), heard.set()))
            self.soon(lambda: (os.kill(os.getpid(), signal.SIGUSR1), session.run("put")))
            session.run("take:0")
            seen.append("taken")
            await asyncio.wait_for(heard.wait(), 60)

        asyncio.run(take())
        self.assertEqual(seen, ["taken", "heard"])


if __name__ == "__main__":
    case.main()
