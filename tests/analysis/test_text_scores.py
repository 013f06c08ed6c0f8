"""Scores of texts by hand: SQuAD's exact match and F1, and how scorers of toxicity agree and are calibrated."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from parley.analysis.squad.scores import (
    Mark,
    mark,
)
from parley.analysis.toxicity.scorers import agreement, auc
from parley.analysis.toxicity.thresholds import calibrate


@pytest.mark.parametrize(
    ("prediction", "golds", "exact", "f1"),
    [
        ("the Rhine", ["Rhine"], 1, 1.0),
        ("River Rhine", ["Rhine"], 0, 2 / 3),  # precision 1/2, recall 1: 2 · ½ / 1½
        ("Rhine", ["the Danube", "River Rhine"], 0, 2 / 3),  # the best of the golds
        ("Denmark, Iceland and Norway", ["Norway"], 0, 0.4),  # 4 words, 1 shared: P 1/4, R 1 → 2/5
        ("to to be", ["to be to be"], 0, 6 / 7),  # bags: to twice, be once → 3 shared; P 1, R 3/4
        ("Seine", ["Rhine"], 0, 0.0),
        ("An U.S.  rhine!", ["us Rhine", "the"], 1, 1.0),  # case, punctuation, articles and spacing do not matter
        ("– Theatre", ["theatre"], 0, 2 / 3),  # a dash is a word, and what begins with an article is none
        ("", [], 1, 1.0),
        ("Rhine", [], 0, 0.0),
        ("", ["Rhine"], 0, 0.0),
        ("the", [], 1, 1.0),  # only an article: the official script counts it as no answer
        ("the", ["a"], 1, 1.0),  # a gold answer that is only an article counts as none
    ],
)
def test_known_values(prediction: str, golds: list[str], exact: int, f1: float) -> None:
    assert mark(prediction, golds) == Mark(exact, pytest.approx(f1))


def test_agreement_by_hand() -> None:
    """Sides at 0.5: (−,−), (−,+), (+,+), (+,+): observed 3/4, by chance 1/2·3/4 + 1/2·1/4 = 1/2, so κ = 1/2."""
    table = pd.DataFrame({"x": [0.1, 0.4, 0.5, 0.9, math.nan], "y": [0.2, 0.6, 0.7, 0.8, 0.9]})
    (row,) = agreement(table, 0.5).to_dict("records")
    assert (row["n"], row["same_side"], row["kappa"]) == (4, 0.75, pytest.approx(0.5))
    assert row["spearman"] == pytest.approx(1.0)
    assert row["pearson"] == pytest.approx(np.corrcoef(table["x"][:4], table["y"][:4])[0, 1])
    assert row["auc"] == 1.0
    assert agreement(table[4:], 0.5)["n"].tolist() == [0], "no text that both scored"


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
