"""SQuAD's scores against hand-made values, and against a second reading of the official rules on real questions."""

from __future__ import annotations

import collections
import random
import re
import string
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from parley.analysis.squad.scores import Mark, best_thresholds, mark, marks, normalise, summary, with_threshold

CALM = settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])

DATA = Path(__file__).parents[3] / "shared" / "data" / "squad" / "cs224n_dev-v2.0_half.json"


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("The  Rhine!", "rhine"),
        ("a U.S. state", "us state"),
        ("Theatre", "theatre"),
        ("an\u00a0apple, a day", "apple day"),
        ("A.", ""),
        ("the-end", "theend"),  # punctuation goes first: what was joined is one word, and no article any more
        ("19 October 1512", "19 october 1512"),
    ],
)
def test_texts_are_compared_without_case_punctuation_articles_and_blanks(text: str, plain: str) -> None:
    assert normalise(text) == plain


@pytest.mark.parametrize(
    ("said", "golds", "exact", "f1"),
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
        ("the", [], 1, 1.0),  # nothing is left of it: the official script takes it for no answer
        ("the", ["a"], 1, 1.0),  # a gold of which nothing is left is none
    ],
)
def test_known_values(said: str, golds: list[str], exact: int, f1: float) -> None:
    assert mark(said, golds) == Mark(exact, pytest.approx(f1))


def test_parts_under_the_official_names_and_a_missing_prediction_is_no_empty_one() -> None:
    golds = {"a": ["Rhine"], "b": ["the Danube"], "c": [], "d": [], "e": []}
    given = marks({"a": "Rhine", "b": "river Danube", "c": "", "d": "Elbe"}, golds)
    found = summary(given, golds)
    assert found == {
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


def test_above_the_threshold_a_prediction_says_that_there_is_no_answer() -> None:
    golds = {"a": ["Rhine"], "b": []}
    given = marks({"a": "Rhine", "b": "Elbe"}, golds)
    counted = with_threshold(given, golds, {"a": 0.9, "b": 0.9}, 0.5)
    assert counted == {"a": Mark(0, 0), "b": Mark(1, 1)}
    assert with_threshold(given, golds, {"a": 0.5, "b": 0.5}, 0.5) == given


def test_the_best_threshold_lets_in_what_helps() -> None:
    golds = {"a": ["Rhine"], "b": ["Elbe"], "c": []}
    predictions = {"a": "Rhine", "b": "Elbe", "c": "Oder"}
    given = marks(predictions, golds)
    # Nothing answered: 1 of 3 right. Up to 0.1: a, 2 of 3. Up to 0.2: b too, 3 of 3. Up to 0.8: c is wrong, 2 of 3.
    found = best_thresholds(given, golds, predictions, {"a": 0.1, "b": 0.2, "c": 0.8})
    assert found == (100.0, 0.2, 100.0, 0.2)


# A second reading of the published rules, written apart from the code under test and as literally as can be.


def oracle(said: str, golds: list[str]) -> tuple[int, float]:
    def plain(text: str) -> str:
        kept = "".join(c for c in text.lower() if c not in set(string.punctuation))
        return " ".join(re.sub(r"\b(a|an|the)\b", " ", kept).split())

    def overlap(gold: str) -> float:
        left, right = plain(gold).split(), plain(said).split()
        if len(left) == 0 or len(right) == 0:
            return float(left == right)
        same = sum((collections.Counter(left) & collections.Counter(right)).values())
        if same == 0:
            return 0.0
        precision, recall = same / len(right), same / len(left)
        return 2 * precision * recall / (precision + recall)

    valid = [gold for gold in golds if plain(gold)] or [""]
    return max(int(plain(gold) == plain(said)) for gold in valid), max(overlap(gold) for gold in valid)


WORDS = st.lists(st.sampled_from(["the", "a", "Rhine", "rhine!", "U.S.", "an", "1512", "–", "river", ""]), max_size=6)


@CALM
@given(WORDS, st.lists(WORDS, max_size=4))
def test_any_texts_are_marked_as_the_rules_say(said: list[str], golds: list[list[str]]) -> None:
    texts = [" ".join(gold) for gold in golds]
    assert mark(" ".join(said), texts) == oracle(" ".join(said), texts)


@pytest.mark.skipif(not DATA.exists(), reason="the real data is not here")
def test_six_thousand_real_questions_are_scored_as_the_rules_say() -> None:
    from parley.scenarios.squad import load

    rng = random.Random(0)
    questions = load(DATA).questions
    golds = {one.id: list(one.answers) for one in questions}
    predictions = {}
    for one in questions:
        words = one.context.split()
        start = rng.randrange(len(words))
        span = " ".join(words[start : start + rng.randint(1, 6)])
        gold = rng.choice(one.answers) if one.answers else ""
        predictions[one.id] = rng.choice([span, "", gold, f"The {gold}!", f"{gold} {span}"])
    expected = {key: oracle(predictions[key], texts) for key, texts in golds.items()}
    assert marks(predictions, golds) == expected
    found = summary(marks(predictions, golds), golds)
    for prefix, kept in (
        ("", list(golds)),
        ("HasAns_", [k for k in golds if golds[k]]),
        ("NoAns_", [k for k in golds if not golds[k]]),
    ):
        assert found[f"{prefix}total"] == len(kept)
        for place, name in enumerate(("exact", "f1")):
            assert found[f"{prefix}{name}"] == 100.0 * sum(expected[key][place] for key in kept) / len(kept)
    assert 30 < found["exact"] < 60, "a mixture of right and wrong, or it would test little"
