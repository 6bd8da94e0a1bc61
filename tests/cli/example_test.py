#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`muster train --example`: a first training without any file of one's own."""
import json
import os
import shlex
import shutil
import subprocess
import tempfile
import unittest

MUSTER = os.path.abspath("cli/muster")
FIXTURES = {"digits.meta": "digits.meta", "digits_x.npy": "images.npy", "digits_y.npy": "labels.npy"}
PER_EPOCH = 1797 // 32
PATIENCE = 60


class Example(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.work = directory.name
        self.program = os.path.join(self.work, "bin/muster")
        self.share = os.path.join(self.work, "share/muster/examples")
        os.makedirs(self.share)
        os.makedirs(os.path.dirname(self.program))
        shutil.copy(MUSTER, self.program)
        for name, to in FIXTURES.items():
            shutil.copy(os.path.join("tests/fixtures", name), os.path.join(self.share, to))

    def train(self, *words, program=None, **more):
        environment = {name: value for name, value in os.environ.items() if name not in ("TF_CONFIG", "MUSTER_EXAMPLES")}
        return subprocess.run([program or self.program, "train", *words], capture_output=True, text=True, timeout=PATIENCE,
                              stdin=subprocess.DEVNULL, cwd=self.work, env={**environment, **more})

    def trained(self, done):
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()][-1]

    def test_trains_what_is_installed_beside_the_command(self):
        end = self.trained(self.train("--example", "--json"))
        self.assertEqual((end["event"], end["step"]), ("trained", 20 * PER_EPOCH))
        self.assertLess(end["loss"], 0.1)
        self.assertEqual(sorted(os.listdir(self.work)), ["bin", "share"])

    def test_resumes_with_options_of_ones_own(self):
        self.assertEqual(self.trained(self.train("--example", "--checkpoint-dir=a run", "--steps=30", "--json"))["step"], 30)
        done = self.train("--example", "--checkpoint-dir=a run", "--steps", "50", "--batch-size=8", "--master", "local")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("restored a run/model.ckpt-30", done.stderr + done.stdout)
        self.assertIn("trained digits to step 50", done.stderr + done.stdout)

    def test_prints_the_command_that_does_the_same(self):
        done = self.train("--example", "--checkpoint-dir=a run", "--seed=3")
        line = [line for line in done.stderr.splitlines() if line.startswith("running ")]
        self.assertEqual(len(line), 1, done.stderr)
        words = shlex.split(line[0])[1:]
        self.assertEqual(words[:2], ["muster", "train"])
        self.assertNotIn("--example", words)
        again = self.train(*words[2:], "--overwrite")
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertIn("restored a run/model.ckpt-%d" % (20 * PER_EPOCH), again.stderr + again.stdout)

    def test_is_found_by_its_variable(self):
        elsewhere = os.path.join(self.work, "elsewhere")
        os.rename(self.share, elsewhere)
        done = self.train("--example")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("train: the example isn't installed (searched '%s'); set MUSTER_EXAMPLES" % self.share, done.stderr)
        self.trained(self.train("--example", "--json", "--steps=3", MUSTER_EXAMPLES=elsewhere))

    def test_refuses_another_model_or_data(self):
        for word in ("--meta-graph=x.meta", "--feed=x:0=1", "--feed"):
            done = self.train("--example", word)
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertIn("--example can't be combined with --meta-graph or --feed", done.stderr)

    def test_needs_no_example_for_help(self):
        shutil.rmtree(self.share)
        self.assertIn("--example", self.train("--example", "--help").stdout)


if __name__ == "__main__":
    unittest.main()
