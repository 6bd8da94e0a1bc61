#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records the checkpoints of objects in testdata/ with TensorFlow (last recorded with 2.21): a
tf.train.Checkpoint and the variables of a SavedModel.

The names and values are fixed, and the tests know them: a change here is a change there.

    PYTHON tests/checkpoint/record_objects.py tests/checkpoint/testdata
"""

import os
import shutil
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import tensorflow as tf


class Dense(tf.Module):

    def __init__(self, rows, columns):
        super().__init__()
        values = np.arange(rows * columns, dtype=np.float32).reshape(rows, columns)
        self.kernel = tf.Variable(values, name="kernel")
        self.bias = tf.Variable(tf.zeros([columns]), name="bias")


class Net(tf.Module):
    """A layer that two ways lead to, and names that a key has to escape."""

    def __init__(self):
        super().__init__()
        self.layers = [Dense(3, 4), Dense(4, 2)]
        self.first = self.layers[0]
        self.table = tf.Variable(["x", "y"], name="words")
        self.odd = {"a/b.c": tf.Variable(2.5, name="odd_one")}


def main():
    directory = sys.argv[1]
    net = Net()
    optimizer = tf.compat.v1.train.MomentumOptimizer(0.5, 0.9)
    optimizer.apply_gradients([(tf.ones([3, 4]), net.first.kernel)])
    words = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
    words.insert(["one", "two"], [1, 2])
    with tempfile.TemporaryDirectory() as scratch:
        tf.train.Checkpoint(
            net=net, optimizer=optimizer, words=words,
            step=tf.Variable(7, dtype=tf.int64, name="step")).save(
                os.path.join(scratch, "objects"))
        tf.saved_model.save(net, os.path.join(scratch, "saved_model"))
        for name in os.listdir(scratch):
            if name.startswith("objects-1."):
                shutil.copy(os.path.join(scratch, name), directory)
        shutil.copytree(os.path.join(scratch, "saved_model", "variables"),
                        os.path.join(directory, "saved_model", "variables"), dirs_exist_ok=True)


if __name__ == "__main__":
    main()
