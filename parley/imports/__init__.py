"""Files of others, read into our own objects: runs of other tools, published logs of BBQ and MABRF, texts, preferences.

What is read as a run is written as a run file; `parley show`, the viewer, frames and reports then read it as our own.
"""

from parley.imports.autogen import read_autogen
from parley.imports.bbq_predictions import read_bbq_predictions
from parley.imports.imported import Imported, write_run
from parley.imports.inspect_logs import read_inspect
from parley.imports.mabrf_notebooks import read_mabrf

__all__ = ["Imported", "read_autogen", "read_bbq_predictions", "read_inspect", "read_mabrf", "write_run"]
