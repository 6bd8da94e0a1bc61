#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""bazel/modules.bzl, the includes and README's drawing agree; and bazel/structure.py finds where they don't."""
import os
import re
import sys
import tempfile
import unittest

sys.path.insert(0, "bazel")
import structure

FILES = {
    "base/error.h": "",
    "base/error.c": '#include "base/error.h"\n',
    "graph/text/print.c": '#include "base/error.h"\n',
    "graph/graph.h": '#include "base/error.h"\n',
    "graph/graph.c": '#include "graph/graph.h"\n',
    "cli/main.c": '#include "graph/graph.h"\n',
}
SETTINGS = ("save_share", "keep_every_steps", "keep_best", "when_full", "always_restore", "fall_back_off", "keep_damaged",
            "refuse_unexpected", "summary_dir", "without_positions")
MODULES = {"base": [], "graph/text": ["base"], "graph": ["base"], "cli": ["graph"]}


class ThisRepository(unittest.TestCase):
    def test_is_as_its_map_says(self):
        self.assertEqual(structure.check("."), [])

    def test_ten_settings_stand_in_at_most_four_files_each(self):
        """Besides the files that are made of their declaration."""
        texts = {}
        for folder, _, names in os.walk(".", followlinks=True):
            for name in names:
                if name.endswith((".c", ".h")):
                    with open(os.path.join(folder, name), encoding="utf-8") as file:
                        texts[os.path.join(folder, name)] = file.read()
        for setting in SETTINGS:
            found = [path for path, text in texts.items() if re.search(r"\b%s\b" % setting, text)]
            self.assertTrue(1 < len(found) <= 4, (setting, found))


class Planted(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name
        for path, text in FILES.items():
            self.write(path, text)
        self.write_modules(MODULES)
        self.write("README.md", "# x\n" + structure.BEGIN + structure.draw(MODULES) + structure.END + "more\n")
        self.assertEqual(structure.check(self.root), [])

    def write(self, path, text):
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def write_modules(self, modules):
        self.write("bazel/modules.bzl", "MODULES = %r\n" % modules)

    def assert_wrong(self, *words):
        wrong = structure.check(self.root)
        self.assertTrue(any(all(word in line for word in words) for line in wrong), wrong)

    def test_an_include_without_an_arrow(self):
        self.write("base/error.c", '#include "graph/graph.h"\n')
        self.assert_wrong("base/error.c includes graph/graph.h", "no arrow from base to graph")

    def test_an_arrow_without_an_include(self):
        self.write("cli/main.c", "")
        self.assert_wrong("arrow from cli to graph has no include")

    def test_a_flag_of_an_unknown_command(self):
        self.write("base/error.h", " * @keep: (attributes flag=keep min=-1 of=save,trian): the number\n * @all: (attributes flag=all): all\n")
        self.write("cli/main.c", '#include "graph/graph.h"\nmuster_flags_new ("save");\n')
        self.assert_wrong("base/error.h", "the command trian")

    def test_a_module_above_one_that_it_uses(self):
        self.write_modules({"cli": ["graph"], "base": [], "graph/text": ["base"], "graph": ["base"]})
        self.assert_wrong("cli stands above graph")

    def test_a_folder_of_too_many_sources(self):
        for i in range(structure.MOST_SOURCES):
            self.write("base/more_%d.c" % i, "")
        self.assert_wrong("base has 26 sources")

    def test_a_circle_of_three_files(self):
        for this, other in ("ab", "bc", "ca"):
            self.write("base/%s.h" % this, '#include "base/%s.h"\n' % other)
        self.assert_wrong("in a circle", "base/a, base/b, base/c")

    def test_many_circles_of_two(self):
        for i in range(structure.MOST_CIRCLES + 1):
            self.write("base/a%d.h" % i, '#include "base/b%d.h"\n' % i)
            self.write("base/b%d.c" % i, '#include "base/a%d.h"\n' % i)
        self.assert_wrong("7 circles")

    def test_a_type_and_its_own_parts_are_no_circle(self):
        self.write("base/%s" % "error_private.h", '#include "base/error.h"\n')
        self.write("base/error.c", '#include "base/%s"\n' % "error_private.h")
        self.assertEqual(structure.check(self.root), [])

    def test_a_timed_wait_of_its_own(self):
        self.write("base/wait.c", "g_cond_wait_until (changed, lock, deadline_us);\n")
        self.assertEqual(structure.check(self.root), [])
        self.write("cli/main.c", '#include "graph/graph.h"\ng_cond_wait_until (changed, lock, deadline_us);\n')
        self.assert_wrong("cli/main.c calls g_cond_wait_until")

    def test_a_stale_drawing(self):
        self.write("README.md", structure.BEGIN + structure.draw({"base": []}) + structure.END)
        self.assert_wrong("README.md", "bazel run //:draw")

    def test_no_drawing(self):
        self.write("README.md", "# x\n")
        self.assert_wrong("README.md", "no place")


if __name__ == "__main__":
    unittest.main(verbosity=2)
