#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A step in whose node nothing can be cancelled: SIGTERM ends the training soon after its grace all the same."""
import os
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, "tests/tensorflow")
import peer

ENDLESS = os.path.abspath("tests/scenarios/libopenblas.so")
PREEMPTED = 6
PATIENCE = 60


class EndlessNodeTest(peer.TestCase):
    def test_sigterm_ends_it_after_its_grace(self):
        with tempfile.TemporaryDirectory(dir="/tmp") as folder:
            os.symlink(ENDLESS, os.path.join(folder, "libopenblas.so.0"))
            process = subprocess.Popen(
                [peer.MUSTER, "train", "--meta-graph=" + peer.fixture("digits.meta"), "--master=local", "--steps=10",
                 "--feed=x:0=@" + peer.fixture("digits_x.npy"), "--feed=y:0=@" + peer.fixture("digits_y.npy"),
                 "--grace=1s", "--json"],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL,
                env={**os.environ, "LD_LIBRARY_PATH": folder}, preexec_fn=peer.die_with_parent)
            try:
                self.assertIn('"event":"ready"', self.ready_line(process))
                process.send_signal(signal.SIGTERM)
                self.assertEqual(process.wait(PATIENCE), PREEMPTED)
            finally:
                process.kill()
                process.communicate()

    def ready_line(self, process):
        for line in process.stdout:
            if '"event":"ready"' in line:
                return line
        return ""


if __name__ == "__main__":
    peer.main()
