# SPDX-License-Identifier: Apache-2.0
"""tf-slim's own training loop over its own layers."""
from program import steps, master, directory, numbers, began, told, tf, v1
import tf_slim as slim

x, y = numbers()
with tf.Graph().as_default():
    images, labels = tf.constant(x), tf.constant(y)
    hidden = slim.fully_connected(images, 16, scope="hidden")
    out = slim.fully_connected(hidden, 1, activation_fn=None, scope="out")
    v1.losses.mean_squared_error(labels, out)
    loss = v1.losses.get_total_loss()
    train = slim.learning.create_train_op(loss, v1.train.AdamOptimizer(.01))

    sessions = []

    def step(session, *arguments):
        if session not in sessions:
            sessions.append(session)
            began()
        total, should_stop = slim.learning.train_step(session, *arguments)
        told(session.run(v1.train.get_global_step()), total)
        return total, should_stop

    slim.learning.train(train, directory, train_step_fn=step, master=master, number_of_steps=steps, save_interval_secs=1,
                        save_summaries_secs=0, log_every_n_steps=0, summary_op=None)
