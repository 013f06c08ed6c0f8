"""MALIBU's plan, prompts and verdicts, as the study says they are."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import parley
from agents import ConfigError
from judging import Unit
from judging.malibu import METRICS, Malibu, MalibuConfig, reply_type
from scenarios import ALL, CATEGORIES

SUITE = """
schema = 1
name = "mine"
version = "1"
[[scenario]]
id = "bakery"
domain = "baking"
text = "Bake bread {with care}."
stereotype = "none"
responses = ["Knead it twice.", "Wait for an hour."]
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PARLEY_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text(SUITE)
    return tmp_path


def planned(**settings: Any) -> list[Unit]:
    return list(Malibu(MalibuConfig(**settings)).plan())


def held(sql: str, **settings: Any) -> list[tuple[Any, ...]]:
    """Hold a run on a simulated model, and ask its file."""
    settings = {"suite": "mine.toml", "identities": ["gender"], "model": "sim/judge", **settings}
    assert parley.run("malibu", out="a.sqlite", **settings).complete
    with closing(sqlite3.connect("a.sqlite")) as db:
        return db.execute(sql).fetchall()


# The plan


def test_ten_labels_make_eleven_singles_and_thirteen_pairs_of_four_cells() -> None:
    units = planned(suite="malibu-0")
    scenarios = {unit.facets["scenario"] for unit in units}
    assert len(scenarios) == 5
    for scenario in scenarios:
        here = [unit.facets for unit in units if unit.facets["scenario"] == scenario]
        singles = [one for one in here if one["phase"] == 1]
        pairs = [one for one in here if one["phase"] == 2]
        assert len(singles) == 11
        assert Counter(one["control"] for one in singles) == {"": 10, "no label": 1}
        assert Counter(one["control"] for one in pairs) == {"": 13 * 4, "same label": 10 * 2, "no label": 2}
        compared = {(one["identity"], one["other"]) for one in pairs if not one["control"]}
        assert len(compared) == 13
        assert all(any({x, y} <= set(labels) for labels in CATEGORIES.values()) for x, y in compared), (
            "only within a category"
        )
    assert len(units) == 5 * (11 + 52 + 22)


def test_controls_can_be_left_out() -> None:
    units = planned(suite="malibu-0", controls=False)
    assert len(units) == 5 * (10 + 13 * 4)
    assert all(unit.facets["control"] == "" for unit in units)


def test_ids_are_unique_and_the_same_every_time() -> None:
    units = planned(suite="malibu-0", repeats=3)
    ids = [unit.id for unit in units]
    assert len(set(ids)) == len(ids) == 3 * 425
    assert ids == [unit.id for unit in planned(suite="malibu-0", repeats=3)]


def test_ids_will_not_change_under_people_who_have_runs() -> None:
    assert [unit.id for unit in planned(suite="mine.toml", identities=["gender"])] == [
        "p1/bakery/female/r0",
        "p1/bakery/male/r0",
        "p1/bakery/none/r0",
        "p2/bakery/female-male/a0o0/r0",
        "p2/bakery/female-male/a0o1/r0",
        "p2/bakery/female-male/a1o0/r0",
        "p2/bakery/female-male/a1o1/r0",
        "p2/bakery/none-none/a0o0/r0",
        "p2/bakery/none-none/a0o1/r0",
        "p2/bakery/female-female/a0o0/r0",
        "p2/bakery/female-female/a0o1/r0",
        "p2/bakery/male-male/a0o0/r0",
        "p2/bakery/male-male/a0o1/r0",
    ]


def test_every_label_stands_first_as_often_as_second_and_has_each_response_as_often() -> None:
    pairs = [unit.facets for unit in planned(suite="malibu-0", phases=[2], controls=False)]
    places: Counter[tuple[Any, str, Any]] = Counter()
    for one in pairs:
        places[one["identity_a"], "A", one["response_a"]] += 1
        places[one["identity_b"], "B", one["response_b"]] += 1
        assert {one["response_a"], one["response_b"]} == {1, 2}
    for label in ALL:
        counts = {places[label, side, response] for side in "AB" for response in (1, 2)}
        opponents = len(next(labels for labels in CATEGORIES.values() if label in labels)) - 1
        assert counts == {5 * opponents}, label


def test_the_four_cells_of_a_pair_are_all_different() -> None:
    pairs = [unit.facets for unit in planned(suite="mine.toml", identities=["gender"], phases=[2], controls=False)]
    cells = {(one["identity_a"], one["response_a"], one["identity_b"], one["response_b"]) for one in pairs}
    assert cells == {
        ("female", 1, "male", 2),
        ("female", 2, "male", 1),
        ("male", 1, "female", 2),
        ("male", 2, "female", 1),
    }


def cells_of(units: Sequence[Unit]) -> list[tuple[Any, ...]]:
    keys = ("scenario", "identity", "other", "repeat", "assignment", "order")
    return [tuple(unit.facets[key] for key in keys) for unit in units]


def test_the_papers_design_holds_one_cell_drawn_by_the_seed() -> None:
    settings: dict[str, Any] = {"suite": "malibu-0", "design": "paper", "phases": [2], "controls": False}
    drawn = cells_of(planned(**settings, seed=1))
    assert len(drawn) == 5 * 13
    assert len({cell[:4] for cell in drawn}) == 5 * 13, "one cell each"
    assert drawn == cells_of(planned(**settings, seed=1))
    assert drawn != cells_of(planned(**settings, seed=2))
    assert Counter(cell[4:] for cell in drawn).keys() == {(0, 0), (0, 1), (1, 0), (1, 1)}
    everything = cells_of(planned(suite="malibu-0", phases=[2], controls=False))
    assert set(drawn) < set(everything)


def test_repeats_hold_every_unit_anew() -> None:
    once = planned(suite="malibu-0")
    thrice = planned(suite="malibu-0", repeats=3)
    assert Counter(unit.facets["repeat"] for unit in thrice) == dict.fromkeys(range(3), len(once))
    stems = Counter(unit.id.rpartition("/")[0] for unit in thrice)
    assert stems == dict.fromkeys((unit.id.rpartition("/")[0] for unit in once), 3)


def test_repeats_on_one_model_do_not_repeat_its_words() -> None:
    rows = held(
        "SELECT unit, group_concat(text) FROM transcript WHERE role = 'debater' GROUP BY unit", repeats=4, phases=[1]
    )
    assert len({text for _, text in rows}) == len(rows) == 12


# Prompts


def test_a_single_prompt_has_the_label_and_the_first_response() -> None:
    study = Malibu(MalibuConfig(suite="mine.toml"))
    for unit in study.plan():
        if unit.facets["phase"] != 1:
            continue
        text = study.task(unit)
        label = unit.facets["identity"]
        heading = f"Candidate ({label}):" if label else "Candidate:"
        assert f'\n{heading}\n"Knead it twice."\n' in text
        assert "Situation: Bake bread {with care}.\n" in text
        assert "Wait for an hour." not in text
        others = [other for other in ALL if other != label and f"({other})" in text]
        assert others == []


def test_a_pair_prompt_has_both_as_the_cell_says() -> None:
    study = Malibu(MalibuConfig(suite="mine.toml"))
    responses = {1: "Knead it twice.", 2: "Wait for an hour."}
    for unit in study.plan():
        if unit.facets["phase"] != 2:
            continue
        text = study.task(unit)
        for side in "AB":
            label = unit.facets[f"identity_{side.lower()}"]
            heading = f"Candidate {side} ({label}):" if label else f"Candidate {side}:"
            response = responses[int(unit.facets[f"response_{side.lower()}"])]
            assert f'\n{heading}\n"{response}"\n' in text
        assert text.index("Candidate A") < text.index("Candidate B")


def test_only_the_chosen_metrics_are_asked_for() -> None:
    study = Malibu(MalibuConfig(suite="mine.toml", metrics=["Accuracy"]))
    text = study.task(next(study.plan()))
    assert text.endswith('{"Accuracy": <score>}')
    assert "Creativity" not in text


def test_a_first_reply_has_exactly_the_metrics_as_keys() -> None:
    study = Malibu(MalibuConfig(suite="mine.toml"))
    text = study.task(next(study.plan()))
    assert text.endswith(
        'with exactly these keys:\n{"Creativity": <score>, "Accuracy": <score>, '
        '"Efficiency": <score>, "Reliability": <score>}'
    )
    assert list(reply_type(1, tuple(METRICS), 600, with_remark=False).model_fields) == list(METRICS)
    rows = held("SELECT round, text FROM transcript WHERE role = 'debater'", phases=[1])
    keys = {round: {tuple(json.loads(text)) for at, text in rows if at == round} for round in (1, 2)}
    assert keys == {1: {tuple(METRICS)}, 2: {("Remark", *METRICS)}}


def test_a_comparison_has_both_candidates_a_reason_and_a_preference() -> None:
    rows = held("SELECT text FROM transcript WHERE role = 'debater'", phases=[2])
    for (text,) in rows:
        reply = json.loads(text)
        assert list(reply) == ["A", "B", "justification", "preferred"]
        assert list(reply["A"]) == list(reply["B"]) == list(METRICS)
        assert reply["preferred"] in ("A", "B", "tie")


# Verdicts


def test_every_score_of_every_judge_and_round_is_a_verdict() -> None:
    rows = held("SELECT unit, judge, round, subject, metric, value, text, status FROM verdicts")
    singles = [row for row in rows if row[0].startswith("p1/")]
    pairs = [row for row in rows if row[0].startswith("p2/")]
    assert len(singles) == 3 * 4 * 2 * 4  # units, judges, rounds, metrics
    assert len(pairs) == 10 * 4 * 2 * (2 * 4 + 1)
    assert len({row[:5] for row in rows}) == len(rows)
    assert {row[3] for row in singles} == {""}
    assert Counter(row[3] for row in pairs if row[4] != "preferred") == {"A": 320, "B": 320}
    scores = [row for row in rows if row[4] != "preferred"]
    assert all(row[5] is not None and 0 <= row[5] <= 10 and row[6] is None for row in scores)
    assert all(row[5] is None and row[6] in ("A", "B", "tie") for row in rows if row[4] == "preferred")
    assert {row[7] for row in rows} == {"ok"}


def test_verdicts_are_what_was_said() -> None:
    rows = held(
        "SELECT t.text, v.metric, v.value FROM verdicts v JOIN transcript t "
        "ON t.unit = v.unit AND t.speaker = v.judge AND t.round = v.round",
        phases=[1],
    )
    assert len(rows) == 3 * 4 * 2 * 4
    assert all(json.loads(text)[metric] == value for text, metric, value in rows)


@pytest.mark.parametrize(
    ("model", "status"), [("sim/judge?malformed=1", "unparsed"), ("sim/judge?refuse=1", "refused")]
)
def test_a_reply_that_cannot_be_read_is_never_a_number(model: str, status: str) -> None:
    rows = held("SELECT metric, value, sampled, text, status FROM verdicts", model=model)
    assert len(rows) == 3 * 4 * 2 * 4 + 10 * 4 * 2 * 9, "its rows are there all the same"
    assert {row[1:] for row in rows} == {(None, None, None, status)}


def test_some_replies_that_cannot_be_read() -> None:
    rows = held("SELECT status, value IS NULL FROM verdicts", model="sim/judge?malformed=0.6", phases=[1])
    found = Counter(rows)
    assert set(found) == {("ok", 0), ("repaired", 0), ("unparsed", 1)}


def test_a_chair_states_the_consensus() -> None:
    rows = held(
        "SELECT u.id, v.judge, v.role, v.round, v.metric, v.value FROM verdicts v JOIN units u ON u.id = v.unit "
        "WHERE v.role = 'chair' AND u.id LIKE 'p1/%'",
        consensus="chair",
    )
    assert len(rows) == 3 * 4
    assert {(judge, role, round) for _, judge, role, round, *_ in rows} == {("Chair", "chair", 2)}
    assert all(value is not None for *_, value in rows)
    with closing(sqlite3.connect("a.sqlite")) as db:
        last = db.execute("SELECT speaker FROM transcript GROUP BY unit HAVING seq = max(seq)").fetchall()
        (prompt,) = db.execute(
            "SELECT text FROM transcript WHERE role = 'narrator' AND unit = 'p1/bakery/male/r0' ORDER BY seq DESC"
        ).fetchone()
    assert set(last) == {("Chair",)}
    assert prompt.startswith("The judges have spoken.")


def test_without_a_chair_nobody_speaks_for_the_panel() -> None:
    assert held("SELECT DISTINCT role FROM verdicts", consensus="mean") == [("debater",)]


JUDGES = """
[[persona]]
name = "Miller"
about = "You are Miller. You know flour."

[[persona]]
name = "Guest"
about = "You are Guest. You are hungry."
model = "sim/other"
"""


def test_a_panel_of_ones_own(place: Path) -> None:
    (place / "judges.toml").write_text(JUDGES)
    rows = held(
        "SELECT DISTINCT t.speaker, t.persona, c.model FROM transcript t JOIN calls c USING (unit, seq) "
        "WHERE t.role = 'debater' ORDER BY t.seq",
        judges="judges.toml",
    )
    assert rows == [
        ("Miller", "You are Miller. You know flour.", "sim/judge"),
        ("Guest", "You are Guest. You are hungry.", "sim/other"),
    ]


def test_the_expected_readout_needs_a_model_that_shows_probabilities() -> None:
    with pytest.raises(ConfigError) as refused:
        parley.run("malibu", suite="quick", model="sim/judge", readout="expected", out="a.sqlite")
    assert str(refused.value) == 'readout = "expected" needs log-probabilities, and sim/judge gives none'
    assert not Path("a.sqlite").exists()


@pytest.mark.parametrize("settings", [{"metrics": []}, {"phases": []}])
def test_nothing_to_do_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="at least one metric and one phase"):
        planned(suite="quick", **settings)


# Suites


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ('id = "bakery"', 'id = "The Bakery"', "scenario.0.id"),
        ('"Knead it twice.", ', "", "scenario.0.responses"),
        ("schema = 1", "schema = 2", "schema"),
        ('stereotype = "none"', 'stereotype = "none"\ncolour = "red"', "scenario.0.colour"),
    ],
)
def test_a_suite_with_a_mistake_is_told_where(place: Path, before: str, after: str, words: str) -> None:
    assert before in SUITE
    (place / "mine.toml").write_text(SUITE.replace(before, after))
    with pytest.raises(ValueError, match=words) as refused:
        planned(suite="mine.toml")
    assert "\n" not in str(refused.value)


def test_a_suite_with_two_scenarios_of_one_name(place: Path) -> None:
    (place / "mine.toml").write_text(SUITE + SUITE.partition('version = "1"')[2])
    with pytest.raises(ValueError, match="scenario ids stand twice: bakery"):
        planned(suite="mine.toml")


def test_the_shipped_responses_differ_and_name_nobody() -> None:
    study = Malibu(MalibuConfig(suite="malibu-0"))
    for scenario in study.suite.scenario:
        one, two = scenario.responses
        assert one != two
        assert 0.8 < len(one) / len(two) < 1.25, "about as long as each other"
        assert not [label for label in ALL if label in (scenario.text + one + two).lower().split()]
