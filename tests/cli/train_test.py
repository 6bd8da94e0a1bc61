#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`muster train` as a person and a program use it, alone and as a job of processes; and the same job in C.

Every wait is bounded, and what is started is ended by its id.
"""
import codecs
import fcntl
import json
import os
import pty
import re
import resource
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
import unittest

sys.path.insert(0, "tests/tensorflow")
import peer

MUSTER = os.path.abspath("cli/muster")
TRAINER = os.path.abspath("examples/digits/trainer")
X, Y = "tests/fixtures/digits_x.npy", "tests/fixtures/digits_y.npy"
MODEL = "--meta-graph=tests/fixtures/digits.meta"
FEEDS = ["--feed=x:0=@" + X, "--feed=y:0=@" + Y]
LOCAL = [MODEL, "--master=local", *FEEDS]
PER_EPOCH = 1797 // 32
PATIENCE = 60


def npy(path, dtype, shape, data):
    header = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (dtype, shape)
    header += " " * (63 - (len(header) + 10) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data)
    return path


def environment(tf_config=None):
    own = {name: value for name, value in os.environ.items() if name != "TF_CONFIG"}
    if tf_config is not None:
        own["TF_CONFIG"] = tf_config if isinstance(tf_config, str) else json.dumps(tf_config)
    return own


def train(*words, tf_config=None):
    return subprocess.run([MUSTER, "train", *words], capture_output=True, text=True, timeout=PATIENCE,
                          stdin=subprocess.DEVNULL, env=environment(tf_config))


def events(text):
    return [json.loads(line) for line in text.splitlines()]


class Case(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.work = directory.name
        self.run_dir = os.path.join(self.work, "run")

    def start(self, *words):
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                   stdin=subprocess.DEVNULL, env=environment())
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.addCleanup(process.stdout.close)
        return process

    def serve(self, port=0):
        server = self.start(MUSTER, "serve", "--listen=127.0.0.1:%d" % port)
        return server, server.stdout.readline().split()[1]

    def serve_lastingly(self):
        """At a port that nobody else is given when the server has died."""
        held = peer.hold_port()
        self.addCleanup(held.close)
        return self.serve(peer.port_of(held))

    def read_event(self, process, event):
        """The next line of that event."""
        for line in process.stdout:
            if line.startswith("{") and json.loads(line)["event"] == event:
                return json.loads(line)
        self.fail("no '%s' came" % event)

    def ends(self, process):
        """How it ended, and all that it said since the last event read: communicate () would read past what is buffered."""
        watchdog = threading.Timer(PATIENCE, process.kill)
        watchdog.start()
        try:
            out = process.stdout.read()
            return process.wait(), out
        finally:
            watchdog.cancel()

    def fails(self, code, words, *arguments, tf_config=None):
        done = train(*arguments, tf_config=tf_config)
        with self.subTest(arguments=arguments, tf_config=tf_config):
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(words, done.stderr)
            self.assertEqual(done.stdout, "")


class GoneReader(Case):
    """As `muster train ... | tee log` after Ctrl-C, which ends tee at once."""

    def run_unread(self, *words):
        """How a command ends that nobody reads, as a process: SIGPIPE isn't ignored before it."""
        for_reading, for_writing = os.pipe()
        os.close(for_reading)
        try:
            return subprocess.run([MUSTER, *words], stdin=subprocess.DEVNULL, stdout=for_writing, stderr=for_writing,
                                  timeout=PATIENCE, env=environment(), restore_signals=True).returncode
        finally:
            os.close(for_writing)

    def test_costs_no_step(self):
        for more in [], ["--json"]:
            directory = self.run_dir + "".join(more)
            self.assertEqual(self.run_unread("train", *LOCAL, "--steps=300", "--checkpoint-dir=" + directory, *more), 0)
            self.assertTrue(os.path.exists(directory + "/model.ckpt-300.index"))

    def test_ends_no_command_by_a_signal(self):
        _, target = self.serve()
        train(*LOCAL, "--steps=10", "--checkpoint-dir=" + self.run_dir)
        for words in (["prepare", MODEL, "--master=" + target], ["wait", MODEL, "--master=" + target], ["status", target],
                      ["run", MODEL, "--master=" + target, "--fetch=global_step/Read/ReadVariableOp:0"], ["help"], ["train", "--help"],
                      ["save", MODEL, "--master=" + target, "--checkpoint-dir=" + self.run_dir + "2"],
                      ["checkpoint", "list", self.run_dir], ["finish", MODEL, "--master=" + target]):
            with self.subTest(words=words):
                self.assertEqual(self.run_unread(*words), 0)

    def test_ends_what_is_only_shown(self):
        _, target = self.serve()
        self.assertGreater(self.run_unread("status", target, "--watch=100ms"), 0)


class SilentStore(Case):
    def test_does_not_keep_a_job_that_is_told_to_go(self):
        """At the start there is nothing to save: however long the grace."""
        with socket.create_server(("127.0.0.1", 0)) as store:
            store.settimeout(PATIENCE)
            own = dict(environment(), AWS_ENDPOINT_URL="http://127.0.0.1:%d" % store.getsockname()[1], AWS_REGION="us-east-1",
                       AWS_ACCESS_KEY_ID="key", AWS_SECRET_ACCESS_KEY="secret")
            job = subprocess.Popen([MUSTER, "train", *LOCAL, "--steps=300", "--checkpoint-dir=s3://bucket/run", "--grace=1h"],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=own)
            self.addCleanup(job.wait)
            self.addCleanup(job.kill)
            connection, _ = store.accept()
            with connection:
                job.send_signal(signal.SIGTERM)
                self.assertEqual(job.wait(PATIENCE / 2), 6)


class FailingDisk(Case):
    def test_is_no_bad_usage(self):
        """Reading the process's memory at 0 fails as a disk does: EIO."""
        for command in (["train", *FEEDS, "--steps=1"], ["prepare"]):
            done = subprocess.run([MUSTER, *command, "--meta-graph=/proc/self/mem", "--master=local"], capture_output=True,
                                  text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL, env=environment())
            self.assertEqual(done.returncode, 4, done.stderr)
            self.assertIn("Input/output error", done.stderr)

    def test_reports_saves_that_fail_without_end_from_time_to_time(self):
        process = self.start(MUSTER, "train", *LOCAL, "--steps=1000000000", "--checkpoint-dir=" + self.run_dir,
                             "--save-every=1", "--save-blocking", "--json")
        self.read_event(process, "saved")
        peer.stop(process.pid)  # in between a save would make the directory again
        os.rename(self.run_dir, self.run_dir + "-away")
        with open(self.run_dir, "w", encoding="utf-8"):
            pass
        process.send_signal(signal.SIGCONT)
        failed = self.read_event(process, "save-failed")
        self.assertTrue(failed["error"])
        self.assertEqual((failed["in_a_row"], failed["left_out"]), (1, 0))
        for _ in range(20): # steps go on, and so do the failures
            self.read_event(process, "step")
        process.send_signal(signal.SIGTERM)
        code, rest = self.ends(process)
        self.assertEqual(code, 6, rest)
        self.assertLessEqual(rest.count("save-failed"), 3)
        self.assertLessEqual(rest.count("Unable to write the checkpoint"), 3)


class Mistakes(Case):
    """Each is said with what is wrong, where, and what would be right, before anything is opened."""

    def test_of_usage(self):
        self.fails(3, "needs --meta-graph=FILE", "--steps=1")
        self.fails(3, "needs --master=TARGET", MODEL, *FEEDS, "--steps=1")
        self.fails(3, "--steps=N, the global step to reach, or --epochs=N", *LOCAL)
        self.fails(3, "--steps can't be combined with --epochs", *LOCAL, "--steps=1", "--epochs=1")
        for number in ("-1", "0"):
            self.fails(3, "--steps and --epochs must be 1 or more", *LOCAL, "--steps=" + number)
            self.fails(3, "--steps and --epochs must be 1 or more", *LOCAL, "--epochs=" + number)
            self.fails(3, "--batch-size must be 1 or more", *LOCAL, "--steps=1", "--batch-size=" + number)
            self.fails(3, "invalid --tasks '%s'" % number, *LOCAL, "--steps=1", "--tasks=" + number)
        self.fails(3, "can't be combined with --save-secs", *LOCAL, "--steps=1", "--save-every=1", "--save-secs=1")
        for flag in ("save-secs", "step-timeout", "save-timeout"):
            self.fails(3, "--%s must be above 0" % flag, *LOCAL, "--steps=1", "--%s=0s" % flag)
        for limit in ("min", "max"):
            for number in ("-1", "0", "65537"):
                self.fails(3, "--%s-tasks=%s is out of range (use 1 to 65536)" % (limit, number), *LOCAL, "--steps=1",
                           "--%s-tasks=%s" % (limit, number))
        for every in ("0", "-1", "often"):
            self.fails(3, "invalid --save-every '%s'" % every, *LOCAL, "--steps=1", "--save-every=" + every)
        for share in ("0", "100", "some", "1x"):
            self.fails(3, "invalid --save-share '%s'" % share, *LOCAL, "--steps=1", "--save-every=auto",
                       "--save-share=" + share)
        self.fails(3, "--save-share needs --save-every=auto", *LOCAL, "--steps=1", "--save-share=1")
        self.fails(3, "invalid duration 'soon'", *LOCAL, "--steps=1", "--grace=soon")
        self.fails(3, "the graph has no tensor", *LOCAL, "--steps=1", "--loss=nothing")
        self.fails(3, "for the graph's own input use --steps", MODEL, "--master=local", "--epochs=1")
        self.fails(3, "need --feed=NAME=@FILE.npy", MODEL, "--master=local", "--steps=1", "--rows=0:1")
        self.fails(3, "use chief:0, worker:N", *LOCAL, "--steps=1", "--task=boss")
        self.fails(3, "needs --tasks=2 or more", *LOCAL, "--steps=1", "--task=worker:0")
        self.fails(3, "no store supports 'gs://'", *LOCAL, "--steps=1", "--checkpoint-dir=gs://bucket/run")
        self.fails(3, "no store supports 'gs://'", *LOCAL, "--steps=1", "--log-dir=gs://bucket/run")
        with tempfile.NamedTemporaryFile(dir="/tmp") as file:
            for flag in ("checkpoint-dir", "log-dir", "fast-dir"):
                self.fails(3, "--%s: '%s' isn't a directory" % (flag, file.name), *LOCAL, "--steps=1", "--%s=%s" % (flag, file.name),
                           *(["--checkpoint-dir=" + self.run_dir] if flag == "fast-dir" else []))
        link = os.path.join(self.work, "link")
        os.symlink("nowhere", link)
        for flag in ("checkpoint-dir", "log-dir"):
            self.fails(3, "--%s: '%s' is a link to 'nowhere', which doesn't exist" % (flag, link), *LOCAL, "--steps=1",
                       "--%s=%s" % (flag, link))
        self.fails(3, "--keep=-2 is out of range (use -1 or more)", *LOCAL, "--steps=1", "--checkpoint-dir=" + self.run_dir, "--keep=-2")
        self.fails(3, "--keep-best=99999999999 is out of range\n", *LOCAL, "--steps=1", "--checkpoint-dir=" + self.run_dir,
                   "--keep-best=99999999999")
        self.fails(3, "--steps and --epochs must be 1 or more", *LOCAL, "--steps=-9223372036854775808")
        self.fails(3, "2 tasks can't share", *LOCAL, "--steps=1", "--task=worker:0", "--tasks=2")

    def test_of_data(self):
        few = npy(os.path.join(self.work, "few.npy"), "<i8", (4,), b"\0" * 32)
        doubles = npy(os.path.join(self.work, "doubles.npy"), "<f8", (4, 64), b"\0" * 8 * 256)
        wide = npy(os.path.join(self.work, "wide.npy"), "<f4", (4, 65), b"\0" * 4 * 260)
        scalar = npy(os.path.join(self.work, "scalar.npy"), "<f4", (), b"\0" * 4)
        cut = npy(os.path.join(self.work, "cut.npy"), "<f4", (4, 64), b"\0" * 100)
        both = [MODEL, "--master=local", "--steps=1"]
        self.fails(3, "invalid --feed 'x' (use NAME=VALUE or NAME=@FILE.npy)", *both, "--feed=x")
        self.fails(3, "no tensor 'z'", *both, "--feed=z=@" + few)
        self.fails(3, "'x:0' is fed twice", *both, FEEDS[0], "--feed=x=@" + X)
        self.fails(3, "add --feed=y:0=@FILE.npy (int64[?])", *both, FEEDS[0])
        self.fails(3, "the array has 4 rows, but that of 'x:0' has 1797", *both, FEEDS[0], "--feed=y:0=@" + few)
        self.fails(3, "type is float64, but 'x:0' of the graph needs float32; convert it with a.astype (numpy.float32)", *both,
                   "--feed=x:0=@" + doubles)
        self.fails(3, "shape is [4,65], but 'x:0' of the graph needs [?,64]", *both, "--feed=x:0=@" + wide)
        self.fails(3, "shape is [], but 'x:0' of the graph needs [?,64]", *both, "--feed=x:0=@" + scalar)
        self.fails(3, "element 1 can't be converted to int64", *both, "--feed=y:0=[1, 0.5]")
        self.fails(3, "cut.npy", *both, "--feed=x:0=@" + cut)
        self.fails(3, "nothing.npy", *both, "--feed=x:0=@nothing.npy")
        self.fails(3, "digits.meta", *both, "--feed=x:0=@tests/fixtures/digits.meta")
        self.fails(3, "the data has 1797 rows", *both, *FEEDS, "--batch-size=1798")
        self.fails(3, "out of range: the array has 1797 rows", *both, *FEEDS, "--rows=5:5")
        self.fails(3, "out of range: the array has 1797 rows", *both, *FEEDS, "--rows=5:1798")
        self.fails(3, "use FIRST:END", *both, *FEEDS, "--rows=5")

    def test_of_tf_config(self):
        job = [MODEL, *FEEDS, "--steps=1"]
        cluster = {"chief": ["a:1"], "worker": ["b:1", "c:1"]}
        for words, config in (
                ("TF_CONFIG isn't valid JSON", "{"),
                ("TF_CONFIG must be one JSON object", "[]"),
                ("TF_CONFIG must be one JSON object", "{\"task\": {}} {}"),
                ("nested deeper", "[" * 100000),
                ("\"task\" must be an object", {"task": 3}),
                ("\"task\" has no \"type\"", {"task": {"index": 0}}),
                ("\"index\" in \"task\"", {"task": {"type": "worker", "index": -1}}),
                ("\"index\" in \"task\"", {"task": {"type": "worker", "index": "one"}}),
                ("\"cluster\" must be an object", {"cluster": [], "task": {"type": "worker"}}),
                ("\"worker\" in \"cluster\" must be a list", {"cluster": {"worker": "a:1"}, "task": {"type": "worker"}}),
                ("\"worker\" in \"cluster\" must be a list", {"cluster": {"worker": [1]}, "task": {"type": "worker"}}),
                ("this task is 'ps:0'", {"cluster": dict(cluster, ps=["d:1"]), "task": {"type": "ps", "index": 0}}),
                ("has 2 such tasks", {"cluster": cluster, "task": {"type": "worker", "index": 2}}),
                ("names no task", {"cluster": cluster}),
                ("worker:0 in \"cluster\": ", {"cluster": {"worker": ["b"]}, "task": {"type": "worker"}})):
            self.fails(3, words, *job, tf_config=config)


class Alone(Case):
    def test_goes_on_where_it_was(self):
        job = [*LOCAL, "--checkpoint-dir=" + self.run_dir, "--save-every=30", "--loss=loss:0"]
        first = train(*job, "--epochs=1")
        second = train(*job, "--epochs=2")
        third = train(*job, "--epochs=2")
        self.assertEqual((first.returncode, second.returncode, third.returncode), (0, 0, 0), second.stderr)
        self.assertIn("initialised digits, 15 variables, after ", first.stdout)
        self.assertIn("trained digits to step %d in " % PER_EPOCH, first.stdout)
        self.assertIn("restored %s/model.ckpt-%d, " % (self.run_dir, PER_EPOCH), second.stdout)
        self.assertIn("%s/model.ckpt-%d is durable" % (self.run_dir, 2 * PER_EPOCH), second.stdout)
        self.assertRegex(second.stdout, r"steps/s\), loss [\d.]+;")
        self.assertIn("already complete", third.stdout)
        self.assertEqual(first.stderr, "")
        self.assertNotIn("\x1b", first.stdout)
        shown = subprocess.run([MUSTER, "checkpoint", "show", self.run_dir, "muster/done"], capture_output=True,
                               text=True, timeout=PATIENCE)
        self.assertIn("[%d]" % (2 * PER_EPOCH), shown.stdout)
        written = b""
        for name in os.listdir(self.run_dir):
            if name.startswith("events.out"):
                with open(os.path.join(self.run_dir, name), "rb") as file:
                    written += file.read()
        self.assertIn(b"\n\x04loss\x15", written)  # a scalar for TensorBoard: its tag, and its value as a float

    def test_reports_to_programs_in_lines(self):
        done = train(*LOCAL, "--steps=5000", "--checkpoint-dir=" + self.run_dir, "--save-every=2000", "--loss=loss:0",
                     "--json", "--keep=2", "--save-blocking")  # a slow disk would make fewer checkpoints
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        lines = events(done.stdout)
        ready, last = lines[0], lines[-1]
        self.assertEqual((ready["event"], ready["how"], ready["step"], ready["variables"]), ("ready", "initialised", 0, 15))
        saved = [line["step"] for line in lines if line["event"] == "saved"]
        self.assertEqual((saved[0], saved[-1]), (0, 5000))
        steps = [line["step"] for line in lines if line["event"] == "step"]
        self.assertLessEqual(steps[0], 1)  # the first one of a session, whenever that is
        for line in lines:
            self.assertLess(abs(line["time"] - time.time()), 3600)
            if line["event"] == "step":
                self.assertEqual(line["until_step"], 5000)
                self.assertGreater(line["steps_per_second"] or 1, 0)  # null: not known yet
                self.assertGreater(line["loss"], 0)
        self.assertEqual((last["event"], last["step"], last["durable_step"], last["exit_code"]), ("trained", 5000, 5000, 0))
        self.assertEqual(last["checkpoint"], self.run_dir + "/model.ckpt-5000")
        with open(os.path.join(self.run_dir, "checkpoint")) as state:
            self.assertEqual(state.read().count("all_model_checkpoint_paths"), 2)
        saves = last["saves"]
        self.assertEqual([saves[it] for it in ("durable", "failed", "skipped", "replaced", "saving")], [4, 0, 0, 0, None])
        self.assertEqual({state: it["step"] for state, it in saves["states"].items()},
                         dict.fromkeys(("requested", "staged", "written", "durable"), 5000))
        self.assertGreater(saves["last_bytes"], 0)
        self.assertGreater(saves["total_seconds"]["blocked"], 0)

    def test_chooses_how_often_it_saves(self):
        process = self.start(MUSTER, "train", *LOCAL, "--steps=1000000000", "--checkpoint-dir=" + self.run_dir,
                             "--save-every=auto", "--save-share=2%")
        said = next((line for line in process.stdout if "saving every" in line), "")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(self.ends(process)[0], 6)
        self.assertRegex(said, r"saving every .*: a save holds training for .* and takes .*, the mean time between failures "
                               r"is 1h00m \(assumed\)\n")

    def test_draws_its_saves_in_a_trace(self):
        trace = os.path.join(self.work, "trace.json")
        done = train(*LOCAL, "--steps=100", "--checkpoint-dir=" + self.run_dir, "--save-every=50", "--save-blocking",
                     "--trace=" + trace)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        with open(trace) as file:
            drawn = json.load(file)["traceEvents"]
        lanes = {it["tid"]: it["args"]["name"] for it in drawn if it["name"] == "thread_name"}
        boxes = [(lanes[it["tid"]], it["name"], it["args"].get("checkpoint")) for it in drawn if it["ph"] == "X"]
        self.assertIn(("session", "init", None), boxes)
        for step in (0, 100):  # one that is due meanwhile may follow later, or be the last
            for state in ("staged", "written", "durable"):
                self.assertIn(("saves", state, "%s/model.ckpt-%d" % (self.run_dir, step)), boxes)

    def test_fails_where_the_loss_is_no_number(self):
        nan = npy(os.path.join(self.work, "nan.npy"), "<f4", (1797, 64), struct.pack("<f", float("nan")) * (1797 * 64))
        done = train(MODEL, "--master=local", "--feed=x:0=@" + nan, FEEDS[1], "--steps=10", "--loss=loss:0", "--json")
        self.assertEqual(done.returncode, 4)
        self.assertIn("NaN loss during training. 'loss:0' is NaN at step ", done.stderr)
        self.assertEqual(events(done.stdout)[-1]["event"], "failed")

    def test_fails_where_the_last_save_fails(self):
        """What is written exceeds the size of a file: training goes on, but ends with nothing that is durable."""
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

        done = subprocess.run([MUSTER, "train", *LOCAL, "--steps=300", "--save-every=100", "--checkpoint-dir=" + self.run_dir],
                              capture_output=True, text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL,
                              env=environment(), preexec_fn=limit)
        self.assertEqual(done.returncode, 4, done.stdout + done.stderr)
        self.assertIn("model.ckpt-300", done.stderr)
        self.assertFalse([name for name in os.listdir(self.run_dir) if name.endswith(".index")])

    def test_keeps_the_model_as_it_is_where_asked(self):
        job = [*LOCAL, "--checkpoint-dir=" + self.run_dir]
        plain = train(*job, "--steps=10", "--no-positions")
        refused = train(*job, "--steps=20")
        taken = train(*job, "--steps=20", "--allow-missing")
        self.assertEqual((plain.returncode, refused.returncode, taken.returncode), (0, 3, 0), refused.stderr)
        self.assertIn("muster/begun", refused.stderr)


class Tiers(Case):
    def setUp(self):
        super().setUp()
        self.fast = os.path.join(self.work, "fast")
        self.tiers = ["--checkpoint-dir=" + self.run_dir, "--fast-dir=%s,every=20,keep=2" % self.fast, "--save-secs=1h"]

    def killed(self):
        """A job that was killed after it had saved in the fast tier; the step of the last save that it reported."""
        process = self.start(MUSTER, "train", *LOCAL, *self.tiers, "--steps=100000000", "--json")
        self.assertEqual(self.read_event(process, "copied")["checkpoint"], self.run_dir + "/model.ckpt-0")
        saved = [self.read_event(process, "saved") for _ in range(3)][-1]
        self.assertEqual(os.path.dirname(saved["checkpoint"]), self.fast)
        process.kill()
        process.wait()
        return saved["step"]

    def listed(self, *directories):
        done = subprocess.run([MUSTER, "checkpoint", "list", *directories, "--json"], capture_output=True, text=True,
                              timeout=PATIENCE)
        return events(done.stdout)

    def test_resumes_from_the_fast_one(self):
        least = self.killed()
        [latest] = [row for row in self.listed(self.fast, self.run_dir) if row["latest"]]
        self.assertEqual(latest["directory"], self.fast)

        done = train(*LOCAL, *self.tiers, "--steps=%d" % (latest["step"] + 100), "--json")

        self.assertEqual(done.returncode, 0, done.stderr)
        [ready] = [event for event in events(done.stdout) if event["event"] == "ready"]
        self.assertEqual(ready["restored_from"], latest["prefix"])
        self.assertGreaterEqual(ready["step"], least)
        last = events(done.stdout)[-1]
        self.assertEqual(last["checkpoint"], "%s/model.ckpt-%d" % (self.run_dir, latest["step"] + 100))

    def test_lists_what_is_not_of_the_jobs_past(self):
        self.killed()
        other = os.path.join(self.work, "other")
        done = train(*LOCAL, "--checkpoint-dir=" + other, "--steps=5")
        self.assertEqual(done.returncode, 0, done.stderr)

        rows = self.listed(self.fast, other)

        self.assertEqual([row["step"] for row in rows if row["latest"]], [5])
        for row in rows:
            if row["kept"]:  # the kill may have come before the last one was recorded
                self.assertEqual(row["not_used"] is None, row["directory"] == other, row)
        text = subprocess.run([MUSTER, "checkpoint", "list", self.fast, other], capture_output=True, text=True,
                              timeout=PATIENCE).stdout
        self.assertIn("not used: it belongs to the job in '%s'" % self.run_dir, text)
        self.assertIn("checkpoint", text.splitlines()[0].split())
        self.assertIn("in", text.splitlines()[0].split())

    def prune(self, *directories):
        """The steps that stay in each, which are the newest and the latest that the state file names; and what was said."""
        wanted = [{max(row["step"] for row in rows), *(row["step"] for row in rows if row["latest"])}
                  for rows in map(self.listed, directories)]
        done = subprocess.run([MUSTER, "checkpoint", "prune", *directories, "--keep=1"], capture_output=True, text=True,
                              timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)
        left = [{row["step"] for row in self.listed(it)} for it in directories]
        self.assertEqual(left, wanted)
        return left, done.stdout

    def test_prunes_each(self):
        self.killed()  # perhaps when the files of a checkpoint were there and the state file didn't name it
        _, said = self.prune(self.fast, self.run_dir)
        self.assertIn(" in %s, freed " % self.fast, said)

    def test_prunes_neither_the_latest_nor_one_that_a_killed_save_has_published(self):
        latest = self.killed()
        for name in os.listdir(self.fast):
            if name.startswith("model.ckpt-%d." % latest):
                shutil.copy(os.path.join(self.fast, name), os.path.join(self.fast, name.replace("-%d." % latest, "-1000000000.")))
        [left], _ = self.prune(self.fast)
        self.assertEqual(len(left), 2)
        self.assertIn(1000000000, left)

    def test_are_refused_where_they_make_no_sense(self):
        for settings, words in ((",every=0", "isn't a number of steps"), (",secs=x", "isn't a time"),
                                (",keep=0", "isn't a number of checkpoints"), (",more=1", "unknown setting"),
                                (",every=1,secs=1s", "can't be combined")):
            self.fails(3, words, *LOCAL, "--steps=1", "--checkpoint-dir=" + self.run_dir,
                       "--fast-dir=" + self.fast + settings)
        self.fails(3, "--fast-dir needs --checkpoint-dir", *LOCAL, "--steps=1", "--fast-dir=" + self.fast)
        self.fails(3, "can't be both", *LOCAL, "--steps=1", "--checkpoint-dir=" + self.run_dir,
                   "--fast-dir=%s/" % self.run_dir)


class Retention(Case):
    """What stays, over restarts, by what the job and evaluators say of it."""

    def rows(self):
        done = subprocess.run([MUSTER, "checkpoint", "list", self.run_dir, "--json"], capture_output=True, text=True,
                              timeout=PATIENCE)
        return {row["step"]: row for row in events(done.stdout)}

    def train_to(self, steps, *words):
        done = train(*LOCAL, "--checkpoint-dir=" + self.run_dir, "--steps=%d" % steps, "--save-every=10", "--save-blocking",
                     *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def mark(self, step, value):
        done = subprocess.run([MUSTER, "checkpoint", "mark", "%s/model.ckpt-%d" % (self.run_dir, step),
                               "--metric=eval/accuracy=%s" % value], capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_keeps_the_best_by_the_loss_over_restarts(self):
        rules = ("--keep=2", "--keep-best=2", "--metric=loss:min")
        for steps in (40, 80, 120):
            done = self.train_to(steps, *rules)
            self.assertNotIn("isn't in the graph", done.stderr)
            seen = self.rows()
            self.assertEqual(max(seen), steps)
            best = [step for step, row in seen.items() if any(word.startswith("best (loss ") for word in row["kept"])]
            self.assertEqual(len(best), 2, seen)
            losses = {step: row["metrics"].get("loss") for step, row in seen.items()}
            for step in set(seen) - set(best):
                self.assertTrue(losses[step] is None or losses[step] >= max(losses[one] for one in best), losses)
            self.assertTrue(all(row["kept"] for row in seen.values()), seen)

    def test_keeps_what_an_evaluator_found_best(self):
        rules = ("--keep=3", "--keep-best=1", "--metric=eval/accuracy:max")
        done = self.train_to(30, *rules)
        self.assertIn("metric 'eval/accuracy' isn't in the graph", done.stderr)
        self.mark(10, 0.97)
        self.mark(20, 0.2)
        self.train_to(100)  # by the directory's rules
        seen = self.rows()
        self.assertEqual(seen[10]["kept"], ["best (eval/accuracy 0.97)"])
        self.assertNotIn(20, seen)
        self.train_to(120, "--keep-best=-1", "--keep=3")
        self.assertEqual(sorted(self.rows()), [100, 110, 120])

    def test_prune_goes_by_the_jobs_rules(self):
        self.train_to(70, "--keep=5", "--keep-best=1", "--metric=eval/accuracy:max", "--keep-every-steps=30")
        self.mark(40, 0.5)
        done = subprocess.run([MUSTER, "checkpoint", "prune", self.run_dir, "--keep=1"], capture_output=True, text=True,
                              timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(self.rows()), [0, 30, 40, 60, 70])
        text = subprocess.run([MUSTER, "checkpoint", "list", self.run_dir], capture_output=True, text=True,
                              timeout=PATIENCE).stdout
        kept = {line.split()[0].rpartition("-")[2]: line for line in text.splitlines()[1:]}
        self.assertIn("best (eval/accuracy 0.5)  good", kept["40"])
        self.assertIn("every 30 steps ", kept["30"])
        self.assertIn("  newest ", kept["70"])

    def test_a_fast_tier_keeps_by_its_own_number(self):
        fast = os.path.join(self.work, "fast")
        self.train_to(60, "--fast-dir=%s,every=5,keep=2" % fast, "--keep=1", "--keep-best=1", "--metric=loss:min",
                      "--keep-every-steps=20")
        done = subprocess.run([MUSTER, "checkpoint", "list", fast, "--json"], capture_output=True, text=True,
                              timeout=PATIENCE)
        rows = events(done.stdout)
        kept = [row["kept"] for row in rows if row["kept"]]  # one that is being copied is removed later
        self.assertEqual(kept, [["latest", "newest"], ["newest"]])
        self.assertTrue(all(row["metrics"]["loss"] > 0 for row in rows if row["step"] > 0), rows)
        durable = self.rows()
        self.assertTrue(any("best" in word for row in durable.values() for word in row["kept"]), durable)

    def test_refuses_rules_that_cannot_be(self):
        for words, why in ((["--keep-best=2"], "--keep-best needs --metric"),
                           (["--metric=loss"], "invalid metric 'loss' (use NAME:max or NAME:min"),
                           (["--metric=loss:best", "--keep-best=1"], "invalid metric")):
            done = train(*LOCAL, "--checkpoint-dir=" + self.run_dir, "--steps=5", *words)
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertIn(why, done.stderr)
        self.assertFalse(os.path.exists(self.run_dir))

    def test_a_metric_is_a_number(self):
        done = train(*LOCAL, "--checkpoint-dir=" + self.run_dir, "--steps=5", "--keep-best=1", "--metric=hidden/kernel:max")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("metric 'hidden/kernel:0'", done.stderr)


class Goodput(Case):
    """What a job's time was spent on, over its lives."""

    def job(self, target, *more):
        return [MODEL, *FEEDS, "--master=" + target, "--checkpoint-dir=" + self.run_dir, *more]

    def killed(self, *words):
        """A life that ends by SIGKILL after its third checkpoint; the step of the last that it spoke of."""
        process = self.start(MUSTER, "train", *words, "--steps=1000000000", "--save-every=100", "--json")
        for _ in range(3):
            step = self.read_event(process, "saved")["step"]
        process.kill()
        process.wait()
        return step

    def test_is_told_at_the_end(self):
        done = train(*self.job("local", "--steps=50"))
        self.assertRegex(done.stdout, r"\ngoodput [\d.]+ %: .* of .* lost \(start .*; saves .*\)\n$")
        again = train(*self.job("local", "--steps=60", "--json"))
        goodput = events(again.stdout)[-1]["goodput"]
        # who was done wasn't down
        self.assertEqual((goodput["restarts"], goodput["steps_again"], goodput["seconds"]["down"]), (0, 0, 0))
        self.assertAlmostEqual(goodput["total_seconds"], sum(goodput["seconds"].values()), places=5)
        self.assertAlmostEqual(goodput["share"], 1 - goodput["lost_seconds"] / goodput["total_seconds"], places=5)

    def test_survives_a_kill(self):
        step = self.killed(*self.job("local"))
        done = train(*self.job("local", "--steps=%d" % (step + 1000), "--json"))
        self.assertEqual(done.returncode, 0, done.stderr)
        goodput = events(done.stdout)[-1]["goodput"]
        self.assertEqual((goodput["restarts"], goodput["failures"], goodput["at_least"]), (1, 1, True))
        self.assertGreater(goodput["seconds"]["down"], 0)
        self.assertGreater(goodput["seconds"]["restoring"], 0)
        self.assertGreater(goodput["seconds"]["saving"], 0)

    def test_knows_from_the_master_what_is_trained_again(self):
        _, target = self.serve()
        process = self.start(MUSTER, "train", *self.job(target), "--steps=1000000000", "--save-secs=1h", "--json")
        self.read_event(process, "step")
        end = time.monotonic() + PATIENCE
        reached = 0
        while reached < 100 and time.monotonic() < end:
            shown = subprocess.run([MUSTER, "status", target, "--json"], capture_output=True, text=True, timeout=PATIENCE)
            goodput = (json.loads(shown.stdout)["models"] or [{}])[0].get("goodput")
            reached = json.loads(shown.stdout)["models"][0]["step"] or 0 if goodput else 0
        self.assertGreaterEqual(reached, 100)
        process.kill()
        process.wait()
        done = train(*self.job(target, "--steps=%d" % (reached - 10)), "--json", "--restore")
        self.assertEqual(done.returncode, 0, done.stderr)
        goodput = events(done.stdout)[-1]["goodput"]
        self.assertEqual((goodput["restarts"], goodput["at_least"]), (1, False))
        self.assertIn(goodput["steps_again"], (reached - 11, reached - 10))  # the last may have been read before its update
        self.assertGreater(goodput["seconds"]["repeated"], 0)
        shown = subprocess.run([MUSTER, "status", target], capture_output=True, text=True, timeout=PATIENCE)
        self.assertRegex(shown.stdout, r"\n  time +goodput .* \(1 restart: .* down, .* for [\d,]+ steps trained again; saves .*\)\n")

    def test_of_a_job_that_was_told_to_go_has_no_failure(self):
        _, target = self.serve()  # it survives, and has heard from the job before its end
        process = self.start(MUSTER, "train", *self.job(target), "--steps=1000000000", "--save-secs=1h", "--json")
        self.read_event(process, "step")
        process.terminate()
        self.assertEqual(process.wait(PATIENCE), 6)
        done = train(*self.job(target, "--steps=1000000000"), "--drill", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        goodput = events(done.stdout)[-1]["goodput"]
        self.assertEqual((goodput["restarts"], goodput["failures"], goodput["steps_again"]), (1, 0, 0))


class Preempted(Case):
    def job(self, *more):
        return [MUSTER, "train", *LOCAL, "--steps=1000000000", "--checkpoint-dir=" + self.run_dir, "--json", *more]

    def test_saves_and_can_be_resumed(self):
        process = self.start(*self.job())
        before = self.read_event(process, "step")
        process.send_signal(signal.SIGTERM)
        code, out = self.ends(process)
        last = events(out)[-1]
        self.assertEqual((code, last["event"], last["exit_code"]), (6, "preempted", 6))
        self.assertGreaterEqual(last["step"], before["step"])
        self.assertEqual(last["durable_step"], last["step"])
        self.assertIn("preempted (Terminated)", last["preemption"])
        again = train(*LOCAL, "--steps=%d" % (last["step"] + 1), "--checkpoint-dir=" + self.run_dir)
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertIn("restored %s/model.ckpt-%d" % (self.run_dir, last["step"]), again.stdout)

    def test_is_done_where_it_has_done_all(self):
        """Whenever after the last step it is told to go."""
        process = self.start(MUSTER, "train", *LOCAL, "--steps=50", "--checkpoint-dir=" + self.run_dir, "--json",
                             "--save-every=50")
        while self.read_event(process, "saved")["step"] < 50:
            pass
        process.send_signal(signal.SIGTERM)
        code, out = self.ends(process)
        self.assertEqual((code, [event["event"] for event in events(out)][-1:]), (0, ["trained"]))

    def test_says_that_its_checkpoint_has_gone(self):
        """Its directory was removed, and can't be made again."""
        process = self.start(MUSTER, "train", *LOCAL, "--steps=1000000000", "--checkpoint-dir=" + self.run_dir,
                             "--save-every=1000000000")
        self.assertTrue(any(line.startswith("saved ") for line in process.stdout))
        os.rename(self.run_dir, self.run_dir + ".elsewhere")
        os.symlink("/proc/none", self.run_dir)
        process.send_signal(signal.SIGTERM)
        code, out = self.ends(process)
        self.assertEqual(code, 6, out)
        self.assertRegex(out, r"\n  %s/model.ckpt-\d+ is gone: nothing can be resumed from it\n  try: `muster save`" % self.run_dir)
        self.assertNotIn("the same command resumes", out)

    def test_rehearses(self):
        done = train(*LOCAL, "--steps=1000000000", "--checkpoint-dir=" + self.run_dir, "--drill", "--grace=60")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"a preemption would take .* of the 1m00s grace: .* to spare")

    def test_says_that_a_drill_has_not_taken_place(self):
        """The training is over before the drill begins."""
        for more in ([], ["--json"]):
            done = train(*LOCAL, "--steps=2", "--drill", *more)
            self.assertEqual(done.returncode, 4, done.stdout)
            said = events(done.stdout)[-1]["preemption"] if more else done.stderr
            self.assertRegex(said, "drill failed: training ended after .*, and the drill begins after 1.0 s; set more --steps")

    def test_while_it_waits(self):
        process = self.start(MUSTER, "train", MODEL, "--master=" + self.serve()[1], *FEEDS, "--steps=10", "--tasks=2",
                             "--task=worker:0", "--json")
        self.read_event(process, "waiting")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(self.ends(process)[0], 6)


class Job(Case):
    """A chief and two workers as processes, on `muster serve`."""

    def task(self, target, name, *more):
        own = ["--checkpoint-dir=" + self.run_dir, "--save-every=500"] if name == "chief:0" else []
        return self.start(MUSTER, "train", MODEL, *FEEDS, "--rows=0:1500", "--master=" + target, "--task=" + name,
                          "--tasks=3", "--json", *own, *more)

    def accuracy(self, target):
        done = subprocess.run([MUSTER, "run", MODEL, "--master=" + target, "--rows=1500:", "--feed=x:0=@" + X,
                               "--feed=y:0=@" + Y, "--fetch=accuracy:0", "--json"],
                              capture_output=True, text=True, timeout=PATIENCE)
        return json.loads(done.stdout)["accuracy:0"]

    def prepare(self, target, *more):
        return subprocess.run([MUSTER, "prepare", MODEL, "--master=" + target, *more], capture_output=True, text=True,
                              timeout=PATIENCE, stdin=subprocess.DEVNULL, env=environment())

    def test_no_word_that_is_meant_for_what_is_left_of_a_job_ends_one_that_trains(self):
        _, target = self.serve()
        chief = self.start(MUSTER, "train", MODEL, *FEEDS, "--master=" + target, "--checkpoint-dir=" + self.run_dir,
                           "--steps=1000000000", "--json")
        self.read_event(chief, "saved")
        for words in ["prepare", "--overwrite"], ["finish"], ["train", *FEEDS, "--steps=5", "--overwrite"]:
            with self.subTest(words=words):
                done = subprocess.run([MUSTER, words[0], MODEL, "--master=" + target, *words[1:]], capture_output=True, text=True,
                                      timeout=PATIENCE, env=environment())
                self.assertEqual(done.returncode, 4, done.stderr)
                self.assertIn("end it first (SIGTERM)", done.stderr)
                self.assertNotIn("--overwrite", done.stderr)
        chief.send_signal(signal.SIGTERM)
        self.assertEqual(self.ends(chief)[0], 6)
        done = subprocess.run([MUSTER, "finish", MODEL, "--master=" + target], capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_worker_trains_what_prepare_has_prepared_for_as_many_tasks(self):
        _, target = self.serve()
        self.assertEqual(self.prepare(target).returncode, 0)
        code, said = self.ends(self.task(target, "worker:0", "--steps=20", "--timeout=10"))
        self.assertEqual(code, 1, said)
        self.assertIn("positions are missing", said)
        self.assertIn("muster prepare --overwrite --tasks=N", said)
        prepared = self.prepare(target, "--overwrite", "--tasks=3")
        self.assertEqual(prepared.returncode, 0, prepared.stderr)
        # Without a release by `prepare` a worker makes its first step after a minute.
        code, said = self.ends(self.task(target, "worker:0", "--steps=20", "--timeout=30"))
        self.assertEqual(code, 0, said)
        refused = self.prepare(target, "--tasks=-1")
        self.assertEqual(refused.returncode, 3, refused.stderr)
        self.assertIn("invalid --tasks '-1'", refused.stderr)

    def test_trains_each_epoch_once(self):
        _, target = self.serve()
        tasks = [self.task(target, name, "--epochs=60", "--timeout=60") for name in ("worker:0", "worker:1", "chief:0")]
        ended = [self.ends(task) for task in tasks]
        self.assertEqual([code for code, _ in ended], [0, 0, 0], ended)
        last = events(ended[2][1])[-1]
        self.assertEqual((last["event"], last["step"], last["durable_step"]), ("trained", 60 * 46, 60 * 46))
        shown = subprocess.run([MUSTER, "status", target, "--json"], capture_output=True, text=True, timeout=PATIENCE)
        saves = json.loads(shown.stdout)["models"][0]["saves"]
        self.assertEqual((saves["states"]["durable"]["step"], saves["durable"], saves["saving"]),
                         (60 * 46, last["saves"]["durable"], None))
        shown = subprocess.run([MUSTER, "status", target], capture_output=True, text=True, timeout=PATIENCE)
        self.assertRegex(shown.stdout, r"\n  saves +%d durable; last \d.*: (staged in .*, )?written in .*, published in .*; "
                                       "training held for .* in all\n" % saves["durable"])
        self.assertGreaterEqual(self.accuracy(target), 0.95)
        late, out = self.ends(self.task(target, "worker:0", "--epochs=60"))
        self.assertEqual((late, events(out.splitlines()[-1])[0]["event"]), (5, "over"))
        self.assertIn("its chief ended the job at step 2760", out)
        self.assertEqual(self.ends(self.task(target, "chief:0", "--epochs=60"))[0], 5)

    def test_says_which_task_it_waits_for(self):
        _, target = self.serve()
        job = ["--epochs=3", "--timeout=60"]
        chief, first = [self.task(target, name, *job) for name in ("chief:0", "worker:0")]
        while self.read_event(chief, "step")["awaits"] != "worker:1":
            pass
        line = self.read_event(chief, "step")
        self.assertEqual(line["awaits"], "worker:1")
        self.assertGreaterEqual(line["awaits_seconds"], 0)
        last = self.task(target, "worker:1", *job)
        self.assertEqual([self.ends(task)[0] for task in (chief, first, last)], [0, 0, 0])

    def test_comes_back_when_the_master_was_killed(self):
        server, target = self.serve_lastingly()
        job = ["--steps=1000000000", "--timeout=60"]
        chief, worker = self.task(target, "chief:0", *job), self.task(target, "worker:0", *job)
        while self.read_event(chief, "saved")["step"] < 500:
            pass
        server.kill()
        self.assertIn("why", self.read_event(chief, "lost"))
        self.serve(int(target.rsplit(":", 1)[1]))
        self.assertEqual(self.read_event(chief, "ready")["how"], "restored")
        self.read_event(chief, "step")
        self.read_event(worker, "lost")
        self.read_event(worker, "ready")
        for task in chief, worker:
            task.send_signal(signal.SIGTERM)
        self.assertEqual([self.ends(chief)[0], self.ends(worker)[0]], [6, 6])

    def test_goes_on_from_what_another_process_saved(self):
        """`muster save` runs beside the job: what it saves has the positions that the job needs to go on."""
        for tasks in 1, 2:
            run_dir = os.path.join(self.work, "run%d" % tasks)
            server, target = self.serve_lastingly()
            names = ["chief:0", "worker:0"][:tasks]
            job = [self.start(MUSTER, "train", MODEL, *FEEDS, "--master=" + target, "--task=" + name, "--tasks=%d" % tasks,
                              "--json", "--steps=1000000000", "--timeout=60",
                              *(["--checkpoint-dir=" + run_dir] if name == "chief:0" else [])) for name in names]
            for task in job:
                self.read_event(task, "step")
            saved = subprocess.run([MUSTER, "save", MODEL, "--master=" + target, "--checkpoint-dir=" + run_dir,
                                    "--timeout=60", "--json"], capture_output=True, text=True, timeout=PATIENCE)
            self.assertEqual((saved.returncode, saved.stderr), (0, ""))
            prefix = json.loads(saved.stdout)["saved"]
            shown = subprocess.run([MUSTER, "checkpoint", "show", prefix, "muster/begun"], capture_output=True, text=True,
                                   timeout=PATIENCE)
            self.assertEqual(shown.returncode, 0, shown.stderr)
            self.read_event(job[0], "step")  # which goes on
            server.kill()
            self.read_event(job[0], "lost")
            self.serve(int(target.rsplit(":", 1)[1]))
            self.assertEqual(self.read_event(job[0], "ready")["how"], "restored")
            self.read_event(job[0], "step")
            for task in job:
                task.send_signal(signal.SIGTERM)
            self.assertEqual([self.ends(task)[0] for task in job], [6] * tasks)

    def test_continues_with_the_model_of_a_chief_that_died(self):
        _, target = self.serve()
        job = ["--steps=1000000000", "--timeout=60"]
        chief, worker = [self.task(target, name, *job) for name in ("chief:0", "worker:0")]
        self.read_event(worker, "ready")
        last = self.read_event(chief, "step")["step"]
        chief.kill()
        chief.wait()
        chief = self.task(target, "chief:0", *job)
        ready = self.read_event(chief, "ready")
        self.assertEqual((ready["how"], ready["restored_from"]), ("continued", None))
        self.assertGreaterEqual(ready["step"], last)
        self.read_event(chief, "step")
        for task in chief, worker:
            task.send_signal(signal.SIGTERM)
        ended = [self.ends(task) for task in (chief, worker)]
        self.assertEqual([code for code, _ in ended], [6, 6])
        self.assertNotIn('"lost"', ended[1][1])

    def test_workers_say_that_the_master_was_reset(self):
        _, target = self.serve()
        job = ["--steps=1000000000", "--timeout=60"]
        chief = self.task(target, "chief:0", *job)
        worker = self.start(MUSTER, "train", MODEL, *FEEDS, "--rows=0:1500", "--master=" + target, "--task=worker:0",
                            "--tasks=3", *job)
        while not worker.stdout.readline().startswith("ready after"):
            pass
        chief.kill()
        chief.wait()
        self.task(target, "chief:0", *job, "--restore")
        while (line := worker.stdout.readline()).startswith("training"):
            pass
        self.assertEqual(line, "the master was reset; waiting for the chief to prepare the model\n")
        while not (line := worker.stdout.readline()).startswith("ready after"):
            self.assertNotIn("lost", line)

    def test_takes_its_role_from_tf_config(self):
        _, target = self.serve()
        address = target[len("grpc://"):]
        for cluster, task in (({"worker": [address, "b:1"]}, {"type": "worker", "index": "0"}),
                              ({"chief": [address], "worker": ["b:1"], "ps": ["a:1"]}, {"type": "chief", "index": 0})):
            done = train(MODEL, *FEEDS, "--steps=20", "--json", "--overwrite", tf_config={"cluster": cluster, "task": task})
            self.assertEqual(done.returncode, 0, done.stderr)
            [ready] = [event for event in events(done.stdout) if event["event"] == "ready"]
            self.assertEqual((ready["task"], ready["how"]), ("%s:0" % task["type"], "initialised"))
        worker = train(MODEL, *FEEDS, "--steps=20", "--json",
                       tf_config={"session_master": target, "cluster": {"chief": ["a:1"], "worker": ["b:1"]},
                                  "task": {"type": "worker", "index": 0}})
        self.assertEqual(worker.returncode, 5)
        alone = train(MODEL, *FEEDS, "--steps=20", tf_config={"cluster": {"worker": ["a:1"]}, "task": {"type": "worker"}})
        self.assertEqual(alone.returncode, 0, alone.stderr)
        flags = train(*LOCAL, "--steps=20", "--task=chief", "--tasks=1",
                      tf_config={"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 1}})
        self.assertEqual(flags.returncode, 0, flags.stderr)

    def test_says_what_it_waits_for(self):
        _, target = self.serve()
        job = [MODEL, *FEEDS, "--steps=10", "--task=worker:0", "--tasks=2"]
        nobody = train(*job, "--master=" + target, "--timeout=10")
        self.assertEqual(nobody.returncode, 1)
        self.assertIn("muster: not ready after ", nobody.stderr)
        self.assertIn("no chief has ever registered", nobody.stderr)
        nowhere = train(*job, "--master=grpc://127.0.0.1:1", "--timeout=1")
        self.assertEqual(nowhere.returncode, 2)
        self.assertIn("muster: no answer from grpc://127.0.0.1:1 in ", nowhere.stderr)


class InC(Case):
    def test_the_example_trains(self):
        _, target = self.serve()
        tasks = [self.start(TRAINER, "0", target, self.run_dir), self.start(TRAINER, "1", target),
                 self.start(TRAINER, "2", target)]
        ended = [self.ends(task) for task in tasks]
        self.assertEqual([code for code, _ in ended], [0, 0, 0], ended)
        self.assertIn("ready at step 0", ended[0][1])
        self.assertGreaterEqual(float(re.search(r"accuracy ([\d.]+)", ended[0][1]).group(1)), 0.95)
        again = self.start(TRAINER, "1", target)
        self.assertIn("over", self.ends(again)[1])


class Seen(Case):
    """On a terminal."""

    def test_draws_a_bar_over_itself(self):
        pid, fd = pty.fork()
        if pid == 0:
            os.environ.update(TERM="xterm")
            os.environ.pop("NO_COLOR", None)
            os.execv(MUSTER, [MUSTER, "train", *LOCAL, "--steps=1000000000", "--checkpoint-dir=" + self.run_dir,
                              "--loss=loss:0"])
        fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
        seen, end, asked = "", time.monotonic() + PATIENCE, False
        decoder = codecs.getincrementaldecoder("utf-8")("replace")  # a read may end within a character
        while True:
            if not select.select([fd], [], [], max(0, end - time.monotonic()))[0]:
                os.kill(pid, signal.SIGKILL)
                self.fail(seen[-2000:])
            try:
                data = os.read(fd, 65536)
            except OSError:
                break
            if not data:
                break
            seen += decoder.decode(data)
            if not asked and seen.count("steps/s, loss") > 3:
                asked = True
                os.kill(pid, signal.SIGINT)
        os.close(fd)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 6, seen[-2000:])
        bars = [part for part in re.split(r"\x1b\[\dA\r\x1b\[J", seen) if "training  " in part]
        self.assertGreater(len(bars), 3)
        self.assertIn("\x1b[32m", bars[-1])
        line = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", bars[-1]).splitlines()[0]
        self.assertRegex(line, r"^training  [█░]+  step \d+ of 1000000000, [\d,]+ steps/s, loss \S+")
        self.assertLess(len(line), 100)
        self.assertEqual(seen.count("\x1b[?25l"), seen.count("\x1b[?25h"))
        self.assertIn("Interrupt: stopping after this step", seen)
        self.assertIn("the same command resumes from ", seen)


if __name__ == "__main__":
    unittest.main()
