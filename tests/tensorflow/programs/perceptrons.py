# SPDX-License-Identifier: Apache-2.0
"""Linear regression and perceptrons with each optimizer."""
import numpy as np
import tensorflow as tf

from programs.program import Program, digits, v1


class Linreg(Program):
    """Linear regression."""

    def build(self):
        self.x = v1.placeholder(tf.float32, [None, 3], name="x")
        self.y = v1.placeholder(tf.float32, [None, 1], name="y")
        weights = v1.get_variable("weights", [3, 1])
        bias = v1.get_variable("bias", [], initializer=v1.zeros_initializer())
        error = tf.matmul(self.x, weights) + bias - self.y
        self.loss = tf.reduce_mean(tf.square(error))
        self.train = v1.train.GradientDescentOptimizer(0.1).minimize(self.loss, global_step=self.step)

    def feed(self, i):
        x = np.random.default_rng(i).normal(size=(20, 3)).astype(np.float32)
        return {self.x: x, self.y: x @ np.float32([[1], [-2], [3]]) + 0.5}


class Perceptron(Program):
    """Two layers, and an optimizer."""

    def optimizer(self):
        raise NotImplementedError

    def build(self):
        self.x = v1.placeholder(tf.float32, [None, 16], name="x")
        self.y = v1.placeholder(tf.int64, [None], name="y")
        hidden = self.hidden(self.layer(self.x, "hidden", 16, 24))
        logits = self.layer(hidden, "out", 24, 10)
        self.loss = v1.losses.sparse_softmax_cross_entropy(self.y, logits)
        accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), self.y), tf.float32))
        v1.summary.scalar("accuracy", accuracy)
        self.fetches["accuracy"] = accuracy
        self.train = self.optimizer().minimize(self.loss, global_step=self.step)

    def hidden(self, x):
        return tf.nn.relu(x)

    def layer(self, x, name, inputs, outputs):
        with v1.variable_scope(name):
            weights = v1.get_variable("weights", [inputs, outputs])
            bias = v1.get_variable("bias", [outputs], initializer=v1.zeros_initializer())
            return tf.matmul(x, weights) + bias

    def feed(self, i):
        x, y = digits(seed=i)
        return {self.x: x, self.y: y}


class MlpSgd(Perceptron):
    """Two layers, with gradient descent."""

    def optimizer(self):
        return v1.train.GradientDescentOptimizer(0.3)


class MlpMomentum(Perceptron):
    """Two layers, with momentum."""

    def optimizer(self):
        return v1.train.MomentumOptimizer(0.1, 0.9)


class MlpAdagrad(Perceptron):
    """Two layers, with Adagrad."""

    def optimizer(self):
        return v1.train.AdagradOptimizer(0.1)


class MlpAdam(Perceptron):
    """Two layers, with Adam."""

    def optimizer(self):
        return v1.train.AdamOptimizer(0.01)


class MlpFtrl(Perceptron):
    """Two layers, with FTRL and both its regularisations."""

    def optimizer(self):
        return v1.train.FtrlOptimizer(0.1, l1_regularization_strength=0.01, l2_regularization_strength=0.01)


class MlpRms(Perceptron):
    """Two layers, with RMSProp."""

    def optimizer(self):
        return v1.train.RMSPropOptimizer(0.01)


class MlpAdadelta(Perceptron):
    """Two layers, with Adadelta."""

    def optimizer(self):
        return v1.train.AdadeltaOptimizer(1.0)


class MlpProximal(Perceptron):
    """Two layers, with proximal Adagrad."""

    def optimizer(self):
        return v1.train.ProximalAdagradOptimizer(0.1, l1_regularization_strength=0.01)


class MlpDescent(Perceptron):
    """Two layers, with proximal gradient descent."""

    def optimizer(self):
        return v1.train.ProximalGradientDescentOptimizer(0.1, l2_regularization_strength=0.01)


class MlpDual(Perceptron):
    """Two layers, with Adagrad with dual averaging."""

    def optimizer(self):
        return v1.train.AdagradDAOptimizer(0.1, self.step)


class Batchnorm(Perceptron):
    """A layer normalised by the moments of its batch, which moving averages keep."""

    def optimizer(self):
        return v1.train.MomentumOptimizer(0.1, 0.9)

    def hidden(self, x):
        with v1.variable_scope("normalised"):
            offset = v1.get_variable("offset", [24], initializer=v1.zeros_initializer())
            scale = v1.get_variable("scale", [24], initializer=v1.ones_initializer())
            means = v1.get_variable("means", [24], initializer=v1.zeros_initializer(), trainable=False)
            variances = v1.get_variable("variances", [24], initializer=v1.ones_initializer(), trainable=False)
        mean, variance = tf.nn.moments(x, [0])
        with tf.control_dependencies([v1.assign(means, means * 0.9 + mean * 0.1),
                                      v1.assign(variances, variances * 0.9 + variance * 0.1)]):
            return tf.nn.relu(tf.nn.batch_normalization(x, mean, variance, offset, scale, 1e-3))
