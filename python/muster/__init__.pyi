import logging
from typing import Optional, Union

from gi.repository import MusterEngine as _engine
from gi.repository.Muster import *

from . import checkpoint as checkpoint

LocalMaster = _engine.Master
__version__: str
def use_logging(logger: Optional[Union[logging.Logger, str]] = ..., level: Optional[Union[int, str]] = ...) -> None: ...
