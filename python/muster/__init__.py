# SPDX-License-Identifier: Apache-2.0
"""muster: session manager and readiness runtime for TensorFlow 1-style training.

    import muster

    model = muster.Scaffold.load("digits.meta")
    saver = muster.Saver(model.meta_graph())

All of the library is here: the classes and functions of gi.repository.Muster, and its engine as muster.LocalMaster.
muster.checkpoint reads checkpoints as mappings of arrays. docs/python.md describes it.
"""
import importlib
import threading

from muster import _carried

_carried.refuse_subinterpreter()
_carried.use()
import gi  # noqa: E402

gi.require_version("Muster", "0")
try:
    gi.require_version("MusterEngine", "0")
except ValueError:
    pass  # a build without the engine

_importing = threading.RLock()  # another thread would see a module of gi's half made
_ENGINE = {"LocalMaster": "Master"}  # by C's names


def _find(name):
    if name == "checkpoint":
        return importlib.import_module("muster.checkpoint")
    if name == "use_logging":
        return importlib.import_module("muster._log").use_logging
    if name in _ENGINE:
        return getattr(importlib.import_module("gi.repository.MusterEngine"), _ENGINE[name])
    library = importlib.import_module("gi.repository.Muster")
    if name == "__version__":
        return library.version()
    try:
        return getattr(library, name)
    except AttributeError:
        from muster import _calls

        raise _calls.no_attribute("muster", name, __dir__()) from None


def __getattr__(name):
    """All is found when it is first asked for."""
    if name == "__all__":
        return [each for each in __dir__() if not each.startswith("_")]
    if name.startswith("_") and name != "__version__":
        raise AttributeError("muster has no attribute '%s'" % name)
    with _importing:
        globals()[name] = found = _find(name)
    return found


def __dir__():
    with _importing:
        library = importlib.import_module("gi.repository.Muster")
    return sorted({each for each in dir(library) if not each.startswith("_")} | {*_ENGINE, "checkpoint", "use_logging", "__version__", "__doc__", "__name__"})
