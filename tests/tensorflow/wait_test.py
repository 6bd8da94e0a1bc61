# SPDX-License-Identifier: Apache-2.0
"""A worker's wait beside TensorFlow's own SessionManager, and how it ends on TensorFlow's server."""
import json
import logging
import os
import subprocess
import threading

import tensorflow as tf

import peer

v1 = tf.compat.v1
v1.disable_v2_behavior()
TOOL = os.path.abspath("tests/tensorflow/wait_tool")


class Model:
    """A global variable, and a local one made from what the global one holds, or from 1."""

    def __init__(self):
        self.graph = tf.Graph()
        with self.graph.as_default():
            v = v1.get_variable("v", initializer=0, use_resource=True)
            guarded = tf.cond(v1.is_variable_initialized(v), v.read_value, lambda: tf.constant(1))
            self.local = v1.get_local_variable("w", initializer=guarded * 10, use_resource=True)
            self.local_init = v1.local_variables_initializer()
            self.ready = v1.report_uninitialized_variables()
            self.assign = v.assign(42).op

    def run(self, target, fetch):
        with v1.Session(target, graph=self.graph) as session:
            return session.run(fetch)


class Heard(logging.Handler):
    """Sets an event at TensorFlow's first word of waiting."""

    def __init__(self):
        super().__init__()
        self.waits = threading.Event()

    def emit(self, record):
        if "Waiting for model to be ready" in record.getMessage():
            self.waits.set()


def local_value_of_theirs(target):
    """What TensorFlow's worker leaves in the local variable, where the chief comes after its first look."""
    model, heard = Model(), Heard()
    logger = logging.getLogger("tensorflow")
    logger.setLevel(logging.INFO)
    logger.addHandler(heard)
    manager = v1.train.SessionManager(local_init_op=model.local_init, ready_op=model.ready, graph=model.graph,
                                      recovery_wait_secs=0.1)
    worker = threading.Thread(target=lambda: manager.wait_for_session(target, max_wait_secs=peer.COMMAND_SECONDS))
    worker.start()
    assert heard.waits.wait(peer.COMMAND_SECONDS), "it never waited"
    model.run(target, model.assign)
    worker.join()
    logger.removeHandler(heard)
    return model.run(target, model.local)


def local_value_of_ours(target, folder):
    model = Model()
    path = os.path.join(folder, "model.meta")
    with model.graph.as_default():
        v1.train.export_meta_graph(path)
    worker = subprocess.Popen([TOOL, path, target, model.ready.name, model.local_init.name],
                              stdout=subprocess.PIPE, text=True, preexec_fn=peer.die_with_parent)
    with worker:
        first = worker.stdout.readline()
        assert "Waiting for model to be ready" in first, first
        model.run(target, model.assign)
        rest = worker.stdout.read()
    assert worker.returncode == 0, rest
    return model.run(target, model.local)


class LocalInit(peer.TestCase):
    def test_without_a_gate_sees_what_it_sees_in_tensorflows_worker(self):
        theirs = local_value_of_theirs(self.enterContext(peer.tensorflow_server()))
        self.assertEqual(theirs, 420)
        self.assertEqual(local_value_of_ours(self.enterContext(peer.tensorflow_server()), self.folder()), theirs)
        self.assertEqual(local_value_of_ours(self.serve(), self.folder()), theirs)


class Verdict(peer.TestCase):
    def slow_model(self):
        """Its ready op takes some tens of milliseconds."""
        with tf.Graph().as_default():
            v1.get_variable("v", initializer=0)
            large = tf.random.uniform([700, 700])
            with tf.control_dependencies([tf.matmul(large, large)]):
                v1.add_to_collection(v1.GraphKeys.READY_OP, tf.identity(v1.report_uninitialized_variables()))
            path = os.path.join(self.folder(), "slow.meta")
            v1.train.export_meta_graph(path)
        return path

    def test_is_not_ready_wherever_the_time_ran_out(self):
        target, path = self.enterContext(peer.tensorflow_server()), self.slow_model()
        for timeout in ("1", "1", "1", "800ms", "600ms"):
            done = subprocess.run([peer.MUSTER, "wait", "--meta-graph=" + path, "--master=" + target,
                                   "--timeout=" + timeout, "--json"], capture_output=True, text=True,
                                  timeout=peer.COMMAND_SECONDS)
            result = json.loads(done.stdout.splitlines()[-1])
            self.assertEqual((done.returncode, result["outcome"]), (1, "not ready"), result)
            self.assertEqual(result["error"]["code"], "deadline exceeded")
            self.assertIn("Session was not ready after waiting %s secs." % {"600ms": "0.6", "800ms": "0.8"}.get(
                timeout, timeout), result["error"]["message"])
            self.assertTrue(result["phases"], result)


if __name__ == "__main__":
    peer.main()
