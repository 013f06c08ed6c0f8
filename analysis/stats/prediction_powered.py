"""Means and differences in which people's labels of a random subset correct a judge's scores of everything.

The estimate is that of PPI++ (Angelopoulos, Duchi and Zrnic 2023, arXiv:2311.01453; PPI: Angelopoulos et al. 2023,
Science 382, 669): the mean of the labels, moved by a weight times the difference between the judge's mean over all
texts and its mean over the labelled ones. The weight makes the interval as narrow as it can: it is 0 for a judge that
knows nothing, and then the labels stand alone. In the words of surveys this is a regression estimator.

Three things differ from `ppi_py`, which takes texts as independent. Errors are over clusters, with Student's t over
those that have a label. Labels count by 1 / the probability that they were drawn with. And the weight that a label is
used with was fitted on other clusters' labels. With one text per cluster, equal probabilities and one fold, estimate
and weight are those of `ppi_py.ppi_mean_pointestimate`.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr, stdtrit

from parley.analysis.stats.results import LEVEL, Line
from parley.analysis.stats.tables import Column, Floats, Ints, as_floats, factorize

MIN_CLUSTERS = 10
"""Labelled clusters below which there is no interval: errors over fewer are too rough for Student's t."""
FOLDS, SEED = 5, 0
"""Folds of labelled clusters, and the seed of the draw that makes them."""
NO_SPREAD = 1e-12
ASSUMES = "labelled texts were drawn at random with the recorded probabilities; clusters are independent"


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledTexts:
    """The texts of one arm: the judge's scores of all of them, and people's of some.

    Every cluster counts the same, as in `parley.analysis.stats.clustered`, and within a cluster every text.

    Args:
        judged: The judge's score of each text.
        labels: People's score of each text on the same scale, the mean over raters; NaN where a text has none.
        clusters: The cluster of each text.
        probabilities: The probability that each labelled text was drawn with, up to a common factor; None: the same
            for all.
    """

    judged: Column
    labels: Column
    clusters: Column
    probabilities: Column | None = None


def corrected_mean(texts: LabelledTexts, *, folds: int = FOLDS) -> Line:
    """The mean of one arm, corrected by people's labels.

    The ends are NaN below ten labelled clusters. `n` is the number of labels, `clusters` that of clusters with one.
    `also` has the judge's estimate (`judge`), which is as wrong as the judge, and that of the labels alone (`alone`),
    each with its ends; the number of `texts`; and the `weight` of the judge's scores, from 0 to 1: 1 is PPI without
    tuning.

    Args:
        texts: The arm.
        folds: Folds of labelled clusters; a label is used with the weight of the other folds. 1: one weight for all.
    """
    return _combined(_arms([texts], folds))


def corrected_difference(first: LabelledTexts, second: LabelledTexts) -> Line:
    """The difference of two arms' means, first minus second, corrected by people's labels and tested against 0.

    Each arm has its own weight. A cluster that both arms have counts as one, so that what its texts share cancels.

    Args:
        first: The first arm.
        second: The second arm. The arm with fewer clusters decides on the degrees of freedom.
    """
    return _combined(_arms([first, second]))


def width_by_labels(*texts: LabelledTexts) -> Callable[[int], float]:
    """The width that the corrected interval would have, by the number of labels drawn in the same way.

    More labels reduce the variance from not labelling everything. The rest comes from the clusters, and only more of
    them would reduce it. It is inf where labels would be in fewer than ten clusters. No more labels than texts can be
    asked for.

    Args:
        texts: The arm, or the two that are compared.
    """
    arms = _arms(texts)
    line, count, clusters = _combined(arms), sum(arm.texts for arm in arms), min(arm.clusters for arm in arms)
    squares, drawn = (np.concatenate([getattr(arm, name) for arm in arms]) for name in ("squares", "probabilities"))

    def width(labels: int) -> float:
        now, then = (
            float((squares * (1 / np.minimum(1.0, drawn * factor) - 1)).sum()) for factor in (1.0, labels / line.n)
        )
        missed, missed_now = ((1 - each / count) ** (count / clusters) for each in (labels, line.n))
        labelled = min(clusters, (line.clusters or 0) * (1 - missed) / (1 - missed_now))
        if labelled < MIN_CLUSTERS:
            return math.inf
        variance = max(line.standard_error**2 - now, 0.0) + then
        return 2 * float(stdtrit(labelled - 1, (1 + LEVEL) / 2)) * math.sqrt(variance)

    return width


def labels_for(wanted: float, width: Callable[[int], float], texts: int) -> int | None:
    """The fewest labels in total for an interval of this width; None if labelling all texts is not enough.

    Args:
        wanted: The width.
        width: See `width_by_labels`.
        texts: The number of texts.
    """
    if not width(texts) <= wanted:
        return None
    return bisect_left(range(1, texts), True, key=lambda labels: width(labels) <= wanted) + 1


def share_for_interval(texts: int, clusters: int) -> float:
    """The share of an arm's texts that, drawn evenly, are in ten of its clusters nine times in ten; NaN without ten.

    Args:
        texts: Its texts.
        clusters: Its clusters, with about the same number of texts each.
    """
    if clusters < MIN_CLUSTERS:
        return math.nan
    # A cluster must be reached with the upper limit of Wilson's interval for 10 of them: then 10 is 1.28 SD below.
    z = 1.28
    spread = z * math.sqrt(MIN_CLUSTERS * (clusters - MIN_CLUSTERS) / clusters + z * z / 4)
    reached = min(1.0, (MIN_CLUSTERS + z * z / 2 + spread) / (clusters + z * z))
    return 1 - math.pow(1 - reached, clusters / texts)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Arm:
    """An arm, reduced to what means and differences are made from.

    Args:
        estimates: By name, each with what every cluster adds to its error.
        weight: The weight of the judge's scores.
        texts: Number of texts.
        labelled_clusters: Clusters with a label.
        clusters: Clusters of the texts.
        squares: What each labelled text would add to the sampling variance if its probability were tiny.
        probabilities: The probability of each labelled text, on a scale where they say how many were labelled.
    """

    estimates: Mapping[str, tuple[float, Floats]]
    weight: float
    texts: int
    labelled_clusters: int
    clusters: int
    squares: Floats
    probabilities: Floats


def _arms(texts: Sequence[LabelledTexts], folds: int = FOLDS) -> list[_Arm]:
    """The arms, with one number for a cluster that both have."""
    codes, _ = factorize([cluster for arm in texts for cluster in arm.clusters])
    ends = np.cumsum([len(arm.clusters) for arm in texts])[:-1]
    return [_arm(arm, own, folds) for arm, own in zip(texts, np.split(codes, ends), strict=True)]


def _arm(texts: LabelledTexts, codes: Ints, folds: int) -> _Arm:
    judged, labels = as_floats(texts.judged), as_floats(texts.labels)
    if not len(judged) == len(labels) == len(codes):
        raise ValueError(f"columns of different lengths: {len(judged)}, {len(labels)}, {len(codes)}")
    if not np.isfinite(judged).all():
        raise ValueError("every text needs a score from the judge")
    is_labelled = np.isfinite(labels)
    if not is_labelled.any():
        raise ValueError("no text has a label")
    drawn = np.ones(len(codes)) if texts.probabilities is None else as_floats(texts.probabilities)
    if not (drawn[is_labelled] > 0).all():
        raise ValueError("every label needs a probability above 0")
    sizes = np.bincount(codes)
    target = 1 / (sizes[codes] * np.count_nonzero(sizes))
    mean = float((target * judged).sum())

    y, f, cluster = labels[is_labelled], judged[is_labelled], codes[is_labelled]
    # A rater who stops early or skips lowers all probabilities by one factor: texts are counted to find it.
    chance = np.minimum(1.0, drawn[is_labelled] * (1 / drawn[is_labelled]).sum() / len(codes))
    share = target[is_labelled] / drawn[is_labelled]
    share /= share.sum()
    uniform = bool(np.ptp(chance) <= 1e-9 * chance.max())
    # What a text's squared residual adds to the variance that comes from the draw; the slope makes their sum smallest.
    importance = target[is_labelled] ** 2 * (1.0 if uniform else np.maximum(1 - chance, 1e-9) / chance**2)
    # Where probabilities are equal, the spread of all the judge's scores counts: it is steadier than that of a part.
    spread = _covariance(judged, judged, target**2) * len(codes) / max(len(codes) - 1, 1) if uniform else None
    # ppi_py keeps its weight between 0 and 1; with all texts in the judge's mean, 1 becomes texts / unlabelled texts.
    most = len(codes) / max(len(codes) - len(y), 1)
    slopes = _slopes(y, f, _folds(cluster, folds), importance, spread, most)
    if len(y) == len(codes):  # the judge has nothing left to add
        slopes = np.zeros(len(y))
    rectified = y - slopes * (f - mean)
    both, alone = float((share * rectified).sum()), float((share * y).sum())

    def by_cluster(where: Ints, values: Floats) -> Floats:
        return np.bincount(where, values, minlength=int(codes.max()) + 1).astype(float)

    judge_errors = by_cluster(codes, target * (judged - mean))
    slope = float((share * slopes).sum())
    return _Arm(
        estimates={
            "both": (both, by_cluster(cluster, share * (rectified - both)) + slope * judge_errors),
            "judge": (mean, judge_errors),
            "alone": (alone, by_cluster(cluster, share * (y - alone))),
        },
        weight=slope * (1 - len(y) / len(codes)),
        texts=len(codes),
        labelled_clusters=len(np.unique(cluster)),
        clusters=int(np.count_nonzero(sizes)),
        squares=(share * (rectified - both)) ** 2 * chance,
        probabilities=chance,
    )


def _folds(cluster: Ints, folds: int) -> Ints:
    """The fold of each label; labels of one cluster are in the same."""
    ids = np.unique(cluster)
    fold: Ints = np.random.default_rng(SEED).permutation(len(ids)) % min(folds, len(ids))
    return fold[np.searchsorted(ids, cluster)]


def _slopes(y: Floats, f: Floats, fold: Ints, importance: Floats, spread: float | None, most: float) -> Floats:
    """The slope that each label is used with, fitted on the labels of other folds; with one fold, on all.

    Args:
        y: The labels.
        f: The judge's scores of the labelled texts.
        fold: The fold of each label.
        importance: How much each label counts in the fit.
        spread: The variance of the judge's scores; None: that of the labels that a slope is fitted on.
        most: The largest slope.
    """
    slopes = np.zeros(len(y))
    count = int(fold.max()) + 1
    for number in range(count):
        fitted = (fold != number) | (count == 1)
        part = f[fitted], importance[fitted]
        own = _covariance(part[0], *part) if spread is None else spread
        slope = _covariance(part[0], y[fitted], part[1]) / own if own > NO_SPREAD else 0.0
        slopes[fold == number] = min(max(slope, 0.0), most)
    return slopes


def _covariance(first: Floats, second: Floats, weights: Floats) -> float:
    weights = weights / weights.sum()
    return float((weights * (first - (weights * first).sum()) * (second - (weights * second).sum())).sum())


def _combined(arms: Sequence[_Arm]) -> Line:
    """One arm's mean, or the first minus the second, which is tested."""
    signs = (1.0, -1.0)[: len(arms)]
    labelled, clusters = min(arm.labelled_clusters for arm in arms), min(arm.clusters for arm in arms)
    labels, texts = sum(len(arm.probabilities) for arm in arms), sum(arm.texts for arm in arms)

    def interval(name: str, count: int, fewest: int) -> tuple[float, float, float, float]:
        """Estimate, ends and standard error."""
        estimate, errors = 0.0, np.zeros(max(len(arm.estimates[name][1]) for arm in arms))
        for sign, arm in zip(signs, arms, strict=True):
            own, own_errors = arm.estimates[name]
            estimate += sign * own
            errors[: len(own_errors)] += sign * own_errors
        error = math.sqrt(float((errors**2).sum()) * count / (count - 1)) if count > 1 else math.nan
        half = float(stdtrit(count - 1, (1 + LEVEL) / 2)) * error if count >= fewest else math.nan
        return estimate, estimate - half, estimate + half, error

    also: dict[str, float] = {}
    for name, count, fewest in (("judge", clusters, 2), ("alone", labelled, MIN_CLUSTERS)):
        also[name], also[f"{name}_low"], also[f"{name}_high"], _ = interval(name, count, fewest)
    estimate, low, high, error = interval("both", labelled, MIN_CLUSTERS)
    tested = len(arms) > 1 and error > 0 and math.isfinite(low)
    return Line(
        estimate=estimate,
        low=low,
        high=high,
        p=2 * float(stdtr(labelled - 1, -abs(estimate) / error)) if tested else math.nan,
        standard_error=error,
        n=labels,
        clusters=labelled,
        method="PPI++ over clusters, t over labelled ones",
        assumes=ASSUMES,
        also=also | {"weight": float(np.mean([arm.weight for arm in arms])), "texts": texts},
    )
