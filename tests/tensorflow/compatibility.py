# SPDX-License-Identifier: Apache-2.0
"""docs/compatibility.md, from what the census has seen: which master serves what, what differs and why."""
import inspect
import re

import tensorflow as tf

import programs
from programs import stories

v1 = tf.compat.v1

LOCAL, TENSORFLOW, GATEWAY = "local", "tensorflow", "gateway"

HEAD = """# What runs where

Written by the census (`bazel run //tests/tensorflow:census_test`). It runs unmodified programs of
TensorFlow 1 on TensorFlow's own server and on `muster serve`, and compares their results (relative
1e-4) and the types of their errors. It fails when this file is stale.

| `muster serve` | is |
|---|---|
| `--master=local`, the default | muster's own engine: a few milliseconds to start, no TensorFlow needed |
| `--master=tensorflow[:PATH]` | TensorFlow's runtime as a child process: all of TensorFlow's operations |
| `--master=grpc://HOST:PORT` | a gateway in front of TensorFlow's server, or muster's: what that one has |

Below, `local` marks what the engine serves; the other two serve that as well. `tensorflow` marks
what needs one of those. If the engine lacks an operation, its error names the operation, the nodes
that use it, and this remedy.
"""

# MasterService's calls: the story that makes them, and what differs on the engine.
CALLS = {
    "CreateSession": ("calls", "what the engine lacks is refused once a step needs it, not at creation; devices and "
                      "ConfigProto: [programs written for TensorFlow](operating/tensorflow.md#programs-written-for-tensorflow)"),
    "ExtendSession": ("calls", ""),
    "PartialRunSetup": ("partial_runs", "at most 1,000 are open in a session"),
    "RunStep": ("calls", "an error for a reference variable without a value names the variable; "
                "TensorFlow's names a node of its own making, which no program knows"),
    "CloseSession": ("calls", ""),
    "ListDevices": ("calls", "one CPU, which stands for all jobs and tasks; its own name is in `/job:localhost`"),
    "Reset": ("calls", "without containers it clears all of them, and blocked steps end; TensorFlow's server clears the "
              "default one, and dies of blocked steps"),
    "MakeCallable": ("calls", "no `tensor_connection`"),
    "RunCallable": ("calls", "takes as many tensors as it was made for"),
    "ReleaseCallable": ("calls", ""),
}

# TensorFlow's classes for its programs: what proves them, by class; where nothing does, why.
BY_PROGRAM = {
    "train.AdadeltaOptimizer": "mlp_adadelta",
    "train.AdagradDAOptimizer": "mlp_adagrad_da",
    "train.AdagradOptimizer": "mlp_adagrad embedding_adagrad",
    "train.AdamOptimizer": "mlp_adam embedding_partitioned_ema",
    "train.ExponentialMovingAverage": "embedding_partitioned_ema",
    "train.FtrlOptimizer": "mlp_ftrl",
    "train.GradientDescentOptimizer": "linreg mlp_sgd",
    "train.MomentumOptimizer": "mlp_momentum batchnorm bag_of_words",
    "train.Optimizer": "mlp_sgd",
    "train.ProximalAdagradOptimizer": "mlp_proximal_adagrad",
    "train.ProximalGradientDescentOptimizer": "mlp_proximal_descent",
    "train.QueueRunner": "queue_words queue_shuffled",
    "train.RMSPropOptimizer": "mlp_rms",
    "train.Saver": "sharded_saver mutable_table",
    "train.SyncReplicasOptimizer": "sync_replicas",
    "train.VocabInfo": "warm_start",
    "queue.FIFOQueue": "queue_words",
    "queue.RandomShuffleQueue": "queue_shuffled",
    "queue.QueueBase": "queue_words",
    "lookup.KeyValueTensorInitializer": "lookup_table",
    "lookup.StaticHashTable": "lookup_table",
    "lookup.StaticVocabularyTable": "lookup_file",
    "lookup.TextFileIndex": "lookup_file",
    "lookup.TextFileInitializer": "lookup_file",
    "lookup.experimental.MutableHashTable": "mutable_table",
    "TextLineReader": "queue_input",
    "data.Dataset": "dataset_iterator",
}
BY_OP = {
    "queue.PaddingFIFOQueue": "PaddingFIFOQueueV2",
    "queue.PriorityQueue": "PriorityQueueV2",
    "lookup.experimental.DenseHashTable": "MutableDenseHashTableV2",
    "ConditionalAccumulator": "ResourceConditionalAccumulator",
    "SparseConditionalAccumulator": "SparseConditionalAccumulator",
}
OTHERS = {
    "train.ClusterSpec": "a value in the program",
    "train.Server": "`muster serve` stands in its place",
    "train.Checkpoint": "for eager programs; not tried here",
    "train.CheckpointManager": "for eager programs; not tried here",
    "train.CheckpointOptions": "for eager programs; not tried here",
}

# Why the engine lacks an operation: the first that fits.
WHY = [
    (r"fn:", "inside a function"),
    (r"Conv2D|MaxPool", "convolutions"),
    (r"(Stateless)?(If|While)$|Enter$|Exit$|NextIteration$|LoopCond$|Stack(Pop|Push)?V2$|ControlTrigger$"
     r"|EmptyTensorList$", "control flow"),
    (r".*Dataset|.*Iterator", "data sets"),
    (r".*Reader", "readers"),
]


def cell(masters):
    return " ".join("`%s`" % master for master in masters)


def table(heads, rows):
    lines = ["| %s |" % " | ".join(heads), "|%s" % ("---|" * len(heads))]
    lines += ["| %s |" % " | ".join(row) for row in rows]
    return "\n".join(lines) + "\n"


def calls(passed):
    rows = [(name, cell(served(passed, story)), note) for name, (story, note) in CALLS.items()]
    return "\n## Calls of MasterService\n\n" + table(["call", "served by", "what differs on the engine"], rows)


def served(passed, *names):
    """The master that is needed for what these show, if all of them passed on it."""
    tried = [key for name in names
             for key in ([(name, kind) for kind in programs.KINDS] if name in programs.ALL else [name])]
    masters = [passed.get(key, set()) for key in tried]
    common = set.intersection(*masters) if masters else set()
    return [LOCAL] if LOCAL in common else [TENSORFLOW] if TENSORFLOW in common else []


def known_classes():
    """What TensorFlow has for its programs to use, that isn't a message."""
    found = {"Session", "InteractiveSession"}
    for prefix, module in {"train": v1.train, "queue": tf.queue, "lookup": tf.lookup,
                           "lookup.experimental": tf.lookup.experimental}.items():
        found |= {"%s.%s" % (prefix, name) for name, value in inspect.getmembers(module, inspect.isclass)
                  if not hasattr(value, "DESCRIPTOR")}
    return found


def classes(passed, engine):
    rows = {}
    for story, (_, names) in stories.STORIES.items():
        for name in names.split():
            full = name if name.endswith("Session") and "Monitored" not in name else "train." + name
            rows.setdefault(full, []).append(story)
    for name, shown in BY_PROGRAM.items():
        rows.setdefault(name, []).extend(shown.split())
    lines = {name: (cell(served(passed, *shown)), ", ".join(shown)) for name, shown in rows.items() if shown}
    lines.update((name, (cell([LOCAL if op in engine else TENSORFLOW]), "`%s`" % op)) for name, op in BY_OP.items())
    lines.update((name, ("", why)) for name, why in OTHERS.items())
    missing = known_classes() - set(lines)
    assert not missing, "classes that the table doesn't tell of: %s" % sorted(missing)
    return """
## Classes of `tf.compat.v1`

Unmodified, in Python, with a session on the master. Those of muster in C, and where
they differ: [TensorFlow's training classes in C](operating/tensorflow.md#tensorflows-training-classes-in-c).

""" + table(
        ["class", "served by", "shown by"], [("`%s`" % name, *line) for name, line in sorted(lines.items())])


def listed_programs(passed):
    rows = []
    for name, program in programs.ALL.items():
        about = (inspect.getdoc(program) or "").splitlines()
        rows.append((name, *(cell(served(passed, (name, kind))) for kind in programs.KINDS), about[0]))
    return "\n## Programs\n\nEach with reference and with resource variables; `tests/tensorflow/programs/`.\n\n" + table(
        ["program", "reference", "resource", "what it is"], rows)


def why(op):
    for pattern, reason in WHY:
        if re.match(pattern, op):
            return reason
    raise AssertionError("nothing says why the engine lacks %s" % op)


def operations(users, engine):
    rows = []
    for op in sorted(set(users) | set(engine), key=str.lower):
        if op.startswith("fn:") and op[3:] in engine:
            continue  # told by its own row; that functions are missing, by theirs
        using = users.get(op, set())
        rows.append(("`%s`" % op, cell([LOCAL if op in engine else TENSORFLOW]), str(len(using)) if using else "",
                     engine[op].replace("|", ", ") if op in engine else why(op)))
    return """
## Checkpoints without a state file

TensorFlow's training starts a new model if the directory has no file `checkpoint`, and its saves replace checkpoints
that lie there. muster's doesn't: it resumes from what `checkpoint.muster` names, or refuses to start beside files with
its saves' names ([saving and restoring](operating/saving.md#saving-and-restoring)). `tf.compat.v1.train.Saver` itself is unchanged on any master.

## Object stores

The operations of a saver (`SaveV2`, `RestoreV2`, `MergeV2Checkpoints`) take `s3://` paths on muster's
engine, below a prefix that `--data-dir` allows. TensorFlow's `Saver.save ()` also writes files of its
own on the client, the state file `checkpoint` and the meta graph, through TensorFlow's file systems,
which have S3 only with the package `tensorflow-io`. So run the saver's operations
(`saver.saver_def.save_tensor_name`), call `save ()` with a local path, or save with `muster save`.

## Operations

The operations that the engine has or that programs of the census use; "programs" is the number of
programs, of %d. The engine supports these dtypes: `number` is every number, `real` those that
aren't complex, `float` half, bfloat16, float and double, `integer` every integer, `any` all. They
are TensorFlow's dtypes for the CPU. If the engine lacks an operation, the last column is its group.
`fn:` marks operations inside functions of the graph's library, which need `tensorflow`.

""" % (len(programs.ALL) * len(programs.KINDS)) + table(["operation", "served by", "programs", "dtypes, or what it belongs to"], rows)


def render(passed, users, engine):
    """passed: on which masters each story and each (program, kind) did as on TensorFlow's server; users: which
    programs use an op; engine: its ops with their dtypes."""
    return (HEAD + calls(passed) + classes(passed, engine) + listed_programs(passed) + operations(users, engine))
