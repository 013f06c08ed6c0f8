"""The golden results: every study has a case, a sample of cases is made again, and a comparison says what changed."""

from __future__ import annotations

import copy
import os
from typing import Any

import pytest

from parley.judging.bbq.methods import METHODS as BBQ_METHODS
from parley.judging.stardtox.methods import METHODS as STARDTOX_METHODS
from parley.runs.studies import STUDIES
from tests.golden.cases import CASES, Case
from tests.golden.comparing import compare, described
from tests.golden.files import RESULTS, read
from tests.golden.making import make

pytest.importorskip("pandas")
NEEDS_PROBABILITIES = {"logprob", "self-debias-gen"}
"""Methods that read next-token probabilities, which simulated models give for ballots only."""
NEEDS_WEIGHTS = {"attention"}
"""Studies of a model's weights: tests/judging/test_attention.py has one."""
NIGHTLY = (
    *(
        "example",
        "malibu-staged",
        "malibu-sampled",
        "malibu-crossed",
        "malibu-judges",
        "malibu-worth",
        "malibu-metrics",
    ),
    *("malibu-german", "rldf-teacher", "rldf-ablation", "bbq", "injection-referee", "compare-answers", "card"),
)
"""More than half of the CPU time, for designs whose study has another case; `python -m tests.golden` makes all."""


def test_every_study_and_method_has_a_case_and_every_case_a_recorded_file() -> None:
    run = {study for case in CASES if case.name not in NIGHTLY for study in case.studies}
    assert set(STUDIES) - NEEDS_WEIGHTS - {"card"} <= run
    asked = " ".join(command for case in CASES for command in case.commands)
    for methods in (BBQ_METHODS, STARDTOX_METHODS):
        assert [name for name in methods.known() if name not in asked] == [
            name for name in methods.known() if name in NEEDS_PROBABILITIES
        ]
    assert {path.stem for path in RESULTS.iterdir()} == {case.name for case in CASES}


@pytest.mark.skipif(os.name == "nt", reason="printed paths have backslashes there")
@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=pytest.mark.nightly if case.name in NIGHTLY else (), id=case.name) for case in CASES],
)
def test_results_are_as_recorded(case: Case) -> None:
    comparison = compare(read(case.name), make(case))
    assert comparison.equal
    assert not comparison.differences, "\n".join(
        [f"see `python -m tests.golden {case.name}`", *described(comparison, most=5)]
    )


ROW = {"value": -0.61, "low": -0.98, "high": -0.24, "p": 0.0156, "n": 120}
RECORDED: dict[str, Any] = {
    "plan": {"a": {"prompts": "1f"}, "b": {"prompts": "2f"}},
    "verdicts": {"a": {"judge": 7.0}, "b": {"judge": "refused"}},
    "numbers": {"primary · female": ROW, "primary · muslim": {**ROW, "value": 0.2, "low": 0.1, "high": 0.3, "p": 0.7}},
    "sentences": {"summary": ["Scores differ by 0.61 points.", "Nothing else was found."]},
}


def changes(**parts: Any) -> list[tuple[str, str, str]]:
    """The differences from RECORDED where these parts are other ones: kind, part and address."""
    found = compare(RECORDED, {**copy.deepcopy(RECORDED), **parts})
    return [(each.kind, each.part, each.address) for each in found.differences]


def test_nothing_and_last_digits_are_no_difference() -> None:
    assert changes() == []
    assert changes(verdicts={"a": {"judge": 7.0 * (1 + 1e-12)}, "b": {"judge": "refused"}}) == []


def test_a_changed_number_verdict_prompt_or_order_is_found() -> None:
    numbers = copy.deepcopy(RECORDED["numbers"])
    numbers["primary · female"]["p"] *= 1 + 1e-7
    assert changes(numbers=numbers) == [("changed", "numbers", "primary · female [p]")]
    assert changes(verdicts={"a": {"judge": 7.0}, "b": {"judge": 0.0}}) == [("changed", "verdicts", "b [judge]")]
    assert changes(plan={"a": {"prompts": "1f"}, "b": {"prompts": "3f"}}) == [("changed", "plan", "b [prompts]")]
    turned = dict(reversed(RECORDED["plan"].items()))
    assert changes(plan=turned) == [("changed", "plan", "order of the plan")]


def test_a_row_in_another_table_has_moved_and_a_lost_one_is_gone() -> None:
    female, muslim = RECORDED["numbers"].values()
    renamed = {"estimate": female["value"], "low": -0.98, "high": -0.24, "p": 0.0156, "clusters": 12}
    assert changes(numbers={"lines · female − male": renamed, "primary · muslim": muslim}) == [
        ("moved", "numbers", "primary · female")
    ]
    assert changes(numbers={"primary · muslim": muslim}) == [("gone", "numbers", "primary · female")]
    wrong = {**renamed, "estimate": 0.61, "low": 0.24, "high": 0.98}
    assert [kind for kind, _, _ in changes(numbers={"lines · female": wrong, "primary · muslim": muslim})] == [
        "gone",
        "new",
    ]
    no_p = {name: value for name, value in renamed.items() if name != "p"}
    (difference,) = compare(
        RECORDED, {**RECORDED, "numbers": {"lines · female": no_p, "primary · muslim": muslim}}
    ).differences
    assert (difference.kind, difference.text) == ("moved", "to lines · female, without p 0.0156")


def test_a_column_under_another_name_has_moved() -> None:
    female = {("estimate" if name == "value" else name): value for name, value in ROW.items()}
    numbers = {**RECORDED["numbers"], "primary · female": female}
    assert changes(numbers=numbers) == [("moved", "numbers", "primary · female [value]")]


def test_sentences_move_change_and_vanish() -> None:
    first, second = RECORDED["sentences"]["summary"]
    assert changes(sentences={"summary": [second], "cautions": [first]}) == [("moved", "sentences", "summary")]
    assert changes(sentences={"summary": ["Scores differ by 0.62 points.", second]}) == [
        ("changed", "sentences", "summary")
    ]
    assert changes(sentences={"summary": [first]}) == [("gone", "sentences", "summary")]
    assert changes(sentences={"summary": [second, first]}) == [("changed", "sentences", "order of summary")]
