# SPDX-License-Identifier: Apache-2.0
"""Gradients that are gathered before they are applied, and a saver that writes in parts."""
import contextlib

import numpy as np
import tensorflow as tf

from programs.perceptrons import Linreg
from programs.program import Program, v1


class SyncReplicas(Linreg):
    """SyncReplicasOptimizer, by hand: a chief that is its only worker."""

    def build(self):
        self.x = v1.placeholder(tf.float32, [None, 3], name="x")
        self.y = v1.placeholder(tf.float32, [None, 1], name="y")
        weights = v1.get_variable("weights", [3, 1])
        bias = v1.get_variable("bias", [], initializer=v1.zeros_initializer())
        self.loss = tf.reduce_mean(tf.square(tf.matmul(self.x, weights) + bias - self.y))
        self.optimizer = v1.train.SyncReplicasOptimizer(
            v1.train.GradientDescentOptimizer(0.1), replicas_to_aggregate=1, total_num_replicas=1)
        self.train = self.optimizer.minimize(self.loss, global_step=self.step)
        self.tokens = self.optimizer.get_init_tokens_op(num_tokens=1)

    @contextlib.contextmanager
    def started(self, session):
        with super().started(session):
            session.run(self.optimizer.chief_init_op)
            coordinator = v1.train.Coordinator()
            self.optimizer.get_chief_queue_runner().create_threads(session, coordinator, daemon=True, start=True)
            session.run(self.tokens)
            yield
            coordinator.request_stop()  # its thread waits for gradients until the session is closed

    def run(self, target):
        results = {}
        with v1.Session(target, graph=self.graph) as session:
            session.run(self.init)
            results["before local init"] = sorted(session.run(self.optimizer.ready_for_local_init_op))
            session.run(self.local_init)
            session.run(self.optimizer.chief_init_op)
            results["ready"] = sorted(session.run(self.ready))
            coordinator = v1.train.Coordinator()
            threads = self.optimizer.get_chief_queue_runner().create_threads(session, coordinator, start=True)
            session.run(self.tokens)
            for i in range(self.STEPS):
                session.run(self.train, self.feed(i))
            # The token of the last step says that its update is done.
            results.update(self.values(session, "at the end"))
            coordinator.request_stop()
        coordinator.join(threads, stop_grace_period_secs=30, ignore_live_threads=True)
        return results


class ShardedSaver(Program):
    """A partitioned variable and strings, saved in shards."""

    sharded = True

    def build(self):
        self.x = v1.placeholder(tf.float32, [None, 6], name="x")
        weights = v1.get_variable("weights", [6, 4], partitioner=v1.fixed_size_partitioner(3),
                                  initializer=v1.random_normal_initializer())
        names = v1.get_variable("names", initializer=tf.constant([b"a", b"\0b", b""]), trainable=False)
        self.loss = tf.reduce_mean(tf.square(tf.matmul(self.x, weights)))
        self.fetches["names"] = names
        self.train = v1.train.GradientDescentOptimizer(0.1).minimize(self.loss, global_step=self.step)

    def feed(self, i):
        return {self.x: np.random.default_rng(i).normal(size=(5, 6))}
