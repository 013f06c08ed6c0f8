"""Files of others, read into our own objects: logs of other tools, answers to BBQ and SQuAD, texts, preferences.

What is read as a run is written as a run file; `parley show`, the viewer, frames and reports then read it as our own.
"""

from typing import TYPE_CHECKING

from parley.base.lazy import import_on_first_use

if TYPE_CHECKING:
    from parley.imports.autogen import read_autogen
    from parley.imports.imported import Imported, write_run
    from parley.imports.inspect_logs import read_inspect
    from parley.imports.mabrf_notebooks import read_mabrf
    from parley.imports.predictions import read_bbq_predictions, read_squad_predictions
else:
    # Most of these load AutoGen, which reading texts and preferences does without.
    __getattr__, __dir__ = import_on_first_use(__name__)

__all__ = [
    "Imported",
    "read_autogen",
    "read_bbq_predictions",
    "read_inspect",
    "read_mabrf",
    "read_squad_predictions",
    "write_run",
]
