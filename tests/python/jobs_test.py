#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Jobs: clusters, groups of tasks, checkpoints by epoch and the runner."""
import gc
import glob

import case
from case import FOREVER, GLib, GObject, Muster, MusterEngine

NODE = "trainer_0"


def error(code, text):
    return GLib.Error.new_literal(Muster.error_quark(), text, code)


def feed(step):
    step.add_feed("x:0", case.tensor("f", [1, 2]))
    step.add_feed("y:0", case.tensor("f", [3, 5]))
    return step


def task(name, *targets, func=None):
    made = Muster.JobTask.new(name, NODE, 0)
    step = Muster.JobStep.new(None, list(targets) or None)
    if func is not None:
        step.set_func(func)
    elif "train" in targets:
        feed(step)
    made.set_step(step.copy())
    return made


def cluster(meta_graph=None):
    made = Muster.Cluster.new(None)
    made.add(NODE, MusterEngine.Master.new(), meta_graph or case.linreg().with_saver().meta_graph())
    made.open(FOREVER, None)
    return made


def job(epochs):
    """Trains two steps in each of so many epochs."""
    made = Muster.Job.new()
    made.init_group().add(task("init", case.linreg().init_op()))
    step = feed(Muster.JobStep.new("steps", ["train"]))
    step.repeat = 2
    epoch = Muster.JobTask.new(None, NODE, 0)
    epoch.set_step(step)
    made.add_task(epoch)
    made.limit_epochs(NODE, epochs)
    return made


def counted():
    return Muster.epoch_counter_add(case.linreg().with_saver().meta_graph())


class Groups(case.TestCase):
    def test_tasks_run_on_their_nodes(self):
        nodes = cluster()
        self.assertEqual([node.name for node in nodes.nodes()], [NODE])
        node = nodes.node(NODE)
        self.assertIsNone(nodes.node("other"))
        self.assertIsNotNone(nodes.clock())
        group = Muster.JobGroup.new()
        first = task("init", case.linreg().init_op())
        self.assertTrue(group.add(first))
        self.assertEqual((first.name(), first.node()), (NODE + "/init", NODE))
        self.assertEqual(group.nodes(), [NODE])
        self.assertTrue(nodes.compile(group))
        self.assertTrue(nodes.run(group, FOREVER, None))
        self.assertEqual(len(group.tasks()), 1)
        parts = group.tasks_by_node(None)
        self.assertEqual([part.node for part in parts], [NODE])
        self.assertFails(Muster.Error.FAILED_PRECONDITION, "already used", group.add, task("late", "train"))

        train = task("train", "train")
        output = train.add_output([case.linreg().global_step()])
        self.assertTrue(nodes.run_task(train, FOREVER, None))
        self.assertEqual(case.values(output.get()), [1])
        self.assertEqual(len(output.get_list()), 1)
        self.assertTrue(output.fetch(FOREVER, None))
        name = node.name
        nodes.leave(error(Muster.Error.UNKNOWN, "looked at later"))
        self.assertIsNotNone(nodes.node(NODE).session)
        nodes.close()
        del nodes
        gc.collect()
        self.assertEqual((name, node.name), (NODE, NODE))

    def test_functions_and_setups_run_around_them(self):
        nodes, seen = cluster(), []

        def note(what):
            def run(node, deadline_us, cancellable, *data):
                seen.append((what, node.name))
                return True
            return run

        work = Muster.JobTask.new("work", NODE, 1)
        output = work.add_output(None)

        def produce(node, deadline_us, cancellable, *data):
            seen.append(("work", node.name))
            return output.set([case.tensor("f", [7])])

        step = Muster.JobStep.new(None, None)
        step.set_func(produce)
        work.set_step(step)
        before, after = Muster.JobStep.new(None, None), Muster.JobStep.new(None, None)
        before.set_func(note("before"))
        after.set_func(note("after"))
        self.assertTrue(work.add_setup(Muster.JobSetup.new(before, after), False))
        group = Muster.JobGroup.new()
        group.add(work)
        report = Muster.JobStep.new(None, None)
        report.set_func(note("report"))
        self.assertTrue(group.add_report(NODE, report, 0))
        self.assertTrue(group.add_setup(NODE, Muster.JobSetup.new(None, None)))
        del before, after, report, step
        gc.collect()
        self.assertTrue(nodes.run(group, FOREVER, None))
        self.assertEqual([what for what, _ in seen if what != "report"], ["before", "work", "after"])
        self.assertIn(("report", NODE), seen)
        self.assertEqual(case.values(output.get()), [7])

    def test_an_exception_fails_the_group(self):
        def fails(*_):
            raise error(Muster.Error.UNKNOWN, "mine")

        group = Muster.JobGroup.new()
        group.add(task("fails", func=fails))
        said = self.assertFails(Muster.Error.UNKNOWN, "mine", cluster().run, group, FOREVER, None)
        self.assertIn(NODE, said)


class Jobs(case.TestCase):
    def test_a_job_is_its_groups(self):
        groups = [Muster.JobGroup.new() for _ in range(4)]
        made = Muster.Job.new_with_groups(*groups, None, [NODE])
        self.assertEqual([made.init_group(), made.epoch_group(), made.download_group(), made.exit_group()], groups)
        self.assertEqual(made.nodes_to_checkpoint(), [NODE])
        self.assertTrue(made.add_stop_tensor(NODE, "ready:0"))
        other = Muster.JobTask.new("stop", NODE, 0)
        self.assertTrue(made.add_stop_output(other.add_output(["ready:0"])))
        self.assertEqual(len(made.stop_conditions()), 2)
        self.assertFails(Muster.Error.INVALID_ARGUMENT, "ready", made.compile, cluster())

    def test_a_runner_trains_by_epochs_and_resumes(self):
        metadata = Muster.JobStateFile.new()
        checkpoint = Muster.JobCheckpoint.new(self.folder, None, metadata, None)
        epochs = []
        options = Muster.JobRunnerOptions()
        options.save_blocking = True
        options.upload = None
        runner = Muster.JobRunner.new(job(2), checkpoint, Muster.NO_EPOCH, options.copy())
        runner.connect("epoch-done", lambda _, epoch: epochs.append(epoch))
        del options
        gc.collect()
        nodes = cluster(counted())
        trained, last = runner.train(nodes, FOREVER, None)
        self.assertEqual((trained, last, epochs), (True, 2, [1, 2]))
        self.assertEqual(runner.list_failed_epochs(), [])
        self.assertIsNone(runner.last_failure())
        self.assertEqual(runner.goodput().step, 2)
        self.assertTrue(glob.glob("%s/%s.2.index" % (self.folder, NODE)))
        stats, action = metadata.stats()
        self.assertEqual((action, [(stat.node, stat.epoch) for stat in stats]), ("checkpoint_save", [(NODE, 2)]))
        self.assertEqual([stat.node for stat in checkpoint.stats()], [NODE])
        self.assertEqual(tuple(runner.save(nodes, 3, False, FOREVER, None)), (True, True))
        names = [name for name in checkpoint.names(NODE) if "global_step" in name]
        self.assertEqual(tuple(runner.load_partial(nodes, names, 2, None, FOREVER, None)), (True, True, names))
        nodes.close()

        again = Muster.JobCheckpoint.new(self.folder, None, Muster.JobStateFile.new(), None)
        runner = Muster.JobRunner.new(job(4), again, Muster.NO_EPOCH, None)
        self.assertEqual(tuple(runner.train(cluster(counted()), FOREVER, None)), (True, 4))

    def test_an_upload_builder_in_python_is_asked(self):
        uploaded = []

        class Upload(Muster.JobUploadBuilder):
            def do_build(self, epoch, checkpoint):
                group = Muster.JobGroup.new()
                group.add(task("upload", func=lambda *_: uploaded.append((epoch, checkpoint)) or True))
                return group

        options = Muster.JobRunnerOptions()
        options.upload = Upload()
        runner = Muster.JobRunner.new(job(1), None, Muster.NO_EPOCH, options)
        self.assertEqual(tuple(runner.train(cluster(counted()), FOREVER, None)), (True, 1))
        self.assertEqual(uploaded, [(1, None)])


class Checkpoints(case.TestCase):
    def test_groups_save_and_load(self):
        nodes = cluster()
        nodes.run_task(task("init", case.linreg().init_op()), FOREVER, None)
        checkpoint = Muster.JobCheckpoint.new_for_node(self.folder, "model", None, None, None)
        self.assertEqual(Muster.JobCheckpoint.path("/d", None, "n", 5), "/d/n.5")
        self.assertFails(Muster.Error.FAILED_PRECONDITION, "init must be called", checkpoint.names, NODE)
        path = Muster.JobPath.new(self.folder + "/", None).copy()
        self.assertTrue(nodes.run(checkpoint.init_group([NODE], Muster.NO_EPOCH, None), FOREVER, None))
        self.assertEqual(checkpoint.db_name(None, 5), self.folder + "/model.5")
        self.assertTrue(nodes.run(checkpoint.save_group(5), FOREVER, None))
        self.assertTrue(nodes.run(checkpoint.load_group(5, None), FOREVER, None))
        exists_task, exists = checkpoint.exists_task(None, 5)
        nodes.run_task(exists_task, FOREVER, None)
        self.assertEqual(exists.get().to_bytes().get_data(), b"\1")
        name = next(name for name in checkpoint.names(None) if "global_step" in name)
        load_task, loaded = checkpoint.partial_load_task(None, [name], 5, None)
        nodes.run_task(load_task, FOREVER, None)
        self.assertIn(name, loaded.get().to_string(5))
        self.assertTrue(checkpoint.set_params([NODE], path))
        self.assertTrue(checkpoint.report("checkpoint_save", FOREVER, None))
        self.assertTrue(checkpoint.write_metadata(5, False, FOREVER, None))
        self.assertEqual(tuple(checkpoint.resume_epoch(5, FOREVER, None)), (True, 5, False))
        self.assertEqual(tuple(checkpoint.accessible(5, FOREVER, None)), (True, True))

    def test_variables_are_loaded_locally(self):
        nodes = cluster()
        nodes.run_task(task("init", case.linreg().init_op()), FOREVER, None)
        checkpoint = Muster.JobCheckpoint.new(self.folder, None, None, None)
        nodes.run(checkpoint.init_group([NODE], Muster.NO_EPOCH, None), FOREVER, None)
        nodes.run(checkpoint.save_group(1), FOREVER, None)
        name = next(name for name in checkpoint.names(NODE) if "global_step" in name)
        self.assertEqual(tuple(checkpoint.load_locally([NODE], [name], 1, nodes, None, FOREVER, None)), (True, True, [name]))
        self.assertEqual(tuple(checkpoint.load_locally([NODE], [name], 2, nodes, None, FOREVER, None))[:2], (True, False))

    def test_metadata_in_python_is_asked(self):
        class Metadata(GObject.Object, Muster.JobMetadata):
            def do_set_params(self, params):
                self.directory = params.directory
                return True

            def do_write(self, epoch, finished, deadline_us, cancellable):
                self.written = (epoch, finished)
                return True

            def do_last_epoch(self, user_epoch, deadline_us, cancellable):
                return True, 7, True

            def do_accessible(self, epoch, deadline_us, cancellable):
                return True, False

            def do_report(self, action, stats, deadline_us, cancellable):
                self.reported = (action, len(stats))
                return True

        metadata = Metadata()
        checkpoint = Muster.JobCheckpoint.new(self.folder, None, metadata, None)
        checkpoint.set_params([NODE], None)
        self.assertEqual(metadata.directory, self.folder)
        checkpoint.write_metadata(3, True, FOREVER, None)
        self.assertEqual(metadata.written, (3, True))
        self.assertEqual(tuple(checkpoint.resume_epoch(Muster.NO_EPOCH, FOREVER, None)), (True, 7, True))
        self.assertEqual(tuple(checkpoint.accessible(3, FOREVER, None)), (True, False))
        checkpoint.report("checkpoint_save", FOREVER, None)
        self.assertEqual(metadata.reported[0], "checkpoint_save")
        params = Muster.JobParams()
        params.directory = "elsewhere"
        Muster.JobMetadata.set_params(metadata, params)
        self.assertEqual(metadata.directory, "elsewhere")
        self.assertEqual(tuple(Muster.JobMetadata.last_epoch(metadata, 1, FOREVER, None)), (True, 7, True))
        self.assertEqual(tuple(Muster.JobMetadata.accessible(metadata, 3, FOREVER, None)), (True, False))
        Muster.JobMetadata.report(metadata, "checkpoint_load", [], FOREVER, None)
        self.assertEqual(metadata.reported, ("checkpoint_load", 0))
        file = Muster.JobStateFile.new()
        self.assertFails(Muster.Error.FAILED_PRECONDITION, "", file.write, 1, False, FOREVER, None)

    def test_metadata_in_python_that_fails_without_a_word_is_named(self):
        class Fails(GObject.Object, Muster.JobMetadata):
            def do_write(self, epoch, finished, deadline_us, cancellable):
                return False

            def do_accessible(self, epoch, deadline_us, cancellable):
                return False, False

        checkpoint = Muster.JobCheckpoint.new(self.folder, None, Fails(), None)
        self.assertFails(Muster.Error.INTERNAL, "Fails: write () failed without an error", checkpoint.write_metadata, 3, True, FOREVER, None)
        self.assertFails(Muster.Error.INTERNAL, "Fails: accessible () failed without an error", checkpoint.accessible, 3, FOREVER, None)


if __name__ == "__main__":
    case.main()
