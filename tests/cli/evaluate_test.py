#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`muster evaluate` beside a job: which checkpoints it evaluates and marks, what it passes over, and how it ends."""
import ast
import fcntl
import json
import os
import signal
import struct
import subprocess
import tempfile
import threading
import time
import unittest

MUSTER = os.path.abspath("cli/muster")
MODEL = "--meta-graph=tests/fixtures/digits.meta"
FEEDS = ["--feed=x:0=@tests/fixtures/digits_x.npy", "--feed=y:0=@tests/fixtures/digits_y.npy"]
PATIENCE = 120
END_SOON = "--timeout=100ms"  # where the job was over before


def repeated(path, times, folder):
    """A NumPy file with the rows of another so many times: it takes seconds to evaluate one by one."""
    with open(path, "rb") as file:
        size = struct.unpack("<8xH", file.read(10))[0]
        header, data = ast.literal_eval(file.read(size).decode()), file.read()
    header["shape"] = (header["shape"][0] * times, *header["shape"][1:])
    text = repr(header)
    text += " " * (63 - (len(text) + 10) % 64) + "\n"
    with open(os.path.join(folder, os.path.basename(path)), "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + data * times)
        return file.name


def muster(*words, code=0, tf_config=None):
    own = {name: value for name, value in os.environ.items() if name != "TF_CONFIG"}
    if tf_config is not None:
        own["TF_CONFIG"] = json.dumps(tf_config)
    done = subprocess.run([MUSTER, *words], capture_output=True, text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL, env=own)
    if done.returncode != code:
        raise AssertionError("%s: exit %d: %s%s" % (words, done.returncode, done.stdout, done.stderr))
    return done


def lines(text, event=None):
    found = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return [line for line in found if event is None or line["event"] == event]


class Evaluate(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.work = directory.name
        self.run_dir = os.path.join(self.work, "run")

    def train(self, steps, *words, every=10):
        return muster("train", MODEL, "--master=local", *FEEDS, "--steps=%d" % steps, "--save-every=%d" % every, "--save-blocking",
                      "--checkpoint-dir=" + self.run_dir, *words)

    def evaluate(self, *words, where=None, **rest):
        return muster("evaluate", MODEL, *FEEDS, "--metric=accuracy", *(where or ["--checkpoint-dir=" + self.run_dir]), "--json", END_SOON, *words,
                      **rest)

    def steps(self, done, event="evaluated"):
        return [line["step"] for line in lines(done.stdout, event)]

    def rows(self):
        return {row["step"]: row for row in lines(muster("checkpoint", "list", self.run_dir, "--json").stdout)}

    def prefix(self, step):
        return "%s/model.ckpt-%d" % (self.run_dir, step)

    def damage(self, step):
        path = self.prefix(step) + ".data-00000-of-00001"
        with open(path, "r+b") as file:
            file.seek(os.path.getsize(path) // 2)
            byte = file.read(1)
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte[0] ^ 255]))

    def start_slowly(self, *words):
        feeds = ["--feed=%s:0=@%s" % (name, repeated("tests/fixtures/digits_%s.npy" % name, 40, self.work)) for name in "xy"]
        return self.start("evaluate", MODEL, *feeds, "--batch-size=1", "--metric=accuracy", "--checkpoint-dir=" + self.run_dir, "--json", *words)

    def start(self, *words):
        process = subprocess.Popen([MUSTER, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        watchdog = threading.Timer(PATIENCE, process.kill)
        watchdog.start()
        self.addCleanup(watchdog.cancel)
        return process

    def read(self, process, event):
        for line in process.stdout:
            if json.loads(line)["event"] == event:
                return json.loads(line)
        self.fail("no '%s' came" % event)

    def await_held(self, step):
        deadline = time.monotonic() + PATIENCE
        while "being evaluated" not in self.rows()[step]["kept"] and time.monotonic() < deadline:
            pass

    def stop(self, slow):
        """While it doesn't have the directory's lock, for which everybody else would wait until their time is over."""
        with open(self.run_dir + "/.muster.lock", "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            slow.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, slow.pid, os.WSTOPPED)

    def test_marks_what_a_job_saves_beside_it_and_ends_with_it(self):
        beside = self.start("evaluate", MODEL, *FEEDS, "--metric=accuracy", "--checkpoint-dir=" + self.run_dir, "--poll=50ms", "--json")
        self.assertIn("no job saves there", self.read(beside, "waiting")["waiting"])
        self.train(300, "--keep=5", "--keep-best=3", "--metric=eval/accuracy:max")
        out = beside.stdout.read()
        self.assertEqual(beside.wait(), 0, beside.stderr.read())
        found = {line["step"]: line["metrics"]["eval/accuracy"] for line in lines(out, "evaluated") if line["why"] is None}
        self.assertIn(300, found)
        seen = {step: row for step, row in self.rows().items() if row["kept"]}  # one that was read when its time came stays until a save
        self.assertEqual({step: found[step] for step in seen}, {step: row["metrics"]["eval/accuracy"] for step, row in seen.items()})
        best = sorted(step for step, row in seen.items() if any(why.startswith("best (eval/accuracy ") for why in row["kept"]))
        self.assertEqual(best, sorted(sorted(seen, key=lambda step: (found[step], step))[-3:]))

    def test_what_is_marked_is_not_evaluated_again(self):
        self.train(40, "--keep=5")
        self.assertEqual(self.steps(self.evaluate()), [40, 30, 20, 10, 0])
        again = self.evaluate()
        self.assertEqual([line["event"] for line in lines(again.stdout)], ["waiting"])
        self.assertEqual(self.steps(self.evaluate("--name=test", "--rows=0:100")), [40, 30, 20, 10, 0])
        once = lines(self.evaluate("--once").stdout)
        self.assertEqual([(line["step"], line["rows"]) for line in once], [(40, 0)])
        metrics = self.rows()[40]["metrics"]
        self.assertEqual(once[0]["metrics"], {"eval/accuracy": metrics["eval/accuracy"]})
        self.assertEqual(set(metrics), {"eval/accuracy", "test/accuracy"})
        self.train(50, "--keep=5")  # the job goes on, and isn't over meanwhile
        self.assertEqual(self.steps(self.evaluate()), [50])

    def test_once_takes_the_newest_and_a_single_one_is_evaluated_again(self):
        self.train(30, "--keep=5")
        self.assertEqual(self.steps(self.evaluate("--once")), [30])
        for _ in range(2):
            self.assertEqual(self.steps(self.evaluate(where=["--checkpoint=" + self.prefix(10)])), [10])
        self.assertEqual({step for step, row in self.rows().items() if row["metrics"]}, {10, 30})

    def test_a_killed_one_continues(self):
        self.train(40, "--keep=5")
        slow = self.start("evaluate", MODEL, *FEEDS, "--metric=accuracy", "--checkpoint-dir=" + self.run_dir, "--batch-size=1", "--json")
        first = self.read(slow, "evaluated")["step"]
        slow.send_signal(signal.SIGKILL)
        slow.wait()
        rest = slow.stdout.read()
        marked = {step for step, row in self.rows().items() if row["metrics"]}
        self.assertIn(first, marked)
        self.assertLessEqual({first, *[line["step"] for line in lines(rest, "evaluated")]}, marked)
        self.assertEqual(set(self.steps(self.evaluate())), {0, 10, 20, 30, 40} - marked)

    def test_a_damaged_one_is_passed_over_and_left_as_it_is(self):
        self.train(30, "--keep=5")
        self.damage(30)
        before = sorted(name for name in os.listdir(self.run_dir) if "model.ckpt" in name)
        done = self.evaluate()
        passed = lines(done.stdout, "passed-over")
        self.assertEqual([line["step"] for line in passed], [30])
        self.assertRegex(passed[0]["why"], "it is damaged: .*model.ckpt-30")
        self.assertEqual(self.steps(done), [20, 10, 0])
        self.assertEqual(before, sorted(name for name in os.listdir(self.run_dir) if "model.ckpt" in name))
        self.assertEqual(self.steps(self.evaluate("--once", "--name=other")), [20])
        muster("evaluate", MODEL, *FEEDS, "--metric=accuracy", "--checkpoint=" + self.prefix(30), code=3)

    def test_retention_waits_for_the_values_of_one_that_is_evaluated(self):
        self.train(10, "--keep=1", "--keep-best=1", "--metric=eval/accuracy:max")
        slow = self.start_slowly("--once")
        self.await_held(10)
        self.stop(slow)
        self.train(100, "--keep=1")
        self.assertEqual({step: row["kept"] for step, row in self.rows().items()}, {10: ["being evaluated"], 100: ["latest", "newest"]})
        slow.send_signal(signal.SIGCONT)
        out = slow.stdout.read()
        self.assertEqual(slow.wait(), 0, slow.stderr.read())
        self.assertEqual([(line["step"], line["why"]) for line in lines(out, "evaluated")], [(10, None)])
        self.assertEqual([word.split(" ")[0] for word in self.rows()[10]["kept"]], ["best"])

    def test_what_is_given_up_is_held_no_longer(self):
        self.train(20, "--keep=5")
        self.damage(20)
        slow = self.start_slowly()
        self.assertEqual(self.read(slow, "passed-over")["step"], 20)
        slow.terminate()
        self.assertEqual(slow.wait(), -signal.SIGTERM)
        with open(self.run_dir + "/checkpoint.muster", encoding="utf-8") as file:
            self.assertNotIn("held-until", file.read())

    def test_an_evaluator_ends_its_own_hold_only(self):
        self.train(10, "--keep=1")
        slow = self.start_slowly("--once")
        self.await_held(10)
        self.stop(slow)
        self.assertEqual(self.steps(self.evaluate("--name=other")), [10])
        self.assertIn("being evaluated", self.rows()[10]["kept"])

    def test_one_that_is_replaced_meanwhile_does_not_get_the_values_of_the_one_before(self):
        self.train(10, "--keep=1")
        slow = self.start_slowly(END_SOON)
        self.await_held(10)
        self.stop(slow)
        os.utime(self.prefix(10) + ".index")  # another one of its name
        slow.send_signal(signal.SIGCONT)
        first, second = [line["why"] for line in lines(slow.stdout.read(), "evaluated")]
        self.assertEqual(slow.wait(), 0)
        self.assertIn("was replaced while it was evaluated", first)
        self.assertIsNone(second)

    def test_a_master_that_another_job_uses_since_is_not_overwritten(self):
        server = self.start("serve", "--listen=127.0.0.1:0")
        target = server.stdout.readline().split()[1]
        job = self.start("train", MODEL, "--master=local", *FEEDS, "--steps=1000000000", "--save-every=1000000000", "--save-blocking",
                         "--checkpoint-dir=" + self.run_dir, "--json")
        self.read(job, "saved")  # of step 0
        job.kill()
        job.wait()
        beside = self.start("evaluate", MODEL, *FEEDS, "--metric=accuracy", "--checkpoint-dir=" + self.run_dir, "--poll=50ms", "--json",
                            "--master=" + target, "--model=other")
        self.assertEqual(self.read(beside, "evaluated")["step"], 0)
        muster("train", MODEL, "--master=local", *FEEDS, "--steps=5", "--checkpoint-dir=" + self.work + "/other")
        muster("prepare", MODEL, "--master=" + target, "--checkpoint-dir=" + self.work + "/other", "--overwrite")
        self.train(10)
        self.assertEqual(beside.wait(), 4, beside.stdout.read())
        self.assertIn("the master has values of the model already", beside.stderr.read())

    def test_the_end_of_the_job_before_is_not_the_end_of_one_that_resumes(self):
        self.train(10)
        beside = self.start("evaluate", MODEL, *FEEDS, "--metric=accuracy", "--checkpoint-dir=" + self.run_dir, "--poll=50ms", "--json")
        self.assertIn("may resume", self.read(beside, "waiting")["waiting"])
        self.train(30)
        self.assertIn(30, [line["step"] for line in lines(beside.stdout.read(), "evaluated")])
        self.assertEqual(beside.wait(), 0, beside.stderr.read())

    def test_waits_no_longer_than_told(self):
        done = self.evaluate("--timeout=200ms", "--poll=50ms", code=1)
        self.assertIn("no checkpoint came in 200 ms", done.stderr)

    def test_refuses_what_cannot_be(self):
        self.train(10)
        for words, why in ((["--metric=nothing"], "the graph has neither such a tensor nor 'nothing/value'"),
                           (["--metric=hidden/kernel"], "metric 'hidden/kernel:0'"),
                           (["--name=a/b"], "invalid name of an evaluation")):
            self.assertIn(why, self.evaluate(*words, code=3).stderr)
        done = muster("evaluate", MODEL, "--metric=accuracy", "--checkpoint-dir=" + self.run_dir, code=3)
        self.assertIn("evaluation needs values for placeholders; add --feed", done.stderr)
        self.assertIn("evaluate needs --checkpoint-dir", muster("evaluate", MODEL, *FEEDS, code=3).stderr)
        self.assertEqual([row["metrics"] for row in self.rows().values()], [{}, {}])

    def test_the_masters_model_is_not_overwritten(self):
        server = self.start("serve", "--listen=127.0.0.1:0")
        target = server.stdout.readline().split()[1]
        self.train(10)
        muster("prepare", MODEL, "--master=" + target, "--checkpoint-dir=" + self.run_dir)
        done = self.evaluate("--master=" + target, "--model=other", code=4)
        self.assertIn("the master has values of the model already", done.stderr)
        self.assertEqual(self.steps(self.evaluate("--master=" + target, "--model=other", "--overwrite")), [10, 0])

    def test_tf_config_names_the_task(self):
        self.train(10)
        cluster = {"cluster": {"chief": ["localhost:1"]}, "task": {"type": "evaluator", "index": 0}}
        self.assertEqual(self.steps(self.evaluate(tf_config=cluster)), [10, 0])
        done = muster("train", MODEL, *FEEDS, "--master=local", "--steps=1", code=3, tf_config=cluster)
        self.assertIn("run `muster evaluate`", done.stderr)


if __name__ == "__main__":
    unittest.main()
