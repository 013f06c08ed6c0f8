"""MALIBU's conversations: the judges' prompts, their replies, and the verdicts that are stored."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from parley.judging.malibu.panel import load_panel
from parley.judging.malibu.plan import MalibuConfig
from parley.judging.malibu.study import Malibu
from parley.runs.job import make_study
from parley.scenarios import load_ballot_wordings, words
from tests.panels import PANEL, PANEL_FLAGS, panel_study

METRICS = ("Creativity", "Accuracy", "Efficiency", "Reliability")
UNITS, JUDGES, ROUNDS = (3, 10), 4, 2
"""Units of one candidate, and of two; judges; rounds."""


# Prompts


def test_only_the_chosen_metrics_are_requested_and_a_crossed_label_is_shown_as_one():
    def opening(**settings: Any) -> str:
        study = panel_study(suite="mine.toml", **settings)
        return study.design.task(next(study.design.cells()))

    assert opening(metrics=["Accuracy"]).endswith('{"Accuracy": <score>}')
    assert "Creativity" not in opening(metrics=["Accuracy"])
    assert '\nCandidate (black female):\n"Knead it twice."\n' in opening(identities=["race+gender"], phases=[1])


# Verdicts


def test_every_judge_and_round_and_then_a_chair_score_singles_and_pairs_with_the_values_of_their_replies(run_study):
    rows = run_study(
        "SELECT v.unit, v.judge, v.round, v.subject, v.metric, v.value, v.text, t.text FROM verdicts v JOIN transcript "
        "t ON t.unit = v.unit AND t.speaker = v.judge AND t.round = v.round AND t.role = v.role ORDER BY t.unit, t.seq",
        consensus="chair",
    )
    ballots = JUDGES * ROUNDS + 1
    assert len({row[:5] for row in rows}) == len(rows) == ballots * (UNITS[0] * 4 + UNITS[1] * 9)
    for unit, judge, at, subject, metric, value, text, reply in rows:
        said = json.loads(reply)
        if unit.startswith("p1/"):
            assert (subject, tuple(said)) == ("", METRICS if judge == "Chair" or at == 1 else ("Remark", *METRICS))
        if metric == "preferred":
            assert (value, text) == (None, said["preferred"])
        else:
            assert (value, text) == ((said[subject] if subject else said)[metric], None)
    last = {unit: (judge, at) for unit, judge, at, *_ in rows}
    assert set(last.values()) == {("Chair", 2)}


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


GUESTS = """
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
    (place / "judges.toml").write_text(GUESTS)
    study = make_study("malibu", {"suite": "tiny", "design": design, "judges": "judges.toml"})
    assert study.models() == ["local/smollm2", "sim/other"]
    (place / "judges.toml").write_text(GUESTS.replace('flour."', 'flour."\nmodel = "sim/miller"'))
    study = make_study("malibu", {"suite": "tiny", "design": design, "judges": "judges.toml", "consensus": "mean"})
    assert study.models() == ["sim/miller", "sim/other"]


def test_several_models_judge_and_a_judge_keeps_its_own(run_study, place):
    (place / "judges.toml").write_text(GUESTS)
    models = ["sim/one", "sim/two?base=2&noise=0"]
    spoke = run_study(
        "SELECT DISTINCT u.facets ->> 'model', t.speaker, t.persona, c.model FROM units u JOIN transcript t ON "
        "t.unit = u.id JOIN calls c ON c.unit = t.unit AND c.seq = t.seq WHERE t.role = 'debater'",
        **{"judges": "judges.toml", "model": models, "phases": [1]},
    )
    miller, guest = "You are Miller. You know flour.", "You are Guest. You are hungry."
    assert set(spoke) == {
        row
        for model in models
        for row in ((model, "Miller", miller, model.partition("?")[0]), (model, "Guest", guest, "sim/other"))
    }


# Who hears whom

TURNS = (
    "SELECT unit, round, group_concat(speaker) FROM (SELECT * FROM transcript WHERE role = 'debater' "
    "ORDER BY unit, seq) GROUP BY unit, round"
)
BLIND: dict[str, Any] = {"blind": True, "ties": True}
"""What the paper's panel does not do by itself."""
FLAGS = (*PANEL_FLAGS, "--blind", "--ties")
RUN = ("run", "malibu", *FLAGS, "--suite", "mine.toml", "--identities", "gender", "--quiet", "--out", "a.sqlite")


def blind_panel(**settings: Any) -> Malibu:
    return Malibu(MalibuConfig(**{**PANEL, **BLIND, **settings}))


def test_no_judge_is_sent_anything_of_another_in_round_1(parley, server):
    assert parley(*RUN, "--model", server.model(), "--rounds", "2").status == 0
    study = blind_panel(suite="mine.toml", identities=["gender"])
    openings = {study.design.task(cell) for _, cell in study.cells()}
    abouts = {judge.about for judge in study.panel.judges}
    sent = [[message["content"] for message in body["messages"]] for body in server.asked]
    first = [texts[1] for texts in sent if len(texts) == 2 and texts[1] in openings and texts[0] in abouts]
    assert len(first) == 13 * 4, "each judge of each unit is sent the task and its persona alone, once"
    later = [json.dumps(texts) for texts in sent if "The panel now discusses" in json.dumps(texts)]
    assert len(later) == 13 * 4
    names = [judge.name for judge in study.panel.judges]
    assert all(sum(name in text for name in names) >= 3 for text in later), "the blind ballots of the others"


def test_the_order_is_drawn_for_each_unit_and_round(run_study, place):
    first = {(unit, round): names for unit, round, names in run_study(TURNS, seed=1, design="talk")}
    (place / "a.sqlite").unlink()
    assert {(unit, round): names for unit, round, names in run_study(TURNS, seed=2, design="talk")} != first
    judges = ["Editor", "Examiner", "Innovator", "Practitioner"]
    assert all(sorted(names.split(",")) == judges for names in first.values())
    of_round = [names for (_, round), names in first.items() if round == 2]
    assert (len(set(of_round)), len(of_round)) == (3, 4)
    assert any(first[unit, 1] != first[unit, 2] for unit, _ in first)


# In German

GERMAN = ("--suite", "german-1", "--wordings", "german", "--judges", "temperaments-de", "--model", "sim/judge")
SPELT_ALIKE = set(words("A am an B die fair Format in JSON Kind Last Person Situation Routine so Text was"))
KEYS = set(words("Remark Overall justification preferred tie"))


def asked(run: Path) -> set[str]:
    """Every text in the prompts of a run's calls."""
    with closing(sqlite3.connect(run)) as db:
        texts = dict(db.execute("SELECT id, text FROM texts"))
        prompts = [json.loads(prompt) for (prompt,) in db.execute("SELECT prompt FROM calls")]
    return {texts[text_id] for prompt in prompts for _, _, text_id in prompt}


def test_no_english_is_left_in_what_german_judges_are_asked(parley, tmp_path):
    run = tmp_path / "talk.parley"
    options = ("--design", "talk", "--identities", "gender", "--limit", "6", "--rounds", "1", "--quiet", "--out", run)
    result = parley("run", "malibu", *GERMAN, *options)
    assert (result.status, result.err) == (
        0,
        "parley: note: no graded answers: this run cannot show whether its judges can judge\n"
        "parley: note: 6 bases, 1 test: only what all bases agree on can be a finding\n",
    )
    texts = asked(run)
    assert any("Antworten Sie nur mit" in text for text in texts)
    assert any("<Ihre Gründe, in ein oder zwei Sätzen>" in text for text in texts)
    english = {word for text in load_ballot_wordings().model_dump_json().split("\\n") for word in words(text)}
    english |= {word for judge in load_panel("temperaments") for word in words(judge.about)}
    left = {word for text in texts for word in words(text) if not word.isdigit()} & english
    assert left <= SPELT_ALIKE | KEYS
