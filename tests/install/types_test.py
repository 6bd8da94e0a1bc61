#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The GObject types that the installed libraries register: all have muster's prefix, as a program may have a class of any
other name."""
import ctypes
import glob
import os
import subprocess
import unittest


def symbols(path):
    """Offsets of the functions in a library, also of those that it doesn't export."""
    lines = subprocess.run(["nm", "--defined-only", path], check=True, capture_output=True, text=True).stdout.split("\n")
    return {line.split()[2]: int(line.split()[0], 16) for line in lines if len(line.split()) == 3 and line.split()[1] in "tT"}


def load(path):
    """The address at which a library begins, once it is loaded."""
    ctypes.CDLL(path, ctypes.RTLD_GLOBAL)
    with open("/proc/self/maps", encoding="utf-8") as maps:
        return min(int(line.split("-")[0], 16) for line in maps if os.path.realpath(path) in line)


def names_of_types(path):
    """Registers every type of a library and asks GObject for its name."""
    ctypes.CDLL("libgobject-2.0.so.0", ctypes.RTLD_GLOBAL)
    type_name = ctypes.CDLL("libgobject-2.0.so.0").g_type_name
    type_name.restype = ctypes.c_char_p
    type_name.argtypes = [ctypes.c_size_t]
    base = load(path)
    getters = {name: at for name, at in symbols(path).items() if name.endswith("_get_type")}
    return {getter: type_name(ctypes.CFUNCTYPE(ctypes.c_size_t)(base + at)()).decode() for getter, at in getters.items()}


class Types(unittest.TestCase):
    def names(self, pattern):
        (path,) = glob.glob(pattern)
        return names_of_types(os.path.realpath(path))

    def test_of_libmuster_have_its_prefix(self):
        names = self.names("libmuster.so.*")
        self.assertIn("MusterSessionManager", names.values())
        self.assertGreater(len(names), 50, "internal types are seen as well")
        self.assertEqual([], [name for name in names.values() if not name.startswith("Muster")])

    def test_of_the_engine_have_its_prefix(self):
        self.names("libmuster.so.*")
        names = self.names("libmuster-engine.so.*")
        self.assertIn("MusterLocalMaster", names.values())
        self.assertEqual([], [name for name in names.values() if not name.startswith("Muster")])


if __name__ == "__main__":
    unittest.main(verbosity=2)
