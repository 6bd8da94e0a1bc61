#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The libraries export the functions that public headers declare, and privately what the engine's needs of the other."""
import glob
import re
import subprocess
import sys
import unittest

sys.path.insert(0, "bazel")
import declarations

with open("include/muster.h", encoding="utf-8") as file:
    HEADERS = re.findall(r'#include "(.*)"', file.read())
LINE = re.compile(r"^(muster_\w+)(?:@@?(\w+))? (\S)", re.M)


HAS, NEEDS = "TDBR", "U"


def symbols(library, kinds):
    """The names, with their versions, that a library has or needs."""
    path, = glob.glob(library + ".so.*")
    listed = subprocess.run(["nm", "-DP", path], check=True, capture_output=True, text=True).stdout
    return {name: version for name, version, letter in LINE.findall(listed) if letter in kinds}


class Exports(unittest.TestCase):
    def declared(self, engine):
        headers = [header for header in HEADERS if header.startswith("engine/") == engine]
        return {function.name for function in declarations.read(headers)}

    def test_are_what_public_headers_declare(self):
        exported = symbols("libmuster", "T")
        self.assertEqual({name for name, version in exported.items() if version == "MUSTER_0"}, self.declared(False))
        self.assertEqual(set(symbols("libmuster-engine", "T")), self.declared(True))

    def test_are_private_where_only_the_engines_library_needs_them(self):
        private = {name for name, version in symbols("libmuster", HAS).items() if version == "MUSTER_PRIVATE_0"}
        needed = symbols("libmuster-engine", NEEDS)
        self.assertEqual(private, {name for name, version in needed.items() if version == "MUSTER_PRIVATE_0"})
        self.assertGreater(len(private), 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
