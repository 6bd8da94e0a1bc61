#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""`muster doctor` on real jobs: of each seeded cause its first finding names it, and in a job that is well it finds nothing."""
import ctypes
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, "tests/scenarios")
import processes
from processes import DIGITS, peer

PATIENCE = 60
LINREG = peer.fixture("linreg.meta")
FEEDS = ["--feed=%s:0=@%s" % (name, peer.fixture("digits_%s.npy" % name)) for name in "xy"]
WITHOUT_END = "--steps=1000000000"
SLOW_CHIEF = os.path.abspath("tests/scenarios/slow_chief")


def without_override():
    """Modes of files count for root, too: PR_CAPBSET_DROP of CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH."""
    for capability in 1, 2:
        ctypes.CDLL(None).prctl(24, capability)


class TestCase(processes.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.run_dir = os.path.join(self.folder, "run")

    def doctor(self, *words, **how):
        done = subprocess.run([peer.MUSTER, "doctor", "--json", *words], capture_output=True, text=True, timeout=PATIENCE,
                              stdin=subprocess.DEVNULL, **how)
        self.assertIn(done.returncode, (0, 1), done.stdout + done.stderr)
        self.assertEqual(done.stderr, "")
        found = json.loads(done.stdout)
        self.assertEqual(done.returncode, 1 if found["findings"] else 0, done.stdout)
        return found

    def assert_finds(self, found, check, *words, severity="error"):
        """The first finding is of that check, and says these words."""
        self.assertTrue(found["findings"], found)
        first = found["findings"][0]
        self.assertEqual((first["severity"], first["check"]), (severity, check), found)
        said = " ".join([first["what"], first["where"], first["try"]])
        for word in words:
            self.assertIn(word, said, found)

    def await_finding(self, check, *words):
        """Once it is there, it is the first."""
        seen = []

        def is_there():
            seen[:] = [self.doctor(*words)]
            return any(finding["check"] == check for finding in seen[0]["findings"])

        try:
            peer.await_true(is_there, "a finding of " + check)
        except AssertionError as error:
            raise AssertionError("%s: %s" % (error, seen)) from error
        return seen[0]

    def train(self, target, *words):
        """A task that trains."""
        task = self.start(peer.MUSTER, "train", "--json", "--master=" + target, "--meta-graph=" + DIGITS, *FEEDS, *words)
        task.expect('"event":"step"')
        return task

    def chief(self, target, *words):
        return self.train(target, WITHOUT_END, "--checkpoint-dir=" + self.run_dir, "--save-every=200", *words)

    def saved(self, steps=40):
        """The directory of a job that has ended."""
        peer.muster("train", "--master=local", "--meta-graph=" + DIGITS, *FEEDS, "--steps=%d" % steps, "--save-every=10",
                    "--save-blocking", "--checkpoint-dir=" + self.run_dir)
        return self.run_dir


class Healthy(TestCase):
    def assert_healthy(self, *words):
        found = self.doctor(*words)
        self.assertEqual(found["findings"], [], found)
        return found["places"]

    def test_a_prepared_model(self):
        _, target = self.serve()
        self.prepare(target)
        peer.await_true(lambda: "1 of 1 model ready" in self.assert_healthy(target)[0]["state"], "it is ready")

    def test_a_job_that_trains(self):
        _, target = self.serve()
        chief = self.chief(target, "--tasks=2", "--task=chief:0")
        self.train(target, WITHOUT_END, "--tasks=2", "--task=worker:0")
        chief.expect('"event":"saved"')
        master, directory = self.assert_healthy(target, self.run_dir)
        self.assertIn("0 tasks waiting", master["state"])
        self.assertIn("a job saves here: the chief of 'digits', epoch 1, at ", directory["state"])

    def test_a_job_of_another_user(self):
        _, target = self.serve()
        self.chief(target).expect('"event":"saved"')
        os.chmod(self.run_dir, 0o555)
        self.addCleanup(os.chmod, self.run_dir, 0o755)
        found = self.doctor(self.run_dir, preexec_fn=without_override)
        self.assertEqual(found["findings"], [], found)

    def test_an_elastic_job(self):
        _, target = self.serve()
        first, _ = (self.chief(target, "--task=auto") for _ in range(2))
        first.expect('"event":"saved"')
        self.assert_healthy(target, self.run_dir)

    def test_a_job_that_has_ended(self):
        state = self.assert_healthy(self.saved())[0]["state"]
        self.assertRegex(state, r"^\d checkpoints, the latest model.ckpt-40 \(.*, intact\)")


class Masters(TestCase):
    def nobody(self):
        """A target at which nobody listens, nor can."""
        return "grpc://127.0.0.1:%d" % peer.port_of(self.enterContext(peer.hold_port()))

    def test_no_server(self):
        target = self.nobody()
        self.assert_finds(self.doctor(target), "master", "no process listens", target, "`muster serve --listen=HOST:PORT` starts a master")

    def test_no_coordinator(self):
        """A job's other master."""
        coordinator = self.nobody()
        with peer.muster_server() as target:
            self.assert_finds(self.doctor(target, "--coordinator=" + coordinator), "master", "no process listens", coordinator)

    def test_a_server_that_hangs(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            target = "grpc://127.0.0.1:%d" % silent.getsockname()[1]
            self.assert_finds(self.doctor(target, "--timeout=10"), "master", "no HTTP/2 settings", target)

    def test_a_silent_one_leaves_the_others_their_time(self):
        _, target = self.serve()
        with socket.create_server(("127.0.0.1", 0)) as silent:
            places = ["grpc://127.0.0.1:%d" % silent.getsockname()[1], target, self.saved()]
            found = self.doctor(*places, "--cluster=ps:0=%s" % target.split("//")[1], "--timeout=15")
        self.assertEqual([finding["where"] for finding in found["findings"]], places[:1], found)
        self.assertEqual([place["place"] for place in found["places"]], places)
        self.assertIn("intact", found["places"][2]["state"])

    def test_every_task_of_a_cluster_once(self):
        """Whatever else is looked at."""
        cluster = "--cluster=" + ",".join("worker:%d=127.0.0.%d:1" % (i, i + 1) for i in range(70))
        one, other = (self.serve()[1] for _ in range(2))
        for places in ([self.saved()], [one, other]):
            found = self.doctor(*places, cluster, "--timeout=%d" % PATIENCE)
            self.assertEqual([finding["where"] for finding in found["findings"]], ["127.0.0.%d:1" % (i + 1) for i in range(70)])

    def test_tokens_and_certificates(self):
        cert, key, token = peer.secrets(self.folder)
        server = self.start(peer.MUSTER, "serve", "--listen=localhost:0", "--tls-cert=" + cert, "--tls-key=" + key,
                            "--token-file=" + token)
        server.expect("serving grpcs://")
        target = server.lines[0].split()[1]
        known = ["--tls-ca=" + cert]
        plain = target.replace("grpcs://", "grpc://")
        self.assert_finds(self.doctor(plain), "master", "TLS", "`muster doctor %s`" % target)
        self.assert_finds(self.doctor(target, *known), "access", "token")
        self.assertEqual(self.doctor(target, *known, "--token-file=" + token)["findings"], [])
        other = os.path.join(self.folder, "other")
        with open(other, "w", encoding="utf-8") as file:
            file.write("another-token\n")
        os.chmod(other, 0o644)
        self.assert_finds(self.doctor(target, *known, "--token-file=" + other), "secret", "open to other users", "chmod 600")
        os.chmod(other, 0o600)
        self.assert_finds(self.doctor(target, *known, "--token-file=" + other), "access", "token")

    def test_a_task_of_the_cluster_in_tf_config(self):
        _, target = self.serve()
        address = target.split("//")[1]
        cluster = {"cluster": {"ps": ["127.0.0.1:1", "127.0.0.1:2", address], "worker": [address]}, "task": {"type": "worker", "index": 0}}
        found = self.doctor(env={**os.environ, "TF_CONFIG": json.dumps(cluster)})
        self.assert_finds(found, "tasks", "ps:0", "127.0.0.1:1", "start ps:0")
        self.assertEqual([finding["where"] for finding in found["findings"]], ["127.0.0.1:1", "127.0.0.1:2"])
        self.assertEqual([place["place"] for place in found["places"]], [target])
        named = self.doctor(target, env={**os.environ, "TF_CONFIG": json.dumps(cluster)})
        self.assertEqual(named["findings"], found["findings"])
        _, other = self.serve()
        named = self.doctor(other, env={**os.environ, "TF_CONFIG": json.dumps(cluster)})
        self.assertEqual(named["findings"], [], "of another job, maybe")

    def test_a_cluster_in_tf_config_without_a_task(self):
        """As on all machines alike: any target will do, and none."""
        _, target = self.serve()
        cluster = {"cluster": {"ps": ["127.0.0.1:1"], "chief": [target.split("//")[1]]}}
        for words in ([], [target]):
            found = self.doctor(*words, env={**os.environ, "TF_CONFIG": json.dumps(cluster)})
            self.assert_finds(found, "tasks", "ps:0", "127.0.0.1:1", "start ps:0")
            self.assertEqual(len(found["findings"]), 1, found)

    def test_refuses_what_is_no_place(self):
        for words in ([], ["local"], ["http://localhost:1"], ["gs://bucket/run"], ["--patience=soon", "run"]):
            done = subprocess.run([peer.MUSTER, "doctor", *words], capture_output=True, text=True, timeout=PATIENCE)
            self.assertEqual((done.returncode, done.stdout), (3, ""), done.stderr)


class Jobs(TestCase):
    def test_no_chief(self):
        _, target = self.serve()
        self.wait_command(target, PATIENCE, "--task=worker:3")
        found = self.await_finding("chief", target, "--patience=0")
        self.assert_finds(found, "chief", "no chief has ever registered", "worker:3", "digits at " + target, "muster prepare")
        self.assertEqual(len(found["findings"]), 1, found)

    def test_a_chief_that_was_killed(self):
        _, target = self.serve()
        chief = self.chief(target, "--tasks=2", "--task=chief:0")
        self.wait_command(target, PATIENCE)
        chief.signal(signal.SIGKILL)
        self.assert_finds(self.await_finding("chief", target), "chief", "chief:0", "lost", "while training", "again")

    def test_a_chief_that_was_preempted(self):
        _, target = self.serve()
        chief = self.chief(target, "--task=chief:0")
        chief.signal(signal.SIGTERM)
        self.assertEqual(chief.wait(PATIENCE), 6, chief.text())
        self.assert_finds(self.await_finding("chief", target), "chief", "preempted", "it resumes")

    def test_a_chief_that_initialises_for_long(self):
        _, target = self.serve()
        chief = self.start(SLOW_CHIEF, DIGITS, target)
        chief.expect("initialising")
        self.wait_command(target, PATIENCE)
        found = self.await_finding("chief", target, "--patience=1ms")
        self.assert_finds(found, "chief", "slow:0", "initialising for", severity="warning")

    def test_variables_that_the_chief_does_not_initialise(self):
        _, target = self.serve()
        self.prepare(target, "--model=digits")
        self.start(peer.MUSTER, "wait", "--meta-graph=" + LINREG, "--model=digits", "--master=" + target, "--task=worker:0")
        found = self.await_finding("wait", target, "--patience=1ms")
        self.assert_finds(found, "wait", "worker:0", "s: its graph differs from the chief's", "digits at " + target, "same meta graph")

    def test_too_few_tasks(self):
        _, target = self.serve()
        task = self.start(peer.MUSTER, "train", "--json", "--master=" + target, "--meta-graph=" + DIGITS, *FEEDS, WITHOUT_END,
                          "--task=auto", "--min-tasks=3", "--checkpoint-dir=" + self.run_dir)
        task.expect("1 of at least 3")
        self.assert_finds(self.await_finding("tasks", target, self.run_dir, "--patience=0"), "tasks", "1 of at least 3", "start 2 more")

    def test_a_task_that_is_gone(self):
        _, target = self.serve()
        self.chief(target, "--task=auto")
        second = self.chief(target, "--task=auto")
        second.signal(signal.SIGKILL)
        found = self.await_finding("tasks", target)
        self.assert_finds(found, "tasks", "a task is gone", "its process ended", severity="warning")

    def test_a_step_that_never_ends(self):
        _, target = self.serve()
        chief = self.chief(target, "--task=chief:0")
        chief.stop()
        found = self.await_finding("step", target, "--patience=100ms")
        self.assert_finds(found, "step", "no step has ended for", target, severity=found["findings"][0]["severity"])

    def test_saves_that_fail(self):
        _, target = self.serve()
        chief = self.chief(target, "--task=chief:0")
        chief.expect('"event":"saved"')
        chief.stop()  # in between a save would make the directory again
        os.rename(self.run_dir, self.run_dir + ".moved")
        with open(self.run_dir, "w", encoding="utf-8"):
            pass
        chief.signal(signal.SIGCONT)
        chief.expect('"event":"save-failed"')
        self.assert_finds(self.await_finding("save", target, "--patience=%d" % PATIENCE), "save", "checkpoints can't be saved",
                          "muster doctor DIR")
        found = self.doctor(target, self.run_dir, "--patience=%d" % PATIENCE)
        self.assert_finds(found, "directory", self.run_dir)

    def test_two_jobs_in_one_directory(self):
        first, second = (self.serve()[1] for _ in range(2))
        words = [WITHOUT_END, "--checkpoint-dir=" + self.run_dir, "--save-secs=1h"]
        one = self.train(first, *words)
        one.expect('"event":"saved"')  # a save that goes on would fail, and end it
        self.train(second, *words)
        found = self.await_finding("directory", self.run_dir)
        self.assert_finds(found, "directory", "PID %d is still running" % one.process.pid, "it was replaced by the chief of", "end it", severity="warning")
        found = self.doctor(first, self.run_dir)
        self.assertTrue(any("another job has taken it" in finding["what"] for finding in found["findings"]), found)
        found = self.doctor(second, self.run_dir)
        self.assertFalse(any("another job has taken it" in finding["what"] for finding in found["findings"]), found)

    def test_a_chief_that_failed_since_another_job_took_its_directory(self):
        first, second = (self.serve()[1] for _ in range(2))
        words = [WITHOUT_END, "--checkpoint-dir=" + self.run_dir, "--save-secs=1s"]
        one = self.train(first, *words)
        other = self.train(second, *words)
        self.assertEqual(one.wait(PATIENCE), 4, one.text())
        self.assertIn("end that job, or use another directory", one.text())
        self.assertNotIn("the same command resumes", one.text())
        found = self.doctor(first, self.run_dir)
        self.assert_finds(found, "directory", "another job has taken it", ":%d (" % other.process.pid, "before you start a chief")
        self.assertRegex(found["places"][-1]["state"], r"; a job saves here: the chief of .*:%d \(" % other.process.pid)

    def test_a_job_that_has_just_resumed_from_an_old_checkpoint(self):
        self.saved()
        os.remove(os.path.join(self.run_dir, "checkpoint.muster"))
        with open(os.path.join(self.run_dir, "checkpoint"), "w", encoding="utf-8") as file:
            file.write('model_checkpoint_path: "model.ckpt-40"\n')
        before, old = os.listdir(self.run_dir), time.time() - 9 * 3600
        for name in before:
            os.utime(os.path.join(self.run_dir, name), (old, old))
        _, target = self.serve()
        self.train(target, WITHOUT_END, "--checkpoint-dir=" + self.run_dir, "--save-secs=1h")
        found = self.doctor(self.run_dir)
        self.assertEqual(found["findings"], [], found)
        self.assertIn("9h0", found["places"][0]["state"])
        os.utime(os.path.join(self.run_dir, "checkpoint.muster"), (old, old))
        self.assert_finds(self.doctor(self.run_dir), "save", "the newest checkpoint is 9h0", severity="warning")


class Directories(TestCase):
    def file(self, name):
        return os.path.join(self.run_dir, name)

    def damage(self, name):
        with open(self.file(name), "r+b") as file:
            file.seek(100)
            byte = file.read(1)
            file.seek(100)
            file.write(bytes([byte[0] ^ 1]))

    def test_that_is_not_there(self):
        """A job creates it, if it may."""
        below = os.path.join(self.run_dir, "below")
        self.assert_finds(self.doctor(below), "checkpoint", "doesn't exist", "starts from scratch", below, severity="warning")
        os.mkdir(self.run_dir, 0o555)
        found = self.doctor(below, preexec_fn=without_override)
        self.assert_finds(found, "directory", "can't save here: Permission denied", below, "'%s'" % self.run_dir, "0555")

    def test_that_is_not_there_any_more(self):
        """A master knows that a job has saved there."""
        _, target = self.serve()
        chief = self.train(target, WITHOUT_END, "--checkpoint-dir=" + self.run_dir, "--save-secs=1h")
        chief.expect('"event":"saved"')
        os.rename(self.run_dir, self.run_dir + ".moved")
        self.assert_finds(self.doctor(target, self.run_dir), "directory", "the directory of the chief of 'digits'", "doesn't exist", self.run_dir)
        chief.signal(signal.SIGKILL)
        self.await_finding("chief", target)
        self.assert_finds(self.doctor(target, self.run_dir), "directory", "doesn't exist", self.run_dir)

    def test_without_a_checkpoint(self):
        os.mkdir(self.run_dir)
        self.assert_finds(self.doctor(self.run_dir), "checkpoint", "starts from scratch", severity="warning")

    def test_a_damaged_latest_checkpoint(self):
        self.saved()
        self.damage("model.ckpt-40.data-00000-of-00001")
        found = self.doctor(self.run_dir)
        self.assert_finds(found, "checkpoint", "model.ckpt-40", "damaged", "resumes from 'model.ckpt-30'", severity="warning")
        self.damage("model.ckpt-30.data-00000-of-00001")
        self.assert_finds(self.doctor(self.run_dir), "checkpoint", "model.ckpt-40", "resumes from 'model.ckpt-20'", severity="warning")

    def test_stops_at_the_first_whole_one(self):
        self.saved()
        for step in 20, 40:
            self.damage("model.ckpt-%d.data-00000-of-00001" % step)
        found = self.doctor(self.run_dir)
        self.assert_finds(found, "checkpoint", "model.ckpt-40", "resumes from 'model.ckpt-30'", severity="warning")
        self.assertEqual(len(found["findings"]), 1, found)

    def test_files_that_the_user_may_not_read(self):
        self.saved()
        for name in "model.ckpt-40.data-00000-of-00001", "checkpoint":
            os.chmod(self.file(name), 0)
            found = self.doctor(self.run_dir, preexec_fn=without_override)
            os.chmod(self.file(name), 0o644)
            self.assert_finds(found, "directory", name, "can't be read", "Permission denied", "correct the rights")
            self.assertEqual(len(found["findings"]), 1, found)
        os.chmod(self.file("model.ckpt-40.data-00000-of-00001"), 0)
        done = subprocess.run([peer.MUSTER, "checkpoint", "verify", self.run_dir], capture_output=True, text=True, timeout=PATIENCE,
                              preexec_fn=without_override)
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertIn(" 4 intact, 0 damaged, 1 unread\n", done.stdout)

    def test_a_meta_graph_that_was_changed(self):
        self.saved()
        self.damage("model.ckpt-40.meta")
        found = self.doctor(self.run_dir)
        self.assert_finds(found, "files", "meta graph", "model.ckpt-40", "export it again", severity="warning")
        self.assertEqual(len(found["findings"]), 1, found)
        self.assertIn("intact", found["places"][0]["state"])

    def test_a_latest_checkpoint_in_another_directory(self):
        self.saved()
        other = os.path.join(self.folder, "other")
        os.mkdir(other)
        with open(os.path.join(other, "checkpoint"), "w", encoding="utf-8") as file:
            file.write('model_checkpoint_path: "%s"\n' % self.file("model.ckpt-40"))
        found = self.doctor(other)
        self.assertEqual(found["findings"], [], found)
        self.assertRegex(found["places"][0]["state"], r"the latest model.ckpt-40 \(.*, intact\)")
        self.damage("model.ckpt-40.data-00000-of-00001")
        self.assert_finds(self.doctor(other), "checkpoint", self.file("model.ckpt-40"), "damaged", "no other")

    def test_no_whole_checkpoint(self):
        self.saved(1)
        for step in 0, 1:
            self.damage("model.ckpt-%d.data-00000-of-00001" % step)
        self.assert_finds(self.doctor(self.run_dir), "checkpoint", "model.ckpt-1", "backup")

    def test_an_older_one_that_is_damaged(self):
        self.saved()
        os.truncate(self.file("model.ckpt-20.data-00000-of-00001"), 10)
        self.assert_finds(self.doctor(self.run_dir), "checkpoint", "model.ckpt-20", "truncated", severity="warning")

    def test_one_that_was_set_aside(self):
        self.saved()
        self.damage("model.ckpt-40.data-00000-of-00001")
        peer.muster("train", "--master=local", "--meta-graph=" + DIGITS, *FEEDS, "--steps=50", "--checkpoint-dir=" + self.run_dir)
        self.assert_finds(self.doctor(self.run_dir), "checkpoint", "model.ckpt-40.bad", "set aside", severity="warning")

    def test_checkpoints_that_no_file_names(self):
        self.saved()
        os.remove(self.file("checkpoint"))
        self.assertEqual(self.doctor(self.run_dir)["findings"], [])
        os.remove(self.file("checkpoint.muster"))
        self.assert_finds(self.doctor(self.run_dir), "checkpoint", "model.ckpt-40", "--from-files")

    def test_a_checkpoint_that_is_just_being_published(self):
        """Its files are there before the ones that name it."""
        self.saved()
        for name in "checkpoint", "checkpoint.muster":
            os.rename(self.file(name), self.file(name) + ".later")

        def publish():
            for name in "checkpoint.muster", "checkpoint":
                os.rename(self.file(name) + ".later", self.file(name))

        publishing = threading.Timer(0.3, publish)
        publishing.start()
        found = self.doctor(self.run_dir)
        publishing.join()
        self.assertEqual(found["findings"], [])

    def test_a_state_file_that_is_damaged_or_names_none(self):
        self.saved()
        for text in ('model_checkpoint_path: "mod', 'model_checkpoint_path: "model.ckpt-90"\n'):
            with open(self.file("checkpoint"), "w", encoding="utf-8") as file:
                file.write(text)
            self.assert_finds(self.doctor(self.run_dir), "checkpoint", "--from-files")

    def test_a_damaged_side_file(self):
        self.saved()
        self.damage("checkpoint.muster")
        self.assert_finds(self.doctor(self.run_dir), "files", "checkpoint.muster", severity="warning")

    def test_a_clock_that_is_wrong(self):
        self.saved()
        os.remove(self.file("checkpoint.muster"))
        ahead = time.time() + 3600
        os.utime(self.file("model.ckpt-40.index"), (ahead, ahead))
        self.assert_finds(self.doctor(self.run_dir), "clock", "clocks differ", severity="warning")

    def test_half_written_files(self):
        self.saved()
        left = self.file(".saving-0123abcd-model.ckpt-50.data-00000-of-00001")
        with open(left, "w", encoding="utf-8") as file:
            file.write("half")
        self.assertEqual(self.doctor(self.run_dir)["findings"], [])
        os.utime(left, (1, 1))
        self.assert_finds(self.doctor(self.run_dir), "files", "1 half-written file", severity="warning")

    def test_one_that_the_user_may_not_write(self):
        self.saved()
        os.chmod(self.run_dir, 0o555)
        self.addCleanup(os.chmod, self.run_dir, 0o755)
        found = self.doctor(self.run_dir, preexec_fn=without_override)
        self.assert_finds(found, "directory", "can't save here: Permission denied", "0555")

    def test_a_full_disk(self):
        self.saved()
        full = os.path.join(self.folder, "full")
        os.mkdir(full)
        script = 'mount -t tmpfs -o size=2m none "$0" && cp -r "$1"/. "$0" && { cat /dev/zero >"$0/zeros" || true; } 2>/dev/null; ' \
            'exec "$2" doctor --json "$0"'
        for way in (["unshare", "-m"], ["unshare", "-rm"]):
            done = subprocess.run([*way, "sh", "-c", script, full, self.run_dir, peer.MUSTER], capture_output=True, text=True,
                                  timeout=PATIENCE, check=False)
            if done.returncode == 1 and done.stdout:
                found = json.loads(done.stdout)
                self.assert_finds(found, "space", "the disk is full", full)
                # As much as the saver's error says: the tensors, the meta graph and 64 KiB.
                latest = os.path.join(self.run_dir, "model.ckpt-40")
                needs = os.path.getsize(latest + ".data-00000-of-00001") + os.path.getsize(latest + ".meta") + 65536
                said = re.search(r"a checkpoint needs about ([0-9]+) KB", found["findings"][0]["what"])
                self.assertAlmostEqual(int(said.group(1)), needs / 1000, delta=1.5)
                return
        self.skipTest("no mount namespace to be had here: " + done.stderr)


class Text(TestCase):
    def test_says_what_where_and_what_to_do(self):
        done = subprocess.run([peer.MUSTER, "doctor", self.run_dir], capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 1, done.stderr)
        lines = done.stdout.splitlines()
        self.assertRegex(lines[0], r"^warning +the directory doesn't exist: a job creates it, and starts from scratch$")
        self.assertRegex(lines[1], r"^  where +%s$" % self.run_dir)
        self.assertRegex(lines[2], r"^  try +\S")
        self.assertEqual(lines[3], "0 errors, 1 warning")
        done = subprocess.run([peer.MUSTER, "doctor", self.saved()], capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual((done.returncode, done.stdout.splitlines()[0]), (0, "nothing found"), done.stderr)
        self.assertIn(self.run_dir, done.stdout)

    def test_puts_causes_before_their_effects(self):
        """The worst first, whatever the order of the places."""
        _, target = self.serve()
        self.wait_command(target, PATIENCE)
        self.await_finding("chief", target, "--patience=0")
        found = self.doctor(self.run_dir, target, "--cluster=ps:0=127.0.0.1:1", "--patience=0")
        self.assertEqual([finding["check"] for finding in found["findings"]], ["tasks", "chief", "checkpoint"], found)
        self.saved()
        os.truncate(os.path.join(self.run_dir, "model.ckpt-20.data-00000-of-00001"), 10)
        found = self.doctor(self.run_dir, target, "--patience=0")
        self.assertEqual([finding["check"] for finding in found["findings"]], ["chief", "checkpoint"], found)


if __name__ == "__main__":
    peer.main()
