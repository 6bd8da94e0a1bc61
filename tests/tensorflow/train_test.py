# SPDX-License-Identifier: Apache-2.0
"""muster's monitored session beside TensorFlow: event files in TensorBoard's own reader and in TensorFlow's,
timelines of a master that traces, and queue runners on each master."""
import contextlib
import glob
import json
import os
import shutil
import subprocess
import unittest

import tensorflow as tf

import peer

try:
    from tensorboard.backend.event_processing import event_accumulator
except ImportError:
    event_accumulator = None

v1 = tf.compat.v1
v1.disable_v2_behavior()
v1.logging.set_verbosity(v1.logging.ERROR)

TOOL = os.path.abspath("tests/tensorflow/train_tool")


def train(meta, target, last_step, folder=None, code=0):
    """What the tool printed: its output, or its error where it is to fail."""
    arguments = [TOOL, meta, target, str(last_step)] + ([folder] if folder else [])
    done = subprocess.run(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=peer.COMMAND_SECONDS, stdin=subprocess.DEVNULL)
    if done.returncode != code:
        raise AssertionError("%s ended with %d\n%s%s" % (arguments, done.returncode, done.stdout, done.stderr))
    return done.stdout if code == 0 else done.stderr


def export(folder):
    """The present graph with what MonitoredTrainingSession would add, as a meta graph."""
    saver = v1.train.Saver()
    v1.add_to_collection(v1.GraphKeys.SAVERS, saver)
    v1.train.Scaffold(saver=saver).finalize()
    path = os.path.join(folder, "model.meta")
    v1.train.export_meta_graph(path, saver_def=saver.as_saver_def())
    return path


def fit(x, y):
    """y = w x + b by gradient descent, with both kinds of summaries."""
    step = v1.train.get_or_create_global_step()
    w = v1.get_variable("w", [], initializer=v1.zeros_initializer())
    loss = tf.reduce_mean(tf.square(w * x - y), name="loss")
    v1.summary.scalar("loss_summary", loss)
    v1.summary.histogram("w_histogram", w)
    v1.train.GradientDescentOptimizer(0.01).minimize(loss, global_step=step, name="train")


def events_of(folder):
    """Those of all event files there, by TensorFlow's reader, in the files' order."""
    for path in sorted(glob.glob(os.path.join(folder, "events.out.tfevents.*"))):
        yield from v1.train.summary_iterator(path)


@unittest.skipIf(event_accumulator is None, "no TensorBoard; bazel/setup --tests installs it")
class InTensorBoard(peer.TestCase):
    def look(self, folder):
        accumulator = event_accumulator.EventAccumulator(folder, size_guidance={
            event_accumulator.SCALARS: 0, event_accumulator.HISTOGRAMS: 0})
        accumulator.Reload()
        return accumulator

    def check_common(self, seen, folder):
        self.assertEqual([e.step for e in seen.Scalars("loss_summary")], [1, 3, 5, 7, 9])
        losses = [e.value for e in seen.Scalars("loss_summary")]
        self.assertEqual(losses, sorted(losses, reverse=True))
        self.assertEqual([e.step for e in seen.Scalars("global_step/sec")], [3, 5, 7, 9])
        self.assertTrue(seen.Tags()["graph"])
        self.assertTrue(seen.Tags()["meta_graph"])
        self.assertIn("global_step", [node.name for node in seen.Graph().node])
        # The session log, which TensorBoard goes by without showing it.
        logs = [event for event in events_of(folder) if event.HasField("session_log")]
        saves = [e for e in logs if e.session_log.status == v1.SessionLog.CHECKPOINT]
        self.assertEqual([e.step for e in logs if e.session_log.status == v1.SessionLog.START], [1])
        self.assertEqual([e.step for e in saves], [0, 5, 10])
        self.assertEqual(os.path.basename(saves[-1].session_log.checkpoint_path), "model.ckpt-10")

    def check_timelines(self, seen, folder, op):
        self.assertEqual(sorted(seen.Tags()["run_metadata"]), ["step_3", "step_6", "step_9"])
        self.assertTrue(seen.RunMetadata("step_3").step_stats.dev_stats)
        self.assertEqual(sorted(map(os.path.basename, glob.glob(os.path.join(folder, "timeline-*")))),
                         ["timeline-3.json", "timeline-6.json", "timeline-9.json"])
        with open(os.path.join(folder, "timeline-3.json"), encoding="utf-8") as file:
            boxes = json.load(file)["traceEvents"]
        self.assertIn(op, {box["name"] for box in boxes})
        self.assertTrue(all(box["dur"] >= 0 for box in boxes if box["ph"] == "X"))

    def test_what_the_engine_trains(self):
        """MON.79, MON.82"""
        folder = self.folder()
        self.assertEqual(train(peer.fixture("linreg.meta"), "local", 10, folder), "step 10\n\n")
        seen = self.look(folder)
        self.check_common(seen, folder)
        self.check_timelines(seen, folder, "ResourceApplyGradientDescent")

    def test_what_musters_server_trains(self):
        """The engine's trace comes over the wire as TensorFlow's does."""
        folder = self.folder()
        train(peer.fixture("linreg.meta"), self.serve(), 10, folder)
        self.check_timelines(self.look(folder), folder, "ResourceApplyGradientDescent")

    def test_what_tensorflow_trains(self):
        """MON.82 with histograms; MON.87: a timeline of every third run."""
        folder = self.folder()
        with tf.Graph().as_default(), peer.tensorflow_server() as target:
            fit(v1.placeholder(tf.float32, [None], "x"), v1.placeholder(tf.float32, [None], "y"))
            train(export(folder), target, 10, folder)
        seen = self.look(folder)
        self.check_common(seen, folder)
        self.assertEqual([e.step for e in seen.Histograms("w_histogram")], [1, 3, 5, 7, 9])
        self.check_timelines(seen, folder, "ApplyGradientDescent")

    def test_a_file_that_is_truncated(self):
        """A writer that died: what stands before the cut is shown."""
        folder = self.folder()
        train(peer.fixture("linreg.meta"), "local", 10, folder)
        files = glob.glob(os.path.join(folder, "events.out.tfevents.*"))
        path = max(files, key=os.path.getsize)
        for lost in (1, 30):
            cut = self.folder()
            there = shutil.copy(path, cut)
            os.truncate(there, os.path.getsize(path) - lost)
            read = []
            with contextlib.suppress(tf.errors.DataLossError):
                for event in v1.train.summary_iterator(there):
                    read.append(event.step)
            whole = [event.step for event in v1.train.summary_iterator(path)]
            self.assertEqual(read, whole[:len(read)])
            self.assertIn(len(whole) - len(read), (1, 2))
            self.assertEqual([e.step for e in self.look(cut).Scalars("loss_summary")], [1, 3, 5, 7, 9])


class QueueRunners:
    """On a master; the subclasses say on which."""

    def model(self, epochs=2, wrong_at=None, **how):
        """A meta graph that is fed by two queues, one behind the other: five numbers an epoch."""
        folder = self.folder()
        if self.target != "local":
            v1.Session.reset(self.target)
        with tf.Graph().as_default():
            number = v1.train.range_input_producer(5, num_epochs=epochs, shuffle=False).dequeue()
            if wrong_at is not None:
                with tf.control_dependencies([v1.assert_none_equal(number, wrong_at)]):
                    number = tf.identity(number)
            queue = tf.queue.FIFOQueue(3, [tf.float32], [[]], name="numbers")
            v1.train.add_queue_runner(v1.train.QueueRunner(
                queue, [queue.enqueue([tf.cast(number, tf.float32)])] * 2, **how))
            x = queue.dequeue()
            fit(x, 3 * x)
            return export(folder)

    def test_training_ends_with_its_input(self):
        said = train(self.model(), self.target, 0)
        self.assertEqual(said.splitlines()[0], "step 10")
        self.assertIn("numbers", said)

    def test_a_stop_ends_the_threads(self):
        """Without an end of the input: threads stand in full queues."""
        self.assertEqual(train(self.model(epochs=None), self.target, 3), "step 3\n\n")

    def test_what_fails_in_a_thread_ends_the_training(self):
        said = train(self.model(wrong_at=3), self.target, 0, code=1)
        self.assertIn("Filling the queue 'numbers'", said)
        self.assertIn("assert_none_equal", said)

    def test_other_failures_may_count_as_the_end(self):
        """queue_closed_exception_types: the other thread goes on until it meets the number in turn."""
        meta = self.model(wrong_at=3, queue_closed_exception_types=(
            tf.errors.InvalidArgumentError, tf.errors.OutOfRangeError))
        self.assertEqual(train(meta, self.target, 0).splitlines()[0], "step 7")


class QueueRunnersOnTensorFlow(QueueRunners, peer.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.target = cls.enterClassContext(peer.tensorflow_server())


class QueueRunnersOnMuster(QueueRunners, peer.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.target = cls.enterClassContext(peer.muster_server())


class QueueRunnersInProcess(QueueRunners, peer.TestCase):
    target = "local"


if __name__ == "__main__":
    peer.main()
