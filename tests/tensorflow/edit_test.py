# SPDX-License-Identifier: Apache-2.0
"""TensorFlow writes checkpoints, muster copies, averages, extracts and renames them, and TensorFlow reads the results;
NumPy computes the averages."""
import os
import subprocess
import tempfile
import unittest

import numpy as np
import peer
import tensorflow as tf

PARTITIONED = tf.compat.v1.fixed_size_partitioner(3)
FLOATING = ("half", "float32", "float64", "complex64", "complex128")


def muster(*words):
    done = subprocess.run([peer.MUSTER, "checkpoint", *words], capture_output=True, text=True,
                          timeout=peer.COMMAND_SECONDS)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return done.stdout


def values(seed):
    """Of every type, and no two alike."""
    random = np.random.default_rng(seed)
    made = {"scope/%s" % name: (random.normal(size=(7, 5)) * 3).astype(name if name != "half" else "float16")
            for name in ("half", "float32", "float64")}
    for name in ("complex64", "complex128"):
        made["scope/" + name] = (random.normal(size=4) + 1j * random.normal(size=4)).astype(name)
    made["int32"] = random.integers(-9, 9, 6).astype("int32")
    made["flags"] = random.integers(0, 2, 6).astype("bool")
    made["words"] = np.array([b"", b"x" * int(seed), b"\x00\xff"], dtype=object)
    made["global_step"] = np.int64(seed)
    made["bfloat16"] = tf.constant([0.5 * seed, -1.0], tf.bfloat16).numpy()
    return made


def save(prefix, arrays, partitioned):
    """With TensorFlow's saver, and a partitioned variable "parts"."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        for name, array in arrays.items():
            tf.compat.v1.get_variable(name, initializer=tf.constant(array), use_resource=False)
        tf.compat.v1.get_variable("parts", initializer=tf.constant(partitioned), partitioner=PARTITIONED,
                                  use_resource=False)
        session.run(tf.compat.v1.global_variables_initializer())
        tf.compat.v1.train.Saver().save(session, prefix)


class EditTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = cls.enterClassContext(tempfile.TemporaryDirectory())
        cls.seeds = (1, 2, 4)
        cls.arrays = [values(seed) for seed in cls.seeds]
        cls.parts = [np.arange(35, dtype="float32").reshape(7, 5) * seed for seed in cls.seeds]
        cls.prefixes = [os.path.join(cls.directory, "run", "m-%d" % seed) for seed in cls.seeds]
        os.mkdir(os.path.join(cls.directory, "run"))
        for prefix, arrays, parts in zip(cls.prefixes, cls.arrays, cls.parts):
            save(prefix, arrays, parts)

    def path(self, *names):
        return os.path.join(self.directory, *names)

    def assert_reads(self, prefix, wanted):
        reader = tf.train.load_checkpoint(prefix)
        self.assertEqual(sorted(reader.get_variable_to_shape_map()), sorted(wanted))
        for name, array in wanted.items():
            read = reader.get_tensor(name)
            self.assertEqual(np.asarray(read).dtype, np.asarray(array).dtype, name)
            np.testing.assert_array_equal(read, array, name)

    def test_a_copy_of_a_directory(self):
        muster("copy", "--all", self.path("run"), self.path("copies"))
        state = tf.train.get_checkpoint_state(self.path("copies"))
        self.assertEqual(state.model_checkpoint_path, self.path("copies", "m-4"))
        self.assertEqual(list(state.all_model_checkpoint_paths), [self.path("copies", "m-%d" % seed) for seed in self.seeds])
        for seed, arrays, parts in zip(self.seeds, self.arrays, self.parts):
            self.assert_reads(self.path("copies", "m-%d" % seed), {**arrays, "parts": parts})
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:  # its meta graph, too
            saver = tf.compat.v1.train.import_meta_graph(self.path("copies", "m-4.meta"))
            saver.restore(session, self.path("copies", "m-4"))
            self.assertEqual(session.run("global_step:0"), 4)

    def test_an_average_is_numpys(self):
        muster("merge", self.path("mean"), *self.prefixes)
        wanted = {**self.arrays[-1], "parts": np.mean(self.parts, axis=0, dtype="float64").astype("float32")}
        for name in FLOATING:  # complex ones as pairs: NumPy would divide them by a complex number
            stack = [arrays["scope/" + name] for arrays in self.arrays]
            real = [array.view(array.real.dtype) for array in stack]
            wanted["scope/" + name] = np.mean(real, axis=0, dtype="float64").astype(real[0].dtype).view(stack[0].dtype)
        wide = np.mean([arrays["bfloat16"].astype("float64") for arrays in self.arrays], axis=0)
        wanted["bfloat16"] = wide.astype("float32").astype(self.arrays[0]["bfloat16"].dtype)
        self.assert_reads(self.path("mean"), wanted)

    def test_a_part(self):
        muster("extract", self.prefixes[0], "--variables=scope/f*", "--variables=words", "--variables=parts",
               "--checkpoint=" + self.path("part"))
        wanted = {name: self.arrays[0][name] for name in ("scope/float32", "scope/float64", "words")}
        self.assert_reads(self.path("part"), {**wanted, "parts": self.parts[0]})

    def test_numpy_files(self):
        muster("extract", self.prefixes[1], "--variables=scope/*", "--variables=parts", "--variables=*lag*",
               "--variables=*step", "--variables=bfloat16", "--to=" + self.path("npy"))
        wanted = {name: array for name, array in self.arrays[1].items() if name not in ("words", "int32")}
        wanted["parts"] = self.parts[1]
        wanted["bfloat16"] = wanted["bfloat16"].astype("float32")
        for name, array in wanted.items():
            read = np.load(self.path("npy", name + ".npy"))
            self.assertEqual((read.dtype, read.shape), (array.dtype, array.shape), name)
            np.testing.assert_array_equal(read, array, name)
        self.assertEqual(sum(len(files) for _, _, files in os.walk(self.path("npy"))), len(wanted))
        muster("extract", self.prefixes[1], "--variables=int32", "--to=" + self.path("one.npy"))
        np.testing.assert_array_equal(np.load(self.path("one.npy")), self.arrays[1]["int32"])

    def test_other_names(self):
        muster("rename", self.prefixes[2], self.path("renamed"), "--map=scope/*=model/layer/*", "--map=parts=a",
               "--map=flags=words", "--map=words=flags")
        wanted = {name.replace("scope/", "model/layer/"): array for name, array in self.arrays[2].items()}
        wanted["flags"], wanted["words"] = wanted["words"], wanted["flags"]
        self.assert_reads(self.path("renamed"), {**wanted, "a": self.parts[2]})
        part, = tf.raw_ops.RestoreV2(prefix=self.path("renamed"), tensor_names=["a"], dtypes=[tf.float32],
                                     shape_and_slices=["7 5 3,2:0,5"])
        np.testing.assert_array_equal(part, self.parts[2][3:5])

    def test_objects_keep_their_graph(self):
        made = []
        for seed in (1, 3):
            model = tf.train.Checkpoint(w=tf.Variable([1.0 * seed, 2.0]), n=tf.Variable(seed))
            made.append(model.write(self.path("objects-%d" % seed)))
        muster("merge", self.path("objects"), *made)
        muster("copy", self.path("objects"), self.path("elsewhere"))
        model = tf.train.Checkpoint(w=tf.Variable([0.0, 0.0]), n=tf.Variable(0))
        model.read(self.path("elsewhere", "objects")).assert_consumed()
        self.assertEqual((list(model.w.numpy()), model.n.numpy()), ([2.0, 2.0], 3))
        with self.assertRaisesRegex(AssertionError, "object-based"):
            muster("rename", made[0], self.path("no"), "--map=w*=v*")


if __name__ == "__main__":
    peer.main()
