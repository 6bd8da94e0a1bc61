# SPDX-License-Identifier: Apache-2.0
"""Commands and servers of a TensorFlow cluster that `muster serve` runs are killed in the middle of steps: each batch is
trained once by the model's own count. A step takes a token from a queue of its task, in its middle, so that the test says when it
ends."""
import contextlib
import json
import os
import signal
import subprocess
import time

import numpy as np

import peer

peer.enter_namespace("true")  # before TensorFlow is loaded

import tensorflow as tf

import cluster_peer

v1 = tf.compat.v1
v1.disable_v2_behavior()
v1.logging.set_verbosity(v1.logging.ERROR)

ROWS, BATCH, EPOCHS = 12, 2, 2
BATCHES = ROWS * EPOCHS // BATCH


def gate():
    return tf.queue.FIFOQueue(1000, tf.int32, shapes=[()], shared_name="gate")


def build_model(path):
    """Counts each row that it is fed, and its steps, once before the token and once after it."""
    with tf.Graph().as_default():
        rows = v1.placeholder(tf.int64, [None], name="x")
        with v1.device(v1.train.replica_device_setter(ps_tasks=1, worker_device="")):
            step = v1.train.create_global_step()
            seen = v1.get_variable("seen", shape=[ROWS], dtype=tf.int64, initializer=v1.zeros_initializer(), use_resource=True)
            first = v1.get_variable("first", initializer=0, use_resource=True)
            last = v1.get_variable("last", initializer=0, use_resource=True)
        with tf.control_dependencies([first.assign_add(1, read_value=False)]):
            token = gate().dequeue()
        with tf.control_dependencies([token]):
            count = tf.reduce_sum(tf.one_hot(rows, ROWS, dtype=tf.int64), 0)
            writes = [seen.assign_add(count, read_value=False), last.assign_add(1, read_value=False)]
        with tf.control_dependencies(writes):
            v1.add_to_collection("train_op", v1.assign_add(step, 1, name="train").op)
        cluster_peer.export_sharded(path)
    return path


class Job(peer.TestCase):

    def setUp(self):
        self.cluster = cluster_peer.Served(workers=1)
        self.addCleanup(self.cluster.end)
        self.cluster.start("ps:0", "chief:0", "worker:0")
        self.run_dir = self.folder()
        folder = self.folder()
        self.meta = build_model(os.path.join(folder, "model.meta"))
        self.rows = os.path.join(folder, "rows.npy")
        np.save(self.rows, np.arange(ROWS))
        self.graph = tf.Graph()
        with self.graph.as_default():
            self.session = v1.Session(self.cluster.target("ps:0"), config=v1.ConfigProto(device_filters=["/job:ps"]))
            self.addCleanup(self.session.close)
            with v1.device("/job:ps/task:0"):
                self.reads = {name: tf.raw_ops.ReadVariableOp(resource=tf.raw_ops.VarHandleOp(
                    shared_name=name, dtype=dtype, shape=None), dtype=dtype) for name, dtype in (
                        ("muster/begun", tf.int64), ("muster/done", tf.int64), ("seen", tf.int64), ("first", tf.int32), ("last", tf.int32))}
        self.tasks = {}

    def train(self, name, *more):
        """The command, with its events, a line of JSON each, in a file."""
        log = open(os.path.join(self.folder(), "log"), "w+", encoding="utf-8")
        self.addCleanup(log.close)
        words = ["train", "--meta-graph=" + self.meta, "--feed=x:0=@" + self.rows, "--batch-size=%d" % BATCH, "--epochs=%d" % EPOCHS,
                 "--positions", "--checkpoint-dir=" + self.run_dir, "--json", *more]
        process = subprocess.Popen([peer.MUSTER, *words], env=self.cluster.environment(name), stdin=subprocess.DEVNULL, stdout=log,
                                   preexec_fn=peer.die_with_parent)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.tasks[name] = process, log

    def kill(self, name):
        process, _ = self.tasks.pop(name)
        process.kill()
        process.wait()

    def events(self, name):
        log = self.tasks[name][1]
        log.flush()
        with open(log.name, encoding="utf-8") as lines:
            return [json.loads(line) for line in lines if line.endswith("\n")]

    def allow(self, steps, *names):
        for name in names:
            device = "/job:" + name.replace(":", "/task:")
            with tf.Graph().as_default(), v1.device(device):
                config = v1.ConfigProto(device_filters=["/job:ps", device])
                put = gate().enqueue_many([tf.zeros([steps], tf.int32)])
                with v1.Session(self.cluster.target(name), config=config) as session:
                    session.run(put)

    def read(self, name):
        return self.session.run(self.reads[name])

    def unended(self):
        """The number of steps that have begun and aren't done, by task; None as long as there is no model."""
        with contextlib.suppress(tf.errors.OpError):
            return (self.read("muster/begun") - self.read("muster/done")).tolist()
        return None

    def begin(self):
        """Both tasks are in the middle of a step, after four."""
        self.train("chief:0")
        self.train("worker:0")
        self.allow(2, *self.tasks)
        peer.await_true(lambda: self.unended() == [1, 1] and self.read("last") == 4, "both are in the middle of a step")
        self.assertEqual(self.read("first"), 6)
        peer.await_true(lambda: v1.train.latest_checkpoint(self.run_dir), "there is something to restore")

    def finish(self):
        """All batches are trained once."""
        self.allow(5 * BATCHES, *self.tasks)
        for name, (process, _) in self.tasks.items():
            self.assertEqual(process.wait(peer.COMMAND_SECONDS), 0, name)
        prefix = v1.train.latest_checkpoint(self.run_dir)
        saved = {name: tf.train.load_variable(prefix, name).tolist() for name in ("seen", "first", "last", "global_step")}
        self.assertEqual(saved, {"seen": [EPOCHS] * ROWS, "first": BATCHES, "last": BATCHES, "global_step": BATCHES})

    def ready(self, name):
        """How the chief's sessions got their model."""
        return [event.get("how") for event in self.events(name) if event.get("event") == "ready"]


class Commands(Job):

    def test_leave_steps_that_end_at_their_servers(self):
        """And nothing is restored."""
        self.begin()
        self.kill("worker:0")
        self.kill("chief:0")
        self.allow(1, "chief:0", "worker:0")
        peer.await_true(lambda: self.unended() == [0, 0], "their steps have ended")
        self.assertEqual(self.read("last"), 6)
        self.train("chief:0")
        self.train("worker:0")
        self.finish()
        self.assertEqual(self.ready("chief:0"), ["continued"])

    def test_restore_within_their_timeout(self):
        """Although the step of a worker that is gone for good never ends."""
        self.begin()
        self.kill("worker:0")
        self.kill("chief:0")
        self.cluster.kill("worker:0")
        self.allow(1, "chief:0")
        peer.await_true(lambda: self.unended() == [0, 1], "only the worker's step is cut off")
        self.train("chief:0", "--timeout=20")
        peer.await_true(lambda: "restored" in self.ready("chief:0"), "the chief has restored the model")
        self.cluster.start("worker:0")
        self.train("worker:0")
        self.finish()

    def test_are_started_again_while_their_steps_go_on(self):
        """For longer than a step that was cut off is waited for, and than a claim of a muster server's model waits."""
        self.begin()
        for name in ("worker:0", "chief:0"):
            self.kill(name)
            self.train(name)
        until = time.monotonic() + 12
        while time.monotonic() < until:
            self.assertEqual(self.unended(), [1, 1])  # no fence, and nothing is restored
            time.sleep(0.1)
        self.allow(1, "chief:0", "worker:0")
        self.finish()
        self.assertEqual(self.ready("chief:0"), ["continued"])


class Servers(Job):

    def check(self, name, unended):
        self.begin()
        self.cluster.kill(name)
        self.cluster.start(name)
        self.assertEqual(self.unended()[unended], 1)  # it is cut off, and the counts show it
        self.finish()
        self.assertIn("restored", self.ready("chief:0"))

    def test_of_a_worker_leave_half_a_step(self):
        """What it has changed goes with the last checkpoint."""
        self.check("worker:0", 1)

    def test_of_a_chief_leave_half_a_step(self):
        self.check("chief:0", 0)

    def test_of_a_chief_leave_half_a_step_beside_a_worker_that_goes_on(self):
        """Whose next step is refused, which it takes for what it is."""
        self.begin()
        self.cluster.kill("chief:0")
        self.cluster.start("chief:0")
        peer.await_true(lambda: self.read("muster/begun").min() >= 1 << 48, "the chief has raised the fence")
        self.finish()
        self.assertIn("restored", self.ready("chief:0"))


@peer.needs_namespace
class Connections(Job):

    def test_that_end_end_steps_while_their_servers_live(self):
        """Whose commands have been answered, and wait for no step of theirs to go on: that would take a minute."""
        self.begin()
        port = self.cluster.jobs["ps"][0].rsplit(":", 1)[1]
        ended = subprocess.run(["ss", "-K", "-t", "dport", "=", ":" + port], stdout=subprocess.PIPE, text=True, check=False)
        if "ESTAB" not in ended.stdout:
            self.skipTest("`ss -K` ends no connections here")
        peer.await_true(lambda: "restored" in self.ready("chief:0"), "the chief has restored the model")
        self.finish()


class Stops(Job):

    def test_in_order(self):
        """The steps end, the chief saves, the runtime is killed last; the next server's chief goes on from there."""
        self.begin()
        process = self.cluster.processes["chief:0"]
        process.terminate()
        self.allow(1, *self.tasks)
        self.assertEqual(process.wait(peer.COMMAND_SECONDS), 0)
        self.assertGreaterEqual(int(v1.train.latest_checkpoint(self.run_dir).rsplit("-", 1)[1]), 5)
        self.cluster.kill("chief:0")
        self.cluster.start("chief:0")
        self.finish()

    def test_at_once_by_another_signal(self):
        """Whatever the runtime does, which stands still here."""
        self.begin()
        process = self.cluster.processes["chief:0"]
        found = []
        for thread in os.listdir("/proc/%d/task" % process.pid):
            with open("/proc/%d/task/%s/children" % (process.pid, thread), encoding="ascii") as children:
                found += children.read().split()
        runtime = int(found[0])
        os.kill(runtime, signal.SIGSTOP)
        peer.await_true(lambda: process.send_signal(signal.SIGTERM) or process.poll() is not None, "it ends at once")
        self.assertEqual(process.returncode, 0)
        peer.await_true(lambda: not peer.is_running(runtime), "its runtime ends with it")


if __name__ == "__main__":
    peer.main()
