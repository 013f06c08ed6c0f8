"""A reward model's figures: known values by hand, and one that has only learnt length is seen to have."""

from __future__ import annotations

import math
import random

import pandas as pd
import pytest

from parley.training.evaluation.reward_metrics import (
    calibration_error,
    conclusions,
    quality,
    ranked,
    reliability,
    reliability_figure,
)


def held_out(score: str, count: int = 400, seed: int = 0) -> pd.DataFrame:
    """Chosen texts are longer in 7 of 10 pairs; the model scores by length, or by what is meant."""
    rng = random.Random(seed)
    rows = []
    for number in range(count):
        gap = rng.choice((-20, -15, 0, 0, 1, 12, 15, 18, 20, 25))
        meant = 1.0 if rng.random() < 0.85 else -1.0
        margin = gap / 10 if score == "length" else meant + rng.random() / 10
        rows.append((f"topic {number % 50}", margin, 0.0, 60 + gap, 60))
    frame = pd.DataFrame(rows, columns=["topic", "chosen", "rejected", "words_chosen", "words_rejected"])
    return frame.assign(chosen_masked=frame["chosen"], rejected_masked=frame["rejected"], changed=False)


def test_a_model_that_has_only_learnt_length_is_seen_to_have() -> None:
    table = quality(held_out("length"), held_out("length", seed=1)).set_index("control")
    assert table.loc["all pairs", "accuracy"] == table.loc["length alone", "accuracy"]
    assert table.loc["agrees with length", "accuracy"] == 1.0
    assert table.loc["length misleads", "accuracy"] == 0.0
    assert table.loc["lengths matched", "accuracy"] == pytest.approx(0.67, abs=0.06)  # two ties of three, one right


def test_one_that_has_learnt_what_is_meant_is_seen_to_have() -> None:
    table = quality(held_out("meaning"), held_out("meaning", seed=1)).set_index("control")
    assert table.loc["lengths matched", "low"] > 0.7
    assert table.loc["length misleads", "accuracy"] == pytest.approx(0.85, abs=0.08)
    assert conclusions(table.reset_index())[1].startswith("It has learnt more than length")


def test_ranking_counts_a_tie_as_half() -> None:
    assert list(ranked([2, 1, 0], [1, 1, 1])) == [1.0, 0.5, 0.0]


def test_calibration_by_hand() -> None:
    # σ(ln 3) = 0.75: four pairs with that confidence, of which three are right, are perfectly calibrated.
    # σ(ln 9) = 0.9: two pairs, one right: off by 0.4. ECE = (4·0 + 2·0.4) / 6.
    margins = [math.log(3)] * 3 + [-math.log(3)] + [math.log(9), -math.log(9)]
    frame = pd.DataFrame({"topic": "t", "chosen": margins, "rejected": 0.0})
    bins = reliability(frame)
    used = bins[bins["n"] > 0]
    assert list(used["n"]) == [4, 2]
    assert list(used["accuracy"]) == [0.75, 0.5]
    assert calibration_error(bins) == pytest.approx(2 * 0.4 / 6)
    assert reliability_figure(bins, frame).axes
    assert math.isnan(calibration_error(bins.assign(n=0)))


def test_what_is_not_defined_is_not_called_a_number() -> None:
    nothing = float("nan")
    rows = [
        ("all pairs", 0.5, 0.2, 0.8, 6),
        ("length alone", 0.5, 0.2, 0.8, 6),
        ("lengths matched", nothing, nothing, nothing, 0),
        ("length misleads", 1.0, nothing, nothing, 1),
        ("persona words masked", 0.5, 0.2, 0.8, 6),
    ]
    said = " ".join(conclusions(pd.DataFrame(rows, columns=["control", "accuracy", "low", "high", "n"])))
    assert "nan" not in said
    assert "– (n = 0) where lengths are matched, 1.00 (n = 1) where length misleads" in said
