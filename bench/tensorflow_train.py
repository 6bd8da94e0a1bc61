# SPDX-License-Identifier: Apache-2.0
"""tensorflow_train.py META TARGET: TensorFlow's MonitoredTrainingSession trains the model of a meta graph
on a master ("" is in this process). For each number that it reads it runs so many steps, and prints how
long one took, in seconds."""

import os
import sys
import time

from tensorflow_quietly import tf
import numpy as np

tf.disable_eager_execution()
tf.logging.set_verbosity(tf.logging.ERROR)
random = np.random.RandomState(1)
x = random.uniform(0, 1, (32, 64)).astype(np.float32)
y = random.randint(0, 10, 32)
tf.train.import_meta_graph(sys.argv[1])
with tf.train.MonitoredTrainingSession(sys.argv[2]) as session:
    feeds = {"x:0": x, "y:0": y}
    print("ready", flush=True)
    for line in sys.stdin:
        started = time.perf_counter()
        for _ in range(int(line)):
            session.run("train", feeds)
        print((time.perf_counter() - started) / int(line), flush=True)
os._exit(0)
