"""Do responses give themselves away? A classifier that has read other bases tells Response 2 from Response 1.

If Response 2 is by habit the longer one, or the one with more passives, a judge's taste for such texts looks like an
effect of the number. In a suite that is fit to measure with, the classifier is right about half of the time.

    result = tell_apart(load_suite("full")[0])
    result.told_apart, result.pairs, result.p

The classifier is a ridge regression on the words and the length of Response 2 minus those of Response 1. All pairs of a
base are held out together, and predicted from the pairs of the other bases.

p comes from flipped numberings: in each, the two numbers are exchanged in all pairs of some bases, drawn at random, and
the whole cross-validation is repeated. A sign-flip test of the hits per base is not valid: every base also trains the
classifiers of the others, so the hits of two bases are correlated. On 1,000 random numberings of the shipped suite, it
was significant in 7%, and the test with flipped numberings in 3.5%, both at a level of 5%.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from parley.base.text import words
from parley.scenarios.checks import Finding
from parley.scenarios.malibu import Scenario, Suite

MAX_SHARE = 0.6
"""Share of pairs told apart; more is a finding if its p-value is at most ALPHA."""
ALPHA = 0.05
MIN_GROUPS = 6
"""The smallest p-value of five groups is 1/16: exchanging all numbers is the same as exchanging none."""
FLIPS = 2000
SEED = 0
PENALTY = 0.1
"""Penalty of the ridge regression, relative to the mean of a row's sum of squares. From 0.01 to 1 it hardly mattered:
148 to 151 of the 200 pairs of the shipped suite's version 1.0 were told apart."""
TELLS = 10
"""Words that are listed, the most telling first."""
LENGTH = "(length)"

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Tell:
    """A word that helps to tell the responses apart, or their length.

    Args:
        word: The word, or `(length)`.
        first: How often the word is in all first responses; their characters for the length.
        second: The same for all second responses.
    """

    word: str
    first: int
    second: int

    def __str__(self) -> str:
        return f"{self.word} {self.first}:{self.second}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Giveaways:
    """How well the responses of a suite are told apart, without their numbers.

    Args:
        pairs: Number of pairs of responses.
        told_apart: Pairs whose second response was recognised; a tie counts one half.
        groups: Number of groups of pairs that were held out one after another.
        grouped_by: What they are: `base`, or `scenario` where there are too few bases.
        p: Share of flipped numberings that are told apart at least as well.
        low: Pairs told apart in flipped numberings, 2.5% quantile.
        high: The same, 97.5% quantile.
        tells: What the classifier goes by, the most telling first.
    """

    pairs: int
    told_apart: float
    groups: int
    grouped_by: str
    p: float
    low: float
    high: float
    tells: tuple[Tell, ...]

    def __str__(self) -> str:
        chance = f"chance {self.pairs / 2:g}, 95% of flipped numberings {self.low:.0f} to {self.high:.0f}"
        told_apart = f"{self.told_apart:g} of {self.pairs} pairs told apart by their words and length"
        return f"{told_apart} ({chance}; p = {self.p:.2g} over {self.groups} {self.grouped_by}s)"

    def findings(self, suite: str) -> list[Finding]:
        """The finding that the responses give themselves away, if they do.

        Args:
            suite: The suite's name.
        """
        if self.told_apart <= MAX_SHARE * self.pairs or self.p > ALPHA:
            return []
        allowed = f"more than {MAX_SHARE:.0%} of {self.pairs} pairs are told apart"
        return [Finding(suite, f"{allowed}; swap the two responses of about half of the scenarios, or rewrite some")]


def tell_apart(suite: Suite) -> Giveaways | None:
    """How well a classifier tells second responses from first ones; nothing if there are too few pairs to say.

    Args:
        suite: The suite; scenarios without responses are left out.
    """
    scenarios = [scenario for scenario in suite.scenario if scenario.responses]
    groups, grouped_by = [scenario.base or scenario.id for scenario in scenarios], "base"
    if len(set(groups)) < MIN_GROUPS:
        groups, grouped_by = [scenario.id for scenario in scenarios], "scenario"
    names, group = np.unique(groups, return_inverse=True)
    if len(names) < MIN_GROUPS:
        return None
    vocabulary, first, second = _count_words(scenarios)
    rows = second - first
    rows[:, -1] /= np.sqrt(np.mean(rows[:, -1] ** 2)) or 1.0  # as large as a word that differs by one in every pair
    ridge = _ridge(rows)
    predict = _held_out(ridge, group)
    signs = np.random.default_rng(SEED).choice([-1.0, 1.0], size=(len(names), FLIPS))[group]
    signs = np.column_stack([np.ones(len(rows)), signs])
    margins = signs * (predict @ signs)
    hits = np.where(np.abs(margins) < 1e-9, 0.5, margins > 0).sum(axis=0)
    low, high = np.quantile(hits[1:], [0.025, 0.975])
    helps = rows.mean(axis=0) * (rows.T @ ridge.sum(axis=1))
    order = np.argsort(-helps, kind="stable")[:TELLS]
    return Giveaways(
        pairs=len(rows),
        told_apart=float(hits[0]),
        groups=len(names),
        grouped_by=grouped_by,
        p=float(np.mean(hits >= hits[0])),
        low=float(low),
        high=float(high),
        tells=tuple(
            Tell(vocabulary[index], int(first[:, index].sum()), int(second[:, index].sum()))
            for index in order
            if helps[index] > 0
        ),
    )


def _count_words(scenarios: Sequence[Scenario]) -> tuple[list[str], Floats, Floats]:
    """The vocabulary, and how often each word is in each response of either number; the last column is the length."""
    counts = [[Counter(words(text)) for text in scenario.responses] for scenario in scenarios]
    vocabulary = sorted({word for pair in counts for count in pair for word in count})
    column = {word: index for index, word in enumerate(vocabulary)}
    tables = np.zeros((2, len(scenarios), len(vocabulary) + 1))
    for row, (scenario, pair) in enumerate(zip(scenarios, counts, strict=True)):
        for number, (text, count) in enumerate(zip(scenario.responses, pair, strict=True)):
            tables[number, row, [column[word] for word in count]] = list(count.values())
            tables[number, row, -1] = len(text)
    return [*vocabulary, LENGTH], tables[0], tables[1]


def _ridge(rows: Floats) -> Floats:
    """(K + λI)⁻¹, where K has the products of rows: the weights of words are rowsᵀ times it times the numbering."""
    products = rows @ rows.T
    penalty = PENALTY * float(np.trace(products)) / len(rows)
    return np.asarray(np.linalg.inv(products + (penalty or 1.0) * np.eye(len(rows))), dtype=np.float64)


def _held_out(ridge: Floats, group: NDArray[np.intp]) -> Floats:
    """A matrix that predicts every pair from the numbering of the other groups, without fitting once per group.

    The residuals of a group that was not fitted are those of the inverse, divided by its own block of it.
    """
    predict = np.eye(len(ridge))
    for index in range(int(group.max()) + 1):
        own = np.flatnonzero(group == index)
        predict[own] -= np.linalg.solve(ridge[np.ix_(own, own)], ridge[own])
    return predict
