# SPDX-License-Identifier: Apache-2.0
"""muster in Python beside gi.repository.Muster: muster.checkpoint reads checkpoints as mappings of arrays.

Importing it chooses the version of the bindings, so that a program need not:

    import muster
    from gi.repository import Muster, MusterEngine
"""
import gi

from muster import _library

gi.require_version("Muster", "0")
_library.load("Muster", "libmuster.so.0")
try:
    gi.require_version("MusterEngine", "0")
    _library.load("MusterEngine", "libmuster-engine.so.0")
except ValueError:
    pass  # a build without the engine
