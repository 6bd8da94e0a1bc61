# SPDX-License-Identifier: Apache-2.0
"""A convolution, dropout, clipped gradients and a rate that decays."""
import numpy as np
import tensorflow as tf

from programs.program import Program, v1


class CnnDropoutClipDecay(Program):
    """Two convolutions, dropout, gradients clipped by their global norm, a rate that decays."""

    STEPS = 4

    def build(self):
        self.x = v1.placeholder(tf.float32, [None, 8, 8, 1], name="x")
        self.y = v1.placeholder(tf.int64, [None], name="y")
        filters = v1.get_variable("filters", [3, 3, 1, 4], initializer=v1.truncated_normal_initializer(stddev=0.1))
        more = v1.get_variable("more", [3, 3, 4, 4], initializer=v1.truncated_normal_initializer(stddev=0.1))
        weights = v1.get_variable("weights", [4 * 4 * 4, 10])
        bias = v1.get_variable("bias", [10], initializer=v1.zeros_initializer())
        seen = tf.nn.relu(tf.nn.conv2d(self.x, filters, 1, "SAME"))
        seen = tf.nn.max_pool2d(tf.nn.relu(tf.nn.conv2d(seen, more, 1, "SAME")), 2, 2, "SAME")
        kept = v1.nn.dropout(tf.reshape(seen, [-1, 64]), rate=0.25, seed=5)
        logits = tf.matmul(kept, weights) + bias
        self.loss = v1.losses.sparse_softmax_cross_entropy(self.y, logits) + 0.001 * tf.nn.l2_loss(weights)
        rate = v1.train.exponential_decay(0.01, self.step, 2, 0.9)
        optimizer = v1.train.AdamOptimizer(rate)
        gradients, variables = zip(*optimizer.compute_gradients(self.loss))
        clipped, norm = tf.clip_by_global_norm(gradients, 1.0)
        self.fetches.update(norm=norm, rate=rate)
        with self.after_loss():
            self.train = optimizer.apply_gradients(zip(clipped, variables), global_step=self.step)

    def feed(self, i):
        random = np.random.default_rng(i)
        return {self.x: random.normal(size=(10, 8, 8, 1)), self.y: random.integers(0, 10, 10)}


class ClipDecay(Program):
    """Dropout, gradients clipped by value and by norm, rates that decay by a polynomial and by pieces."""

    def build(self):
        self.x = v1.placeholder(tf.float32, [None, 12], name="x")
        self.y = v1.placeholder(tf.float32, [None, 3], name="y")
        weights = v1.get_variable("weights", [12, 3], initializer=v1.truncated_normal_initializer(stddev=0.3))
        kept = v1.nn.dropout(self.x, rate=0.25, seed=5)
        logits = tf.matmul(tf.tanh(kept), weights)
        self.loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=self.y, logits=logits))
        rate = v1.train.polynomial_decay(0.5, self.step, 10, 0.1) + v1.train.piecewise_constant(
            self.step, [2, 4], [0.1, 0.05, 0.01])
        optimizer = v1.train.GradientDescentOptimizer(rate)
        pairs = optimizer.compute_gradients(self.loss)
        clipped = [(tf.clip_by_norm(tf.clip_by_value(gradient, -0.1, 0.1), 0.2), v) for gradient, v in pairs]
        self.fetches["rate"] = rate
        self.train = optimizer.apply_gradients(clipped, global_step=self.step)

    def feed(self, i):
        random = np.random.default_rng(i)
        y = random.random((10, 3)).astype(np.float32)
        return {self.x: random.normal(size=(10, 12)), self.y: y / y.sum(1, keepdims=True)}
