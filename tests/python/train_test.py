#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Training, its hooks, batches, positions and preemption."""
import gc
import glob
import math
import os
import subprocess
import threading

import case
from case import FOREVER, GLib, GObject, Muster, MusterEngine


def error(code, text):
    return GLib.Error.new_literal(Muster.error_quark(), text, code)


def data(batch_size=2, n=8):
    x = case.tensor("f", [float(i) for i in range(n)])
    y = case.tensor("f", [2.0 * i + 1 for i in range(n)])
    return Muster.Batches.new([x, y], batch_size, 7)


def training(master=None, **fields):
    made = Muster.Training.new(case.linreg(), master or MusterEngine.Master.new())
    made.batches, made.feeds = data(), ["x:0", "y:0"]
    made.loss = "loss:0"
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def fed_step(*fetches):
    step = Muster.StepBuilder.new()
    step.feed("x:0", case.tensor("f", [1, 2]))
    step.feed("y:0", case.tensor("f", [3, 5]))
    step.target("train")
    for fetch in fetches:
        step.fetch(fetch)
    return step


def run(hooks, n=3, scaffold=None):
    """n runs with these hooks, and the end."""
    options = Muster.MonitoredSessionOptions.new(scaffold or case.linreg(), MusterEngine.Master.new())
    options.hooks = hooks
    session = Muster.MonitoredSession.new(options, None, None)
    for _ in range(n):
        if session.should_stop():
            break
        session.run_builder(fed_step(), True, FOREVER)
    session.end(FOREVER)
    return session


class Completion(case.TestCase):
    def test_a_graph_gets_what_it_lacks(self):
        path = case.fixture("linreg.meta")
        plain = Muster.MetaGraph.load(path)
        whole, notes = plain.complete(None)
        self.assertIsNotNone(whole.saver())
        self.assertFalse(whole.has_own_input())
        scaffold = Muster.Scaffold.new(plain)
        self.assertEqual(scaffold.completed(), [])
        self.assertEqual(scaffold.complete().completed(), notes)
        chosen = Muster.Scaffold.load_with(path, [plain.op("train_op")])
        self.assertEqual(chosen.completed(), notes)


class Train(case.TestCase):
    def test_tasks_are_equal_in_an_elastic_job(self):
        target, roles = self.serve(), []
        observer = Muster.TrainingObserver.new()
        observer.connect("role", lambda _, is_chief, slot: roles.append((is_chief, slot)))
        for _ in range(2):  # the second finds the job over
            job = training(Muster.Master.new_for_target(target), is_elastic=True, min_tasks=1, max_tasks=8, model="linreg",
                           until_step=20, ends_job=True, checkpoint_dir=self.folder)
            job.observer = observer
            trained = Muster.Trained()
            self.assertTrue(Muster.train(job, trained, None))
            self.assertEqual((trained.step, trained.is_reached), (20, True))
        self.assertEqual(roles, [(True, 0), (False, 0)])

    def test_a_chief_that_reaches_its_last_step_is_not_lost(self):
        target = self.serve()
        job = training(Muster.Master.new_for_target(target), model="linreg", until_step=5)
        self.assertTrue(Muster.train(job, Muster.Trained(), None))
        said = subprocess.run([case.built("cli/muster"), "status", target], stdout=subprocess.PIPE, text=True, check=True, timeout=60).stdout
        self.assertRegex(said, "finished +linreg")
        self.assertRegex(said, "reached its last step .* ago")

    def test_a_loss_of_many_numbers_has_no_curve(self):
        trained = Muster.Trained()
        self.assertTrue(Muster.train(training(loss="sub:0", until_step=5, checkpoint_dir=self.folder), trained, None))
        self.assertEqual((trained.step, trained.is_reached), (5, True))

    def test_it_trains_saves_and_resumes(self):
        seen = []
        observer = Muster.TrainingObserver.new()
        observer.connect("ready", lambda _, report, step: seen.append(("ready", step, report.restored_from)))
        observer.connect("saved", lambda _, saved: seen.append(("saved", saved.step, saved.prefix)))
        observer.connect("progress", lambda _, state: seen.append(("progress", state.step, state.until_step)) and False)
        first = training(checkpoint_dir=self.folder, until_step=10, save_steps=100, save_blocking=True)
        first.saver = Muster.SaverOptions()
        first.observer = observer
        first.session.clock = Muster.system_clock()
        trained = Muster.Trained()
        self.assertTrue(Muster.train(first, trained, None))
        self.assertEqual((trained.step, trained.is_reached, trained.n_recoveries), (10, True, 0))
        self.assertEqual(trained.goodput.step, 10)
        self.assertEqual(seen[0], ("ready", 0, None))
        self.assertIn(("saved", 10, self.folder + "/model.ckpt-10"), seen)
        self.assertIn(("progress", 10, 10), seen)

        again = training(checkpoint_dir=self.folder, until_step=12)
        again.restore = Muster.RestoreOptions.new(None, self.folder)
        again.observer = observer
        copied = again.copy()
        del again
        gc.collect()
        seen.clear()
        self.assertTrue(Muster.train(copied, trained, None))
        self.assertEqual(trained.step, 12)
        kept = trained.copy()  # its report lives as long as it
        del trained
        gc.collect()
        self.assertEqual(kept.report.restored_from, self.folder + "/model.ckpt-10")
        self.assertEqual(seen[0], ("ready", 10, self.folder + "/model.ckpt-10"))

    def test_checkpoints_are_evaluated(self):
        seen, observer = [], Muster.TrainingObserver.new()
        observer.connect("evaluated", lambda _, evaluated: seen.append((evaluated.step, evaluated.metrics, evaluated.why)))
        job = training(checkpoint_dir=self.folder, until_step=10, save_steps=5, save_blocking=True, ends_job=True)
        self.assertTrue(Muster.train(job, Muster.Trained(), None))
        options = Muster.EvaluateOptions()
        options.scaffold, options.master, options.batches = case.linreg(), MusterEngine.Master.new(), data()
        options.feeds, options.metrics, options.checkpoint_dir, options.observer = ["x:0", "y:0"], ["loss:0"], self.folder, observer
        evaluated = Muster.Evaluated()
        self.assertTrue(Muster.evaluate(options, evaluated, None))
        self.assertEqual(seen, [(step, ["eval/loss"], None) for step in (10, 5, 0)])
        self.assertEqual((evaluated.step, evaluated.n_evaluated), (0, 3))
        self.assertGreater(evaluated.value("loss"), 0)
        self.assertEqual(evaluated.value("loss"), evaluated.value("eval/loss"))
        self.assertTrue(math.isnan(evaluated.value("accuracy")))
        evaluated.clear()
        self.assertIsNone(evaluated.prefix)

    def test_a_master_that_lacks_an_operation_is_refused_before_anything_is_initialised(self):
        node = b"\x0a\x03odd\x12\x08NoSuchOp"
        graph = b"\x0a" + bytes([len(node)]) + node
        path = os.path.join(self.folder, "odd.meta")
        with open(case.fixture("linreg.meta"), "rb") as file, open(path, "wb") as odd:
            odd.write(file.read() + b"\x12" + bytes([len(graph)]) + graph)
        scaffold = Muster.Scaffold.load_with(path, ["train", "odd"])
        target, run = self.serve(), os.path.join(self.folder, "run")
        served = Muster.Master.new_for_target(target)
        os.mkdir(run)
        for master, is_worker, remedy in (
                (MusterEngine.Master.new(), False, "muster's own engine lacks; add --master=tensorflow"),
                (served, False, "the server's engine lacks; restart the server with `muster serve --master=tensorflow`"),
                (served, True, "the server's engine lacks; restart the server")):
            job = Muster.Training.new(scaffold, master)
            job.batches, job.feeds = data(), ["x:0", "y:0"]
            job.until_step, job.checkpoint_dir, job.is_worker, job.model = 1, run, is_worker, "linreg"
            self.assertFails(Muster.Error.UNIMPLEMENTED, "needs 1 operation (NoSuchOp in 1 node) that " + remedy, Muster.train,
                             job, None, None)
            self.assertEqual([], [name for name in os.listdir(run) if not name.startswith("events.")])
        options = Muster.SessionManagerOptions()
        for names, feeds, fits in (["odd"], None, False), (["train"], None, True), (["muster/train"], ["odd"], True):
            options.will_run, options.will_feed = names, feeds
            manager = Muster.SessionManager.new(scaffold.graph(), options)
            if fits:
                session = manager.wait_for_session(served, 0, None, None)
                self.assertEqual(["NoSuchOp"], session.lacks())
                self.assertTrue(session.check_needs(scaffold.graph(), names, feeds))
            else:
                self.assertFails(Muster.Error.UNIMPLEMENTED, "NoSuchOp", manager.wait_for_session, served, 0, None, None)
        options = Muster.MonitoredTrainingOptions.new(scaffold, served)
        options.will_run, options.will_feed = ["odd"], None
        self.assertFails(Muster.Error.UNIMPLEMENTED, "NoSuchOp", Muster.monitored_training_session_new, options, None, None)

    def test_a_handler_ends_it_early(self):
        observer = Muster.TrainingObserver.new()
        observer.connect("progress", lambda _, state: state.step >= 1)
        endless = training(until_step=1 << 40)
        endless.observer = observer
        trained = Muster.Trained()
        self.assertTrue(Muster.train(endless, trained, None))
        self.assertFalse(trained.is_reached)

    def test_mistakes_are_errors(self):
        wrong = training(until_step=1)
        wrong.loss = "missing:0"
        wrong.cluster = ["ps:0=localhost:1"]
        wrong.config = GLib.Bytes.new(b"")
        self.assertFails(Muster.Error.INVALID_ARGUMENT, "missing", Muster.train, wrong, None, None)

    def test_a_preemption_saves_and_reports(self):
        preemption = Muster.Preemption.new(0, None)
        observer = Muster.TrainingObserver.new()
        observer.connect("progress", lambda _, state: preemption.request(15))
        job = training(checkpoint_dir=self.folder, until_step=1 << 40)
        job.preemption = preemption
        job.observer = observer
        self.assertFalse(preemption.is_requested())
        trained = Muster.Trained()
        Muster.train(job, trained, None)
        self.assertTrue(preemption.is_requested())
        report = preemption.get_report()
        self.assertEqual((report.outcome, report.signal_number), (Muster.PreemptionOutcome.SAVED, 15))
        self.assertTrue(report.durable.startswith(self.folder))
        self.assertIn("durable after", report.text())
        self.assertTrue(os.path.exists(report.copy().durable + ".index"))
        report.clear()
        self.assertIsNone(report.durable)
        trained.clear()
        self.assertIsNone(trained.report.restored_from)


class Preemptions(case.TestCase):
    def test_a_save_is_limited_and_measured(self):
        preemption = Muster.Preemption.new(60 * Muster.SECOND, None)
        preemption.set_saver(Muster.Saver.new(case.linreg().meta_graph(), None), self.folder)
        self.assertTrue(preemption.watch())
        save = Muster.PreemptionSave()
        save.deadline_us = FOREVER
        save.bytes = 1000
        self.assertTrue(preemption.begin_save(save))
        preemption.end_save(save, None, error(Muster.Error.UNAVAILABLE, "gone"))
        preemption.set_saving(True)
        preemption.set_saving(False)
        preemption.note_durable(5, self.folder + "/model.ckpt-5", 1000, 10)
        took_us, size = preemption.estimate()
        self.assertEqual(took_us >= 0, True)
        self.assertGreaterEqual(size, 0)
        self.assertEqual(preemption.bound(FOREVER), FOREVER)
        self.assertEqual(preemption.get_report().durable_step, 5)
        preemption.drill()
        self.assertLess(preemption.bound(FOREVER), FOREVER)
        self.assertTrue(preemption.get_report().is_drill)
        self.assertFalse(preemption.cancellable() is None)
        self.assertFalse(preemption.explains(error(Muster.Error.INVALID_ARGUMENT, "mine")))

    def test_signals_and_notes_are_requests(self):
        preemption = Muster.Preemption.new(0, None)
        self.assertTrue(preemption.take_signals(False))
        self.assertFails(Muster.Error.ALREADY_EXISTS, "", Muster.Preemption.new(0, None).take_signals, False)
        preemption.notify(15)
        run([preemption.hook_new()])
        pause = threading.Event()
        for _ in range(6000):  # a thread of its own notes it
            if preemption.is_requested() or pause.wait(0.01):
                break
        self.assertTrue(preemption.is_requested())
        preemption.release_signals()
        self.assertTrue(Muster.Preemption.new(0, None).take_signals(False))


class Monitored(case.TestCase):
    def test_a_training_session_has_the_standard_hooks(self):
        options = Muster.MonitoredTrainingOptions.new(case.linreg(), MusterEngine.Master.new())
        options.checkpoint_dir = self.folder
        options.save_steps = 2
        options.save_blocking = True
        options.saver = None
        options.restore = Muster.RestoreOptions.new(None, self.folder)
        options.chief_only_hooks = [Muster.stop_at_step_hook_new(0, 4)]
        counted = []
        options.hooks = [Muster.Hook.new_for_step(None, lambda value, step, *_: counted.append(step) or True)]
        saves, before, ended = [], [], []
        saver_observer = Muster.SaverObserver.new()
        saver_observer.connect("before-save", lambda _, session, step, deadline_us, cancellable: before.append(step))
        saver_observer.connect("after-save", lambda _, session, step, prefix, deadline_us, cancellable: saves.append((step, prefix)) or False)
        saver_observer.connect("saved", lambda _, saved: ended.append((saved.prefix, saved.why)))
        options.saver_observer = saver_observer
        options.observer = Muster.SessionObserver.new()
        options.config = None
        options.cluster = None
        options.preemption = Muster.Preemption.new(0, None)
        options.clock = Muster.system_clock()
        session = Muster.monitored_training_session_new(options.copy(), None, None)
        while not session.should_stop():
            session.run_builder(fed_step(), True, FOREVER)
        session.end(FOREVER)
        self.assertEqual([step for step, _ in saves], [0, 2, 4])
        self.assertEqual(before, [0, 2, 4])
        self.assertEqual(ended[-1], (self.folder + "/model.ckpt-4", None))
        self.assertEqual(len(counted), 4)
        self.assertTrue(glob.glob(self.folder + "/events.out.tfevents.*"))


class Hooks(case.TestCase):
    def test_a_checkpoint_hook_saves(self):
        scaffold = case.linreg()
        options = Muster.CheckpointSaverOptions.new(self.folder)
        options.save_steps = 1
        options.save_blocking = True
        options.saver = Muster.Saver.new(scaffold.meta_graph(), None)
        options.saver_observer = Muster.SaverObserver.new()
        options.writer = Muster.EventWriter.new(self.folder, None)
        options.preemption = None
        hook = Muster.CheckpointSaverHook.new(options.copy())
        run([hook], 2)
        checkpoint_hook = Muster.CheckpointSaverHook
        self.assertEqual(tuple(checkpoint_hook.durable(hook)), (2, self.folder + "/model.ckpt-2"))
        self.assertEqual(checkpoint_hook.n_failures(hook), 0)
        self.assertIsNone(checkpoint_hook.last_failure(hook))
        no_interval = Muster.CheckpointSaverOptions.new(self.folder)
        with self.assertRaises(GLib.Error):
            checkpoint_hook.new(no_interval)

    def test_hooks_observe(self):
        writer = Muster.EventWriter.new(self.folder, None)
        lines = []
        logging_hook = Muster.LoggingHook.new(["loss:0"], 1, 0, False, None)
        logging_hook.connect("line", lambda _, text: lines.append(text))
        step = fed_step("loss:0")
        final = Muster.final_ops_hook_new_for_builder(step)
        self.assertIsNone(Muster.final_ops_hook_value(final, 0))
        run([logging_hook, final,
             Muster.step_counter_hook_new(1, 0, writer, None),
             Muster.nan_hook_new("loss:0", True),
             Muster.summary_saver_hook_new(None, 1, 0, writer, None),
             Muster.profiler_hook_new(1, 0, self.folder, writer, None),
             Muster.global_step_waiter_hook_new(0, None),
             Muster.finish_barrier_hook_new(1, 1000, None)])
        self.assertEqual(len(lines), 3)
        self.assertIn("loss:0", lines[0])
        self.assertEqual(len(case.values(Muster.final_ops_hook_value(final, 0))), 1)
        self.assertGreater(os.path.getsize(writer.path()), 0)

    def test_a_feed_function_ends_the_input(self):
        fed = []

        def feeds(deadline_us, cancellable, *data):
            if len(fed) == 2:
                raise error(Muster.Error.OUT_OF_RANGE, "no more rows")
            fed.append(1)
            return [case.tensor("f", [1, 2]), case.tensor("f", [3, 5])]

        options = Muster.MonitoredSessionOptions.new(case.linreg(), MusterEngine.Master.new())
        options.hooks = [Muster.feed_list_hook_new(["x:0", "y:0"], feeds)]
        session = Muster.MonitoredSession.new(options, None, None)
        step = Muster.StepBuilder.new()
        step.target("train")
        for _ in range(2):
            session.run_builder(step, True, FOREVER)
        self.assertFails(Muster.Error.OUT_OF_RANGE, "no more rows", session.run_builder, step, True, FOREVER)
        self.assertGreater(session.global_step(), 0)

    def test_events_are_written(self):
        writer = Muster.EventWriter.new(self.folder, None)
        writer.add_scalar("loss", 0.5, 1)
        writer.add_summary(b"", 1)
        writer.add_graph(GLib.Bytes.new(b"g"))
        writer.add_meta_graph(GLib.Bytes.new(b"m"), 1)
        writer.add_session_log(Muster.SessionLog.CHECKPOINT, "model.ckpt-1", 1)
        writer.add_run_metadata("step_1", GLib.Bytes.new(b""), 1)
        before = os.path.getsize(writer.path())
        writer.flush()
        self.assertGreater(os.path.getsize(writer.path()), before)


class Positions(case.TestCase):
    def test_a_task_trains_each_batch_once(self):
        plain = case.linreg().with_saver().meta_graph()
        meta_graph = Muster.position_add(plain, 1)
        self.assertEqual((Muster.position_n_tasks(plain), Muster.position_n_tasks(meta_graph)), (0, 1))
        self.assertEqual(Muster.position_batch(3, 1, 2), 7)
        options = Muster.PositionOptions.new(None, data(), ["x:0", "y:0"])
        options.n_batches = 4
        hook = Muster.position_hook_new(options.copy())
        del options
        gc.collect()
        self.assertEqual(Muster.position_hook_position(hook), -1)
        scaffold, master = Muster.Scaffold.new(meta_graph), MusterEngine.Master.new()
        monitored = Muster.MonitoredSessionOptions.new(scaffold, master)
        monitored.hooks = [hook]
        session = Muster.MonitoredSession.new(monitored, None, None)
        step = Muster.StepBuilder.new()
        step.target("train")
        step.fetch("loss:0")
        trained = 0
        while not session.should_stop():
            trained += len(Muster.position_run_builder(hook, session, step, FOREVER))
        self.assertEqual(trained, 4)
        self.assertTrue(Muster.position_hook_is_over(hook))
        self.assertEqual(Muster.position_hook_position(hook), 4)
        self.assertFalse(Muster.position_hook_awaits(hook)[0])

        saver = Muster.Saver.new(meta_graph, None)
        guard = Muster.PositionGuard()
        guard.global_step = scaffold.global_step()
        Muster.position_guard(saver, meta_graph, guard.copy())
        prefix = saver.save(session.session(), self.folder, 4, FOREVER, None)
        self.assertTrue(Muster.position_check(meta_graph, None, prefix))
        self.assertFails(Muster.Error.INVALID_ARGUMENT, "", Muster.position_check, Muster.position_add(plain, 2), None, prefix)
        found = Muster.position_find(master, plain, None, FOREVER, None)
        self.assertEqual(Muster.position_n_tasks(found), 1)
        session.end(FOREVER)

    def test_a_model_deals_its_batches(self):
        plain = case.linreg().with_saver().meta_graph()
        meta_graph = Muster.position_add_dealt(plain, 8)
        self.assertEqual((Muster.position_n_tasks(meta_graph), Muster.position_is_dealt(meta_graph)), (8, True))
        self.assertFalse(Muster.position_is_dealt(Muster.position_add(plain, 8)))
        options = Muster.PositionOptions.new(None, data(), ["x:0", "y:0"])
        options.n_batches, options.task = 4, 5
        hook = Muster.position_hook_new(options)
        monitored = Muster.MonitoredSessionOptions.new(Muster.Scaffold.new(meta_graph), MusterEngine.Master.new())
        monitored.hooks = [hook]
        session = Muster.MonitoredSession.new(monitored, None, None)
        step = Muster.StepBuilder.new()
        step.target("train")
        step.fetch("loss:0")
        trained = 0
        while not session.should_stop():
            trained += len(Muster.position_run_builder(hook, session, step, FOREVER))
        self.assertEqual(trained, 4)
        self.assertTrue(Muster.position_hook_is_over(hook))
        session.end(FOREVER)


class MemberSlots(GObject.Object, Muster.PositionSlots):
    """Who is in which slot, by a membership at the master."""

    def __init__(self, master, member):
        super().__init__()
        self.master, self.member, self.calls = master, member, []

    def do_version(self):
        return self.member.roster().version

    def do_has_task(self, slot):
        return self.member.roster().has(slot)

    def do_claim(self, slot, deadline_us, cancellable):
        if self.do_has_task(slot):
            raise error(Muster.Error.FAILED_PRECONDITION, "slot %d has a task" % slot)
        self.calls.append("claim %d" % slot)
        join = Muster.Join.new("linreg", "worker:0", 4)
        join.slot, join.is_takeover = slot, True
        self.lent = self.master.join(join, deadline_us, cancellable)
        return True

    def do_release(self, slot):
        self.calls.append("release %d" % slot)
        self.lent.leave(FOREVER, None)


class Slots(case.TestCase):
    def test_are_taken_over_by_an_object_in_python(self):
        meta_graph = Muster.position_add_dealt(case.linreg().with_saver().meta_graph(), 4)
        master = Muster.Master.new_for_target(self.serve())
        one, gone = [master.join(Muster.Join.new("linreg", task, 4), FOREVER, None) for task in ("worker:0", "worker:1")]
        slots = MemberSlots(master, one)
        options = Muster.PositionOptions.new(None, data(), ["x:0", "y:0"])
        options.n_batches = 4
        options.slots = slots
        hook = Muster.position_hook_new(options.copy())
        del options
        gc.collect()
        monitored = Muster.MonitoredSessionOptions.new(Muster.Scaffold.new(meta_graph), master)
        monitored.hooks = [hook]
        session = Muster.MonitoredSession.new(monitored, None, None)
        draw = Muster.StepBuilder.new()
        draw.feed("muster/task:0", Muster.Tensor.new_int64(1))
        draw.feed("muster/position:0", Muster.Tensor.new_int64(0))
        draw.fetch("muster/draw/dealt:0")
        draw.fetch("muster/draw/held:0")  # with it the slot has the batch in hand
        self.assertEqual(case.values(draw.run(session.session(), FOREVER, None)[0]), [1])
        step = Muster.StepBuilder.new()
        step.target("train")
        step.fetch("loss:0")
        trained = len(Muster.position_run_builder(hook, session, step, FOREVER))
        self.assertEqual(slots.calls, [])

        gone.leave(FOREVER, None)
        while not session.should_stop():
            trained += len(Muster.position_run_builder(hook, session, step, FOREVER))

        self.assertEqual((trained, slots.calls), (4, ["claim 1", "release 1"]))
        session.end(FOREVER)

    def test_need_every_function(self):
        class Half(GObject.Object, Muster.PositionSlots):
            def do_version(self):
                return 1

        options = Muster.PositionOptions.new(None, None, None)
        options.slots = Half()
        self.assertFails(Muster.Error.INVALID_ARGUMENT, "lacks a function", Muster.position_hook_new, options)


class Inspect(case.TestCase):
    def test_a_graph_is_described_with_the_commands_for_it(self):
        path = case.fixture("linreg.meta")
        self.assertIsNone(Muster.Scaffold.load_with(path, ["train"]).propose_train_op())
        facts = Muster.Scaffold.load_with(path, ["train"]).inspect(path, ["train"], "local")
        placeholders = {fact.name: fact.text for fact in facts if fact.topic == "placeholder"}
        self.assertEqual(placeholders, {"x:0": "float[?], needed to train", "y:0": "float[?], needed to train"})
        train = next(fact.text for fact in facts if (fact.topic, fact.name) == ("command", "train"))
        self.assertTrue(train.startswith("muster train --meta-graph="), train)
        self.assertIn(" --train-op=train ", train)
        graph = Muster.Graph.load(case.fixture("linreg.meta"))
        self.assertEqual(Muster.GraphFact.new("loss", "loss:0", None).copy().text, "")
        self.assertTrue(MusterEngine.Master.check_ops(graph, ["train"]))


class Data(case.TestCase):
    def test_batches_have_each_row_once(self):
        batches = data(batch_size=3)
        self.assertEqual(batches.per_epoch(), 2)
        first = [case.values(array) for array in batches.next_list()]
        self.assertEqual(first[1], [2 * x + 1 for x in first[0]])
        rest = [case.values(array) for array in batches.next_list()]
        self.assertFalse(set(first[0]) & set(rest[0]))
        self.assertEqual(batches.position(), 2)
        batches.seek(0)
        self.assertEqual(case.values(batches.next_list()[0]), first[0])
        self.assertFails(Muster.Error.INVALID_ARGUMENT, "batch size", Muster.Batches.new, [case.tensor("f", [1])], 2, 0)

    def test_a_value_without_rows_is_the_same_in_each_batch(self):
        batches = Muster.Batches.new([case.tensor("f", [1, 2, 3, 4]), Muster.Tensor.new_float(0.5)], 2, 7)
        self.assertEqual([[0.5], [0.5]], [case.values(batches.next_list()[1]) for _ in range(2)])
        self.assertEqual(case.values(batches.array(1)), [0.5])
        self.assertIsNone(batches.array(2))
        self.assertEqual(Muster.Batches.new([Muster.Tensor.new_float(1)], 0, 0).per_epoch(), 0)
        batches.seek(0)
        batches.add_constant(case.tensor("f", [0.5, 0.25, 1]))
        self.assertEqual([[0.5, 0.25, 1]] * 2, [case.values(batches.next_list()[2]) for _ in range(2)])
        alone = Muster.Batches.new([], 0, 0)
        alone.add_constant(case.tensor("f", [1, 2]))
        self.assertEqual((0, [1, 2]), (alone.per_epoch(), case.values(alone.next_list()[0])))

    def test_each_array_needs_a_tensor_to_feed(self):
        batches = data()
        batches.add_constant(Muster.Tensor.new_float(1))
        job = training(until_step=1)
        job.batches, job.feeds = batches, ["x:0", "y:0"]
        refused = Muster.Error.INVALID_ARGUMENT, "have 3 arrays for 2 tensors"
        self.assertFails(*refused, Muster.train, job, None, None)
        self.assertFails(*refused, Muster.position_hook_new, Muster.PositionOptions.new(None, batches, ["x:0", "y:0"]))

    def test_numpy_files_are_tensors(self):
        with open(case.fixture("digits_x.npy"), "rb") as file:
            read = Muster.npy_read(GLib.Bytes.new(file.read()))
        self.assertEqual(Muster.npy_load(case.fixture("digits_x.npy")).shape(), read.shape())


if __name__ == "__main__":
    case.main()
