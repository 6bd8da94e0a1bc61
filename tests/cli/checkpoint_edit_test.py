#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""muster checkpoint copy, merge, extract and rename: what a person and a program read, how each exits, and what is left
after a signal; in directories and in an object store. tests/tensorflow/edit_test.py has TensorFlow read the results."""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, "tests/cli")
import place
from place import LIMIT_S, run

GOLDEN = "tests/checkpoint/testdata"
WRITER = "tests/cli/write_checkpoints"
DONE, TOO_LATE, BAD_INPUT = 0, 1, 3


def json_of(*words):
    code, out, err = run(*words, "--json")
    assert (code, err) == (DONE, ""), (code, err)
    return [json.loads(line) for line in out.splitlines()]


class EditTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.directory = folder.name
        place.use(self.directory)
        os.mkdir(self.path("run"))
        for step in (9, 10):
            for file in os.listdir(GOLDEN):
                if file.startswith("model-42."):
                    shutil.copy(os.path.join(GOLDEN, file), self.path("run", "m-%d" % step) + file[len("model-42"):])
        with open(self.path("run", "checkpoint"), "w", encoding="utf-8") as file:
            file.write('model_checkpoint_path: "m-10"\nall_model_checkpoint_paths: "m-9"\n'
                       'all_model_checkpoint_paths: "m-10"\n')

    def path(self, *names):
        return os.path.join(self.directory, *names)

    def names(self):
        """Of the tensors in run/m-10."""
        return [json.loads(line)["name"] for line in run("show", self.path("run"), "--json")[1].splitlines()]

    # copy

    def test_copy_takes_the_latest_and_says_so(self):
        code, out, err = run("copy", self.path("run"), self.path("to"))
        self.assertEqual((code, err), (DONE, ""))
        size = json.loads(run("list", self.path("to"), "--json")[1])["bytes"]
        self.assertGreater(size, 48)  # of all files; its data has 48
        self.assertRegex(out, "^copied %s, latest, %d B in [^,]*\n$" % (self.path("to", "m-10"), size))
        self.assertEqual(run("latest", self.path("to"))[1], self.path("to", "m-10") + "\n")
        self.assertEqual(run("verify", self.path("to"))[0], DONE)
        self.assertEqual(run("copy", self.path("run"), self.path("to"))[1],
                         self.path("to", "m-10") + " is already complete, latest\n")

    def test_copy_all_begins_with_the_latest(self):
        rows = json_of("copy", "--all", self.path("run"), self.path("to"))
        seconds = [row.pop("seconds") for row in rows]
        self.assertTrue(all(second >= 0 for second in seconds))
        self.assertEqual(rows, [
            {"copied": self.path("to", "m-%d" % step), "from": self.path("run", "m-%d" % step), "step": step,
             "latest": step == 10, "was_there": False, "kept_bytes": 0, "tensors": 2, "bytes": 48} for step in (10, 9)])
        with open(self.path("to", "checkpoint"), encoding="utf-8") as file:
            lines = [line for line in file.read().splitlines() if "paths" in line or "_path:" in line]
        self.assertEqual(lines, ['model_checkpoint_path: "m-10"', 'all_model_checkpoint_paths: "m-9"',
                                 'all_model_checkpoint_paths: "m-10"'])

    def test_copy_leaves_a_jobs_latest_unless_told(self):
        os.mkdir(self.path("job"))
        for file in os.listdir(self.path("run")):
            if file.startswith("m-9."):
                shutil.copy(self.path("run", file), self.path("job"))
        with open(self.path("job", "checkpoint"), "w", encoding="utf-8") as file:
            file.write('model_checkpoint_path: "m-9"\n')
        self.assertFalse(json_of("copy", self.path("run"), self.path("job"))[0]["latest"])
        self.assertEqual(run("latest", self.path("job"))[1], self.path("job", "m-9") + "\n")
        self.assertTrue(json_of("copy", "--latest", self.path("run"), self.path("job"))[0]["latest"])
        self.assertEqual(run("latest", self.path("job"))[1], self.path("job", "m-10") + "\n")

    @place.local_only
    def test_copy_needs_a_place(self):
        code, _, err = run("copy", self.path("run"), "")
        self.assertEqual((code, err), (BAD_INPUT, "muster: invalid directory TO: none was given; use '.' for the working directory\n"))

    def test_copy_all_goes_on_past_damage(self):
        with open(self.path("run", "m-10.data-00000-of-00001"), "r+b") as file:
            file.write(b"\xff")
        code, out, err = run("copy", "--all", self.path("run"), self.path("to"))
        self.assertEqual(code, BAD_INPUT)
        self.assertIn("m-10", err)
        self.assertIn("is damaged: its checksum doesn't match", err)
        self.assertIn("copied " + self.path("to", "m-9"), out)
        self.assertEqual(sorted(name for name in os.listdir(self.path("to")) if name.endswith(".index")), ["m-9.index"])

    def old(self):
        """A directory of V1 checkpoints and of one of today."""
        os.mkdir(self.path("old"))
        for name, to in (("v1", "m-7"), ("v1_parts-00000-of-00002", "m-8-00000-of-00002"), ("v1_parts-00001-of-00002", "m-8-00001-of-00002"),
                         ("model-42.index", "m-9.index"), ("model-42.data-00000-of-00001", "m-9.data-00000-of-00001")):
            shutil.copy(os.path.join(GOLDEN, name), self.path("old", to))
        for name in ("m-7.meta", "m-8.meta"):
            with open(self.path("old", name), "w", encoding="utf-8") as file:
                file.write("a graph")
        return self.path("old")

    def test_copy_all_converts_old_ones_too(self):
        rows = json_of("copy", "--all", self.old(), self.path("to"))
        self.assertEqual([row["copied"] for row in rows], [self.path("to", "m-%d" % step) for step in (9, 8, 7)])

    def test_copy_of_one_file_of_several_is_of_all(self):
        for i in range(2):
            place = self.path("to-%d" % i)
            row, = json_of("copy", os.path.join(self.path("old") if i else self.old(), "m-8-0000%d-of-00002" % i), place)
            self.assertEqual(row["copied"], os.path.join(place, "m-8"))
            self.assertEqual(run("verify", row["copied"])[0], DONE)
            self.assertEqual(row["from"], self.path("old", "m-8-?????-of-00002"))

    def test_a_damaged_old_one_is_said_to_be(self):
        directory = self.old()
        for name in ("m-7", "m-8-00001-of-00002"):
            path = os.path.join(directory, name)
            os.truncate(path, os.path.getsize(path) - 1)
        for prefix in ("m-7", "m-8-?????-of-00002"):
            code, out, err = run("verify", os.path.join(directory, prefix))
            self.assertEqual((code, err), (1, ""))
            self.assertIn("damaged", out)
        code, out, _ = run("verify", directory)
        self.assertEqual(code, 1)
        self.assertIn("3 checkpoints: 1 intact, 2 damaged", out)
        os.remove(os.path.join(directory, "m-8-00000-of-00002"))
        self.assertIn("3 checkpoints: 1 intact, 2 damaged", run("verify", directory)[1])

    @place.local_only
    def test_copy_all_copies_the_latest_once_however_it_is_named(self):
        with open(self.path("run", "checkpoint"), "w", encoding="utf-8") as file:
            file.write('model_checkpoint_path: "./m-10"\nall_model_checkpoint_paths: "./m-10"\n')
        self.assertEqual([row["step"] for row in json_of("copy", "--all", self.path("run"), self.path("to"))], [10, 9])

    def test_copy_ends_at_its_timeout(self):
        code, _, err = run("copy", self.path("run"), self.path("to"), "--timeout=0")
        self.assertEqual(code, TOO_LATE)
        self.assertRegex(err, "not done in time|before the deadline")  # what a store says
        self.assertFalse(os.path.exists(self.path("to")))

    # merge

    def test_merge(self):
        row, = json_of("merge", self.path("mean"), self.path("run", "m-9"), self.path("run"))
        self.assertEqual((row["merged"], row["tensors"], row["bytes"]), (self.path("mean"), 2, 48))
        self.assertEqual(row["from"], [self.path("run", "m-9"), self.path("run", "m-10")])
        self.assertEqual(run("diff", self.path("mean"), self.path("run"))[0], DONE)
        code, _, err = run("merge", self.path("mean"), self.path("run"), self.path("run"))
        self.assertEqual(code, BAD_INPUT)
        self.assertIn("'%s' exists" % self.path("mean"), err)
        self.assertEqual(run("merge", self.path("mean"), self.path("run"), "--replace")[0], DONE)
        self.assertEqual(run("merge", self.path("mean"))[0], BAD_INPUT)

    def test_merge_of_unlike_ones_names_the_difference(self):
        code, _, err = run("merge", self.path("mean"), self.path("run"), GOLDEN + "/dtypes")
        self.assertEqual(code, BAD_INPUT)
        self.assertIn(" has no tensor '", err)
        self.assertFalse(os.path.exists(self.path("mean.index")))

    # extract

    def test_extract(self):
        name = self.names()[0]
        code, out, _ = run("extract", self.path("run"), "--variables=" + name, "--checkpoint=" + self.path("small"))
        self.assertEqual(code, DONE)
        self.assertTrue(out.startswith("extracted %s, 1 tensor, " % self.path("small")), out)
        self.assertIn(": 1 tensor, ", run("show", self.path("small"))[1])
        self.assertEqual(run("extract", self.path("run"), "--variables=*", "--to=" + self.path("npy"))[0], DONE)
        self.assertEqual(sorted(os.listdir(self.path("npy"))), sorted(name + ".npy" for name in self.names()))

    def test_extract_needs_what_and_where(self):
        for words, why in ((("--to=x",), "needs --variables"), (("--variables=a",), "either --to=DIR or --checkpoint=OUT"),
                           (("--variables=a", "--to=x", "--checkpoint=y"), "either"),
                           (("--variables=nothing", "--to=" + self.path("x")), "matches 'nothing'")):
            code, _, err = run("extract", self.path("run"), *words)
            self.assertEqual(code, BAD_INPUT)
            self.assertIn(why, err)

    # rename

    def test_rename_by_words_and_by_a_file(self):
        first, second = self.names()
        with open(self.path("map"), "w", encoding="utf-8") as file:
            file.write("%s=b\n\n" % second)
        code, _, err = run("rename", self.path("run"), self.path("renamed"), "--map=%s=a" % first,
                           "--map-file=" + self.path("map"))
        self.assertEqual((code, err), (DONE, ""))
        rows = run("show", self.path("renamed"), "--json")[1].splitlines()
        self.assertEqual([json.loads(row)["name"] for row in rows], ["a", "b"])
        for words in ((), ("--map=a",), ("--map=nothing=b",), ("--map=%s=%s" % (first, second),)):
            self.assertEqual(run("rename", self.path("run"), self.path("other"), *words)[0], BAD_INPUT, words)
        self.assertFalse(os.path.exists(self.path("other.index")))


class SignalTest(unittest.TestCase):
    """A signal ends work that is under way by that signal, with nothing left."""

    def interrupted(self, here, *words):
        """The exit code, with the signal sent when the first data are there."""
        process = place.start(*words)
        until = time.monotonic() + LIMIT_S
        while process.poll() is None and time.monotonic() < until:
            if here.is_writing("to"):
                process.send_signal(signal.SIGINT)
                break
        return process.wait(timeout=LIMIT_S)

    def test_ctrl_c(self):
        with tempfile.TemporaryDirectory() as directory:
            subprocess.run([WRITER, directory, "huge"], check=True, timeout=LIMIT_S)
            here = place.use(directory)
            huge, to = os.path.join(directory, "huge"), os.path.join(directory, "to")
            out = os.path.join(to, "huge")
            os.mkdir(to)
            for words in (("copy", huge, to), ("merge", out, huge, huge), ("rename", huge, out, "--map=huge=x"),
                          ("extract", huge, "--variables=*", "--checkpoint=" + out)):
                for _ in range(20):  # it may have ended just before
                    code = self.interrupted(here, *words)
                    if code != DONE:
                        break
                    here.receive()
                    shutil.rmtree(to)
                    os.mkdir(to)
                self.assertEqual(code, -signal.SIGINT, words)
                self.assertEqual(here.left("to"), [], words)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
