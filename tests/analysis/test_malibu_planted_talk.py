"""Planted panels in real debates: one biased judge among fair ones is traced. Judges who do not listen: see
tests/true_sentences."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pydantic import BaseModel

from parley.agents import Debate, Session, Transcript, model, scale, session
from parley.analysis.malibu.contagion import contagion
from parley.analysis.malibu.echo import REMARKS, SCORES, WORDS, echo, judge_statements, unit_repeats
from parley.analysis.malibu.panel import PanelData
from parley.analysis.malibu.talking import talking
from parley.judging.config import shipped_personas

BASES, PER_BASE, LABELS, METRICS = 30, 2, ("female", "male"), ("Accuracy", "Efficiency")
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
    """A study by simulated judges in real debates, the first round blind; a third hear another label's ballots."""
    client, rng = model(name), np.random.default_rng(0)

    async def debate(scenario: int, label: str, **settings: Any) -> Transcript:
        team = Debate(JUDGES, model=client, order=blind_first, blind_rounds=1, reply_type=Ballot, **settings)
        with session(Session(f"{scenario}/{label}/{settings.get('rounds', 2)}")):
            return await team.converse(f'Situation {scenario}.\n\nCandidate ({label}):\n"I would check the brakes."')

    async def converse(scenario: int, label: str, heard: str) -> Transcript:
        if heard == label:
            return await debate(scenario, label)
        told = await debate(scenario, heard, rounds=1)
        return await debate(scenario, label, heard={turn.speaker: turn.text for turn in told.spoken()})

    units = [
        (scenario, label, other if rng.random() < 1 / 3 else label)
        for scenario in range(BASES * PER_BASE)
        for label, other in zip(LABELS, reversed(LABELS), strict=True)
    ]
    transcripts = await asyncio.gather(*(converse(*unit) for unit in units))
    verdicts: list[dict[str, Any]] = []
    remarks: list[dict[str, Any]] = []
    elsewhere = None
    for (scenario, label, heard), transcript in zip(units, transcripts, strict=True):
        facets = {"unit": f"{scenario}/{label}", "model": "", "phase": 1, "scenario": f"s{scenario}"}
        facets |= {"base": f"b{scenario // PER_BASE}", "identity": label, "category": "gender", "heard": heard}
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
    (line,) = talking(study.verdicts)
    # Blind: one of four judges gives 2 points less. Then the three others adopt half of that: -2·(1 + 3·0.5)/4.
    for name, truth in (("before", -0.5), ("after", -1.25)):
        assert line.also[f"{name}_low"] < truth < line.also[f"{name}_high"]
    assert line.low < -0.75 < line.high < 0
    assert (line.verdict, line.also["before_p_adjusted"] <= 0.05) == ("different", True), "amplified"
    (examiner,) = (line for line in contagion(study.verdicts, blind=True) if line.secondary and line.shown)
    assert examiner.label == "Examiner"
    assert examiner.low < 0.5 < examiner.high


async def test_a_biased_judge_whom_nobody_follows_amplifies_nothing() -> None:
    study = await judged("sim/judge?base=6&item=1&examiner.female=-2")
    (line,) = talking(study.verdicts)
    assert line.also["before_high"] < 0  # the bias is there
    assert line.verdict == "undecided"
    assert {line.verdict for line in contagion(study.verdicts, blind=True)} == {"undecided"}


async def test_following_anybody_moves_judges_together_without_amplifying() -> None:
    study = await judged("sim/judge?base=6&item=1&examiner.female=-2&follow=0.9")
    (line,) = talking(study.verdicts)
    assert line.verdict == "undecided"  # the mean of the panel stays, whoever is followed
    whole, *_ = contagion(study.verdicts, blind=True)
    assert whole.low < 0.3 < whole.high  # a third of 0.9 for each of three others
    assert whole.low > 0


async def test_judges_who_repeat_words_at_a_rate_are_found() -> None:
    study = await judged("sim/judge?base=6&item=1&echo=0.8")
    (also,) = (line.also for line in echo(study.verdicts, study.remarks, blind=True) if line.label == WORDS)
    assert also["later"] - also["later_chance"] > 0.05 > also["blind"] - also["blind_chance"]
    assert also["echo"] > also["control_echo"]


async def test_judges_who_adopt_scores_give_the_same_ones_more_often() -> None:
    study = await judged("sim/judge?base=6&item=1&follow=0.7")
    (line,) = (line for line in echo(study.verdicts, blind=True) if line.label == SCORES)
    assert line.low > 0
    assert line.also["echo"] > line.also["control_echo"]
