# SPDX-License-Identifier: Apache-2.0
"""TensorFlow reads the checkpoints and the state file that tests/checkpoint/write_checkpoints wrote."""
import os
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import tensorflow as tf

WRITER = os.path.abspath(sys.argv.pop(1))


class BundleTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.directory = cls.enterClassContext(tempfile.TemporaryDirectory())
        subprocess.run([WRITER, cls.directory], check=True, timeout=60)

    def load(self, name):
        return tf.train.load_checkpoint(os.path.join(self.directory, name))

    def test_every_dtype(self):
        reader = self.load("values")
        for number in (1, 2, 3, 4, 5, 6, 8, 9, 10, 14, 17, 18, 19, 22, 23):
            dtype = tf.as_dtype(number)
            size = 3 * dtype.size
            expected = np.frombuffer(bytes(i % 2 for i in range(size)), dtype.as_numpy_dtype)
            read = reader.get_tensor("dtype/%d" % number)
            self.assertEqual(read.dtype, expected.dtype)
            self.assertEqual(read.tobytes(), expected.tobytes(), dtype)

    def test_strings_scalars_and_empty_tensors(self):
        reader = self.load("values")
        self.assertEqual(list(reader.get_tensor("strings")), [b"", b"\x00\xff", b"x" * 70000])
        self.assertEqual(reader.get_tensor("strings/none").shape, (2, 0))
        self.assertEqual(reader.get_tensor("scalar"), 2.5)
        self.assertEqual(reader.get_tensor("scalar/string"), b"alone")
        self.assertEqual(reader.get_tensor("empty").shape, (0, 3))

    def test_large_and_many(self):
        reader = self.load("values")
        np.testing.assert_array_equal(reader.get_tensor("large"),
                                      np.arange(700000).reshape(1000, 700))
        self.assertEqual(len(reader.get_variable_to_shape_map()), 15 + 6 + 1000)
        for i in range(1000):
            self.assertEqual(reader.get_tensor("many/%d" % i), i)

    def test_slices(self):
        reader = self.load("slices")
        self.assertEqual(reader.get_variable_to_shape_map(), {"w": [300, 4], "columns": [2, 2]})
        np.testing.assert_array_equal(reader.get_tensor("w"), np.arange(1200).reshape(300, 4))
        np.testing.assert_array_equal(reader.get_tensor("columns"), [[5, 7], [6, 8]])
        part, = tf.raw_ops.RestoreV2(
            prefix=os.path.join(self.directory, "slices"), tensor_names=["w"],
            shape_and_slices=["300 4 150,100:1,2"], dtypes=[tf.int32])
        np.testing.assert_array_equal(part, np.arange(1200).reshape(300, 4)[150:250, 1:3])

    def test_merged_shards(self):
        reader = self.load("merged-7")
        self.assertEqual(reader.get_tensor("a"), 1)
        self.assertEqual(reader.get_tensor("b"), b"two")
        np.testing.assert_array_equal(reader.get_tensor("w"), np.arange(8).reshape(4, 2))
        self.assertFalse([name for name in os.listdir(self.directory) if name.startswith("part-")])

    def test_one_published_over_another(self):
        reader = self.load("over")
        self.assertEqual(reader.get_tensor("number"), 1)
        np.testing.assert_array_equal(reader.get_tensor("large"),
                                      np.arange(1, 7001).reshape(100, 70))
        number, = tf.raw_ops.RestoreV2(
            prefix=os.path.join(self.directory, "over"), tensor_names=["number"],
            shape_and_slices=[""], dtypes=[tf.int64])
        self.assertEqual(number, 1)
        self.assertTrue(tf.compat.v1.train.checkpoint_exists(os.path.join(self.directory, "over")))
        self.assertEqual(sorted(name for name in os.listdir(self.directory)
                                if name.startswith("over.")),
                         ["over.data-00000-of-00002", "over.data-00001-of-00002", "over.index"])

    def test_state_file(self):
        prefix = os.path.join(self.directory, "merged-7")
        self.assertEqual(tf.train.latest_checkpoint(self.directory), prefix)
        state = tf.train.get_checkpoint_state(self.directory)
        self.assertEqual(list(state.all_model_checkpoint_paths),
                         [os.path.join(self.directory, "it's \"odd\"\\\n\té-1"), prefix])
        self.assertEqual(list(state.all_model_checkpoint_timestamps),
                         [1600000000.25, 1600000001.0])
        self.assertEqual(state.last_preserved_timestamp, 1599999999.5)
        with open(os.path.join(self.directory, "checkpoint"), encoding="utf-8") as file:
            self.assertIn('model_checkpoint_path: "merged-7"\n', file.read())


if __name__ == "__main__":
    unittest.main()
