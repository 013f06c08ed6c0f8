"""Calibration on data that meet the tests' assumptions: false-positive rate and power.

Without an effect a valid test is significant in 5 of 100 simulations; with an effect, its rate is its power. The
paper's χ² takes the verdicts of judges in one conversation as independent. They share what the panel made of the text
(`icc`), so its false-positive rate rises with the number of judges; that of the tests over scenarios does not.

A simulated verdict is base + scenario + panel + judge's noise + effect, rounded to the scale 0 to 10. `scenario` is
shared by both identities, `panel` by the judges of one conversation; `icc` is the panel's share of the variance of
panel and noise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from benchmarks.calibration.judges import TOP
from benchmarks.calibration.printed import BY_SCENARIO, CHI_SQUARE, chi_square_p, our_p, t_test, within_judges
from parley.analysis.page.figures import PALETTE, caption, sheet, tidy
from parley.analysis.stats.proportions import wilson
from parley.analysis.stats.results import ALPHA
from parley.analysis.stats.tables import Floats
from parley.base.text import plural

BASE, VERDICT_SD, SCENARIO_SD = 7.0, 1.2, 0.8
T_BY_SCENARIO = "t over scenarios"


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
    icc: float = 0.3


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
    return np.clip(np.rint(scores), 0, TOP)


def calibrate(
    judges: Sequence[int] = (1, 4, 8),
    scenarios: Sequence[int] = (20, 50),
    effects: Sequence[float] = (0.0, 0.2, 0.4),
    *,
    simulations: int = 1000,
    seed: int = 0,
) -> pd.DataFrame:
    """How often each test is significant at 5%, on simulated studies.

    Args:
        judges: Numbers of judges per scenario.
        scenarios: Numbers of scenarios per study.
        effects: Differences to plant, in points; 0 gives the false-positive rate.
        simulations: Studies per cell (combination of the three above).
        seed: Seed of the simulations.

    Returns:
        One row per test and cell, with `rate` and its 95% Wilson interval.
    """
    rows: list[dict[str, object]] = []
    for number, (judge_count, scenario_count, effect) in enumerate(product(judges, scenarios, effects)):
        setting = Setting(judges=judge_count, scenarios=scenario_count, effect=effect)
        rows += _rates(setting, simulations, np.random.default_rng([seed, number]))
    return pd.DataFrame(rows)


def _rates(setting: Setting, simulations: int, rng: np.random.Generator) -> Iterator[dict[str, object]]:
    scores = simulate(setting, simulations, rng)
    gaps = within_judges(scores)
    tests = {CHI_SQUARE: chi_square_p(scores), BY_SCENARIO: our_p(gaps), T_BY_SCENARIO: t_test(gaps)[0]}
    for name, p in tests.items():
        known = np.isfinite(p)
        rejections = int((p[known] <= ALPHA).sum())
        rate = wilson(rejections, int(known.sum()))
        yield {
            "test": name,
            "judges": setting.judges,
            "scenarios": setting.scenarios,
            "effect": setting.effect,
            "rejections": rejections,
            "simulations": rate.n,
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
