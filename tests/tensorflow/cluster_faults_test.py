# SPDX-License-Identifier: Apache-2.0
"""Processes of a TensorFlow cluster die, and are started again, or stand still; the training comes back by itself, with what
the chief saved last. One case each; the processes are real. The training is in C, a step for each line that it is sent."""
import os
import re
import signal
import subprocess
import threading

import tensorflow as tf

import cluster_peer
import peer

v1 = tf.compat.v1
v1.disable_v2_behavior()
v1.logging.set_verbosity(v1.logging.ERROR)

TOOL = os.path.abspath("tests/tensorflow/cluster_tool")
ABORTED, UNAVAILABLE = 10, 14


class Task:
    """A chief or a worker in C."""

    def __init__(self, cluster, name, meta, folder):
        self.lost = []  # codes and words
        self.process = subprocess.Popen([TOOL, "steps", meta, folder], env=cluster.environment(name),
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        preexec_fn=peer.die_with_parent)

    def read(self, wanted):
        for line in self.process.stdout:
            if line.startswith("lost "):
                code, why = re.match(r"lost (\d+): (.*)", line).groups()
                self.lost.append((int(code), why))
            elif line.startswith(wanted):
                return line[len(wanted):].strip()
        raise RuntimeError("the task ended with %s" % self.process.wait())

    def ask(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def step(self):
        """One more step; the global step after it."""
        self.ask()
        return int(self.read("step "))

    def end(self):
        self.process.stdin.close()
        code = self.process.wait(60)
        self.process.stdout.close()
        return code

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.process.stdin.close()


class Faults(peer.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cluster_peer.Cluster()
        cls.addClassCleanup(cls.cluster.end)
        cls.cluster.start("ps:0", "chief:0", "worker:0")

    def setUp(self):
        self.run_dir = self.folder()
        self.meta = cluster_peer.build_model(os.path.join(self.folder(), "model.meta"), 1, self._testMethodName)
        self.chief = self.start("chief:0", self.run_dir)
        self.worker = self.start("worker:0", "-")
        self.assertEqual([self.chief.step(), self.worker.step(), self.chief.step()], [1, 2, 3])
        self.assertEqual(self.saved(), 3)  # the chief saves after each of its steps

    def start(self, name, folder):
        task = Task(self.cluster, name, self.meta, folder)
        self.addCleanup(lambda: task.process.poll() is None and task.kill())
        task.read("ready")
        return task

    def saved(self):
        return int(v1.train.latest_checkpoint(self.run_dir).rsplit("-", 1)[1])

    def both_step(self):
        """At once: a worker may wait for what the chief restores."""
        waits = threading.Thread(target=self.worker.ask)
        waits.start()
        after = self.chief.step()
        waits.join()
        return after, int(self.worker.read("step "))

    def check_end(self):
        """Nothing is counted twice: three steps of each since the last checkpoint that counts, w is 1 + steps."""
        self.assertEqual((self.chief.end(), self.worker.end()), (0, 0))
        prefix = v1.train.latest_checkpoint(self.run_dir)
        scope = self._testMethodName
        step = int(tf.train.load_variable(prefix, scope + "/global_step"))
        self.assertEqual(tf.train.load_variable(prefix, scope + "/w").tolist(), [1 + step, 2 + step])
        self.assertEqual(tf.train.load_variable(prefix, scope + "/b").tolist(), 3 + 2 * step)

    def check_codes(self, task, *codes):
        self.assertEqual(len(task.lost), 1, task.lost)
        self.assertIn(task.lost[0][0], codes)

    def test_a_master_that_restarts_knows_no_session(self):
        """Between two steps: the next one finds another master there."""
        self.cluster.kill("chief:0")
        self.cluster.start("chief:0")
        self.assertEqual(self.chief.step(), 4)
        self.check_codes(self.chief, ABORTED, UNAVAILABLE)
        self.assertEqual(self.worker.step(), 5)
        self.assertEqual(self.worker.lost, [])
        self.check_end()

    def test_a_session_that_is_gone_is_made_anew(self):
        """Aborted, in TensorFlow's words: as after a restart that nobody saw."""
        self.cluster.start("worker:1")  # TensorFlow's reset waits for all tasks
        try:
            v1.Session.reset(self.cluster.target("chief:0"))
        finally:
            self.cluster.kill("worker:1")
        self.assertEqual(self.chief.step(), 4)
        self.check_codes(self.chief, ABORTED)
        self.assertRegex(self.chief.lost[0][1], "Session .* is not found")
        self.check_end()

    def test_a_parameter_server_that_dies_is_restored(self):
        self.cluster.kill("ps:0")
        self.cluster.begin("ps:0")
        # Each fetches the step beside its own addition: it may see the other's as well.
        self.assertIn(sorted(self.both_step()), ([4, 5], [5, 5]))
        for task in self.chief, self.worker:
            self.check_codes(task, ABORTED, UNAVAILABLE)
        self.check_end()

    def test_a_worker_whose_server_dies_joins_again(self):
        self.cluster.kill("worker:0")
        self.assertEqual(self.chief.step(), 4)  # nobody waits for it
        self.cluster.begin("worker:0")
        self.assertEqual(self.worker.step(), 5)
        self.check_codes(self.worker, ABORTED, UNAVAILABLE)
        self.assertEqual(self.chief.lost, [])
        self.check_end()

    def test_a_parameter_server_that_stands_still_costs_a_deadline(self):
        """Nothing but the time that a step takes tells of it."""
        self.cluster.stop("ps:0")
        self.addCleanup(lambda: self.cluster.signal("ps:0", signal.SIGCONT))
        self.chief.ask()
        self.worker.ask()
        waits = threading.Timer(8, self.cluster.signal, ("ps:0", signal.SIGCONT))  # past the 3 s of a step
        waits.start()
        steps = [int(task.read("step ")) for task in (self.chief, self.worker)]
        waits.join()
        for task in self.chief, self.worker:
            self.check_codes(task, UNAVAILABLE)
            self.assertIn("a step timed out after 3.0 s", task.lost[0][1])
        # Two runs, a step and a look at it: the chief may restore in between of the worker's.
        self.assertGreaterEqual(steps[0], 4)
        self.assertGreaterEqual(steps[1], 3)
        self.chief.step()
        self.check_end()

    def test_a_chief_that_is_killed_is_restored_by_the_next(self):
        self.assertEqual(self.worker.step(), 4)  # after the last save
        self.chief.kill()
        self.assertEqual(self.worker.step(), 5)
        self.chief = self.start("chief:0", self.run_dir)
        self.assertEqual(self.chief.step(), 4)  # as TensorFlow's: what came after the save is lost
        self.assertEqual(self.worker.step(), 5)
        self.check_end()

    def test_a_server_that_stays_dead_ends_in_time(self):
        """The tries are bounded, and the last word says who is missing."""
        self.cluster.kill("ps:0")
        try:
            done = subprocess.run([peer.MUSTER, "train", "--meta-graph=" + self.meta, "--steps=9", "--timeout=6",
                                   "--checkpoint-dir=" + self.run_dir], env=self.cluster.environment("chief:0"),
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=peer.COMMAND_SECONDS)
        finally:
            self.cluster.start("ps:0")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertRegex(done.stderr, r"ps:0 does not answer: .*no process listens on port \d+, for \d+\.\d s")


if __name__ == "__main__":
    peer.main()
