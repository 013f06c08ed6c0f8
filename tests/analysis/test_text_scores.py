"""Scores of texts by hand: SQuAD's exact match and F1, and how scorers of toxicity differ, agree and are calibrated."""

from __future__ import annotations

import collections
import math
import re
import string

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from parley.analysis.squad.scores import (
    Mark,
    mark,
)
from parley.analysis.toxicity.scorers import agreement, auc, by_category, by_sentence, gaps
from parley.analysis.toxicity.thresholds import calibrate

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


AUDIT = pd.DataFrame(
    [
        ("s", "one", False, "faith", "a", 0.1),
        ("s", "one", False, "faith", "b", 0.4),
        ("s", "one", False, "age", "old", 0.2),
        ("s", "two", True, "faith", "a", 0.9),
        ("s", "two", True, "faith", "b", 0.8),
        ("s", "two", True, "age", "old", math.nan),
    ],
    columns=["scorer", "sentence", "hostile", "category", "identity", "score"],
)


def test_the_range_of_a_sentence_and_its_lowest_and_highest_identity() -> None:
    one, two = by_sentence(AUDIT).to_dict("records")
    assert (one["lowest"], one["highest"], one["n"], one["unscored"]) == ("a", "b", 3, 0)
    assert one["range"] == pytest.approx(0.3)
    assert (two["lowest"], two["highest"], two["n"], two["unscored"]) == ("b", "a", 2, 1)


def test_gaps_are_within_categories_and_absolute() -> None:
    """|0.1 − 0.4| and |0.9 − 0.8| have the mean 0.2; b is higher on average."""
    (pair,) = gaps(AUDIT).to_dict("records")
    assert (pair["category"], pair["higher"], pair["lower"], pair["sentences"]) == ("faith", "b", "a", 2)
    assert (pair["gap"], pair["largest"]) == (pytest.approx(0.2), pytest.approx(0.3))
    assert by_category(AUDIT).loc["faith", "s"] == pytest.approx(0.2)


def test_agreement_by_hand() -> None:
    """Sides at 0.5: (−,−), (−,+), (+,+), (+,+): observed 3/4, by chance 1/2·3/4 + 1/2·1/4 = 1/2, so κ = 1/2."""
    table = pd.DataFrame({"x": [0.1, 0.4, 0.6, 0.9, math.nan], "y": [0.2, 0.6, 0.7, 0.8, 0.9]})
    (row,) = agreement(table, 0.5).to_dict("records")
    assert (row["n"], row["same_side"], row["kappa"]) == (4, 0.75, pytest.approx(0.5))
    assert row["spearman"] == pytest.approx(1.0)
    assert row["pearson"] == pytest.approx(np.corrcoef(table["x"][:4], table["y"][:4])[0, 1])
    assert row["auc"] == 1.0


def test_auc_counts_pairs() -> None:
    """Toxic 0.9 and 0.4 against 0.4 and 0.1: three pairs won and one tied, 3.5 of 4."""
    assert auc(np.array([0.9, 0.4, 0.4, 0.1]), [True, True, False, False]) == 3.5 / 4
    assert math.isnan(auc(np.array([0.9]), [True]))


def test_a_group_that_the_scorer_overlooks_is_seen() -> None:
    """Toxic texts about b score 0.05 where those about a score 0.9; unscored texts are neither missed nor passed."""
    rows = [(0.9, True, ("a",))] * 90 + [(0.05, True, ("b",))] * 10
    rows += [(0.01, False, ("a", "b"))] * 100 + [(math.nan, True, ("a",))] * 7
    frame = pd.DataFrame(rows, columns=["score", "toxic", "group"])
    everything, a, b = calibrate(frame, miss_rate=0.1, false_alarm_rate=0.05, at=0.1, by=["group"])
    assert (everything.harmless_below.estimate, everything.missed.estimate) == (0.9, 0.1)
    assert (everything.toxic, everything.harmless, everything.unscored) == (100, 100, 7)
    assert (a.missed.estimate, b.missed.estimate) == (0.0, 1.0)
    assert b.harmless_below.estimate == 0.05
    assert (everything.missed_at.estimate, b.missed_at.estimate, b.harmless) == (0.1, 1.0, 100)
    assert everything.missed.low == pytest.approx(0.0552, abs=1e-4)  # Wilson, 10 of 100
