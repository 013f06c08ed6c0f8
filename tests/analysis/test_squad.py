"""SQuAD's scores against values by hand, and against a second implementation of the rules on real questions."""

from __future__ import annotations

import collections
import random
import re
import string
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from parley.analysis.squad.scores import (
    Mark,
    best_thresholds,
    mark,
    marks,
    normalise,
    precision_recall,
    summary,
    with_threshold,
)

EXAMPLES = settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])

DATA = Path(__file__).parents[3] / "shared" / "data" / "squad" / "cs224n_dev-v2.0_half.json"


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("The  Rhine!", "rhine"),
        ("a U.S. state", "us state"),
        ("Theatre", "theatre"),
        ("an\u00a0apple, a day", "apple day"),
        ("A.", ""),
        ("the-end", "theend"),  # punctuation goes first, which joins the two words, so there is no article
        ("19 October 1512", "19 october 1512"),
    ],
)
def test_texts_are_compared_without_case_punctuation_articles_and_extra_spaces(text: str, plain: str) -> None:
    assert normalise(text) == plain


@pytest.mark.parametrize(
    ("prediction", "golds", "exact", "f1"),
    [
        ("the Rhine", ["Rhine"], 1, 1.0),
        ("River Rhine", ["Rhine"], 0, 2 / 3),  # precision 1/2, recall 1: 2 · ½ / 1½
        ("Rhine", ["the Danube", "River Rhine"], 0, 2 / 3),  # the best of the golds
        ("Denmark, Iceland and Norway", ["Norway"], 0, 0.4),  # 4 words, 1 shared: P 1/4, R 1 → 2/5
        ("to to be", ["to be to be"], 0, 6 / 7),  # bags: to twice, be once → 3 shared; P 1, R 3/4
        ("Seine", ["Rhine"], 0, 0.0),
        ("", [], 1, 1.0),
        ("Rhine", [], 0, 0.0),
        ("", ["Rhine"], 0, 0.0),
        ("the", [], 1, 1.0),  # only an article: the official script counts it as no answer
        ("the", ["a"], 1, 1.0),  # a gold answer that is only an article counts as none
    ],
)
def test_known_values(prediction: str, golds: list[str], exact: int, f1: float) -> None:
    assert mark(prediction, golds) == Mark(exact, pytest.approx(f1))


def test_scores_have_the_official_names_and_a_missing_prediction_is_not_an_empty_one() -> None:
    golds = {"a": ["Rhine"], "b": ["the Danube"], "c": [], "d": [], "e": []}
    given = marks({"a": "Rhine", "b": "river Danube", "c": "", "d": "Elbe"}, golds)
    assert summary(given, golds) == {
        "exact": 50.0,
        "f1": pytest.approx(100 * (1 + 2 / 3 + 1 + 0) / 4),
        "total": 4,
        "HasAns_exact": 50.0,
        "HasAns_f1": pytest.approx(100 * (1 + 2 / 3) / 2),
        "HasAns_total": 2,
        "NoAns_exact": 50.0,
        "NoAns_f1": 50.0,
        "NoAns_total": 2,
    }


def test_a_part_without_questions_has_no_scores() -> None:
    assert set(summary(marks({"a": "x"}, {"a": ["x"]}), {"a": ["x"]})) == {
        "exact", "f1", "total", "HasAns_exact", "HasAns_f1", "HasAns_total",
    }  # fmt: skip


def test_above_the_threshold_a_prediction_counts_as_no_answer() -> None:
    golds = {"a": ["Rhine"], "b": []}
    given = marks({"a": "Rhine", "b": "Elbe"}, golds)
    counted = with_threshold(given, golds, {"a": 0.9, "b": 0.9}, 0.5)
    assert counted == {"a": Mark(0, 0), "b": Mark(1, 1)}
    assert with_threshold(given, golds, {"a": 0.5, "b": 0.5}, 0.5) == given


def test_the_best_threshold_answers_only_what_helps() -> None:
    golds = {"a": ["Rhine"], "b": ["Elbe"], "c": []}
    predictions = {"a": "Rhine", "b": "Elbe", "c": "Oder"}
    given = marks(predictions, golds)
    # Nothing answered: 1 of 3 right. Up to 0.1: a, 2 of 3. Up to 0.2: b too, 3 of 3. Up to 0.8: c is wrong, 2 of 3.
    best = best_thresholds(given, golds, predictions, {"a": 0.1, "b": 0.2, "c": 0.8})
    assert best == (100.0, 0.2, 100.0, 0.2)


def test_precision_and_recall_by_hand() -> None:
    golds = {"a": ["Rhine"], "b": [], "c": ["Elbe"], "d": ["Oder"]}
    given = marks({"a": "Rhine", "b": "Main", "c": "river Elbe", "d": "Oder"}, golds)
    curves = precision_recall(given, golds, {"a": 0.1, "b": 0.2, "c": 0.2, "d": 0.9})
    # Up to 0.1: a, precision 1, recall 1/3. Up to 0.2: b and c at once, precision 1/3 and recall 1/3 by exact match
    # (c is 0 there and 2/3 by F1). Up to 0.9: d, precision 2/4, recall 2/3.
    exact = curves["exact"]
    assert exact.recalls == pytest.approx((0, 1 / 3, 1 / 3, 2 / 3))
    assert exact.precisions == pytest.approx((1, 1, 1 / 3, 1 / 2))
    assert exact.thresholds == (0.1, 0.2, 0.9)
    assert exact.average == pytest.approx(100 * (1 / 3 + 0 + 1 / 2 * 1 / 3))
    assert curves["f1"].average == pytest.approx(100 * (1 / 3 + 5 / 9 * 2 / 9 + 2 / 3 * 1 / 3))
    assert curves["oracle"].average == pytest.approx(100 * (1 / 3 + 2 / 3 * 1 / 3 + 3 / 4 * 1 / 3))
    assert precision_recall({"b": given["b"]}, golds, {"b": 0.2}) == {}


# A second implementation of the published rules, independent of the code under test and as literal as possible.


def oracle(prediction: str, golds: list[str]) -> tuple[int, float]:
    def plain(text: str) -> str:
        letters = "".join(c for c in text.lower() if c not in set(string.punctuation))
        return " ".join(re.sub(r"\b(a|an|the)\b", " ", letters).split())

    def overlap(gold: str) -> float:
        left, right = plain(gold).split(), plain(prediction).split()
        if len(left) == 0 or len(right) == 0:
            return float(left == right)
        same = sum((collections.Counter(left) & collections.Counter(right)).values())
        if same == 0:
            return 0.0
        precision, recall = same / len(right), same / len(left)
        return 2 * precision * recall / (precision + recall)

    valid = [gold for gold in golds if plain(gold)] or [""]
    return max(int(plain(gold) == plain(prediction)) for gold in valid), max(overlap(gold) for gold in valid)


def oracle_average(scores: dict[str, float], chances: dict[str, float], golds: dict[str, list[str]]) -> float:
    """The area under the steps, point by point, from the definitions of precision and recall."""
    area = earlier = 0.0
    for threshold in sorted(set(chances.values())):
        answered = [key for key in chances if chances[key] <= threshold]
        right = sum(scores[key] for key in answered if golds[key])
        recall = right / sum(bool(golds[key]) for key in chances)
        area += right / len(answered) * (recall - earlier)
        earlier = recall
    return 100 * area


WORDS = st.lists(st.sampled_from(["the", "a", "Rhine", "rhine!", "U.S.", "an", "1512", "–", "river", ""]), max_size=6)


@EXAMPLES
@given(WORDS, st.lists(WORDS, max_size=4))
def test_any_texts_are_scored_as_the_rules_say(prediction: list[str], golds: list[list[str]]) -> None:
    texts = [" ".join(gold) for gold in golds]
    assert mark(" ".join(prediction), texts) == oracle(" ".join(prediction), texts)


@pytest.mark.skipif(not DATA.exists(), reason="the data set is not available")
def test_six_thousand_real_questions_are_scored_as_the_rules_say() -> None:
    from parley.scenarios.squad import load

    rng = random.Random(0)
    questions = load(DATA).questions
    golds = {question.id: list(question.answers) for question in questions}
    predictions = {}
    for question in questions:
        words = question.context.split()
        start = rng.randrange(len(words))
        span = " ".join(words[start : start + rng.randint(1, 6)])
        gold = rng.choice(question.answers) if question.answers else ""
        predictions[question.id] = rng.choice([span, "", gold, f"The {gold}!", f"{gold} {span}"])
    expected = {key: oracle(predictions[key], texts) for key, texts in golds.items()}
    assert marks(predictions, golds) == expected
    scores = summary(marks(predictions, golds), golds)
    for prefix, keys in (
        ("", list(golds)),
        ("HasAns_", [k for k in golds if golds[k]]),
        ("NoAns_", [k for k in golds if not golds[k]]),
    ):
        assert scores[f"{prefix}total"] == len(keys)
        for place, name in enumerate(("exact", "f1")):
            assert scores[f"{prefix}{name}"] == 100.0 * sum(expected[key][place] for key in keys) / len(keys)
    assert 30 < scores["exact"] < 60, "a mixture of right and wrong, or it would test little"
    chances = {key: rng.randrange(50) / 50 for key in golds}
    curves = precision_recall(marks(predictions, golds), golds, chances)
    for name, of in (("exact", lambda key: expected[key][0]), ("f1", lambda key: expected[key][1])):
        average = oracle_average({key: of(key) for key in golds}, chances, golds)
        assert curves[name].average == pytest.approx(average, rel=1e-12)
        assert len(curves[name].recalls) == 51, "one point for each of 50 thresholds, and the beginning"
