"""What stopping early saves: simulated studies, once looked at as they grow and once at their end only.

Judges are simulated as in `calibration`; the first identity has the planted effect, so comparisons with it are true
differences and those among the others are not. A unit is one scenario under one identity, held as long as a
comparison with that identity is open. Both designs have the same scenarios at most and the same alpha for all
comparisons together (Holm): what differs is when they stop.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from analysis.calibration import Setting, simulate
from analysis.multiplicity import holm
from analysis.proportions import wilson
from analysis.sequential import Rule, Seen, clustered_t, look
from analysis.tables import Floats


@dataclass(frozen=True, slots=True)
class Ended:
    """How one simulated study ended: which pairs were called different, and the share of its units it took."""

    different: frozenset[str]
    units: float
    looks: int


def savings(
    rules: Sequence[Rule],
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
        fixed = [at_the_end(one, rules[0].alpha) for one in scores]
        for rule in rules:
            ended = [run(one, rule) for one in scores]
            rows.append({**_place(rule, many, setting), **_rates(setting.effect, many, ended, fixed)})
        if progress:
            progress(at + 1, len(settings))
    return pd.DataFrame(rows)


def pairs(scores: Floats) -> dict[str, Floats]:
    """Differences by scenario for every two identities; the name says which."""
    return {f"{a}-{b}": scores[a] - scores[b] for a, b in combinations(range(len(scores)), 2)}


def at_the_end(scores: Floats, alpha: float) -> Ended:
    """The fixed design: one test of every pair at the end, corrected by Holm."""
    gaps = pairs(scores)
    adjusted = holm([clustered_t(gap)[2] for gap in gaps.values()], "all pairs").adjusted
    return Ended(frozenset(name for name, p in zip(gaps, adjusted, strict=True) if p <= alpha), 1.0, 1)


def run(scores: Floats, rule: Rule) -> Ended:
    """The sequential design on a table of identities by scenarios, looked at as a run is."""
    gaps, (many, count) = pairs(scores), scores.shape
    planned = dict.fromkeys(gaps, int(count))
    seen: list[Seen] = []
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
        seen += look(rule, number, {name: gaps[name][:upto] for name in still}, planned, seen)
    found = frozenset(one.comparison for one in seen if one.decision == "different")
    return Ended(found, spent / (many * count), number)


def _place(rule: Rule, many: int, setting: Setting) -> dict[str, Any]:
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


def _rates(effect: float, many: int, ended: Sequence[Ended], fixed: Sequence[Ended]) -> dict[str, Any]:
    names = [f"{a}-{b}" for a, b in combinations(range(many), 2)]
    true = {name for name in names if effect and name.startswith("0-")}
    alarms, fixed_alarms = ([bool(one.different - true) for one in ends] for ends in (ended, fixed))
    known = len(true) < len(names)
    rate = wilson(sum(alarms), len(alarms))
    return {
        "simulations": len(ended),
        "false_alarms": rate.estimate if known else math.nan,
        "low": rate.low if known else math.nan,
        "high": rate.high if known else math.nan,
        "fixed_false_alarms": float(np.mean(fixed_alarms)) if known else math.nan,
        "power": _power(ended, true),
        "fixed_power": _power(fixed, true),
        "units": float(np.mean([one.units for one in ended])),
        "looks_made": float(np.mean([one.looks for one in ended])),
    }


def _power(ends: Sequence[Ended], true: set[str]) -> float:
    """The share of true differences that were found."""
    return float(np.mean([len(one.different & true) / len(true) for one in ends])) if true else math.nan
