#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tasks that are told to go (SIGTERM), on real processes: they stop after their step, save what fits the grace, and exit
with 6; the same command goes on from there."""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, "tests/scenarios")
import processes
from processes import DIGITS, peer

PREEMPTED = 6
# How long a process may take to end that isn't waiting for anything, sanitizers and a busy machine included.
PATIENCE = 60


class PreemptionTest(processes.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.directory = os.path.join(temporary.name, "run")

    def train(self, *arguments, master="local", steps=10**9):
        return self.start(peer.MUSTER, "train", "--meta-graph=" + DIGITS, "--master=" + master,
                          "--feed=x:0=@" + peer.fixture("digits_x.npy"), "--feed=y:0=@" + peer.fixture("digits_y.npy"),
                          "--steps=%d" % steps, "--json", *arguments)

    def chief(self, *arguments, **more):
        """One that saves at its start and at its end."""
        return self.train("--checkpoint-dir=" + self.directory, "--save-every=1000000000", *arguments, **more)

    def events(self, process):
        return [json.loads(line) for line in process.text().splitlines() if line.startswith("{")]

    def expect_preempted(self, process):
        self.assertEqual(process.wait(PATIENCE), PREEMPTED, process.text())
        last = self.events(process)[-1]
        self.assertEqual((last["event"], last["exit_code"]), ("preempted", PREEMPTED))
        return last

    def expect_goes_on_from(self, step):
        """The same command, which has a little more to do."""
        again = self.chief(steps=step + 3)
        self.assertEqual(again.wait(PATIENCE), 0, again.text())
        events = self.events(again)
        ready = [event for event in events if event["event"] == "ready"][0]
        self.assertEqual((ready["step"], events[-1]["step"]), (step, step + 3))

    def saved_steps(self):
        names = os.listdir(self.directory)
        self.assertFalse([name for name in names if name.startswith(".saving")], names)
        return sorted(int(name.split("-")[1].split(".")[0]) for name in names if name.endswith(".index"))

    def test_what_was_trained_is_saved_and_goes_on(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(number=number):
                chief = self.chief()
                chief.expect('"event":"step"')
                chief.signal(number)
                last = self.expect_preempted(chief)
                self.assertIn("was durable after", last["preemption"])
                self.assertEqual(self.saved_steps()[-1], last["step"])
                self.expect_goes_on_from(last["step"])

    def test_a_chief_of_a_remote_master_and_its_worker(self):
        _, target = self.serve()
        chief = self.chief("--tasks=2", master=target)
        worker = self.train("--tasks=2", "--task=worker:0", master=target)
        worker.expect('"event":"step"')
        worker.signal(signal.SIGTERM)
        self.assertIn("nothing to save", self.expect_preempted(worker)["preemption"])
        self.assertIsNone(chief.process.poll(), chief.text())
        chief.signal(signal.SIGTERM)
        last = self.expect_preempted(chief)
        self.assertEqual(self.saved_steps()[-1], last["step"])

    def test_a_save_that_does_not_fit_is_not_begun(self):
        chief = self.chief("--grace=1ms")
        chief.expect('"durable_step":0,')
        chief.signal(signal.SIGTERM)
        last = self.expect_preempted(chief)
        self.assertIn("no save was begun", last["preemption"])
        self.assertIn("the last durable step is 0", last["preemption"])
        self.assertEqual(self.saved_steps(), [0])
        self.expect_goes_on_from(0)

    def test_a_master_that_says_nothing_any_more(self):
        """The step that is running, or what is asked after it, never ends: the task does, within its grace."""
        for stopped_first in (True, False, True, False):
            with self.subTest(stopped_first=stopped_first):
                server, target = self.serve()
                self.directory = os.path.join(self.folder(), "run")  # the one before may have saved a later step
                chief = self.chief("--grace=2s", master=target)
                chief.expect('"durable_step":0,')
                for act in (server.stop, lambda: chief.signal(signal.SIGTERM))[::1 if stopped_first else -1]:
                    act()
                self.assertEqual(chief.wait(2 + processes.GRACE_SECONDS), PREEMPTED, chief.text())
                if stopped_first: # otherwise it may have saved in time
                    self.assertIn("the last durable step is 0", self.events(chief)[-1]["preemption"])
                    self.assertEqual(self.saved_steps(), [0])

    def test_a_worker_that_waits_for_its_chief(self):
        _, target = self.serve()
        worker = self.train("--tasks=2", "--task=worker:0", master=target)
        worker.expect('"event":"waiting"')
        worker.signal(signal.SIGTERM)
        self.expect_preempted(worker)

    def test_a_drill_reports_what_is_to_spare(self):
        chief = self.chief("--drill")
        self.assertEqual(chief.wait(PATIENCE), 0, chief.text())
        last = self.events(chief)[-1]
        self.assertRegex(last["preemption"], "^a preemption would take .* of the 30.0 s grace: .* to spare$")
        self.assertEqual(self.saved_steps()[-1], last["step"])
        too_short = self.chief("--drill", "--grace=1ms")
        self.assertEqual(too_short.wait(PATIENCE), 4, too_short.text())
        self.assertRegex(self.events(too_short)[-1]["preemption"], "^a preemption would end without one: no save was begun")


class EarlySignalTest(peer.TestCase):
    """A signal that arrives before a command has begun."""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.pipe = os.path.join(temporary.name, "pipe.meta")
        os.mkfifo(self.pipe)

    def start(self, *arguments, prepare=lambda: None):
        def before():
            peer.die_with_parent()
            prepare()

        process = subprocess.Popen([peer.MUSTER, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, preexec_fn=before)

        def end():
            process.kill()
            process.communicate()

        self.addCleanup(end)
        return process

    def open_pipe(self):
        """Returns once a process opens the pipe to read."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                return os.open(self.pipe, os.O_WRONLY | os.O_NONBLOCK)
            except OSError:
                self.assertLess(time.monotonic(), end, "nobody reads")
                time.sleep(0.01)

    def test_while_a_file_is_read(self):
        train = ["train", "--meta-graph=" + self.pipe, "--master=local", "--steps=1"]
        wait = ["wait", "--meta-graph=" + self.pipe, "--master=grpc://localhost:1"]
        for arguments, code in (train, PREEMPTED), (wait, -signal.SIGTERM):
            with self.subTest(command=arguments[0]):
                process = self.start(*arguments)
                writer = self.open_pipe()
                process.send_signal(signal.SIGTERM)
                self.assertEqual(process.wait(PATIENCE), code)
                os.close(writer)

    def test_that_is_pending_when_the_training_handles_signals(self):
        def send():
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
            os.kill(os.getpid(), signal.SIGTERM)

        for _ in range(5):
            process = self.start("train", "--meta-graph=" + DIGITS, "--master=local", "--steps=1000000000",
                                 "--feed=x:0=@" + peer.fixture("digits_x.npy"),
                                 "--feed=y:0=@" + peer.fixture("digits_y.npy"), "--json", prepare=send)
            text = process.communicate(timeout=PATIENCE)[0]
            self.assertEqual(process.returncode, PREEMPTED, text)
            self.assertEqual(json.loads(text.splitlines()[-1])["event"], "preempted")


if __name__ == "__main__":
    peer.main()
