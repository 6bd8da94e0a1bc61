#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""elastic_test.py beside TensorFlow: the takeover on its own server, which knows neither members nor chiefs (a gateway does), and
on its runtime as a child process; and what its TensorBoard reads of the summaries of several chiefs."""
import glob
import os
import signal
import sys

from tensorboard.backend.event_processing import event_accumulator

sys.path.insert(0, "tests/scenarios")
import elastic_test
from processes import peer

EPOCHS = 60  # TensorFlow's steps over the network take longer


class ElasticOnTensorFlowTest(elastic_test.TestCase):
    def test_another_takes_over(self):
        self.epochs = EPOCHS
        master = self.enterContext(peer.tensorflow_server())
        _, target = self.serve(0, "--master=" + master)
        self.expect_takeover(target)

    def test_another_takes_over_on_the_runtime_as_a_child(self):
        self.epochs = EPOCHS
        _, target = self.serve(0, "--master=tensorflow:" + sys.prefix)
        self.expect_takeover(target)

    def test_tensorboard_reads_the_summaries_of_all_chiefs_as_one_history(self):
        _, target = self.serve()
        tasks = self.job(target, 4)
        for dying, next_chief in zip(tasks, tasks[1:3]):
            step = self.last_step(dying)
            dying.expect_later(lambda: self.last_step(dying) > step + 300)
            dying.signal(signal.SIGKILL)
            next_chief.expect('"how":"continued"')
        for task in tasks[2:]:
            self.expect_trained(task)
        self.assertEqual(len(glob.glob(os.path.join(self.directory, "events.out.tfevents.*"))), 3)
        history = event_accumulator.EventAccumulator(self.directory, size_guidance={event_accumulator.SCALARS: 0}).Reload()
        for tag in ("loss_summary", "global_step/sec"):
            steps = [scalar.step for scalar in history.Scalars(tag)]
            self.assertEqual(steps, sorted(set(steps)), tag)
            self.assertGreater(steps[-1], elastic_test.BATCHES * self.epochs - 300, tag)


if __name__ == "__main__":
    peer.main()
