#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whose the checkpoints of a directory are: what `muster train` resumes from, names, refuses and never touches."""
import json
import os
import shutil
import subprocess
import tempfile
import threading
import unittest

MUSTER = os.path.abspath("cli/muster")
LOCAL = [
    "--meta-graph=tests/fixtures/digits.meta", "--master=local", "--feed=x:0=@tests/fixtures/digits_x.npy",
    "--feed=y:0=@tests/fixtures/digits_y.npy"
]
PATIENCE = 60


def muster(*words):
    own = {name: value for name, value in os.environ.items() if name != "TF_CONFIG"}
    done = subprocess.run([MUSTER, *words], capture_output=True, text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL, env=own)
    return done.returncode, done.stdout + done.stderr


class Case(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.all = tempfile.TemporaryDirectory()
        cls.first = os.path.join(cls.all.name, "first")
        code, said = cls.train(cls.first, 40)
        assert code == 0, said

    @classmethod
    def tearDownClass(cls):
        cls.all.cleanup()

    @staticmethod
    def train(directory, steps, *words):
        return muster("train", *LOCAL, "--steps=%d" % steps, "--checkpoint-dir=" + directory, "--save-every=10", "--save-blocking",
                      *words)

    def copy(self, *without):
        directory = tempfile.mkdtemp(dir=self.all.name)
        shutil.copytree(self.first, directory, dirs_exist_ok=True)
        for name in without:
            os.remove(os.path.join(directory, name))
        return directory

    def files(self, directory, step=40):
        """The bytes of a checkpoint's files."""
        found = {}
        for name in os.listdir(directory):
            if name.startswith("model.ckpt-%d." % step):
                with open(os.path.join(directory, name), "rb") as file:
                    found[name] = file.read()
        return found

    def steps(self, directory):
        return sorted(int(name[:-6].rsplit("-", 1)[1]) for name in os.listdir(directory)
                      if name.startswith("model.ckpt-") and name.endswith(".index") and ".bad" not in name)


class Files(Case):

    def test_resumes_by_the_side_file_where_the_state_file_is_missing(self):
        directory = self.copy("checkpoint")
        before = self.files(directory)
        code, said = self.train(directory, 60, "--keep=-1")
        self.assertEqual(code, 0, said)
        self.assertIn("at step 40", said)
        self.assertEqual(self.files(directory), before)
        self.assertEqual(self.steps(directory)[-2:], [50, 60])

    def test_trims_only_what_it_would_resume_from(self):
        directory = self.copy("checkpoint")
        code, said = self.train(directory, 60, "--keep=2")
        self.assertEqual(code, 0, said)
        self.assertEqual(self.steps(directory), [50, 60])

    def test_starts_nothing_anew_beside_checkpoints_that_nothing_names(self):
        directory = self.copy("checkpoint", "checkpoint.muster")
        before = self.files(directory)
        code, said = self.train(directory, 60, "--keep=2")
        self.assertNotEqual(code, 0, said)
        self.assertIn("'model.ckpt-40'", said)
        self.assertIn("--from-files", said)
        self.assertEqual(self.files(directory), before)
        self.assertEqual(self.steps(directory), [0, 10, 20, 30, 40])
        code, said = muster("prepare", LOCAL[0], "--master=local", "--checkpoint-dir=" + directory)
        self.assertEqual(code, 0, said)
        self.assertIn("'model.ckpt-40'", said)

    def test_resumes_from_the_files_on_request(self):
        directory = self.copy("checkpoint", "checkpoint.muster")
        code, said = self.train(directory, 60, "--keep=2", "--from-files")
        self.assertEqual(code, 0, said)
        self.assertIn("at step 40", said)
        # what nothing named, and the job didn't take, stays whatever the rules say
        self.assertEqual(self.steps(directory), [0, 10, 20, 30, 50, 60])

    def test_resumes_from_the_files_where_the_state_file_is_damaged(self):
        directory = self.copy()
        with open(os.path.join(directory, "checkpoint"), "w", encoding="utf-8") as file:
            file.write('model_checkpoint_path: "mod')
        code, said = self.train(directory, 60)
        self.assertNotEqual(code, 0, said)
        self.assertIn("--from-files", said)
        self.assertNotIn("remove it", said)
        code, said = self.train(directory, 60, "--from-files")
        self.assertEqual(code, 0, said)
        self.assertIn("at step 40", said)
        code, said = self.train(directory, 70)
        self.assertEqual(code, 0, said)
        self.assertIn("at step 60", said)

    def test_leaves_other_files_alone_and_names_them(self):
        directory = tempfile.mkdtemp(dir=self.all.name)
        for name in self.files(self.first):
            shutil.copy(os.path.join(self.first, name), os.path.join(directory, name.replace("model.ckpt-40", "resnet")))
        code, said = self.train(directory, 60, "--keep=2")
        self.assertEqual(code, 0, said)
        self.assertIn("'resnet'", said)
        self.assertIn("resnet.index", os.listdir(directory))

    def test_sets_aside_what_has_the_name_of_a_save(self):
        directory = self.copy()
        before = self.files(directory)
        for name in before:
            shutil.copy(os.path.join(directory, name), os.path.join(directory, name.replace("-40.", "-60.")))
        code, said = self.train(directory, 70)
        self.assertEqual(code, 0, said)
        self.assertIn("model.ckpt-60.bad", said)
        aside = self.files(directory, 60)
        for name, content in before.items():
            self.assertEqual(aside[name.replace("-40.", "-60.bad.")], content)


class Copies(Case):
    """Of another run's checkpoints."""

    def setUp(self):
        self.other = os.path.join(self.all.name, "other")
        code, said = self.train(self.other, 50, "--seed=7")
        self.assertEqual(code, 0, said)
        self.directory = self.copy()
        code, said = muster("checkpoint", "copy", self.other, self.directory)
        self.assertEqual(code, 0, said)

    def damage(self, step):
        with open(os.path.join(self.directory, "model.ckpt-%d.data-00000-of-00001" % step), "r+b") as file:
            file.truncate(100)

    def test_are_no_substitute_while_the_job_has_its_own(self):
        self.damage(40)
        code, said = self.train(self.directory, 60)
        self.assertEqual(code, 0, said)
        self.assertIn("model.ckpt-40.bad", said)
        self.assertIn("at step 30", said)

    def test_are_none_after_a_save_of_a_job_that_ran_meanwhile(self):
        shutil.copy(os.path.join(self.first, "checkpoint"), self.directory)
        code, said = self.train(self.directory, 45, "--keep=2")
        self.assertEqual(code, 0, said)
        self.damage(45)
        code, said = self.train(self.directory, 48, "--keep=2")
        self.assertEqual(code, 0, said)
        self.assertIn("at step 40", said)
        self.assertEqual(self.files(self.directory, 50), self.files(self.other, 50))

    def test_are_named_where_nothing_else_is_left(self):
        for step in self.steps(self.first):
            self.damage(step)
        code, said = self.train(self.directory, 60)
        self.assertEqual(code, 0, said)
        self.assertIn("at step 50", said)
        self.assertIn("model.ckpt-50' is a copy, and not known to be of this job's runs", said)


class TwoJobs(Case):
    """Each with a master of its own, in one directory."""

    def start(self, directory):
        """A job that goes on until it is ended, once it has saved."""
        own = {name: value for name, value in os.environ.items() if name != "TF_CONFIG"}
        process = subprocess.Popen(
            [MUSTER, "train", *LOCAL, "--steps=1000000000", "--checkpoint-dir=" + directory, "--save-every=10", "--json"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=own)
        watchdog = threading.Timer(PATIENCE, process.kill)
        watchdog.start()
        self.addCleanup(watchdog.cancel)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertTrue(any('"saved"' in line for line in process.stdout))
        return process

    def test_the_second_is_refused_while_the_first_lives(self):
        directory = os.path.join(self.all.name, "two")
        first = self.start(directory)
        code, said = self.train(directory, 10)
        self.assertNotEqual(code, 0, said)
        self.assertIn("is in use", said)
        self.assertIn(":%d " % first.pid, said)
        self.assertIsNone(first.poll())

    def test_the_next_goes_on_after_one_that_was_killed(self):
        directory = os.path.join(self.all.name, "killed")
        first = self.start(directory)
        first.kill()
        first.wait()
        self.start(directory)


class OtherPlaces(Case):

    def resumes(self, path):
        directory = self.copy()
        with open(os.path.join(directory, "checkpoint"), "w", encoding="utf-8") as file:
            file.write("model_checkpoint_path: %s\nall_model_checkpoint_paths: %s\n" % (json.dumps(path), json.dumps(path)))
        code, said = self.train(directory, 50)
        with self.subTest(path=path):
            self.assertEqual(code, 0, said)
            self.assertIn("at step 40", said)
        code, said = muster("checkpoint", "latest", directory)
        self.assertEqual((code, said.strip()), (0, os.path.join(directory, "model.ckpt-50")))

    def test_find_a_checkpoint_by_its_name(self):
        for place in ("/elsewhere/", "gs://bucket/run/", "hdfs://host:9000/run/", "file:///elsewhere/", "s3://bucket/run/", "C:\\run\\",
                      "c:/run/", "\\\\host\\run\\"):
            self.resumes(place + "model.ckpt-40")

    def test_without_it_name_the_way_out(self):
        directory = self.copy("checkpoint.muster")
        with open(os.path.join(directory, "checkpoint"), "w", encoding="utf-8") as file:
            file.write('model_checkpoint_path: "gs://bucket/run/model.ckpt-90"\n')
        code, said = self.train(directory, 50)
        self.assertNotEqual(code, 0, said)
        self.assertIn("--from-files", said)
        code, said = self.train(directory, 50, "--from-files")
        self.assertEqual(code, 0, said)
        self.assertIn("at step 40", said)


if __name__ == "__main__":
    unittest.main()
