# SPDX-License-Identifier: Apache-2.0
"""A job on a TensorFlow cluster of a parameter server, a chief and two workers, all of which may lead, with a coordinator. Commands,
runtimes, the parameter server and the coordinator are killed, or stopped for a while, at random. Each batch is trained once by the
model's own count. MUSTER_LONG=1: 200 events, 3 s apart; MUSTER_SEED says when and what, MUSTER_EVENTS how many."""
import os
import random
import signal
import sys
import time

import cluster_gate
import coordinator_test
import peer

import tensorflow as tf

LONG = "MUSTER_LONG" in os.environ
EVENTS = int(os.environ.get("MUSTER_EVENTS") or (200 if LONG else 8))
SEED = int(os.environ.get("MUSTER_SEED") or random.SystemRandom().randrange(1 << 32))
BETWEEN = (3, 4) if LONG else (1, 3)
PACE = 4  # tokens for each task and tick


class Soak(coordinator_test.Coordinated):
    workers = 2
    epochs = 25 * EVENTS

    def setUp(self):
        super().setUp()
        self.random = random.Random(SEED)
        self.options += ["--save-secs=1"]
        self.due = []  # (when, what to call)
        self.trainers = [name for name in self.cluster.names() if not name.startswith("ps")]

    def later(self, what, *with_):
        self.due.append((time.monotonic() + self.random.uniform(0, 3), what, with_))

    def tick(self, until):
        """Feeds the tasks, and does what is due."""
        while time.monotonic() < until:
            for what in [what for what in self.due if what[0] <= time.monotonic()]:
                self.due.remove(what)
                what[1](*what[2])
            for name in self.trainers:
                if name in self.cluster.processes and "ps:0" in self.cluster.processes:
                    try:
                        self.allow(PACE, name)
                    except tf.errors.OpError:  # it is on its way back
                        pass
            time.sleep(0.1)

    def await_due(self):
        while self.due:
            self.tick(time.monotonic() + 0.2)

    # --- what happens ---

    def kill_command(self):
        name = self.random.choice(sorted(self.tasks))
        self.kill(name)
        self.later(self.train, name)
        return "kill the command of " + name

    def stop_command(self):
        name = self.random.choice(sorted(self.tasks))
        process = self.tasks[name][0]
        process.send_signal(signal.SIGSTOP)
        self.later(process.send_signal, signal.SIGCONT)
        return "stop the command of " + name

    def kill_runtime(self):
        name = self.random.choice(sorted(set(self.trainers) & set(self.cluster.processes)))
        self.cluster.kill(name)
        self.later(self.cluster.start, name)
        return "kill the server of " + name

    def kill_parameter_server(self):
        self.cluster.kill("ps:0")
        self.later(self.cluster.start, "ps:0")
        return "kill the parameter server"

    def kill_coordinator(self):
        self.stop(self.coordinator)
        self.later(self.start)
        return "kill the coordinator"

    def test_each_batch_is_trained_once(self):
        happenings = ([self.kill_command] * 5 + [self.kill_coordinator] * 3 + [self.stop_command] * 2 + [self.kill_runtime] * 2 +
                      [self.kill_parameter_server])
        began = time.monotonic()
        for name in self.trainers:
            self.train(name)
        peer.await_true(lambda: tf.train.latest_checkpoint(self.run_dir), "there is something to restore")
        for number in range(EVENTS):
            self.tick(time.monotonic() + self.random.uniform(*BETWEEN))
            self.await_due()
            what = self.random.choice(happenings)()
            print("%.1f s, event %d: %s" % (time.monotonic() - began, number, what), file=sys.stderr)
        self.await_due()
        peer.await_true(lambda: self.unended() is not None, "there is a model")
        self.finish()


if __name__ == "__main__":
    print("MUSTER_SEED=%d" % SEED, file=sys.stderr)
    peer.main()
