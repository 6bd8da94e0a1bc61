# SPDX-License-Identifier: Apache-2.0
"""What makes gi.repository.Muster a Python library: NumPy without a copy, dicts of feeds, keywords, seconds, exceptions by code.

The raw names stay as they are. What is added:

- Muster.Tensor (value) from numbers, lists, strings and arrays; numpy.asarray (tensor) is a read-only view of it.
- session.run (fetches, feeds): arrays are borrowed for the call, not copied.
- timeout=: seconds or a timedelta, wherever C has timeout_us or deadline_us; None, the default, is no limit.
- options as keyword arguments, of their class or of a call that takes them.
- Muster.StatusError and a subclass for each code; they are GLib.Error, too.
- `with` closes sessions.
"""
import collections
import collections.abc
import datetime
import errno
import functools
import importlib
import math
import os
import threading

from gi import _gi
from gi.repository import Gio, GLib, GObject
import muster
from muster import _library

_library.load("Muster", "libmuster.so.0")

from muster import _blocking, _calls, _callbacks, _modules, _options, _tensors, _texts  # noqa: E402

from ..module import get_introspection_module

Muster = get_introspection_module("Muster")

__all__ = []


def _public(thing):
    __all__.append(thing.__name__)
    return thing


_added = {}  # a class's name: functions of this module that it gets


def _added_to(name):
    def add(function):
        _added.setdefault(name, []).append(function)
        return function

    return add


# --- time ---


def _us(timeout):
    """Microseconds of a timeout: seconds or a timedelta; None: no limit."""
    if timeout is None:
        return Muster.WAIT_FOREVER
    if isinstance(timeout, datetime.timedelta):
        timeout = timeout.total_seconds()
    if isinstance(timeout, bool) or math.isnan(timeout):
        raise TypeError("invalid timeout %r (use seconds, a timedelta, or None for no limit)" % (timeout,))
    us = timeout * 1e6
    return Muster.WAIT_FOREVER if us >= Muster.WAIT_FOREVER else max(0, math.ceil(us))


@_public
def deadline(timeout=None):
    """The instant `timeout` (seconds, a timedelta, or None: never) from now, for arguments named deadline_us."""
    return Muster.deadline_after(Muster.system_clock().now_us(), _us(timeout))


# --- errors ---


@_public
class StatusError(GLib.Error):
    """An error of muster's domain. Its subclasses are the codes; `reasons` has what is known about the cause."""

    reasons = ()
    report = None
    _code = int(Muster.Error.UNKNOWN)

    def __init__(self, message="unknown error", domain=None, code=None):
        super().__init__(message, _DOMAIN if domain is None else domain, self._code if code is None else code)

    def __str__(self):
        return self.message

    def __repr__(self):
        return "muster.%s(%r)" % (type(self).__name__, self.message)

    def __reduce__(self):
        """For another process: without the report and the reasons, which are the library's."""
        of_file = {"errno": self.errno, "filename": self.filename} if isinstance(self, OSError) else None
        return type(self), (self.message, self.domain, self.code), of_file


StatusError.__module__ = "muster"


def _status(name, base=StatusError, doc="", *more, code=None):
    cls = type(name, (base, *more), {"__doc__": doc, "__module__": "muster", "_code": base._code if code is None else int(code)})
    globals()[name] = cls
    return _public(cls)


_BY_CODE = {
    getattr(Muster.Error, name): _status("".join(word.capitalize() for word in name.split("_")), doc="Muster.Error.%s" % name,
                                         code=getattr(Muster.Error, name))
    for name in ("CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED",
                 "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE",
                 "DATA_LOSS", "UNAUTHENTICATED")
}
_status("NotReady", globals()["DeadlineExceeded"], "The model wasn't ready in time. `reasons` tells why.")
_status("Fenced", globals()["FailedPrecondition"], "Another chief holds the model, or has prepared it.")
_status("JobOver", globals()["OutOfRange"], "The job has ended, at report.final_step.")
_status("FileNotFound", globals()["NotFound"], "A file isn't there: a FileNotFoundError, too, with its `filename`.", FileNotFoundError)


def _new_error(cls, *args, **keywords):
    """PyGObject raises GLib.Error (message, domain, code): muster's become the class of their code. A program's subclass takes what it likes."""
    if cls is GLib.Error:
        _, domain, code = (*args, *("unknown error", "pygi-error", 0)[len(args):])[:3]
        domain, code = keywords.get("domain", domain), keywords.get("code", code)
        if domain == _DOMAIN:
            cls = _BY_CODE.get(code, StatusError)
    return FileNotFoundError.__new__(cls, *args[:1]) if issubclass(cls, OSError) else RuntimeError.__new__(cls, *args)


_DOMAIN = GLib.quark_to_string(Muster.error_quark())
GLib.Error.__new__ = staticmethod(_new_error)


def _status_of(error):
    """The error for an exception of the program's. StopIteration is the end of the input, as in TensorFlow."""
    if isinstance(error, GLib.Error):
        return error
    return globals()["OutOfRange" if isinstance(error, StopIteration) else "Unknown"](_callbacks.text_of(error))


def _missing_file(error, given):
    """The file that isn't there, of the arguments by their names, if that is why a call has failed."""
    if type(error) is globals()["NotFound"] or error.matches(GLib.file_error_quark(), GLib.FileError.NOENT):
        for name, path in given.items():
            if _blocking.is_path(name) and isinstance(path, str) and "://" not in path and not any(map(os.path.exists, (path, path + ".index"))):
                return path
    return None


def _explained(error, given):
    """An error of a call with such arguments, with what has caused it."""
    path, cause = _missing_file(error, given), _callbacks.take_raised(error.message)
    if path is not None:
        error = globals()["FileNotFound"](error.message, error.domain, error.code)
        error.errno, error.filename = errno.ENOENT, path
    if cause is not None and cause is not error:
        error.__cause__ = cause
    return error


# --- tensors ---


@_public
def tensor(value, dtype=None):
    """Muster.Tensor (value, dtype): a copy."""
    return _tensors.copy_of(Muster.Tensor, value, dtype)


# --- masters ---

_OFFERS = {"local": "LocalMaster", "tensorflow": "TensorflowMaster"}  # by the beginning of a target


@_added_to("Master")
def new_for_target(target):
    """The master of a target: grpc://HOST:PORT, or in this process "local" and "tensorflow"."""
    offer = _OFFERS.get(target.partition(":")[0])
    if offer is not None and not Muster.Master.is_offered(target):
        getattr(muster, offer).offer()
    return new_for_target.raw(target)


Muster.peer_storage_offer()


# --- steps ---


class _Fetches:
    """The structure of what is fetched: "loss:0" is a tensor, "train" an operation, which is run and gives None."""

    def __init__(self, step):
        self.step = step
        self.n = 0

    def add(self, wanted):
        """Returns a function of the list of values."""
        if isinstance(wanted, str):
            return self.add_name(wanted)
        if isinstance(wanted, collections.abc.Mapping):
            parts = {key: self.add(each) for key, each in wanted.items()}
            return lambda values: {key: part(values) for key, part in parts.items()}
        if isinstance(wanted, (list, tuple)):
            parts = [self.add(each) for each in wanted]
            make = type(wanted)._make if hasattr(wanted, "_make") else type(wanted)
            return lambda values: make(part(values) for part in parts)
        raise TypeError("invalid fetch %r (use a name, or lists or dicts of names)" % (wanted,))

    def add_name(self, name):
        if ":" not in name:
            self.step.target(name)
            return lambda values: None
        i = self.step.fetch(name)
        return lambda values: values[i]


def _compose(graph, fetches, feeds, targets):
    """A step, and a function that gives its values the structure of fetches."""
    step = Muster.StepBuilder.new()
    structure = _Fetches(step).add(fetches)
    for target in [targets] if isinstance(targets, str) else targets:
        step.target(target)
    step._fed = [_typed(graph, name, value) for name, value in (feeds or {}).items()]  # with the arrays that they borrow
    for name, value in zip(feeds or {}, step._fed):
        step.feed(name, value)
    return step, structure


def _typed(graph, name, value):
    """A tensor of a value, of the type that is fed there; without a graph of the value's own. A tensor stays what it is."""
    if isinstance(value, Muster.Tensor):
        return value
    dtype = graph.placeholder_dtype(name) if graph is not None else Muster.DType.INVALID
    return _tensors.to_tensor(value, None if dtype == Muster.DType.INVALID else dtype)


@_added_to("Session")
@_calls.naming_nearest
def run(self, fetches=(), feeds=None, *, targets=(), timeout=None, cancellable=None):
    """Runs a step. fetches: "y:0" gives a tensor, "train" (an operation) None; lists, tuples and dicts of names give the same of values.
    feeds: a dict of names and values; arrays are borrowed until the call returns. Values for a placeholder get its type."""
    return _prepare_run(self, fetches, feeds, targets=targets, timeout=timeout)(cancellable)


def _prepare_run(self, fetches=(), feeds=None, *, targets=(), timeout=None):
    step, structure = _compose(self.graph(), fetches, feeds, targets)
    return lambda cancellable: structure(step.run(self, _us(timeout), cancellable))


@_added_to("Session")
def __enter__(self):
    return self


@_added_to("Session")
def __exit__(self, *failure):
    self.close_quietly()


@_added_to("MonitoredSession")
@_calls.naming_nearest
def run(self, fetches=(), feeds=None, *, targets=(), with_hooks=True, timeout=None):  # noqa: F811
    """As Session.run (), around which the hooks are called; in another session if the master has lost this one."""
    return _prepare_monitored_run(self, fetches, feeds, targets=targets, with_hooks=with_hooks, timeout=timeout)(None)


def _prepare_monitored_run(self, fetches=(), feeds=None, *, targets=(), with_hooks=True, timeout=None):
    session = self.session()
    step, structure = _compose(session.graph() if session is not None else None, fetches, feeds, targets)
    return lambda _cancellable: structure(self.run_builder(step, with_hooks, _us(timeout)))


@_added_to("MonitoredSession")
def __enter__(self):  # noqa: F811
    return self


@_added_to("MonitoredSession")
def __exit__(self, kind, failure, trace):  # noqa: F811
    """Ends it: the hooks hear of a failure, and OutOfRange or StopIteration, the end of the input, is none."""
    if failure is None:
        self.end()
        return None
    failure = _status_of(failure)
    try:
        self.finish(failure)
        return isinstance(failure, globals()["OutOfRange"])
    except GLib.Error:
        return False


@_added_to("Preemption")
def __enter__(self):  # noqa: F811
    """Handles SIGTERM until the block ends."""
    self.take_signals(False)
    return self


@_added_to("Preemption")
def __exit__(self, *failure):  # noqa: F811
    self.release_signals()


@_added_to("Membership")
def __enter__(self):  # noqa: F811
    return self


@_added_to("Membership")
def __exit__(self, kind, failure, trace):  # noqa: F811
    """Leaves the job. A failure of the block goes on, also where the master can't be reached."""
    try:
        self.leave()
    except StatusError:
        if failure is None:
            raise


# --- options ---


def _set_option(options, name, value):
    """A field by its name; one in microseconds also without "_us", in seconds; functions by set_NAME ()."""
    cls = type(options)
    if isinstance(getattr(cls, name + "_us", None), property):
        _options.assign(Muster, options, name + "_us", _us(value) or 1)  # 0 in C: the default
    elif hasattr(cls, "set_" + name):
        getattr(options, "set_" + name)(value)
    elif isinstance(getattr(cls, name, None), property):
        _assign(options, name, value)
    elif _options.part_with(cls, name, name + "_us"):
        _set_option(getattr(options, _options.part_with(cls, name, name + "_us")), name, value)
    else:
        known = _options.fields(cls)
        near = _calls.near(name, known | {each[:-len("_us")] for each in known if each.endswith("_us")})
        raise TypeError("%s has no option '%s'%s" % (cls.__name__, name, near or "; its options are " + ", ".join(sorted(known))))


def _assign(options, name, value):
    adder = _blocking.ADDERS.get(name)
    if not hasattr(type(options), adder or ""):
        _options.assign(Muster, options, name, value)
        return
    for key, each in (value or {}).items():
        getattr(options, adder)(key, _tensors.copy_of(Muster.Tensor, each) if adder == "feed" else each)


def _blank(cls):
    """A zeroed struct. PyGObject's own wouldn't free what is put in it: the value has a copy, made and freed by its type."""
    return GObject.Value(cls.__gtype__, _gi.Boxed.__new__(cls)).get_boxed()


def _options_signature(info, new):
    first = {} if new is None else {each.get_name(): "=None" if each.may_be_null() else "" for each in new.get_arguments()}
    fields = ["%s=%s" % each for each in _options.keywords(info).items() if each[0] not in first]
    return "(%s)" % ", ".join(["cls", *("%s%s" % each for each in first.items()), *["*"] * bool(fields), *fields])


def _make_options(cls, new, args, fields):
    names = [argument.get_name() for argument in new.get_arguments()] if new is not None else []
    if len(args) > len(names) or set(names[:len(args)]) & set(fields):
        raise TypeError("%s () takes %s in order, and other options by name" % (cls.__name__, ", ".join(names) or "nothing"))
    fields = {**dict(zip(names, args)), **fields}
    given = [_options.plain(fields.pop(name, None)) for name in names]
    for argument, value in zip(new.get_arguments() if new is not None else (), given):
        if _calls.is_text(argument, _Namespace):
            _calls.expect_text(cls.__name__, argument.get_name(), value)
    options = cls.new(*given) if new is not None else _blank(cls)
    for name, value in fields.items():
        _set_option(options, name, value)
    return options


def _get_within(self, name):
    """A field of the options within options, where Python finds no attribute."""
    part = None if name.startswith("_") else _options.part_with(type(self), name)
    if part is None:
        raise _NoAttribute(type(self), name)
    return getattr(getattr(self, part), name)


class _NoAttribute(AttributeError):
    """Of a class's or an object's: names the nearest, when it is printed, since hasattr () needs no text."""

    __module__, __qualname__ = "builtins", "AttributeError"
    name = None  # or a traceback would name the nearest once more

    def __str__(self):
        cls, name = self.args
        return "%s has no attribute '%s'%s" % (_texts.name_of(cls), name, _calls.near(name, {*dir(cls), *_options.fields(cls)}))

    def __reduce__(self):
        return AttributeError, (str(self),)


def _get_of_class(cls, name):
    raise _NoAttribute(cls, name)


@functools.lru_cache(None)
def _naming_nearest(meta):
    """A class of classes, whose error for what a class lacks names the nearest."""
    return type(meta.__name__, (meta,), {"__module__": meta.__module__, "__doc__": vars(meta)["__doc__"], "__getattr__": _get_of_class})


def _refuse_unknown(cls):
    """A misspelled field is an error, not an attribute that nobody reads. Options' fields are set with what they own."""
    is_options = cls.__name__.endswith(_options.NAMES)
    plainly = cls.__setattr__

    def __setattr__(self, name, value):
        if is_options and hasattr(cls, "set_" + name):
            getattr(self, "set_" + name)(value)
        elif is_options and isinstance(getattr(cls, name, None), property):
            _assign(self, name, value)
        elif name.startswith("_") or hasattr(cls, name) or not (self is None or _texts.is_ours(type(self))):
            plainly(self, name, value)
        elif _options.part_with(cls, name):
            setattr(getattr(self, _options.part_with(cls, name)), name, value)
        else:
            raise _NoAttribute(cls, name)

    cls.__setattr__, cls.__getattr__ = __setattr__, _get_within
    if not hasattr(type(cls), "__getattr__"):
        cls.__class__ = _naming_nearest(type(cls))


def _make_by_name(cls, info):
    """A class is called as its new (). Options take keywords. Another struct without new () in C is blank."""
    new = next((method for method in info.get_methods() if method.get_name() == "new"), None)
    if info.get_name().endswith(_options.NAMES):
        def make(cls, *args, **fields):
            return _make_options(cls, new, args, fields)

        make.__text_signature__ = _options_signature(info, new)
        cls.__new__, cls.__init__ = staticmethod(make), lambda self, *args, **fields: None
    elif new is not None and cls is not _tensors.Tensor:
        _construct(cls, cls.new)
    elif new is None and isinstance(info, _gi.StructInfo) and info.get_fields() and issubclass(cls, _gi.Boxed):
        cls.__new__ = staticmethod(_blank)


def _construct(cls, new):
    """cls (…) is cls.new (…); a subclass of the program's is made as Python does."""

    def make(wanted, *args, **keywords):
        if wanted is not cls:
            return super(cls, wanted).__new__(wanted, *args, **keywords)
        return new(*args, **keywords)

    def init(self, *args, **keywords):
        if type(self) is not cls:
            super(cls, self).__init__(*args, **keywords)

    make.__module__ = init.__module__ = "muster"
    text = getattr(getattr(new, "__func__", new), "__text_signature__", "()")
    make.__text_signature__ = text if text.startswith("(cls") else text.replace("(", "(cls, ", 1).replace(", )", ")")
    cls.__new__, cls.__init__ = staticmethod(make), init


# --- reports ---

_OUTCOMES = {Muster.Outcome.NOT_READY: "NotReady", Muster.Outcome.FENCED: "Fenced", Muster.Outcome.OVER: "JobOver"}


def _reported(call, bound, at):
    """Calls with a report: of the caller's, or one that a failure carries."""
    if bound[at] is None:
        bound[at] = Muster.SessionReport()
    report = bound[at]
    try:
        return call(report)
    except StatusError as error:
        raise _with_report(error, report) from error.__cause__


def _with_report(error, report):
    cls = globals().get(_OUTCOMES.get(report.outcome), type(error))
    if not issubclass(cls, type(error)):
        cls = type(error)
    made = cls(error.message, error.domain, error.code)
    made.report = report
    made.reasons = _copies(report.reasons)
    return made


def _copies(reasons):
    """Of a list of Muster.Reason that ends with its owner."""
    return tuple(reason.copy() for reason in reasons or ())


# --- waiting ---


@_public
class WaitEvent(collections.namedtuple("WaitEvent", ("message", "reasons", "session"), defaults=[None])):
    """What wait_events () gives: a line and its reasons each time the situation changes, at last the session."""


_waiting = threading.local()  # where a waiting thread puts its events


def _put_event(message, readiness, reasons, *_):
    events = getattr(_waiting, "events", None)
    if events is not None:
        events.put(WaitEvent(message, _copies(reasons)))


@_added_to("SessionManager")
def wait_events(self, master, timeout=None):
    """for event in manager.wait_events (master): waits for the model on a thread; the last event has the session. Raises what
    wait_for_session () raises. Leaving the loop cancels the wait. It takes the manager's progress function."""
    import queue

    events, cancellable = queue.Queue(), Gio.Cancellable()

    def wait():
        _waiting.events = events
        try:
            session = self.wait_for_session(master, timeout=timeout, cancellable=cancellable)
            events.put(WaitEvent("ready", (), session))
        except BaseException as error:
            events.put(error)

    self.set_progress(_put_event)
    threading.Thread(target=wait, name="muster-wait", daemon=True).start()
    try:
        event = None
        while event is None or event.session is None:
            event = events.get()
            if isinstance(event, BaseException):
                raise event
            yield event
    finally:
        cancellable.cancel()


def _filled(call, bound, at):
    """Calls with a result that the call fills in, the caller's or a new one, and returns it."""
    if bound[at] is None:
        bound[at] = Muster.Trained()
    call()
    return bound[at]


# --- all functions ---


class _Namespace:
    """What _calls needs of this module."""

    GLib, Gio, GObject = GLib, Gio, GObject
    forever = Muster.WAIT_FOREVER
    us, deadline, reported, filled, explained = staticmethod(_us), staticmethod(deadline), staticmethod(_reported), staticmethod(_filled), staticmethod(_explained)
    tag_interface, tag_array = int(_gi.TypeTag.INTERFACE), int(_gi.TypeTag.ARRAY)
    tags_of_text = (int(_gi.TypeTag.UTF8), int(_gi.TypeTag.FILENAME))
    direction_out = int(_gi.Direction.OUT)
    function_type, option_names = _gi.CallbackInfo, _options.NAMES
    plain, keywords = staticmethod(_options.plain), staticmethod(_options.keywords)

    @staticmethod
    def options(info, fields, beside):
        """Options for a call with these other arguments, of which one may know the type that an init op's feed has."""
        graphs = [each.graph() for each in beside if callable(getattr(type(each), "graph", None)) and each.graph() is not None]
        for name in _blocking.ADDERS if graphs else ():
            if _blocking.ADDERS[name] == "feed" and fields.get(name):
                fields = {**fields, name: {key: _typed(graphs[0], key, each) for key, each in fields[name].items()}}
        return getattr(importlib.import_module("gi.repository." + info.get_namespace()), info.get_name())(**fields)

    @staticmethod
    def guarded(function, info):
        return _callbacks.guarded(function, info, _names_of(info), _status_of)


def _names_of(info):
    """The names of the arguments that a callback gets in Python."""
    return _calls.Signature(info, _Namespace).names


def _guard_subclass(cls, **keywords):
    """Of a subclass of the program's."""
    _callbacks.guard_methods(cls, _names_of, _status_of)


class _OfNoHook:
    """A hook's function, which its class lacks in C: by super () it does nothing. PyGObject finds its info on the class."""

    def __init__(self, info):
        self.info = info

    def __get__(self, hook, cls=None):
        return self.info.__get__(None, cls) if hook is None else lambda *args: None


def _adapt_class(cls, info):
    """Changes a class of the library's."""
    if isinstance(info, _gi.StructInfo) and info.get_name().endswith(_options.NAMES):
        _options.nest(Muster, cls, info)
    for function in _added.get(cls.__name__, []) if info.get_namespace() == "Muster" else []:
        function.raw, function.__module__ = vars(cls).get(function.__name__), "muster"
        is_static = isinstance(function.raw, _gi.FunctionInfo) and not function.raw.is_method()
        setattr(cls, function.__name__, staticmethod(function) if is_static else function)
    _adapt_methods(cls, info)
    for method in info.get_vfuncs() if cls.__name__ == "Hook" else ():
        setattr(cls, "do_" + method.get_name(), _OfNoHook(method))
    _refuse_unknown(cls)
    _make_by_name(cls, info)
    if "__repr__" not in vars(cls):
        _texts.describe(cls, _texts.told_fields(info, _calls.type_of) if isinstance(info, _gi.StructInfo) else (), info.get_name().endswith(_options.NAMES))
    if not isinstance(info, _gi.StructInfo):
        cls.__init_subclass__ = classmethod(_guard_subclass)


def _adapt_methods(cls, info):
    awaitables = []
    for method in info.get_methods():
        name = method.__name__
        if name not in vars(cls) or hasattr(getattr(cls, name), "raw"):
            continue
        adapted, awaitable = _calls.adapt(method, method, _Namespace)
        setattr(cls, name, adapted)
        setattr(cls, _calls.python_name(method.get_name_unescaped()), adapted)  # print, too
        if awaitable is not None:
            awaitables.append((method.get_name_unescaped() + "_async", awaitable))
    for name, awaitable in awaitables:
        in_c = vars(cls).get(name)
        setattr(cls, name, _calls.with_callback(awaitable, in_c) if in_c is not None else awaitable)


def _adapt_function(info, in_c):
    """A function, or its awaitable form, beside that of C's."""
    adapted, awaitable = _calls.adapt(info, info, _Namespace)
    if awaitable is None:
        return adapted.__func__, None
    return adapted.__func__, _calls.with_callback(awaitable.__func__, in_c) if in_c is not None else awaitable.__func__


_added_to("Session")(_calls.awaitable(
    "run", _prepare_run, _Namespace, "(self, fetches=(), feeds=None, *, targets=(), timeout=None, cancellable=None)"))
_added_to("MonitoredSession")(_calls.awaitable(
    "run", _prepare_monitored_run, _Namespace, "(self, fetches=(), feeds=None, *, targets=(), with_hooks=True, timeout=None, cancellable=None)"))


def adapt(namespace):
    """Changes a namespace whose overrides are being imported."""
    return _modules.adapt(namespace, _adapt_class, _adapt_function, _texts.name_values)


Muster = adapt("Muster")
