# SPDX-License-Identifier: Apache-2.0
"""tensorflow_start.py GRAPH READY_OP [HOST:PORT]: TensorFlow's SessionManager on that server, or on
TensorFlow's own in this process.

Prints how long prepare_session takes for a chief, and wait_for_session for a worker, in seconds.
"""

import os
import sys
import time

from tensorflow_manager import manager, read
from tensorflow_quietly import tf


def main(path, ready_op, address=None):
    definition = read(path)
    target = "grpc://" + address if address else tf.train.Server.create_local_server().target
    graph, chief = manager(definition, ready_op)
    with graph.as_default():
        init = graph.get_operation_by_name("init")
        started = time.perf_counter()
        chief.prepare_session(target, init_op=init)
        print(time.perf_counter() - started, flush=True)
    graph, worker = manager(definition, ready_op)
    with graph.as_default():
        started = time.perf_counter()
        worker.wait_for_session(target, max_wait_secs=600)
        print(time.perf_counter() - started, flush=True)


main(*sys.argv[1:])
sys.stdout.flush()
os._exit(0)  # a server of TensorFlow's can't be stopped
