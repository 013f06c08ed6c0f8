"""What stopping early saves: simulated studies, once looked at as they grow and once at their end only.

Judges are simulated as in `calibration`; the first identity has the planted effect, so comparisons with it are true
differences and those among the others are not. A unit is one scenario under one identity, held as long as a
comparison with that identity is open. Both designs have the same scenarios at most and the same alpha for all
comparisons together (Holm): what differs is when they stop. `fixed_units` is the share of scenarios with which a
fixed design has the power that the sequential one had: what is saved at equal error rates of both kinds.
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


@dataclass(frozen=True, slots=True)
class Ended:
    """How one simulated study ended: which pairs were called different, and the share of its units it took."""

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
    """One row a rule and setting: false alarms, power and units of the sequential design beside the fixed one."""
    settings = [
        (many, Setting(j, s, e, icc)) for many in identities for j in judges for s in scenarios for e in effects
    ]
    rows = []
    for at, (many, setting) in enumerate(settings):
        scores = simulate(setting, simulations, np.random.default_rng([seed, at]), many).mean(axis=3)
        for rule in rules:
            ended = [run(one, rule) for one in scores]
            fixed = fixed_designs(scores, rule.alpha)
            rows.append({**_place(rule, many, setting), **_rates(setting.effect, many, ended, fixed)})
        if progress:
            progress(at + 1, len(settings))
    return pd.DataFrame(rows)


def pairs(scores: Floats) -> dict[str, Floats]:
    """Differences by scenario for every two identities; the name says which."""
    return {f"{a}-{b}": scores[a] - scores[b] for a, b in combinations(range(len(scores)), 2)}


def fixed_designs(scores: Floats, alpha: float) -> Bools:
    """One test of every pair at the end, corrected by Holm, for an end after any number of scenarios.

    From simulation × identity × scenario to simulation × pair × number of scenarios: was the pair called different?
    """
    gaps = np.stack([scores[:, a] - scores[:, b] for a, b in combinations(range(scores.shape[1]), 2)], axis=1)
    count = np.arange(1, gaps.shape[2] + 1)
    mean = gaps.cumsum(axis=2) / count
    squares = np.maximum((gaps**2).cumsum(axis=2) - count * mean**2, 1e-12)
    p = 2 * stdtr(np.maximum(count - 1, 1), -np.abs(mean) * np.sqrt(count * np.maximum(count - 1, 1) / squares))
    p = np.minimum(np.maximum(p, 2.0 ** (1 - (gaps != 0).cumsum(axis=2))), 1.0)
    rank = p.argsort(axis=1).argsort(axis=1)
    reached = np.sort(p, axis=1) <= alpha / np.arange(gaps.shape[1], 0, -1)[:, None]
    different: Bools = rank < np.logical_and.accumulate(reached, axis=1).sum(axis=1, keepdims=True)
    return different


def run(scores: Floats, rule: StoppingRule) -> Ended:
    """The sequential design on a table of identities by scenarios, looked at as a run is."""
    gaps, (many, count) = pairs(scores), scores.shape
    planned = dict.fromkeys(gaps, int(count))
    seen: list[InterimResult] = []
    spent, reached, number = 0, 0, 0
    for number in range(1, rule.looks + 1):
        still = gaps.keys() - {one.comparison for one in seen if one.decision}
        if not still:
            number -= 1
            break
        wanted = {label for name in still for label in name.split("-")}
        upto = -(-count * number // rule.looks)
        spent += len(wanted) * (upto - reached)
        reached = upto
        seen += interim_look(rule, number, {name: gaps[name][:upto] for name in still}, planned, seen)
    found = frozenset(one.comparison for one in seen if one.decision == "different")
    return Ended(found, spent / (many * count), number)


def _place(rule: StoppingRule, many: int, setting: Setting) -> dict[str, Any]:
    return {
        "spending": rule.spending,
        "looks": rule.looks,
        "alpha": rule.alpha,
        "futility": rule.futility,
        "identities": many,
        "comparisons": math.comb(many, 2),
        "judges": setting.judges,
        "scenarios": setting.scenarios,
        "effect": setting.effect,
        "icc": setting.icc,
    }


def _rates(effect: float, many: int, ended: Sequence[Ended], fixed: Bools) -> dict[str, Any]:
    names = [f"{a}-{b}" for a, b in combinations(range(many), 2)]
    true = np.array([effect != 0 and name.startswith("0-") for name in names])
    found = np.array([[name in one.different for name in names] for one in ended])
    alarms = found[:, ~true].any(axis=1)
    rate = wilson(int(alarms.sum()), len(ended))
    known = not true.all()
    power = float(found[:, true].mean()) if true.any() else math.nan
    powers = fixed[:, true].mean(axis=(0, 1)) if true.any() else np.zeros(fixed.shape[2])
    enough = np.flatnonzero(powers >= power)
    return {
        "simulations": len(ended),
        "false_alarms": rate.estimate if known else math.nan,
        "low": rate.low if known else math.nan,
        "high": rate.high if known else math.nan,
        "fixed_false_alarms": float(fixed[:, ~true, -1].any(axis=1).mean()) if known else math.nan,
        "power": power,
        "fixed_power": float(powers[-1]) if true.any() else math.nan,
        "units": float(np.mean([one.units for one in ended])),
        "fixed_units": (float(enough[0]) + 1) / fixed.shape[2] if len(enough) else math.nan,
        "looks_made": float(np.mean([one.looks for one in ended])),
    }
