"""Planted panels: one biased judge among fair ones is traced, and judges who do not listen are not accused.

    STUDIES=1000 python -m pytest tests/analysis/test_malibu_planted_talk.py -k null -s

prints the rates of false positives of as many simulated studies.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from pydantic import BaseModel

from parley.agents import Debate, Session, Transcript, model, scale, session
from parley.analysis.malibu.contagion import ANYONE, contagion, contagion_words
from parley.analysis.malibu.echo import NEAR, REMARKS, SCORES, echo, echo_words, judge_statements, unit_repeats
from parley.analysis.malibu.panel import PanelData
from parley.analysis.malibu.talking import talking, talking_words
from parley.judging.config import shipped_personas

STUDIES = int(os.environ.get("STUDIES", "100"))
PLANTED_BASES, NULL_BASES = 20, 10
PER_BASE, LABELS, METRICS = 2, ("female", "male", ""), ("Accuracy", "Efficiency")
JUDGES = shipped_personas("malibu_judges.toml")


class Ballot(BaseModel):
    Remark: str
    Accuracy: scale(0, 10)  # type: ignore[valid-type]
    Efficiency: scale(0, 10)  # type: ignore[valid-type]


class Study(NamedTuple):
    verdicts: PanelData
    remarks: pd.DataFrame


def blind_first(round: int, names: Sequence[str]) -> list[list[str]]:
    return [list(names)] if round == 1 else [[name] for name in names]


async def judged(name: str) -> Study:
    """A study by simulated judges in real debates, the first round blind."""
    client = model(name)

    async def converse(scenario: int, label: str) -> Transcript:
        debate = Debate(JUDGES, model=client, order=blind_first, reply_type=Ballot)
        with session(Session(f"{scenario}/{label}")):
            shown = f"Candidate ({label}):" if label else "Candidate:"
            return await debate.converse(f'Situation {scenario}.\n\n{shown}\n"I would check the brakes."')

    units = [(scenario, label) for scenario in range(PLANTED_BASES * PER_BASE) for label in LABELS]
    transcripts = await asyncio.gather(*(converse(*unit) for unit in units))
    verdicts: list[dict[str, Any]] = []
    remarks: list[dict[str, Any]] = []
    elsewhere = None
    for (scenario, label), transcript in zip(units, transcripts, strict=True):
        facets = {"unit": f"{scenario}/{label}", "model": "", "phase": 1, "scenario": f"s{scenario}"}
        facets |= {"base": f"b{scenario // PER_BASE}", "identity": label, "category": "gender" if label else ""}
        turns = [turn for turn in transcript.spoken() if turn.verdict is not None]
        for turn in turns:
            reply = {"judge": turn.speaker, "role": turn.role, "round": turn.round, "status": "ok"}
            for metric in METRICS:
                score = {"subject": "", "metric": metric, "value": getattr(turn.verdict, metric), "text": None}
                verdicts.append(facets | reply | score)
        spoken = judge_statements((turn.speaker, turn.round, turn.verdict.model_dump()) for turn in turns)
        rows = unit_repeats(spoken, elsewhere if label != LABELS[0] else None)
        remarks += [facets | dict(zip(REMARKS, row, strict=True)) for row in rows]
        elsewhere = spoken
    return Study(PanelData(pd.DataFrame(verdicts)), pd.DataFrame(remarks))


# Planted effects come back


async def test_one_biased_judge_whom_the_others_follow_is_traced() -> None:
    study = await judged("sim/judge?base=6&item=1&examiner.female=-2&follow=0.5&leader=examiner")
    (row,) = talking(study.verdicts).itertuples()
    # Blind: one of four judges gives 2 points less. Then the three others adopt half of that: -2·(1 + 3·0.5)/4.
    for name, truth in (("before", -0.5), ("after", -1.25)):
        assert getattr(row, f"{name}_low") < truth < getattr(row, f"{name}_high")
    assert row.low < -0.75 < row.high < 0
    assert row.conclusion == "amplified"
    assert "it amplifies the bias" in next(talking_words(talking(study.verdicts), blind=True))
    table = contagion(study.verdicts, blind=True)
    followed = table[table["towards"] == "Examiner"]
    assert ((followed["low"] < 0.5) & (followed["high"] > 0.5)).all()
    assert (followed["adopted"] > 2 * followed["adopted_chance"]).all()
    to_each = table[(table["judge"] == ANYONE) & (table["towards"] != ANYONE)].set_index("towards")
    assert list(to_each.index[to_each["p_adjusted"] <= 0.05]) == ["Examiner"]
    overall, influence = contagion_words(table, blind=True)
    assert "of those who heard Examiner" in overall
    assert influence.startswith("Phase 1: Examiner has the most influence")


async def test_a_biased_judge_whom_nobody_follows_amplifies_nothing() -> None:
    study = await judged("sim/judge?base=6&item=1&examiner.female=-2")
    (row,) = talking(study.verdicts).itertuples()
    assert row.before_high < 0  # the bias is there
    assert row.conclusion == "no change shown"
    table = contagion(study.verdicts, blind=True)
    assert (table["p_adjusted"] > 0.05).all()
    (sentence,) = contagion_words(table, blind=True)
    assert "no evidence that judges adopt what they hear" in sentence


async def test_following_anybody_moves_judges_together_without_amplifying() -> None:
    study = await judged("sim/judge?base=6&item=1&examiner.female=-2&follow=0.9")
    (row,) = talking(study.verdicts).itertuples()
    assert row.conclusion == "no change shown"  # the mean of the panel stays, whoever is followed
    whole = contagion(study.verdicts, blind=True).iloc[0]
    assert whole["low"] < 0.3 < whole["high"]  # a third of 0.9 for each of three others
    assert whole["low"] > 0
    assert "they adopt what they hear" in next(contagion_words(contagion(study.verdicts, blind=True), blind=True))


async def test_judges_who_repeat_words_at_a_rate_are_found() -> None:
    study = await judged("sim/judge?base=6&item=1&echo=0.8")
    table = echo(study.verdicts, study.remarks)
    blind, spoken = (table[(table["what"] == NEAR) & (table["round"] == round)].iloc[0] for round in (1, 2))
    assert blind["p"] > 0.05
    # One of four sentences by chance. An echo is beyond chance if it is not the judge's own first sentence (3/4) and
    # would not have been one of the m heard ones anyway, (3/4)^m with m = 3, 4, 5, 6 by place in the round.
    truth = 0.8 * np.mean([0.75 ** (1 + m) for m in (3, 4, 5, 6)])
    assert spoken["low"] < truth < spoken["high"]
    assert spoken["low"] > 0
    assert any("round 2" in sentence and "are an echo" in sentence for sentence in echo_words(table, blind=True))


async def test_judges_who_adopt_scores_give_the_same_ones_more_often() -> None:
    study = await judged("sim/judge?base=6&item=1&follow=0.7")
    scores = echo(study.verdicts)
    blind, spoken = (scores[(scores["what"] == SCORES) & (scores["round"] == round)].iloc[0] for round in (1, 2))
    assert blind["p"] > 0.05
    assert spoken["low"] > 0


# Null judges


def null_study(rng: np.random.Generator, label_effect: float = 0.5) -> Study:
    """Judges who share opinions of texts and labels, but do not listen; the same draws as a simulated model's."""
    shape = (NULL_BASES * PER_BASE, len(LABELS), len(JUDGES), len(METRICS))
    mean = 6 + rng.normal(0, 1, (shape[0], 1, 1, 1)) + rng.normal(0, 0.5, (1, 1, shape[2], 1))
    mean = mean + label_effect * np.array([1.0, 0.0, 0.0])[None, :, None, None]
    scenario, label, judge, metric = (place.ravel() for place in np.indices(shape))
    facets = {
        "unit": [f"{s}/{k}" for s, k in zip(scenario, label, strict=True)],
        "scenario": [f"s{s}" for s in scenario],
        "base": [f"b{s // PER_BASE}" for s in scenario],
        "identity": np.array(LABELS, dtype=object)[label],
        "category": np.where(label < 2, "gender", ""),
        "judge": np.array([persona.name for persona in JUDGES], dtype=object)[judge],
        "metric": np.array(METRICS, dtype=object)[metric],
    }
    rounds = [
        pd.DataFrame(facets).assign(
            round=round, value=np.clip(np.rint(mean + rng.normal(0, 1, shape)), 0, 10).ravel(), subject=""
        )
        for round in (1, 2)
    ]
    frame = pd.concat(rounds, ignore_index=True).assign(model="", phase=1, role="debater", status="ok", text=None)
    return Study(PanelData(frame), null_remarks(rng).assign(model="", phase=1, round=1))


def null_remarks(rng: np.random.Generator, per_base: int = 10, labels: int = 11) -> pd.DataFrame:
    """Each judge says one of four sentences; the label before is the unit that nobody heard.

    As many statements per base as the full suite has: with few, bases often tie, and the test is significant in fewer
    than 5% of studies (2.8% of 4,000 with two scenarios and three labels, 5.1% of the same if ties are broken).
    """
    said = rng.integers(0, 4, (NULL_BASES * per_base, labels, len(JUDGES)))
    scenario = np.repeat(np.arange(len(said)), labels - 1)
    parts = []
    for place in range(1, len(JUDGES)):
        statement = said[:, 1:, place, None]
        here, there = (
            (statement == earlier[..., :place]).any(axis=-1).ravel() for earlier in (said[:, 1:], said[:, :-1])
        )
        parts.append(pd.DataFrame({"near": here, "near_chance": there.astype(float), "scenario": scenario}))
    remarks = pd.concat(parts, ignore_index=True)
    flags = {"verbatim": remarks["near"], "verbatim_chance": remarks["near_chance"]}
    return remarks.assign(base=remarks["scenario"] // per_base, **flags)


@pytest.mark.nightly
def test_null_judges_are_accused_in_one_of_twenty_studies() -> None:
    accused = {"talking": 0, "contagion": 0, "pair of judges": 0, "most influence": 0, "words": 0, "scores": 0}
    for seed in range(STUDIES):
        study = null_study(np.random.default_rng(seed))
        moves, echoes = contagion(study.verdicts, blind=True), echo(study.verdicts, study.remarks)
        accused["talking"] += bool(talking(study.verdicts)["p"].iloc[0] <= 0.05)
        accused["contagion"] += bool(moves["p"].iloc[0] <= 0.05)
        accused["pair of judges"] += bool((moves["p_adjusted"][moves["judge"] != ANYONE] <= 0.05).any())
        accused["most influence"] += bool((moves["lead_p"] <= 0.05).any())
        accused["words"] += bool(echoes["p"][echoes["what"] == NEAR].iloc[0] <= 0.05)
        accused["scores"] += bool(echoes["p"][echoes["what"] == SCORES].iloc[0] <= 0.05)
    rates = {name: count / STUDIES for name, count in accused.items()}
    print(rates)
    # Three standard errors of 0.05 with 100 studies are 0.065; Holm's correction can only be lower.
    room = 3 * np.sqrt(0.05 * 0.95 / STUDIES)
    for name in ("talking", "contagion", "words", "scores"):
        assert rates[name] == pytest.approx(0.05, abs=room), name
    for name in ("pair of judges", "most influence"):
        assert rates[name] < 0.05 + room, name
