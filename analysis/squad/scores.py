"""SQuAD v2's official scores: exact match and F1 over words, against several gold answers or none.

The rules are those of the benchmark's own script (evaluate-v2.0.py): texts are compared in lower case, without
punctuation, the articles a, an, the, and repeated spaces; of several gold answers the best match counts; if either side
is empty, both measures are 1 if both are empty, else 0. Questions without a prediction are left out.
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
    """A text as the official rules compare it: lower case, no punctuation, articles or repeated spaces."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


class Mark(NamedTuple):
    """The scores of one prediction: `exact` is 0 or 1, `f1` between."""

    exact: float
    f1: float


def mark(prediction: str, golds: Iterable[str]) -> Mark:
    """The scores of a prediction.

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


class Thresholds(NamedTuple):
    """The best scores that a threshold on the probability of "no answer" could give, and that threshold."""

    best_exact: float
    best_exact_thresh: float
    best_f1: float
    best_f1_thresh: float


class Curve(NamedTuple):
    """Precision and recall of the answers given, as the threshold on the probability of "no answer" rises.

    Both begin at (1, 0), with nothing answered. `average` is the area under the steps, in percent; `thresholds` has one
    value fewer: the highest probability of what is answered at each further point.
    """

    precisions: tuple[float, ...]
    recalls: tuple[float, ...]
    thresholds: tuple[float, ...]
    average: float


def marks(predictions: Mapping[str, str], golds: Mapping[str, Sequence[str]]) -> dict[str, Mark]:
    """The scores of every question that has a prediction, in the order of the data."""
    return {key: mark(predictions[key], answers) for key, answers in golds.items() if key in predictions}


def with_threshold(
    given: Mapping[str, Mark], golds: Mapping[str, Sequence[str]], no_answer: Mapping[str, float], threshold: float
) -> dict[str, Mark]:
    """Predictions whose probability of "no answer" is above the threshold count as "no answer"."""
    return {
        key: Mark(*[float(not golds[key])] * 2) if no_answer[key] > threshold else scored
        for key, scored in given.items()
    }


def summary(given: Mapping[str, Mark], golds: Mapping[str, Sequence[str]]) -> dict[str, float | int]:
    """Scores in percent under the official names: all questions, and answerable and unanswerable ones separately."""
    scores: dict[str, float | int] = {}
    for prefix, keys in (
        ("", list(given)),
        ("HasAns_", [key for key in given if golds[key]]),
        ("NoAns_", [key for key in given if not golds[key]]),
    ):
        if keys:
            scores[f"{prefix}exact"] = 100.0 * sum(given[key].exact for key in keys) / len(keys)
            scores[f"{prefix}f1"] = 100.0 * sum(given[key].f1 for key in keys) / len(keys)
            scores[f"{prefix}total"] = len(keys)
    return scores


def best_thresholds(
    given: Mapping[str, Mark],
    golds: Mapping[str, Sequence[str]],
    predictions: Mapping[str, str],
    no_answer: Mapping[str, float],
) -> Thresholds:
    """As in the official script: start with no question answered, and add them by rising probability of "no answer"."""
    exact = {key: scored.exact for key, scored in given.items()}
    f1 = {key: scored.f1 for key, scored in given.items()}
    return Thresholds(*_best(exact, golds, predictions, no_answer), *_best(f1, golds, predictions, no_answer))


def _best(
    scores: Mapping[str, float],
    golds: Mapping[str, Sequence[str]],
    predictions: Mapping[str, str],
    no_answer: Mapping[str, float],
) -> tuple[float, float]:
    current = best = float(sum(not golds[key] for key in scores))
    threshold = 0.0
    for key in sorted(no_answer, key=lambda question: no_answer[question]):
        if key not in scores:
            continue
        if golds[key]:
            current += scores[key]
        elif predictions[key]:
            current -= 1
        if current > best:
            best, threshold = current, no_answer[key]
    return 100.0 * best / len(scores), threshold


CURVES = ("exact", "f1", "oracle")


def precision_recall(
    given: Mapping[str, Mark], golds: Mapping[str, Sequence[str]], no_answer: Mapping[str, float]
) -> dict[str, Curve]:
    """The official script's three curves: by exact match, by F1, and of an oracle that answers all it may correctly.

    Args:
        given: The scores of the predictions.
        golds: The accepted answers of every question; none for an unanswerable one.
        no_answer: The probability that a question has no answer.

    Returns:
        The curves by name; empty if no question has an answer.
    """
    order = sorted(given, key=lambda key: no_answer[key])
    answerable = sum(bool(golds[key]) for key in order)
    if not answerable:
        return {}
    scores = {
        "exact": [given[key].exact if golds[key] else 0.0 for key in order],
        "f1": [given[key].f1 if golds[key] else 0.0 for key in order],
        "oracle": [float(bool(golds[key])) for key in order],
    }
    probabilities = [no_answer[key] for key in order]
    return {name: _curve(scores[name], probabilities, answerable) for name in CURVES}


def _curve(scores: Sequence[float], probabilities: Sequence[float], answerable: int) -> Curve:
    precisions, recalls, thresholds = [1.0], [0.0], []
    right = average = 0.0
    for n, (score, probability) in enumerate(zip(scores, probabilities, strict=True), 1):
        right += score
        if n < len(scores) and probabilities[n] == probability:
            continue  # no threshold separates this question from the next
        precision, recall = right / n, right / answerable
        average += precision * (recall - recalls[-1])
        precisions.append(precision)
        recalls.append(recall)
        thresholds.append(probability)
    return Curve(tuple(precisions), tuple(recalls), tuple(thresholds), 100.0 * average)
