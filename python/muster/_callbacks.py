# SPDX-License-Identifier: Apache-2.0
"""Functions of the program's that the library calls: those that may fail may return None, and what they raise is the cause of the error."""
import functools
import threading

from gi import _gi
from gi.repository import GLib

_raised = threading.local()  # by a function, on the way to the call that it fails
_VARARGS = 0x04  # inspect.CO_VARARGS, without inspect


def _n_taken(function):
    """The number of arguments that it takes; None: any number."""
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    if code is None or code.co_flags & _VARARGS:
        return None
    return code.co_argcount - hasattr(function, "__self__")


def _returns(info):
    return info.get_return_type() if not hasattr(info, "get_return_type_info") else info.get_return_type_info()


def guarded(function, info, domain, unknown):
    """A function of the program's for a callback that may fail. It may take fewer arguments; an exception of it becomes an error with the
    code `unknown`."""
    if not callable(function) or not info.can_throw_gerror() or hasattr(function, "guards"):
        return function
    n, is_boolean = _n_taken(function), int(_returns(info).get_tag()) == int(_gi.TypeTag.BOOLEAN)

    @functools.wraps(function)
    def call(*args):
        try:
            result = function(*args[:n])
        except GLib.Error as error:
            _raised.last = error
            raise
        except Exception as error:
            _raised.last = error
            raise GLib.Error(_text(error), domain, unknown) from error
        return True if result is None and is_boolean else result

    call.guards = function
    return call


def _text(error):
    """An error's message, never empty: that of one which isn't GLib's begins with its class."""
    return getattr(error, "message", None) or "%s: %s" % (type(error).__name__, error)


def take_raised(message):
    """What a function of this thread has raised, if it is the cause of an error with this message."""
    raised, _raised.last = getattr(_raised, "last", None), None
    return raised if raised is not None and _text(raised) in message else None


def guard_methods(cls, domain, unknown):
    """The virtual functions that a subclass implements."""
    infos = {"do_" + info.get_name(): info for base in cls.__mro__ if hasattr(vars(base).get("__info__"), "get_vfuncs")
             for info in base.__info__.get_vfuncs()}
    for name, function in list(vars(cls).items()):
        if name in infos and hasattr(function, "__code__"):
            setattr(cls, name, guarded(function, infos[name], domain, unknown))
