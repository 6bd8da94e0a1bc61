#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Chiefs that die, come twice or are slow, on real processes: nobody hears "ready" before a chief has ended what it
began, and of two chiefs one is refused before it runs anything."""
import os
import signal
import sys

sys.path.insert(0, "tests/scenarios")
import processes
from processes import DIGITS, peer

SLOW_CHIEF = os.path.abspath("tests/scenarios/slow_chief")


class ChiefsTest(processes.TestCase):
    def chief(self, target):
        return self.start(SLOW_CHIEF, DIGITS, target)

    def test_a_chief_killed_in_the_middle_of_init(self):
        """Its init op has run: all variables have values, and still the model isn't ready."""
        _, target = self.serve()
        worker = self.wait_command(target, "60s")
        worker.expect("no chief")
        chief = self.chief(target)
        chief.expect("initialising")
        chief.signal(signal.SIGKILL)
        chief.wait(10)
        worker.expect("slow:0")
        self.expect_end(self.wait_command(target, "5s"), 1, "slow:0", timeout=5)
        self.assertIsNone(worker.process.poll(), worker.text())
        self.prepare(target)
        self.assertEqual(worker.wait(60), 0, worker.text())

    def test_workers_wait_for_the_end_of_the_init_function(self):
        _, target = self.serve()
        chief = self.chief(target)
        chief.expect("initialising")
        self.expect_end(self.wait_command(target, "5s"), 1, "initialising", timeout=5)
        worker = self.wait_command(target, "60s")
        worker.expect("initialising")
        chief.send("")
        chief.expect("ready")
        self.assertEqual(worker.wait(60), 0, worker.text())

    def test_two_chiefs_at_once(self):
        """The first that came is at work: the other is refused before it runs anything."""
        _, target = self.serve()
        first = self.chief(target)
        first.expect("initialising")
        second = self.chief(target)
        second.expect("failed 9")
        self.assertIn("slow:0", second.text())
        self.assertNotIn("initialising", second.lines)
        first.send("")
        first.expect("ready")

    def test_a_higher_epoch_takes_the_model_over(self):
        _, target = self.serve()
        first = self.chief(target)
        first.expect("initialising")
        self.prepare(target, "--epoch=7")
        first.send("")
        first.expect("failed 9")
        self.assertEqual(self.wait_command(target, "30s").wait(60), 0)

    def test_a_model_of_another_graph_is_refused(self):
        """Though the server has none of its variables: the name is taken."""
        _, target = self.serve()
        self.prepare(target)
        said = peer.muster("prepare", "--meta-graph=" + peer.fixture("linreg.meta"), "--model=digits", "--master=" + target,
                           "--timeout=30", code=4)
        self.assertIn("'digits' is already initialised (by ", said)

    def test_a_model_does_not_overwrite_the_variables_of_another_one_that_is_trained(self):
        _, target = self.serve()
        words = ["--meta-graph=" + DIGITS, "--master=" + target]
        train = [peer.MUSTER, "train", *words, "--feed=x:0=@" + peer.fixture("digits_x.npy"), "--feed=y:0=@" + peer.fixture("digits_y.npy"),
                 "--steps=1000000000", "--json"]
        first = self.start(*train)
        first.expect('"event":"step"')
        second = self.start(*train, "--model=other")
        self.expect_end(second, 3, "the variable 'beta1_power' of 'other' is also one of 'digits', whose chief is chief:0 (",
                        "use another master, or end that job first")
        for also in ([], ["--overwrite"]):
            peer.muster("prepare", *words, "--model=other", *also, code=3)
        peer.muster("prepare", "--meta-graph=" + peer.fixture("linreg.meta"), "--master=" + target)  # shares none
        self.assertIsNone(first.process.poll(), first.text())
        first.signal(signal.SIGTERM)
        first.wait(30)
        peer.muster("prepare", *words, "--model=other")


if __name__ == "__main__":
    peer.main()
