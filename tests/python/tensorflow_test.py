#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""TensorFlow and muster in one process, each with its own gRPC and OpenSSL."""
import subprocess
import sys
import unittest

import case
import pythons

ORDERS = [loads + " " + calls for loads in ("load_tensorflow load_muster", "load_muster load_tensorflow")
          for calls in ("call_tensorflow call_muster call_tensorflow", "call_muster call_tensorflow call_muster")]


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


if __name__ == "__main__":
    case.main()
