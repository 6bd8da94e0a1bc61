# SPDX-License-Identifier: Apache-2.0
"""Features of all kinds, crossed and embedded, in a wide and deep model."""
import numpy as np
import tensorflow as tf

from programs.program import Program, v1

CITIES = ["Oslo", "Bergen", "Kiel"]
WORDS = ["a", "bee", "sea", "deep", "east"]


class WideAndDeep(Program):
    """Feature columns with crosses and embeddings, a fused batch normalisation, and images as summaries."""

    def build(self):
        columns = v1.feature_column
        self.age = v1.placeholder(tf.float32, [None, 1], name="age")
        self.city = v1.placeholder(tf.string, [None, 1], name="city")
        self.words = v1.sparse_placeholder(tf.string, [None, 3], name="words")
        self.y = v1.placeholder(tf.float32, [None, 1], name="y")
        features = {"age": self.age, "city": self.city, "words": self.words}
        ages = columns.bucketized_column(columns.numeric_column("age"), [20., 40., 60.])
        city = columns.categorical_column_with_vocabulary_list("city", CITIES)
        words = columns.categorical_column_with_hash_bucket("words", 20)
        crossed = columns.crossed_column([ages, "city"], 30)
        pairs = columns.crossed_column(["city", "words"], 50)
        wide = columns.linear_model(features, [ages, city, words, crossed, pairs])
        deep = columns.input_layer(features, [columns.numeric_column("age", normalizer_fn=lambda x: x / 60),
                                              columns.indicator_column(city), columns.embedding_column(words, 4),
                                              columns.embedding_column(pairs, 3, combiner="sqrtn")])
        hidden = v1.get_variable("hidden", [deep.shape[1], 6], initializer=v1.orthogonal_initializer())
        seen = tf.reshape(tf.einsum("bi,ij->bj", deep, hidden), [-1, 1, 1, 6])
        normal, _, _ = v1.nn.fused_batch_norm(seen, v1.get_variable("scale", [6], initializer=v1.ones_initializer()),
                                              v1.get_variable("offset", [6]))
        logits = wide + tf.matmul(tf.nn.relu(tf.reshape(normal, [-1, 6])), v1.get_variable("out", [6, 1]))
        self.loss = v1.losses.sigmoid_cross_entropy(self.y, logits)
        # Shades, of values below and above zero, and colours.
        v1.summary.image("hidden", tf.reshape(hidden, [1, -1, 6, 1]))
        v1.summary.image("colours", tf.reshape(tf.abs(hidden[:6]), [2, 3, 2, 3]))
        with self.after_loss():
            self.train = v1.train.AdagradOptimizer(0.1).minimize(self.loss, global_step=self.step)

    def feed(self, i):
        random = np.random.default_rng(i)
        rows = np.sort(random.integers(0, 12, 20))
        places = np.arange(20) - np.searchsorted(rows, rows)
        kept = places < 3
        indices = np.stack([rows, places], 1)[kept].astype(np.int64)
        return {self.age: random.uniform(0, 80, (12, 1)), self.city: random.choice(CITIES + ["Rome"], (12, 1)),
                self.words: (indices, random.choice(WORDS, len(indices)), [12, 3]),
                self.y: random.integers(0, 2, (12, 1)).astype(np.float32)}

    def summarised(self, session):
        """The pixels too, which may be compressed in more ways than one."""
        summary = v1.Summary.FromString(session.run(self.summary, self.feed(0)))
        found = {value.tag: value.simple_value for value in summary.value if value.HasField("simple_value")}
        with tf.Graph().as_default(), v1.Session() as own:
            for value in summary.value:
                if value.HasField("image"):
                    found[value.tag] = own.run(tf.io.decode_png(value.image.encoded_image_string))
        return found
