from gi.repository import MusterEngine as _engine
from gi.repository.Muster import *

from . import checkpoint as checkpoint

LocalMaster = _engine.Master
LocalMasterOptions = _engine.MasterOptions
__version__: str
