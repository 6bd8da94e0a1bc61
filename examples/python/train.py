#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The digits job from Python: a chief that prepares the model and saves it, or a worker that waits for it; both train.

    train.py --master=local                              # the engine in this process: one task is the whole job
    train.py --master=grpc://localhost:2222 &            # beside `muster serve`: the chief …
    train.py --master=grpc://localhost:2222 --task=worker:1   # … and a worker
"""
import argparse
import random
import struct

import gi

gi.require_version("Muster", "0")
from gi.repository import GLib, Muster

BATCH = 32
TRAINING_ROWS = 1500  # the rest is for the test
PATIENCE_US = 120 * Muster.SECOND


class Data:
    """Rows of the pictures and of what they show."""

    def __init__(self, folder):
        self.arrays = [(name, Muster.npy_load("%s/digits_%s.npy" % (folder, name[0]))) for name in ("x:0", "y:0")]
        self.n_rows = self.arrays[0][1].shape()[0]

    def feed(self, step, rows):
        for name, array in self.arrays:
            data, shape = array.to_bytes().get_data(), array.shape()
            size = len(data) // self.n_rows
            picked = b"".join(data[row * size:(row + 1) * size] for row in rows)
            step.feed(name, Muster.Tensor.new_from_bytes(array.dtype(), [len(rows), *shape[1:]], GLib.Bytes.new(picked)))


def deadline():
    return Muster.deadline_after(Muster.system_clock().now_us(), PATIENCE_US)


def scalar(tensor):
    return struct.unpack("<f" if tensor.dtype() == Muster.DType.FLOAT else "<q", tensor.to_bytes().get_data())[0]


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default="tests/fixtures", help="where digits.meta and its arrays are")
    parser.add_argument("--master", default="local")
    parser.add_argument("--task", default="chief:0")
    parser.add_argument("--checkpoint-dir", default="run")
    parser.add_argument("--steps", type=int, default=1000, help="the global step at which the job ends")
    return parser.parse_args()


def connect(target):
    if target == "local":
        gi.require_version("MusterEngine", "0")
        from gi.repository import MusterEngine

        MusterEngine.Master.offer()
    return Muster.Master.new_for_target(target)


def start(args, master, scaffold, saver):
    manager = Muster.SessionManager.new_for_ops(
        scaffold.graph(), scaffold.ready_op(), scaffold.ready_for_local_init_op(), scaffold.local_init_op(), "digits", args.task)
    report = Muster.SessionReport()
    if args.task.startswith("chief"):
        options = Muster.PrepareOptions.new(scaffold.init_op(), saver, args.checkpoint_dir)
        options.timeout_us = PATIENCE_US
        session = manager.prepare_session(master, options, report, None)
        print("restored %s" % report.restored_from if report.restored_from else "initialised")
    else:
        session = manager.wait_for_session(master, PATIENCE_US, report, None)
        print("ready")
    report.clear()
    return session


def train(session, scaffold, data, until_step):
    step = Muster.StepBuilder.new()
    step.target(scaffold.train_op())
    step.fetch("loss:0")
    while scalar(session.fetch(scaffold.global_step(), deadline(), None)) < until_step:
        data.feed(step, random.sample(range(TRAINING_ROWS), BATCH))
        loss = step.run(session, PATIENCE_US, None)[0]
    return scalar(loss)


def accuracy(session, data):
    step = Muster.StepBuilder.new()
    step.fetch("accuracy:0")
    data.feed(step, range(TRAINING_ROWS, data.n_rows))
    return scalar(step.run(session, PATIENCE_US, None)[0])


def main():
    args = arguments()
    data = Data(args.data)
    scaffold = Muster.Scaffold.load(args.data + "/digits.meta")
    saver = Muster.Saver.new(scaffold.meta_graph(), None)
    session = start(args, connect(args.master), scaffold, saver)
    if scalar(session.fetch(scaffold.global_step(), deadline(), None)) < args.steps:
        print("loss %.3f" % train(session, scaffold, data, args.steps))
    print("accuracy %.1f %%" % (100 * accuracy(session, data)))
    if args.task.startswith("chief"):
        step = scalar(session.fetch(scaffold.global_step(), deadline(), None))
        print("saved", saver.save(session, args.checkpoint_dir, step, deadline(), None))
    session.close(deadline(), None)


if __name__ == "__main__":
    main()
