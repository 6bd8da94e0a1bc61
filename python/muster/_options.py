# SPDX-License-Identifier: Apache-2.0
"""The fields of a struct of options, as gi/overrides/Muster.py sets them: by muster_options_set ()."""
import ctypes
import operator
import os

from gi import _gi
from gi.repository import GLib, GObject
from muster import _blocking, _calls

NAMES = ("Options", "Training", "RpcSecurity", "SaverBuild")  # what the names of such structs end with


class _Boxed(ctypes.Structure):
    """PyGObject's part of an object of a boxed type (pygobject.h)."""

    _fields_ = [("struct", ctypes.c_void_p), ("gtype", ctypes.c_size_t), ("is_freed", ctypes.c_int)]


def _boxed(options):
    boxed = _Boxed.from_address(id(options) + object.__basicsize__)
    if boxed.gtype != hash(type(options).__gtype__) or boxed.is_freed not in (0, 1):
        raise TypeError("unknown layout of %s in this version of PyGObject" % type(options).__name__)
    return boxed


def _held(options):
    """A value that holds the struct itself; PyGObject makes values of copies."""
    value = GObject.Value(type(options).__gtype__)
    value.set_static_boxed(_boxed(options).struct)
    return value


def _is_text(value):
    return isinstance(value, (str, os.PathLike))


def plain(value):
    """An argument: a path, or paths in a list, as strings."""
    if type(value) in (list, tuple):
        return [plain(each) for each in value] if any(isinstance(each, os.PathLike) for each in value) else value
    return os.fsdecode(value) if type(value) is not str and isinstance(value, os.PathLike) else value


def _number(value):
    """A Python number of what behaves like one, NumPy's scalars for example; None of what doesn't."""
    import numbers  # with what is rare

    is_complex = isinstance(value, numbers.Complex) and not isinstance(value, numbers.Real)
    if is_complex or getattr(value, "shape", ()) != ():
        return None
    if getattr(getattr(value, "dtype", None), "kind", None) == "b":
        return bool(value)
    for convert in (operator.index, float) if hasattr(type(value), "__float__") else (operator.index,):
        try:
            return convert(value)
        except (TypeError, ValueError):
            pass
    return None


def _number_value(value):
    if isinstance(value, bool):
        return GObject.Value(GObject.TYPE_BOOLEAN, value)
    value = value if isinstance(value, float) else int(value)  # PyGObject's enumerations don't compare with all
    if isinstance(value, float) or not GLib.MININT64 <= value <= GLib.MAXUINT64:
        return GObject.Value(GObject.TYPE_DOUBLE, float(value))
    return GObject.Value(GObject.TYPE_UINT64 if value > GLib.MAXINT64 else GObject.TYPE_INT64, value)


def _known_value(value):
    """None for what no field can be."""
    if _is_text(value):
        return GObject.Value(GObject.TYPE_STRING, os.fsdecode(value))
    if isinstance(value, (bytes, bytearray, memoryview)):
        return GObject.Value(GLib.Bytes.__gtype__, GLib.Bytes.new(bytes(value)))
    if isinstance(value, (list, tuple)):
        return GObject.Value(GObject.TYPE_STRV, [os.fsdecode(each) for each in value]) if all(map(_is_text, value)) else None
    if isinstance(value, (int, float)):  # enumerations, too
        return _number_value(value)
    if hasattr(type(value), "__gtype__"):
        return GObject.Value(type(value).__gtype__, value)
    number = _number(value)
    return _number_value(number) if number is not None else None


def _value(value):
    """A GValue of what a field is set to. One of a Python object is refused, with the type that the field has."""
    try:
        known = _known_value(value)
    except (TypeError, ValueError, OverflowError):
        if isinstance(value, GObject.Object):  # without one of C's
            raise TypeError("%s's __init__ () doesn't call super ().__init__ ()" % type(value).__name__) from None
        known = None
    return known or GObject.Value(GObject.TYPE_PYOBJECT, (value,))  # a tuple, since None would be NULL


def _type_name(value):
    name = type(value).__name__
    if isinstance(value, (list, tuple)) and value:
        name += " of " + " and ".join(sorted({type(each).__name__ for each in value}))
    return ("an " if name[0] in "aeiou" else "a ") + name


def _set(muster, options, name, values):
    held = _held(options)
    for value in values:
        muster.options_set(held, name, value)


def assign(muster, options, name, value):
    """Sets a field. One that fails is as before."""
    values, wrong = [GObject.Value(GObject.TYPE_STRING)], value  # NULL, which is of every type
    items = value if isinstance(value, (list, tuple)) else [value]
    is_array = hasattr(type(options), "n_" + name) and not (items is value and any(map(_is_text, items)))
    try:
        if value is not None and not is_array:
            values = [_value(value)]
        elif value is not None and items:
            for wrong in items:
                values = [values[0], _value(wrong)]
                _set(muster, options.copy(), name, values)
            values = [values[0], *map(_value, items)]
        _set(muster, options, name, values)
    except GLib.Error as error:
        message = error.message.replace("it is a PyObject", "it is " + _type_name(wrong)).replace("it is NULL", "it is None")
        raise GLib.Error(message, error.domain, error.code) from None


# --- options within options ---

_NESTED = {}  # a class of options: its fields that are structs of options, and their classes
_KEYWORDS = {}  # a struct of options' namespace and name: its keywords and their defaults
_OWN = {}  # a class of options: its other fields that can be set


def _interface(field):
    """What a field is by value, other than a number; None for another field."""
    held = _calls.type_of(field)
    return held.get_interface() if not held.is_pointer() and held.get_tag() == int(_gi.TypeTag.INTERFACE) else None


def _is_of_function(field):
    """Whether it is a function, or what one is called with."""
    is_data = _calls.type_of(field).get_tag() == int(_gi.TypeTag.VOID) or field.get_name().endswith("owner")
    return is_data or isinstance(_interface(field), _gi.CallbackInfo)


def _hide_functions(cls, info):
    """Functions that can't be set aren't there, so that another part can have the name."""
    for field in filter(_is_of_function, info.get_fields()):
        if not hasattr(cls, "set_" + field.get_name()):
            delattr(cls, field.get_name())


def _is_of_structs(field):
    """Whether it is an array of structs that no value can hold."""
    held = _calls.type_of(field)
    element = held.get_param_type(0) if held.get_tag() == int(_gi.TypeTag.ARRAY) else None
    inner = element.get_interface() if element is not None and element.get_tag() == int(_gi.TypeTag.INTERFACE) else None
    return isinstance(inner, _gi.StructInfo) and inner.get_g_type() == GObject.TYPE_NONE


def _default(field):
    """Of a field, as text: what stands for nothing, where it has a value for that."""
    held = _calls.type_of(field)
    if held.is_pointer() or isinstance(_interface(field), _gi.CallbackInfo):
        return "None"
    if isinstance(_interface(field), _gi.StructInfo) or field.get_name().endswith("_us"):
        return "..."
    return "False" if held.get_tag() == int(_gi.TypeTag.BOOLEAN) else "0"


def _own_keywords(info):
    """The fields that it has itself: their names and defaults."""
    methods = {method.get_name() for method in info.get_methods()}
    found = {field.get_name(): _default(field) for field in info.get_fields()
             if "set_" + field.get_name() in methods or not (_is_of_function(field) or _is_of_structs(field))
             or _blocking.ADDERS.get(field.get_name()) in methods}
    lengths = {"n_" + field.get_name() for field in info.get_fields()
               if _calls.type_of(field).get_tag() == int(_gi.TypeTag.ARRAY) or field.get_name() in _blocking.ADDERS}
    return {name: default for name, default in found.items() if name not in lengths}


def keywords(info):
    name = (info.get_namespace(), info.get_name())
    if name not in _KEYWORDS:
        _KEYWORDS[name] = _keywords(info)
    return _KEYWORDS[name]


def _keywords(info):
    """The keywords of a struct of options and their defaults: its fields, and those that only one of the structs within it has."""
    found, within = _own_keywords(info), {}
    for inner in filter(None, map(_interface, info.get_fields())):
        if inner.get_name().endswith(NAMES):
            for name, default in keywords(inner).items():
                within.setdefault(name, []).append(default)
    found = {name[:-len("_us")] if name.endswith("_us") else name: default for name, default in found.items()}
    return {**found, **{name: defaults[0] for name, defaults in within.items() if len(defaults) == 1 and name not in found}}


def nest(muster, cls, info):
    """A struct in a struct is read as what it is, a part of the memory of the whole."""
    _OWN[cls] = set(_own_keywords(info))
    _hide_functions(cls, info)
    for field in info.get_fields():
        name, inner = field.get_name(), _interface(field)
        if inner is not None and inner.get_name().endswith(NAMES):
            _NESTED.setdefault(cls, {})[name] = getattr(muster, inner.get_name())
            setattr(cls, name, _part(getattr(cls, name), field.get_offset()))


def _part(field, offset):
    def get(self):
        part = field.__get__(self)  # a copy
        boxed, copy = _boxed(part), GObject.Value(type(part).__gtype__)
        copy.take_boxed(boxed.struct)
        boxed.struct, boxed.is_freed = _boxed(self).struct + offset, 0
        part._within = self  # lives as long
        return part

    return property(get)


def fields(cls):
    """The fields that can be set: its own, and those of the structs within it."""
    return _OWN.get(cls, set()).union(*map(fields, _NESTED.get(cls, {}).values()))


def _paths(cls, names):
    """Where fields of such names are: its own, or else those of the structs within it."""
    own = [name for name in names if name in _OWN[cls]]
    return own or ["%s.%s" % (field, path) for field, inner in _NESTED.get(cls, {}).items() for path in _paths(inner, names)]


def part_with(cls, *names):
    """The struct within it that has a field of such a name."""
    paths = _paths(cls, names) if cls in _NESTED else []
    if len(paths) > 1:
        raise AttributeError("%s of %s is ambiguous (use %s)" % (names[0], cls.__name__, " or ".join(paths)))
    return paths[0].partition(".")[0] if paths else None
