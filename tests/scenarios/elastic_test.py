#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tasks of a job that are equal (`muster train --task=auto`), on real processes that come, go, die and sleep: one of
them is the chief, another takes over, and the model's own count of steps shows that each batch was trained once."""
import fcntl
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import urllib.error
import urllib.request

sys.path.insert(0, "tests/scenarios")
import processes
from processes import DIGITS, peer

BATCHES = 56  # of an epoch of digits
EPOCHS = 100 if os.environ.get("MUSTER_SHORT") else 250
WITHOUT_END = 1000000  # epochs
DATA = [os.path.join(os.path.dirname(DIGITS), "digits_%s.npy" % name) for name in "xy"]


class TestCase(processes.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = os.path.join(directory.name, "run")
        self.epochs = EPOCHS

    def task(self, target, *arguments):
        return self.start(peer.MUSTER, "train", "--task=auto", "--json", "--master=" + target, "--meta-graph=" + DIGITS,
                          "--feed=x:0=@" + DATA[0], "--feed=y:0=@" + DATA[1], "--epochs=%d" % self.epochs,
                          "--save-every=500", "--checkpoint-dir=" + self.directory, *arguments)

    def job(self, target, n_tasks, *arguments):
        """Tasks that train, each in the slot of its number, the chief first."""
        tasks = []
        for _ in range(n_tasks):
            tasks.append(self.task(target, *arguments))
            tasks[-1].expect('"event":"step"')
        self.assertEqual(self.roles(tasks[0]), ["chief"])
        return tasks

    def roles(self, task):
        return [event["role"] for event in self.events(task) if event["event"] == "role"]

    def names(self, task):
        return [event["event"] for event in self.events(task)]

    def events(self, task):
        with task.changed:
            return [json.loads(line) for line in task.lines if line.startswith("{")]

    def expect_trained(self, task):
        self.assertEqual(task.wait(60), 0, task.text())
        last = self.events(task)[-1]
        self.assertEqual((last["event"], last["step"]), ("trained", BATCHES * self.epochs), task.text())

    def expect_trained_on(self, target, *tasks):
        """Ends tasks of a job without an end, whatever the machine's pace, and one more trains what is left of its last epoch."""
        for task in tasks:
            task.signal(signal.SIGTERM)
        for task in tasks:
            self.assertEqual(task.wait(30), 6, task.text())
        self.epochs = max(self.last_step(task) for task in tasks) // BATCHES + 5
        self.expect_trained(self.task(target))

    def expect_takeover(self, target):
        chief, second, third = self.job(target, 3)
        chief.signal(signal.SIGKILL)
        second.expect('"role":"chief"')
        second.expect('"event":"saved"')
        late = self.task(target)
        for task in (second, third, late):
            self.expect_trained(task)
        self.assertEqual(self.roles(second), ["worker", "chief"])
        self.assertEqual(self.roles(third), ["worker"])
        how = [event["how"] for event in self.events(second) if event["event"] == "ready"]
        self.assertEqual(how, ["joined", "continued"], second.text())

    def last_time(self, task):
        return max(event["time"] for event in self.events(task) if event["event"] == "step")

    def last_step(self, task):
        """Also of its end, up to a second after the step that it last told."""
        return max([event["step"] for event in self.events(task) if event.get("step") is not None], default=0)


class Line:
    """A server's address by a line that can be cut: then nothing passes, either way, and nobody hears that it ended."""

    def __init__(self, target):
        self.host, self.port = target.rsplit("/", 1)[1].rsplit(":", 1)
        self.whole = threading.Event()
        self.whole.set()
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.target = "grpc://127.0.0.1:%d" % self.listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                near, _ = self.listening.accept()
            except OSError:  # closed
                return
            far = socket.create_connection((self.host, int(self.port)))
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self._pass, args=(source, sink), daemon=True).start()

    def _pass(self, source, sink):
        try:
            while data := source.recv(65536):
                self.whole.wait()
                sink.sendall(data)
        except OSError:
            pass
        for end in (source, sink):
            end.close()


class ElasticTest(TestCase):
    def test_another_takes_over_from_a_chief_that_is_killed(self):
        _, target = self.serve()
        self.expect_takeover(target)

    def test_another_takes_over_behind_a_gateway(self):
        _, master = self.serve()
        _, target = self.serve(0, "--master=" + master)
        self.expect_takeover(target)

    def test_a_chief_that_wakes_up_works_on(self):
        self.epochs = WITHOUT_END
        _, target = self.serve(0, "--chief-lease=1s")
        chief, second = self.job(target, 2, "--save-every=1000000")
        chief.expect('"event":"saved"')  # it doesn't lock the directory now
        chief.stop()
        second.expect('"how":"continued"')
        chief.signal(signal.SIGCONT)
        chief.expect('"role":"worker"')
        self.expect_trained_on(target, second, chief)

    def test_a_chief_that_is_cut_off_from_the_master_works_on_as_a_worker(self):
        self.epochs = WITHOUT_END
        server, target = self.serve(0, "--chief-lease=1s")
        line = Line(target)
        self.addCleanup(line.listening.close)
        self.addCleanup(line.whole.set)
        chief = self.task(line.target, "--save-every=1000000")
        chief.expect('"event":"saved"')
        second = self.task(target)
        second.expect('"event":"step"')
        third = self.task(target)
        third.expect('"event":"step"')
        line.whole.clear()
        others = (second, third)  # the second, unless the machine is slow
        peer.await_true(lambda: any('"how":"continued"' in task.text() for task in others), "another task leads")
        steps = [self.last_step(task) for task in others]
        for task, step in zip(others, steps):
            task.expect_later(lambda: self.last_step(task) > step + 100)
        line.whole.set()
        chief.expect('"role":"worker"')
        self.expect_trained_on(target, second, third, chief)
        # One chief at any time: the master's record of whom it granted the model, each by a higher epoch. On a machine that
        # is very slow, the second's lease may run out, too.
        server.end()
        epochs = [int(epoch) for epoch in re.findall(r"claimed 'digits'.* epoch=(\d+)", server.text())]
        self.assertGreater(len(epochs), 1, server.text())
        self.assertEqual(epochs, sorted(set(epochs)), server.text())

    def test_a_server_that_slept_for_longer_than_a_lease_loses_nobody(self):
        self.epochs = WITHOUT_END
        server, target = self.serve(0, "--chief-lease=3s")
        tasks = self.job(target, 3)
        server.stop()
        peer.muster("status", target, "--timeout=5", code=2)  # it has slept for so long
        steps = [self.last_step(task) for task in tasks]
        server.signal(signal.SIGCONT)
        for task, step in zip(tasks, steps):
            task.expect_later(lambda: self.last_step(task) > step + 1000)
        self.assertEqual([self.roles(task) for task in tasks], [["chief"], ["worker"], ["worker"]])
        server.end()
        self.assertEqual(len(re.findall(r"claimed 'digits'", server.text())), 1, server.text())
        for event in ("chief-lost", "member-left", "session-reaped"):
            self.assertNotIn(" %s " % event, server.text())

    def test_a_server_that_restarts_waits_for_the_members_it_had(self):
        server, target = self.serve_lastingly()
        chief, second, third = self.job(target, 3)
        chief.expect('"event":"saved"')
        second.stop()
        server.end()
        server, _ = self.serve(int(target.rsplit(":", 1)[1]))
        for slot, task in ((0, chief), (2, third)):
            server.expect(" joined the job of 'digits' in slot %d" % slot)
            step = self.last_step(task)
            task.expect_later(lambda: self.last_step(task) > step + 100)
        server_has = server.text()
        second.signal(signal.SIGCONT)
        for slot, task in enumerate((chief, second, third)):
            self.expect_trained(task)
            self.assertEqual({event["slot"] for event in self.events(task) if event["event"] == "role"}, {slot}, task.text())
        # Nobody took over the slot of the one that was late.
        self.assertNotIn("slot-taken-over", server_has)
        self.assertNotIn("member-left", server_has)

    def test_tasks_train_on_while_a_sleeping_chief_locks_the_directory(self):
        """What the chief holds is held here in its place, since it holds it only for moments."""
        self.epochs = WITHOUT_END
        _, target = self.serve(0, "--chief-lease=1s")
        chief, second = self.job(target, 2, "--save-every=1000000")
        chief.expect('"event":"saved"')
        path = os.path.join(self.directory, ".muster.lock")
        with open(path, "a", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            chief.stop()
            second.expect("no chief, so no checkpoints are written: Locking '%s' failed: %s:%d holds the lock; if that process is "
                          "stopped, continue or end it" % (path, socket.gethostname(), chief.process.pid))
            self.assertIn("in 64 slots; no chief: no checkpoints are written", peer.muster("status", target))
            self.assertIs(peer.muster_json("status", target)["jobs"][0]["has_chief"], False)
            second.expect_later(lambda: self.names(second)[-1] == "step")
            rounds, step, began = self.names(second).count("ready"), self.last_step(second), self.last_time(second)
            # It tries again meanwhile, in the same session.
            second.expect_later(lambda: self.last_time(second) > began + 3 and self.last_step(second) > step + 100)
            self.assertEqual(self.names(second).count("ready"), rounds)
            self.assertEqual(self.roles(second), ["worker"])
        second.expect('"how":"continued"')
        chief.signal(signal.SIGCONT)
        chief.expect('"role":"worker"')
        self.expect_trained_on(target, second, chief)
        self.assertEqual(self.roles(second)[:2], ["worker", "chief"])

    def test_a_task_that_is_told_to_end_leaves_the_rest_to_others(self):
        _, target = self.serve()
        chief, second, third = self.job(target, 3)
        for task in (third, chief):
            task.signal(signal.SIGTERM)
            self.assertEqual(task.wait(30), 6, task.text())
        self.expect_trained(second)

    def test_tasks_wait_until_there_are_enough(self):
        few = "waiting for tasks: 1 of at least 2"
        server, target = self.serve(0, "--http=127.0.0.1:0", "--expect=digits")
        server.expect("http http://")
        page = [line.split()[1] for line in server.lines if line.startswith("http ")][0] + "/readyz"
        waiting = self.start(peer.MUSTER, "wait", "--meta-graph=" + DIGITS, "--master=" + target)
        waiting.expect("no chief has ever registered")
        first = self.task(target, "--min-tasks=2")
        first.expect(few)
        self.assertEqual(self.roles(first), [])
        waiting.expect(": " + few)
        self.assertRegex(peer.muster("status", target), "tasks +1 in 64 slots of digits; " + few)
        self.assertTrue(peer.muster_json("status", target)["jobs"][0]["waiting_for_tasks"])
        with self.assertRaises(urllib.error.HTTPError) as answer:
            urllib.request.urlopen(page, timeout=30)
        self.assertEqual(answer.exception.read().decode(), "digits: " + few + "\n")
        by_name = self.start(peer.MUSTER, "wait", "--model=digits", "--master=" + target)
        by_name.expect(": " + few)
        late = subprocess.run([peer.MUSTER, "wait", "--meta-graph=" + DIGITS, "--master=" + target, "--timeout=8", "--json"],
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(late.returncode, 1, late.stderr)
        first_cause = [it for it in json.loads(late.stdout)["reasons"] if not it["well"]][0]
        self.assertEqual((first_cause["component"], first_cause["state"]), ("job", "waiting-for-tasks"))
        late = subprocess.run([peer.MUSTER, "wait", "--model=digits", "--master=" + target, "--timeout=8"],
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(late.returncode, 1, late.stderr)
        self.assertTrue(late.stderr.rstrip().endswith(": " + few), late.stderr)
        second = self.task(target, "--min-tasks=2")
        for waiter in (waiting, by_name):
            self.assertEqual(waiter.wait(60), 0, waiter.text())
        self.expect_trained(first)
        said = [event["waiting"] for event in self.events(first) if event["event"] == "waiting"]
        self.assertEqual(said.count(few), 1, first.text())
        self.expect_trained(second)

    def waits(self, task):
        return [event["waiting"] for event in self.events(task) if event["event"] == "waiting"]

    def kill_and_expect_pause(self, needed, chief):
        """The chief may have waited for it at the start, too."""
        before = len(self.waits(chief))
        needed.signal(signal.SIGKILL)
        chief.expect_later(lambda: self.waits(chief)[before:] == ["waiting for tasks: 1 of at least 2"])

    def test_a_job_that_has_lost_a_task_that_it_needs_pauses(self):
        _, target = self.serve()
        chief, second = self.job_of_two(target)
        self.kill_and_expect_pause(second, chief)
        shown = peer.muster("status", target)
        self.assertRegex(shown, "tasks +1 in 64 slots; waiting for tasks: 1 of at least 2")
        self.assertRegex(shown, "chief .*training")
        self.assertRegex(shown, "^waiting for tasks  digits")
        peer.muster("status", "--ready=digits", target, code=1)
        peer.muster("wait", "--model=digits", "--master=" + target, "--timeout=5", code=1)
        third = self.task(target, "--min-tasks=2")
        chief.expect_later(lambda: self.waits(chief)[-1] is None)
        self.expect_trained(chief)
        self.expect_trained(third)
        self.assertEqual(self.roles(chief), ["chief"])
        self.assertEqual(self.waits(chief)[-2:], ["waiting for tasks: 1 of at least 2", None])

    def test_a_task_that_pauses_is_told_to_end(self):
        _, target = self.serve()
        chief, second = self.job_of_two(target)
        self.kill_and_expect_pause(second, chief)
        chief.signal(signal.SIGTERM)
        self.assertEqual(chief.wait(30), 6, chief.text())
        last = self.events(chief)[-1]
        self.assertEqual(last["event"], "preempted")
        self.assertRegex(peer.muster("status", target), "chief .*preempted .* ago, while training")
        self.assertEqual([event["step"] for event in self.events(chief) if event["event"] == "saved"][-1], last["step"])

    def test_a_task_pauses_no_longer_than_its_timeout(self):
        _, target = self.serve()
        chief, second = self.job_of_two(target, "--timeout=10s")
        second.signal(signal.SIGKILL)
        self.assertEqual(chief.wait(60), 4, chief.text())
        self.assertIn("'digits' had 1 of at least 2 tasks for 10.0 s; start more tasks", chief.text())
        last = self.events(chief)[-1]
        self.assertEqual(last["event"], "failed")
        self.assertEqual([event["step"] for event in self.events(chief) if event["event"] == "saved"][-1], last["step"])

    def job_of_two(self, target, *arguments):
        """Two tasks that train, and don't without each other; the chief first."""
        tasks = [self.task(target, "--min-tasks=2", *arguments) for _ in range(2)]
        for task in tasks:
            task.expect('"event":"step"')
        return sorted(tasks, key=self.roles)

    def test_a_task_that_did_not_start_in_time_reports_why(self):
        self.epochs = WITHOUT_END
        _, target = self.serve()
        alone = self.task(target, "--min-tasks=3", "--timeout=5")
        self.assertEqual(alone.wait(60), 1, alone.text())
        job = [reason for reason in self.events(alone)[-1]["reasons"] if reason["component"] == "job"]
        self.assertEqual([reason["state"] for reason in job], ["waiting-for-tasks"], alone.text())
        self.assertIn("start 2 more", job[0]["hint"])
        first = self.task(target, "--max-tasks=1")
        first.expect('"event":"step"')
        second = self.task(target, "--max-tasks=1", "--timeout=5")
        self.assertEqual(second.wait(60), 1, second.text())
        second.expect("timed out waiting for a place: the job takes at most 1 task")

    def test_a_task_of_a_job_that_is_over_has_nothing_to_do(self):
        _, target = self.serve()
        self.expect_trained(self.task(target))
        self.expect_trained(self.task(target))

    def test_a_task_too_many_waits_for_a_place(self):
        _, target = self.serve()
        first = self.task(target, "--max-tasks=1")
        first.expect('"event":"step"')
        second = self.task(target, "--max-tasks=1")
        second.expect("waiting for a place: the job takes at most 1 task")
        first.signal(signal.SIGKILL)
        self.expect_trained(second)


if __name__ == "__main__":
    peer.main()
