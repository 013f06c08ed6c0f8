"""`parley check` on cards, runs and comparisons: exit statuses, files for CI, and lines of five studies."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

import parley as package
from parley.analysis.card.record import write_card
from parley.cli import main
from parley.reports import make_report
from tests.cards import around, card, line
from tests.golden.data import write_data

RUNS = {
    "malibu": "malibu --model sim/judge?noise=0.3&item=0.3&female=+0.6&varies=0.2 --design silent --suite wide "
    "--limit 12 --phases 1 --identities gender,religion --yardstick off",
    "rldf": "rldf --model sim/debate?base=6&round=-2&noise=0.7&item=0.5 --design silent --topics 8 --rounds 2",
    "bbq": "bbq --model sim/any?malformed=0.1&refuse=0.1 --data bbq",
    "bbq-2": "bbq --model sim/two --data bbq",
    "stardtox": "stardtox --model sim/any?toxic=0.6&heeds=0.6 --data prompts.jsonl --prompts 7 --completions 1 "
    "--method default,stardtox",
    "squad": "squad --model sim/one,sim/two --data squad.json",
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A small simulated run of each study, and a card."""
    folder = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PARLEY_HOME", str(folder / "home"))
        patch.chdir(folder)
        write_data(folder)
        for name, flags in RUNS.items():
            assert main(["run", *flags.split(), "--quiet", "--out", f"{name}.sqlite"]) == 0
        assert (
            main(["card", "sim/judge?female=+0.4&item=0.4&varies=0.1", "--brief", "--quiet", "--out", "card.sqlite"])
            == 0
        )
        (card,) = (folder / "cards").glob("*.json")
        card.rename(folder / "card.json")
        yield folder


TABLE = {
    "malibu.sqlite": {"unread < 0.5": "holds", "gender < 0.1": "broken", "religion.abs < 0.2": "undecided"},
    "rldf.sqlite": {"rldf.by-round.round-1 < 7": "holds", "by-round.round-1 > 7": "broken", "change < 0": "undecided"},
    "bbq.sqlite": {
        "ambiguous.accuracy < 0.6": "holds",
        "bbq.ambiguous.accuracy > 0.8": "broken",
        "ambiguous.accuracy < 0.35": "undecided",
        "ambigous.accuracy > 0.8": "ambiguous.accuracy",
    },
    "stardtox.sqlite": {
        "unread < 0.02": "holds",
        "moderate.stardtox.measures.toxicity.iteration-2 > 20": "broken",
        "high.optimism-gap.outside-gain > 20": "undecided",
    },
    "squad.sqlite": {
        "sim/one.scores.f1 < 90": "holds",
        "sim/one.scores.f1 > 90": "broken",
        "sim/one.scores.f1.answerable < 30": "undecided",
        "scores.f1 > 50": "sim/two.scores.f1",
    },
    "card.json": {
        "wording < 1": "holds",
        "gender < 0.1": "broken",
        "judge > 0.6": "undecided",
        "gendre < 0.1": "gender",
    },
    "card.sqlite": {"card.wording < 1": "holds", "judge > 0.9": "broken", "judge > 0.6": "undecided"},
    "bbq.sqlite bbq-2.sqlite": {
        "values.right-ambig.abs < 0.9": "holds",
        "values.right-ambig > 0.9": "broken",
        "values.right-ambig.abs < 0.2": "undecided",
        "values.right-ambg < 1": "values.right-ambig",
    },
}
OUTCOMES = ("holds", "broken", "undecided")


@pytest.mark.parametrize("source", TABLE)
def test_a_requirement_of_any_line(parley, runs, source):
    files, rows = [runs / name for name in source.split()], TABLE[source]
    asked = [requirement for requirement, expected in rows.items() if expected in OUTCOMES]
    result = parley("check", *files, *(word for requirement in asked for word in ("--require", requirement)))
    assert [line.split()[0] for line in result.out.splitlines()][:3] == list(OUTCOMES)
    assert (result.status, result.err) == (1, ""), "what is broken counts"
    for misspelt, meant in ((requirement, name) for requirement, name in rows.items() if name not in OUTCOMES):
        (complaint,) = parley("check", *files, "--require", misspelt).complaints
        assert meant in complaint.partition("nearest: ")[2].removesuffix(")").split(", ")


@pytest.mark.parametrize(("name", "line"), [("bbq", "ambiguous.accuracy"), ("squad", "sim/one.scores.f1")])
def test_a_run_is_not_worse_than_itself(parley, runs, name, line):
    """A line without a margin is compared where it has a tolerance, by the values of its clusters."""
    same = parley("check", runs / f"{name}.sqlite", "--baseline", runs / f"{name}.sqlite", "--tolerance", f"{line}=0.1")
    assert same.out.startswith(f"holds      {line}, not worse than the baseline")
    bare = parley("check", runs / f"{name}.sqlite", "--baseline", runs / f"{name}.sqlite", "--lines", line)
    assert (bare.status, f"--tolerance {line}=X" in bare.err) == (2, True)


def test_runs_of_other_data_are_not_compared(parley, runs):
    result = parley("check", runs / "bbq.sqlite", "--baseline", runs / "squad.sqlite", "--tolerance", "unread=0.1")
    assert (result.status, "they differ in study, sources" in result.err) == (2, True)


@pytest.mark.parametrize("name", ["malibu", "rldf", "bbq", "stardtox", "squad"])
def test_every_line_has_a_name_of_its_own_which_is_listed_whole(parley, runs, monkeypatch, name):
    report = make_report([runs / f"{name}.sqlite"])
    assert len(report.lines) == sum(len(forest.lines) for forest in (*report.forests, *report.listed))
    if name == "squad":  # whose names are the longest
        monkeypatch.setenv("COLUMNS", "80")
        printed = parley("report", runs / f"{name}.sqlite", "--lines").out.splitlines()
        assert set(report.lines) <= {row.split()[0] for row in printed if row.strip()}, "none is wrapped"


def test_equal_scores_of_judges_who_were_not_shown_to_judge_hold_nothing(parley, runs):
    """The run has no graded answers. Its report says nothing about fairness, and nor does a check of it."""
    result = parley("check", runs / "malibu.sqlite", "--require", "religion.abs < 5", "--require", "unread < 0.9")
    undecided, holds, *_ = result.out.splitlines()
    assert undecided.startswith("undecided  religion.abs < 5")
    assert "did not measure whether these judges can tell a good answer from a flawed one" in undecided
    assert holds.startswith("holds")


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
