#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The examples of Python, with Debian's PyGObject and with PyPI's."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import pythons

PATIENCE = 240
EXAMPLES = pythons.ROOT + "/examples/python/"
FIXTURES = pythons.ROOT + "/tests/fixtures/"
FILES = {"digits.meta": "digits.meta", "digits_x.npy": "images.npy", "digits_y.npy": "labels.npy"}


class Examples(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def run_script(self, python, environment, *command):
        done = subprocess.run([python, *command], env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def environment(self, name, **options):
        folder = "%s/%s" % (self.folder, name)
        os.makedirs(folder)
        return pythons.environment(folder, **options)

    def test_trains_saves_and_resumes_in_30_lines(self):
        with open(EXAMPLES + "resume.py", encoding="utf-8") as file:
            self.assertLessEqual(len(file.readlines()), 30)
        for name, to in FILES.items():
            shutil.copy(FIXTURES + name, self.folder + "/" + to)
        for name, python in pythons.pythons():
            environment = self.environment(name)
            command = (EXAMPLES + "resume.py", self.folder, "%s/run-%s" % (self.folder, name))
            first = self.run_script(python, environment, *command)
            self.assertIn("initialised", first)
            self.assertIn("run-%s/model.ckpt-1000" % name, first)
            self.assertGreater(float(re.search(r"accuracy ([\d.]+)", first).group(1)), 90)
            again = self.run_script(python, environment, *command)
            self.assertIn("resumed at step 1000", again)
            self.assertEqual(again.splitlines()[-1], first.splitlines()[-1])  # the same model

    def test_replaces_tensorflows_session_manager(self):
        if not pythons.TENSORFLOW:
            self.skipTest("needs TensorFlow, which `bazel/setup --tests` installs")
        for name, python in pythons.pythons():
            environment = self.environment(name, with_tensorflow=True)
            command = (EXAMPLES + "tensorflow1.py", "%s/run-%s" % (self.folder, name))
            self.assertIn("initialised\nstep 100, ", self.run_script(python, environment, *command))
            again = self.run_script(python, environment, *command)
            self.assertIn("resumed at step 100\nstep 200, ", again)
            self.assertIn("w [3.0, -2.0]", self.run_script(python, environment, *command))


if __name__ == "__main__":
    sys.exit(unittest.main())
