"""The section in which labels correct the judge: which arms are compared, and what is said of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from parley.analysis.reporting.corrected import corrected_lines, corrected_section
from parley.analysis.reporting.judged_texts import JudgedTexts
from parley.analysis.stats.results import DIFFERENT, Line

BASES = 20


def texts(
    arms: Sequence[tuple[str, ...]],
    *,
    metric: str = "toxicity",
    same_texts: bool = False,
    knows: float = 1.0,
    seed: int = 5,
) -> JudgedTexts:
    """What a judge and people say of three texts per base and arm, half of them labelled; people like later arms."""
    rng = np.random.default_rng(seed)
    judged, labels, drawn = [], [], []
    for place, parts in enumerate(arms):
        for base in range(BASES):
            for number in range(3):
                text = f"{base}-{number}" if same_texts else f"{place}-{base}-{number}"
                person = float(rng.normal(place, 1)) if metric != "preferred" else float(rng.integers(0, 2))
                score = knows * person + rng.normal(0, 0.3)
                judged.append((metric, text, "", score, f"base {base}", *parts))
                shown = rng.random() < 0.5
                drawn.append((1, f"unit {text}", text, 0.5, len(labels) if shown else None))
                if shown:
                    labels.append((1, f"unit {text}", text, "Ada", "", metric, person, None, 0.5, len(labels), False))
    columns = ["draw", "unit", "text_id", "rater", "subject", "question", "value", "judge_value", "probability"]
    columns.append("position")
    facets = ("method", "model")[: len(arms[0])]
    return JudgedTexts(
        judged=pd.DataFrame(judged, columns=["metric", "text_id", "subject", "judged", "cluster", *facets]),
        labels=pd.DataFrame(labels, columns=[*columns, "simulated"]).astype({"judge_value": float}),
        drawn=pd.DataFrame(drawn, columns=["draw", "unit", "text_id", "probability", "position"]),
        arms=facets,
        cluster="base",
    )


def names(lines: Sequence[Line]) -> list[str]:
    return [line.label for line in lines]


def test_methods_are_compared_with_the_baseline_where_there_is_one() -> None:
    assert names(corrected_lines(texts([("default",), ("loop",), ("hints",)]))) == [
        "loop − default", "hints − default", "default", "loop", "hints"
    ]  # fmt: skip
    assert names(corrected_lines(texts([("no flaw",), ("figure",)]))) == ["figure − no flaw", "no flaw", "figure"]


def test_two_judges_of_the_same_texts_have_no_difference_that_people_could_see() -> None:
    assert names(corrected_lines(texts([("judge a",), ("judge b",)], same_texts=True))) == ["judge a", "judge b"]


def test_p_is_corrected_over_the_differences_of_a_metric() -> None:
    lines = [line for line in corrected_lines(texts([("default",), ("loop",), ("hints",)])) if line.about["second"]]
    first, second = (line.p for line in lines)
    assert second < first < 1e-3, "people like each arm a point better than the one before"
    assert [line.p_adjusted for line in lines] == pytest.approx([first, 2 * second])
    assert {line.verdict for line in lines} == {DIFFERENT}


def test_a_difference_needs_raters_who_labelled_both_arms() -> None:
    """One rater an arm: which of them is stricter is not known. The means stand, about these raters."""
    both = texts([("default",), ("loop",)])
    labels = both.labels.assign(rater=both.labels["text_id"].str[0])
    apart = replace(both, labels=labels.assign(position=labels.groupby("rater").cumcount()))
    difference, *means = corrected_lines(apart)
    assert (difference.note, difference.n, difference.p != difference.p) == ("nobody labelled texts of both", 0, True)
    section = corrected_section([difference, *means], apart)
    assert section.forests[0].question == "What score for toxicity would these raters give?"
    assert section.words[0].startswith("Toxicity, default:")
