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
import collections.abc
import datetime
import difflib
import math
import queue
import threading
import typing

from gi import _gi
from gi.repository import Gio, GLib, GObject
from muster import _calls, _options, _tensors

from ..module import get_introspection_module

Muster = get_introspection_module("Muster")

__all__ = []


def _public(thing):
    __all__.append(thing.__name__)
    return thing


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

    def __str__(self):
        return self.message

    def __repr__(self):
        return "Muster.%s(%r)" % (type(self).__name__, self.message)


def _status(name, base=StatusError, doc=""):
    cls = type(name, (base,), {"__doc__": doc, "__module__": "gi.repository.Muster"})
    globals()[name] = cls
    return _public(cls)


_BY_CODE = {
    getattr(Muster.Error, name): _status("".join(word.capitalize() for word in name.split("_")), doc="Muster.Error.%s" % name)
    for name in ("CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED",
                 "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE",
                 "DATA_LOSS", "UNAUTHENTICATED")
}
_status("NotReady", globals()["DeadlineExceeded"], "The model wasn't ready in time. `reasons` tells why.")
_status("Fenced", globals()["FailedPrecondition"], "Another chief holds the model, or has prepared it.")
_status("JobOver", globals()["OutOfRange"], "The job has ended, at report.final_step.")


def _new_error(cls, message="unknown error", domain="pygi-error", code=0):
    """PyGObject raises GLib.Error (message, domain, code): muster's become the class of their code."""
    if cls is GLib.Error and domain == _DOMAIN:
        cls = _BY_CODE.get(code, StatusError)
    return RuntimeError.__new__(cls, message, domain, code)


_DOMAIN = GLib.quark_to_string(Muster.error_quark())
GLib.Error.__new__ = staticmethod(_new_error)


# --- tensors ---


@_public
def tensor(value, dtype=None):
    """Muster.Tensor (value, dtype): a copy."""
    return _tensors.copy_of(Muster.Tensor, value, dtype)


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
    for name, value in (feeds or {}).items():
        dtype = graph.placeholder_dtype(name) if graph is not None else Muster.DType.INVALID
        step.feed(name, _tensors.to_tensor(value, None if dtype == Muster.DType.INVALID else dtype))
    return step, structure


@_tensors.added_to(Muster.Session)
def run(self, fetches=(), feeds=None, *, targets=(), timeout=None, cancellable=None):
    """Runs a step. fetches: "y:0" gives a tensor, "train" (an operation) None; lists, tuples and dicts of names give the same of values.
    feeds: a dict of names and values; arrays are borrowed until the call returns. Values for a placeholder get its type."""
    return _prepare_run(self, fetches, feeds, targets=targets, timeout=timeout)(cancellable)


def _prepare_run(self, fetches=(), feeds=None, *, targets=(), timeout=None):
    step, structure = _compose(self.graph(), fetches, feeds, targets)
    return lambda cancellable: structure(step.run(self, _us(timeout), cancellable))


@_tensors.added_to(Muster.Session)
def __enter__(self):
    return self


@_tensors.added_to(Muster.Session)
def __exit__(self, *failure):
    self.close_quietly()


@_tensors.added_to(Muster.MonitoredSession)
def run(self, fetches=(), feeds=None, *, targets=(), with_hooks=True, timeout=None):  # noqa: F811
    """As Session.run (), around which the hooks are called; in another session if the master has lost this one."""
    return _prepare_monitored_run(self, fetches, feeds, targets=targets, with_hooks=with_hooks, timeout=timeout)(None)


def _prepare_monitored_run(self, fetches=(), feeds=None, *, targets=(), with_hooks=True, timeout=None):
    session = self.session()
    step, structure = _compose(session.graph() if session is not None else None, fetches, feeds, targets)
    return lambda _cancellable: structure(self.run_builder(step, with_hooks, _us(timeout)))


@_tensors.added_to(Muster.MonitoredSession)
def __enter__(self):  # noqa: F811
    return self


@_tensors.added_to(Muster.MonitoredSession)
def __exit__(self, kind, failure, trace):  # noqa: F811
    """Ends it: the hooks hear of a failure, and OutOfRange, the end of the input, is none."""
    if failure is None:
        self.end()
        return None
    if not isinstance(failure, GLib.Error):
        failure = GLib.Error("%s: %s" % (kind.__name__, failure), _DOMAIN, int(Muster.Error.UNKNOWN))
    try:
        self.finish(failure)
        return isinstance(failure, globals()["OutOfRange"])
    except GLib.Error:
        return False


# --- options ---


def _set_option(options, name, value):
    """A field by its name; one in microseconds also without "_us", in seconds; functions by set_NAME ()."""
    cls = type(options)
    if isinstance(getattr(cls, name + "_us", None), property):
        _options.assign(Muster, options, name + "_us", _us(value) or 1)  # 0 in C: the default
    elif hasattr(cls, "set_" + name):
        getattr(options, "set_" + name)(value)
    elif isinstance(getattr(cls, name, None), property):
        _options.assign(Muster, options, name, value)
    elif _options.part_with(cls, name, name + "_us"):
        _set_option(getattr(options, _options.part_with(cls, name, name + "_us")), name, value)
    else:
        raise TypeError("%s has no option '%s'; its options are %s" % (cls.__name__, name, ", ".join(sorted(_options.fields(cls)))))


def _blank(cls):
    """A zeroed struct. PyGObject's own wouldn't free what is put in it: the value has a copy, made and freed by its type."""
    return GObject.Value(cls.__gtype__, _gi.Boxed.__new__(cls)).get_boxed()


def _make_options(cls, new, fields):
    given = [_options.plain(fields.pop(argument.get_name(), None)) for argument in new.get_arguments()] if new is not None else []
    options = cls.new(*given) if new is not None else _blank(cls)
    for name, value in fields.items():
        _set_option(options, name, value)
    return options


def _refuse_unknown(cls):
    """A misspelled field of a struct is an error, not an attribute that nobody reads. Options' fields are set with what they own."""
    is_options = cls.__name__.endswith(_options.NAMES)

    def __setattr__(self, name, value):
        if is_options and hasattr(cls, "set_" + name):
            getattr(self, "set_" + name)(value)
        elif is_options and isinstance(getattr(cls, name, None), property):
            _options.assign(Muster, self, name, value)
        elif name.startswith("_") or hasattr(cls, name):
            super(cls, self).__setattr__(name, value)
        elif _options.part_with(cls, name):
            setattr(getattr(self, _options.part_with(cls, name)), name, value)
        else:
            near = difflib.get_close_matches(name, [each for each in {*vars(cls), *_options.fields(cls)} if not each.startswith("_")], 1)
            way = "; did you mean '%s'?" % near[0] if near else ""
            raise AttributeError("%s has no attribute '%s'%s" % (cls.__name__, name, way))

    cls.__setattr__ = __setattr__


def _make_by_name(cls, info):
    """Options take keywords. Another struct without new () in C is blank."""
    new = next((method for method in info.get_methods() if method.is_constructor() and method.get_name() == "new"), None)
    if info.get_name().endswith(_options.NAMES):
        cls.__new__ = staticmethod(lambda cls, **fields: _make_options(cls, new, fields))
        cls.__init__ = lambda self, **fields: None
    elif new is None and info.get_fields() and issubclass(cls, _gi.Boxed):
        cls.__new__ = staticmethod(_blank)


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
        raise _with_report(error, report) from None


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
class WaitEvent(typing.NamedTuple):
    """What wait_events () gives: a line and its reasons each time the situation changes, at last the session."""

    message: str
    reasons: tuple
    session: typing.Optional[Muster.Session] = None


_waiting = threading.local()  # where a waiting thread puts its events


def _put_event(message, readiness, reasons, *_):
    events = getattr(_waiting, "events", None)
    if events is not None:
        events.put(WaitEvent(message, _copies(reasons)))


@_tensors.added_to(Muster.SessionManager)
def wait_events(self, master, timeout=None):
    """for event in manager.wait_events (master): waits for the model on a thread; the last event has the session. Raises what
    wait_for_session () raises. Leaving the loop cancels the wait. It takes the manager's progress function."""
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


# --- all functions ---


class _Namespace:
    """What _calls needs of this module."""

    GLib, Gio, GObject = GLib, Gio, GObject
    forever = Muster.WAIT_FOREVER
    us, deadline, reported = staticmethod(_us), staticmethod(deadline), staticmethod(_reported)
    tag_interface = int(_gi.TypeTag.INTERFACE)
    direction_out = int(_gi.Direction.OUT)

    @staticmethod
    def options(name, fields):
        cls = getattr(Muster, name)
        return cls(**fields)


def _adapt_class(info):
    cls, awaitables = None, []
    if isinstance(info, _gi.StructInfo):
        _refuse_unknown(getattr(Muster, info.get_name()))
        _make_by_name(getattr(Muster, info.get_name()), info)
        if info.get_name().endswith(_options.NAMES):
            _options.nest(Muster, getattr(Muster, info.get_name()), info)
    for method in info.get_methods():
        adapted, awaitable = _calls.adapt(method, method, _Namespace)
        if adapted is None:
            continue
        cls = cls or getattr(Muster, info.get_name())
        if method.__name__ in vars(cls) and not hasattr(vars(cls)[method.__name__], "raw"):
            setattr(cls, method.__name__, adapted)
        if awaitable is not None:
            awaitables.append((method.__name__ + "_async", awaitable))
    for name, awaitable in awaitables:
        in_c = vars(cls).get(name)
        setattr(cls, name, _calls.with_callback(awaitable, in_c) if in_c is not None else awaitable)


def _adapt_functions(infos):
    awaitables = []
    for info in infos:
        adapted, awaitable = _calls.adapt(info, info, _Namespace)
        if adapted is not None:
            _add(info.get_name(), adapted.__func__)
        if awaitable is not None:
            awaitables.append(awaitable.__func__)
    for awaitable in awaitables:
        in_c = globals().get(awaitable.__name__) or getattr(Muster, awaitable.__name__, None)
        _add(awaitable.__name__, _calls.with_callback(awaitable, in_c) if in_c is not None else awaitable)


def _add(name, function):
    globals()[name] = function
    __all__.append(name)


def _adapt_all():
    infos = _gi.Repository.get_default().get_infos("Muster")
    for info in infos:
        if isinstance(info, (_gi.ObjectInfo, _gi.InterfaceInfo, _gi.StructInfo)):
            _adapt_class(info)
    _adapt_functions([info for info in infos if isinstance(info, _gi.FunctionInfo) and not info.get_name().startswith("deadline_")])
    Muster.Session.run_async = _calls.awaitable("run", _prepare_run, _Namespace)
    Muster.MonitoredSession.run_async = _calls.awaitable("run", _prepare_monitored_run, _Namespace)


_adapt_all()
