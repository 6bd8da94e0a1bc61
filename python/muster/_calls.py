# SPDX-License-Identifier: Apache-2.0
"""How gi/overrides/Muster.py calls the library's functions: optional arguments, timeouts, options as keywords, awaitables, Ctrl-C.

Nothing here knows a function by its name: all is decided by the names and types of its arguments (_blocking.py).
"""
import threading

from muster import _blocking, _signals


def _type_of(argument):
    return argument.get_type_info() if hasattr(argument, "get_type_info") else argument.get_type()


def _options_type(argument, namespace):
    """The name of the struct of options that an argument takes."""
    info = _type_of(argument).get_interface() if _type_of(argument).get_tag() == namespace.tag_interface else None
    name = info.get_name() if info is not None else ""
    return name if name.endswith("Options") else None


class Signature:
    """The arguments of one of the library's functions, as Python passes them."""

    def __init__(self, info, namespace):
        arguments = info.get_arguments()
        hidden = set()
        for argument in arguments:
            hidden |= {argument.get_destroy(), _type_of(argument).get_array_length()}
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
        self.is_asynchronous = "callback" in self.names and self.name.endswith("_async")
        self.blocks = _blocking.blocks(self.name, self.names, info.can_throw_gerror(), container and container.get_name())

    def is_plain(self):
        return self.is_asynchronous or not (self.time or self.options or self.has_report or self.blocks)

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

    def call(*args, **keywords):
        return run(*prepare(args, keywords))

    def prepare(args, keywords):
        first = args[:1] if takes_first else ()
        return first, signature.bind(args[len(first):], keywords, namespace)

    def run(first, bound):
        if signature.has_report:
            return namespace.reported(lambda report: raw(*first, *bound), bound, signature.names.index("report"))
        return raw(*first, *bound)

    def start(*args, **keywords):
        first, bound = prepare(args, keywords)
        at = signature.cancellable
        cancellable = at is not None and bound[at] or namespace.Gio.Cancellable()
        if at is not None:
            bound[at] = cancellable
        return Awaitable(lambda: run(first, bound), cancellable)

    call.__name__ = call.__qualname__ = signature.name
    call.__doc__ = "%s (%s)" % (signature.name, ", ".join(signature.names))
    call.raw = raw
    if not signature.blocks:
        return bind(call), None
    raw = _interruptible(raw, signature, int(takes_first), namespace)
    start.__name__ = start.__qualname__ = signature.name + "_async"
    start.__doc__ = "%s () on a thread of its own, with the same arguments: `await` gives what it returns." % signature.name
    return bind(call), bind(start)


def awaitable(function, Gio):
    """The awaitable form of a function of Python's own."""

    def start(*args, cancellable=None, **keywords):
        cancellable = cancellable or Gio.Cancellable()
        if "cancellable" in function.__kwdefaults__:
            keywords["cancellable"] = cancellable
        return Awaitable(lambda: function(*args, **keywords), cancellable)

    start.__name__ = start.__qualname__ = function.__name__ + "_async"
    start.__doc__ = "%s () on a thread of its own, with the same arguments: `await` gives what it returns." % function.__name__
    return start


def with_callback(awaitable, raw):
    """C's asynchronous form where a callback is given, the awaitable one where there is none."""

    def start(*args, **keywords):
        return (raw if any(map(callable, args)) else awaitable)(*args, **keywords)

    start.__name__ = start.__qualname__ = awaitable.__name__
    start.__doc__ = awaitable.__doc__
    start.raw = raw
    return start


# --- Ctrl-C ---


def _interruptible(raw, signature, n_before, namespace):
    """raw, to which the main thread passes a cancellable of its own: as the argument or, where there is none, as GLib's current."""
    at = n_before + signature.cancellable if signature.cancellable is not None else None

    def call(*args):
        if threading.get_ident() != _signals.main_thread:
            return raw(*args)
        own = namespace.Gio.Cancellable()
        with _signals.Call(own):
            if signature.cancellable is None:
                return call_with_current(own, args)
            given = args[at]
            args = (*args[:at], own, *args[at + 1:])
            return raw(*args) if given is None else call_linked(given, own, args)

    def call_with_current(own, args):
        own.push_current()
        try:
            return raw(*args)
        finally:
            own.pop_current()

    def call_linked(given, own, args):
        unlink, result = _link(given, own, namespace), None
        try:
            result = raw(*args)
            return result
        finally:
            if isinstance(result, namespace.GObject.Object):
                result.weak_ref(unlink)  # it may heed its cancellable as long as it lives
            else:
                unlink()

    return call


def _link(given, own, namespace):
    """Cancels own when given is cancelled. Returns a function that ends this."""
    link = namespace.GObject.Object.connect(given, "cancelled", lambda _: own.cancel())
    if given.is_cancelled():
        own.cancel()
    return lambda: namespace.GObject.Object.disconnect(given, link)


# --- asyncio ---


class Awaitable:
    """A call that runs on a thread of its own: it begins at once, and `await` gives what it returns. Cancelling the task cancels the
    call. A call without a cancellable heeds GLib's current one."""

    def __init__(self, call, cancellable):
        import asyncio  # takes longer than all of this module

        self.loop = asyncio.get_running_loop()
        self.future = self.loop.create_future()
        self.future.add_done_callback(lambda future: cancellable.cancel() if future.cancelled() else None)
        threading.Thread(target=self._run, args=(call, cancellable), name="muster-async", daemon=True).start()

    def _run(self, call, cancellable):
        cancellable.push_current()
        try:
            value, error = call(), None
        except BaseException as failure:
            value, error = None, failure
        cancellable.pop_current()
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self._settle, value, error)

    def _settle(self, value, error):
        if self.future.cancelled():
            return
        if error is not None:
            self.future.set_exception(error)
        else:
            self.future.set_result(value)

    def __await__(self):
        return self.future.__await__()
