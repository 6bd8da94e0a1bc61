# SPDX-License-Identifier: Apache-2.0
"""What a wheel carries: PyGObject, used where there is no other gi, with GLib; and muster's overrides and typelibs.

A process has one GLib, that which was loaded first, since each is found by the same names.
"""
import ctypes
import importlib.util
import os
import re
import sys

_FOLDER = os.path.dirname(os.path.abspath(__file__))
_CARRIED = os.path.join(_FOLDER, "carried")
_TOO_NEW = (3, 51)  # PyGObject over another libgirepository, which needs a newer GLib


def refuse_subinterpreter() -> None:
    """PyGObject would wait there for the interpreter's lock, for ever."""
    python = ctypes.PyDLL(None)
    python.PyInterpreterState_Get.restype = python.PyInterpreterState_Main.restype = ctypes.c_void_p
    if python.PyInterpreterState_Get() != python.PyInterpreterState_Main():
        raise ImportError("muster can't be imported in a subinterpreter: PyGObject hangs there (with mod_wsgi, set WSGIApplicationGroup %{GLOBAL})")


def _finds_too_new():
    """Whether the gi that would be imported is too new, by the name of the folder beside it that tells its version."""
    if "gi" in sys.modules:
        return False
    found = importlib.util.find_spec("gi")
    if found is None or found.origin is None:
        return False
    versions = (re.match(r"(?i)pygobject-(\d+)\.(\d+)", name) for name in os.listdir(os.path.dirname(os.path.dirname(found.origin))))
    return any(tuple(map(int, version.groups())) >= _TOO_NEW for version in versions if version is not None)


def _import_gi():
    """Whether gi is the one that is carried."""
    try:
        if not _finds_too_new():
            from gi import _gi  # noqa: F401
            return os.path.dirname(sys.modules["gi"].__file__) == os.path.join(_CARRIED, "gi")
    except ImportError:
        pass
    sys.modules.pop("gi", None)
    sys.path.insert(0, _CARRIED)
    try:
        from gi import _gi  # noqa: F401,F811
    finally:
        sys.path.remove(_CARRIED)
    return True


def _add_typelibs(folder):
    import gi

    if gi.version_info >= _TOO_NEW:
        raise ImportError("muster's wheel needs PyGObject 3.50 or older, and this process has imported %s: import muster before gi to use the one that it "
                          "carries" % gi.__version__)
    ctypes.CDLL("libgirepository-1.0.so.1").g_irepository_prepend_search_path(os.fsencode(folder))


def use() -> None:
    """Lets gi find what is carried; does nothing where nothing is."""
    if not os.path.isdir(_FOLDER):
        raise ImportError("muster can't be imported from within '%s', since its libraries have to be files: pip install it" % os.path.dirname(_FOLDER))
    if not os.path.isdir(_CARRIED):
        return
    if _import_gi():
        _add_typelibs(os.path.join(_CARRIED, "girepository-1.0"))
    else:
        import gi.overrides

        gi.overrides.__path__.append(os.path.join(_CARRIED, "gi", "overrides"))
    _add_typelibs(os.path.join(_FOLDER, "lib", "girepository-1.0"))
