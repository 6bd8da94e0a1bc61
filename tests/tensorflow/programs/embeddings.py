# SPDX-License-Identifier: Apache-2.0
"""Words that are looked up in partitioned variables, sparse gradients, moving averages, and losses over a sample of words."""
import os

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


class WarmStart(Program):
    """Words and classes of another vocabulary, from a checkpoint of a partitioned model, and how that fails."""

    OLD = {"words": "the session is ready now", "classes": "yes no"}
    NEW = {"words": "now a session waits the other is here", "classes": "no maybe yes"}

    def build(self):
        self.old = os.path.join(self.folder, "old")
        with tf.Graph().as_default(), v1.Session() as session:
            self.model(5, 2)
            v1.set_random_seed(5)
            session.run(v1.global_variables_initializer())
            v1.train.Saver().save(session, self.old, write_meta_graph=False)
        for age, texts in [("old", self.OLD), ("new", self.NEW)]:
            for name, text in texts.items():
                self.write(age + "-" + name, text.replace(" ", "\n") + "\n")
        words, weights = self.model(9, 3)
        self.x = v1.placeholder(tf.int64, [None], name="x")
        logits = tf.matmul(v1.nn.embedding_lookup(list(words), self.x, partition_strategy="div"), weights)
        self.loss = v1.losses.sparse_softmax_cross_entropy(self.x % 3, logits)
        self.train = v1.train.GradientDescentOptimizer(0.1).minimize(self.loss, global_step=self.step)
        v1.train.warm_start(self.old, "words|weights", {
            "words": v1.train.VocabInfo(self.path("new-words"), 8, 1, self.path("old-words"), 4,
                                        v1.random_uniform_initializer(-1, 1, seed=3)),
            "weights": v1.train.VocabInfo(self.path("new-classes"), 3, 0, self.path("old-classes"),
                                          backup_initializer=v1.ones_initializer(), axis=1)})
        self.odd = [*self.odd_vocabularies(), *self.odd_matrices(), *self.odd_files()]

    def model(self, n_words, n_classes):
        words = v1.get_variable("words", [n_words, 3], initializer=v1.random_uniform_initializer(-1, 1),
                                partitioner=v1.fixed_size_partitioner(2))
        return words, v1.get_variable("weights", [3, n_classes])

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def odd_vocabularies(self):
        self.write("twice", "now\nnow\n")
        self.write("nothing", "")
        for new, old, offset, n, size in [
                ("new-words", "old-words", 0, 8, -1), ("new-words", "old-words", 3, 5, 2), ("new-words", "old-words", 8, 0, -1),
                ("new-words", "old-words", 1, 8, -1), ("new-words", "old-words", 2, 3, 6), ("new-words", "old-words", 0, 1, 0),
                ("twice", "old-words", 0, 2, -1), ("new-words", "twice", 0, 8, -1), ("nothing", "old-words", 0, 0, -1),
                ("lost", "old-words", 0, 1, -1), ("new-words", "lost", 0, 1, -1), ("", "old-words", 0, 1, -1)]:
            yield tf.raw_ops.GenerateVocabRemapping(
                new_vocab_file=self.path(new) if new else "", old_vocab_file=self.path(old), new_vocab_offset=offset,
                num_new_vocab=n, old_vocab_size=size)

    def odd_matrices(self):
        for rows, columns, values, name, most in [
                ([4, 0, 2], [], 0, "words", -1), ([4, 0, 2], [], 0, "words", 1), ([4, -1, 2, 3], [], 3, "words", 2),
                ([3, 4, -1], [2, -1, 0], 5, "words", 2), ([-1, -1], [], 6, "words", -1), ([], [], 0, "words", -1),
                ([1], [0, 1, -1, 2], 1, "words", 0), ([0, 1, 0], [], 0, "words", -1), ([0, 1], [1, 1, 0], 0, "words", -1),
                ([0, 5], [], 0, "words", -1), ([0, 2 ** 62], [], 0, "words", -1), ([0, -1], [], 2, "words", -1),
                ([0, -1], [], 4, "words", -1), ([0], [-1, -1, -1], 3, "words", -1), ([0], [], 0, "lost", -1),
                ([0], [], 0, "weights", -1), ([0], [0, 1, -1], 1, "weights", -1), ([0], [], 0, "global_step", -1)]:
            yield tf.raw_ops.LoadAndRemapMatrix(
                ckpt_path=self.old, old_tensor_name=name, row_remapping=np.int64(rows), col_remapping=np.int64(columns),
                initializing_values=np.arange(values, dtype=np.float32), num_rows=len(rows), num_cols=len(columns) or 3,
                max_rows_in_memory=most)

    def odd_files(self):
        """Below a file, a directory, too long a name, a loop of links, a URI of a local file."""
        os.makedirs(self.path("directory"))
        os.symlink("loop", self.path("loop"))
        for name in ["old-words/x", "directory", "n" * 300, "loop/x", "no/where"]:
            yield from self.uses(self.path(name))
            if name not in ("directory", "no/where"):  # there it would be a checkpoint for the next run
                yield from self.writes(self.path(name))
        uri = "file://" + self.folder
        yield from self.writes(uri + "/by-uri")
        yield tf.raw_ops.RestoreV2(prefix=uri + "/by-uri", tensor_names=["v"], shape_and_slices=[""], dtypes=[tf.float32])
        yield tf.raw_ops.GenerateVocabRemapping(new_vocab_file=uri + "/new-words", old_vocab_file=uri + "/old-words",
                                                new_vocab_offset=0, num_new_vocab=8)

    @staticmethod
    def uses(path):
        table = tf.raw_ops.HashTableV2(key_dtype=tf.string, value_dtype=tf.int64)
        yield tf.raw_ops.InitializeTableFromTextFileV2(table_handle=table, filename=path, key_index=-2, value_index=-1)
        yield tf.raw_ops.GenerateVocabRemapping(new_vocab_file=path, old_vocab_file=path, new_vocab_offset=0, num_new_vocab=1)
        yield tf.raw_ops.LoadAndRemapMatrix(ckpt_path=path, old_tensor_name="v", row_remapping=np.int64([0]),
                                            col_remapping=np.int64([]), initializing_values=np.float32([]), num_rows=1, num_cols=1)
        if not path.endswith("directory"):  # TensorFlow opens it as the older format's table
            yield tf.raw_ops.RestoreV2(prefix=path, tensor_names=["v"], shape_and_slices=[""], dtypes=[tf.float32])
        yield tf.raw_ops.MergeV2Checkpoints(checkpoint_prefixes=[path], destination_prefix=path + "-merged")

    @staticmethod
    def writes(path):
        yield tf.raw_ops.SaveV2(prefix=path, tensor_names=["v"], shape_and_slices=[""], tensors=[tf.constant([[1., 2.]])])

    def feed(self, i):
        return {self.x: np.arange(i, i + 4) % 9}

    def values(self, session, when):
        """To the bit what comes from the checkpoint, and the code of what fails."""
        if when != "at the start":
            return super().values(session, when)
        results = {name: np.asarray(value).tobytes().hex() for name, value in super().values(session, when).items()}
        for i, odd in enumerate(self.odd):
            try:
                results["odd %d" % i] = [np.asarray(value).tolist() for value in session.run(list(odd) if isinstance(odd, tuple) else [odd])]
            except tf.errors.OpError as error:
                results["odd %d" % i] = type(error).__name__
        return results
