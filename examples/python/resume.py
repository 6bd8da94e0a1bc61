#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""resume.py DATA DIRECTORY: trains a classifier of digits, saves every 200 steps, and resumes when it is run again."""
import sys

import muster
import numpy as np

STEPS, ROWS, BATCH = 1000, 1500, 32  # the rows after these are for the test
data, directory = sys.argv[1:]
x, y = np.load(data + "/images.npy"), np.load(data + "/labels.npy")
model = muster.Scaffold.load(data + "/digits.meta")
saver = muster.Saver(model.meta_graph())
manager = muster.SessionManager.new_for_ops(model.graph(), model.ready_op(), None, model.local_init_op())

with manager.prepare_session(muster.LocalMaster(), init_op=model.init_op(), saver=saver, checkpoint_dir=directory, timeout=60) as session:
    step = int(session.run(model.global_step()))
    print("resumed at step %d" % step if step else "initialised")
    while step < STEPS:
        rows = np.random.randint(ROWS, size=BATCH)
        _, loss = session.run([model.train_op(), "loss:0"], {"x:0": x[rows], "y:0": y[rows]})
        step += 1
        if step % 200 == 0:
            print("step %d, loss %.3f, saved %s" % (step, loss, saver.save(session, directory, step)))
    accuracy = session.run("accuracy:0", {"x:0": x[ROWS:], "y:0": y[ROWS:]})
    print("accuracy %.1f %%" % (100 * float(accuracy)))
