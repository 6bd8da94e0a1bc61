#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""muster.checkpoint: a checkpoint as a mapping of arrays."""
import os
import shutil
import sys

sys.path.insert(0, os.path.abspath(os.path.join(os.path.dirname(__file__), "../../python")))
import case
from case import Muster

try:
    import numpy
except ImportError:
    print("skipped: needs NumPy, which `bazel/setup --tests` installs")
    sys.exit(0)
import muster.checkpoint

# TensorFlow wrote it.
SAVED = case.fixture("mlp_adam_ref.after5")


class Mapping(case.TestCase):
    def test_has_names_and_arrays(self):
        checkpoint = muster.checkpoint.open(SAVED)
        self.assertEqual(list(checkpoint)[:3], ["beta1_power", "beta2_power", "global_step"])
        self.assertEqual(len(checkpoint), len(list(checkpoint)))
        kernel = checkpoint["hidden/kernel"]
        self.assertEqual((kernel.shape, kernel.dtype, kernel.flags.writeable), ((8, 4), numpy.float32, False))
        self.assertEqual(checkpoint["hidden/kernel", "2,1:-"].tolist(), [kernel[2].tolist()])
        self.assertEqual(checkpoint["global_step"], 5)
        self.assertEqual({name: array.shape for name, array in checkpoint.items()}, dict(checkpoint.shapes))
        self.assertEqual(checkpoint.tensor("global_step"), 5)

    def test_tells_of_a_tensor_without_reading_it(self):
        for suffix in (".index", ".data-00000-of-00001"):
            shutil.copy(SAVED + suffix, self.folder + "/m" + suffix)
        os.truncate(self.folder + "/m.data-00000-of-00001", 0)
        checkpoint = muster.checkpoint.open(self.folder + "/m")
        self.assertEqual(checkpoint.variable("hidden/kernel"), ("hidden/kernel", "float", (8, 4), 128))
        self.assertIn("hidden/kernel", checkpoint)
        with self.assertRaises(Muster.DataLoss):
            checkpoint["hidden/kernel"]
        with self.assertRaises(Muster.DataLoss):
            checkpoint.verify()

    def test_what_is_not_there_is_a_key_error(self):
        checkpoint = muster.checkpoint.open(SAVED)
        for missing in (lambda: checkpoint["nothing"], lambda: checkpoint.variable("nothing"), lambda: checkpoint.tensor("nothing")):
            with self.assertRaises(KeyError):
                missing()
        self.assertIsNone(checkpoint.get("nothing"))
        self.assertNotIn("nothing", checkpoint)
        with self.assertRaises(Muster.NotFound):
            muster.checkpoint.open(self.folder + "/nothing")

    def test_is_a_table_in_a_notebook(self):
        checkpoint = muster.checkpoint.open(SAVED)
        table = checkpoint._repr_html_()
        self.assertIn("<tr><td>hidden/kernel</td><td>float</td><td>8×4</td><td>128 B</td></tr>", table)
        self.assertEqual(table.count("<tr>"), len(checkpoint) + 1)
        self.assertRegex(repr(checkpoint), "<muster.checkpoint '.*after5': %d tensors, " % len(checkpoint))

    def test_a_directory_is_its_latest_checkpoint(self):
        with self.assertRaises(FileNotFoundError):
            muster.checkpoint.open(self.folder)
        for suffix in (".index", ".data-00000-of-00001"):
            shutil.copy(SAVED + suffix, self.folder + "/m-5" + suffix)
        with open(self.folder + "/checkpoint", "w", encoding="utf-8") as file:
            file.write('model_checkpoint_path: "m-5"\n')
        self.assertEqual(muster.checkpoint.open(self.folder).prefix, self.folder + "/m-5")


class Arrays(case.TestCase):
    def test_of_objects_are_what_their_elements_are(self):
        for value, wanted in (([3, 1], Muster.DType.INT32), ([2**40], Muster.DType.INT64), ([1, 0.5], Muster.DType.FLOAT), ([True], Muster.DType.BOOL),
                              ([numpy.int64(7)], Muster.DType.INT32), (["a", b"b"], Muster.DType.STRING), ([], Muster.DType.STRING)):
            with self.subTest(value=value):
                tensor = Muster.Tensor(numpy.array(value, object))
                self.assertEqual((tensor.dtype(), tensor.shape()), (wanted, [len(value)]))
        self.assertEqual(Muster.Tensor(numpy.array([[3], [1]], object), Muster.DType.DOUBLE).tolist(), [[3.0], [1.0]])
        self.assertEqual(Muster.Tensor(numpy.zeros((0, 3), object), Muster.DType.FLOAT).shape(), [0, 3])

    def test_of_numbers_and_strings_are_refused(self):
        for value, dtype in ((["a", 2], None), ([2, "a"], None), (numpy.array(["a", 2], object), None), ([2], Muster.DType.STRING), (["a"], Muster.DType.FLOAT),
                             (numpy.array(["a"]), Muster.DType.FLOAT), (numpy.array([None], object), None)):
            with self.subTest(value=value), self.assertRaises(TypeError):
                Muster.Tensor(value, dtype)


if __name__ == "__main__":
    case.main()
