# SPDX-License-Identifier: Apache-2.0
"""tensorflow_outage.py server ADDRESS: TensorFlow's own server there.
tensorflow_outage.py TASK ADDRESS META DIRECTORY SECONDS: a task of a job on that server, "chief" or "worker":
TensorFlow's MonitoredTrainingSession trains the model of a meta graph; the chief saves every so many seconds.
Both tell, as `muster train --json` does, of each session and of steps, ten times a second."""

import sys

from tensorflow_quietly import tf
from tensorflow_telling import Teller
import numpy as np


def serve(address):
    server = tf.train.Server({"local": [address]})
    print("serving grpc://" + address, flush=True)
    server.join()


def train(task, address, meta, directory, seconds):
    tf.disable_eager_execution()
    tf.logging.set_verbosity(tf.logging.ERROR)
    saver = tf.train.import_meta_graph(meta)
    graph = tf.get_default_graph()
    step = graph.get_tensor_by_name("global_step:0")
    tf.add_to_collection(tf.GraphKeys.GLOBAL_STEP, step)
    variables = [op.outputs[0] for op in graph.get_operations() if op.type == "VariableV2"]
    with tf.device("/job:local/task:0"):
        ready = tf.boolean_mask([variable.op.name for variable in variables],
                                tf.logical_not(tf.stack([tf.raw_ops.IsVariableInitialized(ref=variable) for variable in variables])))
    scaffold = tf.train.Scaffold(init_op=graph.get_operation_by_name("init"), local_init_op=tf.no_op(), ready_op=ready,
                                 ready_for_local_init_op=tf.constant([], tf.string), saver=saver)
    x = np.ones((32, 64), np.float32)
    with tf.train.MonitoredTrainingSession(
            "grpc://" + address, is_chief=task == "chief", scaffold=scaffold, hooks=[Teller(step)],
            checkpoint_dir=directory if task == "chief" else None, save_checkpoint_secs=seconds,
            save_summaries_steps=None, save_summaries_secs=None, log_step_count_steps=None) as session:
        while True:
            session.run("train", {"x:0": x})


if sys.argv[1] == "server":
    serve(sys.argv[2])
else:
    train(*sys.argv[1:5], float(sys.argv[5]))
