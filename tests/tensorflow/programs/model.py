# SPDX-License-Identifier: Apache-2.0
"""The small model that the stories have, and what they tell of files."""
import glob
import os

import numpy as np
import tensorflow as tf
from tensorflow.python.training import training_util

v1 = tf.compat.v1


class Line:
    """Fits a line; a variable of each kind."""

    def __init__(self, device=None):
        self.graph = tf.Graph()
        with self.graph.as_default(), tf.device(device):
            with v1.variable_scope("", use_resource=True):
                self.step = v1.train.create_global_step()
            self.x = v1.placeholder_with_default(np.float32([[1, 2], [3, 4], [-1, 1]]), [None, 2], name="x")
            self.weights = v1.get_variable("weights", initializer=tf.constant([[0.5], [-0.5]]), use_resource=False)
            self.bias = v1.get_variable("bias", initializer=tf.constant([0.25]), use_resource=True)
            self.loss = tf.reduce_mean(tf.square(tf.matmul(self.x, self.weights) + self.bias - 1), name="loss")
            v1.summary.scalar("loss", self.loss)
            self.merged = v1.summary.merge_all()
            # What a step looks at comes before what it changes: TensorFlow promises no order, and hooks differ by it.
            looked_at = [self.merged, self.graph.get_tensor_by_name("global_step/Read/ReadVariableOp:0"),
                         training_util._get_or_create_global_step_read()]
            with tf.control_dependencies(looked_at):
                self.train = v1.train.GradientDescentOptimizer(0.05).minimize(self.loss, global_step=self.step)

    def values(self, session):
        """What it has learned."""
        step, weights, bias = session.run([self.step, self.weights, self.bias])
        return {"step": step, "weights": weights, "bias": bias}


def files(folder):
    """The checkpoints there; their parts apart, nobody names them."""
    return sorted(os.path.basename(path) for path in glob.glob(os.path.join(folder, "*.index")))


def events(folder):
    """What TensorBoard would show: for each tag, its steps and values."""
    found = {}
    for path in sorted(glob.glob(os.path.join(folder, "events.*"))):
        for event in v1.train.summary_iterator(path):
            for value in event.summary.value:
                # how fast it was is nobody's business
                if not value.tag.endswith("/sec"):
                    found["%s at %d" % (value.tag, event.step)] = value.simple_value
            if event.HasField("tagged_run_metadata"):
                found["metadata of %s" % event.tagged_run_metadata.tag] = True
    return found


def failure(run, *expected):
    """How a call fails: the error's type, and the op that TensorFlow's client read off its text."""
    try:
        run()
    except tf.errors.OpError as error:
        return [type(error).__name__, error.op.name if error.op else None]
    except expected as error:
        return [type(error).__name__, None]
    return None
