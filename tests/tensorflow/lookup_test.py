# SPDX-License-Identifier: Apache-2.0
"""Lookup tables: what TensorFlow's server answers, ours answers too, down to the words of an error."""
import os
import threading

import numpy as np
import tensorflow as tf

import peer
import side_by_side
from side_by_side import any_shape, outcomes, plain

v1 = tf.compat.v1
v1.disable_v2_behavior()
raw = tf.raw_ops


def strings(*values):
    return tf.constant(list(values), tf.string)


def numbers(*values):
    return tf.constant(list(values), tf.int64)


def static(key=tf.string, value=tf.int64, **names):
    return raw.HashTableV2(key_dtype=key, value_dtype=value, **names)


def mutable(key=tf.string, value=tf.int64, **names):
    return raw.MutableHashTableV2(key_dtype=key, value_dtype=value, **names)


def fill(table, keys, values):
    return raw.InitializeTableV2(table_handle=table, keys=keys, values=values)


def find(table, keys, default=None):
    default = tf.constant(-1, tf.int64) if default is None else default
    return raw.LookupTableFindV2(table_handle=table, keys=keys, default_value=default)


def insert(table, keys, values):
    return raw.LookupTableInsertV2(table_handle=table, keys=keys, values=values)


def load(table, keys, values):
    return raw.LookupTableImportV2(table_handle=table, keys=keys, values=values)


def remove(table, keys):
    return raw.LookupTableRemoveV2(table_handle=table, keys=keys)


def export(table, key=tf.string, value=tf.int64):
    return list(raw.LookupTableExportV2(table_handle=table, Tkeys=key, Tvalues=value))


def size(table):
    return raw.LookupTableSizeV2(table_handle=table)


def read(table, path, **how):
    how = {"key_index": -2, "value_index": -1, "vocab_size": -1, "delimiter": "\t", "offset": 0, **how}
    return raw.InitializeTableFromTextFileV2(table_handle=table, filename=path, **how)


class Lookup(side_by_side.TestCase):
    def test_a_static_table_is_filled_once_and_found_in(self):
        def build():
            t = static()
            return [find(t, strings("a")), size(t), export(t), fill(t, strings("a", "b"), numbers(1, 2)),
                    find(t, strings("a", "z", "b")), size(t), fill(t, strings("a", "b"), numbers(5, 6)),
                    fill(t, strings("a"), numbers(5)), export(t), insert(t, strings("q"), numbers(1)),
                    remove(t, strings("q")), load(t, strings("q"), numbers(1)),
                    load(t, strings("q", "a"), numbers(1, 8)), find(t, strings("a", "q")),
                    find(t, tf.constant([["a"], ["b"]])), find(t, tf.constant("a")),
                    find(t, strings("x", "a", "y"), any_shape([7, 8, 9], tf.int64))]
        self.assertEqual(self.check(build)[4], [1, -1, 2])

    def test_a_key_comes_twice_only_with_the_same_value(self):
        def build():
            t, u, f = static(), static(), static(tf.int64, tf.float32)
            return [fill(t, strings("a", "a"), numbers(1, 2)), size(t), fill(t, strings("a", "b"), numbers(1, 1)),
                    size(t), fill(u, strings("a", "a"), numbers(1, 1)), size(u), fill(u, strings("c"), numbers(1)),
                    fill(u, strings("a", "a"), numbers(1, 1)),
                    fill(f, numbers(7, 7), tf.constant([1.5, 2.25]))]
        self.check(build)

    def test_shapes_and_types_that_do_not_fit_are_reported(self):
        def build():
            t, m = static(), any_shape_handle(mutable(shared_name="m", container="shapes"))
            scalar, key = any_shape("a"), any_shape(["a"])
            number, two = any_shape(1, tf.int64), any_shape([1, 2], tf.int64)
            steps = [fill(t, scalar, number), fill(t, key, number), fill(t, key, two), find(t, key, two),
                     load(t, key, two), fill(t, strings(), numbers()), fill(t, strings("a"), tf.constant([1.0])),
                     load(t, scalar, number), find(t, scalar, number), fill(t, strings(), numbers())]
            for table in t, m:
                steps += [find(table, numbers(1)), find(table, strings("a"), tf.constant(1.0)),
                          insert(table, strings("q"), tf.constant([1.0])), remove(table, numbers(1)),
                          load(table, strings("q"), tf.constant([1.0]))]
            return steps + [insert(m, key, two), load(m, key, two), find(m, key, two), fill(m, key, two)]

        def any_shape_handle(handle):  # Python would refuse the types itself
            return v1.placeholder_with_default(handle, None)
        self.check(build)

    def test_a_mutable_table_changes(self):
        def build():
            t = mutable()
            return [find(t, strings("a")), insert(t, strings("a", "b", "a"), numbers(1, 2, 3)), export(t),
                    remove(t, strings("a", "zz")), export(t), load(t, strings("x", "x"), numbers(9, 10)), export(t),
                    insert(t, tf.constant([["a"], ["b"]]), tf.constant([[7], [8]], tf.int64)), size(t),
                    insert(t, tf.constant("s"), tf.constant(4, tf.int64)), export(t),
                    insert(t, strings(), numbers()), remove(t, any_shape("s")), size(t),
                    find(t, strings("a", "q", "r"), any_shape([5, 6, 7], tf.int64)),
                    load(t, strings(), numbers()), size(t), export(t)]
        self.check(build)

    def test_a_table_of_rows(self):
        def build():
            t = raw.MutableHashTableOfTensorsV2(key_dtype=tf.string, value_dtype=tf.float32, value_shape=[2])
            steps = [insert(t, strings("a"), tf.constant([[1., 2.]])),
                     find(t, strings("a", "b"), tf.constant([0., 9.])),
                     find(t, strings("a", "b"), any_shape([[0., 9.], [3., 4.]])),
                     find(t, tf.constant([["a", "b"]]), tf.constant([0., 9.])), export(t, value=tf.float32),
                     insert(t, strings("a"), any_shape([1., 2.])), find(t, strings("a"), any_shape([5.])),
                     size(t), remove(t, strings("a")), export(t, value=tf.float32)]
            for shape in [], [2, 3]:
                steps.append(raw.MutableHashTableOfTensorsV2(key_dtype=tf.string, value_dtype=tf.float32,
                                                             value_shape=shape).op)
            return steps
        self.check(build)

    def test_every_pair_of_types(self):
        keys = {tf.int32: [3, -4], tf.int64: [3, -(1 << 40)], tf.string: ["a", "b\0c"]}
        values = {tf.float32: [1.5, -2.], tf.float64: [1.5, -2.], tf.int32: [7, -8], tf.int64: [7, -8],
                  tf.string: ["x", ""], tf.bool: [True, False]}

        def use(key, value, make, put):
            table, some, others = make(key, value), keys[key], values[value]
            return [put(table, tf.constant(some, key), tf.constant(others, value)),
                    find(table, tf.constant(some[::-1] + some, key), tf.constant(others[1], value))]

        def build():
            return [step for kind in kinds if kind not in missing for step in use(*kind)]
        kinds = [(key, value, make, put) for key in keys for value in values
                 for make, put in ((static, fill), (mutable, insert))]
        missing = {(tf.int32, tf.int64, static, fill), (tf.int32, tf.int64, mutable, insert),
                   (tf.int32, tf.bool, static, fill), (tf.int32, tf.bool, mutable, insert),
                   (tf.int32, tf.string, mutable, insert), (tf.int64, tf.bool, static, fill),
                   (tf.int64, tf.bool, mutable, insert), (tf.string, tf.string, mutable, insert)}
        self.check(build)
        for kind in missing:
            for target in self.ours, self.theirs:
                answers = outcomes(target, lambda kind=kind: use(*kind)[:1])
                self.assertEqual(answers[0][0], "InvalidArgumentError", kind)

    def test_tables_of_a_text_file(self):
        folder = self.folder()

        def build():
            steps = []

            def of(content, key=tf.string, value=tf.int64, **how):
                path = os.path.join(folder, "%d.txt" % len(steps))
                with open(path, "wb") as out:
                    out.write(content)
                table = static(key, value)
                steps.extend([read(table, path, **how), size(table), export(table, key, value)])
            of(b"a\nb\nc\n")
            of(b"a\nb\nc")
            of(b"a\r\nb\r\n")
            of(b"a\rb\nc\r\r\nd\r")
            of(b"a\n\nb\n")
            of(b"\n")
            of(b"a\nb\nc\n", vocab_size=2)
            of(b"a\nb\nc\n", vocab_size=5)
            of(b"a\nb\nc\n", vocab_size=0)
            of(b"a\nb\nc\n", vocab_size=3)
            of(b"a\nb\na\n")
            of(b"a\nb\n", offset=10)
            of(b"5 1\n6 2\n", key_index=1, value_index=0, delimiter=" ")
            of(b"5 1\n6 2\n", key_index=1, value_index=0, delimiter="ab")
            of(b"5 1\n6 2\n", value=tf.bool, key_index=0, value_index=1, delimiter=" ")
            of(b"x 7\ny 8\n", key_index=0, value_index=1, delimiter=" ")
            of(b"x 7\ny q\n", key_index=0, value_index=1, delimiter=" ")
            of(b"x 7\ny\n", key_index=0, value_index=1, delimiter=" ")
            of(b"x\ty\tz\t7\n", key_index=2, value_index=3)
            of(b"x\t 7 \ny\t+8\nz\t-3\n", key_index=0, value_index=1)
            of(b"x\t0x7\n", key_index=0, value_index=1)
            of(b"x\t\n", key_index=0, value_index=1)
            of(b"x 7\ny 3000000000\n", value=tf.int32, key_index=0, value_index=1, delimiter=" ")
            of(b"x 7\ny 30\n", value=tf.int32, key_index=0, value_index=1, delimiter=" ", offset=5)
            of(b"x 7\ny 30\n", key_index=0, value_index=1, delimiter=" ", offset=5)
            of(b"x\t 7.5 \ny\t0x10\nz\t+3\n", value=tf.float32, key_index=0, value_index=1)
            of(b"x 7.5\ny -1e3x\n", value=tf.float32, key_index=0, value_index=1, delimiter=" ")
            of(b"x 7.5\ny -1e3\n", value=tf.float64, key_index=0, value_index=1, delimiter=" ")
            of(b"5\n6\n", tf.int64, tf.string, key_index=-1, value_index=-2, offset=3)
            of(b"5\n6\n", tf.int64)
            of(b"5\n6\n", tf.int32, tf.string, value_index=-2, offset=3)
            of(b"5\n6\n", key_index=-1, value_index=0)
            of(b"5\n6\n", value=tf.float32, value_index=-2)
            of(b"5\n6\n", value=tf.int32)
            table, changing = static(), mutable(shared_name="m", container="texts")
            steps.extend([read(table, ""), read(table, any_shape(["a"])), read(table, folder),
                          read(table, folder + "/absent"), read(changing, folder + "/0.txt"),
                          read(table, folder + "/0.txt"), read(table, folder + "/3.txt"),
                          read(table, folder + "/absent"), read(table, folder + "/15.txt"), export(table),
                          fill(table, strings("a", "b"), numbers(3, 4)),
                          fill(table, strings("a", "b", "c"), numbers(3, 4, 5))])
            return steps
        self.check(build)

    def test_a_long_file_is_read_whole(self):
        path = os.path.join(self.folder(), "vocabulary")
        lines = ["word %d %s" % (i, "x" * (i % 300)) for i in range(30000)]
        with open(path, "w", encoding="utf-8") as out:
            out.write("\n".join(lines))

        def build():
            table = static()
            return [read(table, path), size(table), find(table, strings(lines[29999], lines[0], "absent", lines[17]))]
        self.assertEqual(self.check(build)[2], [29999, 0, -1, 17])

    def test_an_empty_file_is_no_table(self):
        path = os.path.join(self.folder(), "empty")
        with open(path, "wb"):
            pass
        for target in self.ours, self.theirs:
            answers = outcomes(target, lambda: [read(static(), path)])
            self.assertEqual(answers[0][0], "OutOfRangeError")

    def test_the_first_generation_of_ops(self):
        def build():
            t = raw.HashTable(key_dtype=tf.string, value_dtype=tf.int64)
            m = raw.MutableHashTable(key_dtype=tf.string, value_dtype=tf.int64)
            key, one, default = strings("a"), numbers(4), tf.constant(-1, tf.int64)
            return [raw.LookupTableFind(table_handle=t, keys=key, default_value=default),
                    raw.InitializeTable(table_handle=t, keys=key, values=one),
                    raw.LookupTableFind(table_handle=t, keys=key, default_value=default),
                    raw.LookupTableFind(table_handle=t, keys=one, default_value=default),
                    raw.LookupTableSize(table_handle=t),
                    list(raw.LookupTableExport(table_handle=t, Tkeys=tf.string, Tvalues=tf.int64)),
                    raw.LookupTableInsert(table_handle=m, keys=key, values=one),
                    raw.LookupTableImport(table_handle=m, keys=key, values=one),
                    raw.LookupTableSize(table_handle=m),
                    raw.InitializeTable(table_handle=m, keys=key, values=one)]
        wanted, got = outcomes(self.theirs, build), outcomes(self.ours, build)
        self.assertEqual(got[:-1], wanted[:-1])
        self.assertEqual(got[-1][0], wanted[-1][0])  # the name has a number of the server's

    def test_one_name_is_one_table_of_all_sessions(self):
        def first():
            t = static(shared_name="words")
            return [fill(t, strings("a"), numbers(1))]

        def second():
            t, u = static(shared_name="words"), static(tf.int64, tf.int64, shared_name="words")
            m, own = mutable(shared_name="words"), static()
            named = static(use_node_name_sharing=True)
            return [find(t, strings("a")), u.op, m.op, find(m, strings("a")), insert(m, strings("q"), numbers(1)),
                    size(own), fill(own, strings("b"), numbers(2)), size(named), fill(named, strings("c"), numbers(3))]

        def third():
            return [size(static()), size(static(shared_name="words", container="elsewhere")), size(static())]
        for build in first, second, third:
            self.check(build)

    def test_another_kind_of_resource_is_no_table(self):
        def build():
            variable = raw.VarHandleOp(dtype=tf.float32, shape=[], shared_name="a variable")
            table = static(shared_name="a table")
            return [find(variable, strings("a")), fill(variable, strings("a"), numbers(1)), size(table),
                    size(variable)]
        self.check(build)


def model(folder):
    """An unmodified program: words to ids of a file, ids to an embedding, a loss; and what counts words."""
    path = os.path.join(folder, "vocabulary")
    with open(path, "w", encoding="utf-8") as out:
        out.write("the\nquick\nbrown\nfox\n")
    v1.train.get_or_create_global_step()
    ids = tf.lookup.StaticHashTable(
        tf.lookup.TextFileInitializer(path, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64,
                                      tf.lookup.TextFileIndex.LINE_NUMBER), 0)
    weights = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(["the", "fox"], [0.5, 2.0]), 1.0)
    words_in = v1.placeholder(tf.string, [None], name="words")
    vectors = v1.get_variable("vectors", [4, 3], initializer=v1.ones_initializer())
    rows = v1.nn.embedding_lookup(vectors, ids.lookup(words_in))
    loss = tf.reduce_sum(rows * tf.expand_dims(weights.lookup(words_in), 1))
    train = v1.train.GradientDescentOptimizer(0.1).minimize(loss, v1.train.get_global_step())
    seen = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, 0, name="seen")
    count = seen.insert(words_in, seen.lookup(words_in) + 1)
    return words_in, loss, tf.group(train, count), seen


class Programs(peer.TestCase):
    def train(self, target, folder, steps=3):
        """A chief that trains and saves; a worker that waits for it: both initialise the tables."""
        losses = []
        feed = ["the", "lazy", "fox"]
        with tf.Graph().as_default():
            words_in, loss, train, seen = model(folder)
            exported = list(seen.export())
            with v1.train.MonitoredTrainingSession(target, True, checkpoint_dir=os.path.join(folder, "checkpoints"),
                                                   save_summaries_steps=None, save_checkpoint_steps=1) as session:
                for _ in range(steps):
                    losses.append(session.run([loss, train], {words_in: feed})[0])
                counts = plain(session.run(exported))
        return losses, counts

    def wait(self, target, folder):
        with tf.Graph().as_default():
            words_in, loss, _, seen = model(folder)
            n_seen = seen.size()
            with v1.train.MonitoredTrainingSession(target, False, max_wait_secs=60) as session:
                return session.run([loss, n_seen], {words_in: ["the", "lazy", "fox"]})

    def test_a_chief_and_a_worker_initialise_tables_and_train(self):
        with peer.tensorflow_server() as theirs:
            wanted = self.train(theirs, self.folder())
        folder, ours = self.folder(), self.serve()
        losses, counts = self.train(ours, folder)
        np.testing.assert_allclose(losses, wanted[0], rtol=1e-4)
        self.assertEqual(counts, wanted[1])
        loss, n_seen = self.wait(ours, folder)
        self.assertLess(loss, losses[-1])
        self.assertEqual(n_seen, 3)

    def test_a_table_is_saved_with_the_model_and_restored(self):
        for first, second in ("muster", "tensorflow"), ("tensorflow", "muster"), ("muster", "muster"):
            with self.subTest(first=first, second=second):
                folder = self.folder()

                def start(kind):
                    return self.enterContext(peer.muster_server() if kind == "muster" else peer.tensorflow_server())
                before = self.train(start(first), folder)
                after = self.train(start(second), folder, 1)
                self.assertLess(after[0][0], before[0][-1])
                self.assertEqual(after[1], [(b"fox", 4), (b"lazy", 4), (b"the", 4)])

    def test_muster_prepares_saves_and_restores_tables(self):
        """The command's chief and worker initialise the tables, and keep those that change."""
        folder = self.folder()
        meta, kept = os.path.join(folder, "words.meta"), os.path.join(folder, "kept")
        with tf.Graph().as_default():
            words_in, loss, train, seen = model(folder)
            exported = list(seen.export())
            saver = v1.train.Scaffold().finalize().saver
            v1.train.export_meta_graph(meta, saver_def=saver.saver_def)
            feed = {words_in: ["the", "lazy", "fox"]}

            def prepare(target):
                peer.muster("prepare", "--meta-graph=" + meta, "--master=" + target, "--checkpoint-dir=" + kept)
                peer.muster("wait", "--meta-graph=" + meta, "--master=" + target)
            target = self.serve()
            prepare(target)
            with v1.Session(target) as session:
                session.run(train, feed)
                trained = session.run(loss, feed)
            peer.muster("save", "--meta-graph=" + meta, "--master=" + target, "--checkpoint-dir=" + kept)
            target = self.serve()
            prepare(target)
            with v1.Session(target) as session:
                self.assertEqual(session.run(loss, feed), trained)
                self.assertEqual(plain(session.run(exported)), [(b"fox", 1), (b"lazy", 1), (b"the", 1)])

    def test_a_restore_puts_the_saved_keys_in_the_place_of_others(self):
        """SAV.32"""
        target, prefix = self.serve(), os.path.join(self.folder(), "model")
        with tf.Graph().as_default():
            table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, 0, name="t")
            put, others = table.insert(["a", "b"], tf.constant([1, 2], tf.int64)), table.insert(
                ["b", "c"], tf.constant([20, 30], tf.int64))
            exported, saver = list(table.export()), v1.train.Saver()
            with v1.Session(target) as session:
                session.run(put)
                saver.save(session, prefix)
                session.run(others)
                self.assertEqual(plain(session.run(exported)), [(b"a", 1), (b"b", 20), (b"c", 30)])
                saver.restore(session, prefix)
                self.assertEqual(plain(session.run(exported)), [(b"a", 1), (b"b", 2)])
        names = dict(tf.train.list_variables(prefix))
        self.assertEqual(sorted(names), ["t-keys", "t-values"])

    def test_many_sessions_change_one_table(self):
        target, n_threads, n_steps, failures = self.serve(), 4, 50, []
        with tf.Graph().as_default():
            table = mutable(tf.int64, tf.int64, shared_name="crowd")
            first = v1.placeholder(tf.int64, [])
            keys = tf.range(first, first + 100)
            change = [insert(table, keys, keys * 2), remove(table, keys[:50])]
            look, count = find(table, keys), size(table)

            def work(i):
                try:
                    with v1.Session(target, graph=look.graph) as session:
                        for _ in range(n_steps):
                            session.run(change[0], {first: i * 100})
                            found = session.run(look, {first: i * 100})
                            if found.tolist() != [2 * k for k in range(i * 100, i * 100 + 100)]:
                                failures.append(found)
                            session.run(change[1], {first: i * 100})
                except Exception as error:  # pylint: disable=broad-except
                    failures.append(error)
            threads = [threading.Thread(target=work, args=(i,)) for i in range(n_threads)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(failures, [])
            with v1.Session(target) as session:
                self.assertEqual(session.run(count), n_threads * 50)


if __name__ == "__main__":
    peer.main()
