"""BBQ's methods compared: each with `default` of the same model, on the rows that both answered readably."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from parley.analysis.effects import Estimand, Pairs, Question
from parley.analysis.page.report import Section, answered
from parley.analysis.say import Forest, in_numbers
from parley.analysis.stats.clustered import INDEPENDENT_CLUSTERS
from parley.analysis.stats.paired import mcnemar_p
from parley.analysis.stats.resampling import (
    DRAWS,
    TOO_FEW_DRAWS,
    arrangement_p,
    bootstrap_sums,
    data_seed,
    percentile_interval,
)
from parley.analysis.stats.results import About, Estimate, Line
from parley.analysis.stats.tables import Floats, Ints
from parley.analysis.systems import BASELINE
from parley.judging.bbq.leaderboard import ROW, columns_of
from parley.judging.bbq.scores import MISSING, AnswerTable, bias_of, cluster_table, few_templates

SWAPS = 1024
"""Random swaps of the two systems in each half of the clusters; combined, a million."""
UNREAD_WRONG = "accuracy, unread counted as wrong"
ALIKE = "templates counting alike"
BOTH_READ = "On the rows that both answered readably"


def with_method(baseline: str, only: str = "") -> Pairs:
    """Every other method minus the baseline, and minus each run of it if several files have one.

    Args:
        baseline: The method to compare with.
        only: The method to compare; "": all others.
    """

    def pairs(methods: Sequence[str]) -> Iterator[tuple[str, str]]:
        named = [(method, method.partition(" (")[0]) for method in methods]
        baselines = [method for method, name in named if name == baseline]
        others = [method for method, name in named if name != baseline and only in ("", name)]
        return ((method, baseline) for method in others for baseline in baselines)

    return pairs


def bias_change(rows: pd.DataFrame, measure: str, cluster: str, *, draws: int = DRAWS, seed: int = 0) -> Estimate:
    """The difference in bias of two methods, from their common rows; see `bias_difference`."""
    sides = [measure, f"{measure}_second"]
    both = rows.dropna(subset=sides)
    first, second = (AnswerTable.of(columns_of(both.assign(prediction=both[name]))) for name in sides)
    return bias_difference(first, second, first.question, draws=draws, seed=seed)


RIGHT = {
    "right": ("accuracy", lambda first, second: float(first[second.notna()].mean())),
    "right_before": ("accuracy", lambda first, second: float(second[first.notna()].mean())),
}
"""The shares of right answers behind a difference: those of rows that both answered readably."""


def _moved(line: Line) -> str:
    """Such as "the bias of stardtox's answers to ambiguous questions is 9.8 points of 100 lower than default's"."""
    assert line.about.contrast
    (first, second), way = line.about.contrast.names, "lower" if line.estimate < 0 else "higher"
    where = f"{first}'s answers to {line.about.context} questions"
    return f"the bias of {where} is {abs(line.estimate):.1f} points of 100 {way} than of {second}'s"


ACCURACY_CHANGE = Question(
    name="accuracy_against_default",
    ask=f"Does a method change the accuracy, compared with {BASELINE}?",
    measures={"accuracy": "accuracy"},
    cluster="template",
    by=("model", "context"),
    arms="method",
    pairs=with_method(BASELINE),
    item=ROW,
    limits=(0.0, 1.0),
    scale="share",
    facets={"context": (("condition", "condition"),)},
    also={"p_mcnemar": ("accuracy", mcnemar_p), **RIGHT},
    note=f"{BOTH_READ}. McNemar's test takes every row as independent.",
)
BIAS_CHANGE = replace(
    ACCURACY_CHANGE,
    name="bias_against_default",
    ask=f"Does a method change the bias, compared with {BASELINE}?",
    measures={"bias": Estimand(words="bias", says=_moved)},
    unit="points",
    limits=("lowest", "highest"),
    contrast=bias_change,
    scale="points",
    also={},
    note=f"{BOTH_READ}.",
)


def changes(
    frame: pd.DataFrame, *, draws: int = DRAWS, seed: int = 0, **otherwise: Any
) -> Iterator[tuple[Question, pd.DataFrame]]:
    """The questions on bias and on accuracy, each with its rows.

    Args:
        frame: One row per answer, from `answers`.
        draws: Draws of the bootstrap of each difference in bias.
        seed: Seed of all draws.
        otherwise: Fields that differ from those of the comparison with `default`; {} in names and questions stands for
        the measure.
    """

    read, right = frame["prediction"] != MISSING, (frame["prediction"] == frame["label"]).astype(float)
    unknown, targeted = frame["unknown"], frame["target"] != MISSING
    rows = frame.assign(
        template=frame["category"] + "/" + frame["question"].astype(str),
        accuracy=right.where(read),
        accuracy_unread_wrong=right,
        bias=frame["prediction"].where(read),  # what a difference in bias is made of
        # The person who is not the target, and the target.
        lowest=frame["prediction"].where(read, (sum(range(3)) - frame["target"] - unknown).where(targeted, unknown)),
        highest=frame["prediction"].where(read, frame["target"].where(targeted, unknown)),
    )
    counted = {"accuracy": "accuracy"} | ({} if read.all() else {"accuracy_unread_wrong": UNREAD_WRONG})
    bias = replace(BIAS_CHANGE, contrast=partial(bias_change, draws=draws, seed=seed))
    for measure, question in {"bias": bias, "accuracy": replace(ACCURACY_CHANGE, measures=counted)}.items():
        named: dict[str, Any] = {
            name: text.format(measure) if isinstance(text, str) else text for name, text in otherwise.items()
        }
        yield replace(question, **named), rows


def against_default(frame: pd.DataFrame, titled: Collection[str], *, draws: int, seed: int) -> Iterator[Section]:
    """Whether a method changes the bias, and what it costs in accuracy.

    Args:
        frame: One row per answer, from `answers`.
        titled: The methods that the run is about; comparisons of others are not planned.
        draws: Draws of the bootstrap of each difference in bias.
        seed: Seed of all draws.
    """

    def planned(about: About, measure: str, rows: pd.DataFrame) -> dict[str, Any]:
        assert about.contrast
        return {"secondary": about.contrast.first[0] not in titled or measure not in ("bias", "accuracy")}

    others = sorted(set(titled) - {BASELINE})
    ask = f"Does {others[0] if len(others) == 1 else 'a method'} change the {{}}, compared with {BASELINE}?"
    for question, rows in changes(frame, draws=draws, seed=seed, ask=ask, further=planned):
        made = answered(question, rows)
        plots = [
            replace(plot, lines=tuple(sorted(plot.lines, key=lambda line: line.secondary))) for plot in made.forests
        ]
        priced = [line for line in plots[0].lines if line.measure == "accuracy" and not line.secondary]
        yield replace(made, forests=plots, beside=list(_prices(priced, plots[0])))


def _prices(lines: Sequence[Line], forest: Forest) -> Iterator[str]:
    """Such as "stardtox answers 35% of the ambiguous questions right (default 29%; …, +6.1% (+1.0% to +11.2%))"."""
    prices: dict[tuple[str, ...], list[str]] = {}
    for line in lines:
        assert line.about.contrast
        first, second = line.about.contrast.names
        model = f"{line.about.model}: " * (line.about.model in line.group)
        prices.setdefault((f"{model}{first}", second), []).append(
            f"{line.also['right']:.1%} of the {line.about.context} questions right ({second} "
            f"{line.also['right_before']:.1%}; {ALIKE}, {in_numbers(line, forest)})"
        )
    for (first, _), listed in prices.items():
        yield f"{first} answers {' and '.join(listed)}."


def bias_difference(
    first: AnswerTable, second: AnswerTable, clusters: Ints, *, draws: int = DRAWS, seed: int = 0
) -> Estimate:
    """The bias of the first minus that of the second, on the same rows of one context.

    The interval is a bootstrap over clusters. p: under the null hypothesis the two are exchangeable in every cluster.

    Args:
        first: The answers of one system.
        second: The answers of the other, in the same order.
        clusters: The cluster of each row, such as `first.question`, the template.
        draws: Draws of the bootstrap.
        seed: Seed of all draws.
    """
    ambiguous = bool(first.ambiguous.any())
    counts, others = (cluster_table(answers, clusters) for answers in (first, second))
    gap = float(bias_of(counts.sum(axis=0), ambiguous) - bias_of(others.sum(axis=0), ambiguous))
    unknown = Estimate(
        method="bootstrap over clusters, p by swaps of the two within clusters",
        estimate=gap,
        measure="difference in bias",
        n=len(first),
        clusters=len(counts),
        assumes=INDEPENDENT_CLUSTERS,
    )
    if math.isnan(gap):
        return replace(unknown, note="one of the two never named a person: its bias is undefined")
    if len(counts) < 2:
        return replace(unknown, note="a single template")
    if (counts == others).all():
        return replace(unknown, p=1.0, note="both gave the same answers")
    drawn = bootstrap_sums(np.hstack([counts, others]), draws, seed).T
    low, high = percentile_interval(bias_of(drawn[:4], ambiguous) - bias_of(drawn[4:], ambiguous), len(counts))
    swapped = _swap_test(counts, others, gap, ambiguous)
    notes = (swapped.note, few_templates(len(counts)), TOO_FEW_DRAWS if math.isnan(low) else "")
    return replace(unknown, low=low, high=high, p=swapped.p, note="; ".join(filter(None, notes)))


def _swap_test(counts: Floats, others: Floats, gap: float, ambiguous: bool) -> Estimate:
    """The p-value of a gap in bias when the two systems may be swapped in any cluster."""
    rng = np.random.default_rng(data_seed(np.hstack([counts, others])))
    total, halves = (counts + others).sum(axis=0), []
    for gains in (others[0::2] - counts[0::2], others[1::2] - counts[1::2]):
        if 2 ** len(gains) <= SWAPS:
            swaps = np.arange(2 ** len(gains))[:, None] >> np.arange(len(gains)) & 1
        else:
            swaps = rng.integers(0, 2, (SWAPS, len(gains)))
            swaps[0] = 0  # the data
        halves.append(swaps.astype(float) @ gains)

    def gaps(some: Floats, more: Floats) -> Floats:
        first = [np.add.outer(some[:, name], more[:, name]) for name in (1, 2, 3)]
        second = [total[name + 1] - sums for name, sums in enumerate(first)]
        rows = total[0] / 2  # the same rows for both
        return np.abs(bias_of((rows, *first), ambiguous) - bias_of((rows, *second), ambiguous))

    exact = max(len(half) for half in (counts[0::2], counts[1::2])) <= math.log2(SWAPS)
    return arrangement_p((halves[0] + counts.sum(axis=0), halves[1]), gaps, abs(gap), exact=exact)
