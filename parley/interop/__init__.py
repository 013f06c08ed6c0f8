"""Import and export of runs: Inspect logs, AutoGen transcripts, plain JSON lines; published logs of BBQ and MABRF."""

from parley.interop.autogen import read_autogen
from parley.interop.bbq_predictions import read_bbq_predictions
from parley.interop.imported import Imported, write_run
from parley.interop.inspect_read import read_inspect
from parley.interop.inspect_write import to_inspect
from parley.interop.mabrf_notebooks import read_mabrf
from parley.interop.transcripts import to_transcripts

__all__ = [
    "Imported",
    "read_autogen",
    "read_bbq_predictions",
    "read_inspect",
    "read_mabrf",
    "to_inspect",
    "to_transcripts",
    "write_run",
]
