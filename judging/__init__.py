"""Parley's studies: what is measured, and how. A study plans units and runs one conversation for each."""

from parley.judging.labelled import HasLabelled, Labelled
from parley.judging.study import (
    Accepted,
    Advanced,
    Checked,
    Facet,
    HasAnalysisPlan,
    HasFacets,
    HasMeasures,
    HasNotes,
    Measure,
    Outcome,
    Prompt,
    ReadAloud,
    Study,
    Unit,
    Verdict,
)

__all__ = [
    "Accepted",
    "Advanced",
    "Checked",
    "Facet",
    "HasAnalysisPlan",
    "HasFacets",
    "HasLabelled",
    "HasMeasures",
    "HasNotes",
    "Labelled",
    "Measure",
    "Outcome",
    "Prompt",
    "ReadAloud",
    "Study",
    "Unit",
    "Verdict",
]
