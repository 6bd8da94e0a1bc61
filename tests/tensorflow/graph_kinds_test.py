# SPDX-License-Identifier: Apache-2.0
"""Graphs of every kind (graph_kinds.py) are inspected, prepared, trained, killed, resumed and saved, on both masters;
TensorFlow reads the result, and its own values after as many steps are the same."""
import os
import re
import shlex
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


class Server:
    """One that is killed; another one comes to its port."""

    def __init__(self, test, arguments):
        held = peer.hold_port()
        test.addCleanup(held.close)
        self.address = "localhost:%d" % peer.port_of(held)
        self.target = "grpc://" + self.address
        self.arguments = arguments
        self.start()
        test.addCleanup(self.kill)

    def start(self):
        self.process = subprocess.Popen([peer.MUSTER, "serve", "--listen=" + self.address, *self.arguments],
                                        stdout=subprocess.PIPE, preexec_fn=peer.die_with_parent)
        peer.first_line(self.process, "muster serve")

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(60)
        self.process.stdout.close()


class Job:
    """A graph on a master, with a directory for its checkpoints."""

    def __init__(self, kind, master, folder):
        self.kind = kind
        self.directory = os.path.join(folder, kind.name)
        self.model = ["--meta-graph=" + kind.path, "--master=" + master, *kind.options]
        self.training = ["train", *self.model, "--checkpoint-dir=" + self.directory, "--restore", *kind.feed_options]

    def start(self):
        self.said = tempfile.TemporaryFile(mode="w+")
        self.process = subprocess.Popen([peer.MUSTER, *self.training, "--steps=1000000", "--save-every=5", "--overwrite"],
                                        stdout=subprocess.DEVNULL, stderr=self.said, preexec_fn=peer.die_with_parent)

    def await_more(self):
        before = newest(self.directory)
        try:
            peer.await_true(lambda: newest(self.directory) >= max(before, 0) + 5 or self.process.poll() is not None,
                            "a checkpoint is saved")
        finally:
            self.said.seek(0)
        if newest(self.directory) < before + 5:
            raise AssertionError("%s: %s" % (self.kind.name, self.said.read()))

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(60)
        self.said.close()

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
        tf.train.import_meta_graph(prefix + ".meta", clear_devices=True).restore(session, prefix)
        return len(session.run(tf.report_uninitialized_variables(tf.global_variables())))


class Kinds(peer.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = cls.enterClassContext(tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR")))
        cls.kinds = graph_kinds.write_all(cls.place)

    def check(self, kind, prefix, step):
        have = read(prefix, kind)
        for name, value in graph_kinds.train(kind, step).items():
            key = kind.keys.get(name, name)
            self.assertIn(key, have)
            if name not in kind.unlike:
                np.testing.assert_allclose(have[key], value, rtol=kind.tolerance, atol=kind.tolerance / 100, err_msg=name)

    def inspect(self, kind, master):
        """It names what the kind says of itself, and its command trains as it is printed; on the runtime, on this one."""
        facts = peer.muster_json("inspect", kind.path)
        ops = {op.name.split(":")[0] for op in kind.train}
        found = {word for fact in facts["train op"] for word in [fact["name"], *re.findall("'([^']+)'", fact["text"])]}
        if "averages_outside" != kind.name:  # an op that no collection has isn't found
            self.assertLessEqual(ops, found)
        self.assertEqual({fact["name"] for fact in facts.get("placeholder", [])}, {*kind.feeds, *kind.constants})
        self.assertEqual(len(facts["global step"]), 1)
        self.assertIn("V2 format", facts["saver"][0]["text"])
        self.assertEqual(facts["master"][0]["name"], "local" if kind.on_engine else "tensorflow")
        command = shlex.split(next(fact["text"] for fact in facts["command"] if fact["name"] == "train"))
        command = ["--master=" + master if word == "--master=tensorflow" else word for word in command]
        done = subprocess.run([peer.MUSTER, *command[1:]], cwd=kind.data, capture_output=True, text=True,
                              timeout=peer.COMMAND_SECONDS)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreaterEqual(newest(os.path.join(kind.data, "run")), 1)

    def test_inspect(self):
        for kind in self.kinds:
            if kind.on_engine:
                with self.subTest(kind=kind.name):
                    self.inspect(kind, None)

    def live_and_die(self, job, server, is_served_anew):
        """It trains, through a kill of the server too, and is killed."""
        job.start()
        try:
            job.await_more()
            if is_served_anew:
                server.kill()
                server.start()
                job.await_more()
        finally:
            job.kill()

    def hold_up(self, job):
        step = newest(job.directory) + MORE
        prefix = job.train_to(step)
        self.check(job.kind, prefix, step)
        self.assertEqual(import_and_restore(prefix), 0)
        saved = job.prepare_and_save()
        again = read(saved, job.kind)
        for key, value in read(prefix, job.kind).items():
            if not key.startswith("muster/"):
                np.testing.assert_array_equal(again[key], value, err_msg=key)

    def all_on(self, kinds, server_kills, *master):
        """The server is killed under each server_kills-th kind. One job at a time: positions are of one container."""
        server = Server(self, master)
        kinds = [kind for kind in kinds if not kind.ends]
        for i, kind in enumerate(kinds):
            with self.subTest(kind=kind.name, master=server.target):
                job = Job(kind, server.target, self.folder())
                self.live_and_die(job, server, i % server_kills == 0)
                self.hold_up(job)
        server.kill()  # it has the models of the jobs
        server.start()
        for kind in kinds:
            if not kind.on_engine:
                with self.subTest(kind=kind.name):
                    self.inspect(kind, server.target)
        return len(kinds)

    def test_on_the_engine(self):
        self.assertGreaterEqual(self.all_on([kind for kind in self.kinds if kind.on_engine], 1), 24)

    def test_on_tensorflows_runtime(self):
        self.assertGreaterEqual(self.all_on(self.kinds, 6, "--master=tensorflow:" + sys.prefix), 24)

    def test_phases_that_write_one_variable_are_refused(self):
        kind = next(kind for kind in self.kinds if kind.name == "gan_phase")
        said = peer.muster("train", "--meta-graph=" + kind.path, "--master=local", "--steps=5", *kind.feed_options, code=3)
        self.assertIn("both write 'global_step'", said)
        self.assertIn("--train-op=NAME", said)

    def test_a_synchronised_chief_averages_the_variables(self):
        kind = next(kind for kind in self.kinds if kind.name == "sync_replicas_with_averages")
        job = Job(kind, "local", self.folder())
        saved = read(job.train_to(20), kind)
        for name in "w", "b":
            average, value, before = saved[name + "/ExponentialMovingAverage"], saved[name], 0.1 if name == "w" else 0
            self.assertLess(np.abs(average - value).max(), np.abs(before - value).min() / 2)

    def test_the_end_of_its_input_ends_the_job(self):
        kind = next(kind for kind in self.kinds if kind.name == "input_that_ends")
        said = peer.muster("train", "--meta-graph=" + kind.path, "--master=local")
        self.assertIn("to step 3", said)


if __name__ == "__main__":
    peer.main()
