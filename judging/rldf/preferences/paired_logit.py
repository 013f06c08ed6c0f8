"""Logistic regression on differences of features, to predict which of two texts was chosen.

There is no intercept, so the order of the texts does not matter. The Bradley–Terry model is the case of one feature
per player.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import optimize, sparse
from scipy.special import expit

from parley.analysis.stats.tables import Floats, Ints

# scikit-learn would be a new dependency, and its classifiers need the texts of a pair as two rows, or in some order.
PENALTY = 1.0
"""Ridge penalty on standardized features; scikit-learn's default (C = 1)."""
MIN_TOPICS = 5
"""Minimum number of topics: with fewer, too little is left to learn from."""
FOLDS = 10
FLIPS = 1999
ENOUGH = {"maxiter": 100, "ftol": 1e-7}
"""Only the sign of a prediction counts."""


def fit(differences: Any, penalty: float = PENALTY) -> Floats:
    """The weights that make chosen score above rejected: the minimum of Σ log(1 + exp(−w·d)) + penalty/2 · |w|².

    Args:
        differences: One row per pair, the features of chosen minus those of rejected; dense or sparse.
        penalty: Penalty on the weights of standardized features.
    """
    scale = np.sqrt(np.asarray(differences.multiply(differences).mean(axis=0)).ravel())
    scale[scale == 0] = 1.0
    scaled = sparse.csr_array(differences @ sparse.diags_array(1 / scale))

    def loss(weights: Floats) -> tuple[float, Floats]:
        margins = scaled @ weights
        value = np.logaddexp(0, -margins).sum() + penalty / 2 * weights @ weights
        return float(value), -(scaled.T @ expit(-margins)) + penalty * weights

    fitted = optimize.minimize(loss, np.zeros(scaled.shape[1]), jac=True, method="L-BFGS-B", options=ENOUGH)
    weights: Floats = fitted.x / scale
    return weights


def folds_of(topics: Ints, seed: int) -> Ints:
    """The fold of each pair; all pairs of a topic are in the same one."""
    count = int(topics.max()) + 1
    order = np.random.default_rng(seed).permutation(count)
    fold: Ints = (order % min(FOLDS, count))[topics]
    return fold


def held_out_correct(differences: Any, topics: Ints, seed: int) -> Floats:
    """For each pair 1 if a model fitted to other topics ranks chosen first, 0 if rejected, ½ for a tie.

    Args:
        differences: As in `fit`.
        topics: The number of each pair's topic.
        seed: Seed of the folds.
    """
    features = sparse.csr_array(differences)
    correct = np.full(features.shape[0], 0.5)
    fold = folds_of(topics, seed)
    for number in np.unique(fold):
        held_out = fold == number
        margins = features[held_out] @ fit(features[~held_out])
        correct[held_out] = np.where(margins > 1e-9, 1.0, np.where(margins < -1e-9, 0.0, 0.5))
    return correct


def sign_flip_p(differences: Any, topics: Ints, seed: int, flips: int = FLIPS) -> float:
    """The p-value of "no feature differs between chosen and rejected": sign flips over topics.

    The statistic is Σ s² / v over the features, with s the sum of the topics' sums and v the sum of their squares.
    Accuracy on held-out topics has no such null distribution: a model learns either direction, so that with several
    features its interval excludes one half too often.

    Args:
        differences: As in `fit`.
        topics: The number of each pair's topic. Under the null, both signs of a topic's sums are equally likely.
        seed: Seed of the flips.
        flips: Number of random flips.
    """
    features = sparse.csr_array(differences)
    count = int(topics.max()) + 1
    by_topic = sparse.csr_array((np.ones(len(topics)), (topics, np.arange(len(topics)))), shape=(count, len(topics)))
    sums = sparse.csr_array(by_topic @ features)
    squares = np.asarray(sums.power(2).sum(axis=0)).ravel()
    weights = np.divide(1.0, np.sqrt(squares), out=np.zeros_like(squares), where=squares > 0)
    scaled = sums @ sparse.diags_array(weights)
    observed = float((np.asarray(scaled.sum(axis=0)) ** 2).sum())
    rng = np.random.default_rng(seed)
    as_large = 0
    for start in range(0, flips, 200):  # in blocks, so that memory does not grow with the flips
        signs = rng.choice(np.array([-1.0, 1.0]), (min(200, flips - start), count))
        as_large += int((((signs @ scaled) ** 2).sum(axis=1) >= observed * (1 - 1e-9)).sum())
    return (1 + as_large) / (1 + flips)


def fold_inflation(topics: int) -> float:
    """Factor by which the variance of a cross-validated mean exceeds that between its topics.

    Models of different folds share most training pairs, so their successes are not independent: Nadeau and
    Bengio (2003, Machine Learning 52, 239-281) add the ratio of test to training size. Without it, 17% of 95% intervals
    excluded one half although nothing could be predicted.

    Args:
        topics: Number of topics.
    """
    folds = min(FOLDS, topics)
    return 1 + folds / (folds - 1) if folds > 1 else 1.0
