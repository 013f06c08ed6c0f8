"""Who hears whom on MALIBU's panel: blind first ballots, an order drawn for each unit, and the paper's protocol."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from parley.agents import Models
from parley.judging.malibu.config import MalibuConfig
from parley.judging.malibu.study import Malibu
from tests.panels import PANEL, PANEL_FLAGS, in_design

RunStudy = Callable[..., list[tuple[Any, ...]]]
Command = Callable[..., Any]
METRICS = ("Creativity", "Accuracy", "Efficiency", "Reliability")
JUDGES = ["Examiner", "Practitioner", "Innovator", "Editor"]
TURNS = "SELECT unit, round, speaker FROM transcript WHERE role = 'debater' ORDER BY unit, seq"
BLIND: dict[str, Any] = {"blind": True, "speaking_order": "shuffled", "ties": True, "reasons_first": True}
"""What the paper's panel does not do by itself."""
FLAGS = (*PANEL_FLAGS, "--blind", "--speaking-order", "shuffled", "--ties", "--reasons-first")
RUN = ("run", "malibu", *FLAGS, "--suite", "mine.toml", "--identities", "gender", "--quiet", "--out", "a.sqlite")


def panel_study(**settings: Any) -> Malibu:
    """The panel with blind ballots, unless the settings name a design."""
    return Malibu(MalibuConfig(**in_design(settings, {**PANEL, **BLIND})))


def orders(rows: list[tuple[Any, ...]]) -> dict[tuple[str, int], tuple[str, ...]]:
    """Who spoke, in order, by unit and round."""
    spoken: dict[tuple[str, int], tuple[str, ...]] = {}
    for unit, round, speaker in rows:
        spoken[unit, round] = (*spoken.get((unit, round), ()), speaker)
    return spoken


# Blind ballots


@pytest.mark.parametrize("personas", ["system", "last"])
def test_no_judge_is_sent_anything_of_another_in_round_1(parley, server, personas):
    command = (*RUN, "--personas", personas, "--model", server.model())
    assert parley(*command, "--rounds", "2").status == 0
    study = panel_study(suite="mine.toml", identities=["gender"])
    openings = {study.task(unit) for unit in study.plan()}
    abouts = {judge.about for judge in study.panel.judges}
    sent = [[message["content"] for message in body["messages"]] for body in server.asked]
    if personas == "last":  # one message, whose parts are joined
        first = [text for (text,) in sent if any(text == f"{task}\n\n{who}" for task in openings for who in abouts)]
    else:
        first = [texts[1] for texts in sent if len(texts) == 2 and texts[1] in openings and texts[0] in abouts]
    assert len(first) == 13 * 4, "each judge of each unit is sent the task and its persona alone, once"
    later = [json.dumps(texts) for texts in sent if "The panel now discusses" in json.dumps(texts)]
    assert len(later) == 13 * 4
    assert all(text.count("remark") >= 4 for text in later), "the four blind ballots, with their reasons"


def test_round_1_asks_for_reasons_no_longer_than_a_remark_may_be():
    for suite, settings, chars in (
        ("tiny", {}, 80),
        ("full", {"per_base": 1}, 600),
        ("full", {"remark_chars": 90}, 90),
    ):
        study = panel_study(suite=suite, phases=[1], model="sim/judge", **settings)
        (first, *_) = asyncio.run(study.run(next(study.plan()), Models())).transcript.spoken(round=1)
        assert first.verdict is not None
        properties = type(first.verdict).model_json_schema()["properties"]
        assert properties["Remark"]["maxLength"] == chars, "where decoding is constrained, it ends there"
        assert tuple(properties) == ("Remark", *METRICS), "reasons come first: they are not made up for the scores"


# The order of speaking


def test_the_order_is_drawn_for_each_unit_and_round(run_study, place):
    first = orders(run_study(TURNS, seed=1, **BLIND))
    (place / "a.sqlite").rename("b.sqlite")
    assert orders(run_study(TURNS, seed=1, **BLIND)) == first, "by the seed"
    (place / "a.sqlite").unlink()
    assert orders(run_study(TURNS, seed=2, **BLIND)) != first
    assert all(sorted(names) == sorted(JUDGES) for names in first.values())
    assert len({names for (_, round), names in first.items() if round == 2}) > 5, "of 13 units"
    assert any(first[unit, 1] != first[unit, 2] for unit, _ in first)


# The paper's protocol


def test_the_papers_panel_speaks_in_a_fixed_order_and_each_hears_those_before():
    study = panel_study(suite="mine.toml", design="paper", model="sim/judge")
    for unit in study.plan():
        turns = asyncio.run(study.run(unit, Models())).transcript.spoken()
        assert [turn.speaker for turn in turns] == JUDGES * 2
        for nth, turn in enumerate(turns[:4]):
            assert [piece.source for piece in turn.calls[0].prompt[2:]] == JUDGES[:nth]


def test_in_the_papers_design_a_judge_must_choose(run_study, place):
    """A judge without noise gives both the same scores: a tie, where one is allowed."""
    preferred = "SELECT text FROM verdicts WHERE metric = 'preferred'"
    assert set(run_study(preferred, model="sim/judge?noise=0", ties=True)) == {("tie",)}
    (place / "a.sqlite").unlink()
    assert set(run_study(preferred, model="sim/judge?noise=0", design="paper")) == {("A",), ("B",)}
    study = panel_study(suite="mine.toml", design="paper", phases=[2])
    text = study.task(next(study.plan()))
    assert 'choose one preferred candidate ("A" or "B": you must determine which is superior)' in text
    assert '"preferred": "<A or B>"' in text
    assert "tie" not in text.lower()


# What is stored


@pytest.mark.parametrize(
    ("flags", "stored", "ballots"),
    [
        ((), {"blind": True, "speaking_order": "shuffled", "ties": True}, "round 1"),
        (("--speaking-order", "fixed"), {"blind": True, "speaking_order": "fixed", "ties": True}, "round 1"),
        (("--no-ties",), {"blind": True, "speaking_order": "shuffled", "ties": False}, "round 1"),
        (("--no-blind",), {"blind": False, "speaking_order": "shuffled", "ties": True}, "none"),
    ],
)
def test_a_run_file_says_whether_round_1_was_blind(parley, run_file, flags, stored, ballots):
    assert parley(*RUN, *flags, "--model", "sim/judge").status == 0
    file = run_file("a.sqlite")
    config = json.loads(file.one("SELECT value FROM run WHERE key = 'config'"))
    assert {key: config[key] for key in stored} == stored
    plan = json.loads(file.one("SELECT value FROM run WHERE key = 'analysis_plan'"))
    assert plan["protocol"] == {"rounds": 2, "estimands": "last round (2)", "blind ballots": ballots, **stored}
    assert parley(*RUN, *flags, "--model", "sim/judge").status == 0, "and the same command resumes it"
