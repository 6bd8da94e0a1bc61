#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Loops over epochs that back up and resume."""
import gc

import case
from case import FOREVER, GLib, Muster


def error(code, text):
    return GLib.Error.new_literal(Muster.error_quark(), text, code)


class Model:
    """A session, and the batches that it has trained."""

    def __init__(self):
        self.scaffold = case.linreg().with_saver()
        self.session = case.session(self.scaffold)
        self.trained = []

    def train(self, at, n, deadline_us, cancellable, *data):
        self.trained.append((at.epoch, at.batch))
        step = Muster.StepBuilder.new()
        step.feed("x:0", case.tensor("f", [1, 2]))
        step.feed("y:0", case.tensor("f", [3, 5]))
        step.target("train")
        step.run(self.session, FOREVER, None)
        return True

    def step(self):
        return Muster.read_global_step(self.session, self.scaffold, FOREVER, None)

    def fit(self, n_epochs, n_batches=2):
        fit = Muster.Fit.new(n_epochs, n_batches)
        fit.set_train(self.train)
        return fit


class Fit(case.TestCase):
    def test_a_loop_trains_each_batch(self):
        model = Model()
        fit = model.fit(2).copy()
        gc.collect()
        done, reached = Muster.fit(fit, FOREVER, None)
        self.assertTrue(done)
        self.assertEqual((reached.epoch, reached.batch), (2, 0))
        self.assertEqual(model.trained, [(0, 0), (0, 1), (1, 0), (1, 1)])

    def test_an_exception_ends_it(self):
        fit = Muster.Fit.new(1, 1)

        def fails(*_):
            raise error(Muster.Error.UNKNOWN, "mine")

        fit.set_train(fails)
        self.assertFails(Muster.Error.UNKNOWN, "mine", Muster.fit, fit, FOREVER, None)
        fit.set_train(lambda *_: None)
        self.assertFails(Muster.Error.INTERNAL, "without an error", Muster.fit, fit, FOREVER, None)

    def test_save_freq_is_read(self):
        read, freq = Muster.save_freq_parse("7")
        self.assertTrue(read)
        self.assertEqual((freq.kind, freq.n), (Muster.SaveFreqKind.EVERY_N, 7))
        self.assertTrue(freq.check())
        self.assertFails(Muster.Error.INVALID_ARGUMENT, "save_freq", Muster.save_freq_parse, "often")


class Backup(case.TestCase):
    def backup(self, model, keep=False):
        program = Muster.SessionProgram.new(model.scaffold.meta_graph(), model.session, None, None)
        options = Muster.BackupOptions.new(self.folder, program)
        options.set_save_freq(Muster.save_freq_parse("1")[1])
        options.storage = None
        options.keep = keep
        return Muster.Backup.new(options.copy())

    def test_an_interrupted_loop_resumes(self):
        first = Model()
        backup = self.backup(first)
        fit = first.fit(2)
        backup.add_to(fit)
        stop = []

        def train(at, n, *rest):
            if len(first.trained) == 3:
                stop.append(backup.save(FOREVER, None))
                counters = backup.read_counters()
                stop.append((counters.since_save, counters.n_batches, counters.epoch))
                raise error(Muster.Error.UNAVAILABLE, "killed")
            return first.train(at, n, *rest)

        fit.set_train(train)
        self.assertFails(Muster.Error.UNAVAILABLE, "killed", Muster.fit, fit, FOREVER, None)
        self.assertEqual(stop, [True, (0, 1, 1)])
        del fit, backup
        gc.collect()

        second = Model()
        again = self.backup(second)
        known, found, position = again.position(2)
        self.assertEqual((known, found, position.epoch, position.batch), (True, True, 1, 1))
        fit = second.fit(2)
        again.add_to(fit)
        del again
        gc.collect()
        Muster.fit(fit, FOREVER, None)
        self.assertEqual(second.trained, [(1, 1)])
        self.assertEqual(second.step(), 4)
        self.assertFalse(self.backup(second).position(2)[1])


class WorkerState(case.TestCase):
    def state(self, model, **fields):
        options = Muster.WorkerTrainingStateOptions.new(self.folder)
        options.set_save_freq(Muster.save_freq_parse("epoch")[1])
        options.lease = None
        options.storage = None
        for name, value in fields.items():
            setattr(options, name, value)
        return Muster.WorkerTrainingState.new(model.scaffold.meta_graph(), model.session, options.copy())

    def test_an_epoch_is_saved_and_restored(self):
        model = Model()
        state = self.state(model)
        self.assertEqual((state.saved_epoch(), state.saved_batch()), (-1, -1))
        self.assertTrue(state.back_up(3, -1, FOREVER, None))
        self.assertEqual(state.saved_epoch(), 3)
        self.assertEqual(state.read_dir(), state.write_dir())
        worker = self.state(Model(), is_worker=True, task_id=1)
        self.assertIsNone(worker.write_dir())
        self.assertEqual(tuple(worker.restore(FOREVER, None)), (True, True))
        position = Muster.FitPosition()
        worker.start(Muster.TrainingMode.TRAIN, 0, position)
        self.assertEqual((position.epoch, position.batch), (4, 0))
        self.assertTrue(state.delete_backup())
        self.assertEqual(tuple(self.state(Model()).restore(FOREVER, None)), (True, False))

    def test_a_loop_continues_with_the_next_epoch(self):
        model = Model()
        fit = model.fit(2)
        state = self.state(model)
        state.back_up(0, -1, FOREVER, None)
        state.add_to(fit)
        del state
        gc.collect()
        Muster.fit(fit, FOREVER, None)
        self.assertEqual(model.trained, [(1, 0), (1, 1)])


if __name__ == "__main__":
    case.main()
