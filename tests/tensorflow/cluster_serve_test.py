# SPDX-License-Identifier: Apache-2.0
"""A TensorFlow cluster whose tasks are run by `muster serve --master=tensorflow --task=JOB:INDEX`: without a Python program."""
import os
import socket
import subprocess
import sys

import tensorflow as tf

import cluster_peer
import peer

v1 = tf.compat.v1
v1.disable_v2_behavior()


class Tasks(peer.TestCase):

    def cluster(self, *names, chiefs=0):
        cluster = cluster_peer.Served(workers=1, chiefs=chiefs)
        self.addCleanup(cluster.end)
        cluster.start(*names)
        return cluster

    def model(self):
        return cluster_peer.build_model(os.path.join(self.folder(), "model.meta"))

    def muster(self, cluster, name, *words, code=0):
        done = subprocess.run([peer.MUSTER, *words], env=cluster.environment(name), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, timeout=peer.COMMAND_SECONDS, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def value(self, cluster, name, variable):
        """As TensorFlow's own client reads it there."""
        config = v1.ConfigProto(device_filters=["/job:ps", "/job:" + name.replace(":", "/task:")])
        with tf.Graph().as_default(), v1.Session(cluster.target(name), config=config) as session:
            with v1.device("/job:ps/task:0"):
                return session.run(v1.get_variable(variable, shape=[], use_resource=False, dtype=tf.float32))

    def devices(self, cluster, name):
        with tf.Graph().as_default(), v1.Session(cluster.target(name)) as session:
            return sorted(device.name for device in session.list_devices() if device.device_type == "CPU")

    def n_steps(self, cluster, name):
        """That are running."""
        limits = peer.muster_json("status", cluster.gateways[name])["limits"]
        return sum(limit["used"] for limit in limits if limit["name"] == "steps")

    def test_train_together(self):
        """The chief and a worker, each at its own task, with the variables on the parameter server."""
        cluster = self.cluster("ps:0", "chief:0", "worker:0", chiefs=1)
        meta = self.model()
        train = ["train", "--meta-graph=" + meta, "--no-positions", "--steps=5", "--timeout=60", "--checkpoint-dir=" + self.folder()]
        self.muster(cluster, "chief:0", *train)
        self.assertEqual(self.value(cluster, "chief:0", "b"), 3 + 2 * 5)
        self.assertEqual(self.devices(cluster, "worker:0"), ["/job:%s/replica:0/task:0/device:CPU:0" % job
                                                             for job in ("chief", "ps", "worker")])

    def test_hear_their_commands_at_their_gateways(self):
        """Which the commands find by the cluster alone: the chief's claim is known there."""
        cluster = self.cluster("ps:0", "worker:0")
        self.muster(cluster, "worker:0", "prepare", "--meta-graph=" + self.model(), "--timeout=60")
        status = peer.muster_json("status", cluster.gateways["worker:0"])
        self.assertEqual([model["model"] for model in status["models"]], ["model"])
        self.assertEqual(peer.muster_json("status", cluster.gateways["ps:0"])["models"], [])

    def test_stand_beside_tensorflows_own(self):
        """A worker of TensorFlow's own, with variables on a parameter server that a command runs."""
        cluster = self.cluster("ps:0")
        cluster_peer.Cluster.begin(cluster, "worker:0")
        peer.first_line(cluster.processes["worker:0"], "TensorFlow's worker")
        self.muster(cluster, "worker:0", "prepare", "--meta-graph=" + self.model(), "--timeout=60")
        self.assertEqual(self.value(cluster, "worker:0", "b"), 3)

    def test_come_back_at_their_addresses(self):
        cluster = self.cluster("ps:0", "worker:0")
        meta = self.model()
        prepare = ["prepare", "--meta-graph=" + meta, "--timeout=60"]
        self.muster(cluster, "worker:0", *prepare)
        cluster.kill("ps:0")
        cluster.start("ps:0")
        self.muster(cluster, "worker:0", *prepare)
        self.assertEqual(self.value(cluster, "worker:0", "b"), 3)

    def test_stop_a_parameter_server_after_the_chief(self):
        """Which may be saving: a job's tasks are often told to stop at once."""
        cluster = self.cluster("ps:0", "chief:0", chiefs=1)
        self.muster(cluster, "chief:0", "prepare", "--meta-graph=" + self.model(), "--timeout=60")
        process = cluster.processes["ps:0"]
        process.terminate()
        with self.assertRaises(subprocess.TimeoutExpired):
            process.wait(3)
        self.assertEqual(self.value(cluster, "chief:0", "b"), 3)
        cluster.kill("chief:0")
        self.assertEqual(process.wait(peer.COMMAND_SECONDS), 0)

    def test_notice_that_a_parameter_server_was_restarted(self):
        """A step that waits for its input alone ends, which TensorFlow leaves where it is."""
        cluster = self.cluster("ps:0", "worker:0")
        meta = os.path.join(self.folder(), "waits.meta")
        with tf.Graph().as_default():
            v1.FIFOQueue(1, tf.float32).dequeue(name="waits")
            v1.train.export_meta_graph(meta)
        waits = subprocess.Popen([peer.MUSTER, "run", "--meta-graph=" + meta, "--fetch=waits:0"], env=cluster.environment("worker:0"),
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                 preexec_fn=peer.die_with_parent)
        self.addCleanup(waits.communicate)
        self.addCleanup(waits.kill)
        peer.await_true(lambda: self.n_steps(cluster, "worker:0") == 1, "a step")
        while waits.poll() is None:  # not by the first restart, if that is sooner than the gateway's next look
            cluster.kill("ps:0")
            cluster.start("ps:0")
            try:
                waits.wait(5)
            except subprocess.TimeoutExpired:
                pass
        self.assertIn("ps:0 was restarted, and its variables are gone", waits.stderr.read())


class Refused(peer.TestCase):
    """What is wrong before anything is started."""

    def said(self, config, *words):
        environment = {name: value for name, value in os.environ.items() if name != "TF_CONFIG"}
        if config is not None:
            environment["TF_CONFIG"] = config
        done = subprocess.run([peer.MUSTER, "serve", *words], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=peer.COMMAND_SECONDS, stdin=subprocess.DEVNULL)
        self.assertNotEqual(done.returncode, 0)
        return done.stderr

    def test_a_port_is_taken(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            said = self.said('{"cluster": {"ps": ["localhost:%d"], "worker": ["localhost:1"]}}' % port,
                             "--master=" + cluster_peer.Served.master, "--task=ps:0", "--listen=localhost:0")
        self.assertIn("can't use port %d of ps:0, 'localhost:%d'" % (port, port), said)

    def hold_port(self):
        """One that nobody else is given; free, or taken as long as the test listens at it."""
        held = peer.hold_port()
        self.addCleanup(held.close)
        return peer.port_of(held)

    def start_waiting(self, port, listen, wanted):
        """One that has said that it waits for a port."""
        process = subprocess.Popen(
            [peer.MUSTER, "serve", "--master=" + cluster_peer.Served.master, "--task=ps:0", "--listen=localhost:%d" % listen],
            env=dict(os.environ, TF_CONFIG='{"cluster": {"ps": ["localhost:%d"], "worker": ["localhost:1"]}}' % port),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=peer.die_with_parent)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        while wanted not in (line := process.stderr.readline()):
            self.assertTrue(line)
        return process

    def test_a_port_that_becomes_free_is_waited_for(self):
        """What a command that was killed has left holds it for a moment."""
        port = self.hold_port()
        with socket.create_server(("127.0.0.1", port)):
            process = self.start_waiting(port, 0, "port %d is in use" % port)
        self.assertTrue(process.stdout.readline().startswith("serving "))

    def test_a_gateway_that_becomes_free_is_waited_for(self):
        gateway, port = self.hold_port(), self.hold_port()
        with socket.create_server(("127.0.0.1", gateway)):
            process = self.start_waiting(port, gateway, "localhost:%d: address already in use" % gateway)
        self.assertEqual(process.stdout.readline(), "serving grpc://localhost:%d\n" % gateway)

    def test_a_signal_ends_the_wait(self):
        port, other = self.hold_port(), self.hold_port()
        with socket.create_server(("127.0.0.1", port)):
            for process in (self.start_waiting(port, 0, "port %d is in use" % port),
                            self.start_waiting(other, port, "localhost:%d: address already in use" % port)):
                process.terminate()
                self.assertEqual(process.wait(peer.COMMAND_SECONDS), 0, process.stderr.read())

    def test_without_a_task_it_is_alone(self):
        """Whatever TF_CONFIG says: no port is opened that nobody asked for."""
        environment = dict(os.environ, TF_CONFIG='{"cluster": {"ps": ["localhost:1"], "worker": ["localhost:2"]}, '
                                                 '"task": {"type": "ps", "index": 0}}')
        done = subprocess.run([peer.MUSTER, "serve", "--check-config", "--master=" + cluster_peer.Served.master, "--listen=localhost:2"],
                              env=environment, timeout=peer.COMMAND_SECONDS, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 0)

    def test_says_what_is_wrong(self):
        cluster = '{"cluster": {"ps": ["localhost:0"], "worker": ["localhost:2222"]}}'
        here = ["--master=" + cluster_peer.Served.master]
        for config, words, wanted in (
            (cluster, [*here, "--task=ps:1"], "this task is ps:1, but"),
            (cluster, [*here, "--task=ps"], "invalid task 'ps' of a cluster (use JOB:INDEX"),
            (cluster, [*here, "--task=ps:0"], "ps:0 has port 0 in the cluster"),
            (cluster, [*here, "--task=worker:0", "--listen=localhost:0,localhost:2222"], "--listen: 'localhost:2222' has the port of worker:0"),
            (cluster, [*here, "--task=worker:0", "--http=localhost:2222"], "--http: 'localhost:2222' has the port of worker:0"),
            (cluster, [*here, "--task=evaluator:0"], "evaluator:0 has no address in the cluster"),
            (None, [*here, "--task=ps:0"], "this task is ps:0, but"),
            (cluster, ["--task=ps:0"], "--task has no effect on 'local'"),
        ):
            with self.subTest(words=words):
                self.assertIn(wanted, self.said(config, *words))


if __name__ == "__main__":
    peer.main()
