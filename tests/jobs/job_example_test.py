#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""examples/job on real processes: nodes that serve, a job that is killed, and comes back."""
import os
import re
import signal
import sys

sys.path.insert(0, "tests/scenarios")
sys.path.insert(0, "tests/tensorflow")
import peer
import processes

JOB = os.path.abspath("examples/job/job")
END_SECONDS = 60


class Job(processes.TestCase):
    def start_job(self, folder, epochs, targets):
        return self.start(JOB, *(peer.fixture(name) for name in ("digits.meta", "digits_x.npy", "digits_y.npy")),
                          folder, str(epochs), *targets)

    def end_of(self, job):
        """What a job that ends well has said."""
        self.assertEqual(job.wait(END_SECONDS), 0, job.text())
        return job.text()

    def nodes(self):
        return [self.serve() for _ in range(2)]

    def checkpoints(self, folder):
        return sorted(name[:-len(".index")] for name in os.listdir(folder)
                      if name.endswith(".index") and not name.startswith("."))

    def test_goes_on_after_the_last_epoch_that_was_saved(self):
        folder = self.folder()
        nodes = self.nodes()
        job = self.start_job(folder, 10000, [target for _, target in nodes])
        job.expect("epoch 3")
        job.signal(signal.SIGKILL)
        job.wait(10)
        with open(os.path.join(folder, "job.muster")) as file:
            epoch = int(re.search(r"epoch=(\d+)", file.read()).group(1))
        self.assertGreaterEqual(epoch, 2)  # the save of the third may have been under way
        for prefix in ("trainer_0.%d" % epoch, "trainer_1.%d" % epoch):
            peer.muster("checkpoint", "verify", os.path.join(folder, prefix))
        # One node dies as well: what it comes back with is the checkpoint's.
        nodes[0][0].signal(signal.SIGKILL)
        again = self.start_job(folder, 7, [self.serve()[1], nodes[1][1]])
        again.expect("epoch %d" % (epoch + 1))
        again.signal(signal.SIGKILL)

    def test_counts_the_epochs_of_all_its_runs(self):
        folder = self.folder()
        job = self.start_job(folder, 6, [target for _, target in self.nodes()])
        job.expect("epoch 2")
        job.signal(signal.SIGKILL)
        job.wait(10)
        text = self.end_of(self.start_job(folder, 6, [target for _, target in self.nodes()]))
        self.assertIn("trained to epoch 6", text)
        self.assertNotIn("epoch 1\n", text)
        self.assertEqual(self.checkpoints(folder),
                         ["trainer_%d.%d" % (node, epoch) for node in range(2) for epoch in range(7)])
        for node in range(2):
            accuracy = float(re.search(r"trainer_%d accuracy=(\S+)" % node, text).group(1))
            self.assertGreater(accuracy, 0.8)
        # A job that has finished stays so: it is tested, and trains no more.
        text = self.end_of(self.start_job(folder, 6, [target for _, target in self.nodes()]))
        self.assertNotIn("\nepoch", "\n" + text)
        self.assertIn("trained to epoch 6", text)

    def test_waits_for_its_nodes(self):
        held = peer.hold_port()
        self.addCleanup(held.close)
        port = peer.port_of(held)
        folder = self.folder()
        job = self.start_job(folder, 1, ["grpc://127.0.0.1:%d" % port])
        self.serve(port)
        self.assertIn("trained to epoch 1", self.end_of(job))

    def test_says_what_is_wrong(self):
        for epochs, words in (("0", "negative init_count is not permitted."), ("x", "negative init_count")):
            job = self.start_job(self.folder(), epochs, [self.serve()[1]])
            self.assertEqual(job.wait(END_SECONDS), 4, job.text())
            self.assertIn(words, job.text())


if __name__ == "__main__":
    peer.main()
