# SPDX-License-Identifier: Apache-2.0
"""tensorflow_census.py OURS THEIRS: TensorFlow's Python client on two servers, HOST:PORT each.

Prints a line for one addition and for each program of the census that OURS has the operations for: a
name, and the median seconds that a step takes on each.
"""

import contextlib
import os
import statistics
import sys
import tempfile
import threading
import time

from tensorflow_quietly import tf

sys.path.insert(0, "tests/tensorflow")
tf.disable_v2_behavior()
tf.logging.set_verbosity(tf.logging.FATAL)

import programs
from programs import inputs

ROUNDS = 12
STEPS = 25
FEEDS = 8

inputs.Fed.EPOCHS = None  # without end
threading.excepthook = lambda failure: None  # of queue runners, when their session ends


def timed(runs):
    """The median of each, turn by turn, so that what else the machine does falls on all alike."""
    seconds = [[] for _ in runs]
    for turn in range(-2, ROUNDS):
        for run, taken in zip(runs, seconds):
            started = time.perf_counter()
            for i in range(STEPS):
                run(i)
            if turn >= 0:  # the first two warm up
                taken.append((time.perf_counter() - started) / STEPS)
    return [statistics.median(taken) for taken in seconds]


def addition(targets):
    with tf.Graph().as_default(), contextlib.ExitStack() as stack:
        x = tf.placeholder(tf.float32, [])
        total = x + 2.0
        sessions = [stack.enter_context(tf.Session(target)) for target in targets]
        return timed([lambda i, session=session: session.run(total, {x: 40.0}) for session in sessions])


def steps(program, targets):
    feeds = [program.feed(i) for i in range(FEEDS)]
    with contextlib.ExitStack() as stack:
        sessions = [stack.enter_context(tf.Session(target, graph=program.graph)) for target in targets]
        for session in sessions:
            stack.enter_context(program.started(session))
        return timed([lambda i, session=session: session.run(program.train, feeds[i % FEEDS]) for session in sessions])


def main(*addresses):
    targets = ["grpc://" + address for address in addresses]
    print("one addition", *addition(targets), sep="\t", flush=True)
    for name, program in programs.ALL.items():
        for kind in programs.KINDS:
            for target in targets:
                tf.Session.reset(target)
            # What it lacks fails; in the thread of a queue's runner, the queue ends.
            lacking = contextlib.suppress(tf.errors.NotFoundError, tf.errors.OutOfRangeError)
            with tempfile.TemporaryDirectory() as folder, lacking:
                print("%s/%s" % (name, kind), *steps(program(kind, folder), targets), sep="\t", flush=True)
    print("", flush=True)


main(*sys.argv[1:])
os._exit(0)  # threads of TensorFlow's may not end
