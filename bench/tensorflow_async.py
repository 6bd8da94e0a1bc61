# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's own async checkpoints of 1 GiB, eager: prints, in seconds and bytes, the medians of a
step without a save, of the call, of the slowest step beside a save and of the time until it is
written, and the peak of memory over that of training. The files go to the directory given."""

import os
import shutil
import statistics
import sys
import time

from tensorflow_quietly import tf as v1
import tensorflow as tf

v1.enable_eager_execution()
folder = os.path.join(sys.argv[1], "tensorflow")
variables = [tf.Variable(tf.ones([8192, 8192])) for _ in range(4)]
gradient = tf.Variable(tf.ones([8192, 8192]))


@tf.function
def train():
    for variable in variables:
        tf.raw_ops.ResourceApplyGradientDescent(var=variable.handle, alpha=0.5, delta=gradient)


def step():
    started = time.perf_counter()
    train()
    return time.perf_counter() - started


def status(name):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


quiet = [step() for _ in range(14)][2:]
checkpoint = tf.train.Checkpoint(**{"v%d" % i: v for i, v in enumerate(variables)})
options = tf.train.CheckpointOptions(enable_async=True)
before = status("VmRSS")
with open("/proc/self/clear_refs", "w") as refs:
    refs.write("5")
calls, slowest, writes = [], [], []
for number in range(4):
    started = time.perf_counter()
    path = checkpoint.save(os.path.join(folder, "model"), options)
    calls.append(time.perf_counter() - started)
    worst = 0
    while not os.path.exists(path + ".index"):
        worst = max(worst, step())
    writes.append(time.perf_counter() - started)
    slowest.append(worst)
    checkpoint.sync()
    shutil.rmtree(folder)
peak = status("VmHWM")
print(statistics.median(quiet), statistics.median(calls[1:]), statistics.median(slowest[1:]),
      statistics.median(writes[1:]), peak - before, flush=True)
sys.stdin.read()
os._exit(0)
