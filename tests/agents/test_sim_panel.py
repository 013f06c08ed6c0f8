"""Simulated judges in a panel: options by judge, adopting another judge's scores, repeating another's words."""

from __future__ import annotations

import asyncio
from statistics import fmean

import pytest
from pydantic import BaseModel

from parley.agents import ConfigError, Debate, Persona, Session, Transcript, model, scale, session
from parley.agents.persona_agent import Placement
from parley.agents.speaking_order import simultaneous

JUDGES = [Persona(name, f"You are the {name} on a panel of judges.") for name in ("Examiner", "Innovator", "Editor")]
TASK = 'Candidate ({label}):\n"I would begin with a check of the brakes."'


class Opinion(BaseModel):
    score: scale(0, 10)  # type: ignore[valid-type]
    why: str


def blind_first(round: int, names: list[str]) -> list[list[str]]:
    """Nobody hears anybody in round 1."""
    return [list(group) for group in simultaneous(round, names)] if round == 1 else [[name] for name in names]


async def debates(name: str, label: str, times: int = 60, placement: Placement = "system") -> list[Transcript]:
    client = model(name)

    async def converse(sample: int) -> Transcript:
        debate = Debate(JUDGES, model=client, order=blind_first, reply_type=Opinion, placement=placement)
        with session(Session(f"{label}{sample}")):
            return await debate.converse(TASK.format(label=label))

    return list(await asyncio.gather(*(converse(sample) for sample in range(times))))


def opinions(transcript: Transcript, round: int) -> dict[str, Opinion]:
    return {turn.speaker: turn.verdict for turn in transcript.spoken() if turn.round == round}  # type: ignore[misc]


def mean_of(transcripts: list[Transcript], judge: str, round: int) -> float:
    return fmean(opinions(transcript, round)[judge].score for transcript in transcripts)


@pytest.mark.parametrize("placement", ["system", "last"])
async def test_an_effect_by_judge_is_on_that_judge_alone(placement: Placement) -> None:
    transcripts = await debates("sim/judge?base=5&noise=0&examiner.female=-2", "female", 3, placement)
    for round in (1, 2):
        assert {name: said.score for name, said in opinions(transcripts[0], round).items()} == {
            "Examiner": 3,
            "Innovator": 5,
            "Editor": 5,
        }


async def test_an_option_by_judge_is_on_that_judge_alone() -> None:
    transcripts = await debates("sim/judge?base=5&noise=0&Editor.base=9", "male", 1)
    assert [said.score for said in opinions(transcripts[0], 1).values()] == [5, 5, 9]


@pytest.mark.parametrize("placement", ["system", "last"])
async def test_followers_adopt_the_leaders_first_scores_at_their_rate(placement: Placement) -> None:
    name = "sim/judge?base=5&noise=0&examiner.base=1&follow=0.6&leader=examiner"
    transcripts = await debates(name, "male", placement=placement)
    assert mean_of(transcripts, "Editor", 1) == 5  # nobody was heard
    # 1 with a rate of 0.6, else 5: a mean of 2.6, with a standard error of 4·√(0.24/60) = 0.25
    assert mean_of(transcripts, "Editor", 2) == pytest.approx(2.6, abs=0.8)
    assert mean_of(transcripts, "Examiner", 2) == 1  # a leader has nobody to follow


async def test_without_a_leader_anybody_is_followed() -> None:
    transcripts = await debates("sim/judge?noise=0&examiner.base=1&innovator.base=9&editor.base=5&follow=1", "male")
    scores = {opinions(transcript, 2)["Editor"].score for transcript in transcripts}
    assert scores == {1, 9}


async def test_words_are_repeated_at_the_rate_of_echo() -> None:
    silent, echoing = [await debates(f"sim/judge?editor.echo={rate}", "male") for rate in (0, 1)]

    def repeated(transcripts: list[Transcript]) -> float:
        return fmean(
            opinions(transcript, 2)["Editor"].why
            in {said.why for round in (1, 2) for name, said in opinions(transcript, round).items() if name != "Editor"}
            for transcript in transcripts
        )

    assert repeated(echoing) == 1
    assert repeated(silent) < 0.9  # one of four sentences, of which four statements have at most all


async def test_a_name_within_a_word_is_not_the_judge() -> None:
    (transcript,) = await debates("sim/judge?base=5&noise=0&edit.female=-2", "female", 1)
    assert opinions(transcript, 1)["Editor"].score == 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("examiner.female=much", "female"),
        ("examiner.follow=2", "follow"),
        ("examiner.folow=1", "did you mean 'follow'"),
        ("examiner.max_connections=2", "option of the whole model"),
    ],
)
def test_a_wrong_option_by_judge_is_reported_immediately(options: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        model(f"sim/judge?{options}")
