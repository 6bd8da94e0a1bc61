#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How many of the public functions are bound, and whether each of these is called from Python.

It runs the other tests of this folder and notes what they call (calls.py). A function that isn't bound is in unbound.txt
with the reason. A type's own get_type, ref, unref, copy and free count as bound and called where its values are passed:
the interpreter calls them.
"""
import os
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(HERE + "/../..")
sys.path.insert(0, ROOT + "/bazel")
import declarations  # noqa: E402

CORE = "{http://www.gtk.org/introspection/core/1.0}"
C = "{http://www.gtk.org/introspection/c/1.0}"
GLIB = "{http://www.gtk.org/introspection/glib/1.0}"
FUNCTIONS = [CORE + kind for kind in ("function", "method", "constructor")]
LEAST = 0.95
PATIENCE = 240
SLOW = ("examples_test.py", "habits_test.py", "module_test.py", "notebook_test.py", "tensorflow_test.py", "types_test.py")  # these call little here


def built(name):
    """A file of the build: in a test's runfiles, or in bazel-bin where a person runs this."""
    return next(path for path in (ROOT + "/" + name, ROOT + "/bazel-bin/" + name) if os.path.exists(path))


def public():
    """All functions in the installed headers: name -> header."""
    with open(built("include/muster.h"), encoding="utf-8") as file:
        headers = re.findall(r'#include "(.+)"', file.read())
    return {function.name: os.path.relpath(function.header, ROOT)
            for function in declarations.read([os.path.join(ROOT, header) for header in headers])}


def bound(paths):
    """The functions that other languages see, and the prefixes of the types that do their own memory."""
    functions, types = set(), set()
    for path in paths:
        for element in xml.etree.ElementTree.parse(path).getroot().iter():
            symbol = element.get(C + "identifier")
            if element.tag in FUNCTIONS and symbol and element.get("introspectable") != "0":
                functions.add(symbol)
            get_type = element.get(GLIB + "get-type", "")
            if get_type.startswith("muster_"):
                types.add(get_type[:-len("_get_type")])
    return functions, types


def of_a_type(name, types):
    """Whether the interpreter itself calls it, for a type that it knows."""
    found = re.fullmatch(r"(.*)_(get_type|ref|unref|copy|free)", name)
    return bool(found) and found[1] in types


def unbound():
    reasons = {}
    with open(HERE + "/unbound.txt", encoding="utf-8") as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                name, _, reason = line.partition("  ")
                reasons[name] = reason.strip()
    return reasons


def called(all_of_them):
    """What the other tests here call, up to the test that calls the last of them."""
    symbols = set()
    scripts = [name for name in os.listdir(HERE) if name.endswith("_test.py") and name != "bound_test.py"]
    with tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR")) as folder:
        for script in sorted(scripts, key=lambda name: (name in SLOW, name)):
            if all_of_them <= symbols:
                break
            calls = os.path.join(folder, script)
            run = subprocess.run([HERE + "/" + script], env={**os.environ, "MUSTER_CALLS": calls}, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE, check=False)
            if run.returncode != 0:
                raise AssertionError("%s: exit %d\n%s" % (script, run.returncode, run.stdout[-3000:]))
            if os.path.exists(calls):
                with open(calls, encoding="utf-8") as file:
                    symbols.update(file.read().split())
    return symbols


class Bindings(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.headers = public()
        cls.public = set(cls.headers)
        cls.seen, types = bound([built("Muster-0.gir"), built("MusterEngine-0.gir")])
        cls.own = {name for name in cls.public if of_a_type(name, types)}
        cls.bound = {name for name in cls.public if name in cls.seen} | cls.own
        cls.unbound = unbound()

    def assertNone(self, names, what):
        lines = sorted("%s: %s" % (self.headers.get(name, "unbound.txt"), name) for name in names)
        if lines:
            self.fail("%s:\n  %s" % (what, "\n  ".join(lines)))

    def test_nearly_all_are_bound(self):
        share = len(self.bound) / len(self.public)
        print("%d of %d public functions are bound: %.1f %%" % (len(self.bound), len(self.public), 100 * share))
        self.assertGreaterEqual(share, LEAST)

    def test_the_rest_has_a_reason(self):
        self.assertNone(self.public - self.bound - set(self.unbound), "neither bound nor in unbound.txt")
        self.assertNone(set(self.unbound) & self.bound, "bound, but in unbound.txt")
        self.assertNone(set(self.unbound) - self.public, "in unbound.txt, but not public")
        self.assertNone((name for name, reason in self.unbound.items() if not reason), "without a reason")

    def test_each_is_called(self):
        given = self.bound - self.own
        never = given - called(given)
        print("%d of %d bound functions are called from Python" % (len(given) - len(never), len(given)))
        self.assertNone(never, "never called from Python")


if __name__ == "__main__":
    sys.exit(unittest.main())
