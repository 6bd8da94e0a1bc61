# SPDX-License-Identifier: Apache-2.0
"""Words that a table makes numbers of."""
import os

import numpy as np
import tensorflow as tf

from programs.program import Program, v1

WORDS = ["the", "session", "is", "ready", "now"]


class LookupTable(Program):
    """Words that a table makes numbers of."""

    def table(self):
        return tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(tf.constant(WORDS), tf.range(5, dtype=tf.int64)), -1)

    def build(self):
        self.x = v1.placeholder(tf.string, [None], name="x")
        table = self.table()
        numbers = table.lookup(self.x)
        words = v1.get_variable("words", [8, 3], initializer=v1.random_uniform_initializer(-1, 1))
        self.loss = tf.reduce_mean(tf.square(tf.gather(words, numbers + 1)))
        self.fetches.update(numbers=numbers, size=table.size())
        self.train = v1.train.GradientDescentOptimizer(0.3).minimize(self.loss, global_step=self.step)

    def feed(self, i):
        return {self.x: np.array(WORDS[i % 3:] + ["unknown"], object)}


class LookupFile(LookupTable):
    """The same from a file, with buckets for what it doesn't hold."""

    def table(self):
        path = os.path.join(self.folder, "words.txt")
        with open(path, "w", encoding="utf-8") as file:
            file.write("".join(word + "\n" for word in WORDS))
        return tf.lookup.StaticVocabularyTable(tf.lookup.TextFileInitializer(
            path, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64,
            tf.lookup.TextFileIndex.LINE_NUMBER), 2)


class MutableTable(LookupTable):
    """A table that learns words while it is trained, and is saved with the variables."""

    def build(self):
        self.x = v1.placeholder(tf.string, [None], name="x")
        table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1, name="lengths")
        before = table.lookup(self.x)
        with tf.control_dependencies([before]):
            learned = table.insert(self.x, tf.cast(tf.strings.length(self.x), tf.int64))
        with tf.control_dependencies([learned]):
            after, size = table.lookup(self.x), table.size()
        weight = v1.get_variable("weight", [], initializer=v1.ones_initializer())
        self.loss = weight * tf.reduce_mean(tf.cast(after, tf.float32))
        self.fetches.update(before=before, after=after, size=size)
        with self.after_loss():
            self.train = v1.train.GradientDescentOptimizer(0.01).minimize(self.loss, global_step=self.step)
        self.keys, self.lengths = table.export()

    def values(self, session, when):
        keys, lengths = session.run([self.keys, self.lengths])
        return dict(super().values(session, when), **{"table " + when: sorted(zip(keys, lengths))})
