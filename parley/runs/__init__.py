"""Runs: plan, execute, record, resume. One run is one SQLite file."""

from parley.runs.engine import Engine, Progress, Result
from parley.runs.faults import examined
from parley.runs.plan import PlanChanged, Size, describe, measure, refuse_if_changed
from parley.runs.store import Record, RunFile, RunFileError

__all__ = [
    "Engine",
    "PlanChanged",
    "Progress",
    "Record",
    "Result",
    "RunFile",
    "RunFileError",
    "Size",
    "describe",
    "examined",
    "measure",
    "refuse_if_changed",
]
