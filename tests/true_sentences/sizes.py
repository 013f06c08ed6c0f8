"""How large an effect is found, and whether a difference rests on few bases."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from parley.analysis.stats.power import detectable
from parley.analysis.stats.results import DIFFERENT, NOT_MEASURED, SMALL
from parley.judging.malibu.bases import StudySize
from parley.judging.malibu.decisions import planned_lines
from parley.judging.malibu.panel_data import PanelData
from tests.true_sentences import cells, verdicts

RACES = ("black", "white", "asian", "hispanic")
SPREADS = {"black": 0.6, "white": 0.3, "asian": 1.0, "hispanic": 0.5}
"""SD of what a base adds to a label: some labels vary more than others, as in real runs."""
PAIRS = 6


def scored(rng: np.random.Generator, bases: int, added: float = 0.0) -> pd.DataFrame:
    """One score per base and label, with `added` points for 'black'."""
    rows = [
        (f"b{base}", label, 6 + rng.normal(0, SPREADS[label]) + added * (label == "black"))
        for base in range(bases)
        for label in RACES
    ]
    frame = pd.DataFrame(rows, columns=["base", "identity", "value"])
    return verdicts(frame, unit=frame["base"] + "/" + frame["identity"], category="race")


def true_sd(label: str) -> float:
    """The SD of a base's difference between a label and 'black'."""
    return math.hypot(SPREADS["black"], SPREADS[label])


def _mde_misses(rng: np.random.Generator, bases: int) -> bool:
    """Whether the interval of the MDE misses the effect that is found in 80% of studies."""
    label = RACES[int(rng.integers(1, len(RACES)))]
    size = StudySize.of(PanelData(scored(rng, bases)).table("m").gaps("black", label)).mde(PAIRS)
    return not size.low <= detectable(bases, true_sd(label), tests=PAIRS) <= size.high


def _mde_not_found(rng: np.random.Generator, bases: int) -> bool:
    """Whether a second study misses a difference of one pair that is as large as the first said 80% of studies find."""
    compared = int(rng.integers(len(RACES) - 1))  # the first pairs are those of the label that has it
    first = PanelData(scored(rng, bases)).table("m")
    added = StudySize.of(first.gaps("black", RACES[compared + 1])).mde(PAIRS).points
    lines = planned_lines(PanelData(scored(rng, bases, added)), 0.1)
    return lines[compared].verdict not in (DIFFERENT, SMALL)


def _collapses(rng: np.random.Generator, bases: int) -> bool:
    """A tenth of all bases fall from 10 to 1 under a label, which is a point above the other on the rest."""
    values = np.where(rng.random(bases) < 0.1, -9.0, 1.0) + rng.normal(0, 0.5, bases)
    rows = [(f"b{base}", *pair) for base, value in enumerate(values) for pair in (("x", value), ("y", 0.0))]
    frame = pd.DataFrame(rows, columns=["base", "identity", "value"])
    unit = frame["base"] + "/" + frame["identity"]
    (line,) = planned_lines(PanelData(verdicts(frame, unit=unit, category="kind")), 0.1)
    assert line.verdict not in ("", NOT_MEASURED)
    return line.verdict in (DIFFERENT, SMALL)


CELLS = [
    *cells(
        "what a study of this size finds, 95% interval",
        "{bases} bases, labels that vary by 0.3 to 1 points",
        _mde_misses,
        {"bases": 13},
        {"bases": 20, "before": "power of 37 to 45% at its lower end"},
        {"bases": 40},
        limit=0.1,
    ),
    *cells(
        "a difference as large as the report says 80% of studies find is missed",
        "{bases} bases, labels that vary by 0.3 to 1 points",
        _mde_not_found,
        {"bases": 13},
        {"bases": 20, "before": "55 to 63% at its lower end"},
        {"bases": 40},
        limit=0.25,
    ),
    *cells(
        "two labels are different",
        "equal means, a tenth of all bases collapse, {bases} bases",
        _collapses,
        {"bases": 8, "limit": 0.45, "before": "44%"},
        {"bases": 20, "limit": 0.16, "before": "17%"},
        {"bases": 40, "limit": 0.09, "before": "12%"},
        *({"bases": bases} for bases in (60, 80, 120)),
    ),
]
