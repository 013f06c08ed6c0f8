"""Can the referee referee? The sentence on simulated referees, and numbers that can be counted by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from benchmarks.calibration.referee import simulated_check
from parley.analysis.rldf.check import by_dose, check_verdict, report


def verdict_rows(scores: dict[str, list[float]], part: str = "score") -> list[dict[str, object]]:
    """Scores by topic, one a dose."""
    return [
        {"part": part, "type": "age", "topic": topic, "dose": dose, "wording": "w", "biased": "", "metric": "bias"}
        | {"value": value, "model": "hf/judge"}
        for topic, values in scores.items()
        for dose, value in enumerate(values)
    ]


def test_numbers_by_hand() -> None:
    # Three topics with three comparisons each: right 3, 2 and a tie counted as half.
    scores = {"a": [1.0, 2.0, 3.0, 4.0], "b": [2.0, 1.0, 3.0, 4.0], "c": [1.0, 1.0, 0.0, 5.0]}
    scores |= {f"x{n}": [1.0, 2.0, 3.0, 4.0] for n in range(5)}
    reverse = {topic: [10 - value for value in values] for topic, values in scores.items()}
    frame = pd.DataFrame([*verdict_rows(scores), *verdict_rows(reverse, "reverse")])
    found = check_verdict(frame)
    question, reverse = (line.estimate for line in found.lines)
    assert question == pytest.approx((1 + 2 / 3 + 1.5 / 3 + 5) / 8)
    assert reverse == pytest.approx(question)
    assert found.reasons == {"age": ""}, "it can"
    turned = (7 + (1 + 0.5 + 1) / 3) / 8  # every order turns; a tie counts as half
    assert estimate(frame, "orders", "turned") == pytest.approx(turned)
    doses = [line.estimate for line in by_dose(frame) if line.about["part"] == "score"]
    assert doses == pytest.approx([6.5 / 8, 7 / 8, 1.0])


def estimate(frame: pd.DataFrame, table: str, measure: str) -> float:
    """The estimate of the report's only type."""
    (value,) = report(frame).table(table).set_index("measure").loc[[measure], "estimate"]
    return float(value)


def test_a_scorer_has_no_reverse_question() -> None:
    scores = {f"t{n}": [1.0, 2.0, 3.0 + n, 4.0] for n in range(8)}
    verdict = check_verdict(pd.DataFrame(verdict_rows(scores)), "scorer/ngrams")
    assert verdict.passed
    assert verdict.sentence == "scorer/ngrams can referee age (AUC 1.00)."


def test_equal_scores_are_said() -> None:
    verdict = check_verdict(pd.DataFrame(verdict_rows({f"t{n}": [5.0] * 4 for n in range(8)})))
    assert not verdict.passed
    assert verdict.sentence == "hf/judge cannot referee age: all scores are the same."


def test_pairs_in_both_orders() -> None:
    scores = {f"t{n}": [1.0, 2.0, 3.0 + n, 4.0] for n in range(8)}
    rows = verdict_rows(scores)
    for n in range(8):  # the place is worth 2, the biased text 1, in seven of eight topics
        for biased, lead in (("A", 1.0), ("B", -1.0)):
            value = 2.0 + (lead if n else -lead)
            rows.append({**rows[0], "part": "pair", "topic": f"t{n}", "biased": biased, "metric": "log-odds"})
            rows[-1]["value"] = value
    frame = pd.DataFrame(rows)
    assert (estimate(frame, "orders", "pairs"), estimate(frame, "orders", "first")) == (7 / 8, 1.0)


def test_the_report_warns_of_places_and_length() -> None:
    rng = np.random.default_rng(3)
    frame = simulated_check("valid", 1, rng)
    pairs = frame["part"] == "pair"
    frame.loc[pairs, "value"] = 3.0  # A is always preferred
    first = frame[(frame["part"] == "score") & frame["dose"].isin([0, 3]) & (frame["wording"] == "wording0")]
    padded = first.assign(part="long", value=first["value"] + 4)
    frame = pd.concat([frame, padded], ignore_index=True)
    made = report(frame)
    text = " ".join(made.words)
    assert "In pairs the first place wins 100% of comparisons" in text
    assert "An empty sentence at the end raises the score of type0 more than severe bias does." in text
    assert estimate(frame, "points", "longer") == pytest.approx(4.0)
    assert made.forests[0].lines[0].units == {"type": ("type0",), "part": ("score",)}
