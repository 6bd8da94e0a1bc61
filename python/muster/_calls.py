# SPDX-License-Identifier: Apache-2.0
"""How gi/overrides/Muster.py calls the library's functions: optional arguments, timeouts, options as keywords, awaitables, Ctrl-C.

Nothing here knows a function by its name: all is decided by the names and types of its arguments (_blocking.py).
"""
import functools
import keyword
import threading

from muster import _blocking, _callbacks, _signals


def type_of(argument):
    return argument.get_type_info() if hasattr(argument, "get_type_info") else argument.get_type()


def _interface(argument, namespace):
    """The type that an argument is of; None for a number, a text or an array."""
    return type_of(argument).get_interface() if int(type_of(argument).get_tag()) == namespace.tag_interface else None


def _options_type(argument, namespace):
    """The struct of options that an argument takes."""
    info = _interface(argument, namespace)
    return info if info is not None and info.get_name().endswith(namespace.option_names) else None


def is_text(argument, namespace):
    """Whether it is a text or an array of texts, which a path may be."""
    held = type_of(argument)
    if int(held.get_tag()) == namespace.tag_array:
        held = held.get_param_type(0)
    return int(held.get_tag()) in namespace.tags_of_text


def python_name(name):
    """A name that may be a word of Python's, from or await."""
    return name + "_" if keyword.iskeyword(name) else name


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
        self.time = next((name for name in self.names if name in _blocking.TIMES and not self.name.startswith("deadline_")), None)
        self.options, self.options_type = next(
            ((argument.get_name(), _options_type(argument, namespace)) for argument in passed if _options_type(argument, namespace)), (None, None))
        self.has_report = "report" in self.names
        self.filled = next((name for name in self.names if name in _blocking.FILLED), None)
        self.cancellable = self.names.index("cancellable") if "cancellable" in self.names else None
        self.texts = [argument.get_name() for argument in passed if is_text(argument, namespace)]
        self.bytes = [argument.get_name() for argument in passed
                      if getattr(_interface(argument, namespace), "get_name", str)() == "Bytes"]
        self.functions = {argument.get_name(): _interface(argument, namespace) for argument in passed
                          if isinstance(_interface(argument, namespace), namespace.function_type)}
        self.throws = info.can_throw_gerror()
        container = info.get_container()
        self.blocks = _blocking.blocks(self.name, self.names, self.throws, container and container.get_name())

    def is_plain(self):
        return not (self.time or self.options or self.has_report or self.blocks)

    def _may_be_missed(self, name):
        return name in self.nullable or name in (self.time, self.options)

    def text(self, first, namespace):
        """As inspect reads it; first: self, cls or nothing."""
        parts, required = list(first), [name for name in self.names if not self._may_be_missed(name)]
        last = self.names.index(required[-1]) if required else -1
        parts += [python_name(name) + ("=None" if i > last else "") for i, name in enumerate(self.names)]
        named = {"timeout": "None"} if self.time is not None else {}
        if self.options is not None:
            named.update((name, default) for name, default in namespace.keywords(self.options_type).items() if name not in self.names)
        if named:
            parts += ["*"] + ["%s=%s" % (python_name(name), default) for name, default in named.items()]
        return "(%s)" % ", ".join(parts)

    def bind(self, args, keywords, namespace, before=()):
        """All arguments in order, from those that were given. before: the object whose method it is."""
        if len(args) > len(self.names):
            raise TypeError("%s () takes %d arguments, not %d" % (self.name, len(self.names), len(args)))
        given = dict(zip(self.names, args))
        others = {}
        for name, value in keywords.items():
            if name == "timeout" and self.time is not None:
                name, value = self.time, (namespace.us if self.time == "timeout_us" else namespace.deadline)(value)
            elif name[-1] == "_" and name[:-1] in self.names:  # from_, a word of Python's
                name = name[:-1]
            if name not in self.names:
                others[name] = value
            elif name in given:
                raise TypeError("%s () got '%s' twice" % (self.name, name))
            else:
                given[name] = value
        self._add_options(given, others, namespace, before)
        passed = set(given)
        for name in self.names:
            if name not in given:
                given[name] = self._default(name, namespace)
        if self.time is not None and given[self.time] is None:
            given[self.time] = namespace.forever
        self._convert(given, namespace)
        names = self.names[:-1] if self.names[-1:] == ["user_data"] and self.names[-1] not in passed else self.names
        return [given[name] for name in names]

    def _convert(self, given, namespace):
        for name in self.texts:
            if name in given:
                given[name] = namespace.plain(given[name])
                expect_text(self.name, name, given[name])
        for name in self.bytes:
            if isinstance(given.get(name), (bytes, bytearray, memoryview)):
                given[name] = namespace.GLib.Bytes.new(bytes(given[name]))
        for name, info in self.functions.items():
            if name in given:
                given[name] = namespace.guarded(given[name], info)

    def converted(self, args, namespace):
        """Arguments in order, of which the last ones may be missing, or follow as more data."""
        given = dict(zip(self.names, args))
        self._convert(given, namespace)
        return [*given.values(), *args[len(given):]]

    def _add_options(self, given, others, namespace, before):
        if others and (self.options is None or given.get(self.options) is not None):
            name = next(iter(others))
            known = self.names + (["timeout"] if self.time is not None else [])
            raise TypeError("%s () got an unexpected argument '%s'%s" % (self.name, name, near(name, known)))
        if others or (self.options is not None and self.options not in given and self.options not in self.nullable):
            given[self.options] = namespace.options(self.options_type, others, [*before, *given.values()])

    def _default(self, name, namespace):
        if name == self.time:
            return namespace.forever
        if name in self.nullable:
            return None
        raise TypeError("%s () misses the argument '%s'" % (self.name, name))


def expect_text(function, name, value):
    """Names the argument that has something else; PyGObject's own error doesn't."""
    if value is not None and not isinstance(value, (str, bytes)) and not hasattr(value, "__iter__"):
        raise TypeError("%s () needs a text for '%s', not %r" % (function, name, value))


def naming_nearest(function):
    """A function of Python's own, whose error for an unknown argument names the nearest, as those of the library's do."""

    @functools.wraps(function)
    def call(*args, **keywords):
        try:
            return function(*args, **keywords)
        except TypeError:
            known = function.__code__.co_varnames
            unknown = next((name for name in keywords if name not in known), None)
            if unknown is None:
                raise
        raise TypeError("%s () got an unexpected argument '%s'%s" % (function.__name__, unknown, near(unknown, known)))

    return call


def no_attribute(owner, name, names):
    """The error for what isn't there: it names the nearest, and so a traceback needn't once more."""
    error = AttributeError("%s has no attribute '%s'%s" % (owner, name, near(name, names)))
    error.name = None
    return error


def near(name, names):
    """The end of an error's text: the nearest of some names, if one is near."""
    import difflib  # takes longer than all of this module

    found = difflib.get_close_matches(name, [each for each in names if not each.startswith("_")], 1)
    return "; did you mean '%s'?" % found[0] if found else ""


def _binder(info):
    return (lambda function: function) if info.is_method() else classmethod if info.is_constructor() else staticmethod


def adapt(raw, info, namespace):
    """What replaces raw, with what is missing filled in, and its awaitable form, or None."""
    signature = Signature(info, namespace)
    first = ["self"] if info.is_method() else ["cls"] if info.is_constructor() else []
    bind, text = _binder(info), signature.text(first, namespace)
    simply = _explained(raw, signature, len(first), namespace) if signature.throws else raw
    if signature.is_plain():
        return bind(_described(_plain(simply, signature, len(first), namespace), raw, text)), None
    cancelled_by = _cancelled_by(simply, signature, len(first), namespace)
    interruptible = _interruptible(simply, cancelled_by, namespace) if signature.blocks else simply

    def call(*args, **keywords):
        return run(interruptible, *prepare(args, keywords))

    def prepare(args, keywords):
        before = args[:len(first)]
        return before, signature.bind(args[len(first):], keywords, namespace, before)

    def run(function, before, bound):
        if signature.filled is not None:
            return namespace.filled(lambda: function(*before, *bound), bound, signature.names.index(signature.filled))
        if signature.has_report:
            return namespace.reported(lambda report: function(*before, *bound), bound, signature.names.index("report"))
        return function(*before, *bound)

    def start(*args, **keywords):
        (before, given), own = prepare(args, keywords), namespace.Gio.Cancellable()
        bound = [_own(each) for each in given]
        return _call_class()(lambda: run(functools.partial(cancelled_by, own), before, bound), own, given)

    if not signature.blocks:
        return bind(_described(call, raw, text)), None
    start.__text_signature__ = text
    return bind(_described(call, raw, text)), bind(_describe(start, signature.name))


def _plain(raw, signature, n_before, namespace):
    def call(*args, **keywords):
        if keywords:
            args = [*args[:n_before], *signature.bind(args[n_before:], keywords, namespace)]
        elif signature.texts or signature.functions or signature.bytes:
            args = [*args[:n_before], *signature.converted(args[n_before:], namespace)]
        return raw(*args)

    return call


def _described(call, raw, text):
    container = raw.get_container() if hasattr(raw, "get_container") else None
    call.__name__, call.__module__ = raw.__name__, "muster"
    call.__qualname__ = "%s.%s" % (container.get_name(), raw.__name__) if container is not None else raw.__name__
    call.__text_signature__, call.raw = text, raw
    return call


def _explained(raw, signature, n_before, namespace):
    """raw, whose errors say more: what raised them in a function of the program's, or that a file isn't there."""

    def call(*args):
        outer, failure = _callbacks.enter(), None
        try:
            result = raw(*args)
        except namespace.GLib.Error as error:
            failure = namespace.explained(error, dict(zip(signature.names, args[n_before:])))
        finally:
            failure = _callbacks.leave(outer) or failure
        if failure is not None:
            raise failure
        return result

    return call


def awaitable(name, prepare, namespace, text="(*args, **keywords)"):
    """The awaitable form of a function of Python's own: prepare (*args, **keywords) gives a function of a cancellable, which is GLib's
    current one, too."""

    def start(*args, cancellable=None, **keywords):
        function, own = prepare(*args, **keywords), namespace.Gio.Cancellable()
        return _call_class()(lambda: _linked(lambda: _with_current(own, lambda: function(own)), cancellable, own, namespace), own, cancellable)

    start.__text_signature__ = text
    return _describe(start, name)


def with_callback(awaitable, in_c):
    """C's asynchronous form where a callback is given, the awaitable one where there is none."""

    def start(*args, **keywords):
        is_given = keywords.get("callback") is not None or any(map(callable, args))
        return (in_c if is_given else awaitable)(*args, **keywords)

    start.__name__ = start.__qualname__ = awaitable.__name__
    start.__module__ = "muster"
    start.__doc__ = awaitable.__doc__
    start.__text_signature__ = awaitable.__text_signature__
    return start


def _describe(start, name):
    start.__name__ = start.__qualname__ = name + "_async"
    start.__module__ = "muster"
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
