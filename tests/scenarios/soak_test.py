#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A chief, two workers and a master, one of the four killed at random every second or so (SIGKILL, SIGTERM, or SIGSTOP
and later SIGCONT or SIGKILL), and started again: each job ends at its target, every checkpoint that was published is
whole and holds each batch that its positions tell of exactly once, and nobody hangs. With the argument --chief, only
the chief is killed. The tasks are soak_task.c's or, with the argument --train, `muster train`, or with --tiers, `muster
train` with a fast tier. MUSTER_LONG=1 kills 200 times (on TensorFlow's server, with the argument --tensorflow, 20
times), MUSTER_SEED says when and whom, MUSTER_KILLS how often."""
import json
import os
import random
import signal
import subprocess
import sys
import time

sys.path.insert(0, "tests/scenarios")
import processes
import soak_model
from processes import peer
from soak_model import TASK

TENSORFLOW = "--tensorflow" in sys.argv
if TENSORFLOW:
    sys.argv.remove("--tensorflow")

TIERS = "--tiers" in sys.argv
if TIERS:
    sys.argv[sys.argv.index("--tiers")] = "--train"

TRAIN = "--train" in sys.argv
if TRAIN:
    sys.argv.remove("--train")

# Only the chief is killed, and every other time while it saves.
CHIEF = "--chief" in sys.argv
if CHIEF:
    sys.argv.remove("--chief")

LONG = "MUSTER_LONG" in os.environ
KILLS = int(os.environ.get("MUSTER_KILLS") or ((20 if TENSORFLOW else 200) if LONG else (2 if TENSORFLOW else 5 if TRAIN else 10)))
SEED = int(os.environ.get("MUSTER_SEED") or random.SystemRandom().randrange(1 << 32))
N_TASKS = 3
N_BATCHES = 6000 if LONG else 3000  # a job's: some seconds without kills
WORK = 200 if TRAIN else 96  # of a step, between its writes: a millisecond or three
PACE_US = 2000
EVERY = (3, 8) if TENSORFLOW else (0.5, 2)  # seconds between two kills
STOPPED = (0.1, 2)
SECONDS = 120  # a job that takes longer without a kill hangs
OVER = 5  # the exit code of a task whose job is over
PORT_SERVER = """
import os, sys
import tensorflow as tf
config = tf.compat.v1.ConfigProto(device_count={"CPU": 1})
server = tf.distribute.Server({"worker": ["localhost:%s" % sys.argv[1]]}, job_name="worker", task_index=0, config=config)
print("serving", server.target, flush=True)
sys.stdin.read()
os._exit(0)
"""


def told_by_train(line):
    """A line of `muster train --json` in the words of soak_task."""
    if not line.startswith("{"):
        return [line]
    event = json.loads(line)
    if event["event"] == "ready":
        return [event["how"], str(event["step"]) if event["how"] == "continued" else event["restored_from"]]
    return [event["event"], event.get("checkpoint")]


class Member:
    """One of the four: started, and started again after it has died."""

    def __init__(self, test, name, argv):
        self.test, self.name, self.argv = test, name, argv
        self.lives = 0
        self.killed = False  # by the test, in some life
        self.start()

    def start(self):
        self.lives += 1
        self.process = self.test.start(*self.argv)

    def has_ended(self):
        return self.process.process.poll() is not None

    def end(self):
        self.process.end()

    def tell(self):
        state = self.process.process.poll()
        return "%s, life %d, %s:\n%s" % (self.name, self.lives, "alive" if state is None else "ended with %d" % state,
                                         "\n".join("  " + line for line in self.process.text().splitlines()[-8:]))


class Job:
    def __init__(self, test, directory):
        self.test, self.directory = test, directory
        self.saved = -1  # the highest step that was reported durable
        self.last_victim = None
        self.n_continued = 0  # lives of chiefs that went on with the model on the master
        self.checked = set()
        self.heard = {}
        held = peer.hold_port()
        test.addCleanup(held.close)
        port = peer.port_of(held)
        target = "grpc://127.0.0.1:%d" % port
        master = ([sys.executable, "-c", PORT_SERVER, str(port)] if TENSORFLOW else
                  [peer.MUSTER, "serve", "--listen=127.0.0.1:%d" % port])
        self.master = Member(test, "the master", master)
        command = self.train_command if TRAIN else self.task_command
        self.tasks = [Member(test, "task %d" % task, command(target, task)) for task in range(N_TASKS)]
        self.members = [self.master] + self.tasks

    def task_command(self, target, task):
        return [TASK, "run", target, self.directory, str(task), str(N_TASKS), str(N_BATCHES), str(WORK), str(PACE_US)]

    def train_command(self, target, task):
        model, rows = self.directory + ".meta", self.directory + ".npy"
        if task == 0:
            soak_model.write(model, rows, WORK)
        return [peer.MUSTER, "train", "--meta-graph=" + model, "--master=" + target, "--feed=rows:0=@" + rows,
                "--batch-size=%d" % soak_model.BATCH, "--seed=%d" % soak_model.SEED,
                "--epochs=%d" % (N_BATCHES // soak_model.BATCHES_AN_EPOCH), "--tasks=%d" % N_TASKS,
                "--task=" + ("worker:%d" % (task - 1) if task > 0 else "chief:0"), "--checkpoint-dir=" + self.directory,
                "--timeout=60", "--json"] + (["--save-secs=1", "--fast-dir=%s.fast,secs=100ms" % self.directory]
                                             if TIERS else ["--save-secs=0.3"])

    def is_over(self):
        return self.tasks[0].has_ended() and self.tasks[0].process.process.returncode == 0

    def what(self):
        return "MUSTER_SEED=%d\n%s" % (SEED, "\n".join(member.tell() for member in self.members))

    def hear(self):
        """A chief's life begins at a step that is no older than what a life before has said to be durable."""
        chief = self.tasks[0].process
        begin = self.heard.setdefault(id(chief), 0)
        with chief.changed:
            lines = chief.lines[begin:]
        self.heard[id(chief)] = begin + len(lines)
        for line in lines:
            self.test.assertNotIn("no checkpoint was saved in the time of the drain", line, self.what())
            what = told_by_train(line) if TRAIN else line.split(" ", 1)
            if what[0] in ("saved", "restored"):
                step = int(what[1].rsplit("-", 1)[1])
                self.test.assertGreaterEqual(step, self.saved, self.what())
                self.saved = step
            elif what[0] == "continued":
                self.n_continued += 1
                self.test.assertGreaterEqual(int(what[1]), self.saved, self.what())
            elif what[0] == "initialised":
                self.test.assertEqual(self.saved, -1, self.what())

    def revive(self):
        """Whoever has died is started again, unless it has left as if all were done."""
        self.hear()
        for member in self.members:
            if not member.has_ended() or self.is_over():
                continue
            if member is self.tasks[0]:
                member.process.wait(10)
                self.hear()
            if member is self.master or member.process.process.returncode not in (0, OVER):
                member.start()

    def check(self):
        """Each checkpoint that the directory names, unless the chief forgets it meanwhile."""
        for prefix in self.listed() - self.checked:
            told = soak_model.check(prefix, N_TASKS)
            if told.returncode != 0 and prefix in self.listed():
                self.test.fail("%s: %s\n%s" % (prefix, told.stdout, self.what()))
            self.checked.add(prefix)

    def listed(self):
        return soak_model.listed(self.directory) | soak_model.listed(self.directory + ".fast")

    def is_saving(self):
        try:
            return any(name.startswith(".saving-") for name in os.listdir(self.directory))
        except FileNotFoundError:
            return False

    def wait(self, seconds, until=lambda: False):
        """Goes on for so long, or until the job is over; TRUE if it is."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not self.is_over() and not until():
            self.revive()
            time.sleep(0.02)
        return self.is_over()

    def tell_again(self):
        """A master that is killed as the chief ends may take with it what the workers haven't heard: the next chief
        finds the job done, and says so to the next master."""
        chief = self.tasks[0]
        if self.master.has_ended():
            self.master.start()
        chief.start()
        self.test.assertIn(chief.process.wait(SECONDS), (0, OVER), self.what())

    def end(self):
        """The chief has ended: so do the workers, who hear it from the master."""
        self.hear()
        if self.last_victim is self.master:
            self.tell_again()
        for task in self.tasks[1:]:
            try:
                code = task.process.process.wait(60)
            except subprocess.TimeoutExpired:
                self.test.fail("%s hangs\n%s" % (task.name, self.what()))
            if code != 0 and task.killed:
                continue
            self.test.assertIn(code, (0, OVER), self.what())
        self.check()
        latest = os.path.join(self.directory, "model.ckpt-%d" % N_BATCHES)
        self.test.assertIn(latest, self.listed(), self.what())
        peer.muster("checkpoint", "verify", self.directory)
        for member in self.members:
            member.end()


class SoakTest(processes.TestCase):
    def setUp(self):
        print("MUSTER_SEED=%d, %d kills" % (SEED, KILLS), flush=True)
        self.random = random.Random(SEED)
        self.kills = {}

    def strike(self, job):
        """Kills somebody, or stops and then wakes or kills it; how is counted."""
        victim = job.tasks[0] if CHIEF else self.random.choice(job.members)
        if CHIEF and self.random.random() < 0.5:
            job.wait(2, job.is_saving)
        how = self.random.choice(("SIGKILL", "SIGTERM", "SIGSTOP, SIGCONT", "SIGSTOP, SIGKILL"))
        if job.is_over() or victim.has_ended():
            return False
        struck = victim.process
        victim.killed = True
        job.last_victim = victim
        for name in how.split(", "):
            struck.signal(getattr(signal, name))
            if name == "SIGSTOP":
                # Now and then for so long that a chief's lease runs out.
                seconds = 17 if LONG and self.random.random() < 0.03 else self.random.uniform(*STOPPED)
                job.wait(seconds, lambda: struck.process.poll() is not None)
        if "SIGCONT" not in how:
            struck.wait(30)
        key = "%s %s" % (victim.name if victim is job.master else "chief" if victim is job.tasks[0] else "worker", how)
        self.kills[key] = self.kills.get(key, 0) + 1
        return True

    def test_nothing_is_lost_or_repeated(self):
        n_kills, n_jobs, n_spared, n_checked, n_continued, began = 0, 0, 0, 0, 0, time.monotonic()
        while n_kills < KILLS:
            n_jobs += 1
            job = Job(self, os.path.join(self.folder(), "run"))
            n_spared += 1
            # Sooner where jobs end before anybody is killed, however fast the machine is.
            while n_kills < KILLS and not job.wait(self.random.uniform(*EVERY) / n_spared):
                if self.strike(job):
                    n_kills += 1
                    n_spared = 1
                job.check()
            if not job.wait(SECONDS):
                self.fail("the job isn't over after %d s without a kill\n%s" % (SECONDS, job.what()))
            job.end()
            n_checked += len(job.checked)
            n_continued += job.n_continued
        print("%d kills in %d jobs of %d batches, %d chiefs continued, %d checkpoints checked, %.0f s: %s" % (
            n_kills, n_jobs, N_BATCHES, n_continued, n_checked, time.monotonic() - began, sorted(self.kills.items())), flush=True)


if __name__ == "__main__":
    peer.main()
