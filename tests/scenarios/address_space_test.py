#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A training whose address space is too small for OpenBLAS's buffers: it goes on without them, where OpenBLAS would try
without end."""
import resource
import subprocess
import sys

sys.path.insert(0, "tests/tensorflow")
import peer

PATIENCE = 120


class AddressSpaceTest(peer.TestCase):
    def train(self, megabytes):
        limit = megabytes << 20
        process = subprocess.Popen(
            [peer.MUSTER, "train", "--meta-graph=" + peer.fixture("digits.meta"), "--master=local", "--steps=300",
             "--feed=x:0=@" + peer.fixture("digits_x.npy"), "--feed=y:0=@" + peer.fixture("digits_y.npy")],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
        try:
            out, err = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
            process.wait()
        self.assertEqual(process.returncode, 0, err)
        self.assertIn("to step 300", out)
        return err

    def test_training_goes_on_without_openblas(self):
        self.assertIn("there is too little address space for OpenBLAS", self.train(380))
        self.assertNotIn("OpenBLAS", self.train(4000))


if __name__ == "__main__":
    peer.main()
