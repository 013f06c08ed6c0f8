"""Calibration of stopping rules: error rates and savings of a sequential design beside a fixed one.

Judges are simulated as in `calibration.fixed`; the first identity has the planted effect, so comparisons with it are
true differences and those among the others are not. A unit is one scenario under one identity, run as long as a
comparison with that identity is open. Both designs have at most the same scenarios and the same alpha for all
comparisons together (Holm); they differ in when they stop. `fixed_units` is the share of scenarios with which a fixed
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

from parley.analysis.calibration.fixed import Setting, simulate
from parley.analysis.stats.proportions import wilson
from parley.analysis.stats.sequential import InterimResult, StoppingRule, interim_look
from parley.analysis.stats.tables import Floats

Bools = NDArray[np.bool_]


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
        icc: Intraclass correlation of judges in one conversation.
        simulations: Studies per row.
        seed: Seed of the simulations.
        progress: Called after each setting with the number of finished settings and of all.

    Returns:
        One row per rule and setting.
    """
    settings = [
        (identity_count, Setting(judges=judge_count, scenarios=scenario_count, effect=effect, icc=icc))
        for identity_count in identities
        for judge_count in judges
        for scenario_count in scenarios
        for effect in effects
    ]
    rows = []
    for number, (identity_count, setting) in enumerate(settings):
        rng = np.random.default_rng([seed, number])
        scores = simulate(setting, simulations, rng, identity_count).mean(axis=3)
        for rule in rules:
            studies = [run_sequential(study, rule) for study in scores]
            fixed = fixed_designs(scores, rule.alpha)
            rates = _rates(setting.effect, identity_count, studies, fixed)
            rows.append({**_setting_columns(rule, identity_count, setting), **rates})
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
    """One test of every pair at the end, corrected by Holm, for an end after any number of scenarios.

    Args:
        scores: Means by simulation, identity and scenario.
        alpha: Significance level for all pairs together.

    Returns:
        By simulation, pair and number of scenarios: whether the pair is significant.
    """
    gaps = _pair_gaps(scores)
    count = np.arange(1, gaps.shape[2] + 1)
    mean = gaps.cumsum(axis=2) / count
    squares = np.maximum((gaps**2).cumsum(axis=2) - count * mean**2, 1e-12)
    p = 2 * stdtr(np.maximum(count - 1, 1), -np.abs(mean) * np.sqrt(count * np.maximum(count - 1, 1) / squares))
    p = np.minimum(np.maximum(p, 2.0 ** (1 - (gaps != 0).cumsum(axis=2))), 1.0)
    rank = p.argsort(axis=1).argsort(axis=1)
    reached = np.sort(p, axis=1) <= alpha / np.arange(gaps.shape[1], 0, -1)[:, None]
    different: Bools = rank < np.logical_and.accumulate(reached, axis=1).sum(axis=1, keepdims=True)
    return different


def run_sequential(scores: Floats, rule: StoppingRule) -> SimulatedStudy:
    """One study under a stopping rule, with the looks that a run would make.

    Args:
        scores: Means by identity and scenario.
        rule: The stopping rule.
    """
    identities, count = scores.shape
    gaps = dict(zip(_pair_names(identities), _pair_gaps(scores), strict=True))
    planned = dict.fromkeys(gaps, int(count))
    results: list[InterimResult] = []
    units, scenarios, looks = 0, 0, 0
    for number in range(1, rule.looks + 1):
        still_open = gaps.keys() - {result.comparison for result in results if result.decision}
        if not still_open:
            break
        needed = {identity for name in still_open for identity in name.split("-")}
        upto = -(-count * number // rule.looks)
        units += len(needed) * (upto - scenarios)
        scenarios, looks = upto, number
        results += interim_look(rule, number, {name: gaps[name][:upto] for name in still_open}, planned, results)
    return SimulatedStudy(
        different=frozenset(result.comparison for result in results if result.decision == "different"),
        units=units / (identities * count),
        looks=looks,
    )


def _setting_columns(rule: StoppingRule, identities: int, setting: Setting) -> dict[str, Any]:
    return {
        "spending": rule.spending,
        "looks": rule.looks,
        "alpha": rule.alpha,
        "futility": rule.futility,
        "identities": identities,
        "comparisons": math.comb(identities, 2),
        "judges": setting.judges,
        "scenarios": setting.scenarios,
        "effect": setting.effect,
        "icc": setting.icc,
    }


def _rates(effect: float, identities: int, studies: Sequence[SimulatedStudy], fixed: Bools) -> dict[str, Any]:
    names = _pair_names(identities)
    true = np.array([effect != 0 and name.startswith("0-") for name in names])
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
