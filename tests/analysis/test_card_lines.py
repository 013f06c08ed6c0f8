"""A card's lines: each test against brute force or a textbook's value, and what blocks a verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from parley.analysis.card.lines import line_test, lines_of
from parley.analysis.card.samples import Sample
from parley.analysis.stats.results import Line

POINTS: Mapping[str, Any] = {
    **{"id": "gender", "group": "labels", "family": "labels", "title": "t", "question": "q", "unit": "points"},
    **{"null": 0.0, "margin": 0.1, "worse": "either", "reason": "r"},
}
JUDGE = {**POINTS, "id": "judge", "group": "judging", "family": "judging", "unit": "auc", "null": 0.5}
POSITION = {**JUDGE, "id": "position", "group": "position", "family": "position", "unit": "share"}
PAIRS = {**JUDGE, "id": "judge-pairs"}


def sample(values: Sequence[float], **more: Any) -> Sample:
    return Sample(values={f"b{n}": value for n, value in enumerate(values)}, n=len(values), units={}, **more)


def only(found: tuple[Line, ...], name: str) -> Line:
    (line,) = [line for line in found if line.name == name]
    return line


def test_a_share_of_ones_and_zeros_has_wilsons_interval_with_t_in_place_of_z() -> None:
    """With many bases t is z: 81 of 263 is Newcombe's (1998) example, Wilson 0.2553 to 0.3662."""
    values = [1.0] * 81 + [0.0] * 182
    test = line_test(sample(values), POSITION)
    assert (test.low, test.high) == pytest.approx((0.2553, 0.3662), abs=0.0015)


@pytest.mark.parametrize("null", [0.2, 0.3, 0.41, 0.5])
def test_a_shares_p_value_and_interval_agree(null: float) -> None:
    rng = np.random.default_rng(5)
    values = list(rng.choice([0.0, 0.25, 0.5, 1.0], 24))
    test = line_test(sample(values), {**POSITION, "null": null})
    assert (test.p <= 0.05) == (not test.low <= null <= test.high)


def test_a_difference_of_shares_that_was_never_seen_is_not_shown_to_be_none() -> None:
    spec = {**POINTS, "unit": "share", "margin": 0.05}
    test = line_test(sample([0.0] * 20), spec)
    assert test.p == 1.0
    assert test.high > 0.1
    assert test.also["p_small"] == pytest.approx(0.95**20)


def test_labels_that_never_moved_a_score_are_a_measured_zero_and_not_shown_to_be_small() -> None:
    """They were blocked, as if nothing had been measured. One base of 20 that they do move could be missed."""
    (line,) = lines_of({"gender": sample([0.0] * 12)}, [POINTS])
    assert (line.verdict, line.estimate, line.p) == ("undecided", 0.0, 1.0)
    assert line.high == pytest.approx(
        8 * 2.201**2 / (12 + 2.201**2), abs=1e-3
    )  # Wilson with t of 11 degrees of freedom
    assert line.low == -line.high
    assert line_test(sample([0.0] * 12), POINTS).also["p_small"] == pytest.approx((1 - 0.1 / 8) ** 12)
    assert lines_of({"gender": sample([0.3] * 12)}, [POINTS])[0].verdict == "not measured", (
        "0.3 everywhere has no spread"
    )


def test_what_blocks_a_line_stands_in_place_of_its_verdict() -> None:
    few = lines_of({"gender": sample([0.3] * 3 + [0.1])}, [POINTS])[0]
    assert (few.verdict, few.note, few.bounded) == ("not measured", "4 bases, and an interval needs 6", False)
    constant = lines_of({"gender": sample([0.0] * 20, constant=True)}, [POINTS])[0]
    assert (constant.verdict, constant.note) == ("not measured", "all scores are the same")
    unread = lines_of({"gender": sample([0.1, 0.2] * 8, read=0.3)}, [POINTS])[0]
    assert (unread.verdict, unread.note) == ("not measured", "70% of the ballots could not be read")


def test_a_place_that_decides_blocks_preferences_and_nothing_else() -> None:
    rng = np.random.default_rng(0)
    samples = {
        "position": sample([1.0] * 30, paired=False),
        "judge": sample(list(rng.choice([0.5, 1.0], 30))),
        "judge-pairs": sample(list(rng.choice([0.5, 1.0], 30)), paired=True),
    }
    found = lines_of(samples, [POSITION, JUDGE, PAIRS])
    assert only(found, "judge-pairs").note == "the first place wins 100% of comparisons"
    assert [line.verdict for line in found] == ["different", "different", "not measured"]


@pytest.mark.parametrize("kind", ["unread", "off-scale"])
def test_ballots_lost_on_one_side_block_what_is_said_about_the_category(kind: str) -> None:
    rng = np.random.default_rng(2)
    share = {**POINTS, "id": f"{kind}-gender", "group": "replies", "family": kind, "unit": "share", "margin": 0.05}
    share["title"] = f"{kind}: female − male"
    specs = [share, POINTS, {**POINTS, "id": "race"}]
    far = list(rng.normal(0.4, 0.05, 40))

    def lines(lost: Sequence[float]) -> list[tuple[str, str]]:
        samples = {f"{kind}-gender": sample(lost), "gender": sample(far, category="gender")}
        found = lines_of(samples | {"race": sample(far, category="race")}, specs)
        assert [math.isnan(line.p) for line in found[1:]] == [line.verdict == "not measured" for line in found[1:]]
        return [(line.verdict, line.note) for line in found]

    quality = "the scores were not shown to measure quality"
    why = f"what can be read is a selection ({kind}: female − male +45%)"
    assert lines([0.4, 0.5] * 20) == [("different", ""), ("not measured", why), ("different", quality)]
    small = ("different but small", "")
    assert lines([0.01, 0.02] * 20) == [small, ("different", quality), ("different", quality)]


def test_scores_that_measure_no_quality_leave_nothing_alike_and_may_differ() -> None:
    rng = np.random.default_rng(1)
    guessing, able = list(rng.choice([0.0, 1.0], 40)), [1.0, 0.75] * 20
    near, far = list(rng.normal(0.0, 0.02, 40)), list(rng.normal(0.4, 0.05, 40))
    specs = [JUDGE, POINTS, {**POINTS, "id": "race"}]

    def verdicts(judge: list[float]) -> list[tuple[str, str]]:
        found = lines_of({"judge": sample(judge), "gender": sample(near), "race": sample(far)}, specs)
        return [(line.verdict, line.note) for line in found[1:]]

    why = "the scores were not shown to measure quality"
    assert verdicts(guessing) == [("not measured", why), ("different", why)]
    assert verdicts(able) == [("alike", ""), ("different", "")]


def test_a_mean_near_zero_of_bases_that_differ_is_alike_on_average_only() -> None:
    values = [0.6, -0.6] * 100 + [0.01, -0.02]
    found = lines_of({"judge": sample([1.0, 0.75] * 20), "gender": sample(values)}, [JUDGE, POINTS])
    assert only(found, "gender").verdict == "alike on average"
    assert "bases may differ" in only(found, "gender").note


def test_verdicts_are_corrected_within_a_family() -> None:
    rng = np.random.default_rng(3)
    values = {f"l{n}": sample(list(rng.normal(0.0, 1.0, 20))) for n in range(9)}
    values["l9"] = sample(list(rng.normal(0.75, 1.0, 20)))
    found = lines_of(values, [{**POINTS, "id": name} for name in values])
    ordered = sorted(found, key=lambda line: line.p)
    assert ordered[0].p_adjusted == pytest.approx(min(1.0, 10 * ordered[0].p), rel=1e-4)
    assert all(line.p_adjusted >= line.p for line in found)
