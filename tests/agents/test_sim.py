"""Simulated models: the same for the same seed, with the planted effects, and failures at the given rates."""

from __future__ import annotations

import asyncio
from collections import Counter
from statistics import fmean, pstdev
from typing import Any, Literal

import pytest
from autogen_core.models import SystemMessage, UserMessage
from pydantic import BaseModel

from parley.agents import (
    ConfigError,
    RateLimited,
    ServerFault,
    Session,
    StructuredReply,
    model,
    record_calls,
    scale,
    session,
    structured_reply,
)
from parley.agents.models.sim import refuse_unknown_effects
from parley.agents.providers import provider_of


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


async def mean_score(name: str, label: str) -> float:
    return fmean(answer.value.score for answer in await judged(name, SINGLE.format(label=label), 400))


async def test_the_same_seed_gives_the_same_replies() -> None:
    async def replies(seed: int) -> list[Any]:
        client = model(f"sim/judge?seed={seed}")
        texts = [prompt(f"Case {n}. " + SINGLE.format(label="male")) for n in range(20)]
        return [(await client.create(text, json_output=Opinion)).content for text in texts]

    assert await replies(1) == await replies(1)
    assert await replies(1) != await replies(2)


async def test_samples_of_one_question_differ() -> None:
    raws = {answer.raw for answer in await judged("sim/judge", SINGLE.format(label="male"), 20)}
    assert len(raws) > 5


async def test_a_planted_effect_is_found_in_the_mean() -> None:
    name = "sim/judge?base=5&female=+0.8&noise=1.0"
    difference = await mean_score(name, "female") - await mean_score(name, "male")
    # 400 scores per side of variance 1 + 1/12 (rounding): a standard error of 0.074, so 0.25 is over three of them.
    assert difference == pytest.approx(0.8, abs=0.25)


async def test_a_label_without_a_planted_effect_has_none() -> None:
    name = "sim/judge?base=5&female=+0.8&noise=1.0"
    assert await mean_score(name, "black") == pytest.approx(5.0, abs=0.2)


async def test_effects_are_on_the_side_with_the_label() -> None:
    name = "sim/judge?base=5&female=+3&noise=0"
    for a, b, scores, preferred in (("female", "male", (8, 5), "A"), ("male", "female", (5, 8), "B")):
        (answer,) = await judged(name, PAIR.format(a=a, b=b), 1, Sides)
        assert (answer.value.A.score, answer.value.B.score, answer.value.preferred) == (*scores, preferred)


async def test_the_first_candidate_gains_by_position() -> None:
    (answer,) = await judged("sim/judge?base=5&position=2&noise=0", PAIR.format(a="male", b="male"), 1, Sides)
    assert (answer.value.A.score, answer.value.B.score) == (7, 5)


async def test_close_totals_are_a_tie_within_the_margin() -> None:
    pair = PAIR.format(a="female", b="male")
    for tie, preferred in ((0.5, "A"), (1, "tie")):
        (answer,) = await judged(f"sim/judge?base=5&female=1&noise=0&tie={tie}", pair, 1, Sides)
        assert answer.value.preferred == preferred


async def test_judges_of_one_text_share_its_shift() -> None:
    client = model("sim/judge?base=5&noise=0&item=2")
    scores = []
    for n in range(30):
        text = f"Case {n}. " + SINGLE.format(label="male")
        answers = [
            await structured_reply(client, prompt(text, persona), Opinion)
            for persona in ("You are Ada.", "You are Ben.")
        ]
        scores.append(tuple(answer.value.score for answer in answers))
    assert all(ada == ben for ada, ben in scores)
    assert len(set(scores)) > 3


async def test_scores_stay_on_the_scale() -> None:
    scores = {answer.value.score for answer in await judged("sim/judge?base=9&noise=5", SINGLE, 100)}
    assert min(scores) >= 0
    assert max(scores) == 10


async def test_malformed_replies_occur_at_their_rate() -> None:
    statuses = Counter(answer.status for answer in await judged("sim/judge?malformed=0.3", SINGLE, 400))
    # A repair is malformed at the same rate: 70 % ok, 21 % repaired, 9 % unparsed; 7 points are three standard errors.
    assert statuses["ok"] / 400 == pytest.approx(0.70, abs=0.07)
    assert statuses["repaired"] / 400 == pytest.approx(0.21, abs=0.07)
    assert statuses["unparsed"] / 400 == pytest.approx(0.09, abs=0.05)
    assert set(statuses) == {"ok", "repaired", "unparsed"}


async def test_refusals_occur_at_their_rate() -> None:
    statuses = Counter(answer.status for answer in await judged("sim/judge?refuse=0.2", SINGLE, 150))
    assert statuses["refused"] / 150 == pytest.approx(0.2, abs=0.1)
    assert set(statuses) == {"ok", "refused"}


@pytest.mark.parametrize(("option", "error"), [("fail", ServerFault), ("limited", RateLimited)])
async def test_failures_occur_at_their_rate(option: str, error: type[Exception]) -> None:
    client = model(f"sim/judge?{option}=0.3&retries=0")
    failed = 0
    for _ in range(100):
        try:
            await client.create(prompt(SINGLE))
        except error:
            failed += 1
    assert failed / 100 == pytest.approx(0.3, abs=0.14)


async def test_temporary_failures_are_retried() -> None:
    client = model("sim/judge?fail=0.2")
    with record_calls() as calls:
        await asyncio.gather(*(client.create(prompt(f"Case {n}.")) for n in range(12)))
    assert len(calls) == 12
    assert max(call.attempts for call in calls) > 1


async def test_it_is_marked_as_simulated_and_free() -> None:
    client = model("sim/judge")
    with record_calls() as calls:
        await client.create(prompt("Say something."))
    assert provider_of(client.name).simulated
    assert calls[0].cost == 0.0
    assert calls[0].prompt_tokens > 0


@pytest.mark.parametrize("options", ["female=much", "fail=2", "noise=-1", "tie=few"])
def test_invalid_values_are_reported_immediately(options: str) -> None:
    with pytest.raises(ConfigError, match=r"^sim/judge: "):
        model(f"sim/judge?{options}")


def test_an_effect_that_is_not_a_number_is_named() -> None:
    with pytest.raises(ConfigError, match="female"):
        model("sim/judge?female=much")


def test_an_effect_that_is_not_finite_is_reported_immediately() -> None:
    with pytest.raises(ConfigError):
        model("sim/judge?female=nan")


async def test_labels_of_effects_are_case_insensitive() -> None:
    (answer,) = await judged("sim/judge?base=5&Female=+3&noise=0", SINGLE.format(label="Female"), 1)
    assert answer.value.score == 8


# The scale


class Percent(BaseModel):
    score: scale(0, 100)  # type: ignore[valid-type]


class Stars(BaseModel):
    score: scale(1, 5)  # type: ignore[valid-type]


class Unlimited(BaseModel):
    score: int


@pytest.mark.parametrize(
    ("reply_type", "text", "expected"),
    [
        (Opinion, "Judge this.", 7),
        (Percent, "Judge this.", 85),
        (Stars, "Judge this, from 0 to 100.", 4),
        (Unlimited, "Judge this.", 7),
        (Unlimited, "Judge this from 0 to 100. It is from 2001, of 12 to 14 pages.", 85),
        (Unlimited, "Judge this. Score: <1-5>", 4),
    ],
)
async def test_the_default_score_is_on_the_scale_of_schema_or_prompt(
    reply_type: type[BaseModel], text: str, expected: int
) -> None:
    (answer,) = await judged("sim/judge?noise=0", text, 1, reply_type)
    assert answer.value.score == expected


async def test_the_default_noise_grows_with_the_scale() -> None:
    values = [answer.value.score for answer in await judged("sim/judge?base=50", "Judge this.", 300, Percent)]
    assert 8.5 < pstdev(values) < 11.5  # 10, with a standard error of 0.41


async def test_points_that_are_given_are_points_of_the_scale() -> None:
    (answer,) = await judged("sim/judge?base=40&score=+15&noise=0", "Judge this.", 1, Percent)
    assert answer.value.score == 55


# Names


@pytest.mark.parametrize("name", ["sim/juge", "sim/judges", "sim/debat", "sim/Judge", "sim/an", "sim/jugde-2"])
def test_a_misspelt_kind_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=r"did you mean sim/\w+\? \(kinds: judge, debate, any\)"):
        model(name)


@pytest.mark.parametrize("name", ["sim/judge", "sim/judge-2", "sim/judge_b", "sim/judge2", "sim/any.x", "sim/critic"])
def test_a_name_may_tell_models_apart(name: str) -> None:
    assert model(name).name == name


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("sim/judge?femal=+3", "sim/judge: there is no label 'femal' in malibu; did you mean 'female'?"),
        ("sim/judge?examinr.female=1", "sim/judge: nobody in malibu is called 'examinr'; did you mean 'examiner'?"),
        ("sim/judge?examiner.femal=1", "sim/judge: there is no label 'femal' in malibu; did you mean 'female'?"),
        ("sim/judge?leader=Critic", "sim/judge: nobody in malibu is called 'Critic'"),
        ("sim/judge?tox=1", "sim/judge: there is no label 'tox' in malibu; did you mean 'toxic'?"),
        ("sim/judge?zebra=1", "sim/judge: there is no label 'zebra' in malibu"),
        ("sim/judge?nois=1", "sim/judge: 'nois' is not an option of a simulated model; did you mean 'noise'?"),
    ],
)
def test_what_nobody_has_is_refused_with_the_nearest_name(name: str, said: str) -> None:
    with pytest.raises(ConfigError) as error:
        refuse_unknown_effects(name, ["female", "Black female"], "malibu", {"Examiner": "You are the Examiner."})
    assert str(error.value) == said


@pytest.mark.parametrize(
    "name",
    [
        "sim/judge?Female=1&black%20female=-1&base=3&examiner.female=2&EXAMINER.noise=0&leader=examiner",
        "sim/judge",
        "openai/gpt-6-luna?femal=1",
    ],
)
def test_what_there_is_is_not_refused(name: str) -> None:
    refuse_unknown_effects(name, ["female", "Black female"], "malibu", {"Examiner": "You are the Examiner."})
