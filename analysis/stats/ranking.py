"""Bradley–Terry model of paired comparisons: which label is preferred to which.

log odds that the candidate shown first is preferred = strength(first) - strength(second) + position, fitted as a
logistic regression in which a tie is half a win for each. Strengths sum to 0. Intervals come from a bootstrap over
clusters: rows are reduced once to sums by cluster and ordered pair of labels, and all draws are fitted together by
Newton's method on those sums.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
import pandas as pd

from parley.analysis.stats.resampling import DRAWS, bootstrap_sums, percentile_interval
from parley.analysis.stats.results import Estimate
from parley.analysis.stats.tables import Column, Floats, Ints, as_floats, factorize

ASSUMES = "clusters are independent; preferences follow differences of strengths"
MAX_ITERATIONS = 30
MAX_LOG_ODDS = 30  # a coefficient this large is diverging: the likelihood has no maximum
MAX_STEP = 2.0  # limit of a Newton step, so that a draw without a maximum diverges slowly


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """The fitted model, in log odds.

    Args:
        strengths: Strengths by label around 0, strongest first.
        position: What the first place adds; None where it is not in the model.
        n: Number of comparisons.
        clusters: Number of clusters.
        note: Why a number is missing; "" where none is.
    """

    strengths: Mapping[str, Estimate]
    position: Estimate | None
    n: int
    clusters: int
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Comparisons:
    """Comparisons reduced to sums. A kind of comparison is an ordered pair of labels.

    Args:
        sums: One row per cluster: the number of comparisons of each kind, then how many of them the first label won.
        labels: The labels, sorted.
        pairs: The codes of the first and the second label of each kind.
        n: Number of comparisons.
    """

    sums: Floats
    labels: list[str]
    pairs: Ints
    n: int


def bradley_terry(
    first: Column,
    second: Column,
    outcome: Column,
    clusters: Column,
    *,
    position: bool = False,
    draws: int = DRAWS,
    seed: int = 0,
    level: float = 0.95,
) -> Ranking:
    """Rank the labels of paired comparisons.

    Args:
        first: The label that was shown first, one per comparison.
        second: The label that was shown second.
        outcome: 1 where the first label won, 0 where it lost, ½ for a tie, missing where the reply was unreadable.
        clusters: The cluster of each comparison. Clusters are taken as independent.
        position: Fit the advantage of the first place.
        draws: Number of bootstrap draws.
        seed: Seed of the draws.
        level: Confidence level.
    """
    data = _reduce(first, second, outcome, clusters)
    sums, labels, count = data.sums, data.labels, len(data.sums)
    unknown = Estimate(method="Bradley–Terry", assumes=ASSUMES, level=level, n=data.n, clusters=count)
    design = _design(data, position=position)
    note = _why_not_ranked(data)
    if not note and np.linalg.matrix_rank(design) < design.shape[1]:
        note = "the position cannot be told apart from the labels in these comparisons"
    if not note:
        fitted = _fit(sums.sum(axis=0, keepdims=True), design)
        if not np.all(np.abs(fitted) < MAX_LOG_ODDS):
            note = "preference and position are fully confounded: the model has no maximum"
    if note:
        unknown = replace(unknown, note=note)
        return Ranking(
            strengths=MappingProxyType({str(label): unknown for label in labels}),
            position=unknown if position else None,
            n=data.n,
            clusters=count,
            note=note,
        )
    drawn = np.full((1, fitted.shape[1]), np.nan)
    if count < 2:
        note = "a single cluster: no interval"
    else:
        totals = bootstrap_sums(sums, draws, seed)
        unbounded = 1 - float(_connected(totals, data).mean())
        if unbounded > (1 - level) / 2:
            note = f"in {unbounded:.0%} of the draws a label won or lost everything: its strength has no bound"
        else:
            drawn = _fit(totals, design)
    unknown = replace(unknown, method=f"Bradley–Terry, bootstrap over clusters, {draws} draws, seed {seed}", note=note)

    def estimate(value: float, draw: Floats) -> Estimate:
        low, high = percentile_interval(draw, count, level)
        return replace(unknown, estimate=value, low=low, high=high)

    strengths, drawn_strengths = _strengths(fitted, len(labels)), _strengths(drawn, len(labels))
    order = np.argsort(-strengths[0], kind="stable")
    place = len(labels) - 1
    return Ranking(
        strengths=MappingProxyType(
            {str(labels[k]): estimate(float(strengths[0, k]), drawn_strengths[:, k]) for k in order}
        ),
        position=estimate(float(fitted[0, place]), drawn[:, place]) if position else None,
        n=data.n,
        clusters=count,
        note=note,
    )


def _reduce(first: Column, second: Column, outcome: Column, clusters: Column) -> _Comparisons:
    both = pd.concat([pd.Series(first), pd.Series(second)], ignore_index=True)
    codes, labels = factorize(both)
    half = len(codes) // 2
    left, right, won = codes[:half], codes[half:], as_floats(outcome)
    group, _ = factorize(clusters)
    valid = np.isfinite(won) & (group >= 0) & (left >= 0) & (right >= 0) & (left != right)
    left, right, won = left[valid], right[valid], won[valid]
    group = np.unique(group[valid], return_inverse=True)[1]
    if np.any((won < 0) | (won > 1)):
        raise ValueError("an outcome must lie between 0 (lost) and 1 (won)")
    kinds, kind = np.unique(left * len(labels) + right, return_inverse=True)
    cell, count = group * len(kinds) + kind, int(group.max(initial=-1)) + 1
    size = count * len(kinds)
    tables = np.bincount(cell, minlength=size), np.bincount(cell, won, minlength=size)
    return _Comparisons(
        sums=np.hstack([table.reshape(count, len(kinds)) for table in tables]).astype(float),
        labels=labels,
        pairs=np.column_stack(np.divmod(kinds, max(len(labels), 1))),
        n=len(won),
    )


def _design(data: _Comparisons, *, position: bool) -> Floats:
    """One row per kind of comparison; the last label's strength is left out, since only differences are identified."""
    signs = np.eye(max(len(data.labels), 1))
    columns = [(signs[data.pairs[:, 0]] - signs[data.pairs[:, 1]])[:, :-1]]
    if position:
        columns.append(np.ones((len(data.pairs), 1)))
    return np.hstack(columns)


def _fit(sums: Floats, design: Floats) -> Floats:
    """Logistic regressions, one per row of sums, fitted together by Newton's method."""
    kinds, size = design.shape
    counts, won = sums[:, :kinds], sums[:, kinds:]
    products = (design[:, :, None] * design[:, None, :]).reshape(kinds, size * size)
    beta = np.zeros((len(sums), size))
    for _ in range(MAX_ITERATIONS):
        chance = 1 / (1 + np.exp(-(beta @ design.T)))
        gradient = (won - counts * chance) @ design
        hessian = ((counts * chance * (1 - chance)) @ products).reshape(-1, size, size)
        hessian += 1e-9 * np.eye(size)  # a draw without a maximum must not make it singular
        step = np.clip(np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0], -MAX_STEP, MAX_STEP)
        beta += step
        if np.abs(step).max() < 1e-10:
            break
    return beta


def _strengths(beta: Floats, labels: int) -> Floats:
    """Strengths of all labels, summing to 0."""
    strengths = np.column_stack([beta[:, : labels - 1], np.zeros(len(beta))])
    centred: Floats = strengths - strengths.mean(axis=1, keepdims=True)
    return centred


def _connected(totals: Floats, data: _Comparisons) -> Floats:
    """1 where every label has beaten every other, directly or through others: only then are strengths finite."""
    kinds, labels = len(data.pairs), len(data.labels)
    beats = np.zeros((len(totals), labels, labels))
    for number, (left, right) in enumerate(data.pairs):
        beats[:, left, right] += totals[:, kinds + number]
        beats[:, right, left] += totals[:, number] - totals[:, kinds + number]
    reach = (beats + np.eye(labels) > 0).astype(float)
    for _ in range(max(1, math.ceil(math.log2(labels)))):
        reach = (reach @ reach > 0).astype(float)
    connected: Floats = reach.all(axis=(1, 2)).astype(float)
    return connected


def _why_not_ranked(data: _Comparisons) -> str:
    if len(data.sums) == 0:
        return "there are no comparisons"
    if len(data.labels) < 2:
        return "fewer than two labels were compared"
    if not _connected(data.sums.sum(axis=0, keepdims=True), data)[0]:
        return "a label, or a group of labels, won or lost every comparison with the rest: strengths have no bound"
    return ""
