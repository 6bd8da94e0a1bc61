#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Savers from Python: saves, restores, what they are asked for, tiers, background saves and the manager."""
import gc
import os

import case
from case import FOREVER, Gio, GLib, GObject, Muster, MusterEngine


class Position(GObject.Object, Muster.Saveable):
    """State outside the graph."""

    def __init__(self, value):
        super().__init__()
        self.value, self.n_retrieved, self.kept = value, 0, None

    def do_retrieve(self):
        self.n_retrieved += 1
        return True

    def do_collect(self, tensors):
        tensors.add("value", case.tensor("q", [self.value], []))
        return True

    def do_assign(self, tensors):
        self.kept = tensors
        self.value = case.values(tensors.get("value"))[0]
        return True


class SaverCase(case.TestCase):
    def setUp(self):
        super().setUp()
        self.scaffold = case.linreg()
        self.session = case.session(self.scaffold)
        self.run = self.folder + "/run"

    def saver(self, **fields):
        options = Muster.SaverOptions()
        for name, value in fields.items():
            setattr(options, name, value)
        return Muster.Saver.new(self.scaffold.meta_graph(), options)

    def train(self):
        """One step; returns the global step."""
        step = Muster.StepBuilder.new()
        step.feed("x:0", case.tensor("f", [1, 2, 3, 4], [4]))
        step.feed("y:0", case.tensor("f", [1, 2, 3, 4], [4]))
        step.target(self.scaffold.train_op())
        step.run(self.session, FOREVER, None)
        return self.step()

    def status(self, saver):
        status = Muster.SaveStatus()
        saver.status(status)
        return status

    def step(self):
        return self.session.fetch(self.scaffold.global_step(), FOREVER, None).get_int64()[1]


class Saver(SaverCase):
    def test_saves_and_restores(self):
        saver = self.saver(max_to_keep=2)
        for expected in (1, 2, 3):
            self.assertEqual(self.train(), expected)
            self.assertEqual(saver.save(self.session, self.run, expected, FOREVER, None),
                             "%s/model.ckpt-%d" % (self.run, expected))
        two = [self.run + "/model.ckpt-2", self.run + "/model.ckpt-3"]
        self.assertEqual(saver.last_checkpoints(), two)
        self.assertEqual(saver.latest_checkpoint(self.run), two[1])
        restored, options = Muster.Restored(), Muster.RestoreOptions.new(two[0], None)
        seen = []
        options.set_progress(lambda done, total, data: seen.append((done, total, data)), "data")
        self.train()
        self.assertTrue(saver.restore(self.session, options, restored, FOREVER, None))
        self.assertEqual((restored.prefix, self.step()), (two[0], 2))
        self.assertGreater(restored.n_tensors, 0)
        self.assertFalse(restored.initialised or restored.warning or restored.passed_over)
        self.assertTrue(saver.check_compatible(two[1], None))
        self.assertTrue(all(data == "data" and done <= total for done, total, data in seen))
        self.assertEqual(restored.copy().prefix, two[0])
        restored.clear()
        self.assertIsNone(restored.prefix)

    def test_reports_a_restore_of_an_empty_directory(self):
        restored = Muster.Restored()
        self.assertTrue(self.saver().restore(self.session, Muster.RestoreOptions.new(None, self.folder), restored,
                                             FOREVER, None))
        self.assertIsNone(restored.prefix)

    def test_reads_tensors_by_other_names(self):
        saver = self.saver()
        prefix = saver.save(self.session, self.run, 1, FOREVER, None)
        reader = Muster.BundleReader.open(None, prefix)
        names = [name for name in reader.names() if name != "global_step"]
        writer = Muster.BundleWriter.new(None, self.folder + "/other")
        for name in reader.names():
            writer.add("new/" + name if name == names[0] else name, reader.read(name))
        writer.finish()
        options = Muster.RestoreOptions.new(self.folder + "/other", None)
        self.assertFails(Muster.Error.INVALID_ARGUMENT, names[0], saver.restore, self.session, options, None, FOREVER, None)
        options.set_names({names[0]: "new/" + names[0]})
        self.assertTrue(saver.restore(self.session, options, None, FOREVER, None))
        options.set_names(None)
        options.may_lack = names[:1]
        lacking = Muster.Restored()
        self.assertTrue(saver.restore(self.session, options.copy(), lacking, FOREVER, None))
        self.assertEqual(lacking.initialised, [names[0]])
        options.may_lack = None
        options.needs = ["none"]
        options.allow_missing = True
        restored = Muster.Restored()
        self.assertTrue(saver.restore(self.session, options.copy(), restored, FOREVER, None))
        self.assertEqual(restored.initialised, [names[0]])

    def test_tells_what_it_saved(self):
        saver, saved = self.saver(), Muster.Saved()
        self.assertTrue(saver.save_with(self.session, self.run, 4, 0, saved, FOREVER, None))
        self.assertEqual((saved.prefix, saved.skipped, saved.why), (self.run + "/model.ckpt-4", False, None))
        self.assertEqual(saved.at_us, sorted(saved.at_us))
        self.assertEqual(len(saved.at_us), 4)
        self.assertEqual(saved.copy().prefix, saved.prefix)
        saved.clear()
        self.assertIsNone(saved.prefix)

    def test_has_a_status(self):
        saver = self.saver()
        saver.set_interval(1000000)
        background = Muster.AsyncSaver.new(saver, self.session, Muster.SavePolicy.BLOCK, 0)
        saver.save(self.session, self.run, 1, FOREVER, None)
        for of in (saver, background):
            status = self.status(of)
            self.assertEqual((status.n_durable, status.interval_us), (1, 1000000))

    def test_has_options(self):
        class Store(Muster.ForwardingStorage, Muster.Storage):
            pass

        options = Muster.SaverOptions()
        options.base_name, options.latest_filename, options.pad_step_number = "m", "state", True
        store = Store()
        options.storage = store
        options.clock = Muster.system_clock()
        options.set_paused(lambda why, data: None, None)
        saver = Muster.Saver.new(self.scaffold.meta_graph(), options.copy())
        del options
        gc.collect()
        self.assertEqual(saver.storage(), store)
        saver.save(self.session, self.run, 7, FOREVER, None)
        self.assertIn("m-00000007.index", os.listdir(self.run))
        self.assertIn("state", os.listdir(self.run))
        self.assertFalse(saver.is_empty())
        self.assertGreater(saver.estimate_bytes(), 0)

    def test_keeps_the_best(self):
        saver = self.saver(max_to_keep=1, keep_best=1, metric="eval/accuracy:max", keep_every_steps=100)
        self.assertEqual(saver.metric(), "eval/accuracy")
        for step, value in ((1, 0.5), (2, 0.9), (3, float("nan")), (4, 0.1)):
            saver.set_metric(value)
            saver.save(self.session, self.run, step, FOREVER, None)
        self.assertEqual([Muster.checkpoint_step(prefix) for prefix in Muster.checkpoint_list(None, self.run)], [2, 4])
        self.assertEqual(saver.last_checkpoints(), [self.run + "/model.ckpt-4"])

    def test_takes_a_directory_for_a_job_and_gives_it_back(self):
        saver = self.saver()
        saver.save(self.session, self.run, 1, FOREVER, None)
        self.assertTrue(saver.adopt_for_job(self.run, False))
        self.assertTrue(saver.take_directory(None, self.run, FOREVER, None))
        options = Muster.PrepareOptions.new("init", saver, self.run)
        options.taken_by = saver
        self.assertIs(options.taken_by, saver)
        saver.release_directory(self.run, 0, None)

    def test_has_a_list(self):
        saver = self.saver()
        paths = [saver.save(self.session, self.run, step, FOREVER, None) for step in (1, 2)]
        other = self.saver()
        self.assertEqual(other.last_checkpoints(), [])
        self.assertTrue(other.adopt_directory(self.run))
        self.assertEqual(other.last_checkpoints(), paths)
        other.recover_last_checkpoints([paths[1], self.run + "/none"])
        self.assertEqual(other.last_checkpoints(), paths[1:])
        self.assertTrue(other.set_last_checkpoints_with_times(paths, [1.0, 2.0]))
        self.assertEqual(other.last_checkpoints(), paths)
        self.assertTrue(other.set_last_checkpoints_with_times(paths[:1], []))
        self.assertFails(Muster.Error.INVALID_ARGUMENT, "1 times for 2 checkpoints",
                         other.set_last_checkpoints_with_times, paths, [1.0])

    def test_begins_runs_and_judges_checkpoints(self):
        saver = self.saver()
        saver.set_lease(None)
        self.assertTrue(saver.claim_directory(self.run, FOREVER, None))
        taken = GLib.Error.new_literal(Muster.error_quark(), "'run' was taken over by worker:1", Muster.Error.FAILED_PRECONDITION)
        self.assertTrue(Muster.Saver.is_taken_over(taken))
        taken.code = Muster.Error.ABORTED
        self.assertFalse(Muster.Saver.is_taken_over(taken))
        self.assertTrue(saver.begin_run(self.run, None, -1, FOREVER, None))
        self.assertEqual(saver.has_whole_checkpoint(self.run, None), (True, False))
        prefix = saver.save(self.session, self.run, 3, FOREVER, None)
        self.assertEqual(saver.has_whole_checkpoint(self.run, None), (True, True))
        options = Muster.RestoreOptions.new(None, self.run)
        options.count_deaths = True
        self.assertTrue(saver.restore(self.session, options, None, FOREVER, None))
        self.assertTrue(saver.mark_good())
        self.assertTrue(saver.end_run(self.run, 3, FOREVER, None))
        self.assertTrue(saver.clear_crash_loop())
        living = Muster.LivingModel.new("host:1", prefix, 3, 5)
        self.assertEqual((living.holder, living.copy().durable), ("host:1", prefix))
        # No chief has announced it.
        self.assertEqual(saver.continue_(self.run, living, False), (True, False))

    def test_keeps_the_account_of_a_job(self):
        saver, goodput = self.saver(), Muster.Goodput()
        self.assertEqual(saver.read_goodput(self.run)[0], False)
        goodput.began_us, goodput.step, goodput.n_restarts = 1000000, 9, 2
        saver.set_goodput(goodput)
        saver.save(self.session, self.run, 3, FOREVER, None)
        self.assertTrue(saver.write_goodput(self.run, FOREVER, None))
        found, read = saver.read_goodput(self.run)
        self.assertEqual((found, read.began_us, read.step, read.n_restarts), (True, 1000000, 9, 2))

    def test_releases_its_cut(self):
        saver = self.saver()
        saver.keep_cut(True)
        saver.save(self.session, self.run, 3, FOREVER, None)
        saver.release_cut(self.session)

    def test_cuts_by_an_object_in_python(self):
        class Cut(GObject.Object, Muster.Cut):
            calls = []

            def do_quiesce(self, session, deadline_us, cancellable):
                self.calls.append("quiesce")
                return True

            def do_check(self, session, deadline_us, cancellable):
                self.calls.append("check")
                return True, len(self.calls) > 3

            def do_number(self, session, deadline_us, cancellable):
                self.calls.append("number")
                return True, 42

            def do_release(self, session):
                self.calls.append("release")

        saver, cut = self.saver(), Cut()
        saver.set_cut(cut)
        self.assertEqual(saver.save(self.session, self.run, 1, FOREVER, None), self.run + "/model.ckpt-42")
        self.assertEqual(cut.calls, ["quiesce", "number", "check"] * 2 + ["release"])
        saver.set_cut(None)
        self.assertEqual(saver.save(self.session, self.run, 2, FOREVER, None), self.run + "/model.ckpt-2")


class Saveable(SaverCase):
    def test_in_python_is_saved_and_restored(self):
        saver, position = self.saver(), Position(41)
        self.assertTrue(saver.add_saveable("position", position, Muster.SaveableFlags.REQUIRED))
        prefix = saver.save(self.session, self.run, 1, FOREVER, None)
        self.assertEqual(case.values(Muster.BundleReader.open(None, prefix).read("position/value")), [41])
        self.assertEqual(position.n_retrieved, 1)
        position.value = 0
        saver.restore(self.session, Muster.RestoreOptions.new(prefix, None), None, FOREVER, None)
        gc.collect()
        self.assertEqual((position.value, position.kept.keys()), (41, ["value"]))
        self.assertEqual(case.values(position.kept.get("value")), [41])
        self.assertIsNone(position.kept.get("none"))

    def test_fails_the_save_by_its_own_error(self):
        class Broken(GObject.Object, Muster.Saveable):
            def do_collect(self, tensors):
                raise GLib.Error.new_literal(Muster.error_quark(), "the table is gone", Muster.Error.UNAVAILABLE)

        saver = self.saver()
        saver.add_saveable("broken", Broken(), Muster.SaveableFlags.DEFAULT)
        self.assertFails(Muster.Error.UNAVAILABLE, "the table is gone", saver.save, self.session, self.run, 1, FOREVER, None)

    def test_tensors_have_names(self):
        named = Muster.NamedTensor.new("x", case.tensor("f", [1]))
        self.assertEqual((named.name, case.values(named.tensor)), ("x", [1]))
        self.assertEqual(named.copy().name, "x")


class Builder(SaverCase):
    def test_builds_savers(self):
        how = Muster.SaverBuild()
        how.scope = "mine"
        how.variables = ["global_step"]
        saver = Muster.Saver.new(Muster.saver_build(self.scaffold.meta_graph(), how.copy()), None)
        session = MusterEngine.Master.new().create_session(
            Muster.saver_build(self.scaffold.meta_graph(), how).graph(), None, FOREVER, None)
        session.run_op(self.scaffold.init_op(), FOREVER, None)
        prefix = saver.save(session, self.run, 1, FOREVER, None)
        self.assertEqual(Muster.BundleReader.open(None, prefix).names(), ["global_step"])

    def test_maps_names(self):
        how = Muster.SaverBuild()
        how.add_key("steps", "global_step")
        graph = Muster.saver_build(self.scaffold.meta_graph(), how.copy())
        session = MusterEngine.Master.new().create_session(graph.graph(), None, FOREVER, None)
        session.run_op(self.scaffold.init_op(), FOREVER, None)
        prefix = Muster.Saver.new(graph, None).save(session, self.run, 1, FOREVER, None)
        self.assertEqual(Muster.BundleReader.open(None, prefix).names(), ["steps"])

    def test_has_a_default(self):
        self.assertIsNotNone(Muster.Saver.default(self.scaffold.meta_graph()))


class Tiers(SaverCase):
    def test_are_saved_to_and_copied_from(self):
        fast = self.folder + "/fast"
        tier = Muster.Tier.new(fast)
        tier.save_steps, tier.max_to_keep = 10, 3
        options = Muster.SaverOptions()
        options.fast = [tier.copy()]
        saver = Muster.Saver.new(self.scaffold.meta_graph(), options.copy())
        self.assertEqual(saver.n_fast_tiers(), 1)
        self.assertEqual((saver.fast_tier(0).directory, saver.fast_tier(0).save_steps), (fast, 10))
        self.assertIsNone(saver.fast_tier(1))
        self.assertTrue(saver.check_tiers(self.run))
        self.assertTrue(saver.open_tiers(self.session, self.run, FOREVER, None))
        self.assertEqual(saver.tiers_in_use(), 3)
        saved = Muster.Saved()
        self.assertTrue(saver.save_with(self.session, self.run, 1, 3, saved, FOREVER, None))
        self.assertEqual((saved.prefix, saved.tier), (fast + "/model.ckpt-1", 0))
        self.assertEqual(saver.tier_of(saved.prefix), 0)
        self.assertTrue(saver.sync_copies(FOREVER, None))
        copied = Muster.TierCopied()
        self.assertTrue(saver.take_copied(copied))
        self.assertEqual((copied.tier, copied.prefix, copied.step, copied.why), (1, self.run + "/model.ckpt-1", 1, None))
        self.assertEqual(copied.copy().prefix, copied.prefix)
        copied.clear()
        self.assertFalse(saver.take_copied(copied))
        self.assertEqual(saver.take_copy_failure(), (None, 0))
        saver.copy_down(self.run, saved.prefix)
        saver.cancel_copies()
        self.assertTrue(saver.sync_copies(FOREVER, None))

    def test_one_is_in_another_servers_memory(self):
        Muster.peer_storage_offer()
        fast = self.serve("--checkpoint-memory=1MiB") + "/run"
        options = Muster.SaverOptions()
        options.fast = [Muster.Tier.new(fast)]
        saver = Muster.Saver.new(self.scaffold.meta_graph(), options)
        saved = Muster.Saved()
        self.assertTrue(saver.save_with(self.session, self.run, 1, 1, saved, FOREVER, None))
        self.assertEqual((saved.prefix, saved.tier), (fast + "/model.ckpt-1", 0))
        self.assertTrue(Muster.checkpoint_exists(None, saved.prefix))


class Async(SaverCase):
    def test_saves_in_the_background(self):
        ended = []
        saver = Muster.AsyncSaver.new(self.saver(), self.session, Muster.SavePolicy.BLOCK, 0)
        saver.set_finished(lambda ticket, data: ended.append((ticket.path(), data)), "data")
        gc.collect()
        self.assertTrue(saver.prepare(FOREVER, None))
        ticket = saver.save(self.run, -1, FOREVER, None)
        of_one = []
        ticket.when_ended(lambda ticket, data: of_one.append(ticket.step()), None)
        self.assertTrue(ticket.wait(Muster.SaveState.DURABLE, FOREVER, None))
        self.assertTrue(saver.sync_saves(FOREVER, None))
        self.assertTrue(saver.sync(FOREVER, None))
        self.assertEqual((ticket.path(), ticket.step(), ticket.state()),
                         (self.run + "/model.ckpt-1", 1, Muster.SaveState.DURABLE))
        self.assertEqual((ended, of_one), ([(ticket.path(), "data")], [1]))
        self.assertEqual(ticket.saved().prefix, ticket.path())
        self.assertIsNone(ticket.why())
        self.assertFalse(ticket.left_out())
        ticket.cancel()
        self.assertEqual(saver.save_counter(), 1)
        saver.set_save_counter(5)
        self.assertEqual(saver.save_in_tiers(self.run, -1, 0, FOREVER, None).step(), 6)
        written = saver.write(self.folder + "/mine", FOREVER, None)
        self.assertTrue(written.wait(Muster.SaveState.DURABLE, FOREVER, None))
        self.assertTrue(saver.read(written.path(), FOREVER, None))
        restored = Muster.Restored()
        self.assertTrue(saver.restore(Muster.RestoreOptions.new(None, self.run), restored, FOREVER, None))
        self.assertEqual(restored.prefix, self.run + "/model.ckpt-6")
        self.assertIsNone(saver.last_failure())
        metrics = saver.dup_metrics()
        self.assertEqual((metrics.n_durable, metrics.n_failed, metrics.async_write_us.count), (3, 0, 3))
        self.assertIn('api="async_checkpoint"', metrics.copy().text())
        self.assertGreaterEqual(Muster.SaveMetrics.new_process().n_durable, 3)
        saver.set_model(self.saver(), self.session)
        self.assertTrue(saver.shutdown(FOREVER, None))
        self.assertFails(Muster.Error.FAILED_PRECONDITION, "shut", saver.save, self.run, -1, FOREVER, None)


class Manager(SaverCase):
    def make(self, **fields):
        options = Muster.CheckpointManagerOptions()
        options.storage = Muster.local_storage()
        options.clock = Muster.system_clock()
        for name, value in fields.items():
            if callable(value):
                getattr(options, "set_" + name)(value, None)
            else:
                setattr(options, name, value)
        return Muster.CheckpointManager.new(self.scaffold.meta_graph(), self.run, options)

    def test_numbers_checkpoints(self):
        calls = []

        def read_step(session, deadline_us, cancellable, data):
            calls.append("step")
            return True, self.step()

        def initialize(session, deadline_us, cancellable, data):
            calls.append("initialize")
            return True

        def wait_for_saves(deadline_us, cancellable, data):
            calls.append("wait")
            return True

        manager = self.make(max_to_keep=2, checkpoint_interval=2, read_step=read_step,
                            initialize=initialize, wait_for_saves=wait_for_saves,
                            finished=lambda ticket, data: calls.append("finished"))
        gc.collect()
        self.assertEqual(manager.directory(), self.run)
        self.assertEqual(manager.restore_or_initialize(self.session, FOREVER, None), (True, None))
        self.assertEqual(calls, ["wait", "initialize"])
        saved = Muster.Saved()
        self.assertTrue(manager.save(self.session, -1, True, saved, FOREVER, None))
        self.assertEqual(saved.prefix, self.run + "/ckpt-1")
        self.assertIn("step", calls)
        self.train()
        skipped = Muster.Saved()
        self.assertTrue(manager.save(self.session, -1, True, skipped, FOREVER, None))
        self.assertTrue(skipped.skipped)
        self.assertTrue(manager.sync(FOREVER, None))
        self.assertIn("finished", calls)
        self.assertEqual(manager.checkpoints(), [self.run + "/ckpt-1"])
        self.assertEqual(manager.latest_checkpoint(), self.run + "/ckpt-1")
        self.assertEqual(manager.saver().last_checkpoints(), [self.run + "/ckpt-1"])
        self.assertEqual(manager.restore_or_initialize(self.session, FOREVER, None), (True, self.run + "/ckpt-1"))
        self.assertEqual(self.step(), 0)

    def test_a_callback_fails_the_call(self):
        def read_step(session, deadline_us, cancellable, data):
            raise GLib.Error.new_literal(Muster.error_quark(), "no step", Muster.Error.UNAVAILABLE)

        manager = self.make(checkpoint_interval=1, read_step=read_step)
        self.assertFails(Muster.Error.UNAVAILABLE, "no step", manager.save, self.session, -1, True, Muster.Saved(),
                         FOREVER, None)


if __name__ == "__main__":
    case.main()
