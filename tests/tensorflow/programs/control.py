# SPDX-License-Identifier: Apache-2.0
"""Conditions and loops: as functions, which is how TensorFlow 2 builds them, and as TensorFlow 1 did."""
import numpy as np
import tensorflow as tf

from programs.program import Program, functional_control_flow, v1


class CondV1(Program):
    """A condition made of Switch and Merge."""

    def build(self):
        self.x = v1.placeholder(tf.float32, [None, 4], name="x")
        weights = v1.get_variable("weights", [4, 1])
        y = tf.matmul(self.x, weights)
        self.loss = v1.cond(tf.reduce_sum(y) > 0, lambda: tf.reduce_mean(tf.square(y * 2.0)),
                            lambda: tf.reduce_mean(tf.square(y - 1.0)) * weights[0, 0])
        self.train = v1.train.GradientDescentOptimizer(0.05).minimize(self.loss, global_step=self.step)

    def feed(self, i):
        return {self.x: np.random.default_rng(i).normal(size=(8, 4))}


class Cond(CondV1):
    """The same condition as a function."""

    def build(self):
        with functional_control_flow():
            super().build()


class WhileV1(Program):
    """A recurrent net over five steps of time, unrolled by Enter, Exit and NextIteration."""

    def build(self):
        self.x = v1.placeholder(tf.float32, [None, 5, 3], name="x")
        inwards = v1.get_variable("inwards", [3, 4])
        onwards = v1.get_variable("onwards", [4, 4])
        time = tf.transpose(self.x, [1, 0, 2])

        def turn(i, state):
            return i + 1, tf.tanh(tf.matmul(time[i], inwards) + tf.matmul(state, onwards))

        _, state = v1.while_loop(lambda i, _: i < 5, turn, [0, tf.zeros([v1.shape(self.x)[0], 4])],
                                 shape_invariants=[tf.TensorShape([]), tf.TensorShape([None, 4])])
        self.loss = tf.reduce_mean(tf.square(state - 0.5))
        self.train = v1.train.GradientDescentOptimizer(0.2).minimize(self.loss, global_step=self.step)

    def feed(self, i):
        return {self.x: np.random.default_rng(i).normal(size=(6, 5, 3))}


class WhileRnn(WhileV1):
    """The same net with its loop as a function."""

    def build(self):
        with functional_control_flow():
            super().build()
