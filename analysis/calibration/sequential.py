"""Calibration of stopping rules: error rates and savings of a sequential design beside a fixed one.

A simulated score is base mean + scenario + identity in this base + panel + judge's noise + effect, rounded to the scale
0 to 10. `base_sd` is how much a label's effect varies from base to base: scenarios of one base share it, so bases are
the clusters. The first identity has the planted effect, so comparisons with it are true differences and those among the
others are not. A unit is one scenario under one identity, run as long as a comparison with that identity is open; all
scenarios of a base run in the same wave. Both designs have at most the same bases and the same alpha for all
comparisons together (Holm); they differ in when they stop. `fixed_units` is the share of bases with which a fixed
design has the sequential one's power: the savings at equal error rates of both kinds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import stdtr

from parley.analysis.stats.proportions import wilson
from parley.analysis.stats.sequential import InterimResult, StoppingRule, interim_look
from parley.analysis.stats.signflips import sign_flip_p
from parley.analysis.stats.tables import Floats

Bools = NDArray[np.bool_]
MEAN, TOP = 7.0, 10.0
VERDICT_SD, SCENARIO_SD = 1.2, 0.8
"""Of a judge's score, panel and noise together, and of the scenarios' means; in points, as in `calibration.fixed`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SequentialSetting:
    """A simulated study.

    Args:
        identities: Number of identities; every two are compared.
        judges: Judges per scenario.
        bases: Number of bases.
        per_base: Scenarios per base.
        effect: The difference that is planted in the first identity, in points.
        base_sd: SD over bases of each identity's effect, in points (base × identity).
        icc: Intraclass correlation of judges in one conversation.
    """

    identities: int
    judges: int
    bases: int
    per_base: int
    effect: float
    base_sd: float
    icc: float


def simulate(setting: SequentialSetting, simulations: int, rng: np.random.Generator) -> Floats:
    """The panels' mean scores in many simulated studies.

    Args:
        setting: The studies' size and effects.
        simulations: Number of studies.
        rng: Random generator.

    Returns:
        Means by simulation, identity, base and scenario.
    """
    shape = (simulations, setting.identities, setting.bases, setting.per_base, setting.judges)
    scores = rng.normal(MEAN, VERDICT_SD * math.sqrt(1 - setting.icc), shape)
    scores += rng.normal(0.0, VERDICT_SD * math.sqrt(setting.icc), (*shape[:4], 1))
    scores += rng.normal(0.0, SCENARIO_SD, (simulations, 1, *shape[2:4], 1))
    scores += rng.normal(0.0, setting.base_sd, (*shape[:3], 1, 1))
    scores[:, 0] += setting.effect
    means: Floats = np.clip(np.rint(scores), 0, TOP).mean(axis=4)
    return means


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedStudy:
    """How one simulated study ended.

    Args:
        different: The comparisons that were decided as different.
        units: The share of the planned units that were run.
        looks: Number of interim looks that were made.
    """

    different: frozenset[str]
    units: float
    looks: int


def savings(
    rules: Sequence[StoppingRule],
    judges: Sequence[int] = (4,),
    scenarios: Sequence[int] = (20, 50),
    effects: Sequence[float] = (0.0, 0.2, 0.4),
    identities: Sequence[int] = (2, 4),
    *,
    per_base: int = 1,
    base_sd: float = 0.3,
    icc: float = 0.3,
    simulations: int = 1000,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> pd.DataFrame:
    """False positives, power and units of sequential designs beside the fixed one, on simulated studies.

    Args:
        rules: Stopping rules.
        judges: Numbers of judges per scenario.
        scenarios: Numbers of scenarios per study.
        effects: Differences of the first identity to plant, in points.
        identities: Numbers of identities; every two are compared.
        per_base: Scenarios per base.
        base_sd: SD over bases of each identity's effect, in points.
        icc: Intraclass correlation of judges in one conversation.
        simulations: Studies per row.
        seed: Seed of the simulations.
        progress: Called after each setting with the number of finished settings and of all.

    Returns:
        One row per rule and setting.
    """
    settings = [
        SequentialSetting(
            identities=identity_count,
            judges=judge_count,
            bases=scenario_count // per_base,
            per_base=per_base,
            effect=effect,
            base_sd=base_sd,
            icc=icc,
        )
        for identity_count in identities
        for judge_count in judges
        for scenario_count in scenarios
        for effect in effects
    ]
    rows = []
    for number, setting in enumerate(settings):
        rng = np.random.default_rng([seed, number])
        scores = simulate(setting, simulations, rng).mean(axis=3)
        # Study by study, so that the p-values of one are still cached when the next rule needs them.
        studies = [[run_sequential(study, rule) for rule in rules] for study in scores]
        for place, rule in enumerate(rules):
            fixed = fixed_designs(scores, rule.alpha)
            rates = _rates(setting, [study[place] for study in studies], fixed)
            rows.append({**_setting_columns(rule, setting), **rates})
        if progress:
            progress(number + 1, len(settings))
    return pd.DataFrame(rows)


def _pair_names(identities: int) -> list[str]:
    return [f"{first}-{second}" for first, second in combinations(range(identities), 2)]


def _pair_gaps(scores: Floats) -> Floats:
    """Differences of every two identities, in the order of `_pair_names`; identities are the second axis from last."""
    pairs = combinations(range(scores.shape[-2]), 2)
    return np.stack([scores[..., first, :] - scores[..., second, :] for first, second in pairs], axis=-2)


def fixed_designs(scores: Floats, alpha: float) -> Bools:
    """One test of every pair at the end, corrected by Holm, for an end after any number of bases.

    The test of the whole plan is by sign flips. Smaller plans are only there for `fixed_units`, and are tested by t,
    which is quick to compute for all of them and differs little.

    Args:
        scores: Means by simulation, identity and base.
        alpha: Significance level for all pairs together.

    Returns:
        By simulation, pair and number of bases: whether the pair is significant.
    """
    gaps = _pair_gaps(scores)
    count = np.arange(1, gaps.shape[2] + 1)
    mean = gaps.cumsum(axis=2) / count
    squares = np.maximum((gaps**2).cumsum(axis=2) - count * mean**2, 1e-12)
    p = 2 * stdtr(np.maximum(count - 1, 1), -np.abs(mean) * np.sqrt(count * np.maximum(count - 1, 1) / squares))
    p = np.minimum(np.maximum(p, 2.0 ** (1 - (gaps != 0).cumsum(axis=2))), 1.0)
    p[:, :, -1] = np.apply_along_axis(sign_flip_p, 2, gaps)
    rank = p.argsort(axis=1).argsort(axis=1)
    reached = np.sort(p, axis=1) <= alpha / np.arange(gaps.shape[1], 0, -1)[:, None]
    different: Bools = rank < np.logical_and.accumulate(reached, axis=1).sum(axis=1, keepdims=True)
    return different


def run_sequential(scores: Floats, rule: StoppingRule) -> SimulatedStudy:
    """One study under a stopping rule, with the looks that a run would make.

    Args:
        scores: Means by identity and base.
        rule: The stopping rule.
    """
    identities, count = scores.shape
    gaps = dict(zip(_pair_names(identities), _pair_gaps(scores), strict=True))
    planned = dict.fromkeys(gaps, int(count))
    results: list[InterimResult] = []
    units, bases, looks = 0, 0, 0
    for number in range(1, rule.looks + 1):
        still_open = gaps.keys() - {result.comparison for result in results if result.decision}
        if not still_open:
            break
        needed = {identity for name in still_open for identity in name.split("-")}
        upto = -(-count * number // rule.looks)
        units += len(needed) * (upto - bases)
        bases, looks = upto, number
        so_far = {name: gaps[name][:upto] for name in still_open}
        results += interim_look(rule, number, so_far, planned, results, cluster="base", intervals=False)
    return SimulatedStudy(
        different=frozenset(result.comparison for result in results if result.decision == "different"),
        units=units / (identities * count),
        looks=looks,
    )


def _setting_columns(rule: StoppingRule, setting: SequentialSetting) -> dict[str, Any]:
    return {
        "spending": rule.spending,
        "looks": rule.looks,
        "alpha": rule.alpha,
        "futility": rule.futility,
        "identities": setting.identities,
        "comparisons": math.comb(setting.identities, 2),
        "judges": setting.judges,
        "scenarios": setting.bases * setting.per_base,
        "bases": setting.bases,
        "base_sd": setting.base_sd,
        "effect": setting.effect,
        "icc": setting.icc,
    }


def _rates(setting: SequentialSetting, studies: Sequence[SimulatedStudy], fixed: Bools) -> dict[str, Any]:
    names = _pair_names(setting.identities)
    true = np.array([setting.effect != 0 and name.startswith("0-") for name in names])
    different = np.array([[name in study.different for name in names] for study in studies])
    false_positives = different[:, ~true].any(axis=1)
    rate = wilson(int(false_positives.sum()), len(studies))
    has_null = not true.all()
    power = float(different[:, true].mean()) if true.any() else math.nan
    powers = fixed[:, true].mean(axis=(0, 1)) if true.any() else np.zeros(fixed.shape[2])
    enough = np.flatnonzero(powers >= power)
    return {
        "simulations": len(studies),
        "false_alarms": rate.estimate if has_null else math.nan,
        "low": rate.low if has_null else math.nan,
        "high": rate.high if has_null else math.nan,
        "fixed_false_alarms": float(fixed[:, ~true, -1].any(axis=1).mean()) if has_null else math.nan,
        "power": power,
        "fixed_power": float(powers[-1]) if true.any() else math.nan,
        "units": float(np.mean([study.units for study in studies])),
        "fixed_units": (float(enough[0]) + 1) / fixed.shape[2] if len(enough) else math.nan,
        "looks_made": float(np.mean([study.looks for study in studies])),
    }
