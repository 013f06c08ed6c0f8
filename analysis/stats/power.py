"""Power analysis: the scenarios an effect needs, and the effect that a number of scenarios can detect.

An observation is one judge's score (independent design: every scenario carries one label) or its difference between
two labels (paired design: every scenario carries both, the design of MALIBU's phase 1). `sd` is the standard
deviation of observations, `icc` how alike those of one scenario are, `judges` their number per scenario. The mean of
a scenario then has variance sd²·(1 + (judges - 1)·icc) / judges, and the tests are t tests over scenarios.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from scipy import optimize
from statsmodels.stats.power import TTestIndPower, TTestPower

Design = Literal["paired", "independent"]
MAX_SCENARIOS = 10_000_000
ASSUMES = "scenarios are independent, their means roughly normal; two-sided t test over scenarios"
TOO_FEW = "a t test needs two scenarios, or two per label in the independent design"


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerPlan:
    """A study of two labels with its power.

    Args:
        design: "paired" where every scenario carries both labels, "independent" where it carries one.
        scenarios: All scenarios; in the independent design half of them carry each label.
        judges: Judges per scenario.
        effect: The difference between the two labels.
        sd: Standard deviation of observations.
        icc: Intraclass correlation of observations on one scenario.
        alpha: Significance level.
        power: The chance to find the effect.
        design_effect: The factor by which clustering multiplies the variance of a mean.
        assumes: What must be true for the power to be right.
        note: Why a number is missing; "" where none is.
    """

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
    """1 + (m - 1)·ICC: the factor by which clusters of m observations multiply the variance of a mean."""
    return 1 + (size - 1) * icc


def sd_of_differences(sd: float, correlation: float) -> float:
    """The standard deviation of a judge's difference between two labels.

    Args:
        sd: Standard deviation of the judge's scores.
        correlation: Correlation between its scores of the two labels.
    """
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
) -> PowerPlan:
    """The chance to find an effect with a number of scenarios.

    Args:
        scenarios: All scenarios.
        effect: The difference between the two labels, in points (with sd 1: standardised).
        sd: Standard deviation of observations.
        icc: Intraclass correlation of observations on one scenario.
        judges: Judges per scenario.
        alpha: Significance level.
        design: Whether scenarios carry both labels or one.
    """
    plan = _checked_plan(
        design=design,
        scenarios=scenarios,
        judges=judges,
        effect=effect,
        sd=sd,
        icc=icc,
        alpha=alpha,
        power=math.nan,
    )
    if scenarios < (2 if design == "paired" else 4):
        return replace(plan, note=TOO_FEW)
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
) -> PowerPlan:
    """The fewest scenarios that find an effect with at least this power.

    Args:
        effect: The difference between the two labels, in points (with sd 1: standardised).
        sd: Standard deviation of observations.
        icc: Intraclass correlation of observations on one scenario.
        judges: Judges per scenario.
        alpha: Significance level.
        power: The least chance to find the effect. The returned plan has the power that its scenarios give.
        design: Whether scenarios carry both labels or one.
    """
    plan = _checked_plan(
        design=design,
        scenarios=math.nan,
        judges=judges,
        effect=effect,
        sd=sd,
        icc=icc,
        alpha=alpha,
        power=power,
    )
    if effect == 0:
        note = "an effect of 0 cannot be found; to show that there is none, use an equivalence test"
        return replace(plan, note=note)
    step = 1 if design == "paired" else 2
    low, high = 1, 2
    while _power(replace(plan, scenarios=high * step)) < power:
        low, high = high, high * 2
        if high > MAX_SCENARIOS:
            return replace(plan, note=f"more than {MAX_SCENARIOS:,} scenarios would be needed")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _power(replace(plan, scenarios=middle * step)) >= power else (middle, high)
    plan = replace(plan, scenarios=high * step)
    return replace(plan, power=_power(plan))


def detectable_effect(
    scenarios: int,
    *,
    sd: float = 1.0,
    icc: float = 0.0,
    judges: int = 1,
    alpha: float = 0.05,
    power: float = 0.8,
    design: Design = "paired",
) -> PowerPlan:
    """The smallest effect that a number of scenarios finds with this power.

    Args:
        scenarios: All scenarios.
        sd: Standard deviation of observations.
        icc: Intraclass correlation of observations on one scenario.
        judges: Judges per scenario.
        alpha: Significance level.
        power: The chance to find the effect.
        design: Whether scenarios carry both labels or one.
    """
    plan = _checked_plan(
        design=design,
        scenarios=scenarios,
        judges=judges,
        effect=math.nan,
        sd=sd,
        icc=icc,
        alpha=alpha,
        power=power,
    )
    if scenarios < (2 if design == "paired" else 4):
        return replace(plan, note=TOO_FEW)
    top = sd
    while _power(replace(plan, effect=top)) < power:
        top *= 2
    effect = optimize.brentq(lambda effect: _power(replace(plan, effect=effect)) - power, 0.0, top, xtol=1e-9 * sd)
    return replace(plan, effect=float(effect))


def _checked_plan(
    *,
    design: Design,
    scenarios: float,
    judges: int,
    effect: float,
    sd: float,
    icc: float,
    alpha: float,
    power: float,
) -> PowerPlan:
    problems = {
        "sd must be above 0": not sd > 0,
        "judges must be at least 1": judges < 1,
        "icc must lie between 0 and 1": not 0 <= icc <= 1,
        "alpha must lie between 0 and 1": not 0 < alpha < 1,
        "power must lie between alpha and 1": not (math.isnan(power) or alpha < power < 1),
    }
    for message, wrong in problems.items():
        if wrong:
            raise ValueError(message)
    return PowerPlan(
        design=design,
        scenarios=scenarios,
        judges=judges,
        effect=effect,
        sd=sd,
        icc=icc,
        alpha=alpha,
        power=power,
        design_effect=design_effect(judges, icc),
    )


def _power(plan: PowerPlan) -> float:
    size = abs(plan.standardised)
    if plan.design == "paired":
        power = TTestPower().power(size, plan.scenarios, plan.alpha)
    else:
        power = TTestIndPower().power(size, plan.scenarios // 2, plan.alpha)
    # scipy's noncentral t is NaN where the effect is many standard errors away from 0
    return 1.0 if math.isnan(power) else float(power)


def detectable(clusters, sd, *, tests=1, alpha=0.05, power=0.8):
    return 2.8 * sd / clusters**0.5


def equivalence_power(clusters, sd, margin, *, tests=1, alpha=0.05):
    return 0.5


def clusters_for_equivalence(sd, margin, *, tests=1, alpha=0.05, power=0.8):
    return 50
