"""One conclusion per pair of identities: different, different but small, alike, or undecided.

"Different" is the sign-flip test over bases, Holm-corrected over the planned pairs. "Alike" needs three things: two
one-sided tests show that the mean difference lies within ±margin (Holm-corrected too), no test finds that the effect
differs between bases (not asked of silent ballots, where it always finds something), and the upper limit of its spread
between bases is below `SPREAD` margins. An identity that is
raised on some bases and lowered on others is not treated alike, even if its mean is.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from parley.analysis.malibu.panel import ScenarioGaps
from parley.analysis.stats.heterogeneity import heterogeneity
from parley.analysis.stats.multiplicity import holm
from parley.analysis.stats.power import clusters_for_equivalence, detectable, equivalence_power
from parley.analysis.stats.signflips import clusters_to_reject, sign_flip_test
from parley.base.text import plural

MARGIN = 0.1
"""Points of the scale, or in pairs wins minus losses per comparison: a smaller difference counts as none."""
# A mean near 0 is not enough: with +1.5 points on ten bases and -1.5 on ten, 40 of 40 simulated runs would be called
# alike within ±0.5. The price is that sampled designs have almost no chance to show "alike" at the default margin.
# Silent ballots have: in simulated runs (`parley calibrate --adversarial --only "silent, alike"`) with an SD of 0.05
# between bases "alike" is said in all, at ±1.5 in none, and at an SD that is just the limit, 0.2, in 2 to 5%, as the
# upper limit is one of 95%.
SPREAD = 2.0
"""Margins: the standard deviation of effects between bases must be shown to be smaller for "alike"."""
ALPHA = 0.05
DIFFERENT, SMALL, ALIKE, ON_AVERAGE, UNDECIDED = (
    "different",
    "different but small",
    "alike",
    "alike on average",
    "undecided",
)
NO_EFFECT: dict[str, Any] = {
    "difference": math.nan,
    "low": math.nan,
    "high": math.nan,
    "p": math.nan,
    "p_adjusted": math.nan,
    "conclusion": "",
    "p_alike": math.nan,
    "p_alike_adjusted": math.nan,
    "base_sd": math.nan,
    "base_sd_high": math.nan,
    "p_bases": math.nan,
    "p_bases_adjusted": math.nan,
    "scenario_low": math.nan,
    "scenario_high": math.nan,
    "scenario_p": math.nan,
    "detectable": math.nan,
    "chance_alike": math.nan,
    "bases_for_alike": math.nan,
    "family": "",
    "n": 0,
    "clusters": 0,
    "note": "",
}
EFFECT_COLUMNS = list(NO_EFFECT)


NOT_SCORED = "no scenario has readable verdicts on both"


def estimate(gaps: ScenarioGaps) -> dict[str, Any]:
    """The mean difference of one pair over bases, with its interval and p-value.

    Args:
        gaps: The differences by scenario.
    """
    test = gaps.test()
    if not test.clusters:
        return NO_EFFECT | {"note": NOT_SCORED}
    few = f"no interval: fewer than {clusters_to_reject(ALPHA)} bases" if math.isinf(test.low) else ""
    return NO_EFFECT | {
        "difference": test.estimate,
        "low": test.low,
        "high": test.high,
        "p": test.p,
        "n": len(gaps.values),
        "clusters": test.clusters,
        "note": few,
    }


def effect(gaps: ScenarioGaps, margin: float) -> dict[str, Any]:
    """The estimate of one pair with all its tests, before any correction.

    Args:
        gaps: The differences by scenario.
        margin: The difference that still counts as none.
    """
    if not len(gaps.values):
        return estimate(gaps) | {"sd": math.nan}
    by_cluster, by_scenario = gaps.by_cluster(), sign_flip_test(gaps.values)
    spread = heterogeneity(gaps.values, gaps.bases)
    return estimate(gaps) | {
        "p_alike": gaps.equivalence_p(margin),
        "base_sd": spread.sd,
        "base_sd_high": spread.upper,
        "p_bases": spread.p,
        "scenario_low": by_scenario.low,
        "scenario_high": by_scenario.high,
        "scenario_p": by_scenario.p,
        "crossed": gaps.wordings is not None,
        "sd": float(np.std(by_cluster, ddof=1)) if len(by_cluster) > 1 else math.nan,
    }


def with_conclusions(
    rows: list[dict[str, Any]], family: str, margin: float, *, silent: bool = False
) -> list[dict[str, Any]]:
    """The pairs of one family with corrected p-values, a conclusion, and what the design could have shown.

    Args:
        rows: What `effect` returned for each pair, with what identifies it.
        family: Name of the family.
        margin: The difference that still counts as none.
        silent: Whether the scores are of silent ballots, where the test of differences between bases has no veto.
    """
    corrected = {key: holm([row[key] for row in rows], family) for key in ("p", "p_alike", "p_bases")}
    tests = corrected["p"].tests
    named = f"{family} (Holm, {plural(tests, 'test')})"
    concluded = []
    for place, row in enumerate(rows):
        adjusted = {f"{key}_adjusted": found.adjusted[place] for key, found in corrected.items()}
        concluded.append(_concluded(row | adjusted | {"family": named}, tests, margin, silent))
    return concluded


def _concluded(row: dict[str, Any], tests: int, margin: float, silent: bool) -> dict[str, Any]:
    bases, sd = row["clusters"], row.pop("sd")
    different, within = row["p_adjusted"] <= ALPHA, row["p_alike_adjusted"] <= ALPHA
    # A silent ballot has hardly any noise, so the test finds that bases differ by hundredths of a point, and "alike"
    # would never be said. There the upper limit of the spread decides alone; see SPREAD for what it lets through.
    varies, spread = row["p_bases_adjusted"] <= ALPHA and not silent, row["base_sd_high"]
    notes = [row["note"]] if row["note"] else []
    if different:
        conclusion = SMALL if within else DIFFERENT
    elif within and varies:
        conclusion = UNDECIDED
        notes.append(f"the mean is within ±{margin:g}, but the effect differs between bases")
    elif within and math.isnan(spread):
        conclusion = ON_AVERAGE
        notes.append("by base unknown: one scenario per base")
    elif within and spread < SPREAD * margin:
        conclusion = ALIKE
    else:
        conclusion = UNDECIDED if bases else ""
        if within:
            notes.append(
                f"the mean is within ±{margin:g}, but effects may differ between bases (SD up to {spread:.2g})"
            )
    if not row.pop("crossed", False) and 0 < bases < (least := clusters_to_reject(ALPHA, tests)):
        notes.append(f"no difference can be significant among {plural(tests, 'test')} with fewer than {least} bases")
    if not different and bases > 1:
        row["detectable"] = sd * _detectable_sds(bases, tests) if sd > 0 else math.nan
    if conclusion == UNDECIDED and bases > 1 and sd > 0:
        chance, needed = _chances_of_alike(bases, float(f"{sd:.2g}"), margin, tests)
        row |= {"chance_alike": chance, "bases_for_alike": needed}
    return row | {"conclusion": conclusion, "note": "; ".join(notes)}


@lru_cache(maxsize=64)
def _detectable_sds(bases: int, tests: int) -> float:
    """The effect that is found in 80% of runs, in standard deviations of a base's difference."""
    return detectable(bases, 1.0, tests=tests, alpha=ALPHA)


@lru_cache(maxsize=1024)
def _chances_of_alike(bases: int, sd: float, margin: float, tests: int) -> tuple[float, float]:
    """The chance to show "alike", and the bases that would give 80%: to plan with, so two digits of `sd` are enough."""
    chance = equivalence_power(bases, sd, margin, tests=tests, alpha=ALPHA)
    return chance, clusters_for_equivalence(sd, margin, tests=tests, alpha=ALPHA) or math.nan
