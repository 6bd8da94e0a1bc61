#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the engine with TensorFlow on random changes of the recorded cases, and prints the differences.

A recorded case of one step is run with other values (NaN, infinities, zeros, negative and repeated ones), other shapes
(empty, one dimension more or less, matrices of ids), other types (booleans, strings, small integers, also of indices
alone) and other attributes of those that the operation declares. Run by hand, some minutes for each round:

    bazel run //tests/engine:compare_random -- [--seed=N] [--rounds=N] [--ops=Add,Sub]

The last line counts the cases. Compared are "same" (alike values, or failures of one code), and what differs: "values",
"refused" and "accepted" by the engine alone, "codes", and "muster crashed". "excluded" differs by a rule of differences.py: in what
TensorFlow leaves undefined or gets wrong. "untried" is no graph or has no kernel in TensorFlow, and "TensorFlow ended" crashed
it or took too long. Each printed case ends with the seed that makes it again.
"""
import argparse
import collections
import glob
import multiprocessing
import os
import random
import resource
import subprocess
import sys
import warnings

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tensorflow"))

import peer
from peer import die_with_parent
from differences import DIFFERENT, UNDEFINED, Difference, difference, shown
from recording import *
from tensorflow.core.framework import graph_pb2, tensor_pb2, types_pb2
from tensorflow.python.framework import op_def_registry

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "goldens")
TYPES = [tf.bool, tf.string, tf.int8, tf.uint8, tf.int16, tf.uint16, tf.int32, tf.int64, tf.uint32, tf.uint64, tf.half, tf.bfloat16,
         tf.float32, tf.float64, tf.complex64]
CASE_SECONDS = 20
PIECE = 400       # cases of one process
MEMORY = 6 << 30  # address space of each
# What one can't compare: drawn numbers, times, what is printed, and what TensorFlow leaves undefined.
UNLIKE = ("Random", "Multinomial", "Sampler", "Stateless", "TruncatedNormal", "Timestamp", "Print", "Summary", "Shuffle",
          "ParameterizedTruncatedNormal", "Rng", "Empty", "StringFormat")


COMPARED = DIFFERENT | {"same"}


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
    feeds = {name: converted(v, new) if tf.as_dtype(np.asarray(v).dtype) == old_type else v for name, v in feeds.items()}
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
    """An attribute that the operation declares, given by the graph or not."""
    node = rng.choice([n for n in graph.node if n.op not in ("Placeholder", "Const")])
    declared = [a for a in op_def_registry.get(node.op).attr if a.type in ("bool", "int", "float", "string", "list(int)")
                and a.name not in ("N", "container", "shared_name")]
    if not declared:
        return
    chosen = rng.choice(declared)
    attr = node.attr[chosen.name]
    if attr.WhichOneof("value") is None:
        attr.CopyFrom(chosen.default_value)
    if chosen.type == "bool":
        attr.b = not attr.b
    elif chosen.type == "int":
        attr.i = rng.choice([0, 1, 2, -1, attr.i + 1])
    elif chosen.type == "float":
        attr.f = rng.choice([0, 1, -1, .5, np.nan, np.inf])
    elif chosen.type == "string":
        attr.s = rng.choice([*chosen.allowed_values.list.s, b"", b"IGNORE", b"surely unknown"])
    elif attr.list.i:
        attr.list.i[rng.randrange(len(attr.list.i))] = rng.choice([0, 1, 2, -1])


def other_index_type(graph, feeds, rng):
    """A type of indices, axes or sizes replaced where one node takes it, and in what it is fed from."""
    node = rng.choice([n for n in graph.node if n.op not in ("Placeholder", "Const")])
    names = sorted(n for n, a in node.attr.items() if a.type in (types_pb2.DT_INT32, types_pb2.DT_INT64))
    if not names:
        return feeds
    name, new = rng.choice(names), rng.choice([tf.int16, tf.int32, tf.int64, tf.uint16, tf.uint64])
    node.attr[name].type = new.as_datatype_enum
    inputs = {i.name: i.type_attr for i in op_def_registry.get(node.op).input_arg}
    fed = [i.split(":")[0] for i in node.input]
    for source, attr in zip(fed, inputs.values()):
        if attr == name and source + ":0" in feeds:
            feeds[source + ":0"] = converted(feeds[source + ":0"], new)
            for other in graph.node:
                if other.name == source and other.op == "Placeholder":
                    other.attr["dtype"].type = new.as_datatype_enum
    return feeds


def repeated(value, rng):
    """A row twice: an index, an id, a word, a number."""
    value = value.copy()
    if value.ndim and len(value) > 1:
        a, b = rng.sample(range(len(value)), 2)
        value[a] = value[b]
    return value


def negative(value, rng):
    """Counted from the end, as an axis or an index may be."""
    if value.dtype.kind not in "if":
        return value
    value = np.array(value)
    if value.size:
        at = rng.randrange(value.size)
        value.flat[at] = -abs(value.flat[at]) - rng.choice([0, 1])
    return value


WAYS = {"values": 5, "shape": 4, "type": 3, "attribute": 2, "index type": 1, "repeated": 1, "negative": 1, "emptied": 1}
ONE = {"values": other_values, "shape": other_shape, "repeated": repeated, "negative": negative}


def changed(case, rng):
    name, graph, feeds, fetches, targets = case
    graph = graph_pb2.GraphDef.FromString(graph.SerializeToString())
    feeds = dict(feeds)
    for node in graph.node:  # a constant is as good as what is fed, half of the time
        if node.op == "Const" and rng.random() < .5:
            feeds[node.name + ":0"] = tf.make_ndarray(node.attr["value"].tensor)
    ways = rng.choices(list(WAYS), list(WAYS.values()), k=rng.randint(1, 2))
    if not feeds:
        ways = ["type", "attribute"]
    for way in ways:
        if way == "type":
            feeds = other_type(graph, feeds, rng)
        elif way == "index type":
            feeds = other_index_type(graph, feeds, rng)
        elif way == "attribute":
            other_attribute(graph, rng)
        elif way == "emptied":
            feeds = emptied(feeds, rng)
        else:
            one = rng.choice(sorted(feeds))
            feeds[one] = ONE[way](feeds[one], rng)
    return graph, feeds, fetches, targets, ways


def outcome(target, graph, feeds, fetches, targets):
    config = tf1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1, isolate_session_state=True)
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


def compare(case, rng, target):
    """What differs, in a line, and of which kind; None: nothing, or TensorFlow doesn't take it."""
    try:
        graph, feeds, fetches, targets, ways = changed(case, rng)
        theirs, wanted = judged("", graph, feeds, fetches, targets)
    except (ValueError, TypeError, KeyError, OverflowError):
        return "untried", ""  # not a graph
    if theirs and ("No OpKernel was registered" in theirs.message or "is not in the list of allowed" in theirs.message or
                   "No WhereOp available" in theirs.message):
        return "untried", ""
    ours, got = judged(target, graph, feeds, fetches, targets)
    kind, text = difference(theirs, wanted, ours, got)
    if kind not in DIFFERENT:
        return kind, ""
    judged_by = Difference(kind, graph, feeds, theirs, wanted, ours, got)
    for rule, applies in UNDEFINED.items():
        if applies(judged_by):
            return "excluded: " + rule, ""
    attributes = {n: a for n, a in judged_by.attrs.items() if a.WhichOneof("value") in ("b", "i", "f", "s", "type")}
    return kind, "%s %s %s: %s" % (case[0], " ".join("%s=%s%s" % (n, np.asarray(v).dtype, shown(v)) for n, v in feeds.items()),
                                   " ".join("%s=%s" % (n, str(a).strip()) for n, a in attributes.items()), text)


def work(jobs, muster, pipe):
    """Some jobs in a process of its own, which TensorFlow may crash, and which forgets what TensorFlow keeps of each graph."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    server = subprocess.Popen([muster, "serve", "--listen=localhost:0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              preexec_fn=die_with_parent)
    try:
        target = server.stdout.readline().split()[1]
        for number, (key, seed) in jobs:
            pipe.send(("begun", number, None))
            case = loaded[key]
            result = compare(case, random.Random(seed), target)
            if server.poll() is not None:
                result = ("muster crashed", "%s, seed %s" % (case[0], seed))
            pipe.send(("done", number, result))
            if server.poll() is not None:
                break
    finally:
        server.kill()
        server.wait()
        pipe.send(("end", -1, None))


def results(jobs, muster):
    """Each job's number and result, as they come; "TensorFlow ended" where it crashed or never answered."""
    at = 0
    while at < len(jobs):
        pipe, theirs = multiprocessing.Pipe(False)
        process = multiprocessing.get_context("fork").Process(target=work, args=(list(enumerate(jobs))[at:at + PIECE], muster, theirs))
        process.start()
        theirs.close()
        begun = None
        try:
            while pipe.poll(2 * CASE_SECONDS + 10):
                word, number, result = pipe.recv()
                if word == "end":
                    break
                begun = number if word == "begun" else None
                if word == "done":
                    at = number + 1
                    yield number, result
        except EOFError:
            pass
        process.kill()
        process.join()
        if begun is not None:
            at = begun + 1
            yield begun, ("TensorFlow ended", "")


loaded = {}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=2, help="how often each recorded case is changed")
    parser.add_argument("--each", type=int, default=2, help="differences printed of each kind and operation")
    parser.add_argument("--ops", default="", help="only cases whose name begins with one of these, as Add,Sub")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # of numbers that become others
    for path in sorted(glob.glob(FOLDER + "/*.golden")):
        for index, data in enumerate(read_cases(path)):
            case = parse(data)
            if case and case[0].startswith(tuple(options.ops.split(","))) and not any(w in n.op for n in case[1].node for w in UNLIKE):
                loaded[os.path.basename(path), index] = case
    jobs = [(key, "%d %s %d %d" % (options.seed, *key, r)) for r in range(options.rounds) for key in loaded]
    counts, told, ops = collections.Counter(), collections.Counter(), collections.Counter()
    for number, (kind, text) in results(jobs, peer.MUSTER):
        name, counts[kind] = loaded[jobs[number][0]][0].split(" ")[0], counts[kind] + 1
        if kind in COMPARED:
            ops.update({n.op for n in loaded[jobs[number][0]][1].node} - {"Placeholder", "Const"})
        told[kind, name] += 1
        if text and (told[kind, name] <= options.each):
            print("%s: %s [%s]" % (kind, text, jobs[number][1]), flush=True)
    print("%d compared, of %d operations: %s" % (sum(counts[k] for k in COMPARED), len(ops),
                                                 ", ".join("%d %s" % (n, kind) for kind, n in counts.most_common())))
    return 1 if set(counts) & DIFFERENT else 0


if __name__ == "__main__":
    sys.exit(main())
