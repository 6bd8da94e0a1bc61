# SPDX-License-Identifier: Apache-2.0
"""Graphs of every kind (graph_kinds.py) are prepared, trained, killed, resumed and saved, on both masters; TensorFlow reads
the result, and its own values after as many steps are the same."""
import os
import re
import signal
import subprocess
import sys
import tempfile

import numpy as np
import tensorflow.compat.v1 as tf

import graph_kinds
import peer

tf.disable_v2_behavior()

MORE = 5  # steps after the kill


def newest(directory):
    """The step of the latest checkpoint; -1 if there is none."""
    try:
        with open(os.path.join(directory, "checkpoint")) as file:
            return int(re.search(r'^model_checkpoint_path: ".*-(\d+)"', file.read(), re.MULTILINE).group(1))
    except (FileNotFoundError, AttributeError):
        return -1


class Job:
    """A graph on a master, with a directory for its checkpoints."""

    def __init__(self, kind, master, folder):
        self.kind = kind
        self.directory = os.path.join(folder, kind.name)
        self.model = ["--meta-graph=" + kind.path, "--master=" + master, *kind.options]
        self.training = ["train", *self.model, "--checkpoint-dir=" + self.directory, "--restore", *kind.feed_options]

    def kill_in_training(self):
        """Ends it with SIGKILL after some checkpoints; returns the step of the last."""
        process = subprocess.Popen([peer.MUSTER, *self.training, "--steps=1000000", "--save-every=5", "--overwrite"],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, preexec_fn=peer.die_with_parent)
        try:
            peer.await_true(lambda: newest(self.directory) >= 5 or process.poll() is not None, "a checkpoint is saved")
        finally:
            process.send_signal(signal.SIGKILL)
            said = process.communicate()[1].decode()
        if newest(self.directory) < 5:
            raise AssertionError(said)
        return newest(self.directory)

    def train_to(self, step):
        peer.muster(*self.training, "--steps=%d" % step, "--overwrite")
        return os.path.join(self.directory, "model.ckpt-%d" % step)

    def prepare_and_save(self):
        """The model is restored on the master by another command, and saved by a third one."""
        peer.muster("prepare", *self.model, "--checkpoint-dir=" + self.directory, "--overwrite")
        copy = self.directory + ".saved"
        peer.muster("save", *self.model, "--checkpoint-dir=" + copy)
        return os.path.join(copy, "model.ckpt-%d" % newest(copy))


def read(prefix, kind):
    """The checkpoint's variables, as TensorFlow reads them, by the graph's names; partitioned ones whole."""
    reader = tf.train.load_checkpoint(prefix)
    return {key: reader.get_tensor(key) for key in reader.get_variable_to_shape_map()}


def import_and_restore(prefix):
    """TensorFlow imports the .meta file beside a checkpoint, and restores by its saver."""
    with tf.Graph().as_default(), tf.Session() as session:
        tf.train.import_meta_graph(prefix + ".meta").restore(session, prefix)
        return len(session.run(tf.report_uninitialized_variables(tf.global_variables())))


class Kinds(peer.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = cls.enterClassContext(tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR")))
        cls.kinds = [graph_kinds.write(name, cls.place) for name in graph_kinds.KINDS]

    def check(self, kind, prefix, step):
        have = read(prefix, kind)
        for name, value in graph_kinds.train(kind, step).items():
            key = kind.keys.get(name, name)
            self.assertIn(key, have)
            if name not in kind.unlike:
                np.testing.assert_allclose(have[key], value, rtol=kind.tolerance, atol=kind.tolerance / 100, err_msg=name)

    def hold_up(self, kind, master, folder):
        job = Job(kind, master, folder)
        step = job.kill_in_training() + MORE
        prefix = job.train_to(step)
        self.check(kind, prefix, step)
        self.assertEqual(import_and_restore(prefix), 0)
        saved = job.prepare_and_save()
        again = read(saved, kind)
        for key, value in read(prefix, kind).items():
            if not key.startswith("muster/"):
                np.testing.assert_array_equal(again[key], value, err_msg=key)

    def all_on(self, master, is_engine):
        target = self.serve(*master)
        n = 0
        for kind in self.kinds:
            if kind.ends or (is_engine and not kind.on_engine):
                continue
            with self.subTest(kind=kind.name, master=target):
                self.hold_up(kind, target, self.folder())
            n += 1
        return n

    def test_on_the_engine(self):
        self.assertGreaterEqual(self.all_on((), True), 24)

    def test_on_tensorflows_runtime(self):
        self.assertGreaterEqual(self.all_on(("--master=tensorflow:" + sys.prefix,), False), 24)

    def test_phases_that_write_one_variable_are_refused(self):
        kind = next(kind for kind in self.kinds if kind.name == "gan_phase")
        said = peer.muster("train", "--meta-graph=" + kind.path, "--master=local", "--steps=5", *kind.feed_options, code=3)
        self.assertIn("both write 'global_step'", said)
        self.assertIn("--train-op=NAME", said)

    def test_the_end_of_its_input_ends_the_job(self):
        kind = next(kind for kind in self.kinds if kind.name == "input_that_ends")
        said = peer.muster("train", "--meta-graph=" + kind.path, "--master=local")
        self.assertIn("to step 3", said)


if __name__ == "__main__":
    peer.main()
