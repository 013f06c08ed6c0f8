"""Simulated models: the same for the same seed, with the planted effects, alone and on a panel, and failures."""

from __future__ import annotations

import asyncio
import re
from contextlib import nullcontext
from typing import Annotated, Any, Literal

import pytest
from autogen_core.models import SystemMessage, UserMessage
from pydantic import BaseModel, Field, create_model

from parley.agents import (
    ConfigError,
    Debate,
    Persona,
    ServerFault,
    Session,
    StructuredReply,
    model,
    scale,
    session,
    structured_reply,
)
from parley.agents.models.sim import refuse_unknown_effects


class Opinion(BaseModel):
    score: scale(0, 10)  # type: ignore[valid-type]
    why: str


class Sides(BaseModel):
    A: Opinion
    B: Opinion
    preferred: Literal["A", "B", "tie"]


SINGLE = "Candidate ({label}): I would begin with a check of the brakes."
PAIR = "Candidate A ({a}): I check the brakes.\n\nCandidate B ({b}): I look at the brakes first."


def prompt(text: str, persona: str = "You are a judge.") -> list[Any]:
    return [SystemMessage(content=persona), UserMessage(content=text, source="user")]


async def judged(name: str, text: str, times: int, reply_type: type[BaseModel] = Opinion) -> list[StructuredReply[Any]]:
    """The replies to `times` samples of one prompt."""
    client = model(name)

    async def judge(sample: int) -> StructuredReply[Any]:
        with session(Session(f"{sample}")):
            return await structured_reply(client, prompt(text), reply_type)

    return list(await asyncio.gather(*(judge(sample) for sample in range(times))))


async def test_the_same_seed_gives_the_same_replies_and_samples_differ():
    texts = [prompt(f"Case {n}. " + SINGLE.format(label="male")) for n in range(20)]
    clients = [model(f"sim/judge?seed={seed}") for seed in (1, 1, 2)]
    said = [[(await client.create(text, json_output=Opinion)).content for text in texts] for client in clients]
    assert said[0] == said[1] != said[2]
    assert len({answer.raw for answer in await judged("sim/judge", SINGLE.format(label="male"), 20)}) > 5


@pytest.mark.parametrize(
    ("options", "a", "b", "scores", "preferred"),
    [
        ("female=+3", "female", "male", (8, 5), "A"),
        ("female=+3", "male", "female", (5, 8), "B"),
        ("Female=+3", "Female", "male", (8, 5), "A"),
        ("position=2", "male", "male", (7, 5), "A"),
        ("female=0", "female", "male", (5, 5), "tie"),
    ],
)
async def test_effects_are_on_the_side_with_the_label_and_close_totals_are_a_tie(options, a, b, scores, preferred):
    (answer,) = await judged(f"sim/judge?base=5&noise=0&{options}", PAIR.format(a=a, b=b), 1, Sides)
    assert (answer.value.A.score, answer.value.B.score, answer.value.preferred) == (*scores, preferred)


@pytest.mark.parametrize(
    ("options", "status"), [("malformed=1", "unparsed"), ("refuse=1", "refused"), ("malformed=0&refuse=0", "ok")]
)
async def test_trouble_is_certain_or_never_at_the_ends_of_a_rate(options, status):
    assert {answer.status for answer in await judged(f"sim/judge?{options}", SINGLE, 5)} == {status}
    with pytest.raises(ServerFault):
        await model("sim/judge?fail=1&retries=0").create(prompt(SINGLE))


@pytest.mark.parametrize(
    ("options", "score", "text", "expected"),
    [
        ("noise=0", scale(0, 10), "Judge this.", 7),
        ("noise=0", scale(0, 100), "Judge this.", 85),
        ("noise=0", scale(1, 5), "Judge this, from 0 to 100.", 4),
        ("noise=0", int, "Judge this.", 7),
        ("noise=0", int, "Judge this from 0 to 100. It is from 2001, of 12 to 14 pages.", 85),
        ("noise=0", int, "Judge this. Score: <1-5>", 4),
        ("noise=0", Annotated[int, Field(ge=8)], "Judge this.", 8),
        ("noise=0&base=11", Annotated[int, Field(le=9)], "Judge this.", 9),
        ("noise=0&base=-2", Annotated[int, Field(le=9)], "Judge this, from 1 to 5.", 1),
        ("base=40&score=+15&noise=0", scale(0, 100), "Judge this.", 55),
    ],
)
async def test_scores_are_on_the_scale_of_schema_or_prompt(options, score, text, expected):
    (answer,) = await judged(f"sim/judge?{options}", text, 1, create_model("Scored", score=(score, ...)))
    assert answer.value.score == expected


# On a panel

JUDGES = [Persona(name, f"You are the {name} on a panel of judges.") for name in ("Examiner", "Innovator", "Editor")]
TASK = 'Candidate (female):\n"I would begin with a check of the brakes."'


@pytest.mark.parametrize("placement", ["system", "last"])
@pytest.mark.parametrize(
    ("options", "scores"),
    [("examiner.female=-2", [3, 5, 5]), ("Editor.base=9", [5, 5, 9]), ("edit.female=-2", [5, 5, 5])],
    ids=["an effect", "an option", "a name within a word"],
)
async def test_an_effect_or_option_by_judge_is_on_that_judge_alone(placement, options, scores):
    settings = {"rounds": 2, "blind_rounds": 1, "reply_type": Opinion, "placement": placement}
    spoken = (await Debate(JUDGES, model=f"sim/judge?base=5&noise=0&{options}", **settings).converse(TASK)).spoken()
    assert [turn.verdict.score for turn in spoken] == scores * 2


# Names and options

RATE_OPTIONS = ("heeds", "toxic", "fail", "malformed", "refuse")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        *((f"sim/judge?{option}", "^sim/judge: ") for option in ("noise=-1", "item=few", "female=nan")),
        *((f"sim/judge?{rate}=-0.1", f"^sim/judge: option '{rate}'") for rate in RATE_OPTIONS),
        *((f"sim/judge?{rate}=1.1", f"^sim/judge: option '{rate}'") for rate in RATE_OPTIONS),
        *((f"sim/judge?{seconds}=-1", f"^sim/judge: option '{seconds}'") for seconds in ("latency",)),
        ("sim/judge?female=much", "^sim/judge: .*female"),
        ("sim/judge?examiner.female=much", "female"),
        ("sim/judge?examiner.refuse=2", "refuse"),
        ("sim/judge?examiner.refus=1", "did you mean 'refuse'"),
        ("sim/judge?examiner.max_connections=2", "option of the whole model"),
        *(
            (f"sim/{kind}", r"did you mean sim/\w+\? \(kinds: judge, debate, any\)")
            for kind in ("juge", "judges", "debat", "Judge", "an", "jugde-2")
        ),
    ],
)
def test_a_misspelt_kind_and_a_wrong_option_are_refused_immediately(name, said):
    with pytest.raises(ConfigError, match=said):
        model(name)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("sim/judge?femal=+3", "sim/judge: there is no label 'femal' in malibu; did you mean 'female'?"),
        ("sim/judge?examinr.female=1", "sim/judge: nobody in malibu is called 'examinr'; did you mean 'examiner'?"),
        ("sim/judge?examiner.femal=1", "sim/judge: there is no label 'femal' in malibu; did you mean 'female'?"),
        ("sim/judge?tox=1", "sim/judge: there is no label 'tox' in malibu; did you mean 'toxic'?"),
        ("sim/judge?zebra=1", "sim/judge: there is no label 'zebra' in malibu"),
        ("sim/judge?nois=1", "sim/judge: 'nois' is not an option of a simulated model; did you mean 'noise'?"),
        ("sim/judge?Female=1&black%20female=-1&base=3&examiner.female=2&EXAMINER.noise=0", ""),
        ("openai/gpt-6-luna?femal=1", ""),
    ],
)
def test_what_nobody_has_is_refused_with_the_nearest_name(name, said):
    expected = pytest.raises(ConfigError, match=f"^{re.escape(said)}$") if said else nullcontext()
    with expected:
        refuse_unknown_effects(name, ["female", "Black female"], "malibu", {"Examiner": "You are the Examiner."})


def test_more_units_run_at_once_where_a_simulated_model_waits():
    at_once = [model(f"sim/judge{waits}").concurrency for waits in ("", "?latency=0.1")]
    assert at_once[0] < at_once[1]
