# SPDX-License-Identifier: Apache-2.0
"""A job on a TensorFlow cluster of a parameter server, a chief and two workers, all of which may lead, with a coordinator, each on a
machine of its own (a network namespace); the test is on the parameter server's. Commands, servers, the parameter server and the coordinator are killed, stopped, drained and
cut off without a word; tasks leave and come back, and are taken over from. Each batch is trained once by the model's own count.
MUSTER_LONG=1: 200 events, at least 3 s apart; MUSTER_SEED says when and what, MUSTER_EVENTS how many."""
import collections
import os
import random
import signal
import subprocess
import sys
import time

import machines
import peer

peer.enter_namespace(machines.NEED)

import cluster_peer
import coordinator_test

import tensorflow as tf

LONG = "MUSTER_LONG" in os.environ
EVENTS = int(os.environ.get("MUSTER_EVENTS") or (200 if LONG else 8))
SEED = int(os.environ.get("MUSTER_SEED") or random.SystemRandom().randrange(1 << 32))
CUTS = [2, 4, 8, 20] if LONG else [2, 4, 8]  # s; a lease is 15
PACE = 2  # steps of each task at a time
STEPS = 40  # of all tasks together, while an event is waited for
TRAIN_PREEMPTED = 6


class Cluster(cluster_peer.Served):
    """Its tasks are on machines of their own."""

    def __init__(self, network, **counts):
        super().__init__(**counts)
        self.jobs["ps"] = [machines.HERE + ":2222"]
        self.machines = {}
        for name in self.names()[1:]:
            job, index = name.split(":")
            self.machines[name] = network.machine(job + index)
            self.jobs[job][int(index)] = self.machines[name].address + ":2222"

    def begin(self, *names, before=()):
        for name in names:
            super().begin(name, before=self.machines[name].enter if name in self.machines else before)


@peer.needs_namespace
class Soak(coordinator_test.Coordinated):
    workers = 2
    epochs = 12 * EVENTS
    patience = 300
    serve_options = ["--insecure"]

    def make_cluster(self):
        network = machines.Network(self)
        cluster = Cluster(network, workers=self.workers)
        self.machines = dict(cluster.machines, coordinator=network.machine("coordinator"))
        self.before = {name: machine.enter for name, machine in self.machines.items()}
        return cluster

    def make_address(self):
        return self.machines["coordinator"].address + ":2300"

    def setUp(self):
        super().setUp()
        self.random = random.Random(SEED)
        self.options += ["--save-secs=1"]
        self.due = []  # (when, what to call)
        self.trainers = [name for name in self.cluster.names() if not name.startswith("ps")]
        self.away = set()  # machines that are cut off
        self.steps = self.most_steps = 0  # let through

    def later(self, what, *with_):
        self.due.append((time.monotonic() + self.random.uniform(0, 3), what, with_))

    # --- time passes ---

    def feed(self):
        if "ps:0" not in self.cluster.processes:
            return
        for name in sorted(set(self.trainers) & set(self.cluster.processes) - self.away):
            try:
                self.allow(PACE, name)
                self.steps += PACE
            except tf.errors.OpError:  # it is on its way back
                pass

    def tick(self):
        """Feeds the tasks, and does what is due."""
        for what in [what for what in self.due if what[0] <= time.monotonic()]:
            self.due.remove(what)
            what[1](*what[2])
        if self.steps < self.most_steps:
            self.feed()
        time.sleep(0.1)

    def tick_until(self, condition, what):
        end = time.monotonic() + 90
        while not condition():
            if time.monotonic() > end:
                raise AssertionError("it never came true that " + what)
            self.most_steps += 1  # whoever is in the middle of a step has to come to its end, and the job mustn't
            self.tick()

    # --- what happens ---

    def any_task(self):
        return self.random.choice(self.trainers)

    def kill_command(self):
        name = self.any_task()
        self.kill(name)
        self.later(self.train, name)
        return name

    def stop_command(self):
        name = self.any_task()
        process = self.tasks[name][0]
        process.send_signal(signal.SIGSTOP)
        self.later(process.send_signal, signal.SIGCONT)
        return name

    def leave(self):
        """A task is told to go, as by its machine's owner."""
        name = self.any_task()
        process = self.tasks[name][0]
        process.terminate()
        self.tick_until(lambda: process.poll() is not None, name + " leaves")
        self.assertEqual(process.returncode, TRAIN_PREEMPTED, name)
        del self.tasks[name]
        self.later(self.train, name)
        return name

    def take_over(self):
        """The chief's command goes for so long that another task leads."""
        self.tick_until(lambda: (model := self.model()) and model["alive"], "there is a chief")
        chief = self.model()["task"]
        self.kill(chief)
        self.tick_until(lambda: (model := self.model()) and model["alive"] and model["task"] != chief, "another task leads")
        self.later(self.train, chief)
        return "%s, by %s" % (chief, self.model()["task"])

    def kill_server(self, name=None):
        name = name or self.any_task()
        self.cluster.kill(name)
        self.later(self.cluster.start, name)
        return name

    def kill_parameter_server(self):
        return self.kill_server("ps:0")

    def drain_server(self):
        name = self.any_task()
        process = self.cluster.processes.pop(name)
        process.terminate()
        self.tick_until(lambda: process.poll() is not None, name + "'s server stops")
        process.stdout.close()
        self.later(self.cluster.start, name)
        return name

    def kill_coordinator(self):
        self.stop(self.coordinator)
        self.later(self.start)

    def cut(self):
        """Its packets are dropped: nobody is told."""
        name = self.random.choice([*sorted(self.machines), "ps:0"])
        seconds = self.random.choice(CUTS)
        self.away.update([name] if name in self.machines else self.machines)
        for each in self.away:
            machines.ip("link", "set", self.machines[each].port, "nomaster")
        self.due.append((time.monotonic() + seconds, self.heal, ()))
        return "%s for %d s" % (name, seconds)

    def heal(self):
        for each in self.away:
            machines.ip("link", "set", self.machines[each].port, "master", "switch")
        self.away.clear()

    def test_each_batch_is_trained_once(self):
        events = ([self.kill_command] * 4 + [self.take_over] * 2 + [self.leave] * 2 + [self.stop_command] * 2 + [self.kill_coordinator] * 2 +
                  [self.kill_server] * 2 + [self.drain_server] + [self.kill_parameter_server] + [self.cut] * 3)
        began = time.monotonic()
        counts = collections.Counter()
        for name in self.trainers:
            self.train(name)
        peer.await_true(lambda: tf.train.latest_checkpoint(self.run_dir), "there is something to restore")
        for number in range(EVENTS):
            self.most_steps = max(self.most_steps, self.steps) + STEPS
            next_ = time.monotonic() + self.random.uniform(3, 3.2)
            while self.due or time.monotonic() < next_:
                self.tick()
            event = self.random.choice(events)
            counts[event.__name__] += 1
            print("%.1f s, event %d: %s" % (time.monotonic() - began, number, event.__name__), file=sys.stderr, flush=True)
            print("  %s" % event(), file=sys.stderr, flush=True)
        while self.due:
            self.tick()
        for name, (process, _) in self.tasks.items():
            self.assertIsNone(process.poll(), "the job of %s ended before the last event" % name)
        peer.await_true(lambda: self.unended() is not None, "there is a model")
        self.finish()
        print("seed %d: %d events in %.0f s: %s" % (SEED, EVENTS, time.monotonic() - began, dict(counts)), file=sys.stderr)


if __name__ == "__main__":
    print("MUSTER_SEED=%d" % SEED, file=sys.stderr)
    peer.main()
