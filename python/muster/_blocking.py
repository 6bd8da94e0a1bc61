# SPDX-License-Identifier: Apache-2.0
"""Which of the library's functions wait, by the names of their arguments: Ctrl-C ends them, and each has an awaitable form."""
TIMES = ("deadline_us", "timeout_us")
# What reads or writes files, which may be an object store's: by its arguments, or as a method.
_FILES = {"storage", "directory", "path", "prefix"}
_STORES = {"Storage", "Saver", "BundleReader", "BundleWriter", "Backup", "JobCheckpoint", "WorkerTrainingState", "CheckpointState"}


def blocks(name, arguments, throws, class_name):
    """class_name: of its class, or None. arguments: their names."""
    if name.endswith("_async") or (name.endswith("_finish") and "result" in arguments):
        return False
    if set(TIMES) & set(arguments):
        return True
    return throws and ("cancellable" in arguments or bool(_FILES & set(arguments)) or class_name in _STORES)
