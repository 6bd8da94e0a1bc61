# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's own Python client, unmodified, on `muster serve`."""
import contextlib
import os
import threading

import numpy as np
import tensorflow as tf

import peer

v1 = tf.compat.v1
v1.disable_v2_behavior()
errors = tf.errors


def quietly(close):
    """A session that the master has lost can't be closed."""
    with contextlib.suppress(errors.AbortedError):
        close()


class Model:
    """Two variables, one of each kind, and what a program of TensorFlow 1 builds around them."""

    def __init__(self):
        self.graph = tf.Graph()
        with self.graph.as_default():
            self.step = v1.train.create_global_step()
            self.x = v1.placeholder(tf.float32, [None, 2], name="x")
            self.old = v1.get_variable("old", [2, 1], initializer=v1.constant_initializer(0.5), use_resource=False)
            self.new = v1.get_variable("new", [1], initializer=v1.constant_initializer(0.25), use_resource=True)
            self.y = tf.add(tf.matmul(self.x, self.old), self.new, name="y")
            self.loss = tf.reduce_mean(tf.square(self.y))
            self.train = v1.train.GradientDescentOptimizer(0.1).minimize(self.loss, global_step=self.step)
            self.init = v1.global_variables_initializer()
            self.local_init = v1.local_variables_initializer()
            self.ready = v1.report_uninitialized_variables()
            self.saver = v1.train.Saver(max_to_keep=2)
            self.old_value = v1.placeholder(tf.float32, [2, 1])
            self.set_old = v1.assign(self.old, self.old_value)

    def manager(self, **kwargs):
        return v1.train.SessionManager(
            local_init_op=self.local_init, ready_op=self.ready,
            ready_for_local_init_op=self.ready, graph=self.graph, recovery_wait_secs=0.1, **kwargs)

    feed = property(lambda self: {self.x: [[1.0, 2.0], [3.0, 4.0]]})


class Client(peer.TestCase):
    def setUp(self):
        self.target = self.serve()
        self.model = Model()

    def session(self):
        session = v1.Session(self.target, graph=self.model.graph)
        self.addCleanup(quietly, session.close)
        return session

    def initialised(self):
        session = self.session()
        session.run(self.model.init)
        return session

    def test_a_step_feeds_and_fetches(self):
        session = self.initialised()
        y, old = session.run([self.model.y, self.model.old], self.model.feed)
        np.testing.assert_allclose(y, [[1.75], [3.75]])
        np.testing.assert_allclose(old, [[0.5], [0.5]])

    def test_variables_outlive_their_session_and_are_shared(self):
        with v1.Session(self.target, graph=self.model.graph) as first:
            first.run(self.model.init)
            first.run(self.model.set_old, {self.model.old_value: [[7], [8]]})
        np.testing.assert_allclose(self.session().run(self.model.old), [[7], [8]])

    def test_a_graph_may_grow(self):
        session = self.initialised()
        with self.model.graph.as_default():
            doubled = tf.multiply(self.model.new, 2, name="doubled")
        np.testing.assert_allclose(session.run(doubled), [0.5])

    def test_a_callable_runs(self):
        session = self.initialised()
        run = session.make_callable(self.model.y, [self.model.x])
        for _ in range(2):
            np.testing.assert_allclose(run([[1.0, 2.0]]), [[1.75]])

    def test_devices_are_listed(self):
        self.assertIn("CPU", [d.device_type for d in self.session().list_devices()])

    def test_the_chief_prepares_and_a_worker_waits(self):
        waited = []

        def wait():
            manager = Model().manager()
            with manager.wait_for_session(self.target, max_wait_secs=30) as session:
                waited.append(session.run("new/Read/ReadVariableOp:0"))

        worker = threading.Thread(target=wait)
        worker.start()
        chief = self.model.manager().prepare_session(self.target, init_op=self.model.init)
        self.addCleanup(chief.close)
        worker.join(60)
        np.testing.assert_allclose(waited, [[0.25]])

    def test_a_worker_without_a_chief_gives_up(self):
        with self.assertRaises(errors.DeadlineExceededError):
            self.model.manager().wait_for_session(self.target, max_wait_secs=0.5)

    def test_prepare_runs_the_init_function(self):
        def init(session):
            session.run(self.model.init)
            session.run(self.model.set_old, {self.model.old_value: [[1], [2]]})

        with self.model.manager().prepare_session(self.target, init_fn=init) as session:
            np.testing.assert_allclose(session.run(self.model.old), [[1], [2]])

    def test_prepare_says_what_is_not_initialised(self):
        with self.model.graph.as_default():
            some = v1.variables_initializer([self.model.old])
        with self.assertRaisesRegex(RuntimeError, "new"):
            self.model.manager().prepare_session(self.target, init_op=some)

    def test_recover_session_restores_the_latest_checkpoint(self):
        folder = self.folder()
        session = self.initialised()
        session.run(self.model.set_old, {self.model.old_value: [[3], [4]]})
        self.model.saver.save(session, os.path.join(folder, "model.ckpt"), global_step=5)

        fresh = self.serve()
        manager = self.model.manager()
        empty, recovered = manager.recover_session(fresh, saver=self.model.saver, checkpoint_dir=self.folder())
        self.assertFalse(recovered)
        empty.close()
        session, recovered = manager.recover_session(fresh, saver=self.model.saver, checkpoint_dir=folder)
        self.assertTrue(recovered)
        np.testing.assert_allclose(session.run(self.model.old), [[3], [4]])
        session.close()

    def test_a_saved_model_is_read_and_restored(self):
        prefix = os.path.join(self.folder(), "model.ckpt")
        session = self.initialised()
        session.run(self.model.train, self.model.feed)
        before = session.run([self.model.old, self.model.new, self.model.step])
        self.model.saver.save(session, prefix)

        read = tf.train.load_checkpoint(prefix)
        for name, value in zip(("old", "new", "global_step"), before):
            np.testing.assert_array_equal(read.get_tensor(name), value)
        session.run(self.model.init)
        self.model.saver.restore(session, prefix)
        np.testing.assert_array_equal(session.run(self.model.old), before[0])
        with v1.Session(graph=self.model.graph) as own:
            self.model.saver.restore(own, prefix)
            np.testing.assert_array_equal(own.run(self.model.new), before[1])

    def test_restoring_what_is_not_there_is_not_found(self):
        # the client looks first; the master is asked all the same
        with self.assertRaises(errors.NotFoundError):
            self.initialised().run("save/restore_all", {"save/Const:0": os.path.join(self.folder(), "none")})

    def test_monitored_training_resumes_on_another_server(self):
        folder = self.folder()
        self.assertEqual(self.train_monitored(self.target, folder, 5), 5)
        self.assertEqual(self.train_monitored(self.serve(), folder, 8), 8)
        self.assertEqual(tf.train.latest_checkpoint(folder), os.path.join(folder, "model.ckpt-8"))

    def train_monitored(self, target, folder, last_step):
        """Saves by hand: the hooks have a test of their own."""
        model = Model()
        with model.graph.as_default(), v1.train.MonitoredTrainingSession(
                master=target, is_chief=True, checkpoint_dir=folder, save_checkpoint_steps=None,
                save_checkpoint_secs=None, save_summaries_steps=None, save_summaries_secs=None,
                log_step_count_steps=None) as session:
            while session.run(model.step) < last_step:
                session.run(model.train, model.feed)
            session.run_step_fn(lambda step_context: model.saver.save(
                step_context.session, os.path.join(folder, "model.ckpt"), global_step=model.step))
            return session.run(model.step)

    def test_hooks_save_and_stop(self):
        model, folder = Model(), self.folder()
        with model.graph.as_default(), v1.train.MonitoredTrainingSession(
                master=self.target, is_chief=True, checkpoint_dir=folder, save_checkpoint_steps=2,
                save_checkpoint_secs=None, save_summaries_steps=None, save_summaries_secs=None,
                hooks=[v1.train.StopAtStepHook(last_step=5)], log_step_count_steps=None) as session:
            while not session.should_stop():
                session.run(model.train, model.feed)
        self.assertEqual(tf.train.latest_checkpoint(folder), os.path.join(folder, "model.ckpt-5"))
        self.assertEqual(tf.train.load_checkpoint(folder).get_tensor("global_step"), 5)

    def test_a_monitored_worker_joins_its_chief(self):
        chief, worker = Model(), Model()
        with self.monitor(chief, is_chief=True) as first:
            first.run(chief.train, chief.feed)
            with self.monitor(worker, is_chief=False) as second:
                second.run(worker.train, worker.feed)
                self.assertEqual(second.run(worker.step), 2)
            self.assertEqual(first.run(chief.step), 2)

    def monitor(self, model, is_chief):
        with model.graph.as_default():
            return v1.train.MonitoredTrainingSession(
                master=self.target, is_chief=is_chief, log_step_count_steps=None)

    def test_an_uninitialised_variable_is_a_failed_precondition(self):
        for variable in ("old", "new"):
            with self.subTest(variable), self.assertRaisesRegex(errors.FailedPreconditionError, variable):
                self.session().run(variable + ("/read:0" if variable == "old" else "/Read/ReadVariableOp:0"))

    def test_a_missing_feed_is_an_invalid_argument(self):
        with self.assertRaisesRegex(errors.InvalidArgumentError, "'x'.*float"):
            self.initialised().run(self.model.y)

    def test_an_error_names_its_node(self):
        with self.model.graph.as_default():
            wrong = tf.matmul(self.model.x, v1.placeholder_with_default(tf.ones([3, 1]), None), name="wrong")
        with self.assertRaises(errors.InvalidArgumentError) as caught:
            self.initialised().run(wrong, self.model.feed)
        # found by the client in the text's {{node wrong}}
        self.assertIn("wrong", caught.exception.message)

    def test_an_operation_that_muster_lacks_is_named(self):
        with tf.Graph().as_default():
            values = tf.linalg.svd(tf.ones([2, 2]), compute_uv=False)
            with v1.Session(self.target) as session, self.assertRaisesRegex(errors.OpError, "Svd"):
                session.run(values)

    def test_an_unknown_session_is_aborted(self):
        session = self.initialised()
        v1.Session.reset(self.target)
        with self.assertRaises(errors.AbortedError):
            session.run(self.model.new)

    def test_reset_forgets_the_variables(self):
        self.initialised()
        v1.Session.reset(self.target)
        self.assertEqual(sorted(self.session().run(self.model.ready)), [b"global_step", b"new", b"old"])

    def test_a_closed_session_is_closed(self):
        session = self.initialised()
        session.close()
        with self.assertRaises(RuntimeError):
            session.run(self.model.new)

    def test_many_steps_at_once(self):
        session = self.initialised()
        coord = v1.train.Coordinator()

        def run():
            with coord.stop_on_exception():
                for _ in range(50):
                    session.run(self.model.y, self.model.feed)

        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads:
            thread.start()
        coord.join(threads, stop_grace_period_secs=60)


if __name__ == "__main__":
    peer.main()
