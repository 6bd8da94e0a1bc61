# SPDX-License-Identifier: Apache-2.0
"""What the tests of muster in Python share: the library that was just built, as gi.repository.Muster, and a small model.

The names are the raw ones, without overrides; only the fields of options are set and read as these do. With MUSTER_CALLS=FILE, each function of the library that returned is
written to FILE by its name in C, for bound_test.py.
"""
import array
import atexit
import glob
import os
import subprocess
import sys
import tempfile
import unittest

import gi

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
NAMESPACES = ("Muster", "MusterEngine")


def built(name):
    """A file of the build: in a test's runfiles, or in bazel-bin where a person runs the script."""
    for folder in (ROOT, ROOT + "/bazel-bin"):
        found = sorted(path for path in glob.glob(folder + "/" + name) if os.access(path, os.R_OK))
        if found:
            return os.path.realpath(found[-1])
    raise FileNotFoundError(name + ": bazel build //:gir")


def _use_what_was_built():
    """The library by its soname, and its typelibs, without touching the environment."""
    gi.require_version("GIRepository", "2.0")
    from gi.repository import GIRepository

    folder = tempfile.TemporaryDirectory(prefix="muster-gi-")
    atexit.register(folder.cleanup)
    for name in ("libmuster", "libmuster-engine"):
        os.symlink(built(name + ".so.*.*.*"), "%s/%s.so.0" % (folder.name, name))
    for namespace in NAMESPACES:
        os.symlink(built(namespace + "-0.typelib"), "%s/%s-0.typelib" % (folder.name, namespace))
    GIRepository.Repository.prepend_library_path(folder.name)
    GIRepository.Repository.prepend_search_path(folder.name)


if "MUSTER_INSTALLED" not in os.environ:
    _use_what_was_built()
for _namespace in NAMESPACES:
    gi.require_version(_namespace, "0")
from gi.repository import Gio, GLib, GObject, Muster  # noqa: E402,F401

Muster.error_quark()  # loads libmuster, which libmuster-engine needs
from gi.repository import MusterEngine  # noqa: E402

sys.path.append(os.path.join(ROOT, "python"))
from muster import _options  # noqa: E402


def _settable(cls):
    set_plainly = cls.__setattr__

    def __setattr__(self, name, value):
        part = None if hasattr(cls, name) or name.startswith("_") else _options.part_with(cls, name)
        if part is not None:
            setattr(getattr(self, part), name, value)
        elif isinstance(getattr(cls, name, None), property):
            _options.assign(Muster, self, name, value)
        else:
            set_plainly(self, name, value)

    cls.__setattr__ = __setattr__


for _info in gi._gi.Repository.get_default().get_infos("Muster"):
    if not isinstance(_info, gi._gi.StructInfo) or not _info.get_name().endswith(_options.NAMES):
        continue
    _class = getattr(Muster, _info.get_name())
    if issubclass(_class, GObject.GBoxed) and "__setattr__" not in vars(_class):
        _settable(_class)
        _options.nest(Muster, _class, _info)

if "MUSTER_CALLS" in os.environ:
    import calls

    calls.record(os.environ["MUSTER_CALLS"], [Muster, MusterEngine])

FOREVER = Muster.WAIT_FOREVER
CODES = {"f": Muster.DType.FLOAT, "d": Muster.DType.DOUBLE, "i": Muster.DType.INT32, "q": Muster.DType.INT64}


def fixture(name):
    return os.path.join(ROOT, "tests/fixtures", name)


def tensor(code, values, shape=None):
    """A tensor of array.array's type code: tensor("f", [1, 2])."""
    shape = [len(values)] if shape is None else shape
    return Muster.Tensor.new_from_bytes(CODES[code], shape, GLib.Bytes.new(array.array(code, values).tobytes()))


def values(of):
    """A tensor's elements as a list."""
    code = next(code for code, dtype in CODES.items() if dtype == of.dtype())
    return list(array.array(code, of.to_bytes().get_data()))


def linreg():
    """The scaffold of a small regression, with placeholders x and y, global_step, a loss and a train op."""
    return Muster.Scaffold.load(fixture("linreg.meta"))


def session(scaffold=None):
    """An initialised session of it on an engine of its own, in this process."""
    scaffold = scaffold or linreg()
    opened = MusterEngine.Master.new().create_session(scaffold.graph(), None, FOREVER, None)
    opened.run_op(scaffold.init_op(), FOREVER, None)
    return opened


class TestCase(unittest.TestCase):
    """Each test has an empty folder of its own, self.folder."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def serve(self, *flags):
        """A server on this machine until the test ends; returns its target."""
        server = subprocess.Popen([built("cli/muster"), "serve", "--listen=localhost:0", *flags], stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.wait, 30)
        self.addCleanup(server.kill)
        return "grpc://" + server.stdout.readline().split()[1].split("//")[-1]

    def in_background(self, start, *args):
        """Calls start (*args, no cancellable, a callback), and runs a main loop until the callback has its result."""
        results, loop = [], GLib.MainLoop()

        def done(_source, result, *_):
            results.append(result)
            loop.quit()

        start(*args, None, done)
        while not results:
            loop.run()
        return results[0]

    def assertFails(self, code, text, call, *args):
        """call (*args) fails with that code of Muster.Error; returns its message, which has text in it."""
        with self.assertRaises(GLib.Error) as caught:
            call(*args)
        self.assertTrue(caught.exception.matches(Muster.error_quark(), code), caught.exception)
        self.assertIn(text, caught.exception.message)
        return caught.exception.message


def main():
    sys.exit(unittest.main(module="__main__", verbosity=1))
