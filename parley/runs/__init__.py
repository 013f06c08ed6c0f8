"""Runs: plan, execute, record, resume. One run is one SQLite file.

A `Job` (`parley.runs.job`) opens the file and the models. `Engine` reads the plan and writes the file; an `Executor`
runs the units and reports to the engine through `RunControl`.
"""

from typing import TYPE_CHECKING

from parley.base.lazy import import_on_first_use
from parley.runs.diagnosis import explain_damage
from parley.runs.opening import RunFileError
from parley.runs.plan import PlanChanged, StoredPlan, describe, measure, refuse_if_changed, stored_plan
from parley.runs.rows import Progress, Record, Tally
from parley.runs.store import Replies, RunFile

if TYPE_CHECKING:  # imported when first used: these load AutoGen, and what reads a run file does not need it
    from parley.runs import frames
    from parley.runs.engine import Engine, Result
else:
    __getattr__, __dir__ = import_on_first_use(
        __name__,
        {
            "parley.runs": ("frames",),
            "parley.runs.engine": ("Engine", "Result"),
        },
    )

__all__ = [
    "Engine",
    "PlanChanged",
    "Progress",
    "Record",
    "Replies",
    "Result",
    "RunFile",
    "RunFileError",
    "StoredPlan",
    "Tally",
    "describe",
    "explain_damage",
    "frames",
    "measure",
    "refuse_if_changed",
    "stored_plan",
]
