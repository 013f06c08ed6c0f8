"""The golden results: every study has a case, a sample of cases is made again, and a comparison says what changed."""

from __future__ import annotations

import copy
import os
from typing import Any

import pytest

from parley.judging.bbq.methods import METHODS as BBQ_METHODS
from parley.judging.stardtox.methods import METHODS as STARDTOX_METHODS
from parley.runs.studies import SHIPPED
from tests.golden.cases import CASES, Case
from tests.golden.comparing import compare, described
from tests.golden.files import RESULTS, read
from tests.golden.making import make

pytest.importorskip("pandas")
NEEDS_PROBABILITIES = {"self-debias-gen"}
"""Methods that read next-token probabilities, which simulated models give for ballots only."""
NEEDS_WEIGHTS = {"attention"}
"""Studies of a model's weights: tests/judging/test_attention.py has one."""
NIGHTLY = (
    *("example", "malibu-staged", "malibu-sampled", "malibu-judges", "malibu-flaws", "malibu-metrics"),
    *("malibu-german", "rldf-teacher", "rldf-ablation", "bbq", "compare-answers"),
)
"""More than half of the CPU time, for designs whose study has another case; `python -m tests.golden` makes all."""


def test_every_study_and_method_has_a_case_and_every_case_a_recorded_file() -> None:
    run = {study for case in CASES if case.name not in NIGHTLY for study in case.studies}
    assert set(SHIPPED) - NEEDS_WEIGHTS <= run
    asked = " ".join(command for case in CASES for command in case.commands)
    for methods in (BBQ_METHODS, STARDTOX_METHODS):
        assert [name for name in methods.shipped if name not in asked] == [
            name for name in methods.shipped if name in NEEDS_PROBABILITIES
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


def numbers(**rows: Any) -> dict[str, Any]:
    """The recorded numbers with other rows; None leaves one out."""
    changed = {f"primary · {name}": row for name, row in rows.items()}
    return {"numbers": {name: row for name, row in (RECORDED["numbers"] | changed).items() if row is not None}}


MUSLIM = RECORDED["numbers"]["primary · muslim"]
RENAMED = {"estimate": ROW["value"], "low": -0.98, "high": -0.24, "p": 0.0156, "n": 120, "clusters": 12}
FIRST, SECOND = RECORDED["sentences"]["summary"]


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({}, []),
        ({"verdicts": {"a": {"judge": 7.0 * (1 + 1e-12)}, "b": {"judge": "refused"}}}, []),  # last digits
        (numbers(female={**ROW, "p": 0.0156 * (1 + 1e-7)}), [("changed", "numbers", "primary · female [p]")]),
        ({"verdicts": {"a": {"judge": 7.0}, "b": {"judge": 0.0}}}, [("changed", "verdicts", "b [judge]")]),
        ({"plan": {"a": {"prompts": "1f"}, "b": {"prompts": "3f"}}}, [("changed", "plan", "b [prompts]")]),
        ({"plan": dict(reversed(RECORDED["plan"].items()))}, [("changed", "plan", "order of the plan")]),
        ({"numbers": {"lines · f": RENAMED, "primary · muslim": MUSLIM}}, [("moved", "numbers", "primary · female")]),
        (numbers(female=None), [("gone", "numbers", "primary · female")]),
        (
            {"numbers": {"lines · f": {**RENAMED, "p": 0.2}, "primary · muslim": MUSLIM}},
            [("gone", "numbers", "primary · female"), ("new", "numbers", "lines · f")],
        ),
        (
            numbers(female={("estimate" if name == "value" else name): value for name, value in ROW.items()}),
            [("moved", "numbers", "primary · female [value]")],
        ),
        ({"sentences": {"summary": [SECOND], "cautions": [FIRST]}}, [("moved", "sentences", "summary")]),
        ({"sentences": {"summary": [FIRST.replace("1", "2"), SECOND]}}, [("changed", "sentences", "summary")]),
        ({"sentences": {"summary": [FIRST]}}, [("gone", "sentences", "summary")]),
        ({"sentences": {"summary": [SECOND, FIRST]}}, [("changed", "sentences", "order of summary")]),
    ],
)
def test_what_became_of_a_number_or_sentence(parts: dict[str, Any], expected: list[tuple[str, str, str]]) -> None:
    found = compare(RECORDED, {**copy.deepcopy(RECORDED), **parts})
    assert [(each.kind, each.part, each.address) for each in found.differences] == expected
