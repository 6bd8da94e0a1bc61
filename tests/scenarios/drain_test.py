#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A server that is told to stop (SIGTERM) beneath a job of a chief and two workers: it ends once the chief has saved, and
the job goes on with the next server, from where it was."""
import json
import os
import re
import signal
import sys
import tempfile
import urllib.error
import urllib.request

sys.path.insert(0, "tests/scenarios")
import processes
from processes import DIGITS, peer

# Nothing here takes so long, sanitizers and a busy machine included.
PATIENCE = 60
EPOCHS, BATCHES = 80 if os.environ.get("MUSTER_SHORT") else 400, 1797 // 32


class DrainTest(processes.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.directory = os.path.join(temporary.name, "run")

    def train(self, target, *arguments, epochs=10**6):
        return self.start(peer.MUSTER, "train", "--meta-graph=" + DIGITS, "--master=" + target,
                          "--feed=x:0=@" + peer.fixture("digits_x.npy"), "--feed=y:0=@" + peer.fixture("digits_y.npy"),
                          "--epochs=%d" % epochs, "--json", *arguments)

    def chief(self, target, *arguments, epochs=10**6):
        """One that saves at its start and at its end."""
        return self.train(target, "--checkpoint-dir=" + self.directory, "--save-every=1000000000", *arguments, epochs=epochs)

    def events(self, process, name):
        return [event for event in map(json.loads, (line for line in process.text().splitlines() if line.startswith("{")))
                if event["event"] == name]

    def last_saved(self, chief):
        return max((event["step"] for event in self.events(chief, "saved")), default=0)

    def port(self, target):
        return int(target.rsplit(":", 1)[1])

    def test_a_job_goes_on_with_the_next_server_from_where_it_was(self):
        self.go_on_with_the_next_server()

    def test_so_does_one_with_a_fast_tier(self):
        self.go_on_with_the_next_server("--fast-dir=%s.fast,every=1000000000" % self.directory)

    def go_on_with_the_next_server(self, *arguments):
        server, target = self.serve_lastingly()
        chief = self.chief(target, "--tasks=3", *arguments, epochs=EPOCHS)
        workers = [self.train(target, "--tasks=3", "--task=worker:%d" % i, epochs=EPOCHS) for i in range(2)]
        for task in chief, *workers:
            task.expect('"event":"step"')
        server.signal(signal.SIGTERM)
        self.assertEqual(server.wait(PATIENCE), 0, server.text())
        chief.expect("the job is drained; saving")
        chief.expect_later(lambda: self.last_saved(chief) > 0)
        saved = self.last_saved(chief)
        self.assertLessEqual(server.text().count("waiting for the chief of 'digits', chief:0 ("), 1, server.text())
        self.serve(self.port(target))
        for task in chief, *workers:
            self.assertEqual(task.wait(PATIENCE), 0, task.text())
        ready = self.events(chief, "ready")
        self.assertEqual([event["step"] for event in ready], [0, saved])
        trained = self.events(chief, "trained")[-1]
        self.assertEqual(trained["step"], EPOCHS * BATCHES)
        self.assertEqual(trained["goodput"]["steps_again"], 0)
        for task in chief, *workers: # none has seen a step beyond what was saved before it saw the next server
            before = task.text().split('"event":"lost"')[0]
            steps = [json.loads(line)["step"] for line in before.splitlines() if line.startswith('{"event":"step"')]
            self.assertLessEqual(max(steps), saved, task.text())

    def test_on_request_the_server_may_be_killed(self):
        server, target = self.serve_lastingly()
        chief = self.chief(target, "--tasks=2", epochs=EPOCHS)
        worker = self.train(target, "--tasks=2", "--task=worker:0", epochs=EPOCHS)
        for task in chief, worker:
            task.expect('"event":"step"')
        drained = peer.muster("drain", target, "--model=digits")
        self.assertRegex(drained, r"^drained digits: step \d+ is durable \(.*\); its tasks hold for ")
        server.end()
        self.serve(self.port(target))
        for task in chief, worker:
            self.assertEqual(task.wait(PATIENCE), 0, task.text())
        self.assertEqual(self.events(chief, "trained")[-1]["goodput"]["steps_again"], 0)

    def test_on_request_again_saves_again_where_the_tasks_would_not_hold_for_as_long(self):
        _, target = self.serve()
        chief = self.chief(target, "--tasks=2")
        worker = self.train(target, "--tasks=2", "--task=worker:0")
        for task in chief, worker:
            task.expect('"event":"step"')
        steps = [int(re.match(r"drained digits: step (\d+) is durable", peer.muster("drain", target, "--grace=" + grace)).group(1))
                 for grace in ("30s", "40s", "90s", "30s")]
        self.assertEqual(steps[0], steps[1])
        self.assertLess(steps[1], steps[2])
        self.assertEqual(steps[2], steps[3])

    def test_on_request_tasks_that_hold_end_at_a_signal(self):
        _, target = self.serve()
        chief = self.chief(target, "--tasks=2")
        worker = self.train(target, "--tasks=2", "--task=worker:0")
        for task in chief, worker:
            task.expect('"event":"step"')
        drained = peer.muster("drain", target, "--grace=1h")
        step = int(re.match(r"drained digits: step (\d+) is durable", drained).group(1))
        chief.expect('"waiting":"holding for a drain"')
        worker.expect('"waiting":"holding for a save or a drain"')
        shown = self.status(target)
        self.assertIn("training, holding for a drain for another ", shown)
        self.assertNotIn("no step has ended", shown)
        for task, says in (worker, "nothing to save"), (chief, "step %d was durable after" % step):
            task.signal(signal.SIGTERM)
            self.assertEqual(task.wait(PATIENCE), 6, task.text())
            self.assertIn(says, self.events(task, "preempted")[-1]["preemption"])
        self.assertGreater(self.events(chief, "preempted")[-1]["goodput"]["seconds"]["paused"], 0)
        self.assertRegex(self.status(target), r"preempted .* ago, while training, last durable step %d " % step)

    def test_on_request_says_that_no_chief_trains_or_saves(self):
        _, target = self.serve()
        self.assertIn("no chief of any model trains here", peer.muster("drain", target, code=4))
        chief = self.train(target)
        chief.expect('"event":"step"')
        self.assertIn("digits isn't saved: its chief saves no checkpoints", peer.muster("drain", target, "--grace=1s", code=1))
        for grace in "0", "25h":
            self.assertIn("invalid --grace '%s'" % grace, peer.muster("drain", target, "--grace=" + grace, code=3))
        self.assertIn("drain needs one TARGET", peer.muster("drain", code=3))

    def test_ends_with_its_grace_where_the_chief_does_not_save(self):
        server, target = self.serve(0, "--grace=2s")
        chief = self.chief(target)
        chief.expect('"durable_step":0,')
        chief.stop()
        server.signal(signal.SIGTERM)
        self.assertEqual(server.wait(PATIENCE), 0, server.text())

    def test_ends_at_once_at_the_second_signal(self):
        server, target = self.serve(0, "--grace=1h", "--chief-lease=1h")
        chief = self.chief(target)
        chief.expect('"durable_step":0,')
        chief.stop()
        server.signal(signal.SIGTERM)
        peer.await_true(lambda: "draining" in self.status(target), "it drains")
        self.assertIsNone(server.process.poll())
        server.signal(signal.SIGTERM)
        self.assertEqual(server.wait(PATIENCE), 0, server.text())

    def status(self, target):
        return peer.muster("status", target, "--timeout=20")

    def test_waits_for_nobody_where_nobody_trains(self):
        server, target = self.serve(0, "--grace=1h")
        self.prepare(target)
        server.signal(signal.SIGTERM)
        self.assertEqual(server.wait(PATIENCE), 0, server.text())

    def test_a_probe_sees_that_it_drains(self):
        server, target = self.serve(0, "--grace=1h", "--chief-lease=1h", "--http=127.0.0.1:0")
        server.expect("http http://")
        page = [line.split()[1] for line in server.lines if line.startswith("http ")][0]
        chief = self.chief(target)
        chief.expect('"durable_step":0,')
        chief.stop()
        server.signal(signal.SIGTERM)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

        def says():
            try:
                with opener.open(page + "/readyz", timeout=PATIENCE) as answer:
                    return answer.read().decode()
            except urllib.error.HTTPError as error:
                with error:
                    return error.read().decode()

        peer.await_true(lambda: "the server is draining" in says(), "it drains")
        chief.signal(signal.SIGCONT)
        self.assertEqual(server.wait(PATIENCE), 0, server.text())
        chief.expect('"event":"saved"')

    def test_sighup_ends_nothing(self):
        server, target = self.serve()
        server.signal(signal.SIGHUP)
        self.prepare(target)
        self.assertIsNone(server.process.poll(), server.text())


if __name__ == "__main__":
    peer.main()
