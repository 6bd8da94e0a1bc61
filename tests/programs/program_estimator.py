# SPDX-License-Identifier: Apache-2.0
"""An estimator of tensorflow-estimator with a model of its own kind."""
from program import steps, directory, numbers, Tell, tf, v1
from tensorflow_estimator.python.estimator.api._v1 import estimator

x, y = numbers()


def model(features, labels, mode):
    out = v1.layers.dense(v1.layers.dense(tf.constant(x), 16, tf.nn.relu, name="hidden"), 1, name="out")
    loss = v1.losses.mean_squared_error(tf.constant(y), out)
    train = v1.train.AdamOptimizer(.01).minimize(loss, v1.train.get_global_step())
    return estimator.EstimatorSpec(mode, loss=loss, train_op=train)


job = estimator.Estimator(model, directory, estimator.RunConfig(save_checkpoints_steps=20, save_summary_steps=None,
                                                                log_step_count_steps=None))
job.train(lambda: None,  # the model has its data
           max_steps=steps, hooks=[Tell()])
