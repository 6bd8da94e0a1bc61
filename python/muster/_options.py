# SPDX-License-Identifier: Apache-2.0
"""The fields of a struct of options, as gi/overrides/Muster.py sets them: by muster_options_set ()."""
import ctypes

from gi.repository import GLib, GObject

NAMES = ("Options", "Training", "RpcSecurity", "SaverBuild")  # what the names of such structs end with


def _held(options):
    """A value that holds the struct itself; PyGObject makes values of copies. Its objects of a boxed type begin with the pointer to
    the struct and the type (pygobject.h)."""
    pointer, gtype = (ctypes.c_void_p * 2).from_address(id(options) + object.__basicsize__)
    if gtype != hash(type(options).__gtype__):
        raise TypeError("unknown layout of %s in this version of PyGObject" % type(options).__name__)
    value = GObject.Value()
    value.init(type(options).__gtype__)
    value.set_static_boxed(pointer)
    return value


def _value(value):
    """A GValue of what a field is set to."""
    if value is None:
        return GObject.Value(GObject.TYPE_STRING)  # NULL, which is of every type
    if isinstance(value, bool):
        return GObject.Value(GObject.TYPE_BOOLEAN, value)
    if isinstance(value, int):
        return GObject.Value(GObject.TYPE_UINT64 if value > GLib.MAXINT64 else GObject.TYPE_INT64, int(value))
    if isinstance(value, float):
        return GObject.Value(GObject.TYPE_DOUBLE, value)
    if isinstance(value, str):
        return GObject.Value(GObject.TYPE_STRING, value)
    if isinstance(value, (list, tuple)):
        return GObject.Value(GObject.TYPE_STRV, list(value))
    return GObject.Value(type(value).__gtype__, value)


def assign(muster, options, name, value):
    """Sets a field. A list of objects is added one by one."""
    each = [value]
    if isinstance(value, (list, tuple)) and not (value and isinstance(value[0], str)):
        each = [None, *value]
    held = _held(options)
    for one in each:
        muster.options_set(held, name, _value(one))
