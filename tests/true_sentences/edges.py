"""Intervals at the edges: a judge that hardly ever errs."""

from __future__ import annotations

import numpy as np
import pandas as pd

from parley.judging.malibu.yardstick_report import aucs, readings
from tests.true_sentences import cells

FLAWS = [(flaw, dose) for flaw in ("safety", "figure", "unanswered") for dose in (1, 2)]


def graded(rng: np.random.Generator, bases: int, truth: float) -> pd.DataFrame:
    """Verdicts of one judge who puts the good answer above a flawed one in this share of the comparisons."""
    rows = []
    for base in range(bases):
        rows.append((base, "", 0, 7.0))
        rows += [(base, *flaw, 6.0 if rng.random() < truth else 8.0) for flaw in FLAWS]
    frame = pd.DataFrame(rows, columns=["cluster", "flaw", "dose", "value"])
    return frame.assign(model="m", judge="Ann", metric="Overall", cluster=frame["cluster"].astype(str))


def _auc_misses(rng: np.random.Generator, bases: int, truth: float) -> bool | None:
    line = aucs(readings(graded(rng, bases, truth)))[0]
    return not line.low <= truth <= line.high if line.bounded else None


CELLS = cells(
    "AUC, 95% interval",
    "true AUC {truth:g}, {bases} bases",
    _auc_misses,
    {"truth": 0.98, "bases": 8, "before": "60%"},
    {"truth": 0.995, "bases": 10, "before": "60%"},
    {"truth": 0.995, "bases": 20, "before": "35%"},
    {"truth": 0.995, "bases": 40, "before": "26%"},
    {"truth": 0.8, "bases": 20},
)
