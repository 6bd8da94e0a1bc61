# SPDX-License-Identifier: Apache-2.0
"""What the scripts that record TensorFlow's kernels share: a case, its steps, values to feed, and the file.

Each case is a graph and steps over it: feeds, fetches with their values, targets, and for a step that
fails the code and, where programs read them, the words. A file, compressed with gzip, is a run of length-prefixed messages

  Case { string name = 1; bytes graph = 2; repeated Step step = 3; }
  Step { repeated Tensor feed = 1; repeated Tensor fetch = 2; repeated string target = 3;
         int32 code = 4; string words = 5; }
  Tensor { string name = 1; bytes tensor_proto = 2; }
"""
import gzip
import os
from collections import Counter

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_eager_execution()
raw = tf.raw_ops
bf16 = tf.bfloat16.as_numpy_dtype
F32, F64, F16 = np.float32, np.float64, np.float16
I32, I64 = np.int32, np.int64
FLOATS = [F32, F64, F16, bf16]
REALS = FLOATS + [I32, I64, np.int8, np.uint8, np.int16, np.uint16]

cases = []


def varint(n):
    n &= (1 << 64) - 1
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(number, data):
    if isinstance(data, str):
        data = data.encode()
    return varint(number << 3 | 2) + varint(len(data)) + data


def tensor(name, value):
    return field(1, name) + field(2, tf.make_tensor_proto(value).SerializeToString())


class Case:
    """A graph under construction, then steps over it."""

    def __init__(self, name):
        self.name = name
        self.graph = tf.Graph()
        self.steps = []
        self.session = None
        self.is_registered = True  # TensorFlow has kernels for all of it

    def start(self):
        # The kernels are the judge, not what grappler makes of the graph.
        config = tf1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        config.graph_options.optimizer_options.opt_level = -1
        self.session = tf1.Session(graph=self.graph, config=config)
        return self

    def step(self, fetches=(), feeds=None, targets=(), words=None):
        feeds = feeds or {}
        message = b"".join(field(1, tensor(t.name, v)) for t, v in feeds.items())
        message += b"".join(field(3, t.name) for t in targets)
        try:
            values = self.session.run([list(fetches), list(targets)], feeds)[0]
            values = [self.typed(t, v) for t, v in zip(fetches, values)]
            message += b"".join(field(2, tensor(t.name, v)) for t, v in zip(fetches, values))
            if words:
                print("%s did not fail" % self.name)
        except tf.errors.OpError as e:
            if "No OpKernel was registered" in e.message:
                self.is_registered = False
                return self
            if not words:
                print("%s fails: %s" % (self.name, [l for l in e.message.splitlines() if l and not l.startswith(("    File", "Detected", "Node", "Graph exec"))][:2]))
            message += b"".join(field(2, field(1, t.name)) for t in fetches)
            message += varint(4 << 3) + varint(e.error_code)
            if callable(words):
                words = words(e.message)
            if isinstance(words, str):
                if words not in e.message:
                    print("%s: words differ: %s" % (self.name, [l for l in e.message.splitlines() if l and not l.startswith(("    File", "Detected", "Node", "Graph exec"))][:2]))
                message += field(5, words)
        self.steps.append(message)
        return self

    @staticmethod
    def typed(t, value):
        if t.dtype.base_dtype == tf.string:
            return np.array(value, dtype=object)
        return np.asarray(value, dtype=t.dtype.base_dtype.as_numpy_dtype)

    def end(self):
        if not self.is_registered:
            self.session.close()
            return
        graph = self.graph.as_graph_def(add_shapes=False).SerializeToString(deterministic=True)
        cases.append(field(1, self.name) + field(2, graph) +
                     b"".join(field(3, s) for s in self.steps))
        self.session.close()


def op(name, inputs, words=None, label="", **attrs):
    """One op with its inputs fed."""
    case = Case(name + label)
    feeds = {}

    def placeholder(value):
        value = np.asarray(value)
        if value.dtype.kind in "SUO":
            value = value.astype(object)
            p = tf1.placeholder(tf.string)
        else:
            p = tf1.placeholder(tf.as_dtype(value.dtype))
        feeds[p] = value
        return p

    with case.graph.as_default():
        arguments = {k: [placeholder(v) for v in value] if isinstance(value, list) else
                        placeholder(value) for k, value in inputs.items()}
        try:
            out = getattr(raw, name)(**arguments, **attrs)
        except ValueError as e:
            print("%s: not even TensorFlow's graph takes it: %s" % (case.name, str(e)[:100]))
            return
        if out is None or isinstance(out, tf.Operation):
            outputs, targets = [], [out]
        elif isinstance(out, tf.Tensor):
            outputs, targets = [out], []
        else:
            flat = tf.nest.flatten(out)
            outputs, targets = flat, []
    case.start().step(outputs, feeds, targets, words=words)
    case.end()


def numbers(dtype, *shape, low=-4, high=5):
    """Small numbers that differ, negative ones where the type has them."""
    n = int(np.prod(shape)) if shape else 1
    if np.dtype(dtype).kind == "u":
        low = 0
    values = np.linspace(low, high, n) if np.dtype(dtype).kind in "fV" else low + np.arange(n) % (high - low)
    values = np.roll(values, n // 3)
    return values.astype(dtype).reshape(shape)


def positive(dtype, *shape):
    return (np.abs(numbers(F64, *shape)) + 1).astype(dtype)


def variable(kind, name, value):
    """A variable, the op that gives it its value, and a tensor that reads it."""
    t = tf.as_dtype(value.dtype)
    if kind == "ref":
        v = raw.VariableV2(shape=value.shape, dtype=t, name=name, container="", shared_name="")
        return v, raw.Assign(ref=v, value=tf.constant(value)).op, tf.identity(v)
    v = raw.VarHandleOp(shape=value.shape, dtype=t, name=name, container="", shared_name=name)
    return v, raw.AssignVariableOp(resource=v, value=tf.constant(value)), None


def read(kind, v, dtype):
    return tf.identity(v) if kind == "ref" else raw.ReadVariableOp(resource=v, dtype=tf.as_dtype(dtype))


def named(message):
    """A case's name: its first field, shorter than 128 bytes or not."""
    size, at, shift = 0, 1, 0
    while True:
        size |= (message[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if message[at - 1] < 128:
            return message[at:at + size].decode()


def read_cases(path):
    """The cases of a file that was recorded before; none if there is no such file."""
    try:
        with gzip.open(path) as file:
            data = file.read()
    except FileNotFoundError:
        return []
    found, at = [], 0
    while at < len(data):
        size, shift = 0, 0
        while True:
            size |= (data[at] & 127) << shift
            at, shift = at + 1, shift + 7
            if data[at - 1] < 128:
                break
        found.append(data[at:at + size])
        at += size
    return found


def write(record, folder):
    """Runs it, writes its cases to the file of its name if they have changed, and prints which have."""
    cases.clear()
    record()
    path = os.path.join(folder, record.__name__ + ".golden")
    before = read_cases(path)
    print("%s: %d cases" % (record.__name__, len(cases)))
    if cases == before:
        return
    for sign, differing in (("-", Counter(before) - Counter(cases)), ("+", Counter(cases) - Counter(before))):
        for name, n in sorted(Counter(map(named, differing.elements())).items()):
            print("  %s %s%s" % (sign, name, " (%d cases)" % n if n > 1 else ""))
    with open(path, "wb") as out:
        out.write(gzip.compress(b"".join(varint(len(case)) + case for case in cases), 9, mtime=0))
