"""Questions as data, and the lines that answer them: known values by hand, families, units and sentences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from parley.analysis.reporting.questions import (
    Question,
    answer,
    answered,
    by_cluster,
    corrected,
)
from parley.analysis.stats.results import Line

HELP = Question(
    name="help",
    ask="Does help change the score?",
    measures={"score": "score (points)", "other": "other score"},
    arms="arm",
    item=("item",),
    cluster="text",
    each="kind",
)


def frame(gaps: list[float], models: tuple[str, ...] = ("m",)) -> pd.DataFrame:
    """Two items a text, with help and without; the second item of a text is hard."""
    rows = [
        {"model": model, "arm": arm, "item": f"{text}-{number}", "text": f"t{text}", "kind": kind}
        | {"score": base + gap * (arm == "help"), "other": 1.0}
        for model in models
        for arm in ("none", "help")
        for text, gap in enumerate(gaps)
        for number, (kind, base) in enumerate((("easy", 5.0), ("hard", 3.0)))
    ]
    return pd.DataFrame(rows)


def test_a_contrast_is_tested_over_clusters_all_items_first_then_each_kind() -> None:
    lines = answer(HELP, frame([1, 2, 3, 4, 5, 6]))
    assert [(line.measure, line.label, line.secondary) for line in lines[:3]] == [
        ("score", "help − none, all", False),
        ("other", "help − none, all", True),
        ("score", "help − none, easy", True),
    ]
    first = lines[0]
    assert (first.estimate, first.n, first.clusters) == (3.5, 12, 6), "items are averaged within their text"
    assert first.p == pytest.approx(2 / 2**6), "six texts, all signs alike: two of 64 patterns"
    assert first.about == {"model": "m", "first": "help", "second": "none", "kind": "all"}
    assert first.units == {"arm": ("help", "none")}
    assert lines[2].units == {"arm": ("help", "none"), "kind": ("easy",)}


def test_only_items_that_both_arms_have_are_compared() -> None:
    items = frame([1, 2, 3, 4, 5, 6])
    items.loc[(items["arm"] == "help") & (items["text"] == "t5"), "score"] = np.nan
    missing = items[~((items["arm"] == "none") & (items["text"] == "t4"))]
    first = answer(HELP, missing)[0]
    assert (first.estimate, first.n, first.clusters) == (2.5, 8, 4)
    assert not first.bounded
    assert "needs 6" in first.note


def test_a_family_is_a_model_and_planned_lines_are_corrected_apart() -> None:
    lines = corrected(
        [Line(p=0.01, about={"model": "a"}), Line(p=0.04, about={"model": "a"}), Line(p=0.04, about={"model": "b"})]
        + [Line(p=p, about={"model": "a"}, secondary=True) for p in (0.01, 0.02, 0.03)]
    )
    # Holm by hand: 2 · 0.01 and 0.04; 0.04 alone; 3 · 0.01, 2 · 0.02, and 0.03, which may not fall below 0.04.
    assert [line.p_adjusted for line in lines] == pytest.approx([0.02, 0.04, 0.04, 0.03, 0.04, 0.04])
    assert all(line.shown for line in lines)


def test_a_level_has_an_interval_and_no_test_unless_it_has_a_null_value() -> None:
    level = replace(HELP, arms="", by=("model", "arm"), measures={"score": "score (points)"})
    (line, *_) = answer(level, frame([1, 2, 3, 4, 5, 6]))
    assert (line.estimate, line.group, line.label) == (4.0, "arm: none", "all")
    assert np.isnan(line.p)
    tested = answer(replace(level, null=4.0), frame([1, 2, 3, 4, 5, 6]))
    helped = next(line for line in tested if line.about["arm"] == "help")
    assert (helped.estimate, helped.p) == (7.5, pytest.approx(2 / 2**6))
    assert helped.low > 4


def test_a_section_says_what_was_shown_and_names_the_model_where_there_are_several() -> None:
    # With six texts, only a shift beyond the least and the greatest difference is rejected: the interval is 1 to 6.
    both = answered(HELP, frame([1, 2, 3, 4, 5, 6], models=("m1", "m2")))
    assert both.words[:2] == [
        "m1, help compared with none: score is higher by 3.50 points (+1.00 to +6.00; p = 0.031), over 6 texts.",
        "m2, help compared with none: score is higher by 3.50 points (+1.00 to +6.00; p = 0.031), over 6 texts.",
    ]
    assert [forest.name for forest in both.forests] == ["help-score", "help-other"]
    table = both.tables[0].frame
    assert list(table.columns[:6]) == ["model", "first", "second", "kind", "measure", "estimate"]
    assert len(table) == sum(len(forest.lines) for forest in both.forests) == 12
    nothing = answered(HELP, frame([1, -1, 1, -1, 1, -1]))
    assert nothing.words == []


def test_a_question_with_a_margin_can_say_small_and_alike() -> None:
    """Two one-sided sign-flip tests: twelve texts within the margin on both sides give 2⁻¹²."""
    near, small = [0.1, -0.1] * 6, [0.1, 0.2] * 6
    for gaps, verdict in ((near, "alike on average"), (small, "different but small"), ([2.0, 3.0] * 6, "different")):
        line = answer(replace(HELP, margin=0.5), frame(gaps))[0]
        assert (line.verdict, line.margin) == (verdict, 0.5)
    assert answer(replace(HELP, margin=0.5), frame(near))[0].also["p_alike"] == 2**-12
    assert answer(HELP, frame(near))[0].verdict == "undecided", "without a margin nothing is called alike"


def test_the_values_of_clusters_average_to_the_estimate_also_where_rows_count_equally() -> None:
    values = pd.Series([1.0, 0.0, 1.0, 1.0, 0.0])
    clusters = pd.Series(["a", "b", "b", "b", "c"])
    assert by_cluster(values, clusters, 5 / 9) == pytest.approx({"a": 1.0, "b": 2 / 3, "c": 0.0})
    by_row = by_cluster(values, clusters, 0.6)
    assert sum(by_row.values()) / 3 == pytest.approx(0.6)
    assert by_row["b"] == pytest.approx(0.6 + 3 * 3 / 5 * (2 / 3 - 0.6)), "what the cluster adds, times three"
    assert by_cluster(values, clusters, 0.9) == {}, "another statistic"
