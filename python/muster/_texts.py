# SPDX-License-Identifier: Apache-2.0
"""What objects and values of muster are printed as."""
from gi import _gi

# What tells objects apart: functions without arguments that only read it.
_TELLING = ("target", "name", "model", "node", "task", "epoch", "slot", "prefix", "path", "directory", "n_variables", "n_nodes", "n_entries", "per_epoch")
_SIMPLE = {int(getattr(_gi.TypeTag, name)) for name in ("BOOLEAN", "INT8", "UINT8", "INT16", "UINT16", "INT32", "UINT32", "INT64", "UINT64", "FLOAT",
                                                        "DOUBLE", "UTF8", "FILENAME")}


def _is_told(field, type_of):
    """Whether it is a number, a text, an enumeration or a struct in the struct."""
    held = type_of(field)
    if int(held.get_tag()) != int(_gi.TypeTag.INTERFACE):
        return int(held.get_tag()) in _SIMPLE
    return not held.is_pointer() and isinstance(held.get_interface(), (_gi.EnumInfo, _gi.StructInfo))


def _fields(self, names):
    """NAME=VALUE of each that isn't zero."""
    values = [(name, getattr(self, name)) for name in names if not name.startswith("_")]
    return ["%s=%r" % (name, value) for name, value in values if value and not repr(value).endswith("()")]


def _methods(self):
    for name in _TELLING:
        raw = getattr(getattr(type(self), name, None), "raw", None)
        if hasattr(raw, "get_arguments") and not raw.get_arguments() and not raw.can_throw_gerror():
            value = getattr(self, name)()
            if value not in (None, ""):
                yield "%s=%r" % (name, value)


def is_ours(cls):
    """Whether it is a class of the library's, not of the program's."""
    return cls.__module__.startswith(("gi.", "__gi__"))


def name_of(cls):
    """The name of a class; of one that is private to the library, its parent's."""
    return next((base.__name__ for base in cls.__mro__ if not is_ours(base) or "__info__" in vars(base)), cls.__name__)


def describe(cls, names, is_options):
    """repr () of a class; names: of its fields that are told."""
    known = cls.__gtype__.name[len("Muster"):] if cls.__gtype__.name.startswith("Muster") else cls.__name__  # C's name

    def __repr__(self):
        told = _fields(self, names) + list(_methods(self))
        if is_options:
            return "muster.%s(%s)" % (known, ", ".join(told))
        return "<%s>" % " ".join(["muster." + known if is_ours(type(self)) else type(self).__name__, *told])

    cls.__repr__ = cls.__str__ = __repr__


def told_fields(info, type_of):
    return [field.get_name() for field in info.get_fields() if _is_told(field, type_of)]


def name_values(cls):
    """The values of an enumeration are printed as an enum's."""
    names = {}
    for name, value in vars(cls).items():
        if isinstance(value, cls):
            names.setdefault(int(value), name)
    plain = cls.__repr__

    def __repr__(self):
        return "<%s.%s: %d>" % (cls.__name__, names[int(self)], self) if int(self) in names else plain(self)

    def __str__(self):
        return "%s.%s" % (cls.__name__, names[int(self)]) if int(self) in names else plain(self)

    cls.__repr__, cls.__str__ = __repr__, __str__
    cls.name, cls.value = property(lambda self: names.get(int(self))), property(int)
