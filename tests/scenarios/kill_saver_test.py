#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A chief, or the master that writes for it, is killed at any moment while it saves, at once or in the background; or it
leaves then. A new process restores the last save that was reported, or the one that was under way, whole. MUSTER_LONG=1
kills 500 times, MUSTER_SEED says when, MUSTER_MODELS="tiered …" which models. With the argument --tensorflow, TensorFlow reads every directory as well."""
import os
import random
import re
import signal
import sys
import time

sys.path.insert(0, "tests/scenarios")
import processes
from processes import peer

TENSORFLOW = "--tensorflow" in sys.argv
if TENSORFLOW:
    sys.argv.remove("--tensorflow")
    import tensorflow as tf

SAVER = os.path.abspath("tests/scenarios/killed_saver")
LONG = "MUSTER_LONG" in os.environ
KILLS = 500 if LONG else 20
SERVER_KILLS = 60 if LONG else 4
LEAVES = 50 if LONG else 4
SEED = int(os.environ.get("MUSTER_SEED") or random.SystemRandom().randrange(1 << 32))
MODELS = ("small", "tiered", "sharded", "unnumbered", "large,tiered,async", "sharded,unnumbered", "large",
          "large,sharded,unnumbered", "tiered,sharded,async", "async", "async,large,sharded")
if os.environ.get("MUSTER_MODELS"):
    MODELS = tuple(os.environ["MUSTER_MODELS"].split())
VALUES = 251
SECONDS = 60


class Run:
    """A directory, and what its chiefs have said of it."""

    def __init__(self, directory, model):
        self.directory, self.model = directory, model
        self.begun = 0  # the number of the last save that began
        self.saved = 0  # of the last one that was reported

    def with_checkpoints(self):
        """The tiers that have been saved to."""
        tiers = [self.directory + ".fast", self.directory] if "tiered" in self.model else [self.directory]
        return [tier for tier in tiers if any(name.endswith(".index") and not name.startswith(".") for name in os.listdir(tier))]

    def hear(self, lines):
        for line in lines:
            words = line.split(" ", 2)
            if words[0] in ("saving", "saved"):
                setattr(self, "begun" if words[0] == "saving" else "saved", int(words[1]))


def temporaries(run):
    """The saves of which something half written lies there: ".saving-0123abcd". An empty mark is of a chief that was killed
    before it had named its host; only its age lets another remove it."""
    return {name[:16] for name in os.listdir(run.directory)
            if name.startswith(".saving-") and os.path.getsize(os.path.join(run.directory, name)) > 0}


class KillSaverTest(processes.TestCase):
    def setUp(self):
        print("MUSTER_SEED=%d" % SEED, flush=True)
        self.random = random.Random(SEED)
        root = self.folder()
        self.runs = [Run(os.path.join(root, model), model) for model in MODELS]

    def save(self, run, target):
        """A chief at work, in the middle of a save; how many seconds one takes."""
        chief = self.start(SAVER, "save", run.directory, run.model, target, str(run.saved + 1))
        chief.expect("saving %d" % (run.saved + 1), SECONDS)
        begin = time.monotonic()
        chief.expect("saved %d" % (run.saved + 1), SECONDS)
        took = time.monotonic() - begin
        chief.expect("saving %d" % (run.saved + 2), SECONDS)
        return chief, took

    def end(self, run, process, chief, took):
        """Kills a process at some moment of a save or two; then the chief has ended as well."""
        time.sleep(self.random.uniform(0, 1.5 * took))
        process.signal(signal.SIGKILL)
        process.wait(SECONDS)
        chief.wait(SECONDS)
        run.hear(chief.lines)

    def check(self, run):
        restored = self.start(SAVER, "restore", run.directory, run.model, "local")
        code = restored.wait(SECONDS)
        what = "MUSTER_SEED=%d, %s, saved %d, begun %d, %s:\n%s" % (
            SEED, run.model, run.saved, run.begun, sorted(os.listdir(run.directory)), restored.text())
        self.assertEqual(code, 0, what)
        self.assertNotIn("damaged", restored.text(), what)
        self.assertNotIn("passed over", restored.text(), what)
        for directory in run.with_checkpoints():
            peer.muster("checkpoint", "verify", directory)
        value, prefix = re.search(r"^restored (\d+) (.*)$", restored.text(), re.MULTILINE).groups()
        self.assertIn(int(value), [number % VALUES for number in range(run.saved, run.begun + 1)], what)
        if "unnumbered" not in run.model:
            self.assertEqual(int(prefix.rsplit("-")[-1]) % VALUES, int(value), what)
        if TENSORFLOW and "tiered" not in run.model:
            self.check_with_tensorflow(run, prefix, int(value), what)
        run.saved = next(number for number in range(run.saved, run.begun + 1) if number % VALUES == int(value))

    def check_with_tensorflow(self, run, prefix, value, what):
        self.assertEqual(tf.train.latest_checkpoint(run.directory), prefix, what)
        reader = tf.train.load_checkpoint(prefix)
        for name in ("v", "w", "p"):
            self.assertEqual(set(reader.get_tensor(name).tobytes()), {value}, what)

    def test_a_chief_is_killed(self):
        for i in range(KILLS):
            run = self.runs[i % len(self.runs)]
            chief, took = self.save(run, "local")
            self.end(run, chief, chief, took)
            self.check(run)
            # The next chief that saves takes away what the one before has left.
            self.assertLessEqual(len(temporaries(run)), 1, sorted(os.listdir(run.directory)))

    def test_the_master_is_killed(self):
        for i in range(SERVER_KILLS):
            run = self.runs[-1 - i % len(self.runs)]
            server, target = self.serve()
            chief, took = self.save(run, target)
            self.end(run, server, chief, took)
            self.assertIn("failed", chief.text())
            self.assertFalse([name for name in os.listdir(run.directory) if name.startswith(".saving-")],
                             "left by a chief that lives on: %s" % chief.text())
            self.check(run)

    def test_a_chief_leaves_while_it_saves_in_the_background(self):
        """B001.54, B001.76: a thread that writes keeps no process alive, and what it has begun harms nothing."""
        for i in range(LEAVES):
            run = self.runs[-1 - i % 2]
            # What a thread in the middle of its work holds at exit would be told as leaked.
            unchecked = "ASAN_OPTIONS=%s:detect_leaks=0" % os.environ.get("ASAN_OPTIONS", "")
            chief = self.start("/usr/bin/env", unchecked, SAVER, "leave", run.directory, run.model, "local",
                               str(run.saved + 1))
            code = chief.wait(SECONDS)
            run.hear(chief.lines)
            self.assertEqual((code, run.begun), (0, run.saved + 1), chief.text())
            self.check(run)


if __name__ == "__main__":
    peer.main()
