#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A job whose fast tier is in the memory of another server: each of the two is killed, and the job goes on."""
import contextlib
import json
import os
import signal
import subprocess
import tempfile
import unittest

MUSTER = os.path.abspath("cli/muster")
LOCAL = [
    "--meta-graph=tests/fixtures/digits.meta", "--master=local", "--feed=x:0=@tests/fixtures/digits_x.npy",
    "--feed=y:0=@tests/fixtures/digits_y.npy"
]
PATIENCE = 60
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "TF_CONFIG"}


def muster(*words):
    done = subprocess.run([MUSTER, *words], capture_output=True, text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL, env=ENVIRONMENT)
    return done.returncode, done.stdout + done.stderr


def end(process):
    process.kill()
    process.communicate(timeout=PATIENCE)


class Peer(unittest.TestCase):
    def serve(self, *words, listen="localhost:0"):
        """A server, and its address."""
        process = subprocess.Popen([MUSTER, "serve", "--listen=" + listen, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                   text=True, env=ENVIRONMENT)
        self.addCleanup(end, process)
        return process, process.stdout.readline().split()[1].removeprefix("grpc://")

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.durable = os.path.join(folder.name, "run")
        self.peer, self.address = self.serve("--checkpoint-memory=64MiB")
        self.tier = "grpc://%s/run" % self.address

    def words(self, steps, *more):
        return ["train", *LOCAL, "--steps=%d" % steps, "--checkpoint-dir=" + self.durable, "--fast-dir=%s,every=20" % self.tier,
                "--save-every=100000", "--save-blocking", *more]

    @contextlib.contextmanager
    def training(self, saved):
        """A job without an end, once it has saved in its fast tier that often; killed afterwards."""
        process = subprocess.Popen([MUSTER, *self.words(10**9, "--json")], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                   env=ENVIRONMENT)
        try:
            for line in process.stdout:
                saved -= "/run/model.ckpt-" in line and self.address in line
                if saved == 0:
                    break
            self.assertEqual(saved, 0)
            yield process
        finally:
            end(process)

    def test_a_killed_job_resumes_from_the_peer(self):
        with self.training(5):
            pass
        code, listed = muster("checkpoint", "list", "--json", self.tier)
        self.assertEqual(code, 0, listed)
        newest = json.loads(listed.splitlines()[0])["prefix"]
        self.assertGreaterEqual(int(newest.rsplit("-", 1)[1]), 20)
        code, said = muster("checkpoint", "verify", self.tier)
        self.assertEqual(code, 0, said)
        code, said = muster(*self.words(int(newest.rsplit("-", 1)[1]) + 5))
        self.assertEqual(code, 0, said)
        self.assertIn("restored " + newest, said)

    def test_a_job_goes_on_without_its_peer(self):
        with self.training(3) as process:
            self.peer.kill()
            self.assertTrue(any("isn't used any more" in line for line in process.stdout))
            self.assertIsNone(process.poll())

    def test_a_second_job_of_that_name_is_refused(self):
        with self.training(3):
            self.durable += "-other"
            code, said = muster(*self.words(10))
        self.assertNotEqual(code, 0, said)
        self.assertIn("in use", said)

    def test_is_off_unless_the_server_is_given_memory(self):
        _, address = self.serve()
        code, said = muster("checkpoint", "list", "grpc://%s/run" % address)
        self.assertNotEqual(code, 0)
        self.assertIn("--checkpoint-memory", said)


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    unittest.main(verbosity=2)
