# SPDX-License-Identifier: Apache-2.0
"""tensorflow_compute.py TARGET: steps that compute, run by TensorFlow's client on a server. For each line "NAME N" that it
reads it runs a model's step N times, and prints how long one took, in seconds."""

import os
import sys
import time

from tensorflow_quietly import tf
import numpy as np

tf.disable_eager_execution()
tf.logging.set_verbosity(tf.logging.ERROR)
SIDE, BATCH, ROWS, WIDTH, PICKS, BULK = 1024, 256, 1000000, 64, 16384, 16 << 20
random = np.random.RandomState(1)


def floats(*shape):
    return random.standard_normal(shape).astype(np.float32)


def variable(name, *shape):
    return tf.get_variable(name, initializer=tf.random.truncated_normal(shape, stddev=0.05, seed=1))


def product():
    a, b = variable("a", SIDE, SIDE), variable("b", SIDE, SIDE)
    return tf.matmul(a, b).op, {}


def layers():
    """784-1024-1024-10, Adam."""
    x, y = tf.placeholder(tf.float32, [None, 784]), tf.placeholder(tf.int64, [None])
    for i, (inside, outside) in enumerate([(784, 1024), (1024, 1024), (1024, 10)]):
        out = tf.matmul(x if i == 0 else out, variable("w%d" % i, inside, outside)) + variable("b%d" % i, outside)
        out = tf.nn.relu(out) if i < 2 else out
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=out))
    return tf.train.AdamOptimizer().minimize(loss), {x: floats(BATCH, 784), y: random.randint(0, 10, BATCH)}


def embedding():
    """A million rows of 64, Adagrad."""
    picked = tf.placeholder(tf.int64, [None])
    rows = tf.nn.embedding_lookup(variable("table", ROWS, WIDTH), picked)
    return tf.train.AdagradOptimizer(0.1).minimize(tf.reduce_mean(tf.square(rows))), {picked: random.randint(0, ROWS, PICKS)}


def feed():
    """64 MiB in, their sum out."""
    x = tf.placeholder(tf.float32, [None])
    return tf.reduce_sum(x), {x: floats(BULK)}


def fetch():
    return variable("v", BULK).read_value(), {}


def assign():
    x = tf.placeholder(tf.float32, [BULK])
    return tf.assign(variable("v", BULK), x).op, {x: floats(BULK)}


class Model:
    def __init__(self, make, target):
        with tf.Graph().as_default():
            self.fetched, feeds = make()
            self.session = tf.Session(target)
            self.session.run(tf.global_variables_initializer())
            self.run = self.session.make_callable(self.fetched, list(feeds))
            self.fed = list(feeds.values())

    def seconds(self, n):
        started = time.perf_counter()
        for _ in range(n):
            self.run(*self.fed)
        return (time.perf_counter() - started) / n


models = {}
for line in sys.stdin:
    name, n = line.split()
    if name not in models:
        models[name] = Model(globals()[name], sys.argv[1])
    print(models[name].seconds(int(n)), flush=True)
os._exit(0)
