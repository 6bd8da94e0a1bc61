# SPDX-License-Identifier: Apache-2.0
"""What a wheel carries: PyGObject, used where there is no other gi, with GLib; and muster's overrides and typelibs.

A process has one GLib, that which was loaded first, since each is found by the same names.
"""
import ctypes
import os
import sys

_FOLDER = os.path.dirname(os.path.abspath(__file__))
_CARRIED = os.path.join(_FOLDER, "carried")


def _import_gi():
    """Whether gi is the one that is carried."""
    try:
        from gi import _gi  # noqa: F401
    except ImportError:
        pass
    else:
        return os.path.dirname(sys.modules["gi"].__file__) == os.path.join(_CARRIED, "gi")
    sys.modules.pop("gi", None)
    sys.path.insert(0, _CARRIED)
    try:
        from gi import _gi  # noqa: F401,F811
    finally:
        sys.path.remove(_CARRIED)
    return True


def _add_typelibs(folder):
    import gi

    if gi.version_info >= (3, 51):
        raise ImportError("muster's wheel needs PyGObject 3.50 or older beside it, and this environment has %s: `pip install 'PyGObject<3.51'`, or use "
                          "an environment without PyGObject" % gi.__version__)
    ctypes.CDLL("libgirepository-1.0.so.1").g_irepository_prepend_search_path(os.fsencode(folder))


def use() -> None:
    """Lets gi find what is carried; does nothing where nothing is."""
    if not os.path.isdir(_CARRIED):
        return
    if _import_gi():
        _add_typelibs(os.path.join(_CARRIED, "girepository-1.0"))
    else:
        import gi.overrides

        gi.overrides.__path__.append(os.path.join(_CARRIED, "gi", "overrides"))
    _add_typelibs(os.path.join(_FOLDER, "lib", "girepository-1.0"))
