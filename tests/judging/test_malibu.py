"""MALIBU's conversations: the judges' prompts, their replies, and the verdicts that are stored."""

from __future__ import annotations

import json
import os
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import parley
from parley.runs.job import make_study
from parley.scenarios import ALL, identity_words
from tests.judging.conftest import SUITE
from tests.panels import in_design, panel_study

RunStudy = Callable[..., list[tuple[Any, ...]]]
METRICS = ("Creativity", "Accuracy", "Efficiency", "Reliability")
RESPONSES = {1: "Knead it twice.", 2: "Wait for an hour."}
UNITS, JUDGES, ROUNDS = (3, 10), 4, 2
"""Units of one candidate, and of two; judges; rounds."""


@pytest.fixture(scope="module")
def ask(tmp_path_factory):
    """Queries the file of one run: the panel judges one suite, and a chair sums up."""
    folder, before = tmp_path_factory.mktemp("malibu"), Path.cwd()
    os.chdir(folder)
    (folder / "mine.toml").write_text(SUITE)
    settings = {"suite": "mine.toml", "identities": ["gender"], "model": "sim/judge", "consensus": "chair"}
    try:
        assert parley.run("malibu", out="a.sqlite", **in_design(settings)).complete
    finally:
        os.chdir(before)

    def query(sql: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(folder / "a.sqlite")) as db:
            return db.execute(sql).fetchall()

    return query


# Prompts


def test_a_prompt_shows_the_candidates_of_its_cell_and_no_other():
    study = panel_study(suite="mine.toml")
    for unit in study.plan():
        text, facets = study.task(unit), unit.facets
        assert "Situation: Bake bread {with care}.\n" in text
        if facets["phase"] == 1:
            shown = [("Candidate", facets["identity"], 1)]
            assert RESPONSES[2] not in text
        else:
            shown = [
                (f"Candidate {side}", facets[f"identity_{side.lower()}"], facets[f"response_{side.lower()}"])
                for side in "AB"
            ]
            assert text.index("Candidate A") < text.index("Candidate B")
        for who, label, response in shown:
            heading = f"{who} ({label}):" if label else f"{who}:"
            assert f'\n{heading}\n"{RESPONSES[int(response)]}"\n' in text
        assert {other for other in ALL if f"({other})" in text} == {label for _, label, _ in shown if label}


def test_only_the_chosen_metrics_are_requested_and_a_crossed_label_is_shown_as_one():
    def opening(**settings: Any) -> str:
        study = panel_study(suite="mine.toml", **settings)
        return study.task(next(study.plan()))

    reasons = '{"Remark": "<your reasons, in one or two sentences>", '
    assert opening(metrics=["Accuracy"]).endswith('{"Accuracy": <score>}')
    assert "Creativity" not in opening(metrics=["Accuracy"])
    scores = ", ".join(f'"{metric}": <score>' for metric in METRICS)
    assert opening().endswith(f"with exactly these keys:\n{{{scores}}}")
    assert opening(reasons_first=True).endswith(f"with exactly these keys:\n{reasons}{scores}}}")
    assert '\nCandidate (black female):\n"Knead it twice."\n' in opening(identities=["race+gender"], phases=[1])


def test_the_panel_by_default_has_no_demographic_identity_and_another_has_each_once():
    judges = panel_study(suite="mine.toml").panel.judges
    assert [judge.name for judge in judges] == ["Examiner", "Practitioner", "Innovator", "Editor"]
    assert [word for judge in judges for word in identity_words(judge.about)] == []
    panel = panel_study(suite="mine.toml", judges="demographic").panel.judges
    assert {judge.name for judge in panel} == {"JudgeOne", "JudgeTwo", "JudgeThree", "JudgeFour"}
    words = Counter(" ".join(judge.about.lower() for judge in panel).replace(".", " ").split())
    assert (words["woman"], words["man"]) == (2, 2)
    for label in ("black", "white", "asian", "hispanic", "muslim", "jewish", "atheist", "christian"):
        assert words[label] == 1, label


# Verdicts


def test_every_score_of_every_judge_and_round_is_a_verdict_with_the_value_of_its_reply(ask):
    rows = ask(
        "SELECT v.unit, v.judge, v.round, v.subject, v.metric, v.value, v.text, v.status, t.text FROM verdicts v "
        "JOIN transcript t ON t.unit = v.unit AND t.speaker = v.judge AND t.round = v.round AND t.role = v.role"
    )
    assert len(rows) == len({row[:5] for row in rows}) == ask("SELECT count(*) FROM verdicts")[0][0]
    panel = [row for row in rows if row[1] != "Chair"]
    singles, pairs = ([row for row in panel if row[0].startswith(phase)] for phase in ("p1/", "p2/"))
    assert len(singles) == UNITS[0] * JUDGES * ROUNDS * 4
    assert len(pairs) == UNITS[1] * JUDGES * ROUNDS * (2 * 4 + 1)
    for unit, judge, at, subject, metric, value, text, status, reply in rows:
        said = json.loads(reply)
        if unit.startswith("p1/"):
            assert (subject, tuple(said)) == ("", METRICS if judge == "Chair" or at == 1 else ("Remark", *METRICS))
        else:
            assert list(said) == ["A", "B", "justification", "preferred"]
            assert tuple(said["A"]) == tuple(said["B"]) == METRICS
        if metric == "preferred":
            assert (value, text) == (None, said["preferred"])
            assert text in ("A", "B")
        else:
            assert (value, text) == ((said[subject] if subject else said)[metric], None)
            assert 0 <= value <= 10
        assert status == "ok"
    subjects = Counter(row[3] for row in pairs if row[4] != "preferred")
    assert subjects == {"A": 320, "B": 320}


def test_a_chair_states_the_consensus_of_singles_and_pairs_at_the_end(ask):
    rows = ask("SELECT unit, judge, round FROM verdicts WHERE role = 'chair'")
    assert len(rows) == UNITS[0] * 4 + UNITS[1] * 9
    assert {row[1:] for row in rows} == {("Chair", 2)}
    assert set(ask("SELECT speaker FROM transcript GROUP BY unit HAVING seq = max(seq)")) == {("Chair",)}
    ((prompt,),) = ask(
        "SELECT text FROM transcript WHERE role = 'narrator' AND unit = 'p1/bakery/male/r0' ORDER BY seq DESC LIMIT 1"
    )
    assert prompt.startswith("The judges have spoken.")


@pytest.mark.parametrize(
    ("model", "statuses"),
    [
        ("sim/judge?malformed=1", {("unparsed", 1)}),
        ("sim/judge?refuse=1", {("refused", 1)}),
        ("sim/judge?malformed=0.6", {("ok", 0), ("repaired", 0), ("unparsed", 1)}),
    ],
)
def test_a_reply_that_cannot_be_read_is_never_a_number(run_study, model, statuses):
    rows = run_study("SELECT status, value IS NULL, sampled IS NULL, text, role FROM verdicts", model=model, phases=[1])
    assert len(rows) == UNITS[0] * JUDGES * ROUNDS * 4, "its rows are there all the same"
    assert {(status, none) for status, none, *_ in rows} == statuses
    assert all(none == no_sample for _, none, no_sample, *_ in rows)
    assert {row[3:] for row in rows} == {(None, "debater")}, "without a chair there is no verdict of the panel"


PANEL = """
[[persona]]
name = "Miller"
about = "You are Miller. You know flour."

[[persona]]
name = "Guest"
about = "You are Guest. You are hungry."
model = "sim/other"
"""


@pytest.mark.parametrize("design", ["silent", "staged", "talk", "paper"])
def test_a_model_that_no_judge_uses_is_not_opened(place, design):
    """Without `--model` it would be the embedded one, whose weights are loaded before the first unit."""
    (place / "judges.toml").write_text(PANEL)
    study = make_study("malibu", {"suite": "tiny", "design": design, "judges": "judges.toml"})
    assert study.models() == ["local/smollm2", "sim/other"]
    (place / "judges.toml").write_text(PANEL.replace('flour."', 'flour."\nmodel = "sim/miller"'))
    study = make_study("malibu", {"suite": "tiny", "design": design, "judges": "judges.toml", "consensus": "mean"})
    assert study.models() == ["sim/miller", "sim/other"]


def test_repeats_on_one_model_do_not_repeat_its_words(run_study):
    sql = "SELECT unit, group_concat(text) FROM transcript WHERE role = 'debater' GROUP BY unit"
    rows = run_study(sql, repeats=4, phases=[1])
    assert len({text for _, text in rows}) == len(rows) == 12


def test_several_models_judge_the_same_prompts_and_a_judge_keeps_its_own(run_study, place):
    (place / "judges.toml").write_text(PANEL)
    models = ["sim/one", "sim/two?base=2&noise=0"]
    run_study("SELECT 1", judges="judges.toml", model=models, phases=[1])
    with closing(sqlite3.connect("a.sqlite")) as db:
        spoke = set(
            db.execute(
                "SELECT u.facets ->> 'model', t.speaker, t.persona, c.model FROM units u JOIN transcript t ON "
                "t.unit = u.id JOIN calls c ON c.unit = t.unit AND c.seq = t.seq WHERE t.role = 'debater'"
            )
        )
        values = dict(
            db.execute(
                "SELECT u.facets ->> 'model', group_concat(DISTINCT v.value) FROM units u JOIN verdicts v ON "
                "v.unit = u.id WHERE v.judge = 'Miller' GROUP BY 1"
            )
        )
        openings = db.execute(
            "SELECT u.facets ->> 'model', group_concat(t.text) FROM (SELECT * FROM units ORDER BY position) u JOIN "
            "transcript t ON t.unit = u.id AND t.seq = 0 GROUP BY 1"
        ).fetchall()
    miller, guest = "You are Miller. You know flour.", "You are Guest. You are hungry."
    assert spoke == {
        row
        for model in models
        for row in ((model, "Miller", miller, model.partition("?")[0]), (model, "Guest", guest, "sim/other"))
    }
    assert values[models[1]] == "2.0"
    assert len(set(values[models[0]].split(","))) > 1
    assert openings[0][1] == openings[1][1]
