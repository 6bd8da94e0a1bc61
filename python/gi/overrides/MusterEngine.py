# SPDX-License-Identifier: Apache-2.0
"""gi.repository.MusterEngine, as Muster.py makes gi.repository.Muster."""
from gi.repository import Muster  # noqa: F401  which the library needs
from muster import _library

_library.load("MusterEngine", "libmuster-engine.so.0")

from gi.overrides import Muster as _muster  # noqa: E402

_muster.adapt("MusterEngine")
