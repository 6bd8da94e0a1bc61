# SPDX-License-Identifier: Apache-2.0
"""What the programs share: PROGRAM MASTER DIRECTORY STEPS; each step is a line, "step N loss L", and so is each session
that it begins, "session"."""
import json
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
master, directory, steps = sys.argv[1], sys.argv[2], int(sys.argv[3])
os.environ["TF_CONFIG"] = json.dumps({"session_master": master})  # where an estimator reads it

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
v1.disable_eager_execution()
v1.disable_resource_variables()
v1.disable_control_flow_v2()


def numbers():
    rng = np.random.RandomState(1)
    x = rng.rand(64, 8).astype(np.float32)
    return x, x.sum(1, keepdims=True)


def began():
    print("session", flush=True)


def told(step, loss):
    print("step %d loss %.6f" % (step, loss), flush=True)


class Tell(v1.train.SessionRunHook):
    def begin(self):
        graph = v1.get_default_graph()
        self.step = v1.train.get_global_step()
        losses = graph.get_collection("losses")
        self.loss = losses[-1] if losses else tf.constant(0.)

    def after_create_session(self, session, coordinator):
        began()

    def before_run(self, context):
        return v1.train.SessionRunArgs(self.loss)

    def after_run(self, context, values):
        told(context.session.run(self.step), values.results)  # in the step itself it may be read before it is counted
