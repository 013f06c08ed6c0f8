"""How many scenarios are needed, and what can be found with those there are.

An observation is one judge's word: its score (independent design: every scenario carries one label) or its difference
between two labels (paired design: every scenario carries both, the design of MALIBU's phase 1). `sd` is the standard
deviation of such observations, `icc` how alike those of one scenario are, `judges` how many a scenario has. The mean
of a scenario then has variance sd²·(1 + (judges - 1)·icc) / judges, and the tests are t tests over scenarios.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from scipy import optimize
from statsmodels.stats.power import TTestIndPower, TTestPower

Design = Literal["paired", "independent"]
MOST = 10_000_000
ASSUMES = "scenarios are independent, their means roughly normal; two-sided t test over scenarios"


@dataclass(frozen=True, slots=True)
class Plan:
    """A study of two labels. `scenarios` counts all of them; in the independent design half carry each label."""

    design: Design
    scenarios: float
    judges: int
    effect: float
    sd: float
    icc: float
    alpha: float
    power: float
    design_effect: float
    assumes: str = ASSUMES
    note: str = ""

    @property
    def standardised(self) -> float:
        """The effect in standard deviations of a scenario's mean, which is what the t test sees."""
        return self.effect / (self.sd * math.sqrt(self.design_effect / self.judges))


def design_effect(size: float, icc: float) -> float:
    """1 + (m - 1)·ICC: by how much clusters of m multiply the variance of a mean."""
    return 1 + (size - 1) * icc


def sd_of_differences(sd: float, correlation: float) -> float:
    """The sd of one judge's difference between two labels, from the sd of its scores and how they correlate."""
    return sd * math.sqrt(2 * (1 - correlation))


def power_with(
    scenarios: int,
    effect: float,
    *,
    sd: float = 1.0,
    icc: float = 0.0,
    judges: int = 1,
    alpha: float = 0.05,
    design: Design = "paired",
) -> Plan:
    """The chance to find `effect` (raw; with sd 1, standardised) with so many scenarios."""
    plan = _plan(design, scenarios, judges, effect, sd, icc, alpha, math.nan)
    if scenarios < (2 if design == "paired" else 4):
        return replace(plan, note="a t test needs two scenarios, or two a label in the independent design")
    return replace(plan, power=_power(plan))


def scenarios_needed(
    effect: float,
    *,
    sd: float = 1.0,
    icc: float = 0.0,
    judges: int = 1,
    alpha: float = 0.05,
    power: float = 0.8,
    design: Design = "paired",
) -> Plan:
    """The fewest scenarios that find `effect` with at least this power. The plan's power is what they then have."""
    wanted = _plan(design, math.nan, judges, effect, sd, icc, alpha, power)
    if effect == 0:
        return replace(wanted, note="an effect of 0 cannot be found; for showing that there is none, see equivalence")
    step = 1 if design == "paired" else 2
    low, high = 1, 2
    while _power(replace(wanted, scenarios=high * step)) < power:
        low, high = high, high * 2
        if high > MOST:
            return replace(wanted, note=f"more than {MOST:,} scenarios would be needed")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _power(replace(wanted, scenarios=middle * step)) >= power else (middle, high)
    found = replace(wanted, scenarios=high * step)
    return replace(found, power=_power(found))


def detectable_effect(
    scenarios: int,
    *,
    sd: float = 1.0,
    icc: float = 0.0,
    judges: int = 1,
    alpha: float = 0.05,
    power: float = 0.8,
    design: Design = "paired",
) -> Plan:
    """The smallest effect that so many scenarios find with this power."""
    plan = _plan(design, scenarios, judges, math.nan, sd, icc, alpha, power)
    if scenarios < (2 if design == "paired" else 4):
        return replace(plan, note="a t test needs two scenarios, or two a label in the independent design")
    top = sd
    while _power(replace(plan, effect=top)) < power:
        top *= 2
    found = optimize.brentq(lambda effect: _power(replace(plan, effect=effect)) - power, 0.0, top, xtol=1e-9 * sd)
    return replace(plan, effect=float(found))


def _plan(
    design: Design, scenarios: float, judges: int, effect: float, sd: float, icc: float, alpha: float, power: float
) -> Plan:
    bad = {
        "sd must be above 0": not sd > 0,
        "judges must be at least 1": judges < 1,
        "icc must lie between 0 and 1": not 0 <= icc <= 1,
        "alpha must lie between 0 and 1": not 0 < alpha < 1,
        "power must lie between alpha and 1": not (math.isnan(power) or alpha < power < 1),
    }
    for message, wrong in bad.items():
        if wrong:
            raise ValueError(message)
    return Plan(design, scenarios, judges, effect, sd, icc, alpha, power, design_effect(judges, icc))


def _power(plan: Plan) -> float:
    size = abs(plan.standardised)
    if plan.design == "paired":
        found = TTestPower().power(size, plan.scenarios, plan.alpha)
    else:
        found = TTestIndPower().power(size, plan.scenarios // 2, plan.alpha)
    # the noncentral t runs out of numbers where the effect is many errors away from 0
    return 1.0 if math.isnan(found) else float(found)
