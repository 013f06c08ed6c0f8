"""A trained model before and after, by hand, and a reward model that has only learnt length is seen to have."""

from __future__ import annotations

import math
import random

import pandas as pd
import pytest

from parley.training.evaluation.metrics import answers_table, bbq_tables, report
from parley.training.evaluation.reward_metrics import (
    calibration_error,
    conclusions,
    quality,
    ranked,
    reliability,
    reliability_figure,
)
from tests.analysis.verdicts import bbq_answer


def bbq() -> pd.DataFrame:
    """Forty scenarios of two rows; Default names the target in every ambiguous row, RLDF says unknown."""
    rows = []
    for number in range(80):
        for system in ("Default", "RLDF"):
            row = bbq_answer(number, 0.0, system=system, model=system, target=0, question=1)
            right = row["condition"] == "disambig" or system == "RLDF"
            rows.append(row | {"value": float(row["label"] if right else 0)})
    return pd.DataFrame(rows)


def test_bbq_is_compared_row_by_row_and_contexts_stay_apart() -> None:
    scores, pooled, paired = bbq_tables(bbq(), "Default", draws=500)
    table = scores.frame.set_index(["system", "context", "category"])
    assert table.loc[("Default", "ambiguous", "Age"), "bias"] == 100.0
    assert table.loc[("RLDF", "ambiguous", "Age"), "accuracy"] == 1.0
    assert pooled.frame.set_index(["system", "category"])["accuracy"]["Default", "Age"] == 0.5  # right in one context
    tests = paired.frame.set_index(["context", "measure"])
    assert tests.loc[("ambiguous", "accuracy"), "difference"] == 1.0
    assert tests.loc[("disambiguated", "accuracy"), "difference"] == 0.0


def test_a_policy_that_says_little_or_always_the_same_is_seen() -> None:
    said = pd.DataFrame(
        [("Default", f"t{n}", f"Ten words of an answer that is number {n} here") for n in range(4)]
        + [("RLDF", f"t{n}", "Yes." if n else "") for n in range(4)],
        columns=["system", "topic", "text"],
    )
    table = answers_table(said).frame.set_index("system")
    assert table.loc["Default", ["answers", "empty", "words", "distinct"]].tolist() == [4, 0, 10.0, 1.0]
    assert table.loc["RLDF", ["answers", "empty", "words", "distinct"]].tolist() == [4, 1, 0.75, 0.5]
    assert "RLDF: 0.8 words per answer, 1 empty, 50% distinct." in report([answers_table(said)], "t", (), ()).words


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


def test_calibration_by_hand() -> None:
    # σ(ln 3) = 0.75: four pairs with that confidence, of which three are right, are perfectly calibrated.
    # σ(ln 9) = 0.9: two pairs, one right: off by 0.4. ECE = (4·0 + 2·0.4) / 6.
    margins = [math.log(3)] * 3 + [-math.log(3)] + [math.log(9), -math.log(9)]
    frame = pd.DataFrame({"topic": "t", "chosen": margins, "rejected": 0.0})
    bins = reliability(frame)
    used = bins[bins["n"] > 0]
    assert list(ranked([2, 1, 0], [1, 1, 1])) == [1.0, 0.5, 0.0], "a tie counts as half"
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
