"""Parley's studies. A study plans units and runs a conversation for each."""

from parley.judging.grid import GridStudy, compared, repeats, varies
from parley.judging.prompts import Prompt
from parley.judging.study import (
    Accepted,
    Advanced,
    Apart,
    Check,
    Facet,
    Labelled,
    Measure,
    Outcome,
    Study,
    Unit,
    Verdict,
)

__all__ = [
    "Accepted",
    "Advanced",
    "Apart",
    "Check",
    "Facet",
    "GridStudy",
    "Labelled",
    "Measure",
    "Outcome",
    "Prompt",
    "Study",
    "Unit",
    "Verdict",
    "compared",
    "repeats",
    "varies",
]
