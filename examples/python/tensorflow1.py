#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""tensorflow1.py DIRECTORY [MASTER]: a TensorFlow 1 program whose sessions come from muster instead of tf.train.SessionManager.

TensorFlow builds the graph; muster restores or initialises the model on MASTER (grpc://HOST:PORT, such as a tf.distribute.Server or
`muster serve`; by default muster's engine in this process), runs the steps and saves.
"""
import sys

import muster
import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
directory, target = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "local"

x = tf.placeholder(tf.float32, [None, 2], "x")
y = tf.placeholder(tf.float32, [None], "y")
w = tf.get_variable("w", [2, 1], initializer=tf.zeros_initializer(), use_resource=False)
loss = tf.reduce_mean(tf.square(tf.reshape(tf.matmul(x, w), [-1]) - y), name="loss")
step = tf.train.get_or_create_global_step()
train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step, name="train")
init = tf.global_variables_initializer()
ready = tf.report_uninitialized_variables(name="ready")
tf_saver = tf.train.Saver()

# Before:
#   manager = tf.train.SessionManager(ready_op=ready)
#   session = manager.prepare_session(target, init_op=init, saver=tf_saver, checkpoint_dir=directory)
exported = tf.train.export_meta_graph(saver_def=tf_saver.as_saver_def()).SerializeToString()
meta_graph = muster.MetaGraph(exported)
saver = muster.Saver(meta_graph)
manager = muster.SessionManager.new_for_ops(meta_graph.graph(), ready.name)
with manager.prepare_session(muster.Master.new_for_target(target), init_op=init.name, saver=saver, checkpoint_dir=directory,
                             timeout=60) as session:
    at = int(session.run(step.name))
    print("resumed at step %d" % at if at else "initialised")
    for at in range(at + 1, at + 101):
        rows = np.random.rand(16, 2)
        _, now = session.run([train.name, loss.name], {x.name: rows, y.name: rows @ [3.0, -2.0]})
    print("step %d, loss %.4f, w [%.1f, %.1f]" % (at, now, *session.run(w.name).numpy().ravel()))
    print("saved", saver.save(session, directory, at))
