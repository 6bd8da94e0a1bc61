# SPDX-License-Identifier: Apache-2.0
"""Which of the library's functions wait: Ctrl-C ends them, and each has an awaitable form.

These are all that take a deadline, a timeout or a cancellable, or that read or write files.
"""
TIMES = ("deadline_us", "timeout_us")
# What reads or writes files, which may be an object store's: by its arguments, or as a method.
_FILES = {"storage", "directory", "path", "prefix"}
_STORES = {"Storage", "Saver", "BundleReader", "BundleWriter", "Backup", "JobCheckpoint", "WorkerTrainingState", "CheckpointState"}
ADDERS = {"init_feeds": "feed", "map": "add_key"}  # fields that are dicts, and the methods that add to them
FILLED = ("trained", "evaluated")  # what a call fills in and returns, in the place of a boolean
# What has a time and doesn't wait.
_ARITHMETIC = ("deadline_after", "deadline_remaining", "deadline_check", "ran_out", "finish_barrier_hook_new")


def is_path(name):
    """Whether a text argument of that name is a file's."""
    return (name in _FILES and name != "storage") or name == "from" or name.endswith(("_file", "_dir", "_path"))


def blocks(name, arguments, throws, class_name):
    """class_name: of its class, or None. arguments: their names."""
    if name in _ARITHMETIC or name.endswith("_async") or (name.endswith("_finish") and "result" in arguments):
        return False
    if set(TIMES) & set(arguments):
        return True
    return throws and ("cancellable" in arguments or bool(_FILES & set(arguments)) or class_name in _STORES)
