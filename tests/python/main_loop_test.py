#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Saving, reading checkpoints and monitored sessions in the background, with GLib's main loop."""
import case
from case import FOREVER, Gio, GLib, Muster, MusterEngine

PATIENCE_S = 60


def answer(start, *arguments, cancellable=None):
    """Starts a call, iterates the main loop until it is over, and returns its result for finish."""
    loop, results = GLib.MainLoop(), []

    def over(_source, result, *_data):
        results.append(result)
        loop.quit()

    patience = GLib.timeout_add_seconds(PATIENCE_S, loop.quit)
    start(*arguments, cancellable, over)
    loop.run()
    if not results:
        raise AssertionError("a call in the background never came back")
    GLib.source_remove(patience)
    return results[0]


class WithModel(case.TestCase):
    def setUp(self):
        super().setUp()
        self.scaffold = case.linreg()
        self.session = case.session(self.scaffold)
        self.saver = Muster.Saver.new(self.scaffold.meta_graph(), None)


class FilesTest(WithModel):
    def test_a_model_is_saved_and_restored(self):
        saver = self.saver
        self.assertTrue(saver.claim_directory_finish(answer(saver.claim_directory_async, self.folder, FOREVER)))
        self.assertTrue(saver.begin_run_finish(answer(saver.begin_run_async, self.folder, None, -1, FOREVER)))
        prefix = saver.save_finish(answer(saver.save_async, self.session, self.folder, 7, FOREVER))
        self.assertTrue(prefix.endswith("model.ckpt-7"))
        self.assertTrue(saver.check_compatible_finish(answer(saver.check_compatible_async, prefix)))
        options = Muster.RestoreOptions.new(prefix, None)
        self.assertTrue(saver.restore_finish(answer(saver.restore_async, self.session, options, FOREVER), None))

    def test_a_checkpoint_is_read(self):
        prefix = self.saver.save(self.session, self.folder, 7, FOREVER, None)
        reader = Muster.BundleReader.open_finish(answer(Muster.BundleReader.open_async, None, prefix))
        step = reader.read_finish(answer(reader.read_async, "global_step"))
        self.assertEqual(case.values(step), [0])
        step = reader.read_slice_finish(answer(reader.read_slice_async, "global_step", None))
        self.assertEqual(case.values(step), [0])
        names = ["global_step"]
        (step,) = reader.read_all_finish(answer(reader.read_all_async, names, None))
        self.assertEqual(case.values(step), [0])
        self.assertTrue(reader.verify_finish(answer(reader.verify_async)))
        cancellable = Gio.Cancellable()
        cancellable.cancel()
        result = answer(reader.read_async, "global_step", cancellable=cancellable)
        with self.assertRaises(GLib.Error) as caught:
            reader.read_finish(result)
        self.assertTrue(caught.exception.matches(Gio.io_error_quark(), Gio.IOErrorEnum.CANCELLED))
        with self.assertRaises(GLib.Error) as caught:
            reader.read_finish(answer(reader.read_async, "nothing"))
        self.assertTrue(caught.exception.matches(Muster.error_quark(), Muster.Error.NOT_FOUND))


class AsyncSaversTest(WithModel):
    def test_a_model_is_saved_while_it_is_trained(self):
        saver = Muster.AsyncSaver.new(self.saver, self.session, None)
        self.assertTrue(saver.prepare_finish(answer(saver.prepare_async, FOREVER)))
        ticket = saver.save_finish(answer(saver.save_async, self.folder, 3, FOREVER))
        result = answer(ticket.wait_async, Muster.SaveState.DURABLE, FOREVER)
        self.assertTrue(ticket.wait_finish(result))
        in_tiers = saver.save_in_tiers_finish(answer(saver.save_in_tiers_async, self.folder, 4, 0, FOREVER))
        self.assertEqual((ticket.step(), in_tiers.step()), (3, 4))
        self.assertTrue(saver.sync_saves_finish(answer(saver.sync_saves_async, FOREVER)))
        written = saver.write_finish(answer(saver.write_async, self.folder + "/mine", FOREVER))
        self.assertTrue(saver.sync_finish(answer(saver.sync_async, FOREVER)))
        self.assertTrue(saver.read_finish(answer(saver.read_async, written.path(), FOREVER)))
        options, restored = Muster.RestoreOptions.new(None, self.folder), Muster.Restored.new()
        self.assertTrue(saver.restore_finish(answer(saver.restore_async, options, FOREVER), restored))
        self.assertEqual(restored.prefix, self.folder + "/model.ckpt-4")
        self.assertTrue(saver.shutdown_finish(answer(saver.shutdown_async, FOREVER)))

    def test_checkpoints_are_numbered(self):
        manager = Muster.CheckpointManager.new(self.scaffold.meta_graph(), self.folder, None)
        start = manager.restore_or_initialize_async
        self.assertEqual(tuple(manager.restore_or_initialize_finish(answer(start, self.session, FOREVER))), (True, None))
        saved = Muster.Saved.new()
        self.assertTrue(manager.save_finish(answer(manager.save_async, self.session, -1, False, FOREVER), saved))
        self.assertEqual(saved.prefix, self.folder + "/ckpt-1")
        self.assertTrue(manager.sync_finish(answer(manager.sync_async, FOREVER)))


class JobsTest(case.TestCase):
    NODE = "trainer_0"

    def task(self, op):
        made = Muster.JobTask.new(None, self.NODE, 0)
        step = Muster.JobStep.new(None, [op])
        if op == "train":
            step.add_feed("x:0", case.tensor("f", [1, 2]))
            step.add_feed("y:0", case.tensor("f", [3, 5]))
        made.set_step(step)
        return made

    def cluster(self, meta_graph):
        made = Muster.Cluster.new(None)
        made.add(self.NODE, MusterEngine.Master.new(), meta_graph)
        self.assertTrue(made.open_finish(answer(made.open_async, FOREVER)))
        return made

    def test_groups_and_tasks_run(self):
        scaffold = case.linreg().with_saver()
        nodes, group = self.cluster(scaffold.meta_graph()), Muster.JobGroup.new()
        group.add(self.task(scaffold.init_op()))
        self.assertTrue(nodes.run_finish(answer(nodes.run_async, group, FOREVER)))
        train = self.task("train")
        output = train.add_output([scaffold.global_step()])
        self.assertTrue(nodes.run_task_finish(answer(nodes.run_task_async, train, FOREVER)))
        self.assertTrue(output.fetch_finish(answer(output.fetch_async, FOREVER)))
        self.assertEqual(case.values(output.get()), [1])

    def test_a_job_trains_saves_and_loads(self):
        scaffold = case.linreg().with_saver()
        job = Muster.Job.new(None)
        job.init_group().add(self.task(scaffold.init_op()))
        job.add_task(self.task("train"))
        job.limit_epochs(self.NODE, 2)
        checkpoint = Muster.JobCheckpoint.new(self.folder, None)
        runner = Muster.JobRunner.new(job, checkpoint, Muster.NO_EPOCH, None)
        nodes = self.cluster(Muster.epoch_counter_add(scaffold.meta_graph()))
        trained, last = runner.train_finish(answer(runner.train_async, nodes, FOREVER))
        self.assertEqual((trained, last), (True, 2))
        saved = runner.save_finish(answer(runner.save_async, nodes, 3, True, FOREVER))
        self.assertEqual(tuple(saved), (True, True))
        names = [next(name for name in checkpoint.names(self.NODE) if "global_step" in name)]
        loaded = runner.load_partial_finish(answer(runner.load_partial_async, nodes, names, 3, None, FOREVER))
        self.assertEqual(tuple(loaded), (True, True, names))


class MonitoredTest(case.TestCase):
    def test_a_monitored_session_trains(self):
        options = Muster.MonitoredSessionOptions.new(case.linreg(), MusterEngine.Master.new())
        session = Muster.MonitoredSession.new_finish(answer(Muster.MonitoredSession.new_async, options), None)
        step = Muster.StepBuilder.new()
        step.feed("x:0", case.tensor("f", [1, 2]))
        step.feed("y:0", case.tensor("f", [3, 5]))
        step.target("train")
        for _ in range(3):
            session.run_builder_finish(answer(session.run_builder_async, step, True, FOREVER))
        look = Muster.StepBuilder.new()
        look.fetch("global_step")
        (count,) = session.run_builder_finish(answer(session.run_builder_async, look, False, FOREVER))
        self.assertEqual(case.values(count), [3])
        self.assertTrue(session.end_finish(answer(session.end_async, FOREVER)))

    def test_it_ends_with_the_end_of_its_input(self):
        options = Muster.MonitoredSessionOptions.new(case.linreg(), MusterEngine.Master.new())
        session = Muster.MonitoredSession.new(options, None, None)
        end = GLib.Error.new_literal(Muster.error_quark(), "no more", Muster.Error.OUT_OF_RANGE)
        self.assertTrue(session.finish_finish(answer(session.finish_async, end, FOREVER)))
        self.assertEqual(session.end_of_input(), "no more")

    def test_a_task_trains(self):
        training = Muster.Training.new(case.linreg(), MusterEngine.Master.new())
        arrays = [case.tensor("f", [1, 2, 3, 4]), case.tensor("f", [3, 5, 7, 9])]
        training.set_batches(Muster.Batches.new(arrays, 2, 7), ["x:0", "y:0"])
        training.until_step = 6
        trained = Muster.Trained.new()
        self.assertTrue(Muster.train_finish(answer(Muster.train_async, training), trained))
        self.assertEqual((trained.step, trained.is_reached), (6, True))


if __name__ == "__main__":
    case.main()
