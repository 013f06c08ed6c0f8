"""Calibration on data that meet the tests' assumptions: false-positive rate and power, for `parley calibrate`.

Without an effect a valid test is significant in 5 of 100 simulations; with an effect, its rate is its power. The
paper's χ² takes the verdicts of judges in one conversation as independent. They share what the panel made of the text
(`icc`), so its false-positive rate rises with the number of judges; that of the tests over scenarios does not.

A simulated verdict is base + scenario + panel + judge's noise + effect, rounded to the scale 0 to 10. `scenario` is
shared by both identities, `panel` by the judges of one conversation; `icc` is the panel's share of the variance of
panel and noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import stats

from parley.analysis.reporting.figures import PALETTE, caption, sheet, tidy
from parley.analysis.stats.proportions import wilson
from parley.analysis.stats.results import ALPHA
from parley.analysis.stats.signflips import sign_flip_p
from parley.analysis.stats.tables import Floats
from parley.base.text import plural

BASE, VERDICT_SD, SCENARIO_SD = 7.0, 1.2, 0.8
SCORES = 11  # from 0 to 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One cell of a calibration.

    Args:
        judges: Judges per scenario.
        scenarios: Scenarios per study.
        effect: The difference that was planted, in points.
        icc: Intraclass correlation of judges in one conversation.
    """

    judges: int
    scenarios: int
    effect: float
    icc: float


def simulate(setting: Setting, simulations: int, rng: np.random.Generator) -> Floats:
    """Verdicts of many simulated studies.

    Args:
        setting: The studies' size and the planted effect, which the first identity has.
        simulations: Number of studies.
        rng: Random generator.

    Returns:
        Scores by simulation, identity (two), scenario and judge.
    """
    shape = (simulations, 2, setting.scenarios, setting.judges)
    panel_sd, noise_sd = VERDICT_SD * np.sqrt(setting.icc), VERDICT_SD * np.sqrt(1 - setting.icc)
    scores = rng.normal(0.0, noise_sd, shape)
    scores += rng.normal(0.0, panel_sd, (*shape[:3], 1))
    scores += rng.normal(0.0, SCENARIO_SD, (simulations, 1, setting.scenarios, 1))
    scores[:, 0] += setting.effect
    scores += BASE
    return np.clip(np.rint(scores), 0, SCORES - 1)


def chi_square_p(scores: Floats) -> Floats:
    """P-values of the paper's test: identity by score, every verdict counted as independent; NaN is left out."""
    simulations = len(scores)
    points = scores.reshape(simulations, 2, -1)
    size = 2 * SCORES
    cell = points + SCORES * np.arange(2)[None, :, None] + size * np.arange(simulations)[:, None, None]
    cell = cell[np.isfinite(cell)].astype(np.int64)
    counts = np.bincount(cell, minlength=size * simulations).reshape(simulations, 2, SCORES).astype(float)
    columns = counts.sum(axis=1, keepdims=True)
    expected = columns * counts.sum(axis=2, keepdims=True) / counts.sum(axis=(1, 2), keepdims=True)
    parts = np.divide((counts - expected) ** 2, expected, out=np.zeros_like(counts), where=expected > 0)
    df = (columns[:, 0, :] > 0).sum(axis=1) - 1
    return _nan_unless(df > 0, stats.chi2.sf(parts.sum(axis=(1, 2)), df))


def sign_flips_p(scores: Floats) -> Floats:
    """P-values of our primary test, sign flips over clusters; here the scenarios are simulated as independent."""
    gaps = _gaps(scores)
    return _nan_unless(np.abs(gaps).max(axis=1) > 0, np.array([sign_flip_p(study) for study in gaps]))


def paired_t_p(scores: Floats) -> Floats:
    """P-values of Student's t over the scenarios' mean differences: the model-based counterpart."""
    gaps = _gaps(scores)
    spread = gaps.std(axis=1, ddof=1)
    size = gaps.shape[1]
    t = np.divide(gaps.mean(axis=1) * np.sqrt(size), spread, out=np.zeros(len(gaps)), where=spread > 0)
    return _nan_unless(spread > 0, 2 * stats.t.sf(np.abs(t), size - 1))


def _gaps(scores: Floats) -> Floats:
    """First minus second identity, by simulation and scenario."""
    means = scores.mean(axis=3)
    gaps: Floats = means[:, 0] - means[:, 1]
    return gaps


def _nan_unless(known: np.ndarray, p: Floats) -> Floats:
    values: Floats = np.where(known, p, np.nan)
    return values


Progress = Callable[[int, int], None]


def calibrate(
    judges: Sequence[int] = (1, 4, 8),
    scenarios: Sequence[int] = (20, 50),
    effects: Sequence[float] = (0.0, 0.2, 0.4),
    *,
    icc: float = 0.3,
    simulations: int = 1000,
    seed: int = 0,
    progress: Progress | None = None,
) -> pd.DataFrame:
    """How often each test is significant at 5%, on simulated studies.

    Args:
        judges: Numbers of judges per scenario.
        scenarios: Numbers of scenarios per study.
        effects: Differences to plant, in points; 0 gives the false-positive rate.
        icc: Intraclass correlation of judges in one conversation.
        simulations: Studies per cell (combination of the three above).
        seed: Seed of the simulations.
        progress: Called after each cell with the number of finished cells and of all.

    Returns:
        One row per test and cell, with `rate` and its 95% Wilson interval.
    """
    settings = [
        Setting(judges=judge_count, scenarios=scenario_count, effect=effect, icc=icc)
        for judge_count in judges
        for scenario_count in scenarios
        for effect in effects
    ]
    rows = []
    for number, setting in enumerate(settings):
        rng = np.random.default_rng([seed, number])
        rows += list(_rates(setting, simulations, rng))
        if progress:
            progress(number + 1, len(settings))
    return pd.DataFrame(rows)


def _rates(setting: Setting, simulations: int, rng: np.random.Generator) -> Iterator[dict[str, object]]:
    scores = simulate(setting, simulations, rng)
    tests = {
        "χ² (the paper's)": (chi_square_p(scores), "independent"),
        "sign flips over scenarios": (sign_flips_p(scores), "clustered"),
        "t over scenarios": (paired_t_p(scores), "clustered"),
    }
    for name, (p, assumption) in tests.items():
        known = np.isfinite(p)
        rejections = int((p[known] <= ALPHA).sum())
        rate = wilson(rejections, int(known.sum()))
        yield {
            "test": name,
            "assumption": assumption,
            "judges": setting.judges,
            "scenarios": setting.scenarios,
            "effect": setting.effect,
            "icc": setting.icc,
            "rejections": rejections,
            "simulations": int(known.sum()),
            "rate": rate.estimate,
            "low": rate.low,
            "high": rate.high,
        }


def calibration_figure(rows: pd.DataFrame, title: str, note: str) -> Figure:
    """The rate of significant tests by effect, one panel per number of judges and scenarios.

    Args:
        rows: What `calibrate` returns.
        title: Title of the figure.
        note: Small print below it.
    """
    judges, scenarios = sorted(set(rows["judges"])), sorted(set(rows["scenarios"]))
    figure, axes = sheet(2.6 * len(judges) + 1.0, 2.3 * len(scenarios) + 1.3, len(judges), len(scenarios), sharey=True)
    for i, scenario_count in enumerate(scenarios):
        for j, judge_count in enumerate(judges):
            axis = axes[i, j]
            cell = rows[(rows["judges"] == judge_count) & (rows["scenarios"] == scenario_count)]
            for number, (name, part) in enumerate(cell.groupby("test", sort=False)):
                tint = PALETTE[(1, 0, 2)[number % 3]]
                axis.plot(part["effect"], part["rate"], "o-", color=tint, markersize=4, label=str(name))
                axis.vlines(part["effect"], part["low"], part["high"], color=tint, linewidth=1.2)
            axis.axhline(ALPHA, color="#777777", linewidth=0.9, linestyle="--")
            axis.set(ylim=(0, 1.02), xlabel="planted effect, points of 10" if i == len(scenarios) - 1 else "")
            axis.set_title(f"{plural(judge_count, 'judge')}, {plural(scenario_count, 'scenario')}", fontsize=9)
            tidy(axis, "y")
    axes[0, 0].legend(fontsize=7, frameon=False)
    for row in axes:
        row[0].set_ylabel("share significant")
    caption(figure, title, note)
    return figure
