"""Runs: plan, execute, record, resume. One run is one SQLite file.

`Engine` reads the plan and writes the run file; an `Executor` runs the units and reports to the engine through
`RunControl`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from parley.runs.analysis_plan import StoredPlan, stored_plan
    from parley.runs.diagnosis import explain_damage
    from parley.runs.engine import Engine
    from parley.runs.executor import Executor, InProcess, RunControl
    from parley.runs.failures import RunFileError
    from parley.runs.packing import pack, unpack
    from parley.runs.plan import PlanChanged, Size, describe, measure, refuse_empty, refuse_if_changed
    from parley.runs.progress import Progress, Result
    from parley.runs.rows import Record, Rows, Tally, to_rows
    from parley.runs.store import Replies, RunFile

__all__ = [
    "Engine",
    "Executor",
    "InProcess",
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
    "pack",
    "refuse_empty",
    "refuse_if_changed",
    "stored_plan",
    "to_rows",
    "unpack",
]

_MODULES = {
    "parley.runs.analysis_plan": "StoredPlan stored_plan",
    "parley.runs.diagnosis": "explain_damage",
    "parley.runs.engine": "Engine",
    "parley.runs.executor": "Executor InProcess RunControl",
    "parley.runs.failures": "RunFileError",
    "parley.runs.packing": "pack unpack",
    "parley.runs.plan": "PlanChanged Size describe measure refuse_empty refuse_if_changed",
    "parley.runs.progress": "Progress Result",
    "parley.runs.rows": "Record Rows Tally to_rows",
    "parley.runs.store": "Replies RunFile",
}
_PLACES = {name: module for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    # Imported when first used: what reads a run file needs no engine, and so no AutoGen.
    if name in _PLACES:
        return getattr(import_module(_PLACES[name]), name)
    raise AttributeError(f"module 'parley.runs' has no attribute '{name}'")
