#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A chief reads the variables through its session and saves them in the memory of another server, and every third time in a
directory: it is killed at any moment, or its master is, or the other server, whose memory may be too small; or a second run comes
that has the name of this one. What a new process restores is the last save that was reported, or the one that was under way; without
that memory, the last one that was durable at least. MUSTER_LONG=1 kills 200 times, MUSTER_SEED says when."""
import collections
import os
import random
import re
import signal
import sys
import time

sys.path.insert(0, "tests/scenarios")
import kill_saver_test
import processes
from kill_saver_test import SAVER, SECONDS, VALUES
from processes import peer

KILLS = 200 if "MUSTER_LONG" in os.environ else 20
SEED = int(os.environ.get("MUSTER_SEED") or random.SystemRandom().randrange(1 << 32))
# With the memory for their checkpoints: a large one has 32 MB, and needs the space of three.
MODELS = (("gathered", "64MiB"), ("gathered,sharded,async", "64MiB"), ("gathered,large", "256MiB"), ("gathered,large,async", "256MiB"),
          ("gathered,large", "80MiB"), ("gathered,large,sharded", "40MiB"))


class Run(kill_saver_test.Run):
    """With the server that keeps its newest checkpoints."""

    def __init__(self, directory, model, memory):
        super().__init__(directory, model)
        self.memory = memory
        self.durable = 0  # the last save that was said to be
        self.peer = self.tier = None

    def hear(self, lines):
        super().hear(lines)
        self.durable = max([self.durable] + [int(line.split()[1]) for line in lines if line.startswith("durable ")])


class KillPeerTest(processes.TestCase):
    def setUp(self):
        print("MUSTER_SEED=%d" % SEED, flush=True)
        self.random = random.Random(SEED)
        root = self.folder()
        self.runs = [Run(os.path.join(root, "run%d" % i), *model) for i, model in enumerate(MODELS)]
        self.counts = collections.Counter()

    def start_peer(self, run):
        run.peer, target = self.serve(0, "--checkpoint-memory=" + run.memory)
        run.tier = target + "/run"

    def save(self, run):
        """A chief at work, in the middle of a save, and its master; how many seconds a save takes."""
        if run.peer is None:
            self.start_peer(run)
        server, target = self.serve()
        chief = self.start(SAVER, "save", run.directory, run.model, target, str(run.saved + 1), run.tier)
        number = run.saved + self.random.randint(1, 4)
        chief.expect("saving %d" % number, SECONDS)
        begin = time.monotonic()
        chief.expect("saving %d" % (number + 1), SECONDS)
        return server, chief, time.monotonic() - begin

    def kill(self, process):
        process.signal(signal.SIGKILL)
        process.wait(SECONDS)

    # --- who is killed ---

    def the_chief(self, run, server, chief):
        self.kill(chief)

    def the_master(self, run, server, chief):
        self.kill(server)
        chief.wait(SECONDS)
        self.assertIn("failed", chief.text())

    def the_peer(self, run, server, chief):
        """The chief goes on, and saves in the directory alone."""
        self.kill(run.peer)
        run.peer = None
        begun = len([line for line in chief.lines if line.startswith("saving ")])
        least = run.saved + begun
        chief.expect_later(lambda: any(line.startswith("durable ") and int(line.split()[1]) > least for line in chief.lines), SECONDS)
        time.sleep(self.random.uniform(0, 0.1))
        self.kill(chief)

    def a_second_run_and_the_chief(self, run, server, chief):
        """The second waits until the first has gone, which saves on."""
        other = self.start(SAVER, "save", run.directory + ".other", run.model, "local", "1", run.tier)
        begun = len(chief.lines)
        chief.expect_later(lambda: len([line for line in chief.lines[begun:] if line.startswith("saved ")]) >= 3, SECONDS)
        self.assertNotIn("saving", other.text())
        self.kill(other)
        self.kill(chief)

    # --- what is left ---

    def restore(self, run, least, *tier):
        restored = self.start(SAVER, "restore", run.directory, run.model, "local", "1", *tier)
        code = restored.wait(SECONDS)
        what = "MUSTER_SEED=%d, %s, saved %d, durable %d, begun %d, tier %s:\n%s" % (
            SEED, run.model, run.saved, run.durable, run.begun, tier, restored.text())
        self.assertEqual(code, 0, what)
        self.assertNotIn("damaged", restored.text(), what)
        value, prefix = re.search(r"^restored (\d+) (.*)$", restored.text(), re.MULTILINE).groups()
        found = [number for number in range(least, run.begun + 1) if number % VALUES == int(value)]
        self.assertEqual(len(found), 1, what)
        self.assertEqual(int(prefix.rpartition("-")[2]), found[0], what)
        return found[0]

    def check(self, run):
        if run.durable > 0:
            durable = self.restore(run, run.durable)
        if run.peer is None:
            run.saved = durable
        else:
            run.saved = self.restore(run, run.saved, run.tier)
        run.begun = run.saved
        run.durable = min(run.durable, run.saved)

    def test_nothing_durable_is_lost(self):
        victims = [self.the_chief] * 4 + [self.the_master] * 2 + [self.the_peer] * 3 + [self.a_second_run_and_the_chief]
        for i in range(KILLS):
            run = self.runs[i % len(self.runs)]
            server, chief, took = self.save(run)
            time.sleep(self.random.uniform(0, 1.5 * took))
            victim = self.random.choice(victims)
            self.counts[victim.__name__] += 1
            victim(run, server, chief)
            run.hear(chief.lines)
            self.kill(server)
            self.check(run)
        print(dict(self.counts), flush=True)


if __name__ == "__main__":
    peer.main()
