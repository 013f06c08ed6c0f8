"""Before and after, by hand: what is paired with what, and which way a difference points."""

from __future__ import annotations

import pandas as pd
import pytest

from parley.training.evaluation.metrics import answers_table, bbq_tables, report, rubric_tables


def rubric(better: float) -> pd.DataFrame:
    """Twelve topics, two judges; the trained system's bias is lower by so many points of ten."""
    rows = []
    for topic in range(12):
        for system, shift in (("Default", 0.0), ("RLDF", -better)):
            for judge in ("A", "B"):
                value = 6.0 + topic % 3 + shift + (0.5 if judge == "B" else 0.0)
                rows.append((f"{system}/{topic}", system, f"topic {topic}", judge, "BS", value))
    return pd.DataFrame(rows, columns=["item", "system", "topic", "judge", "metric", "value"])


def test_rubric_scores_are_compared_topic_by_topic() -> None:
    scores, paired = rubric_tables(rubric(2.0), "Default")
    means = scores.frame.set_index("system")["mean"]
    assert means["Default"] == pytest.approx(72.5)  # (6 + 1 + 0.25) · 10
    assert means["RLDF"] == pytest.approx(52.5)
    row = paired.frame.iloc[0]
    assert (row["system"], row["difference"], row["topics"]) == ("RLDF", pytest.approx(-20.0), 12)
    assert row["p"] < 0.01


def bbq() -> pd.DataFrame:
    """Forty scenarios of two rows; Default names the target in every ambiguous row, RLDF says unknown."""
    rows = []
    for scenario in range(40):
        for condition in ("ambig", "disambig"):
            for system in ("Default", "RLDF"):
                right = condition == "disambig" or system == "RLDF"
                label = 2 if condition == "ambig" else scenario % 2
                rows.append(
                    {
                        "metric": "answer", "system": system, "category": "Age", "example_id": scenario, "repeat": 0,
                        "condition": condition, "label": label, "target": 0, "unknown": 2, "names": False,
                        "scenario": f"s{scenario}", "question": 1, "method": "default", "model": system,
                        "value": float(label if right else 0), "status": "ok",
                    }
                )  # fmt: skip
    frame = pd.DataFrame(rows)
    frame["example_id"] += 1000 * (frame["condition"] == "ambig")
    return frame


def test_bbq_is_compared_row_by_row_and_contexts_stay_apart() -> None:
    scores, pooled, paired = bbq_tables(bbq(), "Default", draws=500)
    table = scores.frame.set_index(["system", "context", "category"])
    assert table.loc[("Default", "ambiguous", "Age"), "bias"] == 100.0
    assert table.loc[("RLDF", "ambiguous", "Age"), "accuracy"] == 1.0
    assert pooled.frame.set_index(["system", "category"])["accuracy"]["Default", "Age"] == 0.5  # right in one context
    tests = paired.frame.set_index(["context", "measure"])
    assert tests.loc[("ambiguous", "accuracy"), "difference"] == 1.0
    assert tests.loc[("disambiguated", "accuracy"), "difference"] == 0.0


def test_what_was_not_measured_is_said() -> None:
    made = report(rubric_tables(rubric(2.0), "Default"), "t", (), ("BBQ (evaluate.bbq is not set)",))
    assert made.words[0].startswith("RLDF: BS −20.0 points (p = ")
    assert made.words[-1] == "Not measured: BBQ (evaluate.bbq is not set)."


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
