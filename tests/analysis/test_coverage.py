"""How often intervals cover and tests reject where the truth is known: what tests/true_sentences does not simulate."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import norm

from parley.analysis.bbq.scores import cell
from parley.analysis.stats.agreement import fleiss_kappa, krippendorff_alpha
from parley.analysis.stats.clustered import bootstrap_mean, cluster_mean
from parley.analysis.stats.crossed import crossed_mean
from parley.analysis.stats.heterogeneity import heterogeneity
from parley.analysis.stats.permutation import effect_of_cells
from parley.analysis.stats.proportions import cluster_proportion
from parley.analysis.stats.results import Line
from parley.analysis.toxicity.thresholds import highest_for_misses
from tests.analysis.test_bbq_scores import templates

Rng = np.random.Generator
STUDIES = 300
AGE = [8, 8, 8, 24, 18, 32, 32, 32, 18, 40, 24, 24, 18, 32, 18, 50, 24, 50, 72, 40, 70, 70, 84, 40, 84]
"""Scenarios of the 25 templates of BBQ's Age."""


def ratings(rng: Rng, bases: int = 10) -> np.ndarray:
    """Ten items a base, four judges, whole points: percentiles of plain draws would cover far too little."""
    scores = 7 + rng.normal(0, 0.8, (bases, 1, 1)) + rng.normal(0, 0.5, (bases, 10, 1))
    return np.clip(np.round(scores + rng.normal(0, 0.9, (bases, 10, 4))), 0, 10).reshape(-1, 4)


def choices(rng: Rng, bases: int = 10) -> np.ndarray:
    return np.digitize(ratings(rng, bases), [6.5, 7.5])


def covers(line: Line, truth: float) -> bool:
    return bool(line.low <= truth <= line.high)


def agrees(coefficient: Callable[..., Line], drawn: Callable[..., np.ndarray]) -> Callable[[Rng], bool]:
    @cache
    def truth() -> float:
        return float(coefficient(drawn(np.random.default_rng(99), 20_000), draws=2).estimate)

    return lambda rng: covers(coefficient(drawn(rng), clusters=np.repeat(np.arange(10), 10), draws=400), truth())


def mean(method: Callable[..., Line]) -> Callable[[Rng], bool]:
    names = pd.Series(np.repeat(np.arange(8), 4))
    return lambda rng: covers(method(rng.normal(5, 1, 8)[names] + pd.Series(rng.normal(0, 0.5, 32)), names), 5)


def share(rng: Rng) -> bool:
    names = np.repeat(np.arange(8), 4)
    return covers(cluster_proportion(rng.random(32) < rng.beta(2, 1, 8)[names], names), 2 / 3)


def incomplete(rows_sd: float, columns_sd: float) -> Callable[[Rng], bool]:
    """Every row has two of 20 columns, and the true mean is 0."""

    def rejected(rng: Rng) -> bool:
        rows, columns = np.repeat(np.arange(20), 2), np.concatenate([rng.permutation(20)[:2] for _ in range(20)])
        values = rng.normal(0, rows_sd, 20)[rows] + rng.normal(0, columns_sd, 20)[columns] + rng.normal(0, 0.02, 40)
        return bool(crossed_mean(values, rows, columns).p <= 0.05)

    return rejected


def bases_differ(sd: float) -> Callable[[Rng], bool]:
    bases = np.repeat(np.arange(20), [3] * 10 + [10] * 10)
    return lambda rng: bool(heterogeneity(rng.normal(0, sd, 20)[bases] + rng.normal(0, 1, 130), bases).p <= 0.05)


def turned(rng: Rng) -> bool:
    """Two of four identities are raised or lowered at random from base to base: labels are not exchangeable."""
    cells, side = rng.normal(0, 0.3, (20, 4)), rng.choice([-0.75, 0.75], 20)
    cells[:, 0], cells[:, 1] = cells[:, 0] + side, cells[:, 1] - side
    return bool(effect_of_cells(pd.DataFrame(cells)).p <= 0.05)


def bias(spread: float) -> Callable[[Rng], bool]:
    rate = quad(lambda z: expit(0.5 + spread * z) * norm.pdf(z), -8, 8)[0]
    return lambda rng: covers(cell(templates(rng, spread, AGE))["bias"], 200 * rate - 100)


def missed(rng: Rng) -> bool:
    """Scores uniform on 0 to 1: the threshold for a miss rate of 0.1 is 0.1."""
    return covers(highest_for_misses(np.sort(rng.random(200)), 0.1), 0.1)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("happens", "least", "most"),
    [
        pytest.param(agrees(krippendorff_alpha, ratings), 0.91, 0.99, id="alpha, ten bases"),
        pytest.param(agrees(fleiss_kappa, choices), 0.91, 0.99, id="kappa, ten bases"),
        pytest.param(mean(cluster_mean), 0.91, 0.985, id="mean, eight clusters"),
        pytest.param(mean(lambda *data: bootstrap_mean(*data, draws=400)), 0.9, 0.985, id="bootstrap, eight clusters"),
        pytest.param(mean(lambda data, _: cluster_mean(data, pd.Series(range(32)))), 0.5, 0.85, id="not clustered"),
        pytest.param(share, 0.91, 0.985, id="proportion, eight clusters"),
        pytest.param(bias(0.5), 0.92, 0.98, id="BBQ, templates that differ"),
        pytest.param(bias(1.0), 0.92, 0.98, id="BBQ, templates that differ much"),
        pytest.param(missed, 0.92, 0.99, id="threshold"),
        pytest.param(incomplete(0.05, 0.05), 0.015, 0.09, id="crossed, both vary"),
        pytest.param(incomplete(0.0, 0.08), 0.015, 0.09, id="crossed, columns vary"),
        pytest.param(incomplete(0.08, 0.0), 0.015, 0.09, id="crossed, rows vary"),
        pytest.param(bases_differ(0.0), 0.02, 0.08, id="bases are alike"),
        pytest.param(bases_differ(0.3), 0.3, 1.0, id="bases differ"),
        pytest.param(turned, 0.0, 0.085, id="identities, not exchangeable"),
    ],
)
def test_rates(happens: Callable[[Rng], bool], least: float, most: float) -> None:
    rate = np.mean([happens(np.random.default_rng(seed)) for seed in range(STUDIES)])
    assert least <= rate <= most
