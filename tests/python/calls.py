# SPDX-License-Identifier: Apache-2.0
"""Which functions of a library a Python program calls: each that returned, by its name in C."""
import atexit
import sys


def _raw(member):
    """The library's function that a member is, or that the overrides have put it in the place of."""
    raw = getattr(getattr(member, "__func__", member), "raw", None)
    return next((each for each in (member, raw) if hasattr(each, "get_symbol")), None)


class _Recorded:
    """Stands in a class for one of the library's functions."""

    def __init__(self, member, seen):
        self.member, self.raw, self.seen = member, _raw(member), seen

    def __get__(self, instance, owner):
        if self.raw is not self.member:
            return _Call(self.member.__get__(instance, owner), self.seen, raw=self.raw)
        if self.raw.is_constructor():
            return _Call(self.raw, self.seen, owner)
        if self.raw.is_method() and instance is not None:
            return _Call(self.raw, self.seen, instance)
        return _Call(self.raw, self.seen)


class _Call:
    """One of the library's functions, perhaps with its first argument."""

    def __init__(self, function, seen, *first, raw=None):
        self.function, self.seen, self.first, self.raw = function, seen, first, raw or function

    def __call__(self, *args, **kwargs):
        try:
            return self.function(*self.first, *args, **kwargs)
        finally:
            # Also where it failed as it should: where it shouldn't, its test fails.
            if not isinstance(sys.exc_info()[1], TypeError):
                self.seen.add(self.raw.get_symbol())

    def __getattr__(self, name):
        return getattr(self.function, name)


def _wrap_class(cls, seen):
    for name, member in list(vars(cls).items()):
        if _raw(member) is not None:
            setattr(cls, name, _Recorded(member, seen))


def _wrap(module, seen):
    for name in dir(module):
        member = getattr(module, name, None)
        if isinstance(member, type):
            _wrap_class(member, seen)
        elif _raw(member) is not None:
            setattr(module, name, _Call(member, seen, raw=_raw(member)))


def record(path, modules):
    """From now on; written when the process ends."""
    seen = set()
    for module in modules:
        _wrap(module, seen)

    def write():
        with open(path, "a", encoding="utf-8") as file:
            file.writelines(symbol + "\n" for symbol in sorted(seen))

    atexit.register(write)
