"""SQuAD's exact match and F1 by hand."""

from __future__ import annotations

import collections
import re
import string

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from parley.judging.squad.scores import Mark, mark

EXAMPLES = settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])


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


WORDS = st.lists(st.sampled_from(["the", "a", "Rhine", "rhine!", "U.S.", "an", "1512", "–", "river", ""]), max_size=6)


@EXAMPLES
@given(WORDS, st.lists(WORDS, max_size=4))
def test_any_texts_are_scored_as_the_rules_say(prediction: list[str], golds: list[list[str]]) -> None:
    texts = [" ".join(gold) for gold in golds]
    assert mark(" ".join(prediction), texts) == oracle(" ".join(prediction), texts)
