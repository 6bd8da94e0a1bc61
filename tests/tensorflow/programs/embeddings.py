# SPDX-License-Identifier: Apache-2.0
"""Words that are looked up in partitioned variables, sparse gradients, moving averages, and losses over a sample of words."""
import numpy as np
import tensorflow as tf

from programs.program import Program, functional_control_flow, v1

WORDS, SIZE = 40, 8


class EmbeddingPartitionedEma(Program):
    """Words looked up in a partitioned variable, sparse gradients, a moving average."""

    STRATEGY = "mod"

    def build(self):
        self.x = v1.placeholder(tf.int64, [None, 5], name="x")
        self.y = v1.placeholder(tf.int64, [None], name="y")
        words = v1.get_variable("words", [WORDS, SIZE], initializer=v1.random_uniform_initializer(-1, 1),
                                partitioner=v1.fixed_size_partitioner(3))
        looked_up = tf.nn.embedding_lookup(list(words), self.x) if self.STRATEGY == "div" else (
            v1.nn.embedding_lookup(list(words), self.x, partition_strategy="mod"))
        weights = v1.get_variable("weights", [SIZE, 4])
        logits = tf.matmul(tf.reduce_mean(looked_up, 1), weights)
        self.loss = v1.losses.sparse_softmax_cross_entropy(self.y, logits)
        train = self.optimizer().minimize(self.loss, global_step=self.step)
        averages = v1.train.ExponentialMovingAverage(0.9, self.step)
        with tf.control_dependencies([train]):
            self.train = averages.apply([weights])
        self.fetches["looked up"] = looked_up

    def optimizer(self):
        return v1.train.AdamOptimizer(0.05)

    def feed(self, i):
        random = np.random.default_rng(i)
        return {self.x: random.integers(0, WORDS, (12, 5)), self.y: random.integers(0, 4, 12)}


class EmbeddingAdagrad(EmbeddingPartitionedEma):
    """The strategy "div", and an optimizer that updates only the rows that were looked up."""

    STRATEGY = "div"

    def optimizer(self):
        return v1.train.AdagradOptimizer(0.1)


class EmbeddingFunctional(EmbeddingPartitionedEma):
    """The first of these as TensorFlow 2 builds it: whether a variable has a value is asked in a function."""

    def build(self):
        with functional_control_flow():
            super().build()


class BagOfWords(Program):
    """embedding_lookup_sparse, gradients clipped by their global norm, a rate that decays."""

    def build(self):
        self.x = v1.sparse_placeholder(tf.int64, [None, 7], name="x")
        self.y = v1.placeholder(tf.float32, [None, 1], name="y")
        words = v1.get_variable("words", [WORDS, SIZE], partitioner=v1.fixed_size_partitioner(2))
        bag = v1.nn.embedding_lookup_sparse(words, self.x, None, combiner="mean")
        weights = v1.get_variable("weights", [SIZE, 1])
        logits = tf.matmul(tf.nn.dropout(bag, rate=0.25, seed=5), weights)
        self.loss = (v1.losses.sigmoid_cross_entropy(self.y, logits) + 0.01 * tf.nn.l2_loss(weights))
        rate = v1.train.exponential_decay(0.5, self.step, 4, 0.9, staircase=True)
        optimizer = v1.train.MomentumOptimizer(rate, 0.9, use_nesterov=True)
        gradients, variables = zip(*optimizer.compute_gradients(self.loss))
        clipped, norm = tf.clip_by_global_norm(gradients, 0.5)
        self.fetches.update(norm=norm, rate=rate)
        v1.summary.histogram("words", words.as_tensor())
        with self.after_loss():
            self.train = optimizer.apply_gradients(zip(clipped, variables), global_step=self.step)

    def feed(self, i):
        random = np.random.default_rng(i)
        rows = np.repeat(np.arange(12), 3)
        columns = np.tile([0, 2, 5], 12)
        indices = np.stack([rows, columns], 1).astype(np.int64)
        return {self.x: (indices, random.integers(0, WORDS, 36), [12, 7]),
                self.y: random.integers(0, 2, (12, 1)).astype(np.float32)}


class Word2Vec(Program):
    """Skip-grams: noise contrastive estimation against words that are drawn."""

    def build(self):
        self.x = v1.placeholder(tf.int64, [None], name="x")
        self.y = v1.placeholder(tf.int64, [None, 1], name="y")
        words = v1.get_variable("words", [WORDS, SIZE], initializer=v1.random_uniform_initializer(-1, 1))
        weights = v1.get_variable("weights", [WORDS, SIZE], initializer=v1.truncated_normal_initializer(stddev=0.3))
        biases = v1.get_variable("biases", [WORDS], initializer=v1.zeros_initializer())
        looked_up = v1.nn.embedding_lookup(words, self.x)
        self.loss = tf.reduce_mean(v1.nn.nce_loss(weights, biases, self.y, looked_up, 6, WORDS))
        with self.after_loss():
            self.train = v1.train.GradientDescentOptimizer(0.5).minimize(self.loss, global_step=self.step)
        with tf.control_dependencies([self.train]):
            trained = words.read_value()
            trained /= tf.sqrt(tf.reduce_sum(tf.square(trained), 1, keepdims=True))
            self.fetches["nearest"] = tf.nn.top_k(tf.matmul(trained, trained, transpose_b=True)[:4], 3).indices

    def feed(self, i):
        random = np.random.default_rng(i)
        return {self.x: random.integers(0, WORDS, 16), self.y: random.integers(0, WORDS, (16, 1))}


class SampledSoftmax(Word2Vec):
    """The same with a sampled softmax over partitioned weights, its words drawn as often as they come."""

    def build(self):
        self.x = v1.placeholder(tf.int64, [None, 5], name="x")
        self.y = v1.placeholder(tf.int64, [None, 2], name="y")
        words = v1.get_variable("words", [WORDS, SIZE], partitioner=v1.fixed_size_partitioner(2))
        weights = v1.get_variable("weights", [WORDS, SIZE], partitioner=v1.fixed_size_partitioner(3))
        biases = v1.get_variable("biases", [WORDS], initializer=v1.zeros_initializer())
        hidden = tf.reduce_mean(v1.nn.embedding_lookup(list(words), self.x, partition_strategy="div"), 1)
        drawn = v1.nn.fixed_unigram_candidate_sampler(self.y, 2, 8, True, WORDS, distortion=0.75,
                                                      unigrams=[1.0 + i % 7 for i in range(WORDS)])
        losses = v1.nn.sampled_softmax_loss(list(weights), biases, self.y, hidden, 8, WORDS, num_true=2,
                                            sampled_values=drawn, partition_strategy="div")
        self.loss = tf.reduce_mean(losses)
        self.fetches.update(drawn=drawn.sampled_candidates, learned=v1.nn.learned_unigram_candidate_sampler(
            self.y, 2, 4, False, WORDS).true_expected_count)
        with self.after_loss():
            self.train = v1.train.AdagradOptimizer(0.3).minimize(self.loss, global_step=self.step)

    def feed(self, i):
        random = np.random.default_rng(i)
        return {self.x: random.integers(0, WORDS, (12, 5)), self.y: random.integers(0, WORDS, (12, 2))}
