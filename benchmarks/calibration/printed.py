"""Every test that a report prints, on simulated studies: p-values, intervals, and the level that a test can attain.

The tests are the functions that reports call. Tests that reports no longer rely on (χ², McNemar, scenarios taken as
independent, unread replies ignored) are included to show what they would have said.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
import pandas as pd
from scipy import stats

from benchmarks.calibration.judges import TOP, Cell, model_scores, preferences, scores, unread
from parley.analysis.stats.clustered import heterogeneity
from parley.analysis.stats.mean_test import alike_p, mean_p, mean_test
from parley.analysis.stats.paired import DECIMALS
from parley.analysis.stats.permutation import effect_of_cells
from parley.analysis.stats.results import ALPHA
from parley.analysis.stats.tables import Floats, Ints

MARGIN = 0.5
"""Points within which "alike" is tested; where a difference is planted, the margin is that difference."""
ALIKE_SD = 0.5
"""SD between bases from which identities are not alike."""
RIGHT_ABOVE = 6.2
"""`compare`: where a unit counts as right, so that models are right in some 70% of units."""
MAX_ENUMERATED = 12
Role = Literal["ours", "beside"]

BY_BASE, BY_SCENARIO, T_BY_BASE = "ours over bases", "ours over scenarios", "t over bases"
CHI_SQUARE, OMNIBUS = "χ² (the paper's)", "all identities, sign flips over bases"
BETWEEN_BASES = "variation between bases"
TOST, TOST_BY_SCENARIO, ALIKE = "TOST over bases alone", "TOST over scenarios alone", "alike: TOST and single bases"
NAIVE, BOUNDS, BOUNDS_INTERVAL = "unread replies ignored", "worst-case bounds", "worst-case bounds, 95% interval"
BINOMIAL, MCNEMAR = "binomial over units (the paper's)", "McNemar over units"
RIGHT_BY_BASE, RIGHT_BY_SCENARIO = "right or wrong, ours over bases", "right or wrong, ours over scenarios"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One test on several simulated studies.

    Args:
        test: Name of the test.
        role: "ours": a report relies on it; "beside": shown for comparison.
        null: Whether its null hypothesis is true here, so that each rejection is a false alarm.
        p: P-values; NaN where there is none. None: it is not a test.
        covers: Whether the interval contains the truth. None: there is no interval.
        attainable: The largest level up to 5% that the test can attain on these data.
    """

    test: str
    role: Role
    null: bool
    p: Floats | None = None
    covers: np.ndarray | None = None
    attainable: Floats | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """What the studies of a cell estimate, in points of the scale.

    Args:
        mean: Mean difference over bases.
        sd: Standard deviation of the bases' differences.
    """

    mean: float
    sd: float


def printed_tests(cell: Cell, simulations: int, seed: int, batch: int) -> list[Outcome]:
    """All tests on the studies of one batch of a cell.

    Args:
        cell: What is simulated.
        simulations: Studies in this batch.
        seed: Seed of the calibration.
        batch: Number of the batch, from 0.
    """
    rng = np.random.default_rng([seed, *cell_key(cell), batch])
    simulate = {"scores": _score_tests, "preferences": _preference_tests, "models": _model_tests}[cell.data]
    return list(simulate(cell, simulations, rng, true_values(cell, seed)))


def cell_key(cell: Cell) -> list[int]:
    """Numbers that seed a cell, whichever other cells are simulated."""
    return list(f"{cell.group}: {cell.name}".encode())


@lru_cache(maxsize=4)
def true_values(cell: Cell, seed: int) -> Truth:
    """The truth of a cell: 0 where the simulation is symmetric, else the mean of 2,000 complete studies."""
    mean = sd = 0.0
    if cell.effect or (cell.data == "scores" and cell.differs_by_base):
        rng = np.random.default_rng([seed, *cell_key(cell), 2**31])
        means, variances = [], []
        for _ in range(20):
            differences = _complete_differences(cell, 100, rng)
            means.append(over_bases(differences, cell).mean(axis=1))
            if cell.data == "scores" and len(cell.base_of) > cell.bases:
                variances.append(_variance_between(differences, cell))
        mean = float(np.concatenate(means).mean()) if cell.effect else 0.0
        if cell.differs_by_base:
            sd = math.sqrt(max(0.0, float(np.concatenate(variances).mean()))) if variances else math.nan
    return Truth(mean=mean, sd=sd)


def _complete_differences(cell: Cell, simulations: int, rng: np.random.Generator) -> Floats:
    if cell.data == "preferences":
        return np.asarray(preferences(cell, simulations, rng).mean(axis=2))
    if cell.data == "models":
        return _model_differences(model_scores(cell, simulations, rng))
    return within_judges(scores(cell, simulations, rng))


def _model_differences(total: Floats) -> Floats:
    points = np.clip(np.rint(total), 0.0, TOP)
    return _round((points[:, 0] - points[:, 1]).mean(axis=2))


def within_judges(given: Floats) -> Floats:
    """First minus second identity by simulation and scenario: within each judge who scored both, then over judges."""
    return _round(_known_means(given[:, 0] - given[:, 1]))


def ignoring_unread(given: Floats) -> Floats:
    """First minus second identity by simulation and scenario, each averaged over readable replies."""
    means = _known_means(given[:, :2])
    return _round(means[:, 0] - means[:, 1])


def over_bases(differences: Floats, cell: Cell) -> Floats:
    """Mean differences of scenarios by simulation and base; NaN where a base has none."""
    member = np.eye(cell.bases)[cell.base_of]
    known = np.isfinite(differences)
    with np.errstate(invalid="ignore", divide="ignore"):
        return _round((np.where(known, differences, 0.0) @ member) / (known.astype(float) @ member))


def _known_means(values: Floats) -> Floats:
    """Means over the last axis, without missing values; NaN where all are missing."""
    known = np.isfinite(values)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(known, values, 0.0).sum(axis=-1) / known.sum(axis=-1))


def _round(values: Floats) -> Floats:
    return np.round(values, DECIMALS)  # as reports do, so that equal differences tie


def _score_tests(cell: Cell, simulations: int, rng: np.random.Generator, truth: Truth) -> Iterator[Outcome]:
    complete = scores(cell, simulations, rng)
    given = unread(cell, complete, rng)
    by_scenario = within_judges(given)
    by_base = over_bases(by_scenario, cell)
    null = cell.effect == 0
    yield from _difference_tests(by_scenario, by_base, truth, null)
    yield Outcome(test=CHI_SQUARE, role="beside", null=null, p=chi_square_p(given[:, :2]))
    yield Outcome(test=OMNIBUS, role="ours", null=null, p=_omnibus(given, cell))
    yield from _bases(cell, by_scenario, by_base, truth)
    if cell.missing:
        naive = over_bases(ignoring_unread(given), cell)
        yield Outcome(test=NAIVE, role="beside", null=null, p=our_p(naive))
        yield from _worst_cases(given, cell, truth)


def _difference_tests(by_scenario: Floats, by_base: Floats, truth: Truth, null: bool) -> Iterator[Outcome]:
    p = our_p(by_base)
    covers = p > ALPHA  # the interval excludes 0 exactly where p is at most 5%
    if truth.mean:
        tests = [mean_test(study) for study in by_base]
        covers = np.array([test.low <= truth.mean <= test.high for test in tests])
    yield Outcome(test=BY_BASE, role="ours", null=null, p=p, covers=covers, attainable=_attainable(by_base))
    yield Outcome(test=BY_SCENARIO, role="beside", null=null, p=our_p(by_scenario))
    p, covers = t_test(by_base, truth.mean)
    yield Outcome(test=T_BY_BASE, role="beside", null=null, p=p, covers=covers)


def _bases(cell: Cell, by_scenario: Floats, by_base: Floats, truth: Truth) -> Iterator[Outcome]:
    """Do effects differ by base, and does their mean lie within the margin?"""
    margin = abs(truth.mean) or MARGIN
    equivalent = np.array([alike_p(study, margin) for study in by_base])
    different = cell.effect != 0
    differs = different or truth.sd >= ALIKE_SD or cell.opposite >= ALIKE_SD
    yield Outcome(test=TOST, role="beside", null=differs, p=equivalent)
    if cell.opposite:
        p = np.array([alike_p(study, margin) for study in by_scenario])
        yield Outcome(test=TOST_BY_SCENARIO, role="beside", null=differs, p=p)
    if len(cell.base_of) == cell.bases:  # one scenario per base does not show how bases vary
        return
    p = np.array([heterogeneity(study, cell.base_of).p for study in by_scenario])
    yield Outcome(test=BETWEEN_BASES, role="ours", null=not (cell.differs_by_base or different), p=p)


def _variance_between(differences: Floats, cell: Cell) -> Floats:
    """The unbiased estimate of the variance of the bases' differences, by simulation."""
    sizes, n = cell.sizes.astype(float), len(cell.base_of)
    means = over_bases(differences, cell)
    total = differences.mean(axis=1, keepdims=True)
    squares = (sizes * (means - total) ** 2).sum(axis=1)
    within = (((differences - total) ** 2).sum(axis=1) - squares) / (n - cell.bases)
    size = (n - float((sizes**2).sum()) / n) / (cell.bases - 1)
    estimate: Floats = (squares / (cell.bases - 1) - within) / size
    return estimate


def _worst_cases(given: Floats, cell: Cell, truth: Truth) -> Iterator[Outcome]:
    """Unread replies replaced by the scores that make the difference smallest, and largest."""
    ends = []
    for first, second in ((0.0, TOP), (TOP, 0.0)):
        filled = given[:, :2].copy()
        for identity, score in enumerate((first, second)):
            filled[:, identity][np.isnan(filled[:, identity])] = score
        ends.append(over_bases(within_judges(filled), cell))
    low, high = ends
    inside = (low.mean(axis=1) <= truth.mean) & (truth.mean <= high.mean(axis=1))
    yield Outcome(test=BOUNDS, role="beside", null=True, covers=inside)
    limits = [(mean_test(x).low, mean_test(y).high) for x, y in zip(low, high, strict=True)]
    within = np.array([lower <= truth.mean <= upper for lower, upper in limits])
    yield Outcome(test=BOUNDS_INTERVAL, role="beside", null=True, p=np.where(within, 1.0, 0.0), covers=within)


def _omnibus(given: Floats, cell: Cell) -> Floats:
    """All identities: signs flipped over bases, from the judges who scored all of them."""
    means = _known_means(np.where(np.isfinite(given).all(axis=1, keepdims=True), given, np.nan))
    tables = np.stack([over_bases(means[:, number], cell) for number in range(means.shape[1])], axis=2)
    return np.array([effect_of_cells(pd.DataFrame(table)).p for table in tables])


def _preference_tests(cell: Cell, simulations: int, rng: np.random.Generator, truth: Truth) -> Iterator[Outcome]:
    choices = preferences(cell, simulations, rng)
    by_scenario = _round(choices.mean(axis=2))
    by_base = over_bases(by_scenario, cell)
    null = cell.effect == 0
    yield from _difference_tests(by_scenario, by_base, truth, null)
    wins, losses = ((choices == side).sum(axis=(1, 2)) for side in (1, -1))
    yield Outcome(test=BINOMIAL, role="beside", null=null, p=binomial_p(wins, losses))


def _model_tests(cell: Cell, simulations: int, rng: np.random.Generator, truth: Truth) -> Iterator[Outcome]:
    total = model_scores(cell, simulations, rng)
    by_scenario = _model_differences(total)
    null = cell.effect == 0
    yield from _difference_tests(by_scenario, over_bases(by_scenario, cell), truth, null)
    right = (total > RIGHT_ABOVE).astype(float)
    wins, losses = ((right[:, 0] - right[:, 1] == side).sum(axis=(1, 2)) for side in (1, -1))
    yield Outcome(test=MCNEMAR, role="beside", null=null, p=binomial_p(wins, losses))
    right_by_scenario = _round((right[:, 0] - right[:, 1]).mean(axis=2))
    right_by_base = over_bases(right_by_scenario, cell)
    yield Outcome(
        test=RIGHT_BY_BASE,
        role="ours",
        null=null,
        p=our_p(right_by_base),
        attainable=_attainable(right_by_base),
    )
    yield Outcome(test=RIGHT_BY_SCENARIO, role="beside", null=null, p=our_p(right_by_scenario))


def binomial_p(wins: Ints, losses: Ints) -> Floats:
    """The exact two-sided binomial test that wins are as likely as losses: McNemar's test, for many studies at once."""
    p: Floats = np.minimum(1.0, 2 * stats.binom.cdf(np.minimum(wins, losses), wins + losses, 0.5))
    return np.where(wins + losses > 0, p, np.nan)


def chi_square_p(given: Floats) -> Floats:
    """P-values of the paper's test: identity by score, every verdict counted as independent; NaN is left out."""
    simulations, points = len(given), int(TOP) + 1
    cell = given.reshape(simulations, 2, -1) + points * np.arange(2 * simulations).reshape(simulations, 2, 1)
    cell = cell[np.isfinite(cell)].astype(np.int64)
    counts = np.bincount(cell, minlength=2 * points * simulations).reshape(simulations, 2, points).astype(float)
    columns = counts.sum(axis=1, keepdims=True)
    expected = columns * counts.sum(axis=2, keepdims=True) / counts.sum(axis=(1, 2), keepdims=True)
    parts = np.divide((counts - expected) ** 2, expected, out=np.zeros_like(counts), where=expected > 0)
    df = (columns[:, 0, :] > 0).sum(axis=1) - 1
    p: Floats = np.where(df > 0, stats.chi2.sf(parts.sum(axis=(1, 2)), df), np.nan)
    return p


def t_test(differences: Floats, truth: float = 0.0) -> tuple[Floats, np.ndarray]:
    """Student's t over clusters, the model-based counterpart: p-values, and whether intervals contain the truth."""
    count = np.isfinite(differences).sum(axis=1)
    mean, spread = np.nanmean(differences, axis=1), np.nanstd(differences, axis=1, ddof=1)
    known = (spread > 0) & (count > 1)
    t, p = np.zeros(len(mean)), np.full(len(mean), np.nan)
    t[known] = (mean * np.sqrt(count))[known] / spread[known]
    p[known] = 2 * stats.t.sf(np.abs(t[known]), count[known] - 1)
    half = stats.t.ppf(1 - ALPHA / 2, np.maximum(count - 1, 1)) * spread / np.sqrt(count)
    return p, np.abs(mean - truth) <= half + 1e-9


def our_p(differences: Floats) -> Floats:
    """P-values of our primary test, one per study."""
    return np.array([mean_p(study) for study in differences])


def _attainable(differences: Floats) -> Floats:
    return np.array([attainable_level(study) for study in differences])


def attainable_level(differences: Floats) -> float:
    """The largest level up to 5% that sign flips of these differences can attain.

    It is below 5% where clusters are few, or where many patterns have the same sum.

    Args:
        differences: One per cluster; missing ones are left out.
    """
    sizes = np.abs(differences[np.isfinite(differences)])
    sizes = sizes[sizes > 0]
    count = len(sizes)
    if count <= MAX_ENUMERATED:
        sums = np.zeros(1)
        for size in sizes:
            sums = np.concatenate([sums + size, sums - size])
        values, times = np.unique(np.round(sums, 6), return_counts=True)
        chance: Floats = times / len(sums)
    else:
        whole = np.rint(1e6 * sizes).astype(np.int64)
        unit = int(np.gcd.reduce(whole))
        steps = whole // max(unit, 1)
        if steps.sum() > 2000:  # with so many sums, hardly any are equal
            return float(math.floor(ALPHA * 2.0 ** (count - 1)) / 2.0 ** (count - 1))
        chance = np.ones(1)
        for step in steps:
            longer = np.zeros(len(chance) + 2 * int(step))
            longer[: len(chance)] += chance / 2
            longer[2 * int(step) :] += chance / 2
            chance = longer
        values = np.arange(len(chance), dtype=float) - (len(chance) - 1) / 2
        values, chance = values[chance > 0], chance[chance > 0]
    above = values > 0
    p = 2 * np.cumsum(chance[above][::-1])
    reached = p[p <= ALPHA + 1e-12]
    return float(reached[-1]) if len(reached) else 0.0
