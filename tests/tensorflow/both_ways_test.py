# SPDX-License-Identifier: Apache-2.0
"""TensorFlow as the judge of checkpoints, both ways: what it writes muster reads and writes again, and TensorFlow finds
the same in that; and its own functions read a directory after everything that muster does there. What is large is
written with MUSTER_LONG=1 alone."""
import os
import subprocess
import sys
import unittest

sys.path.insert(0, "tests/tensorflow")
import peer

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
TOOL = os.path.abspath("tests/tensorflow/checkpoint_tool")
LONG = "MUSTER_LONG" in os.environ
MANY = 100000
DTYPES = (tf.float32, tf.float64, tf.float16, tf.bfloat16, tf.int8, tf.int16, tf.int32, tf.int64, tf.uint8, tf.uint16,
          tf.uint32, tf.uint64, tf.bool, tf.complex64, tf.complex128)


def save(prefix, tensors, slices=None):
    tf.raw_ops.SaveV2(prefix=prefix, tensor_names=list(tensors), tensors=list(tensors.values()),
                      shape_and_slices=slices or [""] * len(tensors))


class BothWaysTest(peer.TestCase):
    def setUp(self):
        self.directory = self.folder()
        self.theirs = os.path.join(self.directory, "theirs")
        self.ours = os.path.join(self.directory, "ours")

    def tool(self, *arguments):
        return subprocess.run([TOOL, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=600)

    def copy(self):
        """TensorFlow's checkpoint, read and written by muster, as TensorFlow reads it."""
        done = self.tool("copy", self.theirs, self.ours)
        self.assertEqual(done.returncode, 0, done.stdout)
        return tf.train.load_checkpoint(self.ours)

    def check(self, count, every=1):
        """The same names, types and shapes, and the same bytes in every so many of them."""
        theirs, ours = tf.train.load_checkpoint(self.theirs), self.copy()
        self.assertEqual(ours.get_variable_to_shape_map(), theirs.get_variable_to_shape_map())
        self.assertEqual(ours.get_variable_to_dtype_map(), theirs.get_variable_to_dtype_map())
        for name in sorted(ours.get_variable_to_shape_map())[::every]:
            read, expected = ours.get_tensor(name), theirs.get_tensor(name)
            if expected.dtype == object:
                self.assertEqual(read.tolist(), expected.tolist(), name)
            else:
                self.assertEqual(read.tobytes(), expected.tobytes(), name)
        self.assertEqual(len(ours.get_variable_to_shape_map()), count)

    def test_every_dtype(self):
        """Random bytes, so that every bit of every type is carried."""
        random = np.random.default_rng(5)
        tensors = {}
        for dtype in DTYPES:
            raw = random.integers(0, 256, (3, 5, dtype.size), dtype=np.uint8)
            if dtype == tf.bool:
                raw = raw % 2
            values = np.frombuffer(raw.tobytes(), dtype.as_numpy_dtype).reshape(3, 5)
            tensors[dtype.name] = tf.constant(values, dtype=dtype)
        tensors["string"] = tf.constant([[b"", b"\x00"], [random.bytes(100000), "näme".encode()]])
        tensors["a/näme with spaces\n"] = tf.constant(1.0)
        tensors["empty"] = tf.zeros([0, 7], tf.float64)
        save(self.theirs, tensors)
        self.check(len(tensors))

    def merge(self, parts):
        """TensorFlow's checkpoint, a shard for each of the parts."""
        prefixes = [os.path.join(self.folder(), "part") for _ in parts]
        for prefix, (tensors, slices) in zip(prefixes, parts):
            save(prefix, tensors, slices)
        tf.raw_ops.MergeV2Checkpoints(checkpoint_prefixes=prefixes, destination_prefix=self.theirs)
        self.assertEqual(sum(".data-" in name for name in os.listdir(self.directory)), len(parts))

    def test_many(self):
        """In shards: SaveV2 takes long over so many at once."""
        shards = [range(first, first + MANY // 10) for first in range(0, MANY, MANY // 10)]
        self.merge([({"layer_%d/kernel" % i: tf.constant(float(i)) for i in shard}, None) for shard in shards])
        self.check(MANY, every=97)

    def test_shards_with_slices(self):
        rows = np.arange(101 * 3, dtype=np.float32).reshape(101, 3)
        self.merge([({"v%d" % i: tf.range(i * 1000, dtype=tf.int64), "rows": tf.constant(rows[i * 40:i * 40 + 40])},
                     ["", "101 3 %d,%d:-" % (i * 40, min(40, 101 - i * 40))]) for i in range(3)])
        self.check(4)

    def test_a_saver_with_partitioned_variables(self):
        with tf.Graph().as_default(), tf1.Session() as session:
            tf1.get_variable("v", initializer=np.arange(1000))
            tf1.get_variable("rows", [101, 3], partitioner=tf1.fixed_size_partitioner(7))
            tf1.get_variable("columns", [4, 10], partitioner=tf1.fixed_size_partitioner(3, axis=1))
            session.run(tf1.global_variables_initializer())
            tf1.train.Saver(sharded=True).save(session, self.theirs)
        self.check(3)

    def test_a_type_that_muster_does_not_hold(self):
        """It stands in nobody's way: what else is there is verified and read."""
        quantized = tf.quantization.quantize(tf.zeros([3]), -1.0, 1.0, tf.qint8).output
        save(self.theirs, {"quantized": quantized, "x": tf.constant(1.0)})
        done = self.tool("verify", self.theirs)
        self.assertEqual(done.returncode, 0, done.stdout)
        done = self.tool("copy", self.theirs, self.ours)
        self.assertEqual(done.returncode, 1)
        self.assertIn("'quantized'", done.stdout)

    @unittest.skipUnless(LONG, "runs with MUSTER_LONG=1: it needs 10 GB of memory and 5 GB of disk")
    def test_a_tensor_over_2_gib(self):
        size = (1 << 31) + (1 << 20) + 1
        pattern = np.resize(np.frombuffer(np.random.default_rng(5).bytes(1000003), np.uint8), size)
        save(self.theirs, {"before": tf.constant(1.0), "large": tf.constant(pattern), "z": tf.constant(2.0)})
        ours = self.copy()
        self.assertTrue(np.array_equal(ours.get_tensor("large"), pattern))
        self.assertEqual((ours.get_tensor("before"), ours.get_tensor("z")), (1, 2))


class DirectoryTest(peer.TestCase):
    """TensorFlow looks at a directory after everything that muster does there."""

    def setUp(self):
        self.directory = self.folder()
        self.chief = subprocess.Popen([TOOL, "chief", self.directory], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      text=True, preexec_fn=peer.die_with_parent)
        self.addCleanup(self.end)

    def end(self):
        self.chief.stdin.close()
        self.chief.wait(10)
        self.chief.stdout.close()

    def tell(self, line):
        self.chief.stdin.write(line + "\n")
        self.chief.stdin.flush()
        self.assertEqual(self.chief.stdout.readline(), "done\n", line)

    def prefix(self, step):
        return os.path.join(self.directory, "model.ckpt-%d" % step)

    def check(self, *steps):
        """TensorFlow finds these steps, the last of them as the latest, and can read them."""
        self.assertEqual(tf.train.latest_checkpoint(self.directory), self.prefix(steps[-1]))
        state = tf.train.get_checkpoint_state(self.directory)
        self.assertEqual(list(state.all_model_checkpoint_paths), [self.prefix(step) for step in steps])
        self.assertEqual(len(state.all_model_checkpoint_timestamps), len(steps))
        self.assertEqual(sorted(state.all_model_checkpoint_timestamps), list(state.all_model_checkpoint_timestamps))
        for step in steps:
            reader = tf.train.load_checkpoint(self.prefix(step))
            for name in ("v", "w", "p"):
                self.assertEqual(set(reader.get_tensor(name).tobytes()), {step})
        return state

    def test_saves_and_retention(self):
        self.tell("save 1")
        self.check(1)
        self.tell("save 2")
        self.check(1, 2)
        self.tell("save 3")
        self.check(2, 3)
        self.assertFalse(tf1.train.checkpoint_exists(self.prefix(1)))

    def test_a_save_of_the_same_name(self):
        self.tell("save 1")
        self.tell("save 2")
        for _ in range(3):
            self.tell("save 2")
            self.check(1, 2)

    def test_saves_in_the_background(self):
        self.tell("async 1")
        self.check(1)
        self.tell("async 2")
        self.tell("async 3")
        self.check(2, 3)
        self.assertFalse(tf1.train.checkpoint_exists(self.prefix(1)))

    def test_pruning(self):
        self.tell("save 1")
        self.tell("save 2")
        peer.muster("checkpoint", "prune", self.directory, "--keep=1")
        self.check(2)
        self.assertFalse(tf1.train.checkpoint_exists(self.prefix(1)))
        self.tell("adopt")
        self.tell("save 3")
        self.check(2, 3)

    def test_quarantine(self):
        self.tell("save 1")
        self.tell("save 2")
        self.tell("aside " + self.prefix(2))
        self.check(1)
        self.tell("adopt")
        self.tell("save 3")
        self.check(1, 3)
        aside = tf.train.load_checkpoint(self.prefix(2) + ".bad")
        self.assertEqual(set(aside.get_tensor("p").tobytes()), {2})

    def test_the_times_of_tensorflows_state_file(self):
        """muster goes on in a directory of TensorFlow's."""
        for step in (1, 2):
            save(self.prefix(step), {"v": tf.zeros([2]), "w": tf.constant(0, tf.int64), "p": tf.zeros([4, 2])})
        tf1.train.update_checkpoint_state(self.directory, self.prefix(2), [self.prefix(1), self.prefix(2)],
                                          all_model_checkpoint_timestamps=[1600000000.25, 1600000001.5],
                                          last_preserved_timestamp=1599999999.125)
        self.tell("adopt")
        self.tell("save 3")
        state = tf.train.get_checkpoint_state(self.directory)
        self.assertEqual(list(state.all_model_checkpoint_paths), [self.prefix(2), self.prefix(3)])
        self.assertEqual(state.all_model_checkpoint_timestamps[0], 1600000001.5)
        self.assertGreater(state.all_model_checkpoint_timestamps[1], 1700000000)
        self.assertEqual(state.last_preserved_timestamp, 1599999999.125)
        self.tell("save 4")
        self.check(3, 4)

    def test_tensorflows_manager_goes_on_in_a_directory_of_musters(self):
        self.tell("save 1")
        self.tell("save 2")
        checkpoint = tf.train.Checkpoint(x=tf.Variable(1.0))
        manager = tf.train.CheckpointManager(checkpoint, self.directory, max_to_keep=3, checkpoint_name="model.ckpt")
        self.assertEqual(manager.checkpoints, [self.prefix(1), self.prefix(2)])
        manager.save(checkpoint_number=3)
        manager.save(checkpoint_number=4)
        self.assertEqual(manager.checkpoints, [self.prefix(2), self.prefix(3), self.prefix(4)])
        self.assertFalse(tf1.train.checkpoint_exists(self.prefix(1)))

    def test_prepare(self):
        """A chief's preparing leaves TensorFlow's view of the directory as it was."""
        directory = self.folder()
        with tf.Graph().as_default(), tf1.Session() as session:
            saver = tf1.train.import_meta_graph(peer.fixture("linreg.meta"))
            session.run(tf1.global_variables_initializer())
            saver.save(session, os.path.join(directory, "model.ckpt"), global_step=7)
        before = tf.train.get_checkpoint_state(directory)
        target = self.serve()
        peer.muster("prepare", "--meta-graph=" + peer.fixture("linreg.meta"), "--master=" + target,
                    "--checkpoint-dir=" + directory, "--timeout=30")
        after = tf.train.get_checkpoint_state(directory)
        self.assertEqual(tf.train.latest_checkpoint(directory), os.path.join(directory, "model.ckpt-7"))
        self.assertEqual(after, before)


if __name__ == "__main__":
    peer.main()
