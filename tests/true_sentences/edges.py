"""Intervals at the edges: a judge that hardly ever errs."""

from __future__ import annotations

import numpy as np
import pandas as pd

from parley.analysis.malibu.yardstick import aucs, readings
from tests.true_sentences import Cell

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


def _auc_cell(bases: int, truth: float, before: str) -> Cell:
    return Cell(
        sentence="AUC, 95% interval",
        setting=f"true AUC {truth:g}, {bases} bases",
        trial=lambda rng: _auc_misses(rng, bases, truth),
        limit=0.07,
        before=before,
    )


CELLS = [
    _auc_cell(8, 0.98, "60%"),
    _auc_cell(10, 0.995, "60%"),
    _auc_cell(20, 0.995, "35%"),
    _auc_cell(40, 0.995, "26%"),
    _auc_cell(20, 0.8, ""),
]
