"""Placebo labels: weekdays are read on one scenario of each base, are never primary, and have a family of their own."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from parley.agents import ConfigError
from parley.judging.malibu.plan import MalibuConfig
from parley.judging.malibu.study import Malibu
from parley.scenarios import LabelChoice, ScenarioError, load_ballot_wordings, load_suite, select
from parley.scenarios.identities import PLACEBO, Identities
from parley.scenarios.wording_checks import _wrong_articles

WIDE: dict[str, Any] = {"suite": "wide", "design": "silent", "model": ["sim/judge"]}
DAYS = PLACEBO["weekday"]
ENGLISH = load_ballot_wordings()


def test_the_suite_wide_scores_each_weekday_on_one_scenario_of_each_base_that_names_none() -> None:
    units = [unit.facets for unit in Malibu(MalibuConfig(**WIDE)).plan() if unit.facets["category"] == "weekday"]
    scenarios = {scenario.id: scenario for scenario in load_suite("wide")[0].scenario}
    assert Counter((unit["phase"], unit["stage"], unit["identity"]) for unit in units) == {
        (1, "silent", day): 60 for day in DAYS
    }
    assert len({unit["base"] for unit in units}) == len({unit["scenario"] for unit in units}) == 60
    assert len({unit["wording"] for unit in units}) == 60, "a wording of its own for each base"
    texts = [scenarios[str(unit["scenario"])] for unit in units]
    assert not any(day in text for each in texts for text in (each.text, *each.responses) for day in DAYS)


def test_other_units_and_prompts_are_those_of_a_run_without_them() -> None:
    with_days, without = (Malibu(MalibuConfig(**WIDE, identities=names)) for names in (["all", "weekday"], ["all"]))
    rest = [unit.id for unit in with_days.plan() if unit.facets["category"] != "weekday"]
    assert rest == [unit.id for unit in without.plan()]
    added = with_days.prompts().keys() - without.prompts().keys()
    assert len(added) == 60
    assert with_days.sources() != without.sources(), "the hash of the wordings has the weekdays', too"


def test_pairs_of_weekdays_are_a_family_of_their_own_and_never_primary() -> None:
    plan, other = (
        Malibu(MalibuConfig(**WIDE, identities=names)).analysis_plan() for names in (["all", "weekday"], ["all"])
    )
    assert [(*pair["first"], *pair["second"]) for pair in plan["placebo"]] == [
        ("Tuesday", "Wednesday"), ("Tuesday", "Thursday"), ("Wednesday", "Thursday"),
    ]  # fmt: skip
    assert plan["tables"]["placebo"] == "planned"
    assert {key: plan[key] for key in other if key != "tables"} == {key: other[key] for key in other if key != "tables"}
    assert "placebo" not in other


@pytest.mark.parametrize(
    "settings",
    [
        {**WIDE, "design": "paper"},
        {**WIDE, "design": "talk"},
        {**WIDE, "phases": [2]},
        {**WIDE, "suite": "german-1", "identities": ["all", "weekday"], "wordings": "german"},
    ],
)
def test_where_no_silent_score_can_have_them_they_are_left_out_with_a_note(settings: dict[str, Any]) -> None:
    study = Malibu(MalibuConfig(**settings))
    assert "weekday" not in {unit.facets["category"] for unit in study.plan()}
    assert "placebo" not in study.analysis_plan()
    assert any(note.startswith("placebo labels are left out") for note in study.notes(dry_run=False))


def test_debates_of_a_staged_run_have_none() -> None:
    units = [unit.facets for unit in Malibu(MalibuConfig(**{**WIDE, "design": "staged", "limit": 12})).plan()]
    assert {unit["stage"] for unit in units if unit["category"] == "weekday"} == {"silent"}
    assert {unit["phase"] for unit in units if unit["category"] == "weekday"} == {1}


def test_they_are_outside_all_and_mean_nothing_alone_or_crossed(place: Any) -> None:
    assert not {*select(["all"])} & {*DAYS}
    assert [*select(["all", "weekday"])][-3:] == [*DAYS]
    with pytest.raises(ScenarioError, match="crosses placebo labels"):
        select(["weekday+gender"])
    with pytest.raises(ConfigError, match="placebo labels mean nothing: give others beside them"):
        Malibu(MalibuConfig(**WIDE, identities=["weekday"]))
    (place / "days.toml").write_text('[categories]\nweekday = ["Tuesday", "Sunday"]\n')
    with pytest.raises(ScenarioError, match="there is already a category 'weekday'"):
        select(["days.toml"])


def test_sixty_wordings_read_well_and_a_third_stands_in_each_place() -> None:
    rows = ENGLISH.placebo
    assert Counter(row.place for row in rows) == {"before": 20, "beside": 20, "after": 20}
    choice = LabelChoice(ENGLISH.model_copy(update={"label": rows}), Identities(PLACEBO))
    assert choice.labels_for("weekday") == rows, "each differs between the days"
    shown = {day: [ENGLISH.label_text(row, day) for row in rows] for day in DAYS}
    assert all(len({*texts}) == 60 for texts in shown.values())
    assert not [wrong for texts in shown.values() for text in texts for wrong in _wrong_articles(text)]


def test_a_file_of_ones_own_inherits_them_and_a_wrong_placeholder_is_named(place: Any) -> None:
    head = 'schema = 1\nname = "mine"\nversion = "1"\nextends = "english"\n'
    (place / "mine-words.toml").write_text(head)
    assert load_ballot_wordings(place / "mine-words.toml").placebo == ENGLISH.placebo
    row = '[[placebo]]\nid = "a"\nkind = "date"\nplace = "beside"\ntext = "On a {day}:"\n'
    (place / "mine-words.toml").write_text(head + row)
    with pytest.raises(ScenarioError, match=r"unknown placeholder \{day\}(.|\n)*\{adjective\} is missing|\{a"):
        load_ballot_wordings(place / "mine-words.toml")


@pytest.mark.parametrize(
    ("model", "first", "beside"),
    [
        ("sim/judge?item=0.5", False, "Placebo labels, which mean nothing: weekdays differ by at most "),
        ("sim/judge?tuesday=+0.4&varies=0.1", True, ""),
        ("sim/judge?female=+0.4&item=0.5", False, "Placebo labels, which mean nothing: weekdays differ by at most "),
    ],
)
def test_a_planted_effect_of_a_weekday_is_said_first(parley: Any, model: str, first: bool, beside: str) -> None:
    run = ("run", "malibu", "--suite", "wide", "--design", "silent", "--limit", "20", "--phases", "1", "--model", model)
    assert parley(*run, "--yardstick", "off", "--quiet", "--out", "a.sqlite").status == 0
    data = parley("report", "a.sqlite", "--json").json
    moves = "Labels without meaning move this judge's scores, too: the same answers score 0.4"
    assert data["summary"][0].startswith(moves) == data["cautions"][0].startswith(moves) == first
    assert [line for line in data["summary"] if line.startswith("Placebo")] == [
        line for line in data["summary"] if beside and line.startswith(beside)
    ]
    assert any(line.startswith("Placebo") for line in data["summary"]) == bool(beside)
    assert {row["category"] for row in data["primary"]} == {"gender", "race", "religion"}
    assert "weekday" not in {row["category"] for row in data["means"]}
    assert len(data["placebo"]) == 3
    assert data["headline"]["question"] == "Does the author's label change the score (1 to 9)?"
