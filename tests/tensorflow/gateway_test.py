# SPDX-License-Identifier: Apache-2.0
"""`muster serve --master=grpc://…` in front of TensorFlow's own server: everything passes, and what the master lacks is there."""
import contextlib
import os
import re
import signal
import subprocess
import threading
import time

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import config_pb2

import cluster_peer
import peer

v1 = tf.compat.v1
v1.disable_v2_behavior()
errors = tf.errors


def quietly(close):
    with contextlib.suppress(errors.OpError):
        close()


def outcome(run):
    """What a program sees: its result, or its error's type and words but for the numbers in them."""
    try:
        return run()
    except (errors.OpError, RuntimeError, ValueError) as error:
        return type(error).__name__, re.sub(r"[0-9a-f]{16}|\d+", "N", str(error))


class Gateway(peer.TestCase):
    """One server and one gateway for all tests, which clear it."""

    @classmethod
    def setUpClass(cls):
        cls.master = cls.enterClassContext(peer.tensorflow_server())
        cls.target = cls.enterClassContext(peer.muster_server("--master=" + cls.master))

    def setUp(self):
        v1.Session.reset(self.target)

    def session(self, target, graph):
        session = v1.Session(target, graph=graph)
        self.addCleanup(quietly, session.close)
        return session

    def both(self, graph, run):
        """The same on the server and through the gateway, from a clean start; gives what it gave."""
        outcomes = []
        for target in (self.master, self.target):
            v1.Session.reset(target)
            outcomes.append(outcome(lambda: run(self.session(target, graph))))
        np.testing.assert_equal(outcomes[1], outcomes[0])
        return outcomes[1]

    def test_operations_that_the_engine_lacks_run(self):
        with tf.Graph().as_default() as graph:
            image = tf.reshape(tf.range(32, dtype=tf.float32), [1, 4, 4, 2])
            convolved = tf.nn.conv2d(image, tf.ones([2, 2, 2, 3]), 1, "SAME")
            looped = v1.while_loop(lambda i: i < 10, lambda i: i + 3, [0])
            chosen = v1.cond(looped > 5, lambda: tf.linalg.det(tf.eye(3)), lambda: 0.0)
        self.both(graph, lambda session: session.run([convolved, looped, chosen]))

    def test_a_step_runs_in_parts(self):
        with tf.Graph().as_default() as graph:
            a, b = (v1.placeholder(tf.float32, []) for _ in range(2))
            total = a + b
            product = total * b

        def run(session):
            handle = session.partial_run_setup([total, product], [a, b])
            return [session.partial_run(handle, total, {a: 1, b: 2}), session.partial_run(handle, product),
                    outcome(lambda: session.partial_run(handle, product))]

        self.assertEqual(self.both(graph, run)[:2], [3, 6])

    def test_callables_run(self):
        with tf.Graph().as_default() as graph:
            x = v1.placeholder(tf.float32, [2], name="x")
            y = x * 2

        def run(session):
            options = config_pb2.CallableOptions(feed=[x.name], fetch=[y.name])
            call = session._make_callable_from_options(options)
            return [call(np.array([i, 1], np.float32))[0] for i in range(5)]

        self.both(graph, run)

    def test_a_graph_grows(self):
        results = []
        for target in (self.master, self.target):
            with tf.Graph().as_default() as graph:
                session, x = self.session(target, graph), tf.constant(1.0)
                for _ in range(4):
                    x = x + 1
                    results.append(session.run(x))
        self.assertEqual(results[:4], results[4:])

    def test_traces_pass(self):
        with tf.Graph().as_default() as graph:
            y = tf.matmul(tf.ones([8, 8]), tf.ones([8, 8]), name="traced")
        metadata = v1.RunMetadata()
        options = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE, output_partition_graphs=True)
        self.session(self.target, graph).run(y, options=options, run_metadata=metadata)
        self.assertTrue(metadata.step_stats.dev_stats)
        self.assertTrue(metadata.partition_graphs)

    def test_devices_are_listed(self):
        self.assertEqual(*[[(d.name, d.device_type, d.incarnation) for d in self.session(t, tf.Graph()).list_devices()]
                           for t in (self.master, self.target)])

    def test_errors_are_the_masters(self):
        with tf.Graph().as_default() as graph:
            x = v1.placeholder(tf.float32, name="x")
            old = v1.get_variable("old", [2], use_resource=False)
            new = v1.get_variable("new", [2], use_resource=True).read_value()
            wrong = tf.matmul(x, tf.ones([5, 2]), name="wrong")
            lost = v1.train.Saver([old]).restore
            broken = tf.linalg.inv(tf.zeros([2, 2]), name="broken")
            read = tf.io.read_file("/nowhere/at/all")
        for name, run in {
                "old": lambda s: s.run(old), "new": lambda s: s.run(new), "feed": lambda s: s.run(wrong),
                "shape": lambda s: s.run(wrong, {x: [[1.0]]}), "singular": lambda s: s.run(broken),
                "file": lambda s: s.run(read), "checkpoint": lambda s: lost(s, "/nowhere/at/all")}.items():
            with self.subTest(name), graph.as_default():
                kind, _ = self.both(graph, run)
                self.assertTrue(kind.endswith("Error"), kind)

    def test_a_session_of_another_kind_is_refused_as_by_the_master(self):
        with tf.Graph().as_default() as graph:
            y = tf.constant(1.0)
        config = v1.ConfigProto(use_per_session_threads=True)
        self.assertEqual(*[outcome(lambda: v1.Session(t, graph=graph, config=config).run(y))
                           for t in (self.master, self.target)])

    def queue(self):
        graph = tf.Graph()
        with graph.as_default():
            queue = v1.FIFOQueue(10, tf.float32, [], shared_name="queue")
            return graph, queue.enqueue([7.0]), queue.dequeue(), queue.size()

    def test_a_timeout_ends_the_step_and_takes_nothing(self):
        graph, enqueue, dequeue, size = self.queue()
        session = self.session(self.target, graph)
        with self.assertRaises(errors.DeadlineExceededError):
            session.run(dequeue, options=v1.RunOptions(timeout_in_ms=200))
        session.run(enqueue)
        self.assertEqual(session.run(size), 1)
        self.assertEqual(session.run(dequeue), 7.0)

    def test_closing_a_session_ends_its_blocked_step(self):
        graph, _, dequeue, size = self.queue()
        for target in (self.master, self.target):
            session, ended, began = v1.Session(target, graph=graph), [], threading.Event()
            session.run(size)

            def block():
                began.set()
                ended.append(outcome(lambda: session.run(dequeue)))

            thread = threading.Thread(target=block)
            thread.start()
            began.wait(60)
            time.sleep(0.3)  # either order is right; this one is what is meant
            session.close()
            thread.join(60)
            self.assertFalse(thread.is_alive())
            self.assertIn(ended[0][0], ("CancelledError", "RuntimeError"), ended)

    def test_many_steps_that_wait_keep_nobody_waiting(self):
        graph, enqueue, dequeue, size = self.queue()
        session, got = self.session(self.target, graph), []
        threads = [threading.Thread(target=lambda: got.append(session.run(dequeue))) for _ in range(32)]
        for thread in threads:
            thread.start()
        for _ in threads:
            session.run(enqueue)
        for thread in threads:
            thread.join(60)
        self.assertEqual(got, [7.0] * 32)
        self.assertEqual(session.run(size), 0)

    def test_large_bodies_pass(self):
        n = (500 << 20 if "MUSTER_LONG" in os.environ else 16 << 20)
        with tf.Graph().as_default() as graph:
            x = v1.placeholder(tf.float32, [n])
            same, some = tf.identity(x), x[-1]
        session, fed = self.session(self.target, graph), np.arange(n, dtype=np.float32)
        self.assertEqual(session.run(some, {x: fed}), fed[-1])
        np.testing.assert_array_equal(session.run(same, {x: fed}), fed)

    def test_a_reset_ends_sessions(self):
        with tf.Graph().as_default() as graph:
            y = tf.constant(1.0)
        self.both(graph, lambda session: (session.run(y), v1.Session.reset(session.sess_str.decode()),
                                          outcome(lambda: session.run(y))[0]))

    def model(self):
        graph = tf.Graph()
        with graph.as_default():
            step = v1.train.get_or_create_global_step()
            w = v1.get_variable("w", [2], initializer=v1.ones_initializer())
            train = v1.train.AdamOptimizer(0.1).minimize(tf.reduce_sum(w * w), global_step=step)
        return graph, step, train

    def test_a_monitored_chief_and_worker_train(self):
        chief, worker = self.model(), self.model()
        folder = self.folder()
        with chief[0].as_default(), v1.train.MonitoredTrainingSession(
                self.target, is_chief=True, checkpoint_dir=folder, save_checkpoint_steps=5,
                hooks=[v1.train.StopAtStepHook(last_step=20)], log_step_count_steps=5) as first:
            first.run(chief[2])
            with worker[0].as_default(), v1.train.MonitoredTrainingSession(self.target, is_chief=False) as second:
                second.run(worker[2])
                self.assertEqual(second.run(worker[1]), 2)
            while not first.should_stop():
                first.run(chief[2])
        self.assertEqual(tf.train.load_checkpoint(folder).get_tensor("global_step"), 20)

    def test_a_worker_of_musters_waits_by_push_and_steps_through(self):
        graph, step, train = self.model()
        with graph.as_default():
            init, ready = v1.global_variables_initializer(), v1.report_uninitialized_variables()
            v1.add_to_collection(v1.GraphKeys.READY_OP, ready)
            path = os.path.join(self.folder(), "model.meta")
            v1.train.export_meta_graph(path)
        waiting = subprocess.Popen([peer.MUSTER, "wait", "--meta-graph=" + path, "--master=" + self.target,
                                    "--timeout=60s"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                   preexec_fn=peer.die_with_parent)
        while not peer.muster_json("status", self.target)["watchers"]:
            self.assertIsNone(waiting.poll())
        self.session(self.target, graph).run(init)
        said, _ = waiting.communicate(timeout=60)
        self.assertEqual(waiting.returncode, 0, said)

    def test_a_chief_of_musters_announces_and_pythons_worker_joins(self):
        graph, step, _ = self.model()
        with graph.as_default():
            path = os.path.join(self.folder(), "model.meta")
            v1.add_to_collection(v1.GraphKeys.INIT_OP, v1.global_variables_initializer())
            v1.add_to_collection(v1.GraphKeys.READY_OP, v1.report_uninitialized_variables())
            v1.train.export_meta_graph(path)
        peer.muster("prepare", "--meta-graph=" + path, "--master=" + self.target, "--timeout=60s")
        (model,) = peer.muster_json("status", self.target)["models"]
        self.assertTrue(model["prepared"], model)
        worker = self.model()
        with worker[0].as_default(), v1.train.MonitoredTrainingSession(self.target, is_chief=False) as session:
            session.run(worker[2])
            self.assertEqual(session.run(worker[1]), 1)


MASTER = "worker:0"


class Failing(peer.TestCase):
    """What becomes of a program when the master behind its gateway fails."""

    def setUp(self):
        self.master = cluster_peer.Cluster(workers=1, parameter_servers=0, chiefs=0)
        self.addCleanup(self.master.end)
        self.master.start(MASTER)
        self.target = self.serve("--master=" + self.master.target(MASTER))
        with tf.Graph().as_default() as self.graph:
            self.y = tf.constant(2.0) * 2
        self.session = v1.Session(self.target, graph=self.graph)
        self.addCleanup(quietly, self.session.close)
        self.assertEqual(self.session.run(self.y), 4.0)

    def test_a_master_that_dies_is_unavailable_and_one_that_came_back_aborts(self):
        self.master.kill(MASTER)
        with self.assertRaisesRegex(errors.UnavailableError, self.master.target(MASTER).rsplit(":", 1)[1]):
            self.session.run(self.y)
        self.master.start(MASTER)

        def is_aborted():
            try:
                self.session.run(self.y)
            except errors.UnavailableError:
                return False
            except errors.AbortedError as error:
                self.assertIn("is not found", error.message)
                return True
            raise AssertionError("it ran in a session of the master that died")
        peer.await_true(is_aborted, "the session was aborted")
        with v1.Session(self.target, graph=self.graph) as another:
            self.assertEqual(another.run(self.y), 4.0)

    def test_a_master_that_hangs_runs_into_the_deadline(self):
        self.master.stop(MASTER)
        with self.assertRaises(errors.DeadlineExceededError):
            self.session.run(self.y, options=v1.RunOptions(timeout_in_ms=500))
        self.master.signal(MASTER, signal.SIGCONT)
        self.assertEqual(self.session.run(self.y), 4.0)

    def test_a_monitored_session_recovers(self):
        with self.graph.as_default():
            counter = v1.get_variable("counter", [], initializer=v1.zeros_initializer())
            count = v1.assign_add(counter, 1)
            v1.train.create_global_step()
            with v1.train.MonitoredTrainingSession(self.target) as session:
                session.run(count)
                self.master.kill(MASTER)
                self.master.start(MASTER)
                self.assertEqual(session.run(count), 1)


if __name__ == "__main__":
    peer.main()
