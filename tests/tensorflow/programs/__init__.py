# SPDX-License-Identifier: Apache-2.0
"""The programs of the census: what users of TensorFlow 1 have, one for each thing that they do."""
from programs import (control, distributed, embeddings, images, inputs, perceptrons, tables)
from programs.program import KINDS, REF, RESOURCE, Program

ALL = {
    "linreg": perceptrons.Linreg,
    "mlp_sgd": perceptrons.MlpSgd,
    "mlp_momentum": perceptrons.MlpMomentum,
    "mlp_adagrad": perceptrons.MlpAdagrad,
    "mlp_adagrad_da": perceptrons.MlpDual,
    "mlp_adadelta": perceptrons.MlpAdadelta,
    "mlp_adam": perceptrons.MlpAdam,
    "mlp_ftrl": perceptrons.MlpFtrl,
    "mlp_proximal_adagrad": perceptrons.MlpProximal,
    "mlp_proximal_descent": perceptrons.MlpDescent,
    "mlp_rms": perceptrons.MlpRms,
    "batchnorm": perceptrons.Batchnorm,
    "dropout_clip_decay": images.ClipDecay,
    "cnn_dropout_clip_decay": images.CnnDropoutClipDecay,
    "embedding_partitioned_ema": embeddings.EmbeddingPartitionedEma,
    "embedding_functional": embeddings.EmbeddingFunctional,
    "embedding_adagrad": embeddings.EmbeddingAdagrad,
    "bag_of_words": embeddings.BagOfWords,
    "queue_input": inputs.QueueInput,
    "queue_words": inputs.QueueWords,
    "queue_shuffled": inputs.QueueShuffled,
    "dataset_iterator": inputs.DatasetIterator,
    "sync_replicas": distributed.SyncReplicas,
    "sharded_saver": distributed.ShardedSaver,
    "lookup_table": tables.LookupTable,
    "lookup_file": tables.LookupFile,
    "mutable_table": tables.MutableTable,
    "cond_v1": control.CondV1,
    "cond": control.Cond,
    "while_v1": control.WhileV1,
    "while_rnn": control.WhileRnn,
}
