"""Parley's studies: what is measured, and how. A study plans units and holds one conversation for each."""

from judging.registry import find_study, known_studies
from judging.study import Accepted, Estimate, Outcome, Prompt, Staged, Study, Unit, Verdict

__house__ = "parley"

__all__ = [
    "Accepted",
    "Estimate",
    "Outcome",
    "Prompt",
    "Staged",
    "Study",
    "Unit",
    "Verdict",
    "find_study",
    "known_studies",
]
