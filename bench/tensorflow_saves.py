# SPDX-License-Identifier: Apache-2.0
"""tensorflow_saves.py META DIRECTORY EVERY SECONDS: TensorFlow's MonitoredTrainingSession trains the model
of a meta graph for so many seconds and saves every so many (0: never): prints steps per second and the
slowest step's seconds."""

import os
import sys
import time

from tensorflow_quietly import tf

tf.disable_eager_execution()
tf.logging.set_verbosity(tf.logging.ERROR)
meta, directory, every, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4])
saver = tf.train.import_meta_graph(meta)
graph = tf.get_default_graph()
step = graph.get_tensor_by_name("global_step:0")
tf.add_to_collection(tf.GraphKeys.GLOBAL_STEP, step)
scaffold = tf.train.Scaffold(init_op=graph.get_operation_by_name("init"), local_init_op=tf.no_op(),
                             ready_op=tf.constant([], tf.string), ready_for_local_init_op=tf.constant([], tf.string),
                             saver=saver)
hooks = [tf.train.CheckpointSaverHook(directory, save_secs=every, scaffold=scaffold)] if every > 0 else []
with tf.train.MonitoredSession(tf.train.ChiefSessionCreator(scaffold), hooks) as session:
    for _ in range(3):
        session.run("train")
    slowest, n, started = 0, 0, time.perf_counter()
    while True:
        began = time.perf_counter()
        if began - started >= seconds:
            break
        session.run("train")
        slowest = max(slowest, time.perf_counter() - began)
        n += 1
    print(n / (time.perf_counter() - started), slowest, flush=True)
os._exit(0)
