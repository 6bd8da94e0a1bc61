#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the engine with TensorFlow on random changes of the recorded cases, and prints each difference once.

A recorded case of one step is run with other values (NaN, infinities, zeros, negative and repeated numbers), other
shapes (empty, one dimension more or less), other types (booleans, strings, small integers) and other attributes. Run by hand:

    python3 tests/engine/compare_random.py MUSTER [--seed=N] [--rounds=N] [GOLDEN]...
"""
import argparse
import collections
import glob
import multiprocessing
import os
import random
import subprocess
import sys

from recording import *
from tensorflow.core.framework import graph_pb2, tensor_pb2, types_pb2

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "goldens")
TYPES = [tf.bool, tf.string, tf.int8, tf.uint8, tf.int16, tf.uint16, tf.int32, tf.int64, tf.uint32, tf.uint64, tf.half, tf.bfloat16,
         tf.float32, tf.float64, tf.complex64]
CASE_SECONDS = 20
# What one can't compare: drawn numbers, times, what is printed, and what TensorFlow leaves undefined.
UNLIKE = ("Random", "Multinomial", "Sampler", "Stateless", "TruncatedNormal", "Timestamp", "Print", "Summary", "Shuffle",
          "ParameterizedTruncatedNormal", "Rng", "Empty", "StringFormat")


def fields(data):
    """The fields of a message whose fields are all varints or bytes."""
    at = 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at, value, shift = at + 1, value | (byte & 127) << shift, shift + 7
            if byte < 128:
                return value
    while at < len(data):
        tag = number()
        value = number()
        if tag & 7 == 2:
            at, value = at + value, data[at:at + value]
        yield tag >> 3, value


def parse(case):
    """(name, graph, feeds, fetches, targets), or None for a story."""
    got = collections.defaultdict(list)
    for number, value in fields(case):
        got[number].append(value)
    if len(got[3]) != 1:
        return None
    feeds, fetches, targets = {}, [], []
    for number, value in fields(got[3][0]):
        inner = dict(fields(value)) if number in (1, 2) else None
        if number == 1:
            feeds[inner[1].decode()] = tf.make_ndarray(tensor_pb2.TensorProto.FromString(inner[2]))
        elif number == 2:
            fetches.append(inner[1].decode())
        elif number == 3:
            targets.append(value.decode())
    return got[1][0].decode(), graph_pb2.GraphDef.FromString(got[2][0]), feeds, fetches, targets


def other_values(value, rng):
    value = value.copy()
    kind = value.dtype.kind
    for _ in range(rng.randint(1, 3)):
        if not value.size:
            break
        at = rng.randrange(value.size)
        if kind in "fVc":
            value.flat[at] = rng.choice([*([] if kind == "c" else [np.nan, np.inf, -np.inf]), 0, -0., 1, -1, 1e30, value.flat[rng.randrange(value.size)]])
        elif kind in "iu":
            number = rng.choice([0, 1, -1, 2, 3, 5, -2, -7, np.iinfo(value.dtype).max, np.iinfo(value.dtype).min, int(value.flat[0])])
            value.flat[at] = number if number in range(np.iinfo(value.dtype).min, np.iinfo(value.dtype).max + 1) else 0
        elif kind == "b":
            value.flat[at] = not value.flat[at]
        elif kind == "O":
            value.flat[at] = rng.choice([b"", b"a", b"\xff\xfe", "é".encode(), b" ", b"1", value.flat[0]])
    return value


def other_shape(value, rng):
    shape, way = list(value.shape), rng.randrange(5)
    if way == 0 and shape:
        shape[rng.randrange(len(shape))] = 0
        return np.zeros(shape, value.dtype) if value.dtype.kind != "O" else np.full(shape, b"", object)
    if way == 1:
        return value[np.newaxis]
    if way == 2 and shape and shape[0]:
        return value[0]
    if way == 3 and shape:
        return value[:-1]
    return value.reshape(-1)


def emptied(feeds, rng):
    """All feeds with no rows, as a program feeds them after its data's end."""
    return {name: value[:0] if value.ndim else value for name, value in feeds.items()}


def other_type(graph, feeds, rng):
    """A type replaced by another everywhere in the graph."""
    used = sorted({a.type for n in graph.node for a in n.attr.values() if a.WhichOneof("value") == "type" and a.type < 100})
    if not used:
        return feeds
    old, new = rng.choice(used), rng.choice(TYPES)
    old_type = tf.as_dtype(old)
    for node in graph.node:
        for attr in node.attr.values():
            if attr.WhichOneof("value") == "type" and attr.type == old:
                attr.type = new.as_datatype_enum
            for i, inner in enumerate(attr.list.type):
                if inner == old:
                    attr.list.type[i] = new.as_datatype_enum
            if attr.HasField("tensor") and attr.tensor.dtype == old and node.op == "Const":
                attr.tensor.CopyFrom(tf.make_tensor_proto(converted(tf.make_ndarray(attr.tensor), new), dtype=new))
    feeds = {name: converted(v, new) if tf.as_dtype(v.dtype) == old_type else v for name, v in feeds.items()}
    return feeds


def converted(value, new):
    value = np.asarray(value)
    if new == tf.string:
        return np.array([str(v).encode() for v in value.reshape(-1)] + [None], object)[:-1].reshape(value.shape)
    if value.dtype.kind == "O":
        value = np.array([len(v) for v in value.reshape(-1)]).reshape(value.shape)
    with np.errstate(all="ignore"):
        return np.asarray(value).astype(new.as_numpy_dtype)


def other_attribute(graph, rng):
    nodes = [n for n in graph.node if n.op not in ("Placeholder", "Const")]
    node = rng.choice(nodes)
    names = [n for n, a in node.attr.items() if a.WhichOneof("value") in ("b", "i", "f")]
    if not names:
        return
    attr = node.attr[rng.choice(sorted(names))]
    if attr.WhichOneof("value") == "b":
        attr.b = not attr.b
    elif attr.WhichOneof("value") == "i":
        attr.i = rng.choice([0, 1, 2, -1, attr.i + 1])
    else:
        attr.f = rng.choice([0, 1, -1, .5])


def changed(case, rng):
    name, graph, feeds, fetches, targets = case
    graph = graph_pb2.GraphDef.FromString(graph.SerializeToString())
    feeds = dict(feeds)
    ways = rng.choices(["values", "shape", "type", "attribute", "emptied"], [5, 4, 3, 1, 1], k=rng.randint(1, 2))
    if not feeds:
        ways = ["type", "attribute"]
    for way in ways:
        if way == "type":
            feeds = other_type(graph, feeds, rng)
        elif way == "attribute":
            other_attribute(graph, rng)
        elif way == "emptied":
            feeds = emptied(feeds, rng)
        else:
            one = rng.choice(sorted(feeds))
            feeds[one] = (other_values if way == "values" else other_shape)(feeds[one], rng)
    return graph, feeds, fetches, targets, ways


def outcome(target, graph, feeds, fetches, targets):
    config = tf1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.optimizer_options.opt_level = -1
    with tf.Graph().as_default() as g:
        tf.import_graph_def(graph, name="")
        with tf1.Session(target, config=config) as session:
            values = session.run([[g.get_tensor_by_name(f) for f in fetches], [g.get_operation_by_name(t) for t in targets]], feeds,
                                 options=tf1.RunOptions(timeout_in_ms=CASE_SECONDS * 1000))
            return values[0]


def judged(target, *case):
    try:
        return None, outcome(target, *case)
    except tf.errors.OpError as error:
        return error, None


def alike(a, b):
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.dtype.kind not in "fVc":
        return np.array_equal(a, b)
    wide = np.complex128 if a.dtype.kind == "c" else F64
    with np.errstate(all="ignore"):
        close = 3e-2 if a.dtype in (F16, bf16) else 1e-4 if a.dtype in (F32, np.complex64) else 1e-9
        a, b = a.astype(wide), b.astype(wide)
        return np.allclose(a, b, rtol=close, atol=close, equal_nan=True)


def shown(value):
    return np.array2string(np.asarray(value), threshold=12, separator=",").replace("\n", "")[:160]


def words(error):
    """An error's own text, without Python's frames."""
    lines = [l for l in error.message.split("\n\nOriginal stack")[0].splitlines() if l.strip() and not l.startswith(("\t", "    "))]
    lines = [l for l in lines if not l.startswith(("Graph execution", "Detected at", "Node:", "  File", "From /job"))]
    return lines[0][:200] if lines else ""


def compare(case, rng, target):
    """What differs, in a line, and of which kind; None: nothing, or TensorFlow doesn't take it."""
    graph, feeds, fetches, targets, ways = changed(case, rng)
    try:
        theirs, wanted = judged("", graph, feeds, fetches, targets)
    except (ValueError, TypeError, KeyError):
        return "untried", ""  # not a graph
    if theirs and ("No OpKernel was registered" in theirs.message or "is not in the list of allowed" in theirs.message):
        return "untried", ""
    ours, got = judged(target, graph, feeds, fetches, targets)
    what = "%s %s" % (case[0], " ".join("%s=%s%s" % (n, np.asarray(v).dtype, shown(v)) for n, v in feeds.items()))
    if theirs is None and ours is None:
        bad = [(w, g) for w, g in zip(wanted, got) if not alike(w, g)]
        return ("values", "%s: TensorFlow %s, muster %s" % (what, shown(bad[0][0]), shown(bad[0][1]))) if bad else None
    if theirs is None:
        return "refused", "%s: TensorFlow %s; muster: %s" % (what, [shown(w) for w in wanted][:2], words(ours))
    if ours is None:
        return "accepted", "%s: TensorFlow: %s; muster %s" % (what, words(theirs), [shown(g) for g in got][:2])
    if theirs.error_code != ours.error_code:
        return "codes", "%s: TensorFlow %d %s; muster %d %s" % (what, theirs.error_code, words(theirs),
                                                                ours.error_code, words(ours))
    return None


def work(jobs, muster, pipe):
    """In a process of its own, which TensorFlow may crash."""
    server = subprocess.Popen([muster, "serve", "--listen=localhost:0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        target = server.stdout.readline().split()[1]
        for number, (path, index, seed) in jobs:
            pipe.send(("begun", number, None))
            case = parse(read_cases(path)[index]) if (path, index) not in loaded else loaded[path, index]
            result = compare(case, random.Random(seed), target)
            if server.poll() is not None:
                result = ("muster crashed", "%s, seed %s" % (case[0], seed))
            pipe.send(("done", number, result and (result[0], case[0].split(" ")[0], result[1])))
            if server.poll() is not None:
                break
    finally:
        server.kill()
        server.wait()
        pipe.send(("end", -1, None))


loaded = {}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("muster")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--each", type=int, default=2, help="differences printed of each kind and operation")
    parser.add_argument("goldens", nargs="*")
    options = parser.parse_args()
    for path in options.goldens or sorted(glob.glob(FOLDER + "/*.golden")):
        for index, data in enumerate(read_cases(path)):
            case = parse(data)
            if case and not any(word in n.op for n in case[1].node for word in UNLIKE):
                loaded[path, index] = case
    jobs = [(i, (path, index, "%d %s %d" % (options.seed, os.path.basename(path), index + 100000 * r)))
            for i, (r, (path, index)) in enumerate((r, key) for r in range(options.rounds) for key in loaded)]
    counts, told, at = collections.Counter(), collections.Counter(), 0
    while at < len(jobs):
        ours, theirs = multiprocessing.Pipe(False)
        process = multiprocessing.get_context("fork").Process(target=work, args=(jobs[at:], options.muster, theirs))
        process.start()
        theirs.close()
        begun = None
        try:
            while True:
                if not ours.poll(2 * CASE_SECONDS + 10):
                    process.kill()
                    break
                word, number, result = ours.recv()
                if word == "begun":
                    begun = number
                elif word == "done":
                    at, begun = number + 1, None
                    counts[result[0] if result else "same"] += 1
                    if result and result[2]:
                        told[result[:2]] += 1
                        if told[result[:2]] <= options.each:
                            print("%s: %s" % (result[0], result[2]), flush=True)
                else:
                    break
        except EOFError:
            pass
        process.join()
        if begun is not None:  # TensorFlow crashed, or never answered
            counts["TensorFlow ended"] += 1
            at = begun + 1
    print(", ".join("%d %s" % (n, kind) for kind, n in counts.most_common()))
    return 1 if set(counts) - {"same", "untried", "TensorFlow ended"} else 0


if __name__ == "__main__":
    sys.exit(main())
