# SPDX-License-Identifier: Apache-2.0
"""One addition in TensorFlow's Python session, in this process: prints the median in seconds."""

import statistics
import time

from tensorflow_quietly import tf

tf.disable_eager_execution()
x = tf.placeholder(tf.float32, [])
total = x + 2.0
with tf.Session() as session:
    rounds = []
    for _ in range(22):
        started = time.perf_counter()
        for _ in range(200):
            session.run(total, {x: 40.0})
        rounds.append((time.perf_counter() - started) / 200)
print(statistics.median(rounds[2:]), flush=True)
