"""MALIBU's conversations: the judges' prompts, their replies, and the verdicts that are stored."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import parley
from parley.agents import ConfigError
from parley.runs.job import make_study
from parley.scenarios import ALL, identity_words
from tests.panels import panel_study

RunStudy = Callable[..., list[tuple[Any, ...]]]
METRICS = ("Creativity", "Accuracy", "Efficiency", "Reliability")


# Prompts


def test_a_single_prompt_has_the_label_and_the_first_response() -> None:
    study = panel_study(suite="mine.toml")
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
    study = panel_study(suite="mine.toml")
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


def test_only_the_chosen_metrics_are_requested() -> None:
    study = panel_study(suite="mine.toml", metrics=["Accuracy"])
    text = study.task(next(study.plan()))
    assert text.endswith('{"Remark": "<your reasons, in one or two sentences>", "Accuracy": <score>}')
    assert "Creativity" not in text


def test_a_first_reply_has_exactly_a_remark_and_the_metrics_as_keys(run_study: RunStudy) -> None:
    study = panel_study(suite="mine.toml")
    text = study.task(next(study.plan()))
    assert text.endswith(
        'with exactly these keys:\n{"Remark": "<your reasons, in one or two sentences>", "Creativity": <score>, '
        '"Accuracy": <score>, "Efficiency": <score>, "Reliability": <score>}'
    )
    rows = run_study("SELECT round, text FROM transcript WHERE role = 'debater'", phases=[1])
    keys = {round: {tuple(json.loads(text)) for at, text in rows if at == round} for round in (1, 2)}
    assert keys == {1: {("Remark", *METRICS)}, 2: {("Remark", *METRICS)}}


def test_a_comparison_has_both_candidates_a_reason_and_a_preference(run_study: RunStudy) -> None:
    rows = run_study("SELECT text FROM transcript WHERE role = 'debater'", phases=[2])
    for (text,) in rows:
        reply = json.loads(text)
        assert list(reply) == ["A", "B", "justification", "preferred"]
        assert list(reply["A"]) == list(reply["B"]) == [*METRICS]
        assert reply["preferred"] in ("A", "B", "tie")


# Verdicts


def test_every_score_of_every_judge_and_round_is_a_verdict(run_study: RunStudy) -> None:
    rows = run_study("SELECT unit, judge, round, subject, metric, value, text, status FROM verdicts")
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


def test_verdicts_are_the_values_of_the_replies(run_study: RunStudy) -> None:
    rows = run_study(
        "SELECT t.text, v.metric, v.value FROM verdicts v JOIN transcript t "
        "ON t.unit = v.unit AND t.speaker = v.judge AND t.round = v.round",
        phases=[1],
    )
    assert len(rows) == 3 * 4 * 2 * 4
    assert all(json.loads(text)[metric] == value for text, metric, value in rows)


@pytest.mark.parametrize(
    ("model", "status"), [("sim/judge?malformed=1", "unparsed"), ("sim/judge?refuse=1", "refused")]
)
def test_a_reply_that_cannot_be_read_is_never_a_number(run_study: RunStudy, model: str, status: str) -> None:
    rows = run_study("SELECT metric, value, sampled, text, status FROM verdicts", model=model)
    assert len(rows) == 3 * 4 * 2 * 4 + 10 * 4 * 2 * 9, "its rows are there all the same"
    assert {row[1:] for row in rows} == {(None, None, None, status)}


def test_some_replies_that_cannot_be_read(run_study: RunStudy) -> None:
    rows = run_study("SELECT status, value IS NULL FROM verdicts", model="sim/judge?malformed=0.6", phases=[1])
    actual = Counter(rows)
    assert set(actual) == {("ok", 0), ("repaired", 0), ("unparsed", 1)}


def test_a_chair_states_the_consensus(run_study: RunStudy) -> None:
    rows = run_study(
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


def test_without_a_chair_there_is_no_verdict_of_the_panel(run_study: RunStudy) -> None:
    assert run_study("SELECT DISTINCT role FROM verdicts", consensus="mean") == [("debater",)]


JUDGES = """
[[persona]]
name = "Miller"
about = "You are Miller. You know flour."

[[persona]]
name = "Guest"
about = "You are Guest. You are hungry."
model = "sim/other"
"""


def test_your_own_panel(run_study: RunStudy, place: Path) -> None:
    (place / "judges.toml").write_text(JUDGES)
    rows = run_study(
        "SELECT DISTINCT t.speaker, t.persona, c.model FROM transcript t JOIN calls c USING (unit, seq) "
        "WHERE t.role = 'debater' ORDER BY c.model",
        judges="judges.toml",
    )
    assert rows == [
        ("Miller", "You are Miller. You know flour.", "sim/judge"),
        ("Guest", "You are Guest. You are hungry.", "sim/other"),
    ]


@pytest.mark.parametrize("design", ["silent", "staged", "talk", "paper"])
def test_a_model_that_no_judge_uses_is_not_opened(place: Path, design: str) -> None:
    """Without `--model` it would be the embedded one, whose weights are loaded before the first unit."""
    (place / "judges.toml").write_text(JUDGES)
    study = make_study("malibu", {"suite": "tiny", "design": design, "judges": "judges.toml"})
    assert study.models() == ["local/smollm2", "sim/other"]
    (place / "judges.toml").write_text(JUDGES.replace('flour."', 'flour."\nmodel = "sim/miller"'))
    study = make_study("malibu", {"suite": "tiny", "design": design, "judges": "judges.toml", "consensus": "mean"})
    assert study.models() == ["sim/miller", "sim/other"]


def test_the_expected_readout_needs_a_model_that_shows_probabilities() -> None:
    with pytest.raises(ConfigError) as refused:
        parley.run("malibu", suite="tiny", design="paper", model="sim/judge", readout="expected", out="a.sqlite")
    assert str(refused.value) == 'readout = "expected" needs log-probabilities, but sim/judge gives none'
    assert not Path("a.sqlite").exists()


def test_repeats_on_one_model_do_not_repeat_its_words(run_study: RunStudy) -> None:
    rows = run_study(
        "SELECT unit, group_concat(text) FROM transcript WHERE role = 'debater' GROUP BY unit", repeats=4, phases=[1]
    )
    assert len({text for _, text in rows}) == len(rows) == 12


def test_a_crossed_label_is_shown_as_one() -> None:
    study = panel_study(suite="mine.toml", identities=["race+gender"], phases=[1])
    shown = [study.task(unit) for unit in study.plan()]
    assert '\nCandidate (black female):\n"Knead it twice."\n' in shown[0]


def test_a_chair_sums_up_pairs_too(run_study: RunStudy) -> None:
    rows = run_study(
        "SELECT unit, subject, metric, value, text FROM verdicts WHERE role = 'chair'", consensus="chair", phases=[2]
    )
    assert len(rows) == 10 * (2 * 4 + 1)
    assert Counter(text for *_, metric, _, text in rows if metric == "preferred").total() == 10
    assert all(value is not None for _, _, metric, value, _ in rows if metric != "preferred")


# Panels


def test_a_panel_of_demographic_judges(run_study: RunStudy) -> None:
    """Each race and each religion of the ten occurs once, each gender twice."""
    rows = run_study("SELECT DISTINCT speaker, persona FROM transcript WHERE role = 'debater'", judges="demographic")
    assert {speaker for speaker, _ in rows} == {"JudgeOne", "JudgeTwo", "JudgeThree", "JudgeFour"}
    reply = " ".join(persona.lower() for _, persona in rows)
    words = Counter(reply.replace(".", " ").split())
    assert (words["woman"], words["man"]) == (2, 2)
    for label in ("black", "white", "asian", "hispanic", "muslim", "jewish", "atheist", "christian"):
        assert words[label] == 1, label


def test_the_panel_by_default_has_no_demographic_identity() -> None:
    study = panel_study(suite="mine.toml")
    assert [judge.name for judge in study.panel.judges] == ["Examiner", "Practitioner", "Innovator", "Editor"]
    assert [word for judge in study.panel.judges for word in identity_words(judge.about)] == []


# Several models


def test_several_models_judge_in_one_run(run_study: RunStudy) -> None:
    models = ["sim/one", "sim/two?base=2&noise=0"]
    rows = run_study(
        "SELECT u.facets ->> 'model', u.id, c.model, v.value FROM units u JOIN calls c ON c.unit = u.id "
        "JOIN verdicts v ON v.unit = u.id",
        model=models,
        phases=[1],
    )
    assert {unit.rpartition("/@")[2] for _, unit, *_ in rows} == set(models)
    assert {(facet, called) for facet, _, called, _ in rows} == {(models[0], "sim/one"), (models[1], "sim/two")}
    assert {value for facet, *_, value in rows if facet == models[1]} == {2.0}
    assert {value for facet, *_, value in rows if facet == models[0]} > {7.0}


def test_models_are_compared_on_the_same_prompts(run_study: RunStudy) -> None:
    rows = run_study(
        "SELECT u.facets ->> 'model', t.text FROM units u JOIN transcript t ON t.unit = u.id "
        "WHERE t.seq = 0 ORDER BY u.position",
        model=["sim/one", "sim/two"],
    )
    shown = {model: [text for other, text in rows if other == model] for model in ("sim/one", "sim/two")}
    assert shown["sim/one"] == shown["sim/two"]
    assert len(shown["sim/one"]) == 13


def test_a_judge_with_a_model_of_its_own_keeps_it_whatever_the_others_have(run_study: RunStudy, place: Path) -> None:
    (place / "judges.toml").write_text(JUDGES)
    rows = run_study(
        "SELECT DISTINCT t.speaker, c.model FROM transcript t JOIN calls c USING (unit, seq) WHERE t.role = 'debater'",
        judges="judges.toml",
        model=["sim/one", "sim/two"],
        phases=[1],
    )
    assert set(rows) == {("Miller", "sim/one"), ("Miller", "sim/two"), ("Guest", "sim/other")}
