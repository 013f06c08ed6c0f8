"""Parley's studies: what is measured, and how. A study plans units and holds one conversation for each."""

from judging.registry import find_study, known_studies
from judging.stopping import Compares, Stop, StopRule, stop_field
from judging.study import Accepted, Estimate, Outcome, Prompt, Staged, Study, Unit, Verdict

__house__ = "parley"

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
    "find_study",
    "known_studies",
    "stop_field",
]
