"""The adversarial calibration: every test that reports print, on judges that break its assumptions.

    rows = calibrate_adversarially(cells(), simulations=2000, workers=2)

A rate counts false alarms where the test's null hypothesis is true (`null`), and is its power otherwise. `finding` says
where a test that reports rely on misses its target: false alarms of at most 7% at a nominal 5%, and of at least 3%
where the test can attain that; coverage of 93 to 97% from 10 bases on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from benchmarks.calibration.judges import Cell
from benchmarks.calibration.printed import (
    ALIKE,
    BY_BASE,
    BY_SCENARIO,
    CHI_SQUARE,
    MCNEMAR,
    Outcome,
    printed_tests,
)
from benchmarks.calibration.silent import NAIVE_BASES, silent_tests
from parley.analysis.page.figures import LINE, PALETTE, caption, sheet, tidy
from parley.analysis.stats.proportions import wilson
from parley.analysis.stats.results import ALPHA

BATCH = 50
"""Studies per batch. Each batch has its own seed, so the number of workers changes no result."""
MOST, LEAST = 0.07, 0.03
LEAST_COVERAGE, MOST_COVERAGE = 0.93, 0.97
ENOUGH_BASES = 10


def calibrate_adversarially(
    cells: Sequence[Cell], *, simulations: int = 2000, seed: int = 0, workers: int = 1
) -> pd.DataFrame:
    """How often each printed test is significant at 5%, and how often its interval contains the truth.

    Args:
        cells: What is simulated.
        simulations: Studies per cell.
        seed: Seed of the simulations.
        workers: Processes.

    Returns:
        One row per cell and test.
    """
    tasks = [
        (cell, min(BATCH, simulations - batch * BATCH), seed, batch)
        for cell in cells
        for batch in range(-(-simulations // BATCH))
    ]
    if workers == 1:
        found = [_batch(*task) for task in tasks]
    else:
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            found = list(pool.map(_batch, *zip(*tasks, strict=True)))
    per_cell = len(tasks) // len(cells)
    batches = [found[place : place + per_cell] for place in range(0, len(found), per_cell)]
    return pd.DataFrame([row for cell, parts in zip(cells, batches, strict=True) for row in _rows(cell, parts)])


def _batch(cell: Cell, simulations: int, seed: int, batch: int) -> list[Outcome]:
    return (silent_tests if cell.data == "silent" else printed_tests)(cell, simulations, seed, batch)


def _rows(cell: Cell, batches: Sequence[Sequence[Outcome]]) -> Iterator[dict[str, Any]]:
    for parts in zip(*batches, strict=True):
        first = parts[0]
        row: dict[str, Any] = {
            "group": cell.group,
            "cell": cell.name,
            "bases": cell.bases,
            "scenarios": len(cell.base_of),
            "judges": cell.judges,
            "test": first.test,
            "role": first.role,
            "null": first.null,
        }
        rate = coverage = wilson(0, 0)
        rejections = 0
        if first.p is not None:
            p = np.concatenate([part.p for part in parts])
            p = p[np.isfinite(p)]
            rejections = int((p <= ALPHA + 1e-12).sum())
            rate = wilson(rejections, len(p))
        if first.covers is not None:
            covers = np.concatenate([part.covers for part in parts])
            coverage = wilson(int(covers.sum()), len(covers))
        attainable = np.nan
        if first.attainable is not None:
            attainable = float(np.concatenate([part.attainable for part in parts]).mean())
        row |= {
            "rejections": rejections,
            "simulations": max(rate.n, coverage.n),
            "rate": rate.estimate,
            "low": rate.low,
            "high": rate.high,
            "attainable": attainable,
            "coverage": coverage.estimate,
            "coverage_low": coverage.low,
            "coverage_high": coverage.high,
        }
        yield row | {"finding": _finding(cell, row)}


def _finding(cell: Cell, row: dict[str, Any]) -> str:
    """What the test misses by more than chance (its interval excludes the nominal value), if reports rely on it."""
    if row["role"] != "ours":
        return ""
    found = []
    if row["null"] and row["rate"] > MOST and row["low"] > ALPHA:
        found.append("outside the claim: judges are fixed" if cell.judges_drawn else "too many false alarms")
    # Where the same bases have the same effects in every study, an interval for more such bases is rightly too wide.
    may_be_wide = cell.direction != "at random" or row["test"] == ALIKE or row["high"] >= row["attainable"]
    may_be_wide |= cell.judges_drawn or row["attainable"] < LEAST
    if row["null"] and row["rate"] < LEAST and row["high"] < ALPHA and not may_be_wide:
        found.append("conservative")
    if cell.bases >= ENOUGH_BASES and not cell.judges_drawn:
        if row["coverage"] < LEAST_COVERAGE and row["coverage_high"] < 1 - ALPHA:
            found.append("covers too little")
        if row["coverage"] > MOST_COVERAGE and row["coverage_low"] > 1 - ALPHA and not may_be_wide:
            found.append("covers too much")
    return "; ".join(found)


def adversarial_figure(rows: pd.DataFrame, title: str, note: str) -> Figure:
    """False alarms of the primary test by cell, next to tests that take less than a base as independent.

    Args:
        rows: What `calibrate_adversarially` returns.
        title: Title of the figure.
        note: Small print below it.
    """
    shown = {BY_BASE: "o", BY_SCENARIO: "s", CHI_SQUARE: "^", MCNEMAR: "v", NAIVE_BASES: "x"}
    part = rows[rows["null"].astype(bool) & rows["test"].isin(shown)]
    lines = list(dict.fromkeys(zip(part["group"], part["cell"], strict=True)))
    figure, axes = sheet(8.0, LINE * len(lines) + 1.6)
    axis = axes[0, 0]
    for number, (test, marker) in enumerate(shown.items()):
        of_test = part[part["test"] == test]
        places = [lines.index((row.group, row.cell)) for row in of_test.itertuples()]
        above = len(shown) - number  # the primary test is not hidden by others
        axis.hlines(places, of_test["low"], of_test["high"], color=PALETTE[number], linewidth=1.2, zorder=above)
        axis.plot(of_test["rate"], places, marker, color=PALETTE[number], markersize=4, label=test, zorder=above)
    for place, (group, _) in enumerate(lines):
        if place == 0 or lines[place - 1][0] != group:
            axis.axhline(place - 0.5, color="#777777", linewidth=0.6)
            axis.text(1.0, place - 0.45, group, fontsize=8, ha="right", va="top", weight="bold")
    axis.axvspan(LEAST, MOST, color="#eeeeee", zorder=0)
    axis.set_xscale("function", functions=(np.sqrt, np.square))
    ticks = [0, 0.01, 0.03, 0.05, 0.07, 0.15, 0.3, 0.5, 0.75, 1]
    axis.set_xticks(ticks, [f"{tick:.0%}" for tick in ticks], fontsize=7)
    axis.set(xlim=(0, 1), ylim=(len(lines) - 0.4, -0.6), xlabel="false alarms at a nominal 5%")
    axis.set_yticks(range(len(lines)), [cell for _, cell in lines], fontsize=6.5)
    tidy(axis)
    axis.legend(fontsize=7, frameon=False, loc="lower right")
    caption(figure, title, note)
    return figure
