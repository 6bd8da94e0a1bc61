# SPDX-License-Identifier: Apache-2.0
"""Signals in blocking calls: Ctrl-C cancels the main thread's call, which raises KeyboardInterrupt once it has returned.

While the library runs on the main thread, Python runs no handler: C's handler only writes the signal's number to the wakeup file
descriptor. During a call that is a pipe of ours. A thread reads it, cancels the call at Ctrl-C, and passes every number on to the
descriptor that was set before, such as an asyncio loop's. Python's handlers run when the call has returned and its error has been
converted, since an exception in between would replace it; in a callback they run at once, as in any Python.
"""
import _signal  # as signal, whose functions spend 30 times as long on enumerations
import os
import select
import sys
import threading

_SIGNALS = [number for number in range(1, 32) if number != _signal.SIGINT] + [_signal.SIGINT]

_lock = threading.Lock()  # held to take a call off, and to read
_calls = []  # of the main thread, the innermost last
_pipe = None  # what the thread reads, and what C's handler writes
_wakeup_before = -1
_handlers = {}  # Python's, from before the outermost call
_arrived = []  # signals whose handlers are still to run
_unread = False  # there were signals that the thread may not have read
main_thread = threading.main_thread().ident


def _is_ctrl_c(number):
    """Whether KeyboardInterrupt is wanted: SIGINT, unless the program has a handler of its own. asyncio.run () has its Runner's."""
    handler = _handlers.get(number)
    runner = getattr(sys.modules.get("asyncio"), "Runner", ())
    return number == _signal.SIGINT and (
        handler is _signal.default_int_handler or isinstance(getattr(getattr(handler, "func", None), "__self__", None), runner))


def _interrupt():
    for call in list(_calls):
        call.is_interrupted = True
        call.cancellable.cancel()


def _read():
    """Takes what C's handler has written; with the lock."""
    try:
        numbers = os.read(_pipe[0], 256)
    except BlockingIOError:
        return
    if any(map(_is_ctrl_c, numbers)):
        _interrupt()
    try:
        if _wakeup_before != -1:
            os.write(_wakeup_before, numbers)
    except OSError:
        pass  # full or closed: C's handler couldn't have written either


def _watch(mine):
    poll = select.poll()
    poll.register(mine, select.POLLIN)
    while True:
        poll.poll()
        with _lock:
            _read()


def _start():
    global _pipe
    _pipe = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    threading.Thread(target=_watch, args=_pipe[:1], name="muster-signals", daemon=True).start()


def _on_signal(number, frame):
    """Python's handler during a call."""
    global _unread
    _unread = True
    if _is_ctrl_c(number):
        _interrupt()  # it may not have begun; and what a callback raises doesn't reach it
    if frame is None or any(frame.f_globals is vars(module) for module in _not_callbacks()):
        _arrived.append(number)
    else:
        _handlers[number](number, frame)


def _not_callbacks():
    """The modules whose code calls the library and converts its errors."""
    names = (__name__, "muster._calls", "muster._callbacks", "gi._error", "gi.overrides.Muster")
    return [sys.modules[name] for name in names if name in sys.modules]


def _begin():
    global _wakeup_before
    for number in reversed(_SIGNALS):
        handler = _signal.getsignal(number)
        if callable(handler):
            _handlers[number] = handler
            _signal.signal(number, _on_signal)
    if _pipe is None:
        _start()
    _wakeup_before = _signal.set_wakeup_fd(_pipe[1], warn_on_full_buffer=False)


def _end():
    """Restores what a callback hasn't replaced itself."""
    global _unread
    if _pipe is not None:
        current = _signal.set_wakeup_fd(_wakeup_before)
        if current != _pipe[1]:
            _signal.set_wakeup_fd(current)
        if _unread:
            _read()  # or the thread would, during another call
            _unread = False
    for number in _SIGNALS:
        if _signal.getsignal(number) is _on_signal:
            _signal.signal(number, _handlers[number])


def _run_handlers(frame):
    """Runs those that are due, and returns what the first of them raises."""
    failure = None
    while _arrived:
        number = _arrived.pop(0)
        try:
            _handlers[number](number, frame)
        except BaseException as raised:
            failure = failure or raised
    return failure


class Call:
    """What the main thread does inside `with Call (cancellable)` ends by Ctrl-C, if cancelling that ends it."""

    def __init__(self, cancellable):
        self.cancellable = cancellable
        self.is_interrupted = False

    def __enter__(self):
        _calls.append(self)
        try:
            if len(_calls) == 1:
                _begin()
        except BaseException:
            self._leave()
            raise

    def _leave(self):
        with _lock:
            if self in _calls:  # not in a child of fork ()
                _calls.remove(self)
                if not _calls:
                    _end()

    def __exit__(self, *failure):
        self._leave()
        raised = _run_handlers(sys._getframe(1)) if _arrived else None
        if raised is None and self.is_interrupted:
            raised = KeyboardInterrupt()
        if raised is not None:
            raise raised from None


def _after_fork():
    """The child has the pipe of its parent, and no thread that reads it."""
    global _lock, _pipe, main_thread
    _lock, main_thread = threading.Lock(), threading.get_ident()
    if _calls:
        _calls.clear()
        _end()
    for end in _pipe or ():
        os.close(end)
    _pipe = None


os.register_at_fork(after_in_child=_after_fork)
