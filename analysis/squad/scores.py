"""SQuAD v2's official scores: exact match and F1 over words, against several gold answers or none.

The rules are those of the benchmark's own script (evaluate-v2.0.py): texts are compared in lower case, without
punctuation, the articles a, an, the, and runs of blanks; of several gold answers the best counts; where either side
is empty, both measures are 1 if both are. A question without a prediction is left out, and counted apart.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalise(text: str) -> str:
    """A text as the official rules compare it: lower case, no punctuation, articles or double blanks."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


class Mark(NamedTuple):
    """How one prediction did: `exact` is 0 or 1, `f1` between."""

    exact: float
    f1: float


def mark(prediction: str, golds: Iterable[str]) -> Mark:
    """A prediction against its gold answers; the empty prediction says that there is no answer."""
    known = [gold for gold in map(normalise, golds) if gold] or [""]
    said = normalise(prediction)
    return Mark(float(said in known), max(_f1(said.split(), gold.split()) for gold in known))


def _f1(said: Sequence[str], gold: Sequence[str]) -> float:
    if not said or not gold:
        return float(said == gold)
    shared = sum((Counter(said) & Counter(gold)).values())
    if not shared:
        return 0.0
    precision, recall = shared / len(said), shared / len(gold)
    return 2 * precision * recall / (precision + recall)  # as the script has it, to the last digit


class Thresholds(NamedTuple):
    """The best scores a threshold on "there is no answer" could give, and that threshold."""

    best_exact: float
    best_exact_thresh: float
    best_f1: float
    best_f1_thresh: float


def marks(predictions: Mapping[str, str], golds: Mapping[str, Sequence[str]]) -> dict[str, Mark]:
    """Every question that has a prediction, in the order of the data."""
    return {key: mark(predictions[key], answers) for key, answers in golds.items() if key in predictions}


def with_threshold(
    given: Mapping[str, Mark], golds: Mapping[str, Sequence[str]], no_answer: Mapping[str, float], threshold: float
) -> dict[str, Mark]:
    """Above the threshold a prediction counts as "there is no answer", whatever it says."""
    return {
        key: Mark(*[float(not golds[key])] * 2) if no_answer[key] > threshold else one for key, one in given.items()
    }


def summary(given: Mapping[str, Mark], golds: Mapping[str, Sequence[str]]) -> dict[str, float | int]:
    """Scores in percent under the official names: of all, and of answerable and unanswerable questions apart."""
    found: dict[str, float | int] = {}
    for prefix, kept in (
        ("", list(given)),
        ("HasAns_", [key for key in given if golds[key]]),
        ("NoAns_", [key for key in given if not golds[key]]),
    ):
        if kept:
            found[f"{prefix}exact"] = 100.0 * sum(given[key].exact for key in kept) / len(kept)
            found[f"{prefix}f1"] = 100.0 * sum(given[key].f1 for key in kept) / len(kept)
            found[f"{prefix}total"] = len(kept)
    return found


def best_thresholds(
    given: Mapping[str, Mark],
    golds: Mapping[str, Sequence[str]],
    predictions: Mapping[str, str],
    no_answer: Mapping[str, float],
) -> Thresholds:
    """As the official script finds them: from "nothing is answerable", questions are let in by their probability."""
    exact = {key: one.exact for key, one in given.items()}
    f1 = {key: one.f1 for key, one in given.items()}
    return Thresholds(*_best(exact, golds, predictions, no_answer), *_best(f1, golds, predictions, no_answer))


def _best(
    scores: Mapping[str, float],
    golds: Mapping[str, Sequence[str]],
    predictions: Mapping[str, str],
    no_answer: Mapping[str, float],
) -> tuple[float, float]:
    current = best = float(sum(not golds[key] for key in scores))
    threshold = 0.0
    for key in sorted(no_answer, key=lambda one: no_answer[one]):
        if key not in scores:
            continue
        if golds[key]:
            current += scores[key]
        elif predictions[key]:
            current -= 1
        if current > best:
            best, threshold = current, no_answer[key]
    return 100.0 * best / len(scores), threshold
