# SPDX-License-Identifier: Apache-2.0
"""Loads the library so that it uses its own gRPC and OpenSSL.

TensorFlow's library exports BoringSSL, by the names of OpenSSL's functions and for the whole process. What is loaded after it
would call those.
"""
import ctypes
import os

from gi import _gi


def load(namespace: str, name: str) -> None:
    """Loads a namespace's library, of that name, from beside its typelib, as installed and as built, or else from where the linker finds it. It
    stays loaded under its name, by which gi finds it."""
    repository = _gi.Repository.get_default()
    repository.require(namespace, "0", 0)
    typelib = repository.get_typelib_path(namespace)
    folders = [os.path.dirname(os.path.dirname(typelib)), os.path.dirname(typelib)]
    beside = [path for path in (os.path.join(folder, name) for folder in folders) if os.path.exists(path)]
    try:
        ctypes.CDLL((beside + [name])[0], mode=os.RTLD_NOW | os.RTLD_LOCAL | os.RTLD_DEEPBIND)
    except OSError:
        pass  # gi says what is missing
