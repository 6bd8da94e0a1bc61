# SPDX-License-Identifier: Apache-2.0
"""The modules of gi.repository that have overrides: their classes and functions are adapted when they are first asked for."""
import sys
import threading

from gi import _gi
from gi.module import get_introspection_module
from muster import _calls

_lock = threading.RLock()  # a class is seen adapted, or not at all


class _Adapting:
    """How a namespace's classes and functions are changed."""

    def __init__(self, name, adapt_class, adapt_function, name_values):
        self.name, self.raw = name, get_introspection_module(name)
        self.adapt_class, self.adapt_function, self.name_values = adapt_class, adapt_function, name_values

    def find(self, name):
        return _gi.Repository.get_default().find_by_name(self.name, name)

    def get(self, name):
        """AttributeError if there is none of that name."""
        info = self.find(name)
        if info is None and name.endswith("_async") and isinstance(self.find(name[:-len("_async")]), _gi.FunctionInfo):
            return self._awaitable(name)
        made = getattr(self.raw, name)
        if isinstance(info, (_gi.ObjectInfo, _gi.InterfaceInfo, _gi.StructInfo)):
            self.adapt_class(made, info)
        elif isinstance(info, _gi.EnumInfo) and not info.is_flags():
            self.name_values(made)
        elif isinstance(info, _gi.FunctionInfo):
            made = self._function(name)
        return made

    def _function(self, name):
        is_in_c = name.endswith("_async") and self.find(name[:-len("_async")]) is not None
        return self._awaitable(name) if is_in_c else self.adapt_function(self.find(name), None)[0]

    def _awaitable(self, name):
        """Of a function that waits; with C's asynchronous form, if there is one."""
        in_c = self.find(name)
        in_c = self.adapt_function(in_c, None)[0] if in_c is not None else None
        awaitable = self.adapt_function(self.find(name[:-len("_async")]), in_c)[1]
        if awaitable is None:
            raise AttributeError("gi.repository.%s has no attribute '%s'" % (self.name, name))
        return awaitable

    def names(self):
        """All that can be asked for."""
        infos = _gi.Repository.get_default().get_infos(self.name)
        names = {info.get_name() for info in infos if not isinstance(info, _gi.CallbackInfo)}
        return names | {info.get_name() + "_async" for info in infos
                        if isinstance(info, _gi.FunctionInfo) and self.adapt_function(info, None)[1] is not None}


def adapt(namespace, *how):
    """Changes the module of a namespace, whose overrides are being imported, and returns it."""
    module, adapting = sys.modules["gi.repository." + namespace], _Adapting(namespace, *how)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        with _lock:
            if name not in vars(self):
                try:
                    setattr(self, name, adapting.get(name))
                except AttributeError:
                    raise _calls.no_attribute(self.__name__, name, dir(self)) from None
            return vars(self)[name]

    type(module).__getattr__ = __getattr__
    type(module).__dir__ = lambda self: sorted({*vars(self), *adapting.names()})
    for name in [name for name in vars(adapting.raw) if adapting.find(name) is not None]:
        getattr(module, name)  # it was made before
    return module
