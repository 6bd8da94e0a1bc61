# SPDX-License-Identifier: Apache-2.0
"""Many Python clients on one server: no error, nothing lost, and the memory is back once they are gone."""
import os
import random
import threading
import time

import numpy as np
import tensorflow as tf

import peer

v1 = tf.compat.v1
v1.disable_v2_behavior()
v1.logging.set_verbosity(v1.logging.ERROR)

LONG = "MUSTER_LONG" in os.environ
CLIENTS = 64 if LONG else 16
SECONDS = 60 if LONG else 4
# What an allocator may keep of what was freed, for threads that come and go.
SLACK_BYTES = 8 << 20


def resident(pid):
    with open("/proc/%d/statm" % pid, encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Model:
    """A client's own line to fit, and a count that all share."""

    def __init__(self, i):
        self.graph = tf.Graph()
        with self.graph.as_default():
            self.total = v1.get_variable("total", initializer=np.int64(0), use_resource=True)
            self.count = v1.assign_add(self.total, 1)
            with v1.variable_scope("client%d" % i, use_resource=i % 2 == 0):
                self.x = v1.placeholder(tf.float32, [None, 64])
                weights = v1.get_variable("weights", [64, 64])
                self.loss = tf.reduce_mean(tf.square(tf.matmul(self.x, weights) - 1))
                self.train = v1.train.AdamOptimizer(0.01).minimize(self.loss)
            self.init = v1.variables_initializer([v for v in v1.global_variables() if v is not self.total])
            self.init_total = self.total.initializer
            self.ready = v1.report_uninitialized_variables()
            self.refused = v1.check_numerics(self.loss / 0.0, "refused", name="refused")


class Client(threading.Thread):
    def __init__(self, target, i, seconds, failures):
        super().__init__(daemon=True)
        self.target, self.i, self.seconds, self.failures = target, i, seconds, failures
        self.model = Model(i)
        self.counted = 0

    def run(self):
        try:
            chance = random.Random(self.i)
            until = time.monotonic() + self.seconds
            while time.monotonic() < until:
                with v1.Session(self.target, graph=self.model.graph) as session:
                    self.steps(session, chance.randrange(1, 60))
        except Exception as error:  # told by the test
            self.failures.append(error)

    def steps(self, session, n):
        session.run(self.model.init)
        assert session.run(self.model.ready).size == 0
        feed = {self.model.x: np.full((8, 64), 0.5, np.float32)}
        first = session.run(self.model.loss, feed)
        for _ in range(n):
            session.run(self.model.train, feed)
        assert session.run(self.model.loss, feed) < first
        session.run(self.model.count)
        self.counted += 1
        try:
            session.run(self.model.refused, feed)
        except tf.errors.InvalidArgumentError as error:
            assert error.op.name == "refused", error
        else:
            raise AssertionError("a step that fails didn't")


class Crowd(peer.TestCase):
    def crowd(self, target, seconds):
        failures = []
        clients = [Client(target, i, seconds, failures) for i in range(CLIENTS)]
        for client in clients:
            client.start()
        for client in clients:
            client.join(seconds + 120)
            self.assertFalse(client.is_alive())
        if failures:
            raise failures[0]
        return sum(client.counted for client in clients)

    def settled(self, target, pid, model):
        """The server's memory once the crowd is gone: what is left over goes back when more have come and gone."""
        for _ in range(40):
            with v1.Session(target, graph=model.graph) as session:
                total = session.run(model.total)
        return total, resident(pid)

    def test_of_clients_leaves_nothing_behind(self):
        with peer.muster_process() as (target, pid):
            model = Model(0)
            with v1.Session(target, graph=model.graph) as session:
                session.run(model.init_total)
            counted = self.crowd(target, 1)  # its threads and buffers are there
            _, before = self.settled(target, pid, model)
            counted += self.crowd(target, SECONDS)
            total, after = self.settled(target, pid, model)
            print("%d sessions; %.1f MB, then %.1f MB" % (counted, before / 1e6, after / 1e6))
            self.assertEqual(total, counted)
            self.assertEqual(peer.muster_json("status", target)["sessions"], 0)
            self.assertLess(after, before + SLACK_BYTES)


if __name__ == "__main__":
    peer.main()
