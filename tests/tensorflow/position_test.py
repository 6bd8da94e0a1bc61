#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Positions in a model that TensorFlow built and exported, with its own variables, optimizer and saver: a chief and a
worker train it on TensorFlow's server and on muster's, are killed and come back, and the checkpoint alone tells that each
batch was trained exactly once, also if batches are dealt. TensorFlow reads it."""
import os
import subprocess
import sys

sys.path.insert(0, "tests/tensorflow")
import peer
import tensorflow as tf

v1 = tf.compat.v1
TASK = os.path.abspath("tests/scenarios/soak_task")
N_ROWS, BATCH = 60, 7  # as in tests/doubles/seen_model.h
N_TASKS, N_SLOTS, N_BATCHES = 2, 8, 400
SECONDS = 120


def export_model(path, resources, embeds):
    """Weights that Adam trains, and what counts: "seen", "w" and "global_step"."""
    with tf.Graph().as_default():
        v1.get_variable_scope().set_use_resource(resources)
        rows = v1.placeholder(tf.int64, [BATCH], name="rows")
        seen = v1.get_variable("seen", [N_ROWS], tf.int64, v1.zeros_initializer(), trainable=False)
        w = v1.get_variable("w", [], tf.float32, v1.zeros_initializer(), trainable=False)
        kernel = v1.get_variable("kernel", [8, 8], initializer=v1.ones_initializer())
        step = v1.train.get_or_create_global_step()
        # Python adds to a variable without a lock unless it is asked for one.
        counted = v1.assign_add(seen, tf.reduce_sum(tf.one_hot(rows, N_ROWS, dtype=tf.int64), 0), use_locking=True)
        grown = v1.assign_add(w, 1.0, use_locking=True)
        loss = tf.reduce_sum(kernel * kernel)
        if embeds:
            table = v1.get_variable("table", [N_ROWS, 4], initializer=v1.ones_initializer())
            loss += tf.reduce_sum(tf.gather(table, rows))
        adam = v1.train.AdamOptimizer(0.01, use_locking=True)
        train = tf.group(counted, grown, adam.apply_gradients(adam.compute_gradients(loss)))
        with tf.control_dependencies([train]):
            train = tf.group(v1.assign_add(step, 1, use_locking=True), name="train")
        v1.get_collection_ref("train_op")[:] = [train]  # Adam has put itself there
        v1.add_to_collection("init_op", v1.global_variables_initializer())
        v1.add_to_collection("ready_op", v1.report_uninitialized_variables())
        saver = v1.train.Saver(sharded=True, max_to_keep=3)
        saver.export_meta_graph(path)


class PositionTest(peer.TestCase):
    def task(self, target, directory, task, model, is_dealt):
        how, n = ("deal", N_SLOTS) if is_dealt else ("run", N_TASKS)
        process = subprocess.Popen([TASK, how, target, directory, str(task), str(n), str(N_BATCHES), model, "10000"],
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                   preexec_fn=peer.die_with_parent)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait, 10)
        self.addCleanup(process.kill)
        return process

    def until_saved(self, process, least):
        """The chief has said that a checkpoint of that step or a later one is durable."""
        said = []
        for line in process.stdout:
            said.append(line)
            if line.startswith("saved ") and int(line.rsplit("-", 1)[1]) >= least:
                return
        self.fail("the chief never saved: " + "".join(said))

    def end(self, process):
        try:
            out, _ = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            self.fail("a task hasn't ended in %d s: %s" % (SECONDS, process.communicate()[0]))
        self.assertEqual(process.returncode, 0, out)
        self.assertIn("ended", out)

    def run_job(self, target, resources, embeds, is_dealt=False):
        folder = self.folder()
        model, directory = os.path.join(folder, "model.meta"), os.path.join(folder, "run")
        export_model(model, resources, embeds)
        chief, worker = (self.task(target, directory, task, model, is_dealt) for task in range(N_TASKS))
        self.until_saved(chief, 1)
        worker.kill()
        worker = self.task(target, directory, 1, model, is_dealt)
        self.until_saved(chief, 50)
        chief.kill()
        chief.wait(10)
        chief = self.task(target, directory, 0, model, is_dealt)
        self.end(chief)
        self.end(worker)
        self.check(directory, is_dealt)

    def check(self, directory, is_dealt):
        latest = tf.train.latest_checkpoint(directory)
        self.assertTrue(latest.endswith("model.ckpt-%d" % N_BATCHES), latest)
        n_tasks = N_SLOTS if is_dealt else N_TASKS
        told = subprocess.run([TASK, "check", latest, str(n_tasks)], stdout=subprocess.PIPE, text=True, timeout=60)
        self.assertEqual(told.returncode, 0, told.stdout)
        reader = tf.train.load_checkpoint(latest)
        if is_dealt:
            taken = reader.get_tensor("muster/taken")
            dealt = int(reader.get_tensor("muster/next")) - len(taken[taken >= 0])
            self.assertEqual(int(reader.get_tensor("muster/done").sum()) + dealt, N_BATCHES)
            self.assertEqual(reader.get_tensor("muster/slot/begun").tolist(), reader.get_tensor("muster/slot/done").tolist())
        else:
            self.assertEqual(reader.get_tensor("muster/done").tolist(), [N_BATCHES // N_TASKS] * N_TASKS)
            self.assertEqual(reader.get_tensor("muster/begun").tolist(), reader.get_tensor("muster/done").tolist())
        self.assertEqual(int(reader.get_tensor("seen").sum()), N_BATCHES * BATCH)
        self.assertTrue(reader.has_tensor("kernel/Adam"))

    def test_on_tensorflows_server(self):
        for resources in (False, True):
            with self.subTest(resources=resources), peer.tensorflow_server() as target:
                self.run_job(target, resources, True)

    def test_on_musters_server(self):
        for resources in (False, True):
            with self.subTest(resources=resources), peer.muster_server() as target:
                self.run_job(target, resources, False)

    def test_dealt_on_tensorflows_server(self):
        with peer.tensorflow_server() as target:
            self.run_job(target, True, True, is_dealt=True)

    def test_dealt_goes_on_with_a_fixed_job_on_tensorflows_server(self):
        folder = self.folder()
        model, directory = os.path.join(folder, "model.meta"), os.path.join(folder, "run")
        export_model(model, True, False)
        with peer.tensorflow_server() as target:
            before = [self.task(target, directory, task, model, False) for task in range(N_TASKS)]
            self.until_saved(before[0], 50)
            for process in before:
                process.kill()
                process.wait(10)
            now = [self.task(target, directory, task, model, True) for task in range(N_TASKS + 1)]
            for process in now:
                self.end(process)
        self.check(directory, True)
        origin = tf.train.load_checkpoint(tf.train.latest_checkpoint(directory)).get_tensor("muster/done")
        self.assertEqual(len(origin), N_TASKS)
        self.assertGreaterEqual(int(origin.sum()), 50)

    def test_dealt_on_musters_server(self):
        with peer.muster_server() as target:
            self.run_job(target, False, False, is_dealt=True)


if __name__ == "__main__":
    peer.main()
