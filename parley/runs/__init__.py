"""Runs: plan, execute, record, resume. One run is one SQLite file.

`Engine` reads the plan and writes the run file; an `Executor` runs the units and reports to the engine through
`RunControl`.
"""

from parley.runs.analysis_plan import StoredPlan, stored_plan
from parley.runs.diagnosis import explain_damage
from parley.runs.engine import Engine
from parley.runs.executor import Executor, InProcess, RunControl
from parley.runs.failures import RunFileError
from parley.runs.interim import InterimLooks
from parley.runs.plan import PlanChanged, Size, describe, measure, refuse_empty, refuse_if_changed
from parley.runs.progress import Progress, Result
from parley.runs.rows import Record, Rows, Tally, to_rows
from parley.runs.store import Replies, RunFile

__all__ = [
    "Engine",
    "Executor",
    "InProcess",
    "InterimLooks",
    "PlanChanged",
    "Progress",
    "Record",
    "Replies",
    "Result",
    "Rows",
    "RunControl",
    "RunFile",
    "RunFileError",
    "Size",
    "StoredPlan",
    "Tally",
    "describe",
    "explain_damage",
    "measure",
    "refuse_empty",
    "refuse_if_changed",
    "stored_plan",
    "to_rows",
]
