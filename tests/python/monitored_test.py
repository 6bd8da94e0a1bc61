#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Monitored sessions, hooks written in Python, scaffolds and coordinators."""
import gc
import threading

import case
from case import FOREVER, Gio, GLib, Muster, MusterEngine


def error(code, text):
    return GLib.Error.new_literal(Muster.error_quark(), text, code)


def options(*hooks, scaffold=None, master=None):
    made = Muster.MonitoredSessionOptions.new(scaffold or case.linreg(), master or MusterEngine.Master.new())
    made.hooks = hooks
    return made


def opened(*hooks, **more):
    return Muster.MonitoredSession.new(options(*hooks, **more), None, None)


def train_step(*fetches):
    step = Muster.StepBuilder.new()
    step.feed("x:0", case.tensor("f", [1, 2]))
    step.feed("y:0", case.tensor("f", [3, 5]))
    step.target("train")
    for fetch in fetches:
        step.fetch(fetch)
    return step


class Recorder(Muster.Hook):
    """Every function of a hook."""

    def __init__(self):
        super().__init__()
        self.seen, self.losses, self.steps, self.kept = [], [], [], None

    def do_measure(self, meter):
        self.seen.append("measure")
        self.meter = meter

    def do_begin(self, scaffold):
        self.seen.append("begin " + scaffold.train_op())
        return True

    def do_claims(self):
        self.seen.append("claims")
        return [Muster.Hook.claim_of_feed("z")]

    def do_after_create_session(self, session, coordinator, deadline_us, cancellable):
        self.seen.append("created")
        assert session.handle() and not coordinator.should_stop()
        return True

    def do_before_run(self, context):
        self.loss = context.fetch("loss:0")
        self.session_seen = context.session() is not None
        self.cancellable = context.cancellable()
        context.add_options(GLib.Bytes.new(b""))
        assert context.deadline_us() > 0
        return True

    def do_after_run(self, context):
        self.losses.append(case.values(context.value(self.loss))[0])
        self.steps.append((context.global_step(), context.step_now()))
        self.kept = context
        self.metadata = context.metadata()
        return True

    def do_end(self, session, deadline_us, cancellable):
        self.seen.append("end")
        return True

    def do_on_error(self, error):
        self.seen.append("error " + error.message)

    def do_session_lost(self):
        self.seen.append("lost")


class Hooks(case.TestCase):
    def test_a_hook_in_python_is_called_around_each_run(self):
        hook = Recorder()
        session = opened(hook)
        self.assertFalse(session.should_stop())
        for _ in range(3):
            self.assertEqual(len(session.run_builder(train_step("loss:0"), True, FOREVER)), 1)
        self.assertEqual(hook.seen, ["measure", "begin train", "claims", "created"])
        self.assertEqual(len(hook.losses), 3)
        self.assertLess(hook.losses[2], hook.losses[0])
        self.assertEqual([now for _, now in hook.steps], [1, 2, 3])
        self.assertTrue(hook.session_seen)
        self.assertIsNone(hook.metadata)
        self.assertTrue(session.end(FOREVER))
        self.assertEqual(hook.seen[-1], "end")
        self.assertTrue(session.should_stop())

    def test_a_run_that_was_kept_is_safe_to_use(self):
        hook = Recorder()
        session = opened(hook)
        session.run_builder(train_step(), True, FOREVER)
        session.end(FOREVER)
        kept = hook.kept
        del session, hook
        gc.collect()
        self.assertIsNone(kept.session())
        self.assertIsNone(kept.cancellable())
        self.assertEqual(kept.deadline_us(), FOREVER)
        self.assertFails(Muster.Error.FAILED_PRECONDITION, "the run has ended", kept.step_now)

    def test_names_and_values_may_go_before_the_run(self):
        class Feeds(Muster.Hook):
            def do_before_run(self, context):
                context.feed("".join(["x", ":0"]), case.tensor("f", [1, 2]))
                context.feed("".join(["y", ":0"]), case.tensor("f", [3, 5]))
                self.at = context.fetch("".join(["lo", "ss", ":0"]))
                gc.collect()
                return True

            def do_after_run(self, context):
                self.value = context.value(self.at)
                self.runs = getattr(self, "runs", 0) + 1
                if self.runs == 20:
                    context.request_stop()
                return True

        hook = Feeds()
        session = opened(hook)
        step = Muster.StepBuilder.new()
        step.target("train")
        for _ in range(20):
            self.assertFalse(session.should_stop())
            session.run_builder(step, True, FOREVER)
        self.assertTrue(session.should_stop())
        first = case.values(hook.value)
        session.end(FOREVER)
        del session
        gc.collect()
        self.assertEqual(case.values(hook.value), first)

    def test_an_exception_fails_the_run(self):
        class Fails(Muster.Hook):
            def do_before_run(self, context):
                raise error(Muster.Error.OUT_OF_RANGE, "no more")

        session = opened(Fails())
        said = self.assertFails(Muster.Error.OUT_OF_RANGE, "no more", session.run_builder, train_step(), True, FOREVER)
        self.assertIn("before a run", said)
        failure = error(Muster.Error.OUT_OF_RANGE, said)
        self.assertTrue(session.finish(failure, FOREVER))
        self.assertIn("no more", session.end_of_input())

    def test_a_function_that_returns_nothing_is_a_mistake(self):
        class Forgets(Muster.Hook):
            def do_before_run(self, context):
                pass

        session = opened(Forgets())
        self.assertFails(Muster.Error.INTERNAL, "it must return TRUE", session.run_builder, train_step(), True, FOREVER)
        # without hooks it runs
        self.assertEqual(len(session.run_builder(train_step("loss:0"), False, FOREVER)), 1)
        failure = error(Muster.Error.INTERNAL, "given up")
        self.assertFails(Muster.Error.INTERNAL, "given up", session.finish, failure, FOREVER)

    def test_two_hooks_with_one_claim_are_refused(self):
        self.assertFails(Muster.Error.INVALID_ARGUMENT, "feeds z:0", opened, Recorder(), Recorder())
        self.assertEqual(Muster.Hook.claim_of_directory("saves to", "/d/../e"), "saves to '/e'")

    def test_a_function_is_a_hook(self):
        losses, freed = [], []

        def after_step(value, step, *data):
            losses.append((case.values(value)[0], step))
            return len(losses) < 2

        session = opened(Muster.Hook.new_for_step("loss:0", after_step))
        while not session.should_stop():
            session.run_builder(train_step(), True, FOREVER)
        self.assertEqual(len(losses), 2)
        session.end(FOREVER)


class Sessions(case.TestCase):
    def test_a_lost_session_is_replaced(self):
        master = MusterEngine.Master.new()
        hook, lost, made = Recorder(), [], []
        observer = Muster.SessionObserver.new()
        observer.connect("made", lambda _, report, error: made.append((report.outcome, error)))
        observer.connect("lost", lambda _, why, n, pause_us: lost.append((why.code, n, pause_us > 0)))
        with_observer = options(hook, master=master)
        with_observer.observer = observer
        with_observer.clock = Muster.system_clock()
        session = Muster.MonitoredSession.new(with_observer, None, None)
        session.run_builder(train_step(), True, FOREVER)
        master.reset([], FOREVER, None)
        session.run_builder(train_step(), True, FOREVER)
        self.assertEqual(session.n_recoveries(), 1)
        self.assertEqual(lost, [(Muster.Error.ABORTED, 1, True)])
        self.assertEqual(made, [(Muster.Outcome.READY, None)] * 2)
        self.assertIn("lost", hook.seen)
        self.assertEqual(session.global_step(), 1)
        goodput = session.goodput()
        self.assertEqual(goodput.n_restarts, 1)
        session.end(FOREVER)

    def test_options_own_what_they_point_to(self):
        scaffold = case.linreg()
        made = options(Recorder(), scaffold=scaffold)
        made.prepare = Muster.PrepareOptions.new(scaffold.init_op(), None, None)
        made.manager = Muster.SessionManager.new_for_ops(
            scaffold.graph(), scaffold.ready_op(), None, scaffold.local_init_op(), None, None)
        made.stop_grace_us = 1000
        again = made.copy()
        del made, scaffold
        gc.collect()
        self.assertEqual((again.n_hooks, again.stop_grace_us), (1, 1000))
        session = Muster.MonitoredSession.new(again, None, None)
        session.run_builder(train_step(), True, FOREVER)
        session.end(FOREVER)

    def test_several_runs_belong_together(self):
        session, steps = opened(), []

        def twice(monitored, plain, deadline_us, cancellable, *data):
            monitored.run_builder(train_step(), True, FOREVER)
            steps.append(Muster.read_global_step(plain, case.linreg(), deadline_us, cancellable))
            return True

        self.assertTrue(session.run_step_function(twice, None, FOREVER))
        self.assertEqual(steps, [1])

        def fails(*_):
            raise error(Muster.Error.UNKNOWN, "mine")

        self.assertFails(Muster.Error.UNKNOWN, "mine", session.run_step_function, fails, None, FOREVER)
        session.end(FOREVER)

    def test_it_stops_on_request_and_ends_once(self):
        session = opened()
        self.assertIsNotNone(session.session())
        self.assertFalse(session.coordinator().should_stop())
        session.request_stop()
        self.assertTrue(session.should_stop())
        self.assertFails(Muster.Error.FAILED_PRECONDITION, "should_stop", session.run_builder, train_step(), True, FOREVER)
        self.assertIsNone(session.end_of_input())
        session.end(FOREVER)
        self.assertIsNone(session.session())
        self.assertTrue(session.coordinator().is_joined())
        self.assertFails(Muster.Error.FAILED_PRECONDITION, "already closed", session.end, FOREVER)


class Scaffolds(case.TestCase):
    def test_items_are_the_meta_graphs_or_given(self):
        meta_graph = Muster.MetaGraph.load(case.fixture("linreg.meta"))
        plain = Muster.Scaffold.new(meta_graph)
        self.assertEqual(plain.train_op(), "train")
        self.assertGreater(plain.n_variables(), 1)
        self.assertEqual(plain.meta_graph().op("train_op"), plain.train_op())
        for item in (plain.ready_op(), plain.local_init_op(), plain.init_op(), plain.global_step()):
            self.assertTrue(item)
        self.assertTrue(plain.ready_for_local_init_op())
        self.assertTrue(plain.summary_op())
        given = Muster.ScaffoldOptions.new(None)
        given.train_op = plain.init_op()
        given.feed("x:0", case.tensor("f", [1]))
        again = Muster.Scaffold.new_with(meta_graph, given.copy())
        self.assertEqual(again.train_op(), plain.init_op())
        self.assertEqual(Muster.Scaffold.new_with(meta_graph, Muster.ScaffoldOptions.new(again)).train_op(), plain.init_op())
        self.assertEqual(again.with_saver().train_op(), plain.init_op())
        given.train_op = "missing"
        self.assertFails(Muster.Error.INVALID_ARGUMENT, "missing", Muster.Scaffold.new_with, meta_graph, given)

    def test_an_init_function_lives_as_long_as_its_scaffold(self):
        called = []

        def make():
            given = Muster.ScaffoldOptions.new(None)

            def initialise(scaffold, session, deadline_us, cancellable, *data):
                called.append(scaffold.train_op())
                return True

            given.set_init_func(initialise)
            return Muster.Scaffold.new_with(Muster.MetaGraph.load(case.fixture("linreg.meta")), given)

        scaffold = make()
        gc.collect()
        self.assertTrue(scaffold.has_init_func())
        self.assertFalse(case.linreg().has_init_func())
        opened(scaffold=scaffold).end(FOREVER)
        self.assertEqual(called, ["train"])


class Coordinators(case.TestCase):
    def test_threads_stop_together(self):
        coordinator = Muster.Coordinator.new(None, False)
        ran = threading.Event()

        def loop(this, *data):
            ran.set()
            return True

        def fail(this, *data):
            ran.wait(60)
            raise error(Muster.Error.UNKNOWN, "stop all")

        coordinator.start_looper("loop", 1000, loop)
        coordinator.start("fail", fail)
        self.assertTrue(coordinator.wait_for_stop(60 * Muster.SECOND, None))
        self.assertTrue(coordinator.cancellable().is_cancelled())
        self.assertEqual(coordinator.error().message, "stop all")
        self.assertFails(Muster.Error.UNKNOWN, "stop all", coordinator.join, 60 * Muster.SECOND, False, FOREVER, None)
        self.assertTrue(coordinator.is_joined())
        coordinator.clear_stop()
        self.assertFalse(coordinator.should_stop())
        self.assertFalse(coordinator.is_joined())
        coordinator.stop()
        self.assertTrue(coordinator.should_stop())
        self.assertTrue(coordinator.join(0, False, FOREVER, None))
        coordinator.clear_stop()
        self.assertTrue(coordinator.request_stop(error(Muster.Error.ABORTED, "a session is lost")))
        self.assertFails(Muster.Error.ABORTED, "a session is lost", coordinator.join, 0, False, FOREVER, None)


class Goodput(case.TestCase):
    def test_a_meter_adds_the_runs_before(self):
        meter = Muster.GoodputMeter.new(None)
        self.assertEqual(meter.enter(Muster.TimeUse.TIME_INITIALISING), Muster.TimeUse.TIME_WAITING)
        meter.made(0, 0, 0)
        meter.note_step(1)
        meter.lost()
        before = meter.read()
        self.assertEqual((before.step, before.n_restarts), (1, 0))
        meter.stop()
        after = Muster.GoodputMeter.new(None)
        after.offer(before)
        after.set_others_train()
        after.resume(None, 0, True)
        after.made(0, 0, 1)
        self.assertEqual(after.read().n_restarts, 1)
        again = Muster.GoodputMeter.new(None)
        again.offer(before)
        again.forget()
        again.resume(None, 0, False)
        again.made(0, 0, 0)
        self.assertEqual(again.read().n_restarts, 0)


if __name__ == "__main__":
    case.main()
