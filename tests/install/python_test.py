#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""muster from Python, as installed: gi.repository.Muster, and the example that trains with it."""
import os
import subprocess
import sys
import tempfile
import unittest

PATIENCE = 120
EXAMPLE = os.path.abspath("examples/python/train.py")
FIXTURES = os.path.abspath("tests/fixtures")


def setUpModule():
    global folder, environment
    folder = tempfile.TemporaryDirectory(dir=os.environ["TEST_TMPDIR"])
    subprocess.run(["./install", "--prefix=" + folder.name], check=True, timeout=PATIENCE)
    lib = folder.name + "/lib"
    environment = {**os.environ, "LD_LIBRARY_PATH": lib, "GI_TYPELIB_PATH": lib + "/girepository-1.0",
                   "PKG_CONFIG_PATH": lib + "/pkgconfig", "PYTHONPATH": lib + "/python3/dist-packages"}


def tearDownModule():
    folder.cleanup()


def begin(*command):
    return subprocess.Popen(command, env=environment, text=True, stdout=subprocess.PIPE)


def train(*flags):
    return begin("/usr/bin/python3", EXAMPLE, "--data=" + FIXTURES, *flags)


def end(process):
    out, _ = process.communicate(timeout=PATIENCE)
    if process.returncode != 0:
        raise AssertionError("exit %d: %s" % (process.returncode, out))
    return out


def python(code):
    return end(begin("/usr/bin/python3", "-c", code))


class Bindings(unittest.TestCase):
    def test_structs_are_as_large_as_in_c(self):
        said = python("""
from gi.repository import GIRepository as G
repository = G.Repository.get_default()
repository.require("Muster", "0", 0)
for i in range(repository.get_n_infos("Muster")):
    info = repository.get_info("Muster", i)
    if info.get_type() == G.InfoType.STRUCT and G.struct_info_get_size(info) and not G.struct_info_is_gtype_struct(info):
        print("Muster" + info.get_name(), G.struct_info_get_size(info))
""")
        names = [line.split()[0] for line in said.splitlines()]
        self.assertIn("MusterSessionReport", names)
        source = "#include <muster.h>\n#include <stdio.h>\nint main (void) {\n%s}\n" % "".join(
            'printf ("%s %%zu\\n", sizeof (%s));\n' % (name, name) for name in names)
        flags = end(begin("pkg-config", "--cflags", "--libs", "muster")).split()
        program = folder.name + "/sizes"
        subprocess.run(["cc", "-x", "c", "-", "-o", program, *flags], input=source, text=True, check=True, env=environment)
        self.assertEqual(end(begin(program)), said)

    def test_a_tensor_goes_in_and_out_as_bytes(self):
        self.assertEqual(python("""
from gi.repository import GLib, Muster
tensor = Muster.Tensor.new_from_bytes(Muster.DType.INT32, [2, 3], GLib.Bytes.new(bytes(range(24))))
assert tensor.to_bytes().get_data() == bytes(range(24))
assert Muster.Tensor.new_float(1.5).shape() == []
print(tensor.shape(), tensor.reshape([6]).shape(), Muster.Tensor.new_strv(["a", "b"]).to_string(5))
"""), '[2, 3] [6] ["a", "b"]\n')

    def test_errors_have_their_codes(self):
        self.assertEqual(python("""
from gi.repository import GLib, Muster
try:
    Muster.Tensor.new_from_bytes(Muster.DType.FLOAT, [2], GLib.Bytes.new(b"abc"))
except GLib.Error as error:
    print(error.matches(Muster.error_quark(), Muster.Error.INVALID_ARGUMENT))
"""), "True\n")

    def test_what_was_fetched_is_the_callers(self):
        python("""
import gc
from gi.repository import GLib, Muster, MusterEngine
scaffold = Muster.Scaffold.load("%s/linreg.meta")
manager = Muster.SessionManager.new_for_ops(scaffold.graph(), scaffold.ready_op(), None, scaffold.local_init_op(), None, None)
options = Muster.PrepareOptions.new(scaffold.init_op(), None, None).copy()
session = manager.prepare_session(MusterEngine.Master.new(), options, None, None)
step = Muster.StepBuilder.new()
step.fetch(scaffold.global_step())
for i in range(100):
    values = step.run(session, Muster.WAIT_FOREVER, None)
    kept = values[0]
    del values
    gc.collect()
    assert kept.to_bytes().get_data() == bytes(8)
""" % FIXTURES)


class Overrides(unittest.TestCase):
    def test_are_found_from_the_folder_of_either_python(self):
        for path in ("/lib/python3/dist-packages", "/share/muster/python"):
            said = end(begin("/usr/bin/env", "PYTHONPATH=" + folder.name + path, "/usr/bin/python3", "-c", """
from gi.repository import Muster
print(repr(Muster.Tensor([1, 2])))
"""))
            self.assertEqual(said, "<muster.Tensor int32 [2] [1, 2]>\n")


class Example(unittest.TestCase):
    def test_trains_in_its_own_process_and_goes_on_from_what_it_saved(self):
        run = "--checkpoint-dir=%s/local" % folder.name
        first = end(train(run, "--steps=600"))
        self.assertIn("initialised", first)
        self.assertIn("saved %s/local/model.ckpt-600" % folder.name, first)
        self.assertGreater(float(first.split("accuracy ")[1].split()[0]), 85)
        again = end(train(run, "--steps=650"))
        self.assertIn("restored %s/local/model.ckpt-600" % folder.name, again)
        self.assertIn("model.ckpt-650", again)

    def test_trains_beside_a_worker_on_a_server(self):
        server = begin(folder.name + "/bin/muster", "serve", "--listen=localhost:0")
        try:
            master = "--master=" + server.stdout.readline().split()[1]
            run = "--checkpoint-dir=%s/served" % folder.name
            worker = train(master, run, "--task=worker:1", "--steps=300")
            chief = train(master, run, "--steps=300")
            self.assertIn("model.ckpt-30", end(chief))  # the worker may add a step
            self.assertIn("ready", end(worker))
        finally:
            server.terminate()
            server.communicate(timeout=PATIENCE)


if __name__ == "__main__":
    sys.exit(unittest.main())
