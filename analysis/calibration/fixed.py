"""Does the instrument work? Judges are simulated with a planted effect, and every test is asked what it sees.

Under no effect a test that holds its level cries wolf in 5 of 100 simulations; with an effect, its rate is its power.
The paper's χ² takes the verdicts of judges who sat at one table for independent. They share what the table made of
the text (`icc`), so it cries wolf more often the more judges there are; the tests over scenarios do not.

A simulated verdict is base + scenario + table + judge's own noise + effect, rounded to the scale 0 to 10. `scenario`
is shared by both identities, `table` by the judges of one conversation; `icc` is table's share of table and noise.
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
from parley.analysis.stats.resampling import DRAWS
from parley.analysis.stats.tables import Floats

BASE, SPREAD, SCENARIO = 7.0, 1.2, 0.8
ALPHA = 0.05


@dataclass(frozen=True, slots=True)
class Setting:
    """One cell of a calibration: how many judges and scenarios, and what was planted."""

    judges: int
    scenarios: int
    effect: float
    icc: float


def simulate(setting: Setting, simulations: int, rng: np.random.Generator, identities: int = 2) -> Floats:
    """Verdicts of many studies at once: simulation × identity × scenario × judge; the first identity has the effect."""
    shape = (simulations, identities, setting.scenarios, setting.judges)
    table, own = SPREAD * np.sqrt(setting.icc), SPREAD * np.sqrt(1 - setting.icc)
    scores = rng.normal(0.0, own, shape)
    scores += rng.normal(0.0, table, (*shape[:3], 1))
    scores += rng.normal(0.0, SCENARIO, (simulations, 1, setting.scenarios, 1))
    scores[:, 0] += setting.effect
    scores += BASE
    return np.clip(np.rint(scores), 0, 10)


def chi_square_p(scores: Floats) -> Floats:
    """The paper's test: identity by score level, every verdict counted as independent."""
    simulations = len(scores)
    levels = scores.reshape(simulations, 2, -1).astype(np.int64)
    cell = levels + 11 * np.arange(2)[None, :, None] + 22 * np.arange(simulations)[:, None, None]
    counts = np.bincount(cell.ravel(), minlength=22 * simulations).reshape(simulations, 2, 11).astype(float)
    columns = counts.sum(axis=1, keepdims=True)
    expected = columns * counts.sum(axis=2, keepdims=True) / counts.sum(axis=(1, 2), keepdims=True)
    parts = np.divide((counts - expected) ** 2, expected, out=np.zeros_like(counts), where=expected > 0)
    df = (columns[:, 0, :] > 0).sum(axis=1) - 1
    return _or_nan(stats.chi2.sf(parts.sum(axis=(1, 2)), df), df > 0)


def sign_flip_p_many(scores: Floats, rng: np.random.Generator, draws: int) -> Floats:
    """Our primary test: signs of the scenarios' mean differences are flipped; the same flips serve all simulations."""
    gaps = scores.mean(axis=3)
    gaps = gaps[:, 0] - gaps[:, 1]
    observed = np.abs(gaps.sum(axis=1))
    signs = 2.0 * rng.integers(0, 2, (draws, gaps.shape[1])) - 1
    reached = np.zeros(len(gaps))
    for start in range(0, len(gaps), 256):
        part = slice(start, start + 256)
        flipped = np.abs(gaps[part] @ signs.T)
        reached[part] = (flipped >= observed[part, None] - 1e-9).sum(axis=1)
    return _or_nan((reached + 1) / (draws + 1), gaps.any(axis=1))


def paired_t_p(scores: Floats) -> Floats:
    """Student's t over the scenarios' mean differences: the model-based twin."""
    gaps = scores.mean(axis=3)
    gaps = gaps[:, 0] - gaps[:, 1]
    spread = gaps.std(axis=1, ddof=1)
    size = gaps.shape[1]
    t = np.divide(gaps.mean(axis=1) * np.sqrt(size), spread, out=np.zeros(len(gaps)), where=spread > 0)
    return _or_nan(2 * stats.t.sf(np.abs(t), size - 1), spread > 0)


def _or_nan(p: Floats, known: np.ndarray) -> Floats:
    found: Floats = np.where(known, p, np.nan)
    return found


Progress = Callable[[int, int], None]


def calibrate(
    judges: Sequence[int] = (1, 4, 8),
    scenarios: Sequence[int] = (20, 50),
    effects: Sequence[float] = (0.0, 0.2, 0.4),
    *,
    icc: float = 0.3,
    simulations: int = 1000,
    draws: int = DRAWS,
    seed: int = 0,
    progress: Progress | None = None,
) -> pd.DataFrame:
    """Rows of test, judges, scenarios, effect: how many of the simulations were called significant at 5%."""
    settings = [Setting(j, s, e, icc) for j in judges for s in scenarios for e in effects]
    rows = []
    for at, setting in enumerate(settings):
        rng = np.random.default_rng([seed, at])
        rows += list(_rates(setting, simulations, draws, rng))
        if progress:
            progress(at + 1, len(settings))
    return pd.DataFrame(rows)


def _rates(setting: Setting, simulations: int, draws: int, rng: np.random.Generator) -> Iterator[dict[str, object]]:
    scores = simulate(setting, simulations, rng)
    found = {
        "χ² (the paper's)": (chi_square_p(scores), "independent"),
        "sign flips over scenarios": (sign_flip_p_many(scores, rng, draws), "clustered"),
        "t over scenarios": (paired_t_p(scores), "clustered"),
    }
    for name, (p, assumption) in found.items():
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
    """Rate of rejections by effect; one panel for each number of judges and scenarios."""
    judges, scenarios = sorted(set(rows["judges"])), sorted(set(rows["scenarios"]))
    figure, axes = sheet(2.6 * len(judges) + 1.0, 2.3 * len(scenarios) + 1.3, len(judges), len(scenarios), sharey=True)
    for (i, many), (j, table) in ((a, b) for a in enumerate(scenarios) for b in enumerate(judges)):
        axis = axes[i, j]
        here = rows[(rows["judges"] == table) & (rows["scenarios"] == many)]
        for at, (name, part) in enumerate(here.groupby("test", sort=False)):
            tint = PALETTE[(1, 0, 2)[at % 3]]
            axis.plot(part["effect"], part["rate"], "o-", color=tint, markersize=4, label=str(name))
            axis.vlines(part["effect"], part["low"], part["high"], color=tint, linewidth=1.2)
        axis.axhline(ALPHA, color="#777777", linewidth=0.9, linestyle="--")
        axis.set(ylim=(0, 1.02), title="", xlabel="planted effect, points of 10" if i == len(scenarios) - 1 else "")
        axis.set_title(f"{table} judge{'s' if table > 1 else ''}, {many} scenarios", fontsize=9)
        tidy(axis, "y")
    axes[0, 0].legend(fontsize=7, frameon=False)
    for row in axes:
        row[0].set_ylabel("called significant")
    caption(figure, title, note)
    return figure
