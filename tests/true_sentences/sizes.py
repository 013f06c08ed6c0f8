"""How large an effect is found, and whether a difference rests on few bases."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations

import numpy as np
import pandas as pd

from parley.analysis.malibu.conclusions import MARGIN, effect, with_conclusions
from parley.analysis.malibu.panel import PanelData
from parley.analysis.malibu.pilot import pilot
from parley.analysis.malibu.score_table import ScenarioGaps
from parley.analysis.stats.power import clusters_needed, detectable, sign_flip_power
from parley.analysis.stats.results import DIFFERENT, NOT_MEASURED, SMALL
from parley.analysis.stats.signflips import sign_flip_p
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
    return raced(pd.DataFrame(rows, columns=["base", "identity", "value"]))


def raced(frame: pd.DataFrame) -> pd.DataFrame:
    """Scores by base and label as verdicts on race."""
    return verdicts(frame, unit=frame["base"] + "/" + frame["identity"], category="race")


def true_sd() -> float:
    """The pooled SD of a base's difference between two labels."""
    variances = [SPREADS[x] ** 2 + SPREADS[y] ** 2 for x, y in combinations(RACES, 2)]
    return math.sqrt(sum(variances) / len(variances))


def _mde_misses(rng: np.random.Generator, bases: int) -> bool:
    """Whether the interval of the MDE misses the effect that is found in 80% of studies."""
    found = pilot(scored(rng, bases)).mde(PAIRS)
    return not found.low <= detectable(bases, true_sd(), tests=PAIRS) <= found.high


def _mde_not_found(rng: np.random.Generator, bases: int) -> bool:
    """Whether a second study misses a difference of one pair that is as large as the first said 80% of studies find."""
    added = pilot(scored(rng, bases)).mde(PAIRS).points
    table = PanelData(scored(rng, bases, added)).table("m")
    gaps = [table.gaps(x, y) for x, y in combinations(RACES, 2)]
    compared = int(rng.integers(len(RACES) - 1))  # the first pairs are those of the label that has it
    return with_conclusions([effect(own, 0.1) for own in gaps], gaps)[compared].verdict not in (DIFFERENT, SMALL)


def _underpowered(rng: np.random.Generator, bases: int) -> bool:
    """Whether a study that is sized from a pilot run for 80% has a power below 70%."""
    found = pilot(scored(rng, bases))
    size = clusters_needed(0.5, found.planning_sd(), tests=PAIRS)
    return size is None or sign_flip_power(size, 0.5, true_sd(), tests=PAIRS) < 0.7


TAILS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "": lambda rng, count: rng.normal(0, 1, count),
    "exponential": lambda rng, count: 1 - rng.exponential(1, count),
    "chi-squared": lambda rng, count: (1 - rng.chisquare(1, count)) / math.sqrt(2),
    "lognormal": lambda rng, count: (math.e**0.5 - rng.lognormal(0, 1, count)) / math.sqrt(math.e**2 - math.e),
}
"""Differences with an SD of 1 around 0; those with a name have a long tail on the lower side."""


def _promise_broken(rng: np.random.Generator, bases: int, tail: str = "") -> bool:
    """Whether a study sized by a pilot misses the margin; the true difference is the margin, half an SD of a base's.

    Without a tail, the pilot is one that was significant.
    """

    def drawn(count: int) -> np.ndarray:
        return np.asarray(MARGIN + 2 * MARGIN * TAILS[tail](rng, count))

    values = drawn(bases)
    while not tail and (sign_flip_p(values) > 0.05 or values.mean() < 0):
        values = drawn(bases)
    size = clusters_needed(MARGIN, pilot(compared(values)).planning_sd())
    assert size is not None
    gaps = by_base(drawn(size))
    (line,) = with_conclusions([effect(gaps, MARGIN)], [gaps])
    return line.verdict not in (DIFFERENT, SMALL) or line.estimate < 0


def compared(values: np.ndarray) -> pd.DataFrame:
    """Verdicts of one judge on two labels that differ by these values, one a base."""
    rows = [
        (f"b{base}", name, 6 + value * (name == "black")) for base, value in enumerate(values) for name in RACES[:2]
    ]
    return raced(pd.DataFrame(rows, columns=["base", "identity", "value"]))


def by_base(values: np.ndarray) -> ScenarioGaps:
    codes = np.arange(len(values))
    names = [f"b{code}" for code in codes]
    return ScenarioGaps(values=values, clusters=codes, bases=codes, names=names, cluster_names=names)


def _collapses(rng: np.random.Generator, bases: int) -> bool:
    """A tenth of all bases fall from 10 to 1 under a label, which is a point above the other on the rest."""
    values = np.where(rng.random(bases) < 0.1, -9.0, 1.0) + rng.normal(0, 0.5, bases)
    gaps = by_base(values)
    (line,) = with_conclusions([effect(gaps, 0.1)], [gaps])
    assert line.verdict not in ("", NOT_MEASURED)
    return line.verdict in (DIFFERENT, SMALL)


CELLS = [
    *cells(
        "what a study of this size finds, 95% interval",
        "{bases} bases, labels that vary by 0.3 to 1 points",
        _mde_misses,
        {"bases": 8},
        {"bases": 20, "before": "power of 37 to 45% at its lower end"},
        {"bases": 40},
        limit=0.1,
    ),
    *cells(
        "a difference as large as the report says 80% of studies find is missed",
        "{bases} bases, labels that vary by 0.3 to 1 points",
        _mde_not_found,
        {"bases": 8},
        {"bases": 20, "before": "55 to 63% at its lower end"},
        {"bases": 40},
        limit=0.25,
    ),
    *cells(
        "a study sized for a power of 80% has less than 70%",
        "sized from a pilot run of {bases} bases",
        _underpowered,
        *({"bases": bases} for bases in (6, 9, 13)),
        limit=0.15,
        before="23 to 34%",
    ),
    *cells(
        "`power` promises 80%, and the study misses the margin",
        "the true difference is the margin, sized from {words}",
        _promise_broken,
        {"bases": 8, "words": "a significant pilot of 8 bases", "before": "70%"},
        {"bases": 20, "words": "a significant pilot of 20 bases", "before": "40%"},
        *(
            {"bases": bases, "tail": tail, "words": f"a pilot of {bases} bases with {words} tail"} | more
            for tail, words, bases, more in (
                ("exponential", "an exponential", 20, {"before": "54%"}),
                ("lognormal", "a lognormal", 20, {"before": "54%", "limit": 0.25}),
                ("chi-squared", "a chi-squared (1 df)", 12, {}),  # no constant of `power` was chosen with this one
            )
        ),
        limit=0.2,
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
