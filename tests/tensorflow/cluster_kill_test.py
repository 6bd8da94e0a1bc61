# SPDX-License-Identifier: Apache-2.0
"""Commands and servers of a TensorFlow cluster that `muster serve` runs are killed in the middle of steps: each batch is
trained once by the model's own count."""
import os
import signal
import subprocess
import time

import cluster_gate
import peer

import tensorflow as tf

v1 = tf.compat.v1


class Commands(cluster_gate.Job):

    def test_leave_steps_that_end_at_their_servers(self):
        """And nothing is restored."""
        self.begin()
        self.kill("worker:0")
        self.kill("chief:0")
        self.allow(1, "chief:0", "worker:0")
        peer.await_true(lambda: self.unended() == [0, 0], "their steps have ended")
        self.assertEqual(self.read("last"), 6)
        self.train("chief:0")
        self.train("worker:0")
        self.finish()
        self.assertEqual(self.ready("chief:0"), ["continued"])

    def test_restore_within_their_timeout(self):
        """Although the step of a worker that is gone for good never ends."""
        self.begin()
        self.kill("worker:0")
        self.kill("chief:0")
        self.cluster.kill("worker:0")
        self.allow(1, "chief:0")
        peer.await_true(lambda: self.unended() == [0, 1], "only the worker's step is cut off")
        self.train("chief:0", "--timeout=20")
        peer.await_true(lambda: "restored" in self.ready("chief:0"), "the chief has restored the model")
        self.cluster.start("worker:0")
        self.train("worker:0")
        self.finish()

    def test_are_started_again_while_their_steps_go_on(self):
        """For longer than a step that was cut off is waited for, and than a claim of a muster server's model waits."""
        self.begin()
        for name in ("worker:0", "chief:0"):
            self.kill(name)
            self.train(name)
        until = time.monotonic() + 12
        while time.monotonic() < until:
            self.assertEqual(self.unended(), [1, 1])  # no fence, and nothing is restored
            time.sleep(0.1)
        self.allow(1, "chief:0", "worker:0")
        self.finish()
        self.assertEqual(self.ready("chief:0"), ["continued"])


class Servers(cluster_gate.Job):

    def check(self, name, unended):
        self.begin()
        self.cluster.kill(name)
        self.cluster.start(name)
        self.assertEqual(self.unended()[unended], 1)  # it is cut off, and the counts show it
        self.finish()
        self.assertIn("restored", self.ready("chief:0"))

    def test_of_a_worker_leave_half_a_step(self):
        """What it has changed goes with the last checkpoint."""
        self.check("worker:0", 1)

    def test_of_a_chief_leave_half_a_step(self):
        self.check("chief:0", 0)

    def test_of_a_chief_leave_half_a_step_beside_a_worker_that_goes_on(self):
        """Whose next step is refused, which it takes for what it is."""
        self.begin()
        self.cluster.kill("chief:0")
        self.cluster.start("chief:0")
        peer.await_true(lambda: self.read("muster/begun").min() >= 1 << 48, "the chief has raised the fence")
        self.finish()
        self.assertIn("restored", self.ready("chief:0"))


@peer.needs_namespace
class Connections(cluster_gate.Job):

    def test_that_end_end_steps_while_their_servers_live(self):
        """Whose commands have been answered, and wait for no step of theirs to go on: that would take a minute."""
        self.begin()
        port = self.cluster.jobs["ps"][0].rsplit(":", 1)[1]
        ended = subprocess.run(["ss", "-K", "-t", "dport", "=", ":" + port], stdout=subprocess.PIPE, text=True, check=False)
        if "ESTAB" not in ended.stdout:
            self.skipTest("`ss -K` ends no connections here")
        peer.await_true(lambda: "restored" in self.ready("chief:0"), "the chief has restored the model")
        self.finish()


class Stops(cluster_gate.Job):

    def test_in_order(self):
        """The steps end, the chief saves, the runtime is killed last; the next server's chief goes on from there."""
        self.begin()
        process = self.cluster.processes["chief:0"]
        process.terminate()
        self.allow(1, *self.tasks)
        self.assertEqual(process.wait(peer.COMMAND_SECONDS), 0)
        self.assertGreaterEqual(int(v1.train.latest_checkpoint(self.run_dir).rsplit("-", 1)[1]), 5)
        self.cluster.kill("chief:0")
        self.cluster.start("chief:0")
        self.finish()

    def test_at_once_by_another_signal(self):
        """Whatever the runtime does, which stands still here."""
        self.begin()
        process = self.cluster.processes["chief:0"]
        found = []
        for thread in os.listdir("/proc/%d/task" % process.pid):
            with open("/proc/%d/task/%s/children" % (process.pid, thread), encoding="ascii") as children:
                found += children.read().split()
        runtime = int(found[0])
        peer.stop(runtime)
        peer.await_true(lambda: process.send_signal(signal.SIGTERM) or process.poll() is not None, "it ends at once")
        self.assertEqual(process.returncode, 0)
        peer.await_true(lambda: not peer.is_running(runtime), "its runtime ends with it")


if __name__ == "__main__":
    peer.main()
