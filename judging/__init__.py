"""Parley's studies: what is measured, and how. A study plans units and runs one conversation for each."""

from parley.judging.study import (
    Accepted,
    Advanced,
    Checked,
    HasAnalysisPlan,
    HasArms,
    HasMeasures,
    HasNotes,
    Measure,
    Outcome,
    Prompt,
    ReadAloud,
    Study,
    Unit,
    UsageEstimate,
    Verdict,
)

__all__ = [
    "Accepted",
    "Advanced",
    "Checked",
    "HasAnalysisPlan",
    "HasArms",
    "HasMeasures",
    "HasNotes",
    "Measure",
    "Outcome",
    "Prompt",
    "ReadAloud",
    "Study",
    "Unit",
    "UsageEstimate",
    "Verdict",
]
