# SPDX-License-Identifier: Apache-2.0
"""A worker that isn't in the cluster which the parameter server knows: it joins a job that trains, and does its share of the rows."""
import json
import os
import subprocess

import cluster_gate
import coordinator_test
import peer

import tensorflow as tf

v1 = tf.compat.v1


class Outside(coordinator_test.Coordinated):
    """worker:1; chief:0 and worker:0 are in the cluster."""
    OUTSIDE = "worker:1"

    def setUp(self):
        super().setUp()
        self.options.append("--tasks=3")
        port = peer.hold_port()
        self.addCleanup(port.close)
        self.place = "localhost:%d" % peer.port_of(port)

    def serve(self):
        self.cluster.start(self.OUTSIDE + "=" + self.place)

    def command(self, *words):
        """What a command of the task outside prints."""
        return subprocess.run([peer.MUSTER, *words, "--task=%s=%s" % (self.OUTSIDE, self.place), "--meta-graph=" + self.meta],
                              env=self.environment(self.OUTSIDE), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=peer.COMMAND_SECONDS)

    def environment(self, name):
        if name != self.OUTSIDE:
            return super().environment(name)
        return dict(os.environ, TF_CONFIG=json.dumps({"cluster": self.cluster.jobs}))

    def join(self):
        self.train(self.OUTSIDE, "--task=%s=%s" % (self.OUTSIDE, self.place))

    def config(self):
        config = v1.ConfigProto(device_filters=["/job:ps", "/job:outside/task:1"])
        for job, index, address in ("ps", 0, self.cluster.jobs["ps"][0]), ("outside", 1, self.place):
            config.cluster_def.job.add(name=job).tasks[index] = address
        config.experimental.share_session_state_in_clusterspec_propagation = True
        return config

    def allow(self, steps, *names):
        super().allow(steps, *(name for name in names if name != self.OUTSIDE))
        if self.OUTSIDE not in names:
            return
        with tf.Graph().as_default(), v1.device("/job:outside/task:1"):
            put = cluster_gate.gate().enqueue_many([tf.zeros([steps], tf.int32)])
            with v1.Session("grpc://" + self.place, config=self.config()) as session:
                session.run(put)

    def begin(self):
        """All three are in the middle of a step, after six; the one outside came last."""
        self.train("chief:0")
        self.train("worker:0")
        self.allow(2, *self.tasks)
        peer.await_true(lambda: self.unended() == [1, 1, 0] and self.read("last") == 4, "those of the cluster train")
        self.serve()
        self.join()
        self.allow(2, self.OUTSIDE)
        peer.await_true(lambda: self.unended() == [1, 1, 1] and self.read("last") == 6, "all three are in the middle of a step")

    def test_joins_and_does_its_share(self):
        self.begin()
        status = peer.muster_json("status", "grpc://" + self.address)
        self.assertEqual(sorted(member["task"] for job in status["jobs"] for member in job["members"]), ["chief:0", "worker:0", "worker:1"])
        self.finish()
        self.assertEqual(self.ready(self.OUTSIDE), ["joined"])

    def test_is_killed_in_the_middle_of_a_step(self):
        """Its gateway ends the step."""
        self.begin()
        self.kill(self.OUTSIDE)
        self.join()
        self.finish()
        self.assertEqual(self.ready("chief:0"), ["initialised"])

    def test_leads_when_the_others_are_gone(self):
        self.begin()
        self.kill("chief:0")
        self.kill("worker:0")
        self.allow(1, *self.cluster_tasks(), self.OUTSIDE)
        peer.await_true(lambda: (model := self.model()) and model["alive"] and model["task"] == self.OUTSIDE, "the worker outside leads")
        for name in self.cluster_tasks():
            self.train(name)
        self.finish()
        self.assertEqual(self.ready(self.OUTSIDE)[-1], "continued")

    def cluster_tasks(self):
        return "chief:0", "worker:0"

    def test_needs_the_number_of_tasks(self):
        refused = self.command("train", "--steps=1")
        self.assertEqual(refused.returncode, 3, refused.stderr)
        self.assertIn("--tasks=N", refused.stderr)


if __name__ == "__main__":
    peer.main()
