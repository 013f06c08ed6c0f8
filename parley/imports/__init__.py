"""Files of others, read into our own objects: runs of other tools, published logs of BBQ and MABRF, texts, preferences.

What is read as a run is written as a run file; `parley show`, the viewer, frames and reports then read it as our own.
"""

from typing import TYPE_CHECKING

from parley.base.lazy import import_on_first_use

if TYPE_CHECKING:
    from parley.imports.autogen import read_autogen
    from parley.imports.bbq_predictions import read_bbq_predictions
    from parley.imports.imported import Imported, write_run
    from parley.imports.inspect_logs import read_inspect
    from parley.imports.mabrf_notebooks import read_mabrf
else:
    # These load AutoGen, and `parley score bbq`, which reads predictions only, takes a second without it.
    __getattr__, __dir__ = import_on_first_use(__name__)

__all__ = ["Imported", "read_autogen", "read_bbq_predictions", "read_inspect", "read_mabrf", "write_run"]
