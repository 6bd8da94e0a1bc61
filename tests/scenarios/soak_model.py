# SPDX-License-Identifier: Apache-2.0
"""The model of the soaks (tests/doubles/seen_model.h) for `muster train`: its files, and a look at its checkpoints."""
import os
import re
import struct
import subprocess

TASK = os.path.abspath("tests/scenarios/soak_task")
N_ROWS, BATCH, SEED = 60, 7, 5  # as in tests/doubles/seen_model.h
BATCHES_AN_EPOCH = N_ROWS // BATCH
N_SLOTS = 64  # of a job whose tasks come and go, unless --max-tasks is larger


def write_rows(path):
    header = "{'descr': '<i8', 'fortran_order': False, 'shape': (%d,), }" % N_ROWS
    header += " " * (63 - (len(header) + 10) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() +
                   b"".join(struct.pack("<q", row) for row in range(N_ROWS)))


def write(model, rows, work):
    subprocess.run([TASK, "write", model, str(work)], check=True, timeout=60)
    write_rows(rows)


def check(prefix, n_tasks):
    return subprocess.run([TASK, "check", prefix, str(n_tasks)], stdout=subprocess.PIPE, text=True, timeout=60)


def check_dealt(prefix):
    return check(prefix, N_SLOTS)


def listed(directory):
    """The checkpoints that a directory names."""
    try:
        with open(os.path.join(directory, "checkpoint")) as state:
            names = re.findall(r'^all_model_checkpoint_paths: "(.*)"$', state.read(), re.MULTILINE)
    except FileNotFoundError:
        return set()
    return {os.path.join(directory, name) for name in names}
