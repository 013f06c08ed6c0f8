"""Simulated silent ballots, and a report's tests on them.

A difference of two identities is effect + base + wording + base × wording + scenario, in points and without rounding:
an expected score has decimals. Bases have label wordings of their own, or share some; that determines what
the report takes as independent (`parley.analysis.clusters`). A test over bases that ignores wordings is added
for comparison.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from scipy.special import ndtr

from benchmarks.calibration.judges import Cell
from benchmarks.calibration.printed import ALIKE, BY_BASE, Outcome, attainable_level, cell_key
from parley.analysis.clusters import with_clusters
from parley.analysis.decide import WITHIN_LOW
from parley.analysis.stats.mean_test import mean_p
from parley.analysis.stats.results import ALPHA
from parley.analysis.stats.tables import Floats, Ints
from parley.judging.malibu.plan import MARGIN, SHARE
from parley.judging.malibu.score_table import ScenarioGaps

NAIVE_BASES = "over bases, wordings ignored"


def layout(cell: Cell) -> tuple[Ints, Ints]:
    """Each base and its wording, which are dealt in turn.

    Args:
        cell: The design.
    """
    base = np.arange(cell.bases)
    return base, base % (cell.wordings or cell.bases)


def silent_tests(cell: Cell, simulations: int, seed: int, batch: int) -> list[Outcome]:
    """The tests on the studies of one batch of a cell; see `printed.printed_tests` for the arguments."""
    rng = np.random.default_rng([seed, *cell_key(cell), batch])
    base, wording = layout(cell)
    design = _design(base, wording)
    studies = [_gaps(design, values) for values in _differences(cell, base, wording, simulations, rng)]
    return list(_tests(cell, studies))


def _design(base: Ints, wording: Ints) -> pd.DataFrame:
    """The cluster that a report assigns to each base in a wording."""
    frame = pd.DataFrame({"base": [f"b{code}" for code in base], "wording": [f"w{code}" for code in wording]})
    return with_clusters(frame.assign(scenario=frame["base"], category="gender", model=""))


def _differences(cell: Cell, base: Ints, wording: Ints, simulations: int, rng: np.random.Generator) -> Iterator[Floats]:
    """Differences by base in a wording (rows) and scenario (columns), one table per study."""
    for _ in range(simulations):
        by_base = rng.normal(0.0, cell.base_identity, cell.bases)
        if cell.opposite:
            by_base += cell.opposite * (2.0 * rng.integers(0, 2, cell.bases) - 1)
        drawn = rng.exponential(1.0, int(wording.max()) + 1) - 1 if cell.skewed_effects else None
        by_wording = cell.wording_identity * (rng.normal(0.0, 1.0, int(wording.max()) + 1) if drawn is None else drawn)
        total = cell.effect + by_base[base] + by_wording[wording] + rng.normal(0.0, cell.both_identity, len(base))
        yield total[:, None] + rng.normal(0.0, cell.spread, (len(base), cell.scenarios))


def _gaps(design: pd.DataFrame, values: Floats) -> ScenarioGaps:
    cells = design.loc[design.index.repeat(values.shape[1])]
    return ScenarioGaps.of(values.ravel(), cells)


def _tests(cell: Cell, studies: list[ScenarioGaps]) -> Iterator[Outcome]:
    null = cell.effect == 0
    if null:
        p = np.array([mean_p(gaps.by_cluster()) for gaps in studies])
        covers = p > ALPHA  # the interval excludes 0 exactly where p is at most 5%
    else:
        tests = [gaps.test() for gaps in studies]
        p = np.array([test.p for test in tests])
        covers = np.array([test.low <= cell.effect <= test.high for test in tests])
    yield Outcome(
        test=BY_BASE,
        role="ours",
        null=null,
        p=p,
        covers=covers,
        attainable=np.array([attainable_level(gaps.by_cluster()) for gaps in studies]),
    )
    if cell.wordings:
        naive = np.array([mean_p(pd.Series(gaps.values).groupby(gaps.bases).mean().to_numpy()) for gaps in studies])
        yield Outcome(test=NAIVE_BASES, role="beside", null=null, p=naive)
    if cell.group == "silent, alike":
        alike = [gaps.alike_p(MARGIN) <= ALPHA and gaps.within(MARGIN)[WITHIN_LOW] >= SHARE for gaps in studies]
        # The true share of bases within the margin: of a normal, or of both sides of one.
        ends = [(side * MARGIN - cell.opposite) / (cell.base_identity or 1e-9) for side in (1, -1)]
        different = bool(cell.effect) or float(ndtr(ends[0]) - ndtr(ends[1])) < SHARE
        yield Outcome(test=ALIKE, role="ours", null=different, p=np.where(alike, 0.0, 1.0))
