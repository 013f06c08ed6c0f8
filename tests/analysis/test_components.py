"""Variance components: published figures, planted components, and what cannot be told apart."""

from __future__ import annotations

import math
from time import process_time

import numpy as np
import pytest

from parley.analysis.stats.components import RESIDUAL, variance_components

# Data and REML estimates: the manual of the R package lme4 and D. Bates, "lme4: Mixed-effects modeling with R". Both
# sets are balanced and no estimate is negative, so the analysis of variance gives what REML does.
# Penicillin: diameters of 24 plates (rows) by 6 samples; variances 0.7169 (plate), 3.7309 (sample), 0.3024 (residual).
PENICILLIN = """
27 23 26 23 23 21  27 23 26 23 23 21  25 21 25 24 24 20  26 23 25 23 23 20  25 22 26 22 23 20  24 22 25 23 22 19
24 20 23 21 22 19  26 22 26 24 24 21  24 21 24 22 22 20  24 21 24 23 22 19  26 23 26 24 24 21  25 22 26 24 24 20
26 24 26 24 25 22  26 23 26 23 23 20  26 23 25 24 24 22  25 22 25 23 23 20  25 21 24 23 23 20  25 22 24 23 23 19
24 21 23 21 21 19  26 23 26 24 24 21  25 21 24 22 22 18  25 22 25 22 22 20  24 21 24 22 24 19  24 21 24 22 21 18
"""
# Pastes: strength of 10 batches of 3 casks, tested twice; variances 8.434 (cask within batch), 1.657 (batch), 0.678.
PASTES = """
62.8 62.6 60.1 62.3 62.7 63.1  60.0 61.4 57.5 56.9 61.1 58.9  58.7 57.5 63.9 63.1 65.4 63.7
57.1 56.4 56.9 58.6 64.7 64.5  55.1 55.1 54.7 54.2 58.8 57.5  63.4 64.9 59.3 58.1 60.5 60.0
62.5 62.6 61.0 58.7 56.9 57.7  59.2 59.4 65.2 66.0 64.8 64.1  54.8 54.8 64.0 64.0 57.7 56.8
58.3 59.3 59.2 59.2 58.9 56.6
"""


def numbers(text: str) -> np.ndarray:
    return np.array(text.split(), dtype=float)


def test_crossed_components_are_the_published_ones() -> None:
    plate, sample = np.repeat(np.arange(24), 6), np.tile(list("ABCDEF"), 24)
    parts = variance_components(numbers(PENICILLIN), {"plate": plate, "sample": sample}, [("plate",), ("sample",)])
    assert parts["plate"].variance == pytest.approx(0.7169, abs=5e-5)
    assert parts["sample"].variance == pytest.approx(3.7309, abs=5e-5)
    assert parts[RESIDUAL].variance == pytest.approx(0.3024, abs=5e-5)
    assert [part.levels for part in parts.values()] == [24, 6, 144]


def test_nested_components_are_the_published_ones() -> None:
    batch, cask = np.repeat(np.arange(10), 6), np.repeat(np.arange(30), 2)
    parts = variance_components(numbers(PASTES), {"batch": batch, "cask": cask}, [("batch",), ("cask",)])
    assert parts["batch"].variance == pytest.approx(1.657, abs=5e-4)
    assert parts["cask"].variance == pytest.approx(8.434, abs=5e-4)
    assert parts[RESIDUAL].variance == pytest.approx(0.678, abs=5e-4)


PLANTED = {
    "base": 0.5,
    "scenario": 0.4,
    "judge": 0.6,
    "identity": 0.3,
    "judge × scenario": 0.3,
    "identity × base": 0.4,
    "identity × scenario": 0.3,
    "identity × judge": 0.2,
    "conversation": 0.5,
    RESIDUAL: 1.0,
}
TERMS = [tuple(name.split(" × ")) for name in PLANTED if name != RESIDUAL]


class Design:
    """Bases × scenarios × identities × judges × repeats, with planted standard deviations."""

    def __init__(self, bases: int, scenarios: int, identities: int, judges: int, repeats: int) -> None:
        shape = bases, scenarios, identities, judges, repeats
        base, scenario, identity, judge, repeat = (index.ravel() for index in np.indices(shape))
        scenario = base * scenarios + scenario
        conversation = (scenario * identities + identity) * repeats + repeat
        self.factors = {
            "base": base,
            "scenario": scenario,
            "judge": judge,
            "identity": identity,
            "conversation": conversation,
        }

    def scores(self, rng: np.random.Generator) -> np.ndarray:
        scores = rng.normal(0, PLANTED[RESIDUAL], len(self.factors["base"]))
        for term in TERMS:
            cell = np.zeros(len(scores), dtype=np.int64)
            for factor in term:
                cell = cell * 10_000 + self.factors[factor]
            levels, code = np.unique(cell, return_inverse=True)
            scores += rng.normal(0, PLANTED[" × ".join(term)], len(levels))[code]
        return scores


@pytest.mark.nightly
@pytest.mark.parametrize("share", [1.0, 0.6], ids=["whole", "with gaps"])
def test_planted_components_are_recovered_on_average(share: float) -> None:
    rng = np.random.default_rng(3)
    design = Design(bases=8, scenarios=4, identities=5, judges=4, repeats=2)
    studies = []
    for _ in range(300):
        scores = design.scores(rng)
        scores[rng.random(len(scores)) > share] = np.nan
        parts = variance_components(scores, design.factors, TERMS)
        studies.append([parts[name].estimate for name in PLANTED])
    mean, error = np.mean(studies, axis=0), np.std(studies, axis=0) / math.sqrt(len(studies))
    planted = np.array(list(PLANTED.values())) ** 2
    assert np.all(np.abs(mean - planted) < 4 * error)
    assert np.all(error < 0.1 * planted.max())


def test_a_negative_estimate_is_set_to_0_and_says_so() -> None:
    parts = variance_components([1.0, 3.0, 1.0, 3.0, 1.2, 2.8], {"base": list("aabbcc")}, [("base",)])
    assert parts["base"].estimate < 0
    assert parts["base"].variance == 0
    assert parts["base"].note.endswith("set to 0")


def test_what_cannot_be_told_apart_is_included_in_the_coarser_term() -> None:
    design = Design(bases=6, scenarios=1, identities=3, judges=1, repeats=1)
    parts = variance_components(design.scores(np.random.default_rng(0)), design.factors, TERMS)
    assert parts["base"].includes == ("scenario",)
    assert parts["identity × base"].includes == ("identity × scenario", "conversation", RESIDUAL)
    assert parts["judge"].note == "only one judge"
    assert math.isnan(parts["identity × scenario"].variance)
    assert parts["identity × scenario"].note == "included in identity × base"
    assert sum(math.isfinite(part.variance) for part in parts.values()) == 3


def test_too_few_values_are_named() -> None:
    for scores in ([], [1.0], [1.0, 2.0]):
        names = list("ab")[: len(scores)]
        parts = variance_components(scores, {"base": names, "identity": names}, [("base",), ("identity",)])
        assert all(math.isnan(part.variance) and part.note for part in parts.values())
    equal = variance_components([5.0] * 8, {"base": list("aabbccdd")}, [("base",)])
    assert [part.variance for part in equal.values()] == [0.0, 0.0]


def test_a_million_rows_take_about_a_second() -> None:
    design = Design(bases=20, scenarios=10, identities=10, judges=4, repeats=125)
    scores = np.random.default_rng(0).normal(size=len(design.factors["base"]))
    start = process_time()
    variance_components(scores, design.factors, TERMS)
    seconds = process_time() - start
    assert seconds < 6  # about 1 s on an idle core
