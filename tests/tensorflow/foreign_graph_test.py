# SPDX-License-Identifier: Apache-2.0
"""Graphs as their authors exported them, in every form that TensorFlow writes: each is loaded, fed and trained by the
command as it stands, beside TensorFlow."""
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading

import numpy as np
import tensorflow as tf

import peer

v1 = tf.compat.v1
v1.disable_v2_behavior()
v1.logging.set_verbosity(v1.logging.ERROR)


def run(place, *arguments, code=0):
    return peer.muster("run", "--master=local", "--meta-graph=" + place, *arguments, code=code)


class Forms(peer.TestCase):
    """What --meta-graph takes."""

    def setUp(self):
        self.place = self.folder()
        self.graph = self.enterContext(tf.Graph().as_default())

    def path(self, name):
        return os.path.join(self.place, name)

    def test_text(self):
        w = v1.get_variable("w", initializer=[1.0, 2.0])
        tf.identity(w * 2, name="y")
        v1.train.Saver()
        v1.train.export_meta_graph(self.path("text.meta"), as_text=True)
        with open(self.path("text.meta"), "a") as file:
            file.write("of_a_later_version { x: [1, 2] }\n")
        self.assertEqual("y:0 float[2] = [2, 4]\n", run(self.path("text.meta"), "--fetch=y:0"))

    def test_a_saved_model(self):
        w = v1.get_variable("w", initializer=[1.0, 2.0])
        tf.identity(w * 2, name="y")
        builder = v1.saved_model.Builder(self.path("saved"))
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            builder.add_meta_graph_and_variables(session, ["train"])
        with tf.Graph().as_default():
            tf.identity(v1.get_variable("w", initializer=[1.0, 2.0]) * 3, name="y")
            builder.add_meta_graph(["serve", "gpu"])
        for as_text in False, True:
            builder.save(as_text=as_text)
            self.assertEqual("y:0 float[2] = [2, 4]\n", run(self.path("saved:train"), "--fetch=y:0"))
            self.assertEqual("y:0 float[2] = [3, 6]\n", run(self.path("saved:gpu,serve"), "--fetch=y:0"))
            said = run(self.path("saved"), "--fetch=y:0", code=3)
            self.assertIn("2 meta graphs", said)
            self.assertIn("'train', 'gpu,serve'", said)
            os.remove(self.path("saved/saved_model.pb" + ("txt" if as_text else "")))

    def test_a_placeholder_of_early_versions(self):
        """A shape {} is unknown up to a producer, of which TensorFlow is the judge."""
        x = v1.placeholder(tf.float32, [], name="x")
        tf.add(x, x, name="y")
        definition = v1.MetaGraphDef(graph_def=self.graph.as_graph_def())  # without shapes inferred by this version
        for producer in 0, 20, 21, 22, 23, 100:
            definition.graph_def.versions.producer = producer
            with tf.Graph().as_default() as graph:
                tf.import_graph_def(definition.graph_def, name="")
                takes_rows = graph.get_tensor_by_name("x:0").shape.ndims is None
            definition.meta_info_def.tensorflow_version = "0.12.head"  # TensorFlow's own import fails on it by now
            with open(self.path("old.meta"), "wb") as file:
                file.write(definition.SerializeToString())
            with self.subTest(producer=producer):
                run(self.path("old.meta"), "--feed=x:0=2", "--fetch=y:0")
                said = run(self.path("old.meta"), "--feed=x:0=[1, 2]", "--fetch=y:0", code=0 if takes_rows else 3)
                self.assertIn("[2, 4]" if takes_rows else "x:0", said)


class Feeds(peer.TestCase):
    """What `muster train` feeds beside the rows of its data: rates, flags, words."""

    def setUp(self):
        self.graph = self.enterContext(tf.Graph().as_default())
        self.place = self.folder()

    def export(self, step):
        """w is the sum of a row, times keep in training and as it is otherwise, counted in words; TensorFlow's own too."""
        x = v1.placeholder(tf.float32, [None, 2], name="x")
        keep = v1.placeholder(tf.float32, name="keep_prob")
        flag = v1.placeholder_with_default(False, [], name="keras_learning_phase")
        word = v1.placeholder(tf.string, [], name="word")
        n = v1.placeholder(tf.int64, [], name="n")
        w = v1.get_variable("w", initializer=0.0)
        counted = v1.get_variable("counted", initializer=tf.zeros([], tf.int64))
        add = w.assign_add(tf.reduce_sum(x) * tf.where(flag, keep, 1.0))
        count = counted.assign_add(n + tf.cast(tf.equal(word, "a word"), tf.int64))
        v1.add_to_collection("train_op", tf.group(add, count, step.assign_add(1), name="train"))
        v1.train.Saver()
        v1.train.export_meta_graph(os.path.join(self.place, "feeds.meta"))

    def test_a_value_without_rows_is_the_same_in_every_step(self):
        self.export(v1.train.get_or_create_global_step())
        model = ["--master=local", "--meta-graph=" + os.path.join(self.place, "feeds.meta")]
        said = peer.muster("train", *model, "--steps=4", code=3)
        for option in ("--feed=x:0=@FILE.npy (float[?,2])", "--feed=keep_prob:0=VALUE (float, any shape)",
                       "--feed=word:0=TEXT (string)", "--feed=n:0=NUMBER (int64)"):
            self.assertIn(option, said)
        self.assertNotIn("keras_learning_phase", said)
        np.save(os.path.join(self.place, "x.npy"), np.float32([[1, 2], [1, 2]]))
        values = ["--feed=x:0=@" + os.path.join(self.place, "x.npy"), "--feed=keep_prob:0=0.5", "--feed=word:0=a word", "--feed=n:0=3"]
        said = peer.muster("train", *model, *values[:3], "--feed=n:0=[1, 2]", "--steps=4", code=3)
        self.assertIn("'n:0' of the graph takes a single value, but the array has 2 rows", said)
        for flag, sum_of in ("true", 6), ("false", 12):
            run_dir = os.path.join(self.place, flag)
            peer.muster("train", *model, *values, "--feed=keras_learning_phase:0=" + flag, "--steps=4", "--batch-size=1",
                        "--checkpoint-dir=" + run_dir)
            saved = v1.train.load_checkpoint(run_dir)
            self.assertEqual((sum_of, 16), (saved.get_tensor("w"), saved.get_tensor("counted")))
        run_dir = os.path.join(self.place, "list")  # whole in each step, whatever the size of a batch
        peer.muster("train", *model, "--feed=x:0=[[1, 2], [1, 2], [1, 2]]", *values[1:], "--steps=4",
                    "--checkpoint-dir=" + run_dir)
        self.assertEqual(36, v1.train.load_checkpoint(run_dir).get_tensor("w"))
        said = peer.muster("train", *model, "--feed=x:0=[[1, 2, 3]]", *values[1:], "--steps=4", code=3)
        self.assertIn("its shape is [1,3], but 'x:0' of the graph needs [?,2]", said)
        run_dir = os.path.join(self.place, "unfit")  # the graph doesn't tell; what the first step refuses doesn't resume
        said = peer.muster("train", *model, values[0], "--feed=keep_prob:0=[1, 2]", *values[2:], "--batch-size=1", "--steps=4",
                           "--feed=keras_learning_phase:0=true", "--checkpoint-dir=" + run_dir, code=3)
        self.assertNotIn("the same command resumes", said)

    def test_two_hundred_placeholders(self):
        step = v1.train.get_or_create_global_step()
        rows = [v1.placeholder(tf.float32, [None], name="x%d" % i) for i in range(200)]
        w = v1.get_variable("w", initializer=0.0)
        v1.add_to_collection("train_op", tf.group(w.assign_add(tf.add_n([tf.reduce_sum(x) for x in rows])), step.assign_add(1)))
        v1.train.Saver()
        v1.train.export_meta_graph(os.path.join(self.place, "many.meta"))
        np.save(os.path.join(self.place, "x.npy"), np.float32([1, 1]))
        peer.muster("train", "--master=local", "--meta-graph=" + os.path.join(self.place, "many.meta"), "--steps=3",
                    *("--feed=%s=@%s" % (x.name, os.path.join(self.place, "x.npy")) for x in rows), "--batch-size=1",
                    "--checkpoint-dir=" + os.path.join(self.place, "many"))
        self.assertEqual(600, v1.train.load_checkpoint(os.path.join(self.place, "many")).get_tensor("w"))

    def test_a_queue_runner_that_needs_a_feed_is_refused(self):
        step = v1.train.get_or_create_global_step()
        rows = v1.placeholder(tf.float32, [], name="rows")
        queue = v1.FIFOQueue(8, [tf.float32], [[]], name="queue")
        v1.train.add_queue_runner(v1.train.QueueRunner(queue, [queue.enqueue(rows, name="fill")]))
        w = v1.get_variable("w", initializer=0.0)
        v1.add_to_collection("train_op", tf.group(w.assign_add(queue.dequeue()), step.assign_add(1), name="train"))
        path = os.path.join(self.place, "queue.meta")
        v1.train.export_meta_graph(path)
        for feeds in [], ["--feed=rows:0=1"]:
            said = peer.muster("train", "--master=local", "--meta-graph=" + path, *feeds, "--steps=4", code=3)
            self.assertIn("the queue runner's op 'fill' needs the placeholder 'rows'", said)
        facts = peer.muster_json("inspect", path)
        self.assertIn("'fill' needs the placeholder 'rows'", facts["train op"][0]["text"])
        self.assertNotIn("train", [fact["name"] for fact in facts["command"]])

    def test_a_sync_replicas_optimizer_of_early_versions_is_refused(self):
        """Up to 0.11 its gradients wait in queues, and the program's own loop fills the one of tokens."""
        step, w = v1.train.get_or_create_global_step(), v1.get_variable("w", initializer=0.0)
        tokens = v1.FIFOQueue(-1, step.dtype.base_dtype, [[]], shared_name="sync_token_q")
        v1.add_to_collection("train_op", tf.group(w.assign_add(1.0), step.assign(tokens.dequeue()), name="train"))
        path = os.path.join(self.place, "early.meta")
        v1.train.export_meta_graph(path)
        said = peer.muster("train", "--master=local", "--meta-graph=" + path, "--steps=4", code=3)
        self.assertIn("belongs to a SyncReplicasOptimizer of TensorFlow before 0.12", said)

    def test_an_iterator_that_nothing_begins_is_refused(self):
        """Several ops begin it, or one that needs a feed: the program chose, or fed."""
        for kind in "several", "fed":
            with self.subTest(kind), tf.Graph().as_default():
                ones = tf.data.Dataset.from_tensors(tf.ones([4]))
                if kind == "several":
                    iterator = v1.data.Iterator.from_structure(v1.data.get_output_types(ones), v1.data.get_output_shapes(ones))
                    iterator.make_initializer(ones)
                    remedy = iterator.make_initializer(ones.repeat())
                    why = "has several initialisers"
                else:
                    rows = v1.placeholder(tf.float32, [4], name="rows")
                    iterator = v1.data.make_initializable_iterator(tf.data.Dataset.from_tensors(rows))
                    why = "needs the placeholder 'rows'"
                w, step = v1.get_variable("w", initializer=0.0), v1.train.get_or_create_global_step()
                add = w.assign_add(tf.reduce_sum(iterator.get_next()))
                v1.add_to_collection("train_op", tf.group(add, step.assign_add(1), name="train"))
                path = os.path.join(self.place, kind + ".meta")
                v1.train.export_meta_graph(path)
                said = peer.muster("train", "--master=tensorflow:" + sys.prefix, "--meta-graph=" + path, "--steps=4", code=3)
                self.assertIn(why, said)
                self.assertIn(why, peer.muster("inspect", path))
                if kind == "several":
                    for collection in "table_initializer", "local_init_op":  # with an init op of the graph's own, too
                        v1.add_to_collection(collection, remedy if collection == "table_initializer" else tf.no_op())
                        v1.train.export_meta_graph(path)
                        place = os.path.join(self.place, collection)
                        peer.muster("train", "--master=tensorflow:" + sys.prefix, "--meta-graph=" + path, "--steps=4",
                                    "--checkpoint-dir=" + place)
                        self.assertEqual(16, v1.train.load_checkpoint(place).get_tensor("w"))

    def test_an_iterator_whose_state_is_saved_is_refused(self):
        """TensorFlow's monitored sessions, too, restore before they initialise it."""
        iterator = v1.data.make_initializable_iterator(tf.data.Dataset.range(10))
        w, step = v1.get_variable("w", initializer=np.int64(0)), v1.train.create_global_step()
        v1.add_to_collection("train_op", tf.group(w.assign_add(iterator.get_next()), step.assign_add(1), name="train"))
        v1.add_to_collection("saveable_objects", tf.data.experimental.make_saveable_from_iterator(iterator))
        path = os.path.join(self.place, "saved.meta")
        v1.train.export_meta_graph(path, saver_def=v1.train.Saver().as_saver_def())
        why = "saves the state of the iterator 'IteratorV2'"
        self.assertIn(why, peer.muster_json("inspect", path)["train op"][0]["text"])
        self.assertIn(why, peer.muster("train", "--master=tensorflow:" + sys.prefix, "--meta-graph=" + path, "--steps=4", code=3))

    def test_values_alone_have_no_epochs(self):
        rate = v1.placeholder(tf.float32, [], name="rate")
        w = v1.get_variable("w", initializer=0.0)
        step = v1.train.get_or_create_global_step()
        v1.add_to_collection("train_op", tf.group(w.assign_add(rate), step.assign_add(1), name="train"))
        v1.train.Saver()
        v1.train.export_meta_graph(os.path.join(self.place, "rate.meta"))
        model = ["--master=local", "--meta-graph=" + os.path.join(self.place, "rate.meta"), "--feed=rate:0=0.5"]
        self.assertIn("epochs need batches", peer.muster("train", *model, "--epochs=1", code=3))
        self.assertIn("need --feed", peer.muster("train", *model, "--steps=1", "--batch-size=2", code=3))
        peer.muster("train", *model, "--steps=3", "--checkpoint-dir=" + self.place)
        self.assertEqual(1.5, v1.train.load_checkpoint(self.place).get_tensor("w"))


class Savers(peer.TestCase):
    """What the graph's own saver saves, and under which names."""

    def setUp(self):
        self.place = self.folder()
        self.words = os.path.join(self.place, "words.npy")
        np.save(self.words, np.array([b"a", b"b"]))

    def count(self, **options):
        """A graph that counts its words in a table, and its path."""
        words = v1.placeholder(tf.string, [None], name="words")
        w, step = v1.get_variable("w", initializer=1.0), v1.train.create_global_step()
        table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, 0, name="counts")
        with tf.control_dependencies([table.insert(words, table.lookup(words) + 1)]):
            v1.train.GradientDescentOptimizer(0.1).minimize(tf.square(w), step)
        path = os.path.join(self.place, "count.meta")
        saver = v1.train.Saver({"old/w": w, "global_step": step, "seen": table}, **options) if options else None
        v1.train.export_meta_graph(path, saver_def=saver.as_saver_def() if saver else None)
        return path

    def test_a_table_and_the_names_of_a_map_are_kept_beside_the_positions(self):
        for sharded in False, True:
            with self.subTest(sharded=sharded), tf.Graph().as_default():
                path, run = self.count(sharded=sharded), os.path.join(self.place, "run%d" % sharded)
            for steps in 3, 6:
                peer.muster("train", "--master=local", "--meta-graph=" + path, "--feed=words:0=@" + self.words,
                            "--batch-size=2", "--steps=%d" % steps, "--checkpoint-dir=" + run)
            newest = v1.train.latest_checkpoint(run)
            self.assertLess({"old/w", "global_step", "seen-keys", "seen-values", "muster/done"},
                            set(v1.train.load_checkpoint(newest).get_variable_to_shape_map()))
            for meta in path, newest + ".meta":
                with self.subTest(sharded=sharded, meta=meta), tf.Graph().as_default() as graph, v1.Session() as session:
                    v1.train.import_meta_graph(meta).restore(session, newest)
                    export = next(op for op in graph.get_operations() if op.type == "LookupTableExportV2")
                    keys, values = session.run(export.outputs)
                    self.assertEqual({b"a": 6, b"b": 6}, dict(zip(keys, values)))

    def test_a_checkpoint_without_the_table_is_restored_where_that_is_allowed(self):
        with tf.Graph().as_default():
            path, run = self.count(sharded=False), os.path.join(self.place, "run")
        train = ["train", "--master=local", "--meta-graph=" + path, "--feed=words:0=@" + self.words, "--batch-size=2"]
        peer.muster(*train, "--steps=3", "--checkpoint-dir=" + run)
        reader = v1.train.load_checkpoint(run)
        names = [name for name in reader.get_variable_to_shape_map() if not name.startswith("seen-")]
        old = self.folder()
        prefix = os.path.join(old, "model.ckpt-3")
        with tf.Graph().as_default(), v1.Session() as session:
            session.run(tf.raw_ops.SaveV2(prefix=prefix, tensor_names=names, shape_and_slices=[""] * len(names),
                                          tensors=[reader.get_tensor(name) for name in names]))
            v1.train.update_checkpoint_state(old, prefix)
        self.assertIn("seen-keys", peer.muster(*train, "--steps=6", "--checkpoint-dir=" + old, code=3))
        peer.muster(*train, "--steps=6", "--checkpoint-dir=" + old, "--allow-missing")
        later = v1.train.load_checkpoint(old)
        self.assertEqual([6, [3, 3]], [later.get_tensor("global_step"), later.get_tensor("seen-values").tolist()])

    def test_a_table_that_no_saver_saves_is_named(self):
        with tf.Graph().as_default():
            path = self.count()
        said = peer.muster_json("inspect", path)["completed"]
        self.assertIn("doesn't save the table 'counts'", "".join(fact["text"] for fact in said))


class Branches(peer.TestCase):
    """Optimizers in branches of a conditional, as of a program that skips a step whose gradients aren't finite."""

    def setUp(self):
        self.place = self.folder()
        rows = np.ones([8, 1], np.float32)
        rows[2] = np.nan
        np.save(os.path.join(self.place, "x.npy"), rows)

    def guard(self, kind, use_resource):
        """A graph, its path, and the op that its program runs."""
        x = v1.placeholder(tf.float32, [None, 1], name="x")
        w = v1.get_variable("w", [1, 1], initializer=v1.ones_initializer(), use_resource=use_resource)
        step = v1.train.create_global_step()
        optimizers = v1.train.GradientDescentOptimizer(0.5), v1.train.MomentumOptimizer(0.25, 0.5)
        gradients = optimizers[0].compute_gradients(tf.reduce_mean(tf.matmul(x, w), name="loss"), [w])
        if kind == "no collection":
            collected = v1.get_collection_ref("train_op")
        apply = [lambda of=of: of.apply_gradients(gradients, step) for of in optimizers]
        is_finite = tf.reduce_all(tf.math.is_finite(gradients[0][0]))
        either = lambda: v1.cond(step < 3, *apply, name="either")
        train = v1.cond(is_finite, apply[0] if kind == "one" else either, tf.no_op, name="guard")
        if kind == "no collection":
            del collected[:]
        path = os.path.join(self.place, kind.replace(" ", "_") + ".meta")
        v1.train.export_meta_graph(path)
        return path, train

    def test_a_step_runs_the_conditional(self):
        for kind in "one", "two", "no collection":
            for use_resource in False, True:
                with self.subTest(kind, use_resource=use_resource), tf.Graph().as_default(), v1.Session() as session:
                    path, train = self.guard(kind, use_resource)
                    session.run(v1.global_variables_initializer())
                    for row in np.load(os.path.join(self.place, "x.npy")):
                        session.run(train, {"x:0": [row]})
                    self.assertEqual(["guard/Merge"], [fact["name"] for fact in peer.muster_json("inspect", path)["train op"]])
                    run = tempfile.mkdtemp(dir=self.place)
                    peer.muster("train", "--meta-graph=" + path, "--master=local", "--feed=x:0=@" + os.path.join(self.place, "x.npy"),
                                "--batch-size=1", "--epochs=1", "--checkpoint-dir=" + run,
                                *["--train-op=guard/Merge"] * (kind == "no collection"))
                    saved = v1.train.load_checkpoint(run)
                    self.assertEqual(7, saved.get_tensor("global_step"))
                    for variable in v1.global_variables():
                        np.testing.assert_array_equal(session.run(variable), saved.get_tensor(variable.op.name))


class Functions(peer.TestCase):
    """Conditionals and data whose bodies are functions of the graph's library."""

    def setUp(self):
        self.place = self.folder()
        np.save(os.path.join(self.place, "x.npy"), np.ones([8, 1], np.float32))
        for begin, end in ((v1.enable_control_flow_v2, v1.disable_control_flow_v2),
                           (v1.enable_resource_variables, v1.disable_resource_variables)):
            begin()
            self.addCleanup(end)

    def write(self, kind):
        """A graph, its path, and the op that its program runs."""
        x = v1.placeholder(tf.float32, [None, 1], name="x")
        w, step = v1.get_variable("w", [1, 1], initializer=v1.ones_initializer()), v1.train.create_global_step()
        loss = tf.reduce_mean(tf.matmul(x, w), name="loss")
        early = tf.function(lambda: tf.cond(step < 2, lambda: 0.5, lambda: 0.25))
        rate = tf.cond(step < 4, early, lambda: tf.cast(w[0, 0] * 0.0, tf.float32) + 0.125) if kind == "reads" else 0.5
        optimizer = v1.train.GradientDescentOptimizer(rate)
        gradients = optimizer.compute_gradients(loss, [w])
        if kind == "reads":
            train = optimizer.apply_gradients(gradients, name="train")
        else:
            train = tf.cond(tf.reduce_all(tf.math.is_finite(gradients[0][0])),
                            lambda: optimizer.apply_gradients(gradients, step), tf.no_op, name="guard")
        path = os.path.join(self.place, kind + ".meta")
        v1.train.export_meta_graph(path)
        return path, train

    def test_a_step_counts_once(self):
        """By an op of its own where a function only reads the step; by a function, where that writes it."""
        for kind in "reads", "writes":
            with self.subTest(kind), tf.Graph().as_default(), v1.Session() as session:
                path, train = self.write(kind)
                session.run(v1.global_variables_initializer())
                for i in range(6):
                    session.run(train, {"x:0": [[1]]})
                    if kind == "reads":
                        session.run(v1.train.get_global_step().assign_add(1))
                run = os.path.join(self.place, kind)
                op = peer.muster_json("inspect", path)["train op"][0]["name"]
                self.assertEqual("muster/train" if kind == "reads" else "guard/Identity", op)
                said = peer.muster("train", "--meta-graph=" + path, "--master=tensorflow:" + sys.prefix, "--steps=6",
                                   "--feed=x:0=@" + os.path.join(self.place, "x.npy"), "--batch-size=1", "--timeout=30",
                                   "--checkpoint-dir=" + run, *["--train-op=" + op] * (kind == "writes"))
                self.assertNotIn("Does the train op advance it?", said)
                saved = v1.train.load_checkpoint(run)
                for variable in v1.global_variables():
                    np.testing.assert_array_equal(session.run(variable), saved.get_tensor(variable.op.name))

    def test_a_collected_op_of_a_function_is_named(self):
        with tf.Graph().as_default():
            path, _ = self.write("writes")
        said = peer.muster("train", "--meta-graph=" + path, "--master=local", "--steps=1", code=3)
        self.assertIn("the collection 'train_op' has 'GradientDescent', which isn't in the graph", said)


class Inspect(peer.TestCase):
    """What `muster inspect` says of graphs that others exported, and that its commands work as printed."""

    def setUp(self):
        self.graph = self.enterContext(tf.Graph().as_default())
        self.place = self.folder()

    def path(self, name):
        return os.path.join(self.place, name)

    def commands(self, meta):
        return {fact["name"]: shlex.split(fact["text"])[1:] for fact in peer.muster_json("inspect", meta)["command"]}

    def follow(self, words, code=0):
        """A printed command, in the folder that has the data."""
        done = subprocess.run([peer.MUSTER, *words], cwd=self.place, text=True, capture_output=True, stdin=subprocess.DEVNULL,
                              timeout=peer.COMMAND_SECONDS)
        self.assertEqual(code, done.returncode, done.stderr)
        return done.stdout + done.stderr

    def model(self, keep_shape):
        x = v1.placeholder(tf.float32, [None, 2], name="x")
        y = v1.placeholder(tf.float32, [None, 1], name="in/y")
        keep = v1.placeholder(tf.float32, keep_shape, name="keep_prob")
        v1.placeholder(tf.float32, [3], name="unused")
        w = v1.get_variable("w", [2, 1], initializer=v1.zeros_initializer())
        loss = tf.reduce_mean(tf.square(tf.matmul(x, w) * keep - y), name="loss")
        step = v1.train.get_or_create_global_step()
        v1.train.GradientDescentOptimizer(0.01).minimize(loss, global_step=step, name="train")
        v1.get_variable("average", [], initializer=v1.zeros_initializer(), use_resource=False).assign_add(1.0, name="ema")
        tf.lookup.StaticVocabularyTable(tf.lookup.KeyValueTensorInitializer(["a"], tf.constant([1], tf.int64)), 1)
        v1.train.export_meta_graph(self.path("a model.meta"), saver_def=v1.train.Saver().as_saver_def())
        np.save(self.path("x.npy"), np.ones((64, 2), np.float32))
        np.save(self.path("y.npy"), np.ones((64, 1), np.float32))
        return self.path("a model.meta")

    def test_its_commands_work_as_printed(self):
        for shape in [], None:
            with tf.Graph().as_default():
                meta = self.model(shape)
                commands = self.commands(meta)
                self.follow(commands["train"])
                self.assertEqual(2, v1.train.load_checkpoint(self.path("run")).get_tensor("global_step"))
                with peer.muster_server() as target:
                    there = [word.replace("grpc://localhost:2222", target) for word in commands["prepare"]]
                    self.assertEqual(["serve", "--listen=localhost:2222"], commands["serve"])
                    self.follow(there)
                    said = self.follow([word.replace("grpc://localhost:2222", target) for word in commands["evaluate"]])
                    self.assertIn("loss:0 float[] = ", said)
                shutil.rmtree(self.path("run"))

    def test_a_graph_that_a_training_wrote_is_trained_again(self):
        """It has placeholders of muster's own, for positions."""
        self.follow(self.commands(self.model([]))["train"])
        os.rename(self.path("run/model.ckpt-2.meta"), self.path("again.meta"))
        shutil.rmtree(self.path("run"))
        self.assertEqual({"x:0", "in/y:0", "keep_prob:0", "unused:0"},
                         {fact["name"] for fact in peer.muster_json("inspect", self.path("again.meta"))["placeholder"]})
        command = self.commands(self.path("again.meta"))["train"]
        self.follow(command)
        self.assertEqual(2, v1.train.load_checkpoint(self.path("run")).get_tensor("global_step"))
        said = peer.muster(*[word.replace("@", "@" + self.place + "/") for word in command], "--no-positions", code=3)
        self.assertIn("the graph has positions", said)

    def incomplete(self, kind):
        """A graph without a saver; without a step; with two train ops that are one step, or that can't be."""
        x = v1.placeholder(tf.float32, [None, 2], name="x")
        w = v1.get_variable("w", [2], initializer=v1.zeros_initializer())
        b = v1.get_variable("b", [], initializer=v1.zeros_initializer())
        loss = tf.reduce_mean(tf.square(tf.reduce_sum(x * w, 1) + b - 1), name="loss")
        step = None if kind == "no step" else v1.train.create_global_step()
        first = [w] if kind == "two" else None
        v1.train.GradientDescentOptimizer(0.01).minimize(loss, var_list=first, global_step=step, name="one")
        if kind in ("two", "conflict"):
            v1.train.GradientDescentOptimizer(0.01).minimize(-loss, var_list=[b], name="other",
                                                             global_step=step if kind == "conflict" else None)
        meta = self.path(kind + ".meta")
        v1.train.export_meta_graph(meta)
        np.save(self.path("x.npy"), np.ones((32, 2), np.float32))
        return meta

    def test_it_says_what_is_completed_and_its_commands_work(self):
        completed = {"no saver": ["added a saver"], "no step": ["added the global step", "a step advances", "added a saver"],
                     "two": ["a step runs 2 train ops: 'one', 'other'", "added a saver"],
                     "conflict": ["the train ops 'one' and 'other' both write", "added a saver"]}
        ops = {"no saver": {"one": ""}, "no step": {"muster/train": "runs 'one'"},
               "two": {"muster/train": "runs 'one', 'other'"},
               "conflict": {"one": "", "other": "not run; instead of 'one' with --train-op=other"}}
        for kind in completed:
            with self.subTest(kind), tf.Graph().as_default(), peer.muster_server() as target:
                meta = self.incomplete(kind)
                facts = peer.muster_json("inspect", meta)
                self.assertEqual(len(completed[kind]), len(facts["completed"]), facts["completed"])
                for begin, fact in zip(completed[kind], facts["completed"]):
                    self.assertTrue(fact["text"].startswith(begin), fact)
                self.assertEqual(ops[kind], {fact["name"]: fact["text"] for fact in facts["train op"]})
                self.assertEqual(["x:0"], [fact["name"] for fact in facts["placeholder"]])  # not the saver's
                commands = self.commands(meta)
                self.follow(commands["train"])
                self.assertTrue(v1.train.latest_checkpoint(self.path("run")))
                for name in "prepare", "evaluate":
                    self.follow([word.replace("grpc://localhost:2222", target) for word in commands[name]])
                if kind == "conflict":
                    other = peer.muster_json("inspect", meta, "--train-op=other")
                    self.assertEqual(["other"], [fact["name"] for fact in other["train op"]])
                    self.assertIn("--train-op=other", other["command"][0]["text"])
                shutil.rmtree(self.path("run"))

    def test_a_graph_that_only_computes_has_no_command_to_train(self):
        v1.placeholder(tf.float32, [None], name="x")
        tf.Variable(1.0, name="w")
        v1.train.export_meta_graph(self.path("computes.meta"))
        facts = peer.muster_json("inspect", self.path("computes.meta"))
        self.assertEqual([{"name": "x:0", "text": "float[?]"}], facts["placeholder"])
        self.assertIn("--train-op=NAME", facts["train op"][0]["text"])
        self.assertEqual({"serve", "prepare"}, {fact["name"] for fact in facts["command"]})

    def test_what_it_says(self):
        meta = self.model([])
        facts = {topic: {fact["name"]: fact["text"] for fact in given} for topic, given in
                 peer.muster_json("inspect", meta).items()}
        self.assertEqual({"x:0": "float[?,2], needed to train", "in/y:0": "float[?,1], needed to train",
                          "keep_prob:0": "float, needed to train", "unused:0": "float[3], not needed to train"},
                         facts["placeholder"])
        self.assertEqual(["train"], list(facts["train op"]))
        self.assertEqual(["ema"], list(facts["other writer"]))  # not the initialisers and what restores
        self.assertEqual({"loss:0": "the train op's"}, facts["loss"])
        self.assertEqual(["global_step"], list(facts["global step"]))
        self.assertEqual(["local"], list(facts["master"]))
        self.assertIn("V2 format", "".join(facts["saver"].values()))
        self.assertIn("table", facts)
        text = peer.muster("inspect", meta)
        self.assertIn("\nTo train it:\n  muster train '--meta-graph=", text)
        self.assertIn("inspect needs one FILE", peer.muster("inspect", code=3))
        self.assertIn("Git LFS", self.refused("version https://git-lfs.github.com/spec/v1\n"))

    def refused(self, contents):
        with open(self.path("other"), "w") as file:
            file.write(contents)
        return peer.muster("inspect", self.path("other"), code=3)

    def assert_nothing_is_saved(self):
        self.assertEqual([], [name for name in os.listdir(self.path("run")) if not name.startswith("events.")])

    def test_inspect_counts_what_fills_the_queues(self):
        _, record = v1.TFRecordReader().read(v1.train.string_input_producer(["records"]))
        batch = v1.train.batch([record], 2)
        x = v1.get_variable("x", initializer=1.0)
        step = v1.train.get_or_create_global_step()
        read = tf.cast(tf.size(batch), tf.float32)
        v1.add_to_collection("train_op", tf.group(x.assign_add(read), step.assign_add(1), name="train"))
        v1.train.export_meta_graph(self.path("records.meta"))
        said = peer.muster("inspect", self.path("records.meta"))
        self.assertIn("TFRecordReaderV2 in 1 node", said)
        self.assertIn("muster train --meta-graph=" + self.path("records.meta") + " --master=tensorflow", said)

    def test_inspect_proposes_a_train_op_that_no_collection_has(self):
        """As BERT's: an optimizer of its own, whose op the program kept to itself."""
        x, y = v1.get_variable("x", initializer=1.0), v1.get_variable("y", initializer=1.0)
        step = v1.train.get_or_create_global_step()
        tf.group(x.assign(x * 0.5), y.assign(y * 0.5), step.assign_add(1), name="anything")
        tf.group(x.assign_add(1.0), name="a_part")
        v1.train.export_meta_graph(self.path("kept.meta"))
        model = "--meta-graph=" + self.path("kept.meta")
        self.assertIn("which no collection has", peer.muster_json("inspect", self.path("kept.meta"))["train op"][0]["text"])
        self.assertIn("--train-op=anything", self.commands(self.path("kept.meta"))["train"])
        said = peer.muster("train", model, "--master=local", "--train-op=anything", "--steps=3")
        self.assertIn("to step 3", said)
        os.mkfifo(self.path("pipe.meta.gz"))  # as `muster inspect <(gunzip -c kept.meta.gz)`: it is read once
        with open(self.path("kept.meta"), "rb") as file:
            writer = threading.Thread(target=pathlib.Path(self.path("pipe.meta.gz")).write_bytes, args=[file.read()], daemon=True)
        writer.start()
        self.assertIn("--train-op=anything", self.commands(self.path("pipe.meta.gz"))["train"])
        writer.join()

    def test_a_proposal_that_cannot_be_a_step_is_none(self):
        x = v1.get_variable("x", initializer=1.0)
        tf.group(x.assign_sub(0.5), name="anything")
        tf.constant(1, name="muster/train")
        v1.train.export_meta_graph(self.path("taken.meta"))
        self.assertIn("none collected", peer.muster_json("inspect", self.path("taken.meta"))["train op"][0]["text"])
        self.assertNotIn("--train-op=anything", self.commands(self.path("taken.meta"))["prepare"])

    def test_inspect_asks_the_users_of_a_placeholder_without_a_shape(self):
        """Values that are stacked are rows, unless the stack is a shape; and an op that draws from its input isn't a product."""
        a, b, logits = (v1.placeholder(tf.float32, name=name) for name in ("a", "b", "logits"))
        size, depth = v1.placeholder(tf.int32, name="size"), v1.placeholder(tf.int32, name="depth")
        drawn = tf.identity(tf.random.categorical(logits, 1), name="dropout_of")
        w = v1.get_variable("w", initializer=0.0)
        parts = [tf.stack([a, b]), tf.cast(drawn, tf.float32), tf.ones([size, 2]), tf.one_hot([0], depth)]
        loss = tf.add_n([tf.reduce_sum(part) * w for part in parts], name="loss")
        v1.train.GradientDescentOptimizer(0.1).minimize(loss, v1.train.get_or_create_global_step())
        v1.train.export_meta_graph(self.path("stacks.meta"))
        self.assertEqual(["--feed=a:0=@a.npy", "--feed=b:0=@b.npy", "--feed=depth:0=1", "--feed=logits:0=@logits.npy",
                          "--feed=size:0=1"],
                         sorted(word for word in self.commands(self.path("stacks.meta"))["train"] if word.startswith("--feed")))

    def test_inspect_offers_no_command_for_what_no_command_can_train(self):
        """What calls the program that wrote the graph, and batches of a sparse placeholder."""
        for kind, why in (("python", "(EagerPyFunc), which calls the Python program"), ("sparse", "'sp/indices'"),
                          ("function", "(MapDataset), which calls the Python program")):
            with self.subTest(kind), tf.Graph().as_default():
                w = v1.get_variable("w", [2, 1])
                if kind == "sparse":
                    product = tf.sparse.sparse_dense_matmul(v1.sparse_placeholder(tf.float32, [None, 2], name="sp"), w)
                elif kind == "function":
                    rows = tf.data.Dataset.from_tensors(np.ones([1, 2], np.float32)).repeat().map(
                        lambda row: tf.ensure_shape(tf.cond(row[0, 0] > 0, lambda: tf.numpy_function(np.negative, [row], tf.float32),
                                                            lambda: row), [1, 2]))
                    iterator = v1.data.make_initializable_iterator(rows)
                    product = tf.matmul(iterator.get_next(), w)
                else:
                    x = v1.placeholder(tf.float32, [None, 2], name="x")
                    product = tf.matmul(tf.ensure_shape(tf.py_function(lambda rows: rows, [x], tf.float32), [None, 2]), w)
                loss = tf.reduce_mean(tf.square(product - 1), name="loss")
                v1.train.GradientDescentOptimizer(0.1).minimize(loss, v1.train.get_or_create_global_step())
                meta = self.path(kind + ".meta")
                v1.train.export_meta_graph(meta)
                facts = peer.muster_json("inspect", meta)
                self.assertIn(why, facts["train op"][0]["text"])
                self.assertNotIn("--feed=", facts["train op"][0]["text"])
                self.assertEqual("local" if kind == "sparse" else "none", facts["master"][0]["name"])
                self.assertIn("prepare", self.commands(meta))
                self.assertNotIn("train", self.commands(meta))
                self.assertEqual(kind == "sparse", "evaluate" in self.commands(meta))
                if kind != "sparse":
                    said = peer.muster("train", "--master=local", "--meta-graph=" + meta, "--steps=1",
                                       *["--feed=x:0=[[1, 2]]"] * (kind == "python"), code=3)
                    self.assertIn("no master has it", said)

    def test_inspect_says_what_takes_the_input_where_the_step_takes_none(self):
        """Accumulated gradients: the program adds to them batch by batch, and then applies them."""
        x = v1.placeholder(tf.float32, [None], name="x")
        w, sum_of = v1.get_variable("w", initializer=1.0), v1.get_variable("sum_of", initializer=0.0, trainable=False)
        loss = tf.reduce_mean(tf.square(w * x - 1))
        optimizer = v1.train.GradientDescentOptimizer(0.1)
        (gradient, _), = optimizer.compute_gradients(loss, [w])
        sum_of.assign_add(gradient, name="accumulate")
        optimizer.apply_gradients([(tf.identity(sum_of), w)], v1.train.get_or_create_global_step())
        v1.train.export_meta_graph(self.path("accumulates.meta"))
        self.assertIn("takes the input: the step takes none", peer.muster("inspect", self.path("accumulates.meta")))

    def test_the_loss_is_what_the_step_minimises(self):
        """Neither the first of the collection, a weight decay, nor a summary of that name."""
        x = v1.placeholder(tf.float32, [None, 2], name="x")
        w = v1.get_variable("w", [2, 1])
        v1.add_to_collection("losses", tf.multiply(0.1, tf.nn.l2_loss(w), name="decay"))
        v1.add_to_collection("losses", tf.reduce_mean(tf.square(tf.matmul(x, w) - 1), name="error"))
        total = tf.add_n(v1.get_collection("losses"), name="whole")
        v1.summary.scalar("loss", total)
        v1.train.GradientDescentOptimizer(0.1).minimize(total, v1.train.get_or_create_global_step())
        v1.train.export_meta_graph(self.path("total.meta"))
        self.assertEqual([("whole:0", "the train op's"), ("decay:0", ""), ("error:0", "")],
                         [(fact["name"], fact["text"]) for fact in peer.muster_json("inspect", self.path("total.meta"))["loss"]])
        self.assertIn("--loss=whole:0", self.commands(self.path("total.meta"))["train"])

    def test_the_loss_is_the_whole_one_outside_of_loops(self):
        """Not the critic's values, whose gradient is a penalty; nor what a step minimises in a loop, which can't be fetched."""
        x = v1.placeholder(tf.float32, [None, 1], name="x")
        w = v1.get_variable("w", [1, 1], initializer=v1.ones_initializer(), use_resource=True)
        step, optimizer = v1.train.create_global_step(), v1.train.GradientDescentOptimizer(0.1)
        values = tf.square(tf.matmul(x, w), name="values")
        whole = tf.add(tf.reduce_mean(values), tf.reduce_mean(tf.gradients(values, x)[0]), name="whole")
        optimizer.minimize(whole, step, name="once")
        v1.train.export_meta_graph(self.path("penalty.meta"))
        self.assertEqual("whole:0", peer.muster_json("inspect", self.path("penalty.meta"))["loss"][0]["name"])

        def update(i):
            with tf.control_dependencies([optimizer.minimize(tf.reduce_mean(x * w.read_value(), name="part"), step)]):
                return i + 1
        v1.get_collection_ref("train_op")[:] = [v1.while_loop(lambda i: i < 2, update, [0], name="inner").op]
        v1.train.export_meta_graph(self.path("inner.meta"))
        np.save(self.path("x.npy"), np.ones([64, 1], np.float32))
        self.assertNotIn("loss", peer.muster_json("inspect", self.path("inner.meta")))
        words = ["--master=tensorflow:" + sys.prefix if word == "--master=tensorflow" else word
                 for word in self.commands(self.path("inner.meta"))["train"] if not word.startswith("--loss=")]
        self.assertIn("can't be fetched", self.follow([*words, "--loss=inner/part:0"], code=3))
        self.follow(words)
        self.assertEqual(2, v1.train.load_checkpoint(self.path("run")).get_tensor("global_step"))

    def test_placeholders_of_one_last_name_have_a_file_each(self):
        rows = [v1.placeholder(tf.float32, [None, 2], name=scope + "/input") for scope in ("a", "b/c")]
        w = v1.get_variable("w", [2, 1])
        loss = tf.reduce_mean(tf.matmul(rows[0] + rows[1], w), name="loss")
        v1.train.GradientDescentOptimizer(0.1).minimize(loss, v1.train.create_global_step())
        v1.train.export_meta_graph(self.path("two.meta"))
        self.assertEqual(["--feed=a/input:0=@a_input.npy", "--feed=b/c/input:0=@b_c_input.npy"],
                         [word for word in self.commands(self.path("two.meta"))["train"] if word.startswith("--feed")])

    def test_inspect_names_what_only_a_program_can_feed(self):
        """The handle of an iterator; and a variable's first value, since init ops run without feeds."""
        for kind, why in ("handle", "in the placeholder 'fed', which only a session has"), ("init", "init op needs the placeholder 'fed'"):
            with self.subTest(kind), tf.Graph().as_default():
                fed = v1.placeholder(tf.string if kind == "handle" else tf.float32, [], name="fed")
                w = v1.get_variable("w", initializer=fed if kind == "init" else 1.0)
                data = v1.data.Iterator.from_string_handle(fed, tf.float32, []).get_next() if kind == "handle" else 1.0
                v1.train.GradientDescentOptimizer(0.1).minimize(tf.square(w * data), v1.train.create_global_step())
                v1.train.export_meta_graph(self.path(kind + ".meta"))
                self.assertIn(why, peer.muster_json("inspect", self.path(kind + ".meta"))["train op"][0]["text"])
                self.assertNotIn("train", self.commands(self.path(kind + ".meta")))

    def test_a_graph_with_queues_has_no_command_to_evaluate(self):
        row = v1.train.batch([tf.ones([2])], 2)
        loss = tf.reduce_mean(tf.square(tf.matmul(row, v1.get_variable("w", [2, 1]))), name="loss")
        v1.train.GradientDescentOptimizer(0.1).minimize(loss, v1.train.get_or_create_global_step())
        v1.train.export_meta_graph(self.path("queued.meta"))
        self.assertEqual({"train", "serve", "prepare"}, set(self.commands(self.path("queued.meta"))))

    def test_a_graph_that_reads_files_has_no_command_to_evaluate(self):
        """Their names are in a queue, which a training fills."""
        _, record = v1.WholeFileReader().read(v1.train.string_input_producer(["file"]))
        w = v1.get_variable("w", initializer=0.0)
        loss = tf.square(tf.cast(tf.strings.length(record), tf.float32) * w - 1, name="loss")
        v1.train.GradientDescentOptimizer(0.1).minimize(loss, v1.train.get_or_create_global_step())
        v1.train.export_meta_graph(self.path("reads.meta"))
        self.assertEqual({"train", "serve", "prepare"}, set(self.commands(self.path("reads.meta"))))

    def test_operations_that_the_engine_lacks_are_said_first(self):
        x = v1.get_variable("x", initializer=1.0)
        looped = v1.while_loop(lambda i, _: i < 3, lambda i, v: (i + 1, v * 2.0), [0, x], name="loop")[1]
        step = v1.train.get_or_create_global_step()
        plain = tf.group(x.assign_add(1.0), step.assign_add(1), name="plain")
        v1.add_to_collection("train_op", tf.group(x.assign_add(looped), step.assign_add(1), name="train"))
        v1.train.Saver()
        v1.train.export_meta_graph(self.path("loop.meta"))
        model = ["--meta-graph=" + self.path("loop.meta"), "--master=local"]
        said = peer.muster("train", *model, "--steps=1", "--checkpoint-dir=" + self.path("run"), code=3)
        self.assertRegex(said, r"needs \d+ operations \(.*Enter in \d+ nodes.*\) that muster's own engine lacks; add --master=tensorflow")
        self.assert_nothing_is_saved()
        self.assertIn("Enter in 2 nodes", peer.muster("run", *model, "--fetch=loop/Exit_1:0", code=3))
        served = ["--meta-graph=" + self.path("loop.meta"), "--master=" + self.serve()]
        for role in [], ["--task=worker:0", "--tasks=2"]:
            said = peer.muster("train", *served, *role, "--steps=1", "--checkpoint-dir=" + self.path("run"), code=3)
            self.assertRegex(said, r"operations \(.*Enter in .*\) that the server's engine lacks; restart the server")
            self.assert_nothing_is_saved()
        self.assertIn("no chief has ever registered", peer.muster("wait", *served, "--timeout=0", code=1))  # nothing has run
        peer.muster("prepare", *served)  # which needs none of them
        self.assertRegex(peer.muster("run", *served, "--fetch=loop/Exit_1:0", code=3), "Enter in 2 nodes, Exit in 1 node, LoopCond")
        self.assertEqual("tensorflow", peer.muster_json("inspect", self.path("loop.meta"))["master"][0]["name"])
        peer.muster("run", *model, "--target=" + plain.name)  # which needs none of them


class Types(peer.TestCase):
    def test_what_numpy_and_muster_lack_is_named_and_copied_bit_for_bit(self):
        place = self.folder()
        bits = {"float8_e5m2": None, "float8_e4m3fn": None, "int4": None, "uint4": None, "qint8": tf.int8,
                "quint8": tf.uint8, "qint16": tf.int16, "quint16": tf.uint16, "qint32": tf.int32}
        with tf.Graph().as_default(), v1.Session() as session:
            values = [tf.cast(tf.constant([1, 2, 3, 5], tf.int32 if "int" in name else tf.float32), name) if like is None else
                      tf.bitcast(tf.constant([1, 2, 3, 5], like), name) for name, like in bits.items()]
            names = [*bits, "number"]
            session.run(tf.raw_ops.SaveV2(prefix=os.path.join(place, "odd"), tensor_names=names,
                                          shape_and_slices=[""] * len(names), tensors=[*values, tf.constant([1.0])]))
        prefix, copied = os.path.join(place, "odd"), os.path.join(place, "copied")
        shown = {line.split()[0]: line.split()[1:3] for line in peer.muster("checkpoint", "show", prefix).splitlines()
                 if line.split()[:1] != [] and line.split()[0] in bits}
        self.assertEqual({name: [name, "[4]"] for name in bits}, shown)
        peer.muster("checkpoint", "copy", prefix, copied)
        for suffix in ".index", ".data-00000-of-00001":
            with open(prefix + suffix, "rb") as before, open(os.path.join(copied, "odd" + suffix), "rb") as after:
                self.assertEqual(before.read(), after.read())
        said = peer.muster("checkpoint", "extract", prefix, "--variables=*", "--to=" + os.path.join(place, "npy"))
        self.assertIn("skipped 9 tensors without numbers", said)
        self.assertEqual(["number.npy"], os.listdir(os.path.join(place, "npy")))
        peer.muster("checkpoint", "extract", prefix, "--variables=*t*", "--checkpoint=" + os.path.join(place, "part"))
        with tf.Graph().as_default(), v1.Session() as session:
            for name in bits:
                whole, part = (tf.raw_ops.RestoreV2(prefix=os.path.join(place, of), tensor_names=[name], shape_and_slices=[""],
                                                    dtypes=[tf.as_dtype(name)])[0] for of in ("odd", "part"))
                self.assertEqual(*(session.run(value).tobytes() for value in (whole, part)))


class OldCheckpoints(peer.TestCase):
    def test_are_listed_and_restored_by_the_graphs_own_op(self):
        place = self.folder()
        with tf.Graph().as_default(), v1.Session() as session:
            w = v1.get_variable("w", initializer=[0.0, 0.0])
            session.run(w.assign([1.0, 2.0]))
            for name, sharded in ("old", False), ("parts", True):
                saver = v1.train.Saver(write_version=v1.train.SaverDef.V1, sharded=sharded, name=name)
                saver.save(session, os.path.join(place, name), global_step=7, write_state=False)
            v1.train.Saver(name="new").save(session, os.path.join(place, "new"), global_step=9, write_state=False)
        listed = [json.loads(line) for line in peer.muster("checkpoint", "list", place, "--json").splitlines()]
        self.assertEqual([("new-9", "good", 9), ("old-7", "V1", 7), ("parts-7-?????-of-00001", "V1", 7)],
                         sorted((os.path.basename(one["prefix"]), one["state"], one["step"]) for one in listed))
        self.assertEqual({1}, {one["tensors"] for one in listed})
        self.assertLess(max(one["time"] for one in listed) - min(one["time"] for one in listed), 600)
        for master in (), ("--master=tensorflow:" + sys.prefix,):
            target = ["--meta-graph=" + os.path.join(place, "new-9.meta"), "--master=" + self.serve(*master)]
            peer.muster("prepare", *target)
            for name, prefix in ("old", "old-7"), ("parts", "parts-7-?????-of-00001"), ("new", "old-7"):
                with self.subTest(master=master, name=name):
                    peer.muster("run", *target, "--target=w/Assign")
                    peer.muster("run", *target, "--target=%s/restore_all" % name,
                                "--feed=%s/Const:0=%s" % (name, os.path.join(place, prefix)))
                    self.assertEqual("w:0 float[2] = [1, 2]\n", peer.muster("run", *target, "--fetch=w:0"))
            peer.muster("prepare", *target, "--overwrite", "--checkpoint=" + os.path.join(place, "parts-7-?????-of-00001"))
            self.assertEqual("w:0 float[2] = [1, 2]\n", peer.muster("run", *target, "--fetch=w:0"))


if __name__ == "__main__":
    peer.main()
