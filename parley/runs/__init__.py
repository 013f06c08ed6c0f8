"""Runs: plan, execute, record, resume. One run is one SQLite file."""

from parley.runs.diagnosis import examined
from parley.runs.engine import Engine
from parley.runs.executor import Executor, InProcess, RunControl
from parley.runs.interim import InterimLooks
from parley.runs.plan import PlanChanged, Size, describe, measure, refuse_if_changed
from parley.runs.progress import Progress, Result
from parley.runs.rows import Record, Rows, Tally, rows_of
from parley.runs.store import RunFile, RunFileError

__all__ = [
    "Engine",
    "Executor",
    "InProcess",
    "InterimLooks",
    "PlanChanged",
    "Progress",
    "Record",
    "Result",
    "Rows",
    "RunControl",
    "RunFile",
    "RunFileError",
    "Size",
    "Tally",
    "describe",
    "examined",
    "measure",
    "refuse_if_changed",
    "rows_of",
]
