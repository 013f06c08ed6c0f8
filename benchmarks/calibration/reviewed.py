"""Cells of a hostile review, before and after: agreement, variation between bases, clusters that all agree.

    python -m benchmarks.calibration.reviewed                      # 300 studies a cell, two minutes
    python -m benchmarks.calibration.reviewed --studies 2000

"Before" takes texts as independent, tests variation by the F of the analysis of variance, and has an interval without
width where all clusters agree. Nothing is there to find, except in rows that say "power".
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

import numpy as np
from scipy import stats

from benchmarks.calibration.agreement import points
from parley.analysis.stats.agreement import fleiss_kappa, krippendorff_alpha
from parley.analysis.stats.clustered import heterogeneity
from parley.analysis.stats.mean_test import mean_test
from parley.analysis.stats.tables import Floats, Ints

Rates = tuple[str, str, Floats]
"""A cell's statistic, its data, and its rates before and after."""
TEXTS = 5


def rated(rng: np.random.Generator, topics: int, shared: float) -> Floats:
    """Three judges score five texts a topic; a judge's errors on one topic have a part in common."""
    topic, text = rng.normal(6, 0.8, (topics, 1, 1)), rng.normal(0, 1, (topics, TEXTS, 1))
    errors = rng.normal(0, shared, (topics, 1, 3)) + rng.normal(0, 0.6, (topics, TEXTS, 3))
    return points((topic + text + errors).reshape(-1, 3))


def bands(scores: Floats) -> Floats:
    return np.digitize(scores, [3.5, 6.5]).astype(float)


def agreement(studies: int, rng: np.random.Generator) -> Iterator[Rates]:
    """Intervals that miss the truth, over texts and over topics."""
    for word, coefficient, scale in (("α", krippendorff_alpha, np.asarray), ("κ of bands", fleiss_kappa, bands)):
        for shared in (0.0, 0.4, 0.8):
            truth = coefficient(scale(rated(rng, 40_000, shared))).estimate
            for topics in (8, 12, 20, 40):
                groups, missed = np.repeat(np.arange(topics), TEXTS), np.zeros(2)
                for _ in range(studies):
                    table = scale(rated(rng, topics, shared))
                    lines = coefficient(table), coefficient(table, clusters=groups)
                    missed += [not line.low <= truth <= line.high for line in lines]
                yield word, f"{topics} topics, shared errors of SD {shared:g}", missed / studies


def f_test(values: Floats, bases: Ints) -> float:
    return float(stats.f_oneway(*(values[bases == base] for base in np.unique(bases))).pvalue)


def variation(studies: int, rng: np.random.Generator) -> Iterator[Rates]:
    """Studies that find that an effect varies between bases."""

    def noisy(bases: int, scenarios: int, share: float, times: float) -> Callable[[], tuple[Ints, Floats]]:
        return lambda: (np.full(bases, scenarios), np.where(np.arange(bases) < share * bases, times, 1.0))

    def ragged() -> tuple[Ints, Floats]:
        sizes = rng.integers(2, 31, 60)
        return sizes, np.where(sizes < 8, 2.0, 1.0)

    cells = {
        **{f"{b} bases × {m}, equal noise": noisy(b, m, 0, 1) for b, m in ((60, 2), (20, 10), (12, 5), (8, 3))},
        **{f"{b} × {m}, a fifth three times as noisy": noisy(b, m, 0.2, 3) for b, m in ((60, 2), (20, 10))},
        **{f"{b} × {m}, a tenth five times as noisy": noisy(b, m, 0.1, 5) for b, m in ((60, 2), (20, 10))},
        "60 bases of 2 to 30, small ones twice as noisy": ragged,
    }
    for spread, power in ((0.0, ""), (0.5, "power, effects of SD 0.5: ")):
        for name, sizes_and_noise in cells.items():
            found = np.zeros(2)
            for _ in range(studies):
                sizes, noise = sizes_and_noise()
                bases = np.repeat(np.arange(len(sizes)), sizes)
                values = rng.normal(rng.normal(0, spread, len(sizes))[bases], noise[bases])
                found += [f_test(values, bases) <= 0.05, heterogeneity(values, bases).p <= 0.05]
            yield "variation", f"{power}{name}", found / studies


def agreeing(studies: int, rng: np.random.Generator) -> Iterator[Rates]:
    """Intervals of a mean that miss it, where some bases lose one of ten points and the others none."""
    for share in (0.02, 0.1):
        for bases in (8, 12, 20, 40):
            missed = np.zeros(2)
            for _ in range(studies):
                values = -(rng.random(bases) < share).astype(float)
                after = mean_test(values, farthest=10.0)
                before = (0.0, 0.0) if not values.any() else (after.low, after.high)
                missed += [not low <= -share <= high for low, high in (before, (after.low, after.high))]
            yield "mean", f"{bases} bases, {share:.0%} of all lose a point", missed / studies


def main() -> None:
    parser = argparse.ArgumentParser(description="Cells of a hostile review, before and after, in percent.")
    parser.add_argument("--studies", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    print(f"| {options.studies} studies a cell, seed {options.seed} | | before | after |\n|---|---|---:|---:|")
    for cells in (agreement, variation, agreeing):
        for statistic, data, (before, after) in cells(options.studies, rng):
            print(f"| {statistic} | {data} | {100 * before:.1f} | {100 * after:.1f} |", flush=True)


if __name__ == "__main__":
    main()
