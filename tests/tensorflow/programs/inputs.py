# SPDX-License-Identifier: Apache-2.0
"""Input that the graph brings by itself: queues and their runners, readers, data sets."""
import contextlib
import os

import numpy as np
import tensorflow as tf

from programs.program import Program, v1


class Fed(Program):
    """A linear model over rows that a queue gives, and what becomes of its end."""

    ROWS, BATCH, EPOCHS = 16, 4, 2

    def build(self):
        x, y = self.rows()
        weights = v1.get_variable("weights", [2, 1])
        self.loss = tf.reduce_mean(tf.square(tf.matmul(x, weights) - y))
        self.fetches["rows"] = x
        self.train = v1.train.GradientDescentOptimizer(0.1).minimize(self.loss, global_step=self.step)

    @contextlib.contextmanager
    def started(self, session):
        with super().started(session):
            coordinator = v1.train.Coordinator()
            with self.graph.as_default():
                threads = v1.train.start_queue_runners(session, coordinator)
            yield
            coordinator.request_stop()
            coordinator.join(threads, stop_grace_period_secs=30)

    def run(self, target):
        results = {}
        with v1.Session(target, graph=self.graph) as session:
            session.run(self.init)
            session.run(self.local_init)
            results["not ready"] = sorted(session.run(self.ready))
            coordinator = v1.train.Coordinator()
            with self.graph.as_default():
                threads = v1.train.start_queue_runners(session, coordinator)
            i = 0
            try:
                while not coordinator.should_stop():
                    for name, value in self.train_once(session, i).items():
                        results["step %d: %s" % (i, name)] = value
                    i += 1
            except tf.errors.OutOfRangeError as error:
                results["end"] = type(error).__name__, error.op.type
            coordinator.request_stop()
            coordinator.join(threads, stop_grace_period_secs=30)
            results["steps"] = i
            results.update(self.values(session, "at the end"))
        return results


class QueueInput(Fed):
    """Lines of a file, by a reader behind a string input producer."""

    def rows(self):
        names = []
        for part in range(2):
            names.append(os.path.join(self.folder, "rows-%d.csv" % part))
            with open(names[-1], "w", encoding="utf-8") as file:
                for i in range(self.ROWS // 2):
                    file.write("%d,%d,%d\n" % (i, part, 2 * i - part))
        files = v1.train.string_input_producer(names, num_epochs=self.EPOCHS, seed=7)
        _, line = v1.TextLineReader().read(files)
        a, b, y = tf.io.decode_csv(line, [[0.0], [0.0], [0.0]])
        return v1.train.batch([tf.stack([a, b]) / 10, tf.reshape(y / 10, [1])], self.BATCH)


class QueueWords(Fed):
    """No files: words from a producer, shuffled."""

    def rows(self):
        words = ["%d,%d,%d" % (i, i % 2, 2 * i - i % 2) for i in range(self.ROWS)]
        word = v1.train.string_input_producer(words, num_epochs=self.EPOCHS, seed=7).dequeue()
        numbers = v1.string_to_number(v1.string_split([word], ",").values)
        x, y = numbers[:2] / 10, numbers[2:] / 10
        x.set_shape([2])
        y.set_shape([1])
        return v1.train.batch([x, y], self.BATCH)


class QueueShuffled(Fed):
    """Slices of arrays, and a RandomShuffleQueue that is seeded."""

    def rows(self):
        x = np.float32([[i / 10, i % 3] for i in range(self.ROWS)])
        one, y = v1.train.slice_input_producer([x, x[:, :1] * 2], num_epochs=self.EPOCHS, shuffle=False)
        queue = tf.queue.RandomShuffleQueue(64, self.ROWS, [tf.float32, tf.float32], [[2], [1]], seed=5)
        v1.train.add_queue_runner(v1.train.QueueRunner(queue, [queue.enqueue([one, y])]))
        return queue.dequeue_many(self.BATCH)

    # Its runner fills the queue while the steps drain it: what they see, but not in which order, is told.
    def run(self, target):
        results = super().run(target)
        rows = sorted(tuple(map(float, row)) for name, value in results.items() if name.endswith("rows")
                      for row in value)
        return {"rows": np.array(rows), "end": results["end"]}


class SparseBatches(Fed):
    """Sparse rows: batches of two, and batches of those, through queues of their numbers."""

    def rows(self):
        entries, columns = np.float32([i % 5 for i in range(self.ROWS)]), np.int64([i % 2 for i in range(self.ROWS)])
        entry, column, y = v1.train.slice_input_producer([entries, columns, entries[:, np.newaxis]],
                                                         num_epochs=self.EPOCHS, shuffle=False)
        some = tf.cast(entry > 0, tf.int64)  # every fifth row has no entry
        row = tf.SparseTensor(tf.reshape(column, [1, 1])[:some], tf.reshape(entry / 10, [1])[:some], [2])
        row, y = v1.train.batch([row, y], 2)
        row, y = v1.train.batch([row, y], self.BATCH, enqueue_many=True)
        self.fetches.update(indices=row.indices, shape=row.dense_shape)
        return tf.reshape(tf.sparse.to_dense(row), [-1, 2]), y


class DatasetIterator(Program):
    """A data set, shuffled, repeated and batched."""

    STEPS = 8

    def build(self):
        x = np.random.default_rng(1).normal(size=(20, 3)).astype(np.float32)
        data = v1.data.Dataset.from_tensor_slices((x, x @ np.float32([[1], [2], [3]])))
        data = data.shuffle(20, seed=5).repeat(3).batch(6)
        iterator = v1.data.make_initializable_iterator(data)
        v1.add_to_collection(v1.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
        self.handle = iterator.string_handle()
        x, y = iterator.get_next()
        weights = v1.get_variable("weights", [3, 1])
        self.loss = tf.reduce_mean(tf.square(tf.matmul(x, weights) - y))
        self.train = v1.train.GradientDescentOptimizer(0.1).minimize(self.loss, global_step=self.step)
