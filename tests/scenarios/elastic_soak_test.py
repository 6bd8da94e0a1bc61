#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""An elastic job of 1 to 8 equal tasks (`muster train --task=auto`). Tasks join, leave (SIGTERM), are killed, and are
stopped (SIGSTOP) and later woken or killed, at random, the chief among them; muster's server is killed and started again,
and so loses the model. Each job ends with every batch trained
exactly once by the model's own count, every checkpoint that was published agrees with its positions, epochs of chiefs
only grow, and nobody hangs. MUSTER_LONG=1: 500 events (on TensorFlow's server, with the argument --tensorflow, 50);
MUSTER_SEED says when and whom, MUSTER_EVENTS how many. It prints the longest times in which no step was made: while every
process went on, and while a task was stopped or the server down."""
import os
import random
import re
import signal
import sys
import time

sys.path.insert(0, "tests/scenarios")
import processes
import soak_model
from processes import peer

TENSORFLOW = "--tensorflow" in sys.argv
if TENSORFLOW:
    sys.argv.remove("--tensorflow")

LONG = "MUSTER_LONG" in os.environ
EVENTS = int(os.environ.get("MUSTER_EVENTS") or ((50 if TENSORFLOW else 500) if LONG else (4 if TENSORFLOW else 20)))
SEED = int(os.environ.get("MUSTER_SEED") or random.SystemRandom().randrange(1 << 32))
MOST_TASKS = 8
N_EPOCHS = 3000 if LONG else 1000
N_STEPS = N_EPOCHS * soak_model.BATCHES_AN_EPOCH
WORK = 200  # of a step, between its writes: a millisecond or three
EVERY = (0.2, 1.5)  # seconds between two events
STOPPED = (0.1, 2)
LEASE = 15  # seconds after which a stopped task counts as gone
BACK = 3  # seconds after the server is back in which the model is restored, and its tasks may come back
SECONDS = 120  # a job that takes longer without an event hangs
PREEMPTED, OVER = 6, 5  # exit codes


class Task:
    def __init__(self, test, number, argv):
        self.number = number
        self.process = test.start(*argv)
        self.struck = None  # by what, if it was to end
        self.is_stopped = False

    def code(self):
        return self.process.process.poll()

    def tell(self):
        code = self.code()
        state = "stopped" if self.is_stopped else "alive" if code is None else "ended with %d" % code
        return "task %d, %s:\n%s" % (self.number, state, "\n".join("  " + line for line in self.process.lines[-8:]))


class Job:
    """A server, and tasks that come and go. TensorFlow's server stays."""

    def __init__(self, test, directory):
        self.test, self.directory = test, directory
        self.model, self.rows = directory + ".meta", directory + ".npy"
        soak_model.write(self.model, self.rows, WORK)
        self.masters = [self.start_master()]
        self.watch = test.start(soak_model.TASK, "watch", self.target, self.model)
        self.tasks, self.n_started, self.checked = [], 0, set()
        self.events, self.stops = [], []  # (when, what); (from, until, who)
        self.longest_s, self.longest_beside_stop_s = 0.0, 0.0
        self.join()

    def start_master(self):
        if not TENSORFLOW:
            master, self.target = self.test.serve_lastingly()
            return master
        tensorflow = self.test.enterContext(peer.tensorflow_server())
        master, self.target = self.test.serve(0, "--master=" + tensorflow)
        return master

    def join(self):
        argv = [peer.MUSTER, "train", "--meta-graph=" + self.model, "--master=" + self.target, "--task=auto",
                "--max-tasks=%d" % MOST_TASKS, "--feed=rows:0=@" + self.rows, "--batch-size=%d" % soak_model.BATCH,
                "--seed=%d" % soak_model.SEED, "--epochs=%d" % N_EPOCHS, "--checkpoint-dir=" + self.directory,
                "--save-secs=0.3", "--timeout=60", "--json"]
        self.note("join %d" % self.n_started)
        self.tasks.append(Task(self.test, self.n_started, argv))
        self.n_started += 1

    def kill_master(self):
        """Another one serves at its address, without the model."""
        began = time.monotonic()
        self.note("SIGKILL the server")
        self.masters[-1].end()
        self.masters.append(self.test.serve(int(self.target.rsplit(":", 1)[1]))[0])
        self.stops.append((began, time.monotonic() + BACK, "the server"))

    def note(self, what):
        self.events.append((time.monotonic(), what))

    def alive(self):
        return [task for task in self.tasks if task.code() is None]

    def running(self):
        return [task for task in self.alive() if not task.is_stopped and task.struck is None]

    def is_over(self):
        return any(task.code() in (0, OVER) for task in self.tasks)

    def what(self):
        return "MUSTER_SEED=%d\n%s\nthe master:\n%s" % (SEED, "\n".join(task.tell() for task in self.tasks[-12:]),
                                                       "\n".join("  " + line for line in self.masters[-1].lines[-20:]))

    def wait(self, seconds, until=lambda: False):
        """Goes on for so long, or until the job is over; TRUE if it is. Who ends without having been asked to fails."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not self.is_over() and not until():
            for task in self.tasks:
                code = task.code()
                if code is not None and task.struck is None and code not in (0, OVER):
                    self.test.fail("task %d ended by itself with %d\n%s" % (task.number, code, self.what()))
            time.sleep(0.02)
        return self.is_over()

    def check(self):
        for prefix in soak_model.listed(self.directory) - self.checked:
            told = soak_model.check_dealt(prefix)
            if told.returncode != 0 and prefix in soak_model.listed(self.directory):
                self.test.fail("%s: %s\n%s" % (prefix, told.stdout, self.what()))
            self.checked.add(prefix)

    def end(self):
        for task in self.alive():
            if task.is_stopped:
                task.process.signal(signal.SIGCONT)
        for task in self.tasks:
            code = task.process.wait(60)
            if task.struck is None:
                self.test.assertIn(code, (0, OVER), self.what())
        self.check()
        latest = os.path.join(self.directory, "model.ckpt-%d" % N_STEPS)
        self.test.assertIn(latest, soak_model.listed(self.directory), self.what())
        self.check_chiefs()
        self.watch.process.stdin.close()
        self.watch.wait(10)
        self.masters[-1].end()

    def check_chiefs(self):
        """The servers' record: each claim that was granted has a higher epoch than the one before, unless a chief that
        lost its session claimed again."""
        self.n_chiefs = 0
        for master in self.masters:
            claims = re.findall(r" (\S+) claimed '.* epoch=(\d+)", master.text())
            chiefs = [claim for claim, before in zip(claims, [None] + claims) if claim != before]
            epochs = [int(epoch) for _, epoch in chiefs]
            self.test.assertEqual(epochs, sorted(set(epochs)), self.what())
            self.n_chiefs += len(epochs)
        self.test.assertNotEqual(self.n_chiefs, 0, self.what())

    def tell_stands(self, seconds):
        """What happened before and while no step was made for so long. A task that is stopped keeps its batch until its
        lease runs out, and the job's last batches wait for it: such stands are counted apart."""
        for stood, step, until in re.findall(r"^stood (\S+) (\S+) (\S+)", self.watch.text(), re.MULTILINE):
            begin, until = float(until) - float(stood), float(until)
            stopped = ["%s since %+.2f s" % (who, at - begin) for at, ended, who in self.stops if at < until and ended > begin]
            if stopped:
                self.longest_beside_stop_s = max(self.longest_beside_stop_s, float(stood))
            else:
                self.longest_s = max(self.longest_s, float(stood))
            if float(stood) > seconds:
                near = ["%+.2f s %s" % (at - begin, what) for at, what in self.events if begin - 0.5 < at < until]
                print("no step for %s s after step %s of %d: %s; stopped: %s" % (
                    stood, step, N_STEPS, ", ".join(near) or "no event", ", ".join(stopped) or "none"), flush=True)


class ElasticSoakTest(processes.TestCase):
    def setUp(self):
        print("MUSTER_SEED=%d, %d events" % (SEED, EVENTS), flush=True)
        self.random = random.Random(SEED)
        self.events = {}

    def choose(self, job):
        """What may happen now: somebody goes on running, and no more than so many are there."""
        choices = ["join"] * 3 if len(job.alive()) < MOST_TASKS else []
        if len(job.running()) > 1:
            choices += ["SIGTERM", "SIGKILL", "SIGSTOP, SIGCONT", "SIGSTOP, SIGKILL"]
        if not TENSORFLOW:
            choices += ["SIGKILL the server"]
        return self.random.choice(choices) if choices else None

    def strike(self, job, how):
        task = self.random.choice(job.running())
        if "SIGCONT" not in how:
            task.struck = how
        for name in how.split(", "):
            job.note("%s %d" % (name, task.number))
            task.is_stopped = name == "SIGSTOP"
            task.process.signal(getattr(signal, name))
            if task.is_stopped:
                # Now and then for so long that its lease runs out.
                seconds = LEASE + 2 if LONG and self.random.random() < 0.03 else self.random.uniform(*STOPPED)
                began = time.monotonic()
                job.wait(seconds)
                job.stops.append((began, time.monotonic(), "task %d" % task.number))
        task.is_stopped = False
        if task.struck is not None:
            task.process.wait(30)

    def happen(self, job):
        how = self.choose(job)
        if how == "join":
            job.join()
        elif how == "SIGKILL the server":
            job.kill_master()
        elif how is not None:
            self.strike(job, how)
        if how is not None:
            self.events[how] = self.events.get(how, 0) + 1
        return how is not None

    def test_each_batch_is_trained_once(self):
        n_events, n_jobs, n_chiefs, n_checked, began = 0, 0, 0, 0, time.monotonic()
        longest_s, beside_stop_s = 0.0, 0.0
        while n_events < EVENTS:
            n_jobs += 1
            job = Job(self, os.path.join(self.folder(), "run"))
            while n_events < EVENTS and not job.wait(self.random.uniform(*EVERY)):
                n_events += self.happen(job)
                job.check()
            if not job.wait(SECONDS):
                self.fail("the job isn't over after %d s without an event\n%s" % (SECONDS, job.what()))
            job.end()
            n_checked += len(job.checked)
            n_chiefs += job.n_chiefs
            job.tell_stands(0.5)
            longest_s = max(longest_s, job.longest_s)
            beside_stop_s = max(beside_stop_s, job.longest_beside_stop_s)
        print("%d events in %d jobs of %d batches, %d chiefs, %d checkpoints checked; no step for %.2f s at most, %.2f s while a task was "
              "stopped or the server down; %.0f s: %s" % (n_events, n_jobs, N_STEPS, n_chiefs, n_checked, longest_s, beside_stop_s,
                                                          time.monotonic() - began, sorted(self.events.items())), flush=True)


if __name__ == "__main__":
    peer.main()
