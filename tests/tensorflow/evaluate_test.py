# SPDX-License-Identifier: Apache-2.0
"""`muster evaluate` beside TensorFlow: the curve in TensorBoard's own reader, the values and the best three by TensorFlow's own
evaluation, its metrics and its inputs, and checkpoints that its savers write."""
import json
import os
import subprocess
import sys
import unittest

import numpy as np
import tensorflow as tf

import peer

try:
    from tensorboard.backend.event_processing import event_accumulator
except ImportError:
    event_accumulator = None

v1 = tf.compat.v1
v1.disable_v2_behavior()
v1.logging.set_verbosity(v1.logging.ERROR)

X, Y = "tests/fixtures/digits_x.npy", "tests/fixtures/digits_y.npy"
DIGITS = ["--meta-graph=tests/fixtures/digits.meta", "--feed=x:0=@" + X, "--feed=y:0=@" + Y]


def evaluated(out):
    """step -> values, by what `evaluate --json` printed."""
    found = [json.loads(line) for line in out.splitlines()]
    return {line["step"]: line["metrics"] for line in found if line["event"] == "evaluated"}


def evaluate(folder, *words):
    """What it finds until no checkpoint comes for a moment: TensorFlow's jobs note no end."""
    done = subprocess.run([peer.MUSTER, "evaluate", "--checkpoint-dir=" + folder, "--json", "--timeout=100ms", "--poll=20ms", *words],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=peer.COMMAND_SECONDS, stdin=subprocess.DEVNULL)
    if done.returncode != 1 or "no checkpoint came" not in done.stderr:
        raise AssertionError("%s ended with %d\n%s%s" % (words, done.returncode, done.stdout, done.stderr))
    return evaluated(done.stdout)


def curve(folder, tag):
    seen = event_accumulator.EventAccumulator(folder, size_guidance={event_accumulator.SCALARS: 0})
    seen.Reload()
    return {event.step: event.value for event in seen.Scalars(tag)}


def by_tensorflow(prefix, metric="accuracy:0"):
    with tf.Graph().as_default(), v1.Session() as session:
        saver = v1.train.import_meta_graph("tests/fixtures/digits.meta", clear_devices=True)
        saver.restore(session, prefix)
        return float(session.run(metric, {"x:0": np.load(X), "y:0": np.load(Y)}))


class BesideAJob(peer.TestCase):
    @unittest.skipIf(event_accumulator is None, "no TensorBoard; bazel/setup --tests installs it")
    def test_the_best_three_are_those_of_tensorflows_own_evaluation(self):
        folder = os.path.join(self.folder(), "run")
        evaluator = subprocess.Popen([peer.MUSTER, "evaluate", *DIGITS, "--metric=accuracy", "--metric=loss", "--checkpoint-dir=" + folder,
                                      "--poll=20ms", "--json"], stdout=subprocess.PIPE, text=True, preexec_fn=peer.die_with_parent)
        with evaluator:
            peer.muster("train", *DIGITS, "--master=local", "--steps=800", "--save-every=20", "--save-blocking", "--checkpoint-dir=" + folder,
                        "--keep=6", "--keep-best=3", "--metric=eval/accuracy:max")
            out = evaluator.communicate(timeout=peer.COMMAND_SECONDS)[0]
        self.assertEqual(evaluator.returncode, 0)
        found = evaluated(out)
        accuracy, loss = curve(folder + "/eval", "accuracy"), curve(folder + "/eval", "loss")
        self.assertEqual(set(accuracy), set(found))
        for step, values in found.items():
            self.assertAlmostEqual(accuracy[step], values["eval/accuracy"], 5)
            self.assertAlmostEqual(loss[step], values["eval/loss"], 5)
        rows = {row["step"]: row for row in map(json.loads, peer.muster("checkpoint", "list", folder, "--json").splitlines()) if row["kept"]}
        theirs = {step: by_tensorflow("%s/model.ckpt-%d" % (folder, step)) for step in rows}
        for step, row in rows.items():
            self.assertAlmostEqual(theirs[step], row["metrics"]["eval/accuracy"], 5)
        best = {step for step, row in rows.items() if any(why.startswith("best ") for why in row["kept"])}
        self.assertEqual(len(best), 3, rows)
        least = min(theirs[step] for step in best)
        self.assertEqual([step for step in rows if step not in best and theirs[step] > least + 1e-6], [])


def model(x):
    w = v1.get_variable("w", [4, 1], initializer=v1.truncated_normal_initializer(seed=3))
    return tf.sigmoid(tf.squeeze(tf.matmul(x, w), 1))


def metrics_of(y, p):
    """Streaming ones: name -> (value, update)."""
    return {"accuracy": v1.metrics.accuracy(y, p > 0.5, name="accuracy"), "error": v1.metrics.mean(tf.square(tf.cast(y, tf.float32) - p), name="error"),
            "precision": v1.metrics.precision(y, p > 0.5, name="precision")}


class OtherGraphs(peer.TestCase):
    """Graphs for evaluation alone, of checkpoints that TensorFlow's saver writes: those have no side file, and their job no end."""

    def setUp(self):
        super().setUp()
        self.work = self.folder()
        random = np.random.RandomState(0)
        self.x = random.rand(103, 4).astype(np.float32)
        self.y = (self.x.sum(1) > 2).astype(np.int64)
        np.save(self.work + "/x.npy", self.x)
        np.save(self.work + "/y.npy", self.y)
        self.feeds = ["--feed=%s:0=@%s/%s.npy" % (name, self.work, name) for name in "xy"]
        self.run_dir = os.path.join(self.work, "run")
        os.mkdir(self.run_dir)

    def save(self, *steps):
        """A job of TensorFlow's: a checkpoint of each step."""
        with tf.Graph().as_default(), v1.Session() as session:
            step = v1.train.create_global_step()
            model(tf.constant(self.x))
            w = [variable for variable in v1.global_variables() if variable.op.name == "w"][0]
            saver = v1.train.Saver(max_to_keep=20)
            session.run(v1.global_variables_initializer())
            for n in steps:
                session.run([step.assign(n), w.assign_add(0.1 * np.ones((4, 1), np.float32))])
                saver.save(session, self.run_dir + "/model.ckpt", global_step=step)
        return saver

    def export(self, build):
        """A graph for evaluation as build () makes it; and what TensorFlow finds with it, for each checkpoint."""
        path = os.path.join(self.work, "eval.meta")
        with tf.Graph().as_default():
            v1.train.create_global_step()
            metrics = build()
            saver = v1.train.Saver()
            v1.add_to_collection(v1.GraphKeys.SAVERS, saver)
            v1.train.Scaffold(saver=saver).finalize()
            v1.train.export_meta_graph(path, saver_def=saver.as_saver_def())
            self.meta = "--meta-graph=" + path
            return {step: self.by_tensorflow(saver, step, metrics) for step in self.steps()}

    def steps(self):
        state = v1.train.get_checkpoint_state(self.run_dir)
        return [int(prefix.rpartition("-")[2]) for prefix in state.all_model_checkpoint_paths]

    def by_tensorflow(self, saver, step, metrics):
        creator = v1.train.ChiefSessionCreator(v1.train.Scaffold(saver=saver), checkpoint_filename_with_path="%s/model.ckpt-%d" % (self.run_dir, step))
        names = {operation.name for operation in v1.get_default_graph().get_operations()}
        feeds = [{}]
        if "x" in names:
            feeds = [{"x:0": self.x[at:at + 32], "y:0": self.y[at:at + 32]} for at in range(0, len(self.x), 32)]
        with v1.train.MonitoredSession(creator) as session:
            found = None
            try:
                while True:
                    for feed in feeds:
                        session.run([update for _, update in metrics.values()], feed)
                        found = session.run({name: value for name, (value, _) in metrics.items()}, feed if feed else None)
                    if "x" in names:
                        break
            except tf.errors.OutOfRangeError:
                pass
        return found

    def check(self, theirs, *words):
        ours = evaluate(self.run_dir, self.meta, *words, *["--metric=" + name for name in next(iter(theirs.values()))])
        self.assertEqual(set(ours), set(theirs))
        for step, values in theirs.items():
            for name, value in values.items():
                self.assertAlmostEqual(ours[step]["eval/" + name], value, 5, (step, name))

    def placeholders(self):
        x, y = v1.placeholder(tf.float32, [None, 4], name="x"), v1.placeholder(tf.int64, [None], name="y")
        return metrics_of(y, model(x))

    def test_streaming_metrics_take_every_row_once_and_begin_anew(self):
        self.save(1, 2, 3)
        self.check(self.export(self.placeholders), *self.feeds)
        values = [row["metrics"]["eval/accuracy"] for row in map(json.loads, peer.muster("checkpoint", "list", self.run_dir, "--json").splitlines())]
        self.assertEqual(len(set(values)), 3)

    def test_queues_of_one_epoch_begin_anew_for_each_checkpoint(self):
        def build():
            x, y = v1.train.slice_input_producer([tf.constant(self.x), tf.constant(self.y)], num_epochs=1, shuffle=False)
            x, y = v1.train.batch([x, y], 10, allow_smaller_final_batch=True)
            return metrics_of(y, model(x))
        self.save(1, 2, 3)
        self.check(self.export(build))

    def test_a_dataset_begins_anew_for_each_checkpoint(self):
        def build():
            iterator = v1.data.make_initializable_iterator(tf.data.Dataset.from_tensor_slices((self.x, self.y)).batch(10))
            v1.add_to_collection(v1.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
            x, y = iterator.get_next()
            return metrics_of(y, model(x))
        self.save(1, 2, 3)
        self.check(self.export(build), "--master=tensorflow:" + sys.prefix)

    def test_a_tensor_is_averaged_over_the_rows_of_uneven_batches(self):
        def build():
            x, y = v1.placeholder(tf.float32, [None, 4], name="x"), v1.placeholder(tf.int64, [None], name="y")
            tf.reduce_mean(tf.square(tf.cast(y, tf.float32) - model(x)), name="error_of_batch")
            return {}
        self.save(1, 2)
        self.export(build)
        ours = evaluate(self.run_dir, self.meta, "--metric=error_of_batch", *self.feeds)
        for step in (1, 2):
            w = v1.train.load_variable("%s/model.ckpt-%d" % (self.run_dir, step), "w")
            p = 1 / (1 + np.exp(-(self.x @ w)[:, 0]))
            self.assertAlmostEqual(ours[step]["eval/error_of_batch"], np.square(self.y - p).mean(), 5)

    def test_tensorflows_saver_goes_on_beside_the_marks(self):
        self.save(1, 2)
        self.export(self.placeholders)
        words = (self.meta, "--metric=accuracy", *self.feeds)
        self.assertEqual(sorted(evaluate(self.run_dir, *words)), [1, 2])
        self.save(3, 4)
        self.assertEqual(sorted(evaluate(self.run_dir, *words)), [3, 4])
        self.assertEqual(v1.train.latest_checkpoint(self.run_dir), self.run_dir + "/model.ckpt-4")


if __name__ == "__main__":
    peer.main()
