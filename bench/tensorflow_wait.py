# SPDX-License-Identifier: Apache-2.0
"""tensorflow_wait.py HOST:PORT GRAPH READY_OP N: TensorFlow's SessionManager waits in N threads.

Prints a line once they have begun, and for each the instant at which it was back, on the machine's
monotonic clock, in seconds.
"""

import os
import sys
import threading
import time

import tensorflow_manager


def main(address, path, ready_op, n):
    definition = tensorflow_manager.read(path)
    graph, worker = tensorflow_manager.manager(definition, ready_op)
    backs = []

    def wait():
        with graph.as_default():
            worker.wait_for_session("grpc://" + address, max_wait_secs=600)
        backs.append(time.monotonic())

    threads = [threading.Thread(target=wait) for _ in range(int(n))]
    for thread in threads:
        thread.start()
    print("waiting", flush=True)
    for thread in threads:
        thread.join()
    for back in backs:
        print(back)


main(*sys.argv[1:])
sys.stdout.flush()
os._exit(0)  # their threads outlive main
