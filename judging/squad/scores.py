"""SQuAD v2's official scores: exact match and F1 over words, against several gold answers or none.

The rules are those of the benchmark's own script (evaluate-v2.0.py): texts are compared in lower case, without
punctuation, the articles a, an, the, and repeated spaces; of several gold answers the best match counts; if either side
is empty, both measures are 1 if both are empty, else 0.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalise(text: str) -> str:
    """Normalise a text by the official rules: lower case, no punctuation, articles or repeated spaces."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


class Mark(NamedTuple):
    """The scores of one prediction: `exact` is 0 or 1, `f1` from 0 to 1."""

    exact: float
    f1: float


def mark(prediction: str, golds: Iterable[str]) -> Mark:
    """Score a prediction.

    Args:
        prediction: The predicted answer; an empty one claims that there is no answer.
        golds: The accepted answers; none for an unanswerable question.
    """
    accepted = [gold for gold in map(normalise, golds) if gold] or [""]
    answer = normalise(prediction)
    return Mark(float(answer in accepted), max(_f1(answer.split(), gold.split()) for gold in accepted))


def _f1(answer: Sequence[str], gold: Sequence[str]) -> float:
    if not answer or not gold:
        return float(answer == gold)
    shared = sum((Counter(answer) & Counter(gold)).values())
    if not shared:
        return 0.0
    precision, recall = shared / len(answer), shared / len(gold)
    return 2 * precision * recall / (precision + recall)  # in the script's order, so that every digit agrees
