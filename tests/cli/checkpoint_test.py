#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""muster checkpoint, on TensorFlow's recorded checkpoints and on muster's own: what a person reads, what a program reads,
and how each verb exits; in directories and in an object store."""
import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

sys.path.insert(0, "tests/cli")
import place
from place import LIMIT_S, run

GOLDEN = "tests/checkpoint/testdata"
WRITER = "tests/cli/write_checkpoints"
DONE, NO, BAD_INPUT = 0, 1, 3
SUFFIX = "/.ATTRIBUTES/VARIABLE_VALUE"


def lines_of_json(*words):
    code, out, err = run(*words, "--json")
    assert err == "", err
    return code, [json.loads(line) for line in out.split("\n")[:-1]]


@contextlib.contextmanager
def being_read(prefix):
    with open(prefix + ".index", "rb") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        yield


class CheckpointTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.directory = folder.name
        place.use(self.directory)

    def path(self, *names):
        return os.path.join(self.directory, *names)

    def write(self):
        subprocess.run([WRITER, self.directory], check=True, timeout=LIMIT_S)

    def copy(self, name, *to):
        """A recorded checkpoint under another name."""
        for file in os.listdir(GOLDEN):
            if file.startswith(name + "."):
                shutil.copy(os.path.join(GOLDEN, file), self.path(*to) + file[len(name):])
        return self.path(*to)

    def copies(self, steps, hour=3600):
        """A directory of them, an hour between each, the last an hour ago."""
        now = time.time()
        for i, step in enumerate(steps):
            prefix = self.copy("model-42", "m-%d" % step)
            when = now - hour * (len(steps) - i)
            os.utime(prefix + ".index", (when, when))
        self.state(steps)

    def state(self, steps):
        with open(self.path("checkpoint"), "w", encoding="utf-8") as file:
            file.write('model_checkpoint_path: "m-%d"\n' % steps[-1])
            for step in steps:
                file.write('all_model_checkpoint_paths: "m-%d"\n' % step)

    def there(self):
        return sorted(int(name[2:-6]) for name in os.listdir(self.directory)
                      if name.startswith("m-") and name.endswith(".index"))

    def damage(self, prefix, shard="00000-of-00001"):
        with open("%s.data-%s" % (prefix, shard), "r+b") as file:
            byte = file.read(1)[0]
            file.seek(0)
            file.write(bytes([byte ^ 1]))

    # list

    def test_list_says_what_lengths_alone_show(self):
        self.copies([9, 10, 11])
        os.truncate(self.path("m-10.data-00000-of-00001"), 40)
        self.damage(self.path("m-9"))  # only reading it would tell
        code, out, _ = run("list", self.directory)
        self.assertEqual(code, DONE)
        head, *rows = [line.split(None, 6) for line in out.splitlines()]
        self.assertEqual(head, ["prefix", "when", "size", "shards", "kept", "state"])
        self.assertEqual([row[0] for row in rows], [self.path("m-%d" % step) for step in (11, 10, 9)])
        self.assertIn("latest, good", out.splitlines()[1])
        self.assertIn("1h00m ago", out.splitlines()[1])
        self.assertIn("damaged: The data file 'm-10.data-00000-of-00001' is truncated: 8 B of 48 B are missing", out.splitlines()[2])
        self.assertTrue(out.splitlines()[3].endswith("  good"), out)

    @place.local_only
    def test_list_finds_the_latest_however_the_directory_is_written(self):
        self.copies([9, 10])
        os.symlink(self.directory, self.path("link"))
        for named in self.path("m-10"), "./m-10", self.path("link", "m-10"):
            with open(self.path("checkpoint"), "w", encoding="utf-8") as file:
                file.write('model_checkpoint_path: "%s"\n' % named)
            for directory in self.directory, os.path.relpath(self.directory), self.path("link"):
                with self.subTest(named=named, directory=directory):
                    rows = lines_of_json("list", directory)[1]
                    self.assertEqual([(row["step"], row["latest"]) for row in rows], [(10, True), (9, False)])

    @place.local_only
    def test_list_passes_over_a_link_to_itself(self):
        self.copies([9, 10])
        os.symlink("x.index", self.path("x.index"))
        self.assertEqual([row["step"] for row in lines_of_json("list", self.directory)[1]], [10, 9])

    @place.local_only
    def test_of_another_file_says_what_it_is_not(self):
        with open(self.path("m.weights.h5"), "w", encoding="utf-8") as file:
            file.write("HDF")
        for verb in "show", "latest", "verify":
            code, _, err = run(verb, self.path("m.weights.h5"))
            self.assertEqual((code, err), (BAD_INPUT, "muster: '%s' is neither a checkpoint nor a directory of checkpoints\n" %
                                           self.path("m.weights.h5")))

    def test_list_verify_reads_them(self):
        self.copies([9, 10])
        self.damage(self.path("m-9"))
        _, rows = lines_of_json("list", self.directory, "--verify")
        self.assertEqual([(row["step"], row["state"], row["latest"]) for row in rows],
                         [(10, "intact", True), (9, "damaged", False)])
        self.assertIn("'step'", rows[1]["damage"])
        self.assertEqual(rows[0]["bytes"], 48 + 229)
        self.assertEqual((rows[0]["tensors"], rows[0]["shards"]), (2, 1))

    def test_list_names_each_as_the_other_commands_take_it(self):
        self.copies([9])
        self.copy("shards", "final")
        self.copy("model-42", "m-3.bad")
        code, out, _ = run("list", self.directory)
        self.assertEqual(code, DONE)
        rows = [line.split() for line in out.splitlines()]
        self.assertEqual([row[0] for row in rows[1:]], [self.path(name) for name in ("m-9", "m-3.bad", "final")])
        for row in rows[1:]:
            self.assertEqual(run("show", row[0])[0], DONE)
        self.assertTrue(out.splitlines()[2].endswith("set aside"), out)

    def test_verify_names_what_was_set_aside(self):
        self.copies([9])
        self.copy("model-42", "m-3.bad")
        self.damage(self.path("m-3.bad"))
        code, out, _ = run("verify", self.directory)
        self.assertEqual(code, DONE, out)
        self.assertRegex(out, r"m-3\.bad +set aside  unknown why\n1 checkpoint: 1 intact, 0 damaged; 1 set aside\n")
        self.assertEqual([row["state"] for row in lines_of_json("verify", self.directory)[1]], ["intact", "set aside"])

    def test_list_reports_what_the_saver_noted(self):
        self.write()
        self.copy("model-42", "m-0.bad")
        _, rows = lines_of_json("list", self.directory)
        after, = [row for row in rows if row["prefix"].endswith("/after")]
        self.assertEqual((after["state"], after["step"], after["time"]), ("verified", 6, 1600000000.0))
        code, out, _ = run("list", self.directory)
        self.assertEqual(code, DONE)
        self.assertIn("  set aside: it died three times\n", out)
        self.assertIn(", saved by muster\n", run("show", self.path("after"))[1])
        with open(self.path("checkpoint.muster"), "a", encoding="utf-8") as file:
            file.write("x")
        code, out, err = run("list", self.directory)
        self.assertEqual(code, DONE)
        self.assertIn("muster: warning: ", err)
        self.assertIn("checkpoint.muster", err)

    def test_list_of_an_empty_directory_and_of_none(self):
        self.assertEqual(run("list", self.directory), (DONE, "no checkpoints in %s\n" % self.directory, ""))
        self.assertEqual(run("list", self.path("nowhere"))[0], DONE if place.on_s3 else BAD_INPUT)  # stores have no directories

    # latest

    def test_latest(self):
        self.copies([9, 10])
        self.assertEqual(run("latest", self.directory), (DONE, self.path("m-10") + "\n", ""))
        self.assertEqual(lines_of_json("latest", self.directory), (DONE, [{"latest": self.path("m-10"), "step": 10}]))
        os.unlink(self.path("checkpoint"))
        code, _, err = run("latest", self.directory)
        self.assertEqual(code, BAD_INPUT)
        self.assertIn("no checkpoint in '", err)

    # show

    def test_show_lists_tensors_and_slices(self):
        code, out, _ = run("show", GOLDEN + "/slices")
        self.assertEqual(code, DONE)
        head, *rows = out.splitlines()
        self.assertTrue(head.startswith(GOLDEN + "/slices: 2 tensors, 1.5 KB, 1 shard, "), head)
        self.assertEqual(rows, [
            "name            dtype  shape    size    shard",
            "oddÿ name       int16  [200,3]  1.2 KB  3 slices",
            "whole by parts  int16  [2,3]    12 B    0",
        ])
        _, rows = lines_of_json("show", GOLDEN + "/slices")
        self.assertEqual(rows[0]["slices"], [{"slice": "0,70:-", "shard": 0}, {"slice": "70,130:0,1", "shard": 0},
                                             {"slice": "70,130:1,2", "shard": 0}])
        self.assertEqual(rows[1], {"name": "whole by parts", "dtype": "int16", "shape": [2, 3], "sliced": False,
                                   "bytes": 12, "shard": 0})

    def test_show_takes_what_a_person_gives(self):
        self.copies([9, 10])
        for place in (self.path("m-10"), self.path("m-10.index"), self.path("m-10.data-00000-of-00001"), self.directory):
            code, out, _ = run("show", place)
            self.assertEqual(code, DONE)
            self.assertTrue(out.startswith(self.path("m-10") + ": 2 tensors, 277 B, 1 shard, step 10, 1h00m ago\n"), out)
        code, _, err = run("show", self.path("m-11"))
        self.assertEqual(code, BAD_INPUT)
        self.assertIn("checkpoint '%s' not found" % self.path("m-11"), err)

    def test_show_of_objects_has_readable_names(self):
        code, out, _ = run("show", GOLDEN + "/objects-1")
        self.assertEqual(code, DONE)
        self.assertIn(": 11 tensors, ", out)
        self.assertIn(", saved by TensorFlow as objects\n", out)
        self.assertNotIn("_CHECKPOINTABLE_OBJECT_GRAPH", out)
        self.assertNotIn(".ATTRIBUTES", out)
        rows = {line.split()[0]: line for line in out.splitlines()}
        self.assertEqual(rows["net/first/kernel"].split(), ["net/first/kernel", "float", "[3,4]", "48", "B", "0"])
        self.assertEqual(rows["net/table"].split()[-1], "words")
        self.assertIn("net/odd/a/b.c", rows)
        self.assertIn("optimizer/momentum/net/first/kernel", rows)
        _, rows = lines_of_json("show", GOLDEN + "/objects-1")
        self.assertIn({"name": "net/table", "key": "net/table" + SUFFIX, "path": "net/table", "full_name": "words",
                       "dtype": "string", "shape": [2], "sliced": False, "bytes": 8, "shard": 0}, rows)

    def test_show_of_a_saved_model(self):
        code, out, _ = run("show", GOLDEN + "/saved_model")
        self.assertEqual(code, DONE)
        self.assertTrue(out.startswith(GOLDEN + "/saved_model/variables/variables: "), out)
        code, out, _ = run("show", GOLDEN + "/saved_model", "layers/0/kernel")
        self.assertEqual(out, "first/kernel  float [3,4], 48 B, shard 0\n"
                              "  min -0.5, max 10.5, mean 5, std 3.45205; no zeros, no NaN, no Inf\n"
                              "  [[-0.5,  0.5,  1.5,  2.5],\n   [ 3.5,  4.5,  5.5,  6.5],\n   [ 7.5,  8.5,  9.5, 10.5]]\n")

    def test_show_tensor_by_any_of_its_names(self):
        for name in ("net/odd/a/b.c", "odd_one", "net/odd/a.Sb..c" + SUFFIX):
            self.assertEqual(run("show", GOLDEN + "/objects-1", name),
                             (DONE, "net/odd/a/b.c  float [], 4 B, shard 0\n  2.5\n", ""))
        code, _, err = run("show", GOLDEN + "/objects-1", "kernel")
        self.assertEqual(code, BAD_INPUT)
        self.assertIn("2 variables of checkpoint '%s/objects-1' are called 'kernel'; similar: " % GOLDEN, err)
        code, _, err = run("show", GOLDEN + "/objects-1", "net/tab")
        self.assertEqual(code, BAD_INPUT)
        self.assertIn("has no tensor 'net/tab'; similar: 'net/table'", err)

    def test_show_statistics_of_every_kind(self):
        wanted = {
            "dtype/float32": "  min -2, max 13, mean 5.5, std 5.12348; no zeros, no NaN, no Inf\n"
                             "  [[-2,  1,  4],\n   [ 7, 10, 13]]\n",
            "dtype/uint64": "  min 1, max 16, mean 8.5, std 5.12348; no zeros, no NaN, no Inf\n"
                            "  [[ 1,  4,  7],\n   [10, 13, 16]]\n",
            "dtype/bool": "  3 of 6 are true\n  [[false,  true, false],\n   [ true, false,  true]]\n",
            "strings/none": "  0 strings of 0 bytes, 0 B in all\n  []\n",
            "empty": "  min -, max -, mean -, std -; no zeros, no NaN, no Inf\n  []\n",
            "scalar/string": "  1 string of 5 bytes, 5 B in all\n  \"alone\"\n",
        }
        for name, text in wanted.items():
            code, out, _ = run("show", GOLDEN + "/dtypes", name)
            self.assertEqual((code, out.split("\n", 1)[1]), (DONE, text), name)
        _, out, _ = run("show", GOLDEN + "/dtypes", "dtype/complex64")
        self.assertIn("min 1.41421, max 18.3848, ", out)
        self.assertIn("(magnitudes)", out)
        _, out, _ = run("show", GOLDEN + "/dtypes", "strings")
        self.assertIn("4 strings of 0 to 200 bytes, 209 B in all", out)
        self.assertIn('"\\x00\\xff two"', out)
        self.assertIn('"' + "x" * 60 + '"… (200 bytes)', out)

    def test_show_cuts_many_values_as_numpy_does(self):
        self.write()
        code, out, _ = run("show", self.path("values"), "large")
        self.assertEqual(code, DONE)
        self.assertEqual(out, "large  int32 [1000,700], 2.8 MB, shard 0\n"
                              "  min 0, max 699999, mean 350000, std 202073; 1 zero, no NaN, no Inf\n"
                              "  [[     0,      1,      2, …,    697,    698,    699],\n"
                              "   [   700,    701,    702, …,   1397,   1398,   1399],\n"
                              "   [  1400,   1401,   1402, …,   2097,   2098,   2099],\n"
                              "   …,\n"
                              "   [697900, 697901, 697902, …, 698597, 698598, 698599],\n"
                              "   [698600, 698601, 698602, …, 699297, 699298, 699299],\n"
                              "   [699300, 699301, 699302, …, 699997, 699998, 699999]]\n")
        _, out, _ = run("show", self.path("values"), "large", "--full")
        self.assertEqual(eval(out.split("\n", 2)[2]), [list(range(700 * i, 700 * i + 700)) for i in range(1000)])
        self.assertLess(max(map(len, out.splitlines())), 80)
        _, out, _ = run("show", self.path("values"), "large", "--slice=998,2:697,3")
        self.assertEqual(out.split("\n", 2)[2], "  [[699297, 699298, 699299],\n   [699997, 699998, 699999]]\n")
        _, (row,) = lines_of_json("show", self.path("values"), "large", "--slice=998,2:697,3")
        self.assertEqual(row["values"], [699297, 699298, 699299, 699997, 699998, 699999])
        self.assertEqual(row["statistics"]["elements"], 6)
        _, (row,) = lines_of_json("show", self.path("values"), "large")
        self.assertIsNone(row["values"])
        self.assertEqual(run("show", self.path("values"), "large", "--slice=0,2000:-")[0], BAD_INPUT)
        _, out, _ = run("show", self.path("values"), "deep")
        self.assertTrue(out.endswith("\n  […]\n"), out)

    def test_show_puts_a_sliced_tensor_together(self):
        self.write()
        _, (row,) = lines_of_json("show", self.path("slices"), "columns")
        self.assertEqual(row["values"], [5, 7, 6, 8])
        self.assertEqual([slice_["slice"] for slice_ in row["slices"]], ["-:1,1", "-:0,1"])

    # verify

    def test_verify_says_which_is_damaged(self):
        self.copies([9, 10])
        code, out, err = run("verify", self.directory)
        self.assertEqual((code, err), (DONE, ""))
        self.assertTrue(out.startswith(self.path("m-10") + "  intact  2 tensors, 277 B in "), out)
        self.assertTrue(out.endswith("2 checkpoints: 2 intact, 0 damaged\n"), out)
        self.damage(self.path("m-9"))
        code, out, _ = run("verify", self.directory)
        self.assertEqual(code, NO)
        self.assertIn("/m-9   damaged  The tensor 'step' in 'm-9.data-00000-of-00001' ", out)
        self.assertEqual(run("verify", self.path("m-9"))[0], NO)
        self.assertEqual(run("verify", self.path("m-10"))[0], DONE)
        code, rows = lines_of_json("verify", self.directory)
        self.assertEqual((code, [row["state"] for row in rows]), (NO, ["intact", "damaged"]))
        self.assertEqual(run("verify", self.path("m-11"))[0], BAD_INPUT)

    @place.local_only
    def test_a_long_reading_ends_at_the_timeout(self):
        subprocess.run([WRITER, self.directory, "huge"], check=True, timeout=LIMIT_S)
        self.copy("model-42", "huge-2")
        prefix = self.path("huge")
        code, out, _ = run("verify", prefix, "--timeout=0")
        self.assertEqual((code, out), (NO, prefix + "  unread  not read within --timeout\n"))
        self.assertIn("unread: not read within --timeout", run("list", self.directory, "--verify", "--timeout=0")[1])
        self.assertEqual(run("diff", prefix, prefix, "--timeout=0")[::2], (NO, "muster: not read within --timeout\n"))

    def test_verify_of_tensorflows(self):
        for name in ("dtypes", "shards", "slices", "objects-1", "saved_model"):
            self.assertEqual(run("verify", os.path.join(GOLDEN, name))[0], DONE, name)

    def test_verify_finds_a_shard_that_is_gone(self):
        prefix = self.copy("shards", "s")
        os.unlink(prefix + ".data-00001-of-00002")
        code, out, _ = run("verify", prefix)
        self.assertEqual(code, NO)
        self.assertIn("damaged  The data file 's.data-00001-of-00002' is missing", out)

    # diff

    def test_diff_of_equals(self):
        a, b = self.copy("model-42", "a"), self.copy("model-42", "b")
        self.assertEqual(run("diff", a, b), (DONE, "%s and %s are equal: 2 tensors\n" % (a, b), ""))
        self.damage(b)
        code, _, err = run("diff", a, b)
        self.assertEqual(code, BAD_INPUT)
        self.assertIn("'%s.data-00000-of-00001'" % b, err)
        code, out, _ = run("diff", a, b, "--values=no")
        self.assertEqual((code, out), (DONE, "%s and %s are equal: 2 tensors, compared by name, type and shape\n" % (a, b)))

    def test_diff_of_what_it_cannot_read_is_by_checksums(self):
        subprocess.run([WRITER, self.directory, "quantised"], check=True, timeout=LIMIT_S)
        self.assertEqual(run("diff", self.path("q-1"), self.path("q-3"))[0], DONE)
        code, out, _ = run("diff", self.path("q-1"), self.path("q-2"))
        self.assertEqual(code, NO)
        self.assertIn("~ parts  qint32 [2,2]  different checksum", out)
        code, rows = lines_of_json("diff", self.path("q-1"), self.path("q-2"))
        self.assertEqual([rows[0][name] for name in ("change", "elements", "differ", "max_abs", "nan")], ["changed", None, None, None, None])

    def test_diff_says_what_changed(self):
        self.write()
        a, b = self.path("before"), self.path("after")
        code, out, _ = run("diff", a, b)
        self.assertEqual(code, NO)
        self.assertEqual(out, "%s and %s differ: 1 added, 1 removed, 2 retyped, 4 changed, 1 equal\n" % (a, b) +
                         "+ added    float []\n"
                         "~ bias     float [4]  2 of 4 differ, by up to 0.5\n"
                         "! dtype    float [] → int32 []\n"
                         "~ nan      float [2]  1 of 2 differ, by up to 0, NaN on one side\n"
                         "- removed  float []\n"
                         "! shape    int32 [1,4] → int32 [4,1]\n"
                         "~ step     int64 []  5 → 6\n"
                         "~ words    string [2]  1 of 2 differ\n")
        code, out, _ = run("diff", a, b, "--values=no")
        self.assertEqual(code, NO)
        self.assertIn("differ: 1 added, 1 removed, 2 retyped, 5 equal\n", out)
        code, rows = lines_of_json("diff", a, b)
        self.assertEqual(code, NO)
        self.assertEqual(rows[1], {"name": "bias", "change": "changed", "a": {"dtype": "float", "shape": [4]},
                                   "b": {"dtype": "float", "shape": [4]}, "elements": 4, "differ": 2, "max_abs": 0.5,
                                   "nan": False})
        self.assertEqual(rows[-1], {"a": a, "b": b, "added": 1, "removed": 1, "retyped": 2, "changed": 4, "equal": 1})
        self.assertEqual(run("diff", a, b, "--values=maybe")[0], BAD_INPUT)
        self.assertEqual(run("diff", a, self.path("nowhere"))[0], BAD_INPUT)

    # prune

    def test_prune_removes_the_oldest_and_the_state_forgets_them(self):
        self.copies([1, 2, 3, 4])
        code, out, _ = run("prune", self.directory, "--keep=2", "--dry-run")
        self.assertEqual((code, self.there()), (DONE, [1, 2, 3, 4]))
        self.assertIn("would remove 2 of 4 checkpoints, freeing 554 B\n", out)
        code, out, _ = run("prune", self.directory, "--keep=2")
        self.assertEqual((code, self.there()), (DONE, [3, 4]))
        self.assertIn(self.path("m-1") + "  removed  277 B  ", out)
        self.assertIn("removed 2 of 4 checkpoints, freed 554 B\n", out)
        self.assertFalse([name for name in os.listdir(self.directory) if name.startswith(("m-1.", "m-2."))])
        with open(self.path("checkpoint"), encoding="utf-8") as file:
            self.assertEqual([line.split()[1] for line in file if line.startswith("all_model_checkpoint_paths")],
                             ['"m-3"', '"m-4"'])
        code, out, _ = run("prune", self.directory, "--keep=2")
        self.assertEqual((code, out), (DONE, "nothing to remove: 2 checkpoints in %s\n" % self.directory))

    def test_prune_never_takes_the_latest_nor_what_was_quarantined(self):
        self.copies([1, 2, 3, 4])
        self.state([1])
        self.copy("model-42", "m-0.bad")
        code, out, _ = run("prune", self.directory, "--keep=1")
        self.assertEqual(code, DONE)
        self.assertTrue(os.path.exists(self.path("m-0.bad.index")))
        self.assertEqual([name for name in ("m-1.index", "m-2.index", "m-3.index", "m-4.index")
                          if os.path.exists(self.path(name))], ["m-1.index", "m-4.index"])
        self.assertIn(self.path("m-1") + "  kept     277 B  4h00m ago; latest\n", out)

    def test_prune_keeps_what_is_kept_for_good_and_forgets_the_rest(self):
        self.write()
        self.copies([1, 2, 3, 4])
        code, out, _ = run("prune", self.directory, "--keep=1")
        self.assertEqual((code, self.there()), (DONE, [1, 4]))
        self.assertIn("; for good\n", out)
        with open(self.path("checkpoint.muster"), encoding="utf-8") as file:
            noted = file.read()
        self.assertIn("m-1", noted)
        self.assertNotIn("m-2", noted)

    @place.local_only
    def test_prune_notes_what_went_before_it_failed(self):
        self.write()
        self.copies([2, 3, 4])
        os.makedirs(self.path("m-3.meta", "in the way"))
        code, out, _ = run("prune", self.directory, "--keep=1")
        self.assertNotEqual(code, DONE)
        self.assertIn(self.path("m-2") + "  removed  ", out)
        self.assertIn("removal failed", out)
        with open(self.path("checkpoint.muster"), encoding="utf-8") as file:
            self.assertNotIn("m-2", file.read())
        with open(self.path("checkpoint"), encoding="utf-8") as file:
            self.assertEqual(file.read().count("m-4"), 2)

    @place.local_only
    def test_prune_makes_room_on_a_disk_without_a_free_byte(self):
        self.write()
        self.copies([1, 2, 3, 4])
        script = 'mount -t tmpfs -o size=4m none "$0" && cp -a "$1"/. "$0" && { cat /dev/zero >"$0/zeros" || true; } 2>&-; ' \
            '"$2" checkpoint prune "$0" --keep=1; code=$?; cat "$0"/checkpoint "$0"/checkpoint.muster; ls "$0"; exit $code'
        full = self.enterContext(tempfile.TemporaryDirectory())
        for way in (["unshare", "-m"], ["unshare", "-rm"]):
            done = subprocess.run([*way, "sh", "-c", script, full, self.directory, place.MUSTER], capture_output=True, text=True,
                                  timeout=LIMIT_S, check=False)
            if done.stdout:
                self.assertEqual((done.returncode, done.stderr), (DONE, ""), done.stdout)
                told, rest = done.stdout.split("checkpoints, freed")
                self.assertIn("/m-2  removed  ", told)
                self.assertIn("m-4.index\n", rest)
                self.assertNotIn("m-2", rest)
                return
        self.skipTest("no mount namespace to be had here: " + done.stderr)

    def test_prune_keeps_one_for_its_hours(self):
        self.copies([1, 2, 3, 4, 5, 6, 7])
        code, rows = lines_of_json("prune", self.directory, "--keep=1", "--keep-every=2.9")
        self.assertEqual(code, DONE)
        self.assertEqual([(row["step"], row["action"]) for row in rows],
                         [(1, "kept"), (2, "removed"), (3, "removed"), (4, "kept"), (5, "removed"), (6, "removed"),
                          (7, "kept")])
        self.assertEqual(self.there(), [1, 4, 7])

    @place.local_only
    def test_prune_reports_what_cannot_be_removed(self):
        self.copies([1, 2, 3])
        os.makedirs(self.path("m-1.meta/inside"))  # nothing removes that
        code, out, err = run("prune", self.directory, "--keep=1")
        self.assertNotEqual(code, DONE)
        self.assertEqual(self.there(), [3])
        self.assertIn("m-1.meta", err)
        self.assertNotIn("in use", out)
        self.assertIn("; removal failed\n", out)
        self.assertIn("removal failed: 1 checkpoint\n", out)
        self.assertIn("removed 1 of 3 checkpoints", out)

    @place.local_only
    def test_prune_leaves_what_is_read(self):
        self.copies([1, 2, 3])
        with being_read(self.path("m-1")):
            code, out, _ = run("prune", self.directory, "--keep=1")
            self.assertEqual((code, self.there()), (DONE, [1, 3]))
        self.assertIn(self.path("m-1") + "  left     277 B  3h00m ago; in use\n", out)
        self.assertIn("not removed, in use: 1 checkpoint; prune again later\n", out)
        with open(self.path("checkpoint"), encoding="utf-8") as file:
            self.assertIn('"m-1"', file.read())
        run("prune", self.directory, "--keep=1")
        self.assertEqual(self.there(), [3])

    def test_prune_counts_each_name_by_itself(self):
        self.copies([1, 2])
        self.copy("shards", "best-7")
        code, _, _ = run("prune", self.directory, "--keep=1")
        self.assertEqual((code, self.there()), (DONE, [2]))
        self.assertTrue(os.path.exists(self.path("best-7.index")))

    def test_prune_refuses_what_it_cannot_know(self):
        self.copies([1, 2])
        self.assertEqual(run("prune", self.directory)[0], BAD_INPUT)
        self.assertEqual(run("prune", self.directory, "--keep=0")[0], BAD_INPUT)
        self.assertEqual(run("prune", self.directory, "--keep=1", "--keep-every=-1")[0], BAD_INPUT)
        with open(self.path("checkpoint"), "w", encoding="utf-8") as file:
            file.write("nonsense")
        self.assertEqual(run("prune", self.directory, "--keep=1")[0], BAD_INPUT)
        self.assertEqual(self.there(), [1, 2])

    def test_prune_keeps_every_so_many_steps(self):
        self.copies([1, 2, 3, 4, 5, 6, 7])
        code, out, _ = run("prune", self.directory, "--keep=1", "--keep-every-steps=3")
        self.assertEqual((code, self.there()), (DONE, [3, 6, 7]))
        self.assertIn("; every 3 steps\n", out)

    def test_prune_keeps_the_first_at_or_after_so_many_steps(self):
        self.copies([2, 4, 5, 7, 9, 11])
        code, out, _ = run("prune", self.directory, "--keep=1", "--keep-every-steps=3")
        self.assertEqual((code, self.there()), (DONE, [4, 7, 9, 11]))

    def test_refuses_a_value_that_no_number_holds(self):
        self.copies([1])
        for value in ("1e999", "-1e999", "0,5", ""):
            code, _, err = run("mark", self.path("m-1"), "--metric=acc=" + value)
            self.assertEqual(code, BAD_INPUT, value)
            self.assertIn("invalid --metric 'acc=%s'" % value, err)
        for value in ("1e-999", "inf", "nan", "1e308"):
            self.assertEqual(run("mark", self.path("m-1"), "--metric=acc=" + value)[0], DONE, value)

    def test_prune_keeps_the_best(self):
        self.copies([1, 2, 3, 4])
        for step, value in ((1, "0.5"), (2, "0.97"), (3, "nan")):
            self.assertEqual(run("mark", self.path("m-%d" % step), "--metric=eval/accuracy=" + value)[0], DONE)
        code, out, _ = run("prune", self.directory, "--keep=1", "--keep-best=1", "--metric=eval/accuracy:max", "--dry-run")
        self.assertEqual((code, self.there()), (DONE, [1, 2, 3, 4]))
        self.assertIn("; best (eval/accuracy 0.97)\n", out)
        code, _, _ = run("prune", self.directory, "--keep=1", "--keep-best=1", "--metric=eval/accuracy:max")
        self.assertEqual((code, self.there()), (DONE, [2, 4]))
        code, _, err = run("prune", self.directory, "--keep=1", "--keep-best=1")
        self.assertEqual(code, BAD_INPUT)
        self.assertIn("--keep-best=N needs --metric=NAME:max", err)
        self.assertEqual(run("prune", self.directory, "--keep=1", "--keep-best=1", "--metric=eval/accuracy")[0], BAD_INPUT)
        self.assertEqual(run("prune", self.directory, "--keep=1", "--keep-every-steps=-3")[0], BAD_INPUT)

    # pin, unpin and mark

    def kept(self):
        _, rows = lines_of_json("list", self.directory)
        return {row["step"]: row["kept"] for row in rows}

    def listed(self):
        with open(self.path("checkpoint"), encoding="utf-8") as file:
            return [line.split()[1] for line in file if line.startswith("all_model_checkpoint_paths")]

    def test_pinned_ones_stay(self):
        self.copies([1, 2, 3, 4])
        code, out, _ = run("pin", self.path("m-1"), self.path("m-2.index"), "--why=the paper's")
        self.assertEqual((code, out), (DONE, "pinned %s: the paper's\npinned %s: the paper's\n" %
                                       (self.path("m-1"), self.path("m-2"))))
        self.assertEqual(self.listed(), ['"m-3"', '"m-4"'])
        self.assertEqual(self.kept(), {1: ["pinned (the paper's)"], 2: ["pinned (the paper's)"], 3: ["newest"],
                                       4: ["latest", "newest"]})
        code, out, _ = run("prune", self.directory, "--keep=1")
        self.assertEqual((code, self.there()), (DONE, [1, 2, 4]))
        self.assertIn("; pinned (the paper's)\n", out)
        code, rows = lines_of_json("unpin", self.path("m-1"))
        self.assertEqual((code, rows), (DONE, [{"prefix": self.path("m-1"), "step": 1, "pinned": False}]))
        run("prune", self.directory, "--keep=1")
        self.assertEqual(self.there(), [2, 4])

    @place.local_only
    def test_a_reason_is_utf8_where_the_locale_has_ascii_alone(self):
        self.copies([9])
        with unittest.mock.patch.dict(os.environ, LC_ALL="C"):
            self.assertEqual(run("pin", self.path("m-9"), "--why=für")[::2], (DONE, ""))
            code, _, err = run("pin", self.path("m-9"), b"--why=f\xfcr")
        self.assertEqual((code, err), (BAD_INPUT, "muster: checkpoint pin: an option's value isn't valid text in the locale's "
                                       "encoding (UTF-8)\n"))
        self.assertIn("für", lines_of_json("list", self.directory)[1][0]["kept"][-1])

    def test_a_directory_is_its_latest(self):
        self.copies([1, 2])
        code, rows = lines_of_json("pin", self.directory)
        self.assertEqual((code, rows), (DONE, [{"prefix": self.path("m-2"), "step": 2, "pinned": True, "why": None}]))
        self.assertEqual(self.listed(), ['"m-1"', '"m-2"'])
        self.assertEqual(self.kept()[2], ["latest", "pinned"])

    def test_pins_nothing_if_one_is_missing(self):
        self.copies([1, 2])
        code, out, err = run("pin", self.path("m-1"), self.path("m-3"))
        self.assertEqual((code, out), (BAD_INPUT, ""))
        self.assertIn("m-3' not found", err)
        self.assertEqual(self.kept()[1], ["newest"])
        code, _, err = run("unpin", self.path("m-1"))
        self.assertNotEqual(code, DONE)
        self.assertIn("m-1' isn't pinned", err)

    def test_marks_are_listed(self):
        self.copies([1, 2])
        code, out, _ = run("mark", self.path("m-1"), "--metric=eval/accuracy=0.97", "--metric=loss:0=nan")
        self.assertEqual((code, out), (DONE, "%s: eval/accuracy 0.97\n%s: loss nan\n" % ((self.path("m-1"),) * 2)))
        code, rows = lines_of_json("mark", self.directory, "--metric=a=b=-1e3")
        self.assertEqual((code, rows), (DONE, [{"prefix": self.path("m-2"), "step": 2, "metric": "a=b", "value": -1000}]))
        _, rows = lines_of_json("list", self.directory)
        self.assertEqual([row["metrics"] for row in rows], [{"a=b": -1000}, {"eval/accuracy": 0.97, "loss": None}])

    def test_mark_refuses_what_is_no_value(self):
        self.copies([1])
        for metric in ("loss", "loss=", "loss=x", "loss=1x", "=1", ":0=1", "a\tb=1"):
            code, out, err = run("mark", self.path("m-1"), "--metric=" + metric)
            self.assertEqual((code, out), (BAD_INPUT, ""), metric)
            self.assertIn("invalid", err)
        code, _, err = run("mark", self.path("m-1"))
        self.assertEqual(code, BAD_INPUT)
        self.assertIn("needs --metric=NAME=VALUE", err)

    # all

    def test_words(self):
        self.assertEqual(run("--help")[0], DONE)
        self.assertEqual(run()[0], BAD_INPUT)
        code, _, err = run("lst")
        self.assertEqual(code, BAD_INPUT)
        self.assertIn("checkpoint: unknown verb 'lst'", err)
        for verb in ("list", "show", "latest", "verify", "diff", "prune", "pin", "unpin", "mark"):
            self.assertEqual(run(verb, "--help")[0], DONE)
            code, _, err = run(verb)
            self.assertEqual(code, BAD_INPUT)
            self.assertIn("see `muster help checkpoint %s`" % verb, err)
        self.copies([1])
        self.assertEqual(run("--json", "latest", self.directory)[0], DONE)

    def test_a_name_cannot_play_with_the_terminal(self):
        self.write()
        code, out, _ = run("show", self.path("after"))
        self.assertEqual(code, DONE)
        code, out, _ = run("show", self.path("after"), "words")
        self.assertNotIn("\x1b", out)
        self.assertNotIn("\u009b", out)
        _, (row,) = lines_of_json("show", self.path("after"), "words")  # every control character is escaped
        self.assertEqual(row["values"], ["one", "\x1b[2J\u009b2J\x1f\x01"])


if __name__ == "__main__":
    os.environ.pop("XML_OUTPUT_FILE", None)
    unittest.main(argv=sys.argv[:1])
