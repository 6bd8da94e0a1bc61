# SPDX-License-Identifier: Apache-2.0
"""A job on a TensorFlow cluster that `muster serve` runs, whose steps the test holds: a step takes a token from a queue of its
task, in its middle. Its model counts its rows and steps. Import it before TensorFlow: it enters a network namespace."""
import contextlib
import json
import os
import subprocess

import numpy as np

import peer

peer.enter_namespace("true")  # before TensorFlow is loaded

import tensorflow as tf

import cluster_peer

v1 = tf.compat.v1
v1.disable_v2_behavior()
v1.logging.set_verbosity(v1.logging.ERROR)

ROWS, BATCH, EPOCHS = 12, 2, 2


def gate():
    return tf.queue.FIFOQueue(10**6, tf.int32, shapes=[()], shared_name="gate")


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
            v1.add_to_collection("train_op", v1.assign_add(step, 1, use_locking=True, name="train").op)
        cluster_peer.export_sharded(path)
    return path


class Job(peer.TestCase):
    options = []  # of each task's command
    workers = 1
    epochs = EPOCHS
    positions = "--positions"
    patience = peer.COMMAND_SECONDS  # with the tasks' ends
    before = {}  # the words before a task's commands

    def make_cluster(self):
        return cluster_peer.Served(workers=self.workers)

    def build(self, path):
        return build_model(path)

    def setUp(self):
        self.cluster = self.make_cluster()
        self.addCleanup(self.cluster.end)
        self.cluster.start(*self.cluster.names())
        self.run_dir = self.folder()
        folder = self.folder()
        self.meta = self.build(os.path.join(folder, "model.meta"))
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
        words = ["train", "--meta-graph=" + self.meta, "--feed=x:0=@" + self.rows, "--batch-size=%d" % BATCH, "--epochs=%d" % self.epochs,
                 self.positions, "--checkpoint-dir=" + self.run_dir, "--json", *self.options, *more]
        process = subprocess.Popen([*self.before.get(name, ()), peer.MUSTER, *words], env=self.environment(name),
                                   stdin=subprocess.DEVNULL, stdout=log, preexec_fn=peer.die_with_parent)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.tasks[name] = process, log

    def environment(self, name):
        return self.cluster.environment(name)

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
                config = v1.ConfigProto(device_filters=["/job:ps", device], operation_timeout_in_ms=20000)
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
        batches = ROWS * self.epochs // BATCH
        self.allow(5 * batches, *self.tasks)
        for name, (process, _) in self.tasks.items():
            self.assertEqual(process.wait(self.patience), 0, name)
        prefix = v1.train.latest_checkpoint(self.run_dir)
        saved = {name: tf.train.load_variable(prefix, name).tolist() for name in ("seen", "first", "last", "global_step")}
        self.assertEqual(saved, {"seen": [self.epochs] * ROWS, "first": batches, "last": batches, "global_step": batches})

    def ready(self, name):
        """How the chief's sessions got their model."""
        return [event.get("how") for event in self.events(name) if event.get("event") == "ready"]
