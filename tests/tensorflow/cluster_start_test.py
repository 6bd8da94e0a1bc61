# SPDX-License-Identifier: Apache-2.0
"""A chief and workers come to their starting line on a cluster of TensorFlow's: two parameter servers, a chief, two workers."""
import os
import signal
import subprocess
import threading

import numpy as np
import tensorflow as tf

import cluster_peer
import peer

v1 = tf.compat.v1
v1.disable_v2_behavior()
v1.logging.set_verbosity(v1.logging.ERROR)

TOOL = os.path.abspath("tests/tensorflow/cluster_tool")


class OnCluster(peer.TestCase):
    """One cluster for all; each test has variables of its own. (While a task is missing, TensorFlow's reset hangs too.)"""

    @classmethod
    def setUpClass(cls):
        cls.cluster = cluster_peer.Cluster(parameter_servers=2)
        cls.addClassCleanup(cls.cluster.end)
        cls.cluster.start("ps:0", "ps:1", "chief:0", "worker:0")  # not worker:1

    def setUp(self):
        self.scope = self._testMethodName
        self.meta = cluster_peer.build_model(os.path.join(self.folder(), "model.meta"), 2, self.scope)

    def muster(self, name, *words, code=0):
        """A command as that task; what it printed."""
        done = subprocess.run([peer.MUSTER, *words], env=self.cluster.environment(name), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=peer.COMMAND_SECONDS, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout if code == 0 else done.stderr

    def model(self, verb, *words):
        return [verb, "--meta-graph=" + self.meta, "--timeout=30", *words]

    def values(self, name, *variables):
        """What TensorFlow's own client reads at that task's master."""
        job, index = name.split(":")
        config = v1.ConfigProto(device_filters=["/job:ps", "/job:%s/task:%s" % (job, index)])
        with tf.Graph().as_default():
            v1.train.import_meta_graph(self.meta)
            with v1.Session(self.cluster.target(name), config=config) as session:
                reads = [v for name in variables for v in v1.global_variables() + v1.local_variables()
                         if v.op.name == "%s/%s" % (self.scope, name)]
                return [np.ravel(value).tolist() for value in session.run(reads)]


class Start(OnCluster):
    def test_a_worker_waits_for_what_the_chief_prepares(self):
        """Each at its own server; the worker's own variable is its own, which its local init op sets."""
        self.muster("worker:0", *self.model("wait")[:2], "--timeout=5", code=1)
        self.muster("chief:0", *self.model("prepare"))
        self.muster("worker:0", *self.model("wait"))
        for name in "chief:0", "worker:0":
            self.assertEqual(self.values(name, "w", "b", "own"), [[1, 2], [3], [7, 8]])

    def test_a_step_computes_on_the_tasks_own_server(self):
        self.muster("chief:0", *self.model("prepare"))
        self.muster("worker:0", *self.model("wait"))
        with tf.Graph().as_default():
            v1.train.import_meta_graph(self.meta)
            metadata = v1.RunMetadata()
            options = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE)
            config = v1.ConfigProto(device_filters=["/job:ps", "/job:worker/task:0"])
            with v1.Session(self.cluster.target("worker:0"), config=config) as session:
                self.assertEqual(session.run("y:0", options=options, run_metadata=metadata).tolist(), [12, 15])
        where = {node.node_name: device.device for device in metadata.step_stats.dev_stats for node in device.node_stats}
        self.assertIn("/job:worker/replica:0/task:0", where["y"])
        self.assertEqual({device.split("/device:")[0] for device in where.values() if "/job:ps" in device},
                         {"/job:ps/replica:0/task:0", "/job:ps/replica:0/task:1"})

    def test_saves_a_shard_of_each_server_and_restores_them(self):
        folder = self.folder()
        self.muster("chief:0", *self.model("prepare"))
        for _ in range(3):
            self.muster("chief:0", *self.model("run", "--target=train"))
        self.muster("chief:0", *self.model("save", "--checkpoint-dir=" + folder))
        prefix = v1.train.latest_checkpoint(folder)
        self.assertEqual(os.path.basename(prefix), "model.ckpt-3")
        self.assertGreaterEqual(len([name for name in os.listdir(folder) if ".data-" in name]), 2)
        kept = {name: tf.train.load_variable(prefix, name).tolist() for name, _ in tf.train.list_variables(prefix)}
        self.assertEqual(kept, {self.scope + "/w": [4, 5], self.scope + "/b": 9, self.scope + "/global_step": 3})
        self.muster("worker:0", *self.model("run", "--target=train"))
        said = self.muster("chief:0", *self.model("prepare", "--checkpoint-dir=" + folder))
        self.assertIn("model.ckpt-3", said)
        self.muster("worker:0", *self.model("wait"))
        self.assertEqual(self.values("worker:0", "w", "b", "own", "global_step"), [[4, 5], [9], [7, 8], [3]])

    def recover(self, folder):
        done = subprocess.run([TOOL, "recover", self.meta, folder], env=self.cluster.environment("chief:0"),
                              stdout=subprocess.PIPE, text=True, timeout=peer.COMMAND_SECONDS, check=True)
        return done.stdout

    def test_recovers_what_was_saved(self):
        folder = self.folder()
        self.assertRegex(self.recover(folder), "^recovered 0 ")
        self.muster("chief:0", *self.model("prepare"))
        self.muster("chief:0", *self.model("save", "--checkpoint-dir=" + folder))
        self.muster("worker:0", *self.model("run", "--target=train"))
        self.assertRegex(self.recover(folder), "^recovered 1 .*/model.ckpt-0$")
        self.assertEqual(self.values("chief:0", "w", "b"), [[1, 2], [3]])


    def test_refuses_a_second_chief_before_it_resets_the_first_ones_model(self):
        """Their masters may differ, and TensorFlow's reset throws away what the first has trained."""
        folder = self.folder()
        train = self.model("train", "--checkpoint-dir=" + folder, "--save-every=10")
        first = subprocess.Popen([peer.MUSTER, *train, "--steps=1000000000", "--json"], env=self.cluster.environment("chief:0"),
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        watchdog = threading.Timer(peer.COMMAND_SECONDS, first.kill)
        watchdog.start()
        for end in first.stdout.close, first.wait, first.kill, watchdog.cancel:
            self.addCleanup(end)
        self.assertTrue(any('"saved"' in line for line in first.stdout))
        before = self.values("worker:0", "w")[0]
        said = self.muster("chief:0", *train, "--steps=10", code=4)
        self.assertIn("is in use", said)
        self.assertIn(":%d " % first.pid, said)
        after = self.values("worker:0", "w")[0]
        self.assertGreater(before[0], 10)
        self.assertGreaterEqual(after[0], before[0], "the model was reset")
        self.assertIsNone(first.poll())


class Missing(OnCluster):
    """Tasks that aren't there: TensorFlow's master says nothing (tensorflow#14489, #13337, #12745, #19907)."""

    def test_does_not_wait_for_another_worker(self):
        """tensorflow#16611: worker:1 isn't there, and nobody needs it but who asks for all devices."""
        self.muster("chief:0", *self.model("prepare"))
        said = self.muster("chief:0", "prepare", "--meta-graph=" + self.meta, "--timeout=5", code=2,
                           *["--master=" + self.cluster.target("chief:0"),
                             "--cluster=" + ",".join("%s=%s" % (name, self.cluster.target(name)[len("grpc://"):])
                                                     for name in self.cluster.names())])
        self.assertRegex(said, r"worker:1 does not answer: .* TCP connection refused: no process listens on port \d+, for \d+\.\d s")
        self.assertIn("try: start worker:1: the master waits for all its tasks", said)
        self.assertNotIn("ps:0 does not", said)
        self.assertNotIn("worker:0 does not", said)

    def test_names_a_parameter_server_that_stands_still(self):
        self.cluster.stop("ps:1")
        self.addCleanup(self.cluster.signal, "ps:1", signal.SIGCONT)
        for name, verb in ("chief:0", "prepare"), ("worker:0", "wait"):
            said = self.muster(name, verb, "--meta-graph=" + self.meta, "--timeout=8", code=2)
            self.assertIn("CreateSession has had no answer for", said)
            self.assertRegex(said, r"ps:1 does not answer: .*no HTTP/2 settings received.*, for \d+\.\d s")
            self.assertNotIn("ps:0 does not", said)


if __name__ == "__main__":
    peer.main()
