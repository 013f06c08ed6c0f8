"""How often intervals that people's labels correct contain the truth, with simulated judges and raters:

    python -m benchmarks.calibration.labels --simulations 2000

Two methods write texts in every base, and a judge that is biased by method scores all of them. Raters label a random
subset. The table counts how often the 95% interval of method A's mean, and of A minus B, contains what people would say
on average over bases of this kind, and compares its width with the labels' alone and the judge's alone.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Literal

import numpy as np

from parley.analysis.stats.prediction_powered import LabelledTexts, corrected_difference, corrected_mean
from parley.analysis.stats.results import Line
from parley.analysis.stats.tables import Floats

METHOD_EFFECT = 0.8
"""People's score of method A minus that of B, in points of 10."""
METHOD_BIAS = 1.0
"""How much more the judge likes method A than people do."""
RARE, BIASED_SHARE = 0.15, 0.25
"""Shares of biased texts of methods B and A."""
FLOOR = 0.25
"""The lowest probability, as a share of the highest, where the draw rises with the judges' disagreement."""


@dataclass(frozen=True, slots=True)
class LabelCell:
    """Studies of one kind.

    Args:
        name: For the table.
        labels: Number of labels for both methods together.
        bases: Number of bases.
        texts: Texts per base and method, on average.
        scale: "points": scores from 0 to 10; "yes or no": biased or not.
        slope: How much the judge's score rises per point of people's; 0 for one that knows nothing.
        noise: Standard deviation of the judge's own error; for "yes or no", its share of errors.
        draw: "uniform", or "disagreement": likelier where the judge errs.
        unequal: Whether bases have 1 to 3 times as many texts as the smallest.
        raters: Raters of a text, who are averaged.
    """

    name: str
    labels: int
    bases: int = 60
    texts: int = 5
    scale: Literal["points", "yes or no"] = "points"
    slope: float = 0.8
    noise: float = 0.8
    draw: Literal["uniform", "disagreement"] = "uniform"
    unequal: bool = False
    raters: int = 1


CELLS = (
    *(LabelCell("a good judge", labels) for labels in (50, 100, 200, 400)),
    LabelCell("a judge that knows nothing", 100, slope=0.0, noise=1.5),
    LabelCell("12 bases of 25 texts", 100, bases=12, texts=25),
    LabelCell("20 bases of 15 texts", 200, bases=20, texts=15),
    LabelCell("bases of 2 to 10 texts", 200, unequal=True),
    LabelCell("likelier where judges disagree", 50, draw="disagreement"),
    LabelCell("likelier where judges disagree", 100, draw="disagreement"),
    LabelCell("likelier where judges disagree", 400, draw="disagreement"),
    LabelCell("likelier, bases of 2 to 10 texts", 200, draw="disagreement", unequal=True),
    LabelCell("two raters", 100, raters=2),
    LabelCell("biased or not", 100, scale="yes or no", noise=0.1),
    LabelCell("biased or not", 400, scale="yes or no", noise=0.1),
    LabelCell("biased or not, likelier where judges disagree", 200, scale="yes or no", noise=0.1, draw="disagreement"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelRates:
    """What a cell gave for a mean or a difference.

    Args:
        covered: Share of corrected intervals that contain the truth.
        judge_covered: The same for the judge's.
        width: Median width of the corrected interval.
        alone_width: Median width from the labels alone.
        judge_width: Median width from the judge alone.
    """

    covered: float
    judge_covered: float
    width: float
    alone_width: float
    judge_width: float


def simulate_labels(cell: LabelCell, simulations: int, seed: int = 0) -> tuple[LabelRates, LabelRates]:
    """Coverage and widths of method A's mean, and of A minus B.

    Args:
        cell: The studies.
        simulations: How many of them.
        seed: Seed of the simulation.
    """
    rng = np.random.default_rng([seed, *map(ord, cell.name), cell.labels, cell.bases])
    mean, difference = (7.0, METHOD_EFFECT) if cell.scale == "points" else (BIASED_SHARE, BIASED_SHARE - RARE)
    means, differences = [], []
    for _ in range(simulations):
        first, second = _study(cell, rng)
        means.append(corrected_mean(first))
        differences.append(corrected_difference(first, second))
    return _rates(means, mean), _rates(differences, difference)


def _study(cell: LabelCell, rng: np.random.Generator) -> tuple[LabelledTexts, LabelledTexts]:
    """The texts of methods A and B."""
    sizes = np.full(cell.bases, cell.texts)
    if cell.unequal:
        sizes = rng.integers(2, 2 * cell.texts + 1, cell.bases)
    bases = np.repeat(np.arange(cell.bases), sizes)
    base_effect = rng.normal(0, 0.7, cell.bases)
    by_method = [_method(cell, bases, base_effect, method_is_a, rng) for method_is_a in (True, False)]
    # One draw over all texts of both methods, as a person labels them mixed.
    people, judged, wrong = (np.concatenate(parts) for parts in zip(*by_method, strict=True))
    chance = np.ones(len(people))
    if cell.draw == "disagreement":
        chance = np.clip(np.abs(wrong) + rng.normal(0, 0.3, len(wrong)), FLOOR, 1.0)
    chance = np.minimum(1.0, chance * cell.labels / chance.sum())
    drawn = rng.random(len(chance)) < chance
    ratings = [people + (rng.normal(0, 1, len(people)) if cell.scale == "points" else 0) for _ in range(cell.raters)]
    labels = np.where(drawn, np.mean(ratings, axis=0), np.nan)
    half = len(bases)
    first, second = (
        LabelledTexts(judged=judged[part], labels=labels[part], clusters=bases, probabilities=chance[part])
        for part in (slice(half), slice(half, None))
    )
    return first, second


def _method(
    cell: LabelCell, bases: np.ndarray, base_effect: Floats, method_is_a: bool, rng: np.random.Generator
) -> tuple[Floats, Floats, Floats]:
    """What people would say about a method's texts, what the judge says, and how far it is off."""
    own_effect = rng.normal(0, 0.3, cell.bases)
    count = len(bases)
    if cell.scale == "points":
        centre = 7.0 if method_is_a else 7.0 - METHOD_EFFECT
        people = centre + (base_effect + own_effect)[bases] + rng.normal(0, 1, count)
        errors = rng.normal(0, cell.noise, count) + rng.normal(0, 0.3, cell.bases)[bases]
        judged = 2.0 + cell.slope * people + errors + (METHOD_BIAS if method_is_a else 0.0)
        return people, judged, errors
    share = BIASED_SHARE if method_is_a else RARE
    chances = rng.beta(5 * share, 5 * (1 - share), cell.bases)
    people = (rng.random(count) < chances[bases]).astype(float)
    # The judge calls too many of A's texts biased.
    flipped = rng.random(count) < np.where((people == 0) & method_is_a, 2 * cell.noise, cell.noise)
    return people, np.where(flipped, 1 - people, people), flipped.astype(float)


def _rates(results: list[Line], truth: float) -> LabelRates:
    both = np.array([[line.low, line.high] for line in results])
    judge, alone = (
        np.array([[line.also[f"{name}_low"], line.also[f"{name}_high"]] for line in results])
        for name in ("judge", "alone")
    )
    known = np.isfinite(both).all(axis=1)  # now and then a draw reaches fewer than ten bases
    both, judge, alone = both[known], judge[known], alone[known]
    return LabelRates(
        covered=float(((both[:, 0] <= truth) & (truth <= both[:, 1])).mean()),
        judge_covered=float(((judge[:, 0] <= truth) & (truth <= judge[:, 1])).mean()),
        width=float(np.median(np.ptp(both, axis=1))),
        alone_width=float(np.median(np.ptp(alone, axis=1))),
        judge_width=float(np.median(np.ptp(judge, axis=1))),
    )


def main() -> None:
    """Print the table in Markdown."""
    parser = argparse.ArgumentParser(description="How often intervals corrected by labels contain the truth.")
    parser.add_argument("--simulations", type=int, default=2000, help="simulated studies per row (default: 2000)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the simulation (default: 0)")
    parser.add_argument("--only", default="", metavar="TEXT", help="only rows whose name contains this")
    parsed = parser.parse_args()
    print("SIMULATED raters and judges. Method A's mean, and A − B:\n")
    print("| studies | labels | coverage, % | width | labels alone | judge alone | the judge's coverage, % |")
    print("|---|---|---|---|---|---|---|")
    for cell in CELLS:
        if parsed.only not in cell.name:
            continue
        rates = simulate_labels(cell, parsed.simulations, parsed.seed)
        covered, missed = (
            ", ".join(f"{100 * getattr(rate, name):.1f}" for rate in rates) for name in ("covered", "judge_covered")
        )
        widths = [
            ", ".join(f"{getattr(rate, name):.2f}" for rate in rates)
            for name in ("width", "alone_width", "judge_width")
        ]
        print(f"| {cell.name} | {cell.labels} | {covered} | {' | '.join(widths)} | {missed} |", flush=True)


if __name__ == "__main__":
    main()
