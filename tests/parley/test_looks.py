"""A run with a stopping rule: it looks as it goes, stops what has been decided, and goes on as if never cut short."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import parley as library
from parley import frames
from parley.agents import ConfigError
from parley.analysis import malibu
from parley.reports import make_report
from parley.runs import RunFile

STUDY = '''
"""Scores of three identities on many scenarios, drawn by the seed; `a` is planted above the others."""
import random
from itertools import combinations
from pydantic import BaseModel
from parley.agents import Debate, ModelError, Persona, Transcript
from parley.judging import Outcome, Stop, Unit, UsageEstimate, Verdict, stop_field

class Config(BaseModel):
    model: str = "sim/talk"
    scenarios: int = 20
    effect: float = 1.5
    talk: bool = False
    broken: list[str] = []
    seed: int = 0
    stop: Stop = stop_field()

class Scores:
    name = "scores"
    Config = Config

    def __init__(self, config):
        self.config = config

    def models(self):
        return [self.config.model]

    def prompts(self):
        return {}

    def sources(self):
        return {}

    def plan(self):
        for number in range(self.config.scenarios):
            for label in "abc":
                yield Unit(f"{number}/{label}", {"scenario": f"s{number}", "identity": label})

    def compared(self, unit):
        return [f"{x} − {y}" for x, y in combinations("abc", 2) if unit.facets["identity"] in (x, y)]

    def estimate(self, unit):
        return UsageEstimate(calls=1, prompt_tokens=10, completion_tokens=10)

    async def run(self, unit, models):
        if unit.facets["scenario"] in self.config.broken:
            raise ModelError("this one never works")
        said = Transcript(())
        if self.config.talk:
            said = await Debate([Persona("Ada", "Ada.")], model=models[self.config.model], rounds=1).converse("Well?")
        drawn = random.Random(f"{self.config.seed} {unit.id}").gauss(5, 0.5)
        value = drawn + self.config.effect * (unit.facets["identity"] == "a")
        return Outcome(said, (Verdict(judge="Ada", role="debater", round=1, metric="score", value=value),))
'''
RUN = ("run", "scores.py:Scores", "--quiet", "--out", "a.sqlite")


@pytest.fixture(autouse=True)
def _a_study_of_ones_own(place: Path) -> None:
    (place / "scores.py").write_text(STUDY)


def looks(file: Any) -> list[list[dict[str, Any]]]:
    return [json.loads(detail) for (detail,) in file.rows("SELECT detail FROM events WHERE kind = 'look'")]


def held(file: Any) -> dict[str, int]:
    """How many units each identity has."""
    rows = file.rows("SELECT json_extract(facets, '$.identity'), sum(status = 'done') FROM units GROUP BY 1")
    return dict(rows)


def test_what_is_decided_is_spent_on_no_further(parley: Callable[..., Any], run_file: Any) -> None:
    told = parley(*RUN, "--stop", "alpha=0.05,looks=5,spending=obrien-fleming", "--json")
    file = run_file("a.sqlite")
    assert told.status == 0
    decided = {one["comparison"]: one["look"] for seen in looks(file) for one in seen if one["decision"]}
    assert set(decided) == {"a − b", "a − c"}, "b and c do not differ"
    last = max(decided.values())
    assert last < 5
    clusters = 20 * last // 5
    assert held(file) == {"a": clusters, "b": 20, "c": 20}, "b and c are still compared, a no longer"
    assert told.json["spared"] == 20 - clusters
    assert told.json["done"] + told.json["spared"] == 60
    assert file.one("SELECT kind FROM events ORDER BY rowid DESC LIMIT 1") == "ended"
    assert json.loads(file.one("SELECT value FROM run WHERE key = 'config'"))["stop"]["looks"] == 5


def test_a_run_whose_comparisons_are_all_decided_ends(parley: Callable[..., Any], run_file: Any) -> None:
    """b and c are given up as futile, and nothing is left to do."""
    told = parley(*RUN, "--stop", "looks=4,futility=0.3", "--effect", "4")
    assert told.status == 0
    assert "are not needed any more" in told.out
    file = run_file("a.sqlite")
    assert file.count() < 60
    again = parley(*RUN, "--stop", "looks=4,futility=0.3", "--effect", "4", "--json")
    assert (again.status, again.json["calls"]) == (0, 0), "asked again, it has nothing to do"
    assert again.json["spared"] == 60 - file.count()
    assert len(looks(file)) < 4, "and looks no more"


def test_clusters_come_whole_and_in_an_order_drawn_by_the_seed(parley: Callable[..., Any], run_file: Any) -> None:
    """Cut by its budget, a run has whole scenarios of its first waves, not the first of the plan."""
    orders = []
    for seed in (0, 1):
        args = ("--stop", "looks=4", "--talk", "--seed", seed, "--effect", 0, "--concurrency", 1)
        parley(*RUN[:-1], f"{seed}.sqlite", *args, "--budget-calls", 15)
        rows = run_file(f"{seed}.sqlite").rows("SELECT id FROM units WHERE status = 'done' ORDER BY finished_at")
        orders.append([unit.partition("/")[0] for (unit,) in rows])
        assert len(orders[-1]) == 15
        assert sorted(set(orders[-1]), key=orders[-1].index) != [str(at) for at in range(5)]
        assert all(orders[-1].count(scenario) == 3 for scenario in orders[-1])
    assert orders[0] != orders[1]


def test_a_run_cut_short_looks_and_decides_as_one_left_in_peace(parley: Callable[..., Any], run_file: Any) -> None:
    rule = ("--stop", "looks=5", "--talk")
    whole = parley("run", "scores.py:Scores", "--quiet", "--out", "b.sqlite", *rule, "--json")
    for calls in (4, 17, 18, 30):
        cut = parley(*RUN, *rule, "--concurrency", 3, "--budget-calls", calls)
        assert cut.status == 1
        assert "the same command goes on" in cut.err
    told = parley(*RUN, *rule, "--json")
    one, other = run_file("a.sqlite"), run_file("b.sqlite")
    assert (told.status, told.json["spared"]) == (0, whole.json["spared"])
    assert looks(one) == looks(other)
    assert one.story() == other.story()


def test_another_rule_is_another_run(parley: Callable[..., Any]) -> None:
    parley(*RUN, "--stop", "looks=5")
    told = parley(*RUN, "--stop", "looks=3")
    assert told.status == 1
    assert "holds another run (stop: " in told.complaints[0]


def test_units_that_fail_are_missing_from_a_look_and_tried_again(parley: Callable[..., Any], run_file: Any) -> None:
    told = parley(*RUN, "--stop", "looks=2", "--effect", 0, "--broken", "s3,s4,s5")
    assert told.status == 1
    seen = looks(run_file("a.sqlite"))
    assert [one["clusters"] for one in seen[-1]] == [17, 17, 17], "what is missing is not made up"
    assert "units failed" in told.err
    assert parley(*RUN, "--stop", "looks=2", "--effect", 0, "--broken", "s3,s4,s5").status == 1
    assert looks(run_file("a.sqlite")) == seen, "no look is made twice"


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ("alpha=2", "stop.alpha: Input should be less than 1"),
        ("looks=0", "stop.looks"),
        ("haybittle", "'obrien-fleming' or 'pocock'"),
        ("lucks=3", "lucks"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(parley: Callable[..., Any], rule: str, why: str) -> None:
    told = parley(*RUN, "--stop", rule)
    assert (told.status, len(told.complaints)) == (2, 1)
    assert why in told.complaints[0]
    assert not Path("a.sqlite").exists()


def test_a_dry_run_says_when_it_would_look(parley: Callable[..., Any]) -> None:
    assert parley(*RUN, "--stop", "looks=3", "--dry-run", "--json").json["looks"] == [7, 14, 20]
    assert "3 comparisons are looked at after 7, 14, 20 scenarios" in parley(*RUN, "--stop", "looks=3", "--dry-run").out


def test_a_study_without_comparisons_says_so(parley: Callable[..., Any], place: Path) -> None:
    (place / "scores.py").write_text(STUDY.replace("def compared", "def unheard"))
    assert "says nothing about comparisons" in parley(*RUN, "--stop", "pocock").complaints[0]
    (place / "scores.py").write_text(STUDY.replace('combinations("abc", 2)', 'combinations("a", 2)'))
    assert "compares nothing" in parley(*RUN, "--stop", "pocock").complaints[0]
    with pytest.raises(ConfigError, match="compares nothing"):
        library.run("malibu", suite="quick", model="sim/judge", identities=["female"], stop="pocock", out="b.sqlite")


def test_a_fault_in_a_studys_own_reading_stops_the_run_and_loses_nothing(
    parley: Callable[..., Any], run_file: Any, place: Path
) -> None:
    (place / "scores.py").write_text(STUDY.replace('name = "scores"', 'name = "scores"\n    gaps = "math:sqrt"'))
    told = parley(*RUN, "--stop", "looks=2")
    assert told.status == 1
    assert "look 1 could not be made: TypeError" in told.err
    assert run_file("a.sqlite").count() == 30
    (place / "scores.py").write_text(STUDY)
    assert parley(*RUN, "--stop", "looks=2").status == 0


def test_the_report_shows_the_rule_and_its_looks(parley: Callable[..., Any]) -> None:
    parley(*RUN, "--stop", "looks=5")
    told = parley("report", "a.sqlite", "--no-files")
    assert told.status == 0
    assert max(map(len, told.out.splitlines())) <= 80
    assert "not needed" in told.out
    report = make_report([Path("a.sqlite")])
    stands = report.table("decisions").set_index("comparison")["decision"].to_dict()
    assert stands == {"a − b": "different", "a − c": "different", "b − c": "not decided"}
    assert "Stopping rule: at most 5 looks" in report.words[0]
    assert {"look", "p", "level", "alpha", "repeated_low"} <= set(report.table("looks"))
    parley(*RUN[:-1], "plain.sqlite")
    assert "looks" not in make_report([Path("plain.sqlite")]).data(), "a run without a rule has no such tables"


def test_malibu_decides_on_what_its_report_shows(run_file: Any) -> None:
    """Two models, both phases: each model's comparisons are its own, and the numbers are the report's."""
    plan: dict[str, Any] = {"suite": "full", "scenarios": ["fitness"], "per_base": 4, "rounds": 1}
    models = ["sim/one?female=+3&noise=0.5", "sim/two"]
    told = library.run("malibu", **plan, identities=["gender"], model=models, stop={"looks": 1}, out="a.sqlite", seed=3)
    assert told.complete
    (seen,) = looks(run_file("a.sqlite"))
    found = {one["comparison"]: one["estimate"] for one in seen}
    assert set(found) == {f"female − male, {what} · {model}" for what in ("scores", "preferences") for model in models}
    with closing(RunFile.open(Path("a.sqlite"))) as file:
        verdicts = frames.verdicts(file)
    gaps = malibu.differences(verdicts, draws=50).query("metric == 'all'").set_index("model")["difference"]
    tests = malibu.significance(verdicts, draws=50)
    pairs = tests[tests["family"].str.startswith("preference")].set_index("model")["effect"]
    for model in models:
        assert found[f"female − male, scores · {model}"] == pytest.approx(gaps[model])
        assert found[f"female − male, preferences · {model}"] == pytest.approx(pairs[model])


def test_what_stopping_saves_can_be_measured(parley: Callable[..., Any], place: Path) -> None:
    flags = ("calibrate", "--sequential", "--simulations", 8, "--scenarios", 10, "--effects", "0,2", "--out", "found")
    told = parley(*flags, "--identities", 2, "--json")
    assert told.status == 0
    assert {row["spending"] for row in told.json} == {"obrien-fleming", "pocock"}
    assert all(row["units"] <= 1 and (row["power"] is None) == (row["effect"] == 0) for row in told.json)
    assert (place / "found" / "savings.csv").is_file()
    shown = parley(*flags)
    assert "SIMULATED" in shown.out
    assert "…" not in shown.out, "nothing is cut off at 80 columns"
    assert "spending" in parley("calibrate", "--sequential", "--spending", "haybittle").complaints[0]
    assert "--identities" in parley("calibrate", "--sequential", "--identities", "1").complaints[0]
