#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records the checkpoints in testdata/ with TensorFlow (last recorded with 2.21).

The values are fixed, and golden_test.c knows them: a change here is a change there.

    PYTHON tests/checkpoint/record_golden.py tests/checkpoint/testdata

It doesn't record snappy.*, which TensorFlow doesn't write any more: an early TensorFlow 1 wrote it, and it is the
variables of saved_model_half_plus_two_cpu in TensorFlow Serving's test data (Apache-2.0).
"""

import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_eager_execution()

# Element k of each tensor is what golden_test.c calls the pattern: 3 k - 2 as the dtype holds it
# (unsigned: 3 k + 1; bool: k odd; complex: the value, and its negative as the imaginary part).
DTYPES = [
    "float32", "float64", "int32", "uint8", "int16", "int8", "complex64", "int64", "bool",
    "bfloat16", "uint16", "complex128", "float16", "uint32", "uint64",
]


def pattern(dtype, n):
    k = np.arange(n)
    signed = 3 * k - 2
    if dtype == "bool":
        return k % 2 == 1
    if dtype.startswith("u"):
        return (3 * k + 1).astype(dtype)
    if dtype.startswith("complex"):
        return (signed - 1j * signed).astype(dtype)
    return signed.astype(tf.as_dtype(dtype).as_numpy_dtype)


def save(prefix, tensors):
    """tensors: name -> (value, dtype, shape_and_slice); a name may stand there as NAME#N."""
    names = [name.split("#")[0] for name in tensors]
    with tf.Graph().as_default(), tf1.Session() as session:
        session.run(
            tf.raw_ops.SaveV2(
                prefix=prefix, tensor_names=names,
                shape_and_slices=[part for _, _, part in tensors.values()],
                tensors=[tf.constant(v, dtype=d) for v, d, _ in tensors.values()]))


def save_v1(path, tensors):
    """The same by the op that wrote checkpoints before 0.12; path is the file."""
    with tf.Graph().as_default(), tf1.Session() as session:
        session.run(
            tf.raw_ops.SaveSlices(
                filename=path, tensor_names=[name.split("#")[0] for name in tensors],
                shapes_and_slices=[part for _, _, part in tensors.values()],
                data=[tf.constant(v, dtype=d) for v, d, _ in tensors.values()]))


def every_dtype(directory):
    tensors = {
        "dtype/" + dtype: (pattern(dtype, 6).reshape(2, 3), tf.as_dtype(dtype), "")
        for dtype in DTYPES
    }
    tensors["strings"] = ([[b"", b"one"], [b"\x00\xff two", b"x" * 200]], tf.string, "")
    tensors["strings/none"] = (np.zeros([0, 2], dtype=object), tf.string, "")
    tensors["scalar"] = (7, tf.int64, "")
    tensors["scalar/string"] = (b"alone", tf.string, "")
    tensors["empty"] = (np.zeros([0, 3], dtype=np.float32), tf.float32, "")
    tensors["large"] = (np.arange(1000, dtype=np.float32), tf.float32, "")
    save(os.path.join(directory, "dtypes"), tensors)
    # The V1 format has all but these.
    old = {n: t for n, t in tensors.items() if n not in ("dtype/bfloat16", "dtype/uint32", "dtype/uint64")}
    save_v1(os.path.join(directory, "v1"), old)
    whole = np.arange(20).reshape(5, 4)
    save_v1(os.path.join(directory, "v1_parts-00000-of-00002"), {"a": (np.float32([1, 2, 3]), tf.float32, ""),
                                                                 "w#0": (whole[:3], tf.int32, "5 4 0,3:-")})
    save_v1(os.path.join(directory, "v1_parts-00001-of-00002"), {"b": (np.int64([[4], [5]]), tf.int64, ""),
                                                                 "w#1": (whole[3:], tf.int32, "5 4 3,2:-")})


def two_shards(directory):
    parts = [os.path.join(directory, "part-%d" % i) for i in range(2)]
    save(parts[0], {"a": (np.float32([1, 2, 3]), tf.float32, ""),
                    "w#0": (np.arange(12).reshape(3, 4), tf.int32, "5 4 0,3:-")})
    save(parts[1], {"b": (np.int64([[4], [5]]), tf.int64, ""),
                    "w#1": (np.arange(12, 20).reshape(2, 4), tf.int32, "5 4 3,2:-")})
    with tf.Graph().as_default(), tf1.Session() as session:
        session.run(
            tf.raw_ops.MergeV2Checkpoints(
                checkpoint_prefixes=parts, destination_prefix=os.path.join(directory, "shards"),
                delete_old_dirs=False))


def slices(directory):
    """Slices in both dimensions, far and near the ends of what one byte of a key holds."""
    whole = np.arange(200 * 3).reshape(200, 3).astype(np.int16)
    save(os.path.join(directory, "slices"), {
        "odd\u00ff name#0": (whole[:70, :], tf.int16, "200 3 0,70:-"),
        "odd\u00ff name#1": (whole[70:, :1], tf.int16, "200 3 70,130:0,1"),
        "odd\u00ff name#2": (whole[70:, 1:], tf.int16, "200 3 70,130:1,2"),
        "whole by parts": (whole[:2], tf.int16, "2 3 0,2:0,3"),
    })


def foreign_types(directory):
    """Types that a TensorFlow program may keep and muster has no tensors of."""
    with tf.Graph().as_default(), tf1.Session() as session:
        lists = [tf.raw_ops.TensorListFromTensor(tensor=tf.range(n), element_shape=tf.constant([], tf.int32))
                 for n in (3, 60)]
        tensors = [tf.stack(lists), lists[0], tf.bitcast(tf.constant([1, 2, 3], tf.int8), tf.qint8),
                   tf.constant(7.0)]
        session.run(
            tf.raw_ops.SaveV2(
                prefix=os.path.join(directory, "foreign"), tensor_names=["lists", "list", "qint8", "plain"],
                shape_and_slices=[""] * len(tensors), tensors=tensors))


def by_saver(directory):
    """A partitioned variable and the state file, as a training program leaves them."""
    with tf.Graph().as_default(), tf1.Session() as session:
        rows = np.arange(10, dtype=np.float32).reshape(5, 2)

        def part_of_rows(shape, dtype, partition_info):
            start = partition_info.var_offset[0]
            return tf.constant(rows[start:start + shape[0]], dtype=dtype)

        tf1.get_variable("table", [5, 2], initializer=part_of_rows,
                         partitioner=tf1.fixed_size_partitioner(2), use_resource=True)
        tf1.get_variable("step", initializer=np.int64(42), use_resource=True)
        session.run(tf1.global_variables_initializer())
        saver = tf1.train.Saver(save_relative_paths=True)
        for step in (41, 42):
            saver.save(session, os.path.join(directory, "model"), global_step=step,
                       write_meta_graph=False)
    for name in os.listdir(directory):
        if name.startswith("model-41."):
            os.unlink(os.path.join(directory, name))


def states(directory):
    tf1.train.update_checkpoint_state(
        directory, "/far/away/model-3",
        all_model_checkpoint_paths=["it's \"odd\"\\\n\té-1", "b-2", "/far/away/model-3"],
        latest_filename="checkpoint.odd",
        all_model_checkpoint_timestamps=[1.5, 1600000000.123456, 1e22],
        last_preserved_timestamp=1599999999.0)


def main():
    directory = sys.argv[1]
    os.makedirs(directory, exist_ok=True)
    every_dtype(directory)
    two_shards(directory)
    slices(directory)
    foreign_types(directory)
    by_saver(directory)
    states(directory)


if __name__ == "__main__":
    main()
