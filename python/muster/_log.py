# SPDX-License-Identifier: Apache-2.0
"""The library's log, by Python's logging: muster.use_logging ()."""
import atexit
import ctypes
import logging

from gi.repository import GLib, Muster

_LEVELS = (  # GLib's, from the most severe, and Python's
    (GLib.LogLevelFlags.LEVEL_ERROR, logging.CRITICAL), (GLib.LogLevelFlags.LEVEL_CRITICAL, logging.ERROR), (GLib.LogLevelFlags.LEVEL_WARNING, logging.WARNING),
    (GLib.LogLevelFlags.LEVEL_INFO, logging.INFO), (GLib.LogLevelFlags.LEVEL_DEBUG, logging.DEBUG))
_HANDLED = 1  # G_LOG_WRITER_HANDLED


class _Field(ctypes.Structure):
    """GLogField."""

    _fields_ = [("key", ctypes.c_char_p), ("value", ctypes.c_void_p), ("length", ctypes.c_ssize_t)]

    def text(self):
        return ctypes.string_at(self.value, self.length).decode("utf-8", "replace")


_Writer = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint, ctypes.POINTER(_Field), ctypes.c_size_t, ctypes.c_void_p)
_glib = ctypes.CDLL("libglib-2.0.so.0")
_glib.g_log_writer_default.argtypes = [ctypes.c_uint, ctypes.POINTER(_Field), ctypes.c_size_t, ctypes.c_void_p]
_logger = None


@_Writer
def _write(level, fields, n, data):
    texts = {fields[i].key.decode(): fields[i] for i in range(n)}
    if "GLIB_DOMAIN" not in texts or texts["GLIB_DOMAIN"].text() != "Muster" or _logger is None:
        return _glib.g_log_writer_default(level, fields, n, data)
    texts = {key: field.text() for key, field in texts.items()}
    known = {key[len("MUSTER_"):].lower(): text for key, text in texts.items() if key.startswith("MUSTER_")}
    _logger.log(_of_glib(level), "%s", texts.get("MESSAGE", ""), extra={"muster": known})
    return _HANDLED


def _of_glib(level):
    return next((ours for glib, ours in _LEVELS if level & int(glib)), logging.INFO)


def use_logging(logger=None, level=None):
    """Sends the library's messages to a logger of Python's logging (by default "muster"), from now on and for the process.

    logger: a logger or its name. level: the least severe, as logging has it, a number or a name (by default the logger's own). A record's attribute `muster` is a dict of the message's
    fields, of which `event` is there always. GLib has one writer for a process, set once: not beside another of the program's.
    """
    global _logger
    logger = logging.getLogger(logger or "muster") if logger is None or isinstance(logger, str) else logger
    least = logger.getEffectiveLevel() if level is None else logging._checkLevel(level)
    is_first, _logger = _logger is None, logger
    Muster.log_set_level(next((glib for glib, ours in reversed(_LEVELS) if ours >= least), GLib.LogLevelFlags.LEVEL_CRITICAL))
    if is_first:
        _glib.g_log_set_writer_func(_write, None, None)
        atexit.register(Muster.log_set_level, GLib.LogLevelFlags.LEVEL_ERROR)  # other threads of the library end later than Python
