# SPDX-License-Identifier: Apache-2.0
"""A job on a TensorFlow cluster with a coordinator: a server without TensorFlow and without the model, which the steps don't pass."""
import contextlib
import json
import os
import subprocess

import cluster_gate
import peer

import tensorflow as tf

v1 = tf.compat.v1


class Coordinated(cluster_gate.Job):
    serve_options = []

    def make_address(self):
        port = peer.hold_port()
        self.addCleanup(port.close)
        return "localhost:%d" % peer.port_of(port)

    def setUp(self):
        super().setUp()
        self.address = self.make_address()
        self.options = ["--coordinator=grpc://" + self.address]
        self.coordinator = None
        self.start()

    def start(self):
        self.coordinator = subprocess.Popen(
            [*self.before.get("coordinator", ()), peer.MUSTER, "serve", "--listen=" + self.address, *self.serve_options],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, preexec_fn=peer.die_with_parent)
        self.addCleanup(self.stop, self.coordinator)
        peer.first_line(self.coordinator, "the coordinator")

    def stop(self, process):
        process.kill()
        process.wait()
        process.stdout.close()

    def model(self):
        """What the coordinator knows of it; None: nothing."""
        models = peer.muster_json("status", "grpc://" + self.address)["models"]
        return models[0] if models else None

    def model_has(self, steps):
        with contextlib.suppress(tf.errors.OpError):  # as before there is a model
            return self.read("last") == steps
        return False

    def muster(self, name, *words):
        return subprocess.run([peer.MUSTER, *words, "--meta-graph=" + self.meta, "--timeout=20", *self.options],
                              env=self.cluster.environment(name), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=peer.COMMAND_SECONDS)


class Chiefs(Coordinated):

    def test_are_one_whatever_their_masters(self):
        self.begin()
        refused = self.muster("worker:0", "prepare")
        self.assertEqual(refused.returncode, 4, refused.stderr)
        self.assertIn("chief:0", refused.stderr)
        self.assertEqual((self.model()["task"], self.model()["alive"]), ("chief:0", True))
        self.assertIn("; the job's steps run at other masters\n", peer.muster("status", "grpc://" + self.address))
        self.finish()
        self.assertEqual(self.model()["phase"], "over")

    def test_are_followed_by_another_task(self):
        """A worker that can save goes on with the model as it is; the chief that comes back is a worker."""
        self.begin()
        self.kill("chief:0")
        self.allow(1, "chief:0", "worker:0")
        peer.await_true(lambda: (model := self.model()) and model["alive"] and model["task"] == "worker:0", "the worker leads")
        self.train("chief:0")
        self.finish()
        self.assertEqual(self.ready("worker:0"), ["joined", "continued"])
        self.assertEqual(self.ready("chief:0"), ["joined"])
        self.assertEqual(self.model()["phase"], "over")

    def test_say_that_they_have_no_session(self):
        self.begin()
        self.session.close()
        self.cluster.kill("ps:0")
        peer.await_true(lambda: self.model()["detail"], "the chief says so")
        self.assertFalse(self.model()["ready"])
        self.assertNotRegex(self.model()["detail"], "==|GRPC")
        self.assertRegex(peer.muster("status", "grpc://" + self.address), r"not ready  model\b.*\n  chief +chief:0 \(.*\)  no session for ")
        self.cluster.start("ps:0")
        self.finish()

    def test_give_way_when_their_own_server_is_away(self):
        self.options += ["--timeout=40"]  # half of it is for the step that was cut off
        self.begin()
        self.cluster.kill("chief:0")

        def follows():
            self.allow(1, "worker:0")
            model = self.model()
            return model and model["alive"] and model["task"] == "worker:0"
        peer.await_true(follows, "the worker leads")
        self.cluster.start("chief:0")
        self.finish()
        self.assertEqual(self.ready("chief:0"), ["initialised", "joined"])


    def heard(self, name):
        """What the task's command writes to stderr, from its next start on: a function that reads it."""
        path = os.path.join(self.folder(), "stderr")
        self.before = {name: ["sh", "-c", 'exec "$@" 2>"$0"', path]}
        return lambda: open(path, encoding="utf-8").read()

    def test_that_took_over_do_not_wait_for_a_step_that_ended_with_their_server(self):
        said = self.heard("worker:0")
        self.begin()
        self.kill("chief:0")
        self.allow(1, "chief:0", "worker:0")
        peer.await_true(lambda: (model := self.model()) and model["alive"] and model["task"] == "worker:0" and self.unended() == [0, 1],
                        "the worker leads, in the middle of a step")
        self.cluster.kill("worker:0")
        self.cluster.start("worker:0")
        peer.await_true(lambda: self.ready("worker:0") == ["joined", "continued", "restored"], "the model is restored")
        self.assertNotIn("a step of task 1", said())
        self.train("chief:0")
        self.finish()

    def test_end_as_preempted_where_they_have_claimed_again_and_not_restored(self):
        said = self.heard("chief:0")
        self.options += ["--grace=3"]
        self.begin()
        self.cluster.kill("chief:0")
        self.cluster.start("chief:0")  # the worker's step goes on meanwhile
        peer.await_true(lambda: "the model is restored when a step of task 1 has ended" in said(), "it waits for the worker's step")
        self.tasks["chief:0"][0].terminate()
        self.assertEqual(self.tasks["chief:0"][0].wait(self.patience), 6, said())

    def test_save_and_hold_when_the_job_is_drained(self):
        """As before the parameter server is stopped, which then costs no step."""
        self.begin()
        drain = subprocess.Popen([peer.MUSTER, "drain", "grpc://" + self.address, "--grace=60s", "--json"], stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, text=True, preexec_fn=peer.die_with_parent)
        self.addCleanup(drain.stdout.close)
        self.addCleanup(drain.wait)
        self.addCleanup(drain.kill)
        peer.await_true(lambda: self.allow(1, *self.tasks) or drain.poll() is not None, "it is drained")
        drained = json.loads(drain.stdout.read())
        self.assertEqual((drain.returncode, drained["saved"]), (0, True))
        self.assertEqual(drained["durable_step"], self.read("last"))
        self.session.close()
        self.cluster.kill("ps:0")
        self.cluster.start("ps:0")
        self.finish()
        self.assertEqual(self.ready("chief:0"), ["initialised", "restored"])
        trained = [event for event in self.events("chief:0") if event["event"] == "trained"]
        self.assertEqual(trained[-1]["goodput"]["steps_again"], 0)


class WithoutPositions(Coordinated):
    positions = "--no-positions"

    def test_tasks_are_members_and_a_worker_takes_the_chiefs_place(self):
        self.train("chief:0")
        self.train("worker:0")
        self.allow(2, *self.tasks)
        peer.await_true(lambda: self.model_has(4), "four steps are made")
        job, = peer.muster_json("status", "grpc://" + self.address)["jobs"]
        self.assertEqual([(task["task"], task["role"]) for task in job["members"]], [("chief:0", "chief"), ("worker:0", "worker")])
        self.kill("chief:0")
        self.allow(1, "worker:0")
        peer.await_true(lambda: (model := self.model()) and model["alive"] and model["task"] == "worker:0", "the worker leads")
        self.train("chief:0")
        self.allow(60, *self.tasks)
        for name, (process, _) in self.tasks.items():
            self.assertEqual(process.wait(self.patience), 0, name)
        self.assertEqual((self.ready("worker:0"), self.ready("chief:0")), (["joined", "continued"], ["joined"]))
        self.assertEqual(self.model()["phase"], "over")


class OwnDirectories(Coordinated):
    positions = "--no-positions"

    def test_let_a_worker_train_on_until_the_chief_is_back(self):
        """It can't be the chief: it hasn't the checkpoints of the model that it would continue with."""
        self.train("chief:0")
        self.train("worker:0", "--checkpoint-dir=" + self.folder())
        self.allow(2, *self.tasks)
        peer.await_true(lambda: self.model_has(4), "four steps are made")
        peer.await_true(lambda: v1.train.latest_checkpoint(self.run_dir), "there is something to restore")
        self.kill("chief:0")
        self.allow(3, "worker:0")
        peer.await_true(lambda: self.read("last") == 7, "it trains on")
        self.train("chief:0")
        self.allow(60, *self.tasks)
        for name, (process, _) in self.tasks.items():
            self.assertEqual(process.wait(self.patience), 0, name)


class Dies(Coordinated):

    def test_and_hears_that_the_job_is_over_when_it_is_back(self):
        """Until then the chief's process stays, for at most half a minute."""
        self.begin()
        self.stop(self.coordinator)
        self.allow(200, *self.tasks)
        self.assertEqual(self.tasks["worker:0"][0].wait(self.patience), 0)
        self.start()
        self.finish()
        self.assertEqual(self.model()["phase"], "over")

    def test_and_is_told_all_when_it_is_back(self):
        self.begin()
        self.stop(self.coordinator)
        self.allow(2, *self.tasks)
        peer.await_true(lambda: self.read("last") == 8, "steps are made without it")
        self.start()
        peer.await_true(lambda: (model := self.model()) and model["phase"] == "training" and model["task"] == "chief:0", "it knows the chief")
        self.finish()
        self.assertEqual(self.model()["phase"], "over")
        self.assertEqual(self.ready("chief:0"), ["initialised"])


if __name__ == "__main__":
    peer.main()
