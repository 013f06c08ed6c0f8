"""Who is preferred to whom: Bradley and Terry's model of paired comparisons.

log odds that the candidate shown first is preferred = strength(first) - strength(second) + position + length·x,
fitted as a logistic regression in which a tie is half a win for each. Strengths sum to 0. Intervals come from a
bootstrap over clusters: rows are reduced once to sums by cluster and kind of comparison (who, against whom, in which
order, how long), and all draws are fitted at once by Newton's method on those sums.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pandas as pd

from parley.analysis.stats.resampling import DRAWS, percentile, resampled_sums
from parley.analysis.stats.results import Estimate, no_estimate
from parley.analysis.stats.tables import Column, Floats, Ints, codes, numbers

ASSUMES = "clusters are independent; preferences follow differences of strengths"
LENGTHS = 20  # a length covariate is put into so many groups, each at its mean
STEPS = 30
WIDEST = 2.0  # Newton steps are held to this, so that a draw without a maximum runs off slowly


@dataclass(frozen=True, slots=True)
class Ranking:
    """Strengths by label, strongest first, as log odds around 0; and the covariates asked for.

    `position` is the log odds the first place adds, `length` what one unit of length adds.
    """

    strengths: Mapping[str, Estimate]
    position: Estimate | None
    length: Estimate | None
    n: int
    clusters: int
    note: str = ""


def bradley_terry(
    first: Column,
    second: Column,
    outcome: Column,
    clusters: Column,
    *,
    position: bool = False,
    length: Column | None = None,
    draws: int = DRAWS,
    seed: int = 0,
    level: float = 0.95,
) -> Ranking:
    """Rank the labels of a column of comparisons.

    `outcome` is 1 where the label in `first` (the one shown first) won, 0 where it lost, ½ for a tie, missing where
    nothing could be read. `length` is how much longer the first candidate's text is than the second's.
    """
    sums, labels, shown, x, n = _reduce(first, second, outcome, clusters, length)
    kinds = len(shown)
    design = _design(shown, len(labels), position, x)
    scale = float(np.std(design[:, -1])) if length is not None and kinds else 1.0
    note = _why_not(sums, labels, shown)
    if not note and length is not None and scale == 0:
        note = "all lengths are equal"
    if not note and np.linalg.matrix_rank(design) < design.shape[1]:
        note = "the covariates cannot be told apart from the labels in these comparisons"
    if note:
        return _nothing(labels, position, length is not None, note, level, n, len(sums))
    if length is not None:
        design[:, -1] /= scale
    fitted = _fit(sums.sum(axis=0, keepdims=True), design)
    if not np.all(np.abs(fitted) < STEPS):
        note = "preference and covariates are fully confounded: the model has no maximum"
        return _nothing(labels, position, length is not None, note, level, n, len(sums))
    count = len(sums)
    if count < 2:
        drawn, low_note = np.full((1, fitted.shape[1]), np.nan), "a single cluster: no interval"
    else:
        totals = resampled_sums(sums, draws, seed)
        loose = 1 - float(_connected(totals, shown, len(labels)).mean())
        low_note = ""
        if loose > (1 - level) / 2:
            low_note = f"in {loose:.0%} of the draws a label won or lost everything: its strength has no bound"
            drawn = np.full((1, fitted.shape[1]), np.nan)
        else:
            drawn = _fit(totals, design)
    method = f"Bradley–Terry, bootstrap over clusters, {draws} draws, seed {seed}"

    def estimate(value: float, draw: Floats) -> Estimate:
        ends = percentile(draw, count, level)
        return Estimate(value, *ends, level, n, count, method, ASSUMES, low_note)

    middle, middles = _centred(fitted, len(labels)), _centred(drawn, len(labels))
    order = np.argsort(-middle[0], kind="stable")
    strengths = {str(labels[k]): estimate(float(middle[0, k]), middles[:, k]) for k in order}
    place = len(labels) - 1
    first_place = estimate(float(fitted[0, place]), drawn[:, place]) if position else None
    per_unit = None if length is None else estimate(float(fitted[0, -1]) / scale, drawn[:, -1] / scale)
    return Ranking(MappingProxyType(strengths), first_place, per_unit, n, count, low_note)


def _reduce(
    first: Column, second: Column, outcome: Column, clusters: Column, length: Column | None
) -> tuple[Floats, list[str], Ints, Floats | None, int]:
    """Sums by cluster (rows): how many comparisons of each kind, then how many of them the first label won.

    Also the labels, the two labels of each kind, its length, and the number of comparisons.
    """
    sides = pd.concat([pd.Series(first), pd.Series(second)], ignore_index=True)
    side, labels = codes(sides)
    half = len(side) // 2
    ours, theirs, won = side[:half], side[half:], numbers(outcome)
    group, _ = codes(clusters)
    x = np.zeros(half) if length is None else numbers(length)
    kept = np.isfinite(won) & np.isfinite(x) & (group >= 0) & (ours >= 0) & (theirs >= 0) & (ours != theirs)
    ours, theirs, won, x = ours[kept], theirs[kept], won[kept], x[kept]
    group = np.unique(group[kept], return_inverse=True)[1]
    if np.any((won < 0) | (won > 1)):
        raise ValueError("an outcome must lie between 0 (lost) and 1 (won)")
    lengths, which = np.unique(_grouped(x), return_inverse=True)
    kinds, kind = np.unique((ours * len(labels) + theirs) * len(lengths) + which, return_inverse=True)
    cell, count = group * len(kinds) + kind, int(group.max(initial=-1)) + 1
    size = count * len(kinds)
    tables = np.bincount(cell, minlength=size), np.bincount(cell, won, minlength=size)
    sums = np.hstack([table.reshape(count, len(kinds)) for table in tables]).astype(float)
    pairs, which = np.divmod(kinds, max(len(lengths), 1))
    shown = np.column_stack(np.divmod(pairs, max(len(labels), 1)))
    return sums, labels, shown, None if length is None else lengths[which], len(won)


def _grouped(x: Floats) -> Floats:
    """The numbers in at most `LENGTHS` groups of about equal size, each replaced by its group's mean."""
    if len(np.unique(x)) <= LENGTHS:
        return x
    group = np.searchsorted(np.quantile(x, np.linspace(0, 1, LENGTHS + 1)[1:-1]), x)
    means: Floats = np.bincount(group, x) / np.maximum(np.bincount(group), 1)
    return means[group]


def _design(shown: Ints, labels: int, position: bool, x: Floats | None) -> Floats:
    """One row a kind of comparison; the last label's strength is left out, since only differences show."""
    signs = np.eye(max(labels, 1))
    columns = [(signs[shown[:, 0]] - signs[shown[:, 1]])[:, :-1]]
    if position:
        columns.append(np.ones((len(shown), 1)))
    if x is not None:
        columns.append(x[:, None])
    return np.hstack(columns)


def _fit(sums: Floats, design: Floats) -> Floats:
    """Logistic regressions, one a row of sums, by Newton's method; all at once."""
    kinds, size = design.shape
    counts, won = sums[:, :kinds], sums[:, kinds:]
    products = (design[:, :, None] * design[:, None, :]).reshape(kinds, size * size)
    beta = np.zeros((len(sums), size))
    for _ in range(STEPS):
        chance = 1 / (1 + np.exp(-(beta @ design.T)))
        slope = (won - counts * chance) @ design
        bend = ((counts * chance * (1 - chance)) @ products).reshape(-1, size, size)
        bend += 1e-9 * np.eye(size)
        step = np.clip(np.linalg.solve(bend, slope[:, :, None])[:, :, 0], -WIDEST, WIDEST)
        beta += step
        if np.abs(step).max() < 1e-10:
            break
    return beta


def _centred(beta: Floats, labels: int) -> Floats:
    """Strengths of all labels, summing to 0."""
    strengths = np.column_stack([beta[:, : labels - 1], np.zeros(len(beta))])
    centred: Floats = strengths - strengths.mean(axis=1, keepdims=True)
    return centred


def _connected(totals: Floats, shown: Ints, labels: int) -> Floats:
    """1 where every label has beaten every other, directly or through others: only then are strengths finite."""
    kinds = len(shown)
    beats = np.zeros((len(totals), labels, labels))
    for number, (ours, theirs) in enumerate(shown):
        beats[:, ours, theirs] += totals[:, kinds + number]
        beats[:, theirs, ours] += totals[:, number] - totals[:, kinds + number]
    reach = (beats + np.eye(labels) > 0).astype(float)
    for _ in range(max(1, math.ceil(math.log2(labels)))):
        reach = (reach @ reach > 0).astype(float)
    found: Floats = reach.all(axis=(1, 2)).astype(float)
    return found


def _why_not(sums: Floats, labels: list[str], shown: Ints) -> str:
    if len(sums) == 0:
        return "there are no comparisons"
    if len(labels) < 2:
        return "fewer than two labels were compared"
    if not _connected(sums.sum(axis=0, keepdims=True), shown, len(labels))[0]:
        return "a label, or a group of labels, won or lost every comparison with the rest: strengths have no bound"
    return ""


def _nothing(
    labels: list[str], position: bool, length: bool, note: str, level: float, n: int, clusters: int
) -> Ranking:
    void = no_estimate("Bradley–Terry", ASSUMES, note, level, n, clusters)
    strengths = MappingProxyType({str(label): void for label in labels})
    return Ranking(strengths, void if position else None, void if length else None, n, clusters, note)
