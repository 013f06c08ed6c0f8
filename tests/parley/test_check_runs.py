"""`parley check` on cards, runs and comparisons: exit statuses, files for CI, and lines of five studies."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

import parley as package
from parley.analysis.card.record import write_card
from tests.cards import around, card, line


@pytest.fixture
def files(place):
    """card.json, and old.json of the same units, whose gender line is 0."""
    for name, gender in (("card", 0.19), ("old", 0.0)):
        gaps = line("gender", around(gender, seed=len(name)))
        write_card(card(f"hf/{name}", gaps, line("position", around(0.5), reference=0.5)), place / f"{name}.json")
    return place


@pytest.mark.parametrize(
    ("flags", "status"),
    [
        (["--require", "position < 0.6"], 0),
        (["--require", "gender.abs < 0.1"], 1),
        (["--require", "gender.abs < 0.2"], 3),
        (["--require", "gender.abs < 0.3"], 0),
        (["--require", "gender.abs < 0.2", "--undecided", "fail"], 1),
        (["--require", "gender.abs < 0.2", "--undecided", "pass"], 0),
        (["--baseline", "old.json", "--tolerance", "gender=0.3"], 0),
        (["--baseline", "old.json", "--tolerance", "gender=0.05", "--lines", "gender"], 1),
        (["--require", "gendre < 0.1"], 2),
        (["--require", "gender"], 2),
        ([], 2),
        (["--tolerance", "gender=1"], 2),
        (["--baseline", "old.json", "--tolerance", "gender"], 2),
        (["--baseline", "missing.json"], 2),
    ],
)
def test_exit_statuses(parley, files, flags, status):
    result = parley("check", "card.json", *flags)
    assert result.status == status
    assert (len(result.err.splitlines()) == 1) == (status == 2)


def test_requirements_of_a_file_and_reports_for_ci(parley, files, monkeypatch):
    (files / "judge.toml").write_text('require = ["gender.abs < 0.1", "position < 0.6"]\n[tolerance]\ngender = 0.2\n')
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(files / "summary.md"))
    result = parley(
        *("check", "card.json", "--requirements", "judge.toml", "--baseline", "old.json", "--lines", "gender"),
        *("--junit", "junit.xml"),
    )
    assert result.status == 1
    assert [row.split()[0] for row in result.out.splitlines()][:4] == ["broken", "holds", "undecided", "broken:"]
    assert "::error title=broken%3A gender.abs < 0.1::hf/card: +0.19" in result.out
    cases = ElementTree.parse(files / "junit.xml").iter("testcase")
    assert [case.get("name") for case in cases] == [
        "gender.abs < 0.1",
        "position < 0.6",
        "gender, not worse than the baseline",
    ]
    assert (files / "summary.md").read_text("utf-8").startswith("### parley check: broken")
    as_json = parley("check", "card.json", "--requirements", "judge.toml", "--baseline", "old.json", "--json").json
    assert (as_json["outcome"], as_json["status"], len(as_json["findings"])) == ("broken", 1, 4)


def test_a_report_that_cannot_be_written_does_not_look_broken(parley, files):
    result = parley("check", "card.json", "--require", "position < 0.6", "--junit", "missing/junit.xml")
    assert (result.status, result.err) == (
        2,
        "parley: missing/junit.xml cannot be written: No such file or directory\n",
    )


def test_in_a_test_of_ones_own(files):
    result = package.check("card.json", "gender.abs < 0.1", baseline="old.json")
    assert result.outcome == "broken"
    assert "broken     gender.abs < 0.1" in str(result)
