# SPDX-License-Identifier: Apache-2.0
"""Functions of the program's that the library calls: those that may fail may return None, and what they raise is the cause of the error."""
import functools
import threading

from gi import _gi
from gi.repository import GLib



class _Raised(threading.local):
    """By functions of a thread, on the way to the call that they fail."""

    last = None
    exits = None  # what isn't an Exception, such as sys.exit ()'s, which the innermost call raises itself; None outside of calls


_raised = _Raised()


def _n_taken(function, names):
    """The number of arguments of such names that it takes; None: any number. A parameter with a default is the program's own, unless it
    has the argument's name."""
    import inspect  # takes longer than all of this module

    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some of C's
        return None
    n = 0
    for each in parameters:
        if each.kind == each.VAR_POSITIONAL:
            return None
        if each.kind in (each.KEYWORD_ONLY, each.VAR_KEYWORD) or (each.default is not each.empty and each.name not in names[n:n + 1]):
            break
        n += 1
    return n


def _returns(info):
    return info.get_return_type() if not hasattr(info, "get_return_type_info") else info.get_return_type_info()


def guarded(function, info, names, status_of):
    """A function of the program's for a callback with arguments of such names. It may take fewer; where the callback may fail, an
    exception of it becomes the error that status_of () makes of it."""
    if not callable(function) or hasattr(function, "guards"):
        return function
    n, throws = _n_taken(function, names), info.can_throw_gerror()
    is_success = throws and int(_returns(info).get_tag()) == int(_gi.TypeTag.BOOLEAN)
    is_due = throws and _returns(info).is_pointer() and not info.may_return_null()

    @functools.wraps(function)
    def call(*args):
        try:
            result = function(*args[:n])
            if result is None and is_due:
                raise TypeError("%s () returned None" % call.__name__)
        except GLib.Error as error:
            _raised.last = error
            raise
        except BaseException as error:
            is_exit = not isinstance(error, Exception) and _raised.exits is not None
            if is_exit:  # PyGObject would end the process here
                _raised.exits.append(error)
            if throws:
                _raised.last = error
                raise status_of(error) from error
            if not is_exit:
                raise
            return None
        return True if result is None and is_success else result

    call.guards = function
    return call


def text_of(error):
    """An error's message, never empty: that of one which isn't GLib's begins with its class."""
    if isinstance(error, GLib.Error) and error.message:
        return error.message
    return ": ".join(filter(None, (type(error).__name__, str(error))))


def enter():
    """Begins a call of the library, in which functions may exit. Returns what leave () takes."""
    outer, _raised.exits = _raised.exits, []
    return outer


def leave(outer):
    """Ends it. Returns what a function has exited by, or None."""
    exits, _raised.exits = _raised.exits, outer
    return exits[0] if exits else None


def take_raised(message):
    """What a function of this thread has raised, if it is the cause of an error with this message."""
    raised, _raised.last = _raised.last, None
    return raised if raised is not None and text_of(raised) in message else None


def guard_methods(cls, names_of, status_of):
    """The virtual functions that a subclass implements. names_of: the names of the arguments of one's info."""
    infos = {"do_" + info.get_name(): info for base in cls.__mro__ if hasattr(vars(base).get("__info__"), "get_vfuncs")
             for info in base.__info__.get_vfuncs()}
    for name, function in list(vars(cls).items()):
        if name in infos and hasattr(function, "__code__"):
            setattr(cls, name, guarded(function, infos[name], ["self", *names_of(infos[name])], status_of))
