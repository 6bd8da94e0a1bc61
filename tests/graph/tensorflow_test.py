# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's opinion of what graph/ reads and writes: tensors of every dtype in both encodings,
a graph of the builder's, and the ready op."""

import os
import subprocess
import tempfile
import unittest

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import tensor_pb2
from tensorflow.python.framework import tensor_util

tf1 = tf.compat.v1
tf1.disable_eager_execution()
TOOL = os.path.abspath("tests/graph/peer_tool")
DTYPES = (
    "float32 float64 int32 uint8 int16 int8 int64 bool uint16 float16 uint32 uint64 "
    "complex64 complex128 bfloat16"
).split()


def typed(array, dtype):
    """The values in float_val, int_val, ..., whatever their number."""
    proto = tensor_pb2.TensorProto(dtype=dtype.as_datatype_enum)
    for size in array.shape:
        proto.tensor_shape.dim.add().size = size
    append = tensor_util.GetNumpyAppendFn(np.dtype(dtype.as_numpy_dtype))
    append(proto, array.ravel())
    return proto


def numbers(dtype):
    values = np.random.RandomState(0).randn(3, 4) * 50
    if dtype.is_unsigned:
        values = abs(values)
    array = values.astype(dtype.as_numpy_dtype)
    if dtype.is_complex:
        array = (array + 1j * values[::-1]).astype(dtype.as_numpy_dtype)
    return array


def cases():
    for name in DTYPES:
        dtype = tf.as_dtype(name)
        array = numbers(dtype)
        large = np.tile(array, (1000, 1))
        one = array[1, 1]
        yield tf1.make_tensor_proto(array, dtype=dtype), array
        yield tf1.make_tensor_proto(large, dtype=dtype), large
        yield typed(array, dtype), array
        yield (
            tf1.make_tensor_proto(one, dtype=dtype, shape=[5, 2]),
            np.full((5, 2), one, dtype.as_numpy_dtype),
        )
    strings = np.array([[b"a", b""], [b"x\0y", "größe".encode()]], object)
    yield tf1.make_tensor_proto(strings), strings
    yield tf1.make_tensor_proto(b"z", shape=[2, 2]), np.full((2, 2), b"z", object)


class TensorFlowReads(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def tool(self, *args):
        done = subprocess.run([TOOL, *args], check=True, capture_output=True, text=True, timeout=60)
        return done.stdout.strip()

    def session(self, path):
        definition = tf1.GraphDef()
        with open(path, "rb") as file:
            definition.ParseFromString(file.read())
        graph = tf.Graph()
        with graph.as_default():
            tf1.import_graph_def(definition, name="")
        return tf1.Session(graph=graph)

    def test_tensors(self):
        wanted = {}
        for i, (proto, array) in enumerate(cases()):
            path = os.path.join(self.folder, str(i))
            wanted[path] = proto, array
            with open(path, "wb") as file:
                file.write(proto.SerializeToString())
        self.tool("copy", *wanted)
        self.assertEqual(62, len(wanted))
        for path, (proto, array) in wanted.items():
            back = tensor_pb2.TensorProto()
            with open(path + ".out", "rb") as file:
                back.ParseFromString(file.read())
            with self.subTest(dtype=tf.as_dtype(proto.dtype).name):
                self.assertEqual(proto.dtype, back.dtype)
                np.testing.assert_array_equal(array, tf.make_ndarray(back))

    def test_a_built_graph(self):
        path = os.path.join(self.folder, "built.pb")
        self.tool("built", path)
        with self.session(path) as session:
            session.run("init")
            y = session.run("y:0", {"x:0": np.ones((2, 3))})
        np.testing.assert_array_equal([[1, 2, 3], [4, 5, 6]], y)

    def test_the_ready_op(self):
        path = os.path.join(self.folder, "ready.pb")
        op = self.tool("ready", "tests/fixtures/linreg.meta", path) + ":0"
        with self.session(path) as session:
            self.assertEqual(
                [b"global_step", b"w", b"b", b"local_scale"], list(session.run(op))
            )
            session.run("group_deps")
            self.assertEqual([b"local_scale"], list(session.run(op)))
            session.run("group_deps_1")
            self.assertEqual([], list(session.run(op)))


if __name__ == "__main__":
    unittest.main()
