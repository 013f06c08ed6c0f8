"""Parley's studies: what is measured, and how. A study plans units and holds one conversation for each."""

from parley.judging.stopping import Compares, Stop, StopRule, stop_field
from parley.judging.study import Accepted, Estimate, Outcome, Prompt, Staged, Study, Unit, Verdict

__all__ = [
    "Accepted",
    "Compares",
    "Estimate",
    "Outcome",
    "Prompt",
    "Staged",
    "Stop",
    "StopRule",
    "Study",
    "Unit",
    "Verdict",
    "stop_field",
]
