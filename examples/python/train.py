#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The digits job from Python: a chief that prepares the model and saves it, or a worker that waits for it; both train.

    train.py --master=local                              # the engine in this process: one task is the whole job
    train.py --master=grpc://localhost:2222 &            # beside `muster serve`: the chief …
    train.py --master=grpc://localhost:2222 --task=worker:1   # … and a worker
"""
import argparse

import muster
import numpy as np

BATCH = 32
TRAINING_ROWS = 1500  # the rest is for the test
PATIENCE = 120


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default="tests/fixtures", help="where digits.meta and its arrays are")
    parser.add_argument("--master", default="local")
    parser.add_argument("--task", default="chief:0")
    parser.add_argument("--checkpoint-dir", default="run")
    parser.add_argument("--steps", type=int, default=1000, help="the global step at which the job ends")
    return parser.parse_args()


def start(args, scaffold, saver):
    master = muster.Master.new_for_target(args.master)
    manager = muster.SessionManager.new_for_ops(
        scaffold.graph(), scaffold.ready_op(), scaffold.ready_for_local_init_op(), scaffold.local_init_op(), "digits", args.task)
    if not args.task.startswith("chief"):
        session = manager.wait_for_session(master, timeout=PATIENCE)
        print("ready")
        return session
    session = manager.prepare_session(master, init_op=scaffold.init_op(), saver=saver, checkpoint_dir=args.checkpoint_dir, timeout=PATIENCE)
    restored_from = session.manager_restored_from()
    print("restored %s" % restored_from if restored_from else "initialised")
    return session


def main():
    args = arguments()
    x, y = np.load(args.data + "/digits_x.npy"), np.load(args.data + "/digits_y.npy")
    scaffold = muster.Scaffold.load(args.data + "/digits.meta")
    saver = muster.Saver(scaffold.meta_graph())
    with start(args, scaffold, saver) as session:
        while int(session.run(scaffold.global_step())) < args.steps:
            rows = np.random.randint(TRAINING_ROWS, size=BATCH)
            _, loss = session.run([scaffold.train_op(), "loss:0"], {"x:0": x[rows], "y:0": y[rows]}, timeout=PATIENCE)
        accuracy = session.run("accuracy:0", {"x:0": x[TRAINING_ROWS:], "y:0": y[TRAINING_ROWS:]}, timeout=PATIENCE)
        print("accuracy %.1f %%" % (100 * float(accuracy)))
        if args.task.startswith("chief"):
            print("saved", saver.save(session, args.checkpoint_dir, int(session.run(scaffold.global_step())), timeout=PATIENCE))


if __name__ == "__main__":
    main()
