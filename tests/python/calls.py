# SPDX-License-Identifier: Apache-2.0
"""Which functions of a library a Python program calls: each that returned, by its name in C."""
import atexit
import sys


class _Recorded:
    """Stands in a class for one of the library's functions."""

    def __init__(self, function, seen):
        self.function, self.seen = function, seen

    def __get__(self, instance, owner):
        if self.function.is_constructor():
            return _Call(self.function, self.seen, owner)
        if self.function.is_method() and instance is not None:
            return _Call(self.function, self.seen, instance)
        return _Call(self.function, self.seen)


class _Call:
    """One of the library's functions, perhaps with its first argument."""

    def __init__(self, function, seen, *first):
        self.function, self.seen, self.first = function, seen, first

    def __call__(self, *args, **kwargs):
        try:
            return self.function(*self.first, *args, **kwargs)
        finally:
            # Also where it failed as it should: where it shouldn't, its test fails.
            if not isinstance(sys.exc_info()[1], TypeError):
                self.seen.add(self.function.get_symbol())

    def __getattr__(self, name):
        return getattr(self.function, name)


def _wrap_class(cls, seen):
    for name, member in list(vars(cls).items()):
        if hasattr(member, "get_symbol"):
            setattr(cls, name, _Recorded(member, seen))


def _wrap(module, seen):
    for name in dir(module):
        member = getattr(module, name, None)
        if isinstance(member, type):
            _wrap_class(member, seen)
        elif hasattr(member, "get_symbol"):
            setattr(module, name, _Call(member, seen))


def record(path, modules):
    """From now on; written when the process ends."""
    seen = set()
    for module in modules:
        _wrap(module, seen)

    def write():
        with open(path, "a", encoding="utf-8") as file:
            file.writelines(symbol + "\n" for symbol in sorted(seen))

    atexit.register(write)
