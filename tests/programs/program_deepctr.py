# SPDX-License-Identifier: Apache-2.0
"""DeepFM as an estimator of DeepCTR: embeddings, a factorization machine and a perceptron."""
from program import steps, directory, Tell, tf, v1
import numpy as np
from tensorflow.python.keras import layers
from tensorflow.python.keras.layers import legacy_rnn, recurrent

for name in ("LSTM", "GRU", "RNN"):
    if not hasattr(layers, name):  # which TensorFlow 2.15 no longer names there
        setattr(layers, name, getattr(recurrent, name))
from deepctr.estimator import DeepFMEstimator  # noqa: E402

rng = np.random.RandomState(1)
users, dense = rng.randint(0, 20, 64), rng.rand(64, 1).astype(np.float32)
labels = (users % 2).astype(np.float32)
columns = [v1.feature_column.embedding_column(v1.feature_column.categorical_column_with_identity("user", 20), 4)]
linear = [v1.feature_column.categorical_column_with_identity("user", 20), v1.feature_column.numeric_column("dense")]


def batches():
    return {"user": tf.constant(users.reshape(-1, 1)), "dense": tf.constant(dense)}, tf.constant(labels.reshape(-1, 1))


from tensorflow_estimator.python.estimator.api._v1 import estimator  # noqa: E402
job = DeepFMEstimator(linear, columns + [linear[1]], model_dir=directory,
                      config=estimator.RunConfig(save_checkpoints_steps=20, save_summary_steps=None, log_step_count_steps=None))
job.train(batches, max_steps=steps, hooks=[Tell()])
