#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""TensorFlow and muster in one process, each with its own gRPC and OpenSSL."""
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.abspath(os.path.join(os.path.dirname(__file__), "../../python")))
import case
import muster
import pythons

ORDERS = [loads + " " + calls for loads in ("load_tensorflow load_muster", "load_muster load_tensorflow")
          for calls in ("call_tensorflow call_muster call_tensorflow", "call_muster call_tensorflow call_muster")]

ENDS = """
import sys
import tensorflow.compat.v1 as tf
tf.disable_v2_behavior()
tf.train.import_meta_graph(sys.argv[1])
class Hook(tf.train.SessionRunHook):
    def end(self, session):
        print("end")
def rows():
    yield from [{"x:0": [1.0], "y:0": [2.0]}] * 2
rows = rows()
with tf.train.MonitoredTrainingSession(checkpoint_dir=sys.argv[2], hooks=[Hook()], save_checkpoint_steps=1000) as session:
    while not session.should_stop():
        session.run("train", next(rows))
print(tf.train.latest_checkpoint(sys.argv[2]))
"""


@unittest.skipUnless(pythons.TENSORFLOW, "needs TensorFlow, which `bazel/setup --tests` installs")
class Together(case.TestCase):
    def test_each_makes_its_calls_in_any_order(self):
        certs = self.folder + "/certs"
        subprocess.run([case.built("cli/muster"), "certs", certs], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        plain = self.serve().replace("localhost", "127.0.0.1")
        secure = self.serve("--tls-cert=%s/server.pem" % certs, "--tls-key=%s/server.key" % certs, "--token-file=%s/tokens" % certs)
        libraries = self.folder + "/libraries"
        subprocess.run(["mkdir", libraries], check=True)
        env = pythons.environment(libraries, with_tensorflow=True)
        for order in ORDERS:
            with self.subTest(order=order):
                done = subprocess.run([sys.executable, case.ROOT + "/tests/python/beside_tensorflow.py", order, plain, secure.replace("grpc:", "grpcs:"), certs + "/ca.pem",
                                       certs + "/run.token"], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=200)
                self.assertEqual((done.returncode, done.stdout[-5:]), (0, "done\n"), done.stdout[-2000:])

    def test_an_iterator_that_stops_ends_the_input_of_both(self):
        seen, rows, ours, theirs = [], iter([{"x:0": [1.0], "y:0": [2.0]}] * 2), self.folder + "/ours", self.folder + "/theirs"

        class Hook(muster.Hook):
            def do_end(self, session):
                seen.append("end")

        with muster.monitored_training_session_new(scaffold=case.linreg(), master=muster.LocalMaster(), hooks=[Hook()], checkpoint_dir=ours,
                                                   save_steps=1000) as session:
            while not session.should_stop():
                session.run("train", next(rows))
        seen.append(muster.latest_checkpoint(None, ours).replace(ours, theirs))
        env = {**os.environ, "PYTHONPATH": os.path.dirname(pythons.TENSORFLOW[0]), "TF_CPP_MIN_LOG_LEVEL": "2"}
        done = subprocess.run([sys.executable, "-c", ENDS, case.fixture("linreg.meta"), theirs], env=env, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=200)
        self.assertEqual((done.stdout.split(), seen[-1][-2:]), (seen, "-2"), done.stderr[-2000:])


if __name__ == "__main__":
    case.main()
