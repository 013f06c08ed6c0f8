"""The gate: what holds, what is broken, what nobody can say yet; and how often that is wrong."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from parley.analysis.card.record import SCHEMA_FILE, BatteryRecord, Card, read_card
from parley.analysis.gate.changes import Checked
from parley.analysis.gate.check import CheckResult, check_lines, more_clusters, outside_p, skewed_tail
from parley.analysis.gate.output import github_annotations, summary
from parley.analysis.gate.requirements import Allowed, parse_requirement
from parley.analysis.stats.power import clusters_needed
from parley.analysis.stats.results import NOT_MEASURED
from parley.base.errors import ConfigError
from parley.reports.checking import checked_card
from tests.cards import HASH, around, card, line

SHIPPED = SCHEMA_FILE.with_name("shipped")


def check(judge: Card, *texts: str, baseline: Card | None = None, **options: Any) -> CheckResult:
    before = checked_card(baseline) if baseline else None
    return check_lines(checked_card(judge), [parse_requirement(text) for text in texts], baseline=before, **options)


def judge(gender: float = 0.0, position: float = 0.5, name: str = "hf/judge", seed: int = 0) -> Card:
    return card(
        name,
        line("gender", around(gender, seed=seed)),
        line("position", around(position, seed=seed + 1), reference=0.5, worse="higher", measure="share"),
    )


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("gender.abs < 0.3", "holds"),
        ("gender < 0.1", "broken"),
        ("gender.abs<=.1", "broken"),
        ("gender > -0.1", "holds"),
        ("gender < 0.2", "undecided"),
        ("position > 0.65", "broken"),
        ("position.abs < 0.05", "holds"),  # within 0.05 of one half
    ],
)
def test_outcomes(text: str, outcome: str) -> None:
    assert check(judge(gender=0.19), text).outcome == outcome


def test_the_check_is_broken_if_one_is_and_holds_only_if_all_do() -> None:
    sure, unsure, wrong = "position < 0.7", "gender < 0.2", "gender < 0.1"
    found = {texts: check(judge(gender=0.19), *texts) for texts in [(sure,), (sure, unsure), (sure, unsure, wrong)]}
    assert [result.outcome for result in found.values()] == ["holds", "undecided", "broken"]
    assert [result.status() for result in found.values()] == [0, 3, 1]
    assert [result.status("fail") for result in found.values()] == [0, 1, 1]
    assert [result.status("pass") for result in found.values()] == [0, 0, 1]
    with pytest.raises(ConfigError, match=r"no line is called 'gendre' \(nearest: gender, position\)"):
        check(judge(), sure, "gendre.abs < 0.1")


def test_a_gate_that_runs_every_night_is_broken_only_by_what_30_nights_together_allow() -> None:
    """One look: p is between 0.05 / 30 and 0.05."""
    shown = judge(gender=0.14)
    once, nightly = (check(shown, "gender.abs < 0.1", looks=looks).findings[0] for looks in (1, 30))
    assert 0.05 / 30 < once.line.p_adjusted <= 0.05
    assert nightly.line.p_adjusted == pytest.approx(30 * once.line.p_adjusted)
    assert (once.outcome, nightly.outcome) == ("broken", "undecided")


def test_p_agrees_with_the_t_test_and_with_the_interval() -> None:
    values = around(0.3, sd=0.4, bases=12)
    low, high = stats.t.interval(0.95, 11, loc=0.3, scale=0.4 / math.sqrt(12))
    found = line("gender", values, low=low, high=high, values={})
    assert outside_p(found, Allowed(-math.inf, 0.0)) == pytest.approx(stats.ttest_1samp(values, 0).pvalue)
    assert outside_p(found, Allowed(-math.inf, low)) == pytest.approx(0.05)
    assert outside_p(found, Allowed(-math.inf, 0.5)) == 1.0


def test_skewed_bases() -> None:
    """Of symmetrical values it is the t-test; of exponential ones, t says twice too often that the mean is low."""
    values = np.array([-0.7, -0.2, 0.1, 0.4, 0.9])
    assert skewed_tail(values) == pytest.approx(stats.ttest_1samp(values, 0, alternative="greater").pvalue)
    samples = 1 - np.random.default_rng(0).exponential(1, (2000, 60))
    wrong = np.mean([skewed_tail(sample) <= 0.025 for sample in samples])
    assert wrong < 0.035 < np.mean(stats.ttest_1samp(samples, 0, axis=1, alternative="greater").pvalue <= 0.025)


def test_few_clusters_cannot_break_many_requirements() -> None:
    """Six bases: the smallest p-value of sign flips is 2/64, whatever t says."""
    found = line("gender", [1.0, 1.1, 1.2, 0.9, 1.05, 0.95])
    assert outside_p(found, Allowed(-math.inf, 0.0)) == 2 / 64
    assert check(card("m", found), "gender < 0").outcome == "broken"
    assert check(card("m", found), "gender < 0", "gender > -1").outcome == "undecided"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"verdict": NOT_MEASURED, "note": "the scores\nare the same"}, "not measured: the scores are the same"),
        ({"estimate": math.nan, "low": math.nan, "high": math.nan}, "nothing could be read"),
        ({"low": math.nan, "high": math.nan}, "40 bases are too few for an interval"),
        ({"low": 0.0, "high": 0.0}, "the value is the same on every base"),
    ],
)
def test_what_is_blocked_unread_or_constant_is_undecided(changes: dict[str, object], reason: str) -> None:
    result = check(card("m", line("gender", around(0.0), **changes)), "gender.abs < 5")
    assert result.outcome == "undecided"
    assert reason in result.findings[0].message


def test_labels_of_a_model_that_cannot_judge_hold_nothing() -> None:
    """Equal scores of a judge that cannot tell good from bad are not fairness; unequal ones are unequal."""
    gap = line("gender", around(0.19), group="labels")
    able, unable = (line("judge", around(mean), group="judging", reference=0.5) for mean in (0.8, 0.5))
    assert check(card("m", able, gap), "gender < 0.3").outcome == "holds"
    result = check(card("m", unable, gap), "gender < 0.3")
    assert result.outcome == "undecided"
    assert result.findings[0].message.endswith("the scores were not shown to measure quality")
    assert check(card("m", unable, gap), "gender < 0.1").outcome == "broken"


@pytest.mark.parametrize(
    "text", ["gender", "gender < x", "< 3", "gender.abs > 0.1", "gender.abs < 0", "gender < 1e999"]
)
def test_a_text_that_is_no_requirement(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_requirement(text)


@pytest.mark.parametrize(
    ("before", "after", "outcome"),
    [
        (0.0, 0.5, "broken"),
        (0.5, 0.0, "holds"),
        (0.5, -0.5, "changed"),
        (0.5, -0.8, "broken"),
        (0.5, 0.55, "holds"),
        (0.5, 0.6, "undecided"),  # just the margin
    ],
)
def test_either_direction_is_worse(before: float, after: float, outcome: str) -> None:
    result = check(judge(gender=after, seed=5), baseline=judge(gender=before), lines=["gender"])
    assert [finding.outcome for finding in result.findings] == [outcome]
    assert result.status() == {"broken": 1, "holds": 0, "changed": 3, "undecided": 3}[outcome]


def test_only_the_lines_direction_is_worse_and_a_tolerance_is_allowed() -> None:
    old, higher, lower = judge(), judge(position=0.7, seed=5), judge(position=0.3, seed=5)
    assert check(lower, baseline=old).outcome == "holds"
    assert check(higher, baseline=old).outcome == "broken"
    assert check(higher, baseline=old, tolerance={"position": 0.3}).outcome == "holds"


@pytest.mark.parametrize(
    ("after", "worse", "outcome"),
    [
        *((0.5, "", "holds"), (0.9, "", "changed"), (0.1, "", "changed")),
        *((0.9, "lower", "holds"), (0.1, "lower", "broken"), (0.9, "either", "broken"), (0.1, "either", "holds")),
    ],
)
def test_a_level_whose_worse_side_nobody_named_can_only_have_moved(after: float, worse: str, outcome: str) -> None:
    """A run's accuracy has no reference value: whether it rose or fell, it is not compared by its distance from 0."""
    new, old = (
        Checked(name="m", lines={"f1": replace(line("f1", values), reference=math.nan, worse=worse)})
        for values in (around(after, seed=7), around(0.5))
    )
    (finding,) = check_lines(new, [], baseline=old).findings
    assert finding.outcome == outcome
    assert check_lines(new, [parse_requirement(f"f1.abs < {after + 0.1:g}")]).outcome == "holds", "of 0"


@pytest.mark.parametrize(("text", "outcome"), [("unread < 0.02", "holds"), ("unread < 0.005", "broken")])
def test_a_count_has_no_error_and_is_decided(text: str, outcome: str) -> None:
    lost = line("unread", [0.0] * 99 + [1.0], low=0.01, high=0.01, standard_error=0.0, method="none")
    (finding,) = check_lines(Checked(name="m", lines={"unread": lost}), [parse_requirement(text)]).findings
    assert (finding.outcome, finding.message.partition(" (")[2]) == (outcome, "all 100 counted)")


def test_lines_without_a_margin_need_a_tolerance() -> None:
    run = Checked(name="m", lines={"f1": line("f1", around(0.5), margin=math.nan)})
    with pytest.raises(ConfigError, match="those that have no margin"):
        check_lines(run, [], baseline=run)
    assert check_lines(run, [], baseline=run, tolerance={"f1": 0.1}).outcome == "holds"


def test_other_units_are_an_error_and_a_base_that_one_could_not_read_decides_nothing() -> None:
    other = BatteryRecord(name="card-1", version="1.1", sha256=HASH, size="brief")
    with pytest.raises(ConfigError, match=r"they differ in battery, size of the battery$"):
        check(judge(), baseline=judge().model_copy(update={"battery": other}))
    part = card("old", line("gender", around(0.0, bases=39)))
    (finding,) = check(card("new", line("gender", around(0.0))), baseline=part).findings
    assert finding.outcome == "undecided"
    assert finding.message == "1 base could be read in only one of the two"


@pytest.mark.parametrize("path", sorted(SHIPPED.glob("*.json")), ids=lambda path: path.stem)
def test_a_card_is_not_worse_than_itself(path: Path) -> None:
    """Its labels are blocked, since these models cannot judge: the check was undecided, and ended with 3."""
    shipped = read_card(path)
    result = check(shipped, baseline=shipped)
    assert {finding.outcome for finding in result.findings} == {"holds"}
    assert result.status() == 0
    (blocked, *_) = [finding for finding in result.findings if shipped.line(finding.line.name).verdict == NOT_MEASURED]
    assert blocked.message.endswith("unchanged; not measured: the scores were not shown to measure quality")
    assert check(shipped, "gender.abs < 0.001", baseline=shipped).status() != 0, "a requirement is not about a change"


@pytest.mark.parametrize(
    ("because", "same_run", "outcome"),
    [
        ("withheld: 2 of 9 coded bases against the rest", False, "holds"),
        ("100% of the ballots could not be read", True, "holds"),
        ("100% of the ballots could not be read", False, "undecided"),
    ],
)
def test_what_neither_card_measured_is_unchanged_by_design_or_in_the_same_run(
    because: str, same_run: bool, outcome: str
) -> None:
    nothing = dict.fromkeys(("estimate", "low", "high"), math.nan)
    old = card("old", line("gender", around(0.0), **nothing, verdict=NOT_MEASURED, note=because, values={}))
    run = old.run if same_run else old.run.model_copy(update={"sha256": "b" * 64})
    (finding,) = check(card("new", *old.lines, run=run), baseline=old).findings
    assert finding.outcome == outcome
    assert because in finding.message


def test_a_value_of_zero_on_every_base_is_compared_like_any_other() -> None:
    zero = card("old", line("gender", [0.0] * 40, low=-0.6, high=0.6))
    assert check(zero, baseline=zero).outcome == "holds"
    assert check(judge(gender=0.5), baseline=zero, lines=["gender"]).outcome == "broken"
    (finding,) = check(zero, "gender.abs < 0.1").findings
    assert (finding.outcome, finding.more) == ("undecided", 220), "(40 + 4) · (0.6 / 0.1 − 1)"
    assert check(zero, "gender.abs < 0.7").outcome == "holds"


HOSTILE = 'm\x00<script>|"]]>&\n::error::x'


def test_texts_of_others_stay_texts() -> None:
    result = check(judge(gender=0.19, name=HOSTILE), "gender < 0.1")
    (command,) = github_annotations(result)
    assert "\n" not in command
    assert command.startswith("::error title=broken%3A gender < 0.1::m\\x00<script>")
    page = summary(result)
    assert "\\<script>\\|" in page
    assert "\x00" not in page


@pytest.mark.parametrize("tests", [1, 5])
def test_how_many_more_bases_would_decide(tests: int) -> None:
    exact = clusters_needed(0.05, 0.2, tests=tests)
    assert exact is not None
    assert more_clusters(0.05, 0.2, 40, tests) == pytest.approx(exact - 40, rel=0.05)
    assert more_clusters(0.0, 0.2, 40, 1) is None
