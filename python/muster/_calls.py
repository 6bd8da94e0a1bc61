# SPDX-License-Identifier: Apache-2.0
"""How gi/overrides/Muster.py calls the library's functions: optional arguments, timeouts, options as keywords, awaitables, Ctrl-C.

Nothing here knows a function by its name: all is decided by the names and types of its arguments (_blocking.py).
"""
import functools
import threading

from muster import _blocking, _signals


def type_of(argument):
    return argument.get_type_info() if hasattr(argument, "get_type_info") else argument.get_type()


def _options_type(argument, namespace):
    """The name of the struct of options that an argument takes."""
    info = type_of(argument).get_interface() if type_of(argument).get_tag() == namespace.tag_interface else None
    name = info.get_name() if info is not None else ""
    return name if name.endswith("Options") else None


class Signature:
    """The arguments of one of the library's functions, as Python passes them."""

    def __init__(self, info, namespace):
        arguments = info.get_arguments()
        hidden = set()
        for argument in arguments:
            hidden |= {argument.get_destroy(), type_of(argument).get_array_length()}
        hidden.add((info.get_return_type() if not hasattr(info, "get_return_type_info") else info.get_return_type_info()).get_array_length())
        passed = [argument for i, argument in enumerate(arguments)
                  if i not in hidden and int(argument.get_direction()) != namespace.direction_out]
        self.name = info.get_name()
        self.names = [argument.get_name() for argument in passed]
        closures = {argument.get_closure() for argument in arguments}
        self.nullable = {arguments[i].get_name() for i in closures if 0 <= i < len(arguments)} | {argument.get_name() for argument in passed if argument.may_be_null() or argument.is_optional()}
        self.time = next((name for name in self.names if name in _blocking.TIMES), None)
        self.options, self.options_type = next(
            ((argument.get_name(), _options_type(argument, namespace)) for argument in passed if _options_type(argument, namespace)), (None, None))
        self.has_report = "report" in self.names
        self.cancellable = self.names.index("cancellable") if "cancellable" in self.names else None
        container = info.get_container()
        self.blocks = _blocking.blocks(self.name, self.names, info.can_throw_gerror(), container and container.get_name())

    def is_plain(self):
        return not (self.time or self.options or self.has_report or self.blocks)

    def bind(self, args, keywords, namespace):
        """All arguments in order, from those that were given."""
        if len(args) > len(self.names):
            raise TypeError("%s () takes %d arguments, not %d" % (self.name, len(self.names), len(args)))
        given = dict(zip(self.names, args))
        others = {}
        for name, value in keywords.items():
            if name == "timeout" and self.time is not None:
                name, value = self.time, (namespace.us if self.time == "timeout_us" else namespace.deadline)(value)
            if name not in self.names:
                others[name] = value
            elif name in given:
                raise TypeError("%s () got '%s' twice" % (self.name, name))
            else:
                given[name] = value
        self._add_options(given, others, namespace)
        passed = set(given)
        for name in self.names:
            if name not in given:
                given[name] = self._default(name, namespace)
        names = self.names[:-1] if self.names[-1:] == ["user_data"] and self.names[-1] not in passed else self.names
        return [given[name] for name in names]

    def _add_options(self, given, others, namespace):
        if others and (self.options is None or given.get(self.options) is not None):
            raise TypeError("%s () got an unexpected argument '%s'" % (self.name, next(iter(others))))
        if others or (self.options is not None and self.options not in given and self.options not in self.nullable):
            given[self.options] = namespace.options(self.options_type, others)

    def _default(self, name, namespace):
        if name == self.time:
            return namespace.forever
        if name in self.nullable:
            return None
        raise TypeError("%s () misses the argument '%s'" % (self.name, name))


def adapt(raw, info, namespace):
    """What replaces raw, with what is missing filled in, and its awaitable form; None for what stays as it is."""
    signature = Signature(info, namespace)
    if signature.is_plain():
        return None, None
    takes_first = info.is_method() or info.is_constructor()  # the object, or the class
    bind = (lambda function: function) if info.is_method() else classmethod if info.is_constructor() else staticmethod
    cancelled_by = _cancelled_by(raw, signature, int(takes_first), namespace)
    simply = _interruptible(raw, cancelled_by, namespace) if signature.blocks else raw

    def call(*args, **keywords):
        return run(simply, *prepare(args, keywords))

    def prepare(args, keywords):
        first = args[:1] if takes_first else ()
        return first, signature.bind(args[len(first):], keywords, namespace)

    def run(function, first, bound):
        if signature.has_report:
            return namespace.reported(lambda report: function(*first, *bound), bound, signature.names.index("report"))
        return function(*first, *bound)

    def start(*args, **keywords):
        (first, given), own = prepare(args, keywords), namespace.Gio.Cancellable()
        bound = [_own(each) for each in given]
        return _call_class()(lambda: run(functools.partial(cancelled_by, own), first, bound), own, given)

    call.__name__ = call.__qualname__ = signature.name
    call.__doc__ = "%s (%s)" % (signature.name, ", ".join(signature.names))
    call.raw = raw
    _describe(start, signature.name)
    return bind(call), bind(start) if signature.blocks else None


def awaitable(name, prepare, namespace):
    """The awaitable form of a function of Python's own: prepare (*args, **keywords) gives a function of a cancellable, which is GLib's
    current one, too."""

    def start(*args, cancellable=None, **keywords):
        function, own = prepare(*args, **keywords), namespace.Gio.Cancellable()
        return _call_class()(lambda: _linked(lambda: _with_current(own, lambda: function(own)), cancellable, own, namespace), own, cancellable)

    return _describe(start, name)


def with_callback(awaitable, in_c):
    """C's asynchronous form where a callback is given, the awaitable one where there is none."""

    def start(*args, **keywords):
        is_given = keywords.get("callback") is not None or any(map(callable, args))
        return (in_c if is_given else awaitable)(*args, **keywords)

    start.__name__ = start.__qualname__ = awaitable.__name__
    start.__doc__ = awaitable.__doc__
    return start


def _describe(start, name):
    start.__name__ = start.__qualname__ = name + "_async"
    start.__doc__ = "%s () on a thread of its own, with the same arguments: `await` gives what it returns." % name
    return start


def _own(value):
    """A copy of options and the like, which the caller may change meanwhile; what a call fills in, which can be cleared, is the caller's."""
    cls = type(value)
    return value.copy() if hasattr(cls, "copy") and not hasattr(cls, "clear") and cls.__module__.startswith("gi.repository.Muster") else value


# --- cancelling ---


def _cancelled_by(raw, signature, n_before, namespace):
    """raw, which a cancellable before its arguments ends: passed as the argument, for the caller's, or where there is none as GLib's
    current."""
    at = n_before + signature.cancellable if signature.cancellable is not None else None

    def call(own, *args):
        if at is None:
            return _with_current(own, lambda: raw(*args))
        given = args[at]
        return _linked(lambda: raw(*args[:at], own, *args[at + 1:]), given, own, namespace)

    return call


def _with_current(own, function):
    """Calls function with own as GLib's current cancellable."""
    own.push_current()
    try:
        return function()
    finally:
        own.pop_current()


def _linked(function, given, own, namespace):
    """Calls function, whose cancellable is own, until given (or None) is cancelled."""
    if given is None:
        return function()
    unlink, result = _link(given, own, namespace), None
    try:
        result = function()
        return result
    finally:
        if isinstance(result, namespace.GObject.Object):
            result.weak_ref(unlink)  # it may heed its cancellable as long as it lives
        else:
            unlink()


def _interruptible(raw, cancelled_by, namespace):
    """raw, which Ctrl-C ends on the main thread."""

    def call(*args):
        if threading.get_ident() != _signals.main_thread:
            return raw(*args)
        own = namespace.Gio.Cancellable()
        with _signals.Call(own):
            return cancelled_by(own, *args)

    return call


def _link(given, own, namespace):
    """Cancels own when given is cancelled. Returns a function that ends this."""
    link = namespace.GObject.Object.connect(given, "cancelled", lambda _: own.cancel())
    if given.is_cancelled():
        own.cancel()
    return lambda: namespace.GObject.Object.disconnect(given, link)


# --- asyncio ---


@functools.lru_cache(None)
def _call_class():
    import asyncio  # takes longer than all of this module

    class Call(asyncio.Future):
        """A call on a thread of its own, which begins at once. A call that is cancelled goes on until it has ended: what it was given
        is its own until then."""

        def __init__(self, function, cancellable, kept):
            super().__init__(loop=asyncio.get_running_loop())
            self._cancellable, self._kept, self._is_cancelled = cancellable, kept, False
            threading.Thread(target=self._run, args=(function,), name="muster-async", daemon=True).start()

        def cancel(self, msg=None):
            if self.done():
                return False
            self._is_cancelled = True
            self._cancellable.cancel()
            return True

        def _run(self, function):
            try:
                value, error = function(), None
            except BaseException as failure:
                value, error = None, failure
            try:
                self.get_loop().call_soon_threadsafe(self._settle, value, error)
            except RuntimeError:
                pass  # the loop is closed: nobody waits

        def _settle(self, value, error):
            if self._is_cancelled:
                super().cancel()
            elif isinstance(error, StopIteration):  # no future's
                self.set_exception(RuntimeError("StopIteration: %s" % error))
            elif error is not None:
                self.set_exception(error)
            else:
                self.set_result(value)

    return Call
