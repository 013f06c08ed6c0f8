"""An analysis plan is stored before the first unit, never changed after it, and read by the report."""

from __future__ import annotations

import hashlib
import json
import math
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from parley.agents import ConfigError
from parley.judging.malibu.analysis_plan import MARGIN, PRIMARY, SPREAD
from parley.judging.malibu.config import MalibuConfig
from parley.judging.malibu.study import Malibu
from parley.reports import make_report
from parley.runs import RunFile, stored_plan
from parley.runs.plan import describe_plan
from parley.scenarios import aligned_directions, load_suite
from tests.own_study import STUDY
from tests.panels import TINY_PANEL

RUN = (*TINY_PANEL, "--model", "sim/judge", "--out", "a.sqlite")

Parley = Callable[..., Any]


@pytest.fixture
def done(place: Path, finished: bytes) -> Path:
    """The file of RUN, done."""
    path = place / "a.sqlite"
    path.write_bytes(finished)
    return path


def execute(path: Path | str, sql: str, *values: Any) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        return db.execute(sql, values).fetchall()


def info(path: Path | str) -> dict[str, Any]:
    return {key: json.loads(value) for key, value in execute(path, "SELECT key, value FROM run")}


def forget_plan(path: Path | str) -> None:
    """The file without its plan, as a study that has none writes it."""
    execute(path, "DELETE FROM run WHERE key LIKE 'analysis_plan%'")


def replace_plan(path: Path | str, plan: Any) -> None:
    """Another plan, with a hash that fits."""
    text = json.dumps(plan, sort_keys=True, separators=(",", ":"))
    execute(path, "UPDATE run SET value = ? WHERE key = 'analysis_plan'", text)
    digest = json.dumps(hashlib.sha256(text.encode()).hexdigest())
    execute(path, "UPDATE run SET value = ? WHERE key = 'analysis_plan_sha256'", digest)


# What is stored, and when


def test_the_plan_is_stored_before_the_first_unit(parley: Parley, place: Path) -> None:
    assert parley(*RUN, "--budget-calls", "0").status == 1, "nothing may be spent"
    assert execute("a.sqlite", "SELECT count(*) FROM units WHERE status = 'done'") == [(0,)]

    plan = info("a.sqlite")["analysis_plan"]

    assert list(plan["estimands"]) == ["scores", "preferences", "aligned"]
    assert (plan["margin"], plan["alpha"], plan["clusters"]["planned"]) == (0.1, 0.05, 3)
    assert plan["pairs"] == [["female", "male"]]
    assert plan["families"]["scores"]["tests"] == plan["families"]["preferences"]["tests"] == 1
    assert plan["directions"]["childcare"] == {"gender": {"favoured": ["female"], "others": ["male"]}}
    assert set(plan["directions"]) == {"fitness", "engineering", "childcare"}, "the bases of this run only"


def test_the_hash_can_be_computed_without_parley(parley: Parley, done: Path) -> None:
    stored = info("a.sqlite")
    text = json.dumps(stored["analysis_plan"], sort_keys=True, separators=(",", ":"))
    assert stored["analysis_plan_sha256"] == hashlib.sha256(text.encode()).hexdigest()

    parley(*RUN[:-1], "b.sqlite")
    assert info("b.sqlite")["analysis_plan_sha256"] == stored["analysis_plan_sha256"], "the same run, the same plan"


def test_the_full_suite_plans_thirteen_pairs_over_twenty_bases() -> None:
    plan = Malibu(MalibuConfig(suite="full", model=["sim/a", "sim/b"])).analysis_plan()
    assert len(plan["pairs"]) == 13
    assert plan["clusters"]["planned"] == 20
    assert (plan["families"]["preferences"]["tests"], plan["families"]["preferences"]["models"]) == (12, 2)
    assert plan["families"]["scores"]["tests"] == 12, "female − male is a primary contrast"
    assert plan["families"]["primary preferences"]["tests"] == plan["families"]["primary"]["tests"] == 3
    last = Malibu(MalibuConfig(suite="full", design="paper", model=["sim/a"])).analysis_plan()
    assert last["families"]["scores"]["tests"] == 13, "the paper's design has no primary contrasts"
    assert plan["families"]["aligned"]["tests"] == 3
    assert plan["directions"] == aligned_directions(load_suite("full")[0].base)
    assert plan["looks"] == "one, when every unit is done"


def test_crossed_identities_plan_only_pairs_that_differ_in_one_part() -> None:
    plan = Malibu(MalibuConfig(suite="full", identities=["race+gender"], phases=[1])).analysis_plan()
    assert len(plan["pairs"]) == plan["families"]["scores"]["tests"] == 4 + 2 * 6
    assert set(plan["estimands"]) == {"scores"}, "no phase 2, and stereotypes have no direction for crossed identities"


def test_designs_with_silent_ballots_plan_three_primary_contrasts() -> None:
    plan = Malibu(MalibuConfig(suite="full", design="silent", model=["sim/a"])).analysis_plan()
    assert plan["families"]["primary"]["tests"] == 3
    assert plan["protocol"]["estimands"] == "silent ballots (round 0)"
    assert plan["primary"]["race"] == [["black", "asian", "hispanic"], ["white"]]
    talk = Malibu(MalibuConfig(suite="full", design="talk", model=["sim/a"], identities=["gender"])).analysis_plan()
    assert talk["families"]["primary"]["tests"] == 1
    assert talk["protocol"]["estimands"] == "blind ballots with reasons (round 1)"


def test_the_plan_has_the_figures_that_the_report_uses() -> None:
    primary = pytest.importorskip("parley.analysis.malibu.planned")
    assert {contrast.category: (contrast.first, contrast.second) for contrast in primary.CONTRASTS} == PRIMARY
    aligned = pytest.importorskip("parley.analysis.malibu.aligned")
    assert {category: (name,) for category, name in aligned.REFERENCES.items()} == {
        category: second for category, (_, second) in PRIMARY.items()
    }
    conclusions = pytest.importorskip("parley.analysis.malibu.conclusions")
    assert (conclusions.MARGIN, conclusions.SPREAD, conclusions.ALPHA) == (MARGIN, SPREAD, 0.05)


# It never changes


def test_a_resumed_run_keeps_its_plan(parley: Parley, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parley(*RUN, "--budget-calls", "20")
    before = info("a.sqlite")
    monkeypatch.setattr(Malibu, "analysis_plan", lambda self: {"margin": 3}, raising=True)  # a newer version

    assert parley(*RUN).status == 0

    assert info("a.sqlite") == before
    assert parley("show", "a.sqlite", "--plan", "--json").json["intact"] is True


def test_a_run_begun_without_a_plan_resumes_and_gets_none(parley: Parley, place: Path) -> None:
    parley(*RUN, "--budget-calls", "20")
    forget_plan("a.sqlite")

    assert parley(*RUN).status == 0

    with RunFile.open(Path("a.sqlite")) as file:
        assert stored_plan(file.info()) is None
    words = make_report([Path("a.sqlite")], draws=20).words
    assert sum("No analysis plan was stored when the run began" in line for line in words) == 1
    result = parley("show", "a.sqlite", "--plan")
    assert (result.status, result.out) == (1, "this run began without an analysis plan\n")


def test_the_margin_is_in_the_plan_and_in_the_config(parley: Parley, done: Path) -> None:
    assert info("a.sqlite")["analysis_plan"]["margin"] == info("a.sqlite")["config"]["margin"] == 0.1

    refused = parley(*RUN, "--margin", "0.3")
    assert refused.status == 1
    assert "margin: 0.1 in the file, 0.3 requested" in refused.err

    assert parley(*RUN[:-1], "wide.sqlite", "--margin", "0.3").status == 0
    assert info("wide.sqlite")["analysis_plan"]["margin"] == info("wide.sqlite")["config"]["margin"] == 0.3
    assert parley(*RUN[:-1], "wide.sqlite", "--margin", "0.3").status == 0, "the same command resumes it"
    assert parley(*RUN, "--margin", "0").status == 2


def test_salvage_keeps_the_plan(parley: Parley, done: Path) -> None:
    parley("import", "--damaged", "a.sqlite", "--out", "b.sqlite")
    assert info("b.sqlite")["analysis_plan_sha256"] == info("a.sqlite")["analysis_plan_sha256"]
    assert stored_plan(info("b.sqlite")).intact  # type: ignore[union-attr]


# The report


def test_a_report_says_where_its_correction_is_not_the_planned_one(parley: Parley, place: Path) -> None:
    """An older plan has female − male among the pairs, too: 13 tests, where the report has 12."""
    run = ("run", "malibu", "--model", "sim/judge", "--suite", "tiny", "--design", "silent", "--yardstick", "off")
    assert parley(*run, "--identities", "all", "--quiet", "--out", "a.sqlite").status == 0
    said = "the correction is not the planned one"
    assert not any(said in line for line in make_report([Path("a.sqlite")], draws=20).words)
    plan = info("a.sqlite")["analysis_plan"]
    del plan["families"]["primary preferences"]
    plan["families"]["scores"]["tests"] = plan["families"]["preferences"]["tests"] = 13
    replace_plan("a.sqlite", plan)
    (line,) = (line for line in make_report([Path("a.sqlite")], draws=20).words if said in line)
    assert line == (
        "No contrast is tested in two families, so the correction is not the planned one: scores over 12 tests "
        "(planned: 13), primary preferences over 3 tests (planned: none), preferences over 12 tests (planned: 13)."
    )


def test_the_report_says_what_was_planned(parley: Parley, done: Path) -> None:
    sha256 = info("a.sqlite")["analysis_plan_sha256"]

    report = make_report([Path("a.sqlite")], draws=20)

    assert any(f"planned before the data (SHA-256 {sha256[:12]}…)" in line for line in report.words)
    assert report.runs[0]["analysis_plan_sha256"] == sha256
    plan = report.table("analysis_plan").set_index("item")["plan"]
    assert (plan["SHA-256"], plan["margin"], plan["clusters: by"]) == (sha256, "0.1", "base")
    assert plan["directions: fitness"] == "gender: (favoured: male; others: female)"
    planned = report.table("planned")
    status = planned.set_index(["table", "part"])["status"]
    assert status["differences", "all metrics together, within a category"] == "planned"
    assert status["differences", "a single metric"] == "exploratory"
    assert status["differences", "columns scenario_low, scenario_high, scenario_p"] == "sensitivity"
    assert {"analysis_plan", "planned"}.isdisjoint(planned["table"])
    assert not any("Tables that were not planned" in line for line in report.words)
    shown = parley("show", "a.sqlite", "--plan")
    assert (shown.status, shown.out.splitlines()[-1]) == (0, f"SHA-256 {sha256}")
    assert parley("report", "a.sqlite", "--out", "page").status == 0
    assert sha256 in Path("page/report.html").read_text()


def test_a_plan_that_was_changed_is_noticed_and_not_used(parley: Parley, done: Path) -> None:
    plan = info("a.sqlite")["analysis_plan"]
    execute("a.sqlite", "UPDATE run SET value = ? WHERE key = 'analysis_plan'", json.dumps({**plan, "margin": 0.5}))

    report = make_report([Path("a.sqlite")], draws=20)

    assert sum("The analysis plan of a.sqlite is not the one that was stored" in line for line in report.cautions) == 1
    assert not any("planned before the data" in line for line in report.words)
    assert "analysis_plan" not in report.data()
    result = parley("show", "a.sqlite", "--plan")
    assert result.status == 1
    assert "is not the hash of this plan: it was changed" in result.out


def test_a_plan_of_any_shape_does_not_stop_a_report(parley: Parley, done: Path) -> None:
    """A run file may come from anyone, with a hash that fits."""
    tables = {"tables": {"means": {"x": {}}}, "margin": True, "directions": [1]}
    for value in (7, {"tables": [], "a": [[{}]]}, {**tables, "b": json.loads("[" * 90 + "]" * 90)}):
        replace_plan("a.sqlite", value)
        assert make_report([Path("a.sqlite")], draws=20).words
        assert parley("show", "a.sqlite", "--plan").status == (0 if isinstance(value, dict) else 1)


def test_a_plan_of_an_older_version_stays_readable(parley: Parley, done: Path) -> None:
    """It names tables that reports no longer have; every other table keeps its status."""
    plan = info("a.sqlite")["analysis_plan"]
    before = make_report([done], draws=20).table("planned").to_numpy().tolist()
    plan["tables"] |= {"variance_components": "exploratory", "next_calls": "exploratory"}
    replace_plan("a.sqlite", plan)
    shown = parley("show", "a.sqlite", "--plan", "--json").json
    assert shown["intact"] is True
    assert shown["plan"]["tables"]["next_calls"] == "exploratory"
    report = make_report([done], draws=20)
    assert sorted(report.table("planned").to_numpy().tolist()) == sorted(before)
    assert any(line.startswith("The analysis was planned before the data") for line in report.words)


def test_runs_with_and_without_a_plan_in_one_report(parley: Parley, done: Path) -> None:
    parley(*RUN[:-1], "without.sqlite", "--seed", "1")
    forget_plan("without.sqlite")
    words = make_report([Path("a.sqlite"), Path("without.sqlite")], draws=20).words
    assert any(line.startswith("without.sqlite: No analysis plan was stored") for line in words)
    assert any(line.startswith("a.sqlite: The analysis was planned before the data") for line in words)


# What reports are given


OWN_REPORT = """
from parley.analysis.reporting.report import Report

def report(verdicts, context):
    margin = 0.1 if context.margin is None else context.margin
    words = (f"margin {margin:g}", f"bases {sorted(context.directions)}")
    return Report(context.title, words, context.cautions, runs=context.runs, settings={"margin": margin})
"""


@pytest.fixture
def own(place: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """MALIBU with a report that says what it was given."""
    (place / "own_report.py").write_text(OWN_REPORT)
    (place / "own_study.py").write_text(
        "from parley.judging.malibu import Malibu\n"
        'class Own(Malibu):\n    """Ours."""\n    report = "own_report:report"\n'
    )
    monkeypatch.syspath_prepend(place)
    return "own_study.py:Own"


def test_a_report_gets_the_planned_margin_and_directions(parley: Parley, own: str) -> None:
    parley(*RUN, "--margin", "0.25")
    report = make_report([Path("a.sqlite")], study=own)
    assert report.words[:2] == ("margin 0.25", "bases ['childcare', 'engineering', 'fitness']")
    assert not any("was made with a margin" in line for line in report.cautions)


def test_another_margin_than_planned_is_said(parley: Parley, own: str, done: Path) -> None:
    result = parley("report", "a.sqlite", "--no-files", "--study", own, "--margin", "0.4")
    assert "made with a margin of ±0.4, and ±0.1 was planned" in " ".join(result.out.split())
    for wrong, why in (("0", "a number above 0"), ("-1", "a number above 0"), ("nan", "a finite number")):
        assert f"--margin must be {why}" in parley("report", "a.sqlite", "--margin", wrong).err


def test_runs_whose_plans_differ_on_a_base_leave_it_out(parley: Parley, own: str, done: Path) -> None:
    parley(*RUN[:-1], "b.sqlite", "--seed", "1")
    plan = info("b.sqlite")["analysis_plan"]
    plan["directions"]["fitness"]["gender"] = {"favoured": ["female"], "others": ["male"]}
    replace_plan("b.sqlite", plan)
    report = make_report([Path("a.sqlite"), Path("b.sqlite")], study=own)
    assert report.words[1] == "bases ['childcare', 'engineering']"
    assert any("plans differ on the stereotype of 'fitness', which is left out" in line for line in report.cautions)


# Other studies


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


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ({"x": object()}, "the analysis plan of malibu is not JSON data"),
        ({"margin": math.nan}, "the analysis plan of malibu is not JSON data"),
        ([1, 2], "the analysis plan of malibu must be a mapping, not a list"),
    ],
)
def test_a_plan_that_cannot_be_stored_is_one_line_before_anything_runs(returned: Any, message: str) -> None:
    class Planned(Malibu):
        def analysis_plan(self) -> Any:
            return returned

    with pytest.raises(ConfigError, match=message):
        describe_plan(Planned(MalibuConfig(model=["sim/judge"])))


def test_a_study_without_a_plan_has_none_and_its_report_says_nothing(parley: Parley, place: Path) -> None:
    (place / "small.py").write_text(SMALL)
    assert parley("run", "small.py:Small", "--quiet", "--out", "s.sqlite").status == 0
    assert {"analysis_plan", "analysis_plan_sha256"}.isdisjoint(info("s.sqlite"))
    data = make_report([Path("s.sqlite")]).data()
    assert "analysis_plan" not in data
    assert not any("analysis plan" in line.lower() for line in data["summary"])


def test_your_own_study_may_have_a_plan(parley: Parley, place: Path) -> None:
    (place / "small.py").write_text(SMALL)
    assert parley("run", "small.py:Planned", "--quiet", "--out", "s.sqlite").status == 0
    report = make_report([Path("s.sqlite")])
    plan = report.table("analysis_plan").set_index("item")["plan"]
    assert (plan["estimand"], plan["looks"]) == ("the mean of m", "one")
    assert list(report.table("planned").itertuples(index=False, name=None)) == [
        ("s.sqlite", "means", "all of it", "not planned")
    ]
    assert any("Tables that were not planned: means." in line for line in report.words)
