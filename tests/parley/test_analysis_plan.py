"""An analysis plan is stored before the first unit, never changed after it, and read by the report."""

from __future__ import annotations

import hashlib
import json
import math
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from parley.agents import ConfigError
from parley.analysis.page.report import Report
from parley.analysis.stats.results import Contrast
from parley.judging.malibu.plan import MalibuConfig, Plan, executed
from parley.judging.malibu.study import Malibu
from parley.reports import make_report
from parley.runs import stored_plan
from parley.runs.plan import describe_plan
from tests.own_study import STUDY
from tests.panels import TINY_PANEL

RUN = (*TINY_PANEL, "--model", "sim/judge", "--out", "a.sqlite")


@pytest.fixture
def done(place, finished):
    """The file of RUN, done."""
    path = place / "a.sqlite"
    path.write_bytes(finished)
    return path


def execute(path: Path | str, sql: str, *values: Any) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        return db.execute(sql, values).fetchall()


def info(path: Path | str) -> dict[str, Any]:
    return {key: json.loads(value) for key, value in execute(path, "SELECT key, value FROM run")}


def replace_plan(path: Path | str, plan: Any) -> None:
    """Another plan, with a hash that fits."""
    text = json.dumps(plan, sort_keys=True, separators=(",", ":"))
    execute(path, "UPDATE run SET value = ? WHERE key = 'analysis_plan'", text)
    digest = json.dumps(hashlib.sha256(text.encode()).hexdigest())
    execute(path, "UPDATE run SET value = ? WHERE key = 'analysis_plan_sha256'", digest)


def test_the_plan_is_stored_before_the_first_unit_and_never_changes(parley, place, monkeypatch):
    assert parley(*RUN, "--budget-calls", "0").status == 1, "nothing may be spent"
    assert execute("a.sqlite", "SELECT count(*) FROM units WHERE status = 'done'") == [(0,)]
    stored = info("a.sqlite")
    plan = stored["analysis_plan"]
    text = json.dumps(plan, sort_keys=True, separators=(",", ":"))
    assert stored["analysis_plan_sha256"] == hashlib.sha256(text.encode()).hexdigest(), "without Parley"
    with monkeypatch.context() as newer:
        newer.setattr(Malibu, "analysis_plan", lambda self: {**plan, "margin": 3}, raising=True)
        assert parley(*RUN).status == 0
    assert info("a.sqlite") == stored
    assert stored_plan(info("a.sqlite")).intact  # type: ignore[union-attr]
    assert parley(*RUN[:-1], "wide.sqlite", "--margin", "0.3", "--budget-calls", "0").status == 1
    wide = info("wide.sqlite")
    assert wide["analysis_plan"]["margin"] == wide["config"]["margin"] == 0.3
    assert wide["analysis_plan_sha256"] != stored["analysis_plan_sha256"]


def test_a_plan_that_was_changed_is_noticed_and_not_used(done):
    plan = info("a.sqlite")["analysis_plan"]
    execute(
        "a.sqlite",
        "UPDATE run SET value = ? WHERE key = 'analysis_plan'",
        json.dumps({**plan, "margin": 0.5, "pairs": []}),
    )
    report = make_report([Path("a.sqlite")], draws=20)
    assert (report.settings["margin"], len(report.table("differences").query("within"))) == (0.1, 6)
    assert sum("The analysis plan of a.sqlite is not the one that was stored" in line for line in report.cautions) == 1
    assert not any("planned before the data" in line for line in report.words)
    assert "planned" not in report.data()


def test_a_plan_of_any_shape_or_of_an_older_version_does_not_stop_a_report(done):
    """A run file may come from anyone, with a hash that fits; an older plan names tables that reports lack."""
    plan = info("a.sqlite")["analysis_plan"]
    before = make_report([done], draws=20).table("planned").to_numpy().tolist()
    tables = {"tables": {"means": {"x": {}}}, "margin": True}
    for value in (7, {**tables, "b": json.loads("[" * 90 + "]" * 90)}):
        replace_plan("a.sqlite", value)
        assert make_report([Path("a.sqlite")], draws=20).words
    replace_plan("a.sqlite", {**plan, "tables": {**plan["tables"], "next_calls": "exploratory"}})
    report = make_report([done], draws=20)
    assert sorted(report.table("planned").to_numpy().tolist()) == sorted(before)
    assert any(line.startswith("The analysis was planned before the data") for line in report.words)


def test_a_run_begun_without_a_plan_resumes_gets_none_and_says_so(parley, done):
    without = (*RUN[:-1], "without.sqlite", "--seed", "1")
    parley(*without, "--budget-calls", "20")
    execute("without.sqlite", "DELETE FROM run WHERE key LIKE 'analysis_plan%'")  # as a study that has none writes it
    assert parley(*without).status == 0
    assert stored_plan(info("without.sqlite")) is None
    words = make_report([Path("a.sqlite"), Path("without.sqlite")], draws=20).words
    assert any(line.startswith("without.sqlite: No analysis plan was stored when the run began") for line in words)
    assert any(line.startswith("a.sqlite: The analysis was planned before the data") for line in words)


def test_a_report_gets_the_planned_margin(parley, place, done):
    result = parley("report", "a.sqlite", "--no-files", "--margin", "0.4", "--draws", "20")
    assert "made with a margin of ±0.4, and ±0.1 was planned" in " ".join(result.out.split())
    plan = info("a.sqlite")["analysis_plan"]
    Path("b.sqlite").write_bytes(done.read_bytes())
    replace_plan("b.sqlite", {**plan, "margin": 0.25})
    alone = make_report([Path("b.sqlite")], draws=20)
    assert alone.settings["margin"] == 0.25
    assert not any("was made with a margin" in line for line in alone.cautions)


BALLOTS = (
    *(
        "run",
        "malibu",
        "--design",
        "silent",
        "--suite",
        "wide",
        "--limit",
        "8",
        "--identities",
        "gender,race",
        "--quiet",
    ),
    *("--phases", "1", "--yardstick", "off", "--model", "sim/judge?noise=0.1&black=+0.6&item=0.4&varies=0.1"),
)


def family_sizes(report: Report) -> dict[str, int | None]:
    return {line.label: line.tests for forest in report.forests if forest.name[-5:] == "score" for line in forest.lines}


def test_a_report_follows_the_plan_that_is_stored(parley, place):
    """Whatever this version would plan: contrasts, how many of them are corrected together, margin and bases."""
    assert parley(*BALLOTS, "--out", "a.sqlite").status == 0
    plan = info("a.sqlite")["analysis_plan"]

    def reported(**changes: Any) -> Report:
        replace_plan("a.sqlite", {**plan, **changes})
        report = make_report([Path("a.sqlite")], draws=20)
        assert any(line.startswith("The analysis was planned before the data") for line in report.words)
        return report

    def says(report: Report) -> str:
        return " ".join([report.headline.answer, *report.words, *report.cautions])

    before, others = (
        reported(),
        ("Black − White", "Black − Hispanic", "White − Asian", "White − Hispanic", "Asian − Hispanic"),
    )
    pairs = dict.fromkeys(("Black − Asian", *others), 4 * 6)
    assert family_sizes(before) == {"female − male": 2, "Black, Asian, Hispanic − White": 2, **pairs}
    assert "points higher for 'Black', 'Asian' and 'Hispanic' together than for 'White'" in says(before)
    assert "in 1 of 2 primary contrasts and none of 6 pairs of labels;" in says(before)
    one = {"category": "race", "first": ["black"], "second": ["asian"]}
    as_before_version_9 = {"version": 8, "primary": {"race": [["black"], ["asian"]]}, "pairs": [["black", "asian"]]}
    for changed in (reported(primary=[one]), reported(**as_before_version_9)):
        assert family_sizes(changed) == {"Black − Asian": 1, "female − male": 24, **dict.fromkeys(others, 24)}
        assert "Yes: the same answers score 0.65 points higher for 'Black' than for 'Asian'." in says(changed)
        assert "in the only primary contrast and none of 6 pairs of labels;" in says(changed)
        assert "does not follow" not in says(changed)
    fewer = reported(primary=[one], pairs=[one, plan["pairs"][0]], margin=0.7, share=0.6, bases=8)
    assert family_sizes(fewer) == {"Black − Asian": 1, "female − male": 4}
    (note,) = (table.note for table in fewer.tables if table.name == "primary")
    needs = "±0.7 (preferences: ±0.02; p_alike), 8 bases, and at least 60% of them shown to lie within it themselves"
    assert f"alike needs a mean within {needs}" in note
    small = "one scenario each: how noisy they are is unknown): the same answers score 0.19 points higher for"
    assert f"Below our margin of 0.7 points, and so are 8 of 8 bases ({small}" in says(reported(margin=0.7))
    refused = reported(alpha=0.01, primary="all")
    assert family_sizes(refused) == family_sizes(before)
    assert refused.cautions[0] == "This report does not follow the analysis plan in: alpha, primary."


def test_runs_that_planned_differently_share_what_they_agree_on():
    gender, race = (Contrast(name, (first,), (second,)) for name, first, second in (
        ("gender", "female", "male"), ("race", "black", "white"),
    ))  # fmt: skip
    of_labels, one, other = Plan.of([gender, race]), Plan.of([gender], margin=0.3), Plan.of([race], margin=0.3)
    stored = [json.loads(json.dumps(plan.data())) for plan in (one, other)]
    assert executed(stored[:1] * 2, of_labels) == one
    assert executed(stored, of_labels) == replace(of_labels, margin=0.3)
    for unreadable in ({"margin": -1}, {"pairs": [["black", "white"]]}, {"version": 8, "primary": {"race": 7}}):
        assert executed([{**stored[0], **unreadable}], of_labels) == of_labels == executed([], of_labels)


SMALL = (
    STUDY
    + '''
class Small(Study):
    name = "small"

    def plan(self):
        yield Unit("one", {"scenario": "s"})

    async def run(self, unit, models):
        return Outcome(Transcript(()), (Verdict(judge="rule", role="evaluator", round=1, metric="m", value=1.0),))

class Planned(Small):
    """Small, with a plan."""
    name = "planned"
    def analysis_plan(self):
        return {"estimand": "the mean of m", "looks": ("one",), "tables": {"medians": "planned"}}
'''
)


def test_a_plan_that_cannot_be_stored_is_one_line_before_anything_runs(monkeypatch):
    for plan, message in (
        ({"x": object()}, "is not JSON data"),
        ({"margin": math.nan}, "is not JSON data"),
        ([1, 2], "must be a mapping, not a list"),
    ):
        monkeypatch.setattr(Malibu, "analysis_plan", lambda self, plan=plan: plan)
        with pytest.raises(ConfigError, match=f"the analysis plan of malibu {message}"):
            describe_plan(Malibu(MalibuConfig(model=["sim/judge"])))


def test_a_study_of_ones_own_has_a_plan_or_none(parley, place):
    (place / "small.py").write_text(SMALL)
    for study in ("Small", "Planned"):
        assert parley("run", f"small.py:{study}", "--quiet", "--out", f"{study}.sqlite").status == 0
    assert {"analysis_plan", "analysis_plan_sha256"}.isdisjoint(info("Small.sqlite"))
    data = make_report([Path("Small.sqlite")]).data()
    assert "planned" not in data
    assert not any("analysis plan" in line.lower() for line in data["summary"])
    report = make_report([Path("Planned.sqlite")])
    plan = info("Planned.sqlite")["analysis_plan"]
    assert (plan["estimand"], plan["looks"]) == ("the mean of m", ["one"])
    (row,) = report.table("planned").itertuples(index=False, name=None)
    assert row == ("Planned.sqlite", "means", "all of it", "not planned")
    assert any("Tables that were not planned: means." in line for line in report.words)
