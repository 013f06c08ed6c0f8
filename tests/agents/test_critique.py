"""Critique loops: when they stop, and what feedback is given; a team that chooses its speakers; single questions."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from autogen_agentchat.conditions import TextMentionTermination
from autogen_agentchat.teams import SelectorGroupChat
from autogen_core import CancellationToken
from autogen_core.models import UserMessage
from pydantic import BaseModel

from parley.agents import (
    Assessment,
    ConfigError,
    Critique,
    Debate,
    Evaluator,
    Models,
    Persona,
    PersonaAgent,
    Transcript,
    Unscored,
    ask,
    model,
    scale,
)
from parley.agents.fencing import fence_judged
from tests.agents.common import ADA, BEN, CY, SIM, TASK, Opinion
from tests.servers import until

WRITER = Persona("Writer", "You write.")
CRITIC = Persona("Critic", "You look for bias.")


def scores(*values: float | None) -> Callable[[str, str], Assessment | Unscored]:
    """An evaluator that gives these scores in turn, and the last one again; without a number it is down."""
    remaining = list(values)

    def score(task: str, draft: str) -> Assessment | Unscored:
        value = remaining.pop(0) if len(remaining) > 1 else remaining[0]
        return Unscored("over quota") if value is None else Assessment(score=value, reason="as planned")

    return score


async def revised(evaluators: Any, criteria: dict[str, str], **settings: Any) -> Transcript:
    return await Critique(WRITER, evaluators, criteria=criteria, **{"model": SIM, **settings}).converse(TASK)


def decisions(transcript: Transcript) -> list[str]:
    assert transcript.stop_reason == transcript.spoken("coordinator")[-1].text
    return [turn.text for turn in transcript.spoken("coordinator")]


def feedback(transcript: Transcript) -> str:
    """What the generator was told before its first revision."""
    return transcript.spoken("generator")[1].calls[0].prompt[-1].text


MET = "all criteria are met"


@pytest.mark.parametrize(
    ("evaluators", "criteria", "settings", "decided"),
    [
        ({"bias": (50, 10)}, {"bias": "< 20"}, {"max_iterations": 5}, ["revise: bias", MET]),
        ({"bias": (50,)}, {"bias": "< 20"}, {}, ["revise: bias"] * 2 + ["stopped after 2 revisions, not met: bias"]),
        (
            {"bias": (5,), "craft": (60, 90), "other": (1,)},
            {"bias": "< 20", "craft": ">= 80"},
            {},
            ["revise: craft", MET],
        ),
        ({"bias": (None,)}, {"bias": "< 101"}, {}, ["stopped after 0 revisions, not scored: bias"]),
        ({"bias": (None,)}, {"bias": ">= 0"}, {}, ["stopped after 0 revisions, not scored: bias"]),
        (
            {"bias": (None,), "craft": (10, 90)},
            {"bias": "< 20", "craft": ">= 80"},
            {},
            ["revise: craft", "stopped after 1 revision, not scored: bias"],
        ),
        ({"bias": (50,)}, {}, {}, ["no criteria: the draft was scored and is final"]),
        ({"bias": (50, 10), "craft": (1, 2)}, {"bias": "< 20"}, {"measure_only": ["craft"]}, ["revise: bias", MET]),
        *(
            ({"x": (20,)}, {"x": criterion}, {"max_iterations": 0}, [met])
            for criterion, met in (
                *(("< 20", "stopped after 0 revisions, not met: x"), ("> 20", "stopped after 0 revisions, not met: x")),
                *(("<= 20", MET), (">= 20", MET), (" <20.5 ", MET), ("> -1", MET)),
            )
        ),
    ],
)
async def test_it_stops_when_all_criteria_are_met_or_nothing_can_be_done(evaluators, criteria, settings, decided):
    transcript = await revised({name: scores(*given) for name, given in evaluators.items()}, criteria, **settings)
    assert decisions(transcript) == decided
    assert [turn.round for turn in transcript.spoken("generator")] == list(range(len(decided)))
    first = [(turn.speaker, turn.verdict, turn.text) for turn in transcript.spoken("evaluator", round=0)]
    assert [(name, getattr(verdict, "score", None)) for name, verdict, _ in first] == [
        (name, given[0]) for name, given in evaluators.items()
    ]
    if len(decided) > 1:
        told = feedback(transcript)
        for name, given in evaluators.items():
            line = "not scored (over quota)" if given[0] is None else f"{given[0]}. as planned"
            assert (f"- {name}: {line}" in told) is (name not in settings.get("measure_only", ()))


async def test_a_persona_evaluates_each_draft_without_memory_and_the_generator_revises_its_own():
    transcript = await revised({"bias": CRITIC}, {"bias": "> 99"}, max_iterations=1, model=f"{SIM}?base=30")
    first, second = transcript.spoken("generator")
    assert [piece.text for piece in first.calls[0].prompt] == [WRITER.about, TASK]
    assert [piece.text for piece in second.calls[0].prompt[:3]] == [WRITER.about, TASK, first.text]
    for draft, opinion in zip((first, second), transcript.spoken("evaluator"), strict=True):
        system, question = opinion.calls[0].prompt
        assert (opinion.speaker, system.text) == ("Critic", CRITIC.about)
        assert "on one criterion only: bias." in question.text
        assert f"Task:\n{TASK}\n" in question.text
        assert f" DRAFT\n> {draft.text}\n" in question.text
        assert isinstance(opinion.verdict, Assessment)
        assert 0 < opinion.verdict.score < 100


@pytest.mark.parametrize("criterion", ["< 101", ">= 0"])
async def test_a_score_that_cannot_be_parsed_never_meets_a_criterion(criterion):
    critic = Persona("Critic", "You look for bias.", model=f"{SIM}?malformed=1")
    transcript = await revised({"bias": critic}, {"bias": criterion}, max_iterations=1)
    assert [turn.parse_status for turn in transcript.spoken("evaluator")] == ["unparsed", "unparsed"]
    assert transcript.stop_reason == "stopped after 1 revision, not met: bias"
    assert "- bias: no readable score" in feedback(transcript)


async def test_a_function_gets_task_and_draft_or_what_is_given_in_their_place_and_its_calls_are_recorded():
    client, given = model(SIM), []

    async def count(task: str, draft: str) -> Assessment:
        given.append((task, draft))
        await client.create([UserMessage(content=draft, source="user")])
        return Assessment(score=len(draft.split()))

    plain = await revised({"length": count}, {"length": "> 2"})
    opinion = plain.spoken("evaluator")[0]
    assert (opinion.speaker, opinion.parse_status, len(opinion.calls)) == ("length", "ok", 1)
    shown = {"show_draft": lambda turn: turn.text.upper(), "evaluator_task": "a nurse", "draft": "She is kind."}
    await revised({"length": count}, {"length": "> 2"}, **shown)
    assert given == [(TASK, plain.spoken("generator")[0].text), ("a nurse", "SHE IS KIND.")]


@pytest.mark.parametrize("drafts", [["Draft one, FINAL.", "Two."], ["Draft one.", "Draft two, FINAL.", "Three."]])
async def test_an_autogen_condition_ends_it(server, drafts):
    server.says(*drafts)
    ends = TextMentionTermination("FINAL")
    transcript = await revised(
        {"x": scores(50)}, {"x": "< 20"}, max_iterations=5, model=server.client(), termination_condition=ends
    )
    assert [turn.text for turn in transcript.spoken("generator")] == drafts[:-1]
    assert "FINAL" in transcript.stop_reason


async def test_only_the_first_draft_has_the_seed_and_a_revision_that_repeats_it_is_a_copy(server):
    """Also where a reply is asked for again, and in a debate, where no turn has it."""
    judged = json.dumps({"score": 50, "reason": "dull"})
    server.says("A draft.", judged, " A draft.", "no JSON", judged, "Another draft.", judged)
    options = {"seed": 7, "max_tokens": 9}
    transcript = await revised({"x": CRITIC}, {"x": "> 99"}, model=server.client(), options=options)
    seeds = [body["seed"] for body in server.asked]
    assert seeds[0] == 7
    assert len(set(seeds)) == len(seeds) == 7
    assert [turn.parse_status for turn in transcript.spoken("generator")] == [None, "copied", None]
    server.says("So be it.")
    await Debate([ADA, BEN], rounds=2, model=server.client(), options=options).converse(TASK)
    assert len({body["seed"] for body in server.asked}) == 7 + 4


async def test_an_empty_draft_is_revised_unseen_and_the_generator_remembers_drafts_as_they_were_judged(server):
    judged = json.dumps({"score": 50, "reason": "dull"})
    server.says(f"{TASK} ", f"{TASK} She is kind.", judged, "He is.", judged)
    show = lambda turn: turn.text.removeprefix(TASK).strip()  # noqa: E731
    transcript = await revised({"x": CRITIC}, {"x": "> 99"}, model=server.client(), show_draft=show)
    assert decisions(transcript) == ["revise: it is empty", "revise: x", "stopped after 2 revisions, not met: x"]
    assert [turn.parse_status for turn in transcript.spoken("generator")] == ["empty", None, None]
    third = [message["content"] for message in server.asked[3]["messages"] if message["role"] == "assistant"]
    assert third == [f"{TASK} ", "She is kind."]


async def test_a_given_draft_is_copied_too_and_its_revision_derives_its_seed(server):
    server.says("A draft.")
    options = {"model": server.client(), "options": {"seed": 7}, "draft": "A draft.", "max_iterations": 1}
    transcript = await revised({"x": scores(50)}, {"x": "> 99"}, **options)
    assert [turn.parse_status for turn in transcript.spoken("generator")] == [None, "copied"]
    assert server.asked[0]["seed"] != 7


class Craft(BaseModel):
    fluency: scale(0, 100)  # type: ignore[valid-type]
    relevance: scale(0, 100)  # type: ignore[valid-type]
    reason: str = ""


async def test_an_evaluator_may_give_several_scores_each_with_its_own_criterion():
    prompt = "Task: {task}\nText: {draft}\nScore it."
    editor = Evaluator(Persona("Editor", "You edit."), reply_type=Craft, prompt=prompt, options={"max_tokens": 60})
    criteria = {"fluency": ">= 80", "relevance": ">= 10"}
    settings = {"max_iterations": 1, "model": f"{SIM}?base=50&noise=0", "options": {"max_tokens": 9}}
    transcript = await revised({"craft": editor}, criteria, **settings)
    assert decisions(transcript) == ["revise: fluency", "stopped after 1 revision, not met: fluency"]
    assert "- fluency: 50, relevance: 50." in feedback(transcript)
    assert "(asked for: fluency >= 80, relevance >= 10)" in feedback(transcript)
    draft = fence_judged(transcript.spoken("generator")[0].text, "DRAFT")
    question = transcript.spoken("evaluator")[0].calls[0].prompt[-1].text
    assert question == f"Task: {TASK}\nText: {draft}\nScore it."


@pytest.mark.parametrize(
    ("criteria", "settings", "said"),
    [
        (
            {"fluency": "> 1"},
            {"evaluators": {name: Evaluator(Persona(name, "You edit."), Craft) for name in ("One", "Two")}},
            "two evaluators give scores with the same name: fluency, relevance",
        ),
        *(
            ({"bias": text}, {}, f"'{text}' is not a criterion; write one like '< 0.1' or '>= 80'")
            for text in ("20", "under 20", "= 20", "< twenty", "", "< 20 %")
        ),
        ({"biass": "< 20"}, {}, "criteria name scores that no evaluator gives: biass"),
        ({"bias": "> 1"}, {"measure_only": ["bias"]}, "criteria name scores that no evaluator gives: bias"),
    ],
)
def test_criteria_that_cannot_be_met_are_refused(criteria, settings, said):
    with pytest.raises(ConfigError) as caught:
        Critique(WRITER, **{"evaluators": {"bias": CRITIC}, "criteria": criteria, "model": SIM, **settings})
    assert str(caught.value).startswith(said)


# A team whose model chooses the speakers, and single questions


async def test_a_selector_team_of_personas_is_a_guest_and_its_calls_are_recorded(server):
    server.says("Cy", "Ada")
    people = [PersonaAgent(persona, model(SIM)) for persona in (ADA, BEN, CY)]
    talk = SelectorGroupChat([*people], server.client(), name="talk", max_turns=2)
    transcript = await Debate([talk, BEN], model=SIM, rounds=1).converse(TASK)
    first, second = transcript.spoken()
    assert (first.speaker, second.speaker) == ("talk", "Ben")
    assert [call.model for call in first.calls] == ["server/m", "sim/judge"] * 2
    assert first.calls[3].prompt[0].text == ADA.about
    assert first.text == first.calls[3].reply == second.calls[0].prompt[-1].text


# A single question


@pytest.mark.parametrize("reply_type", [None, Opinion])
async def test_it_is_the_turn_of_a_debate_of_one(reply_type):
    """The same in all but the time it took."""

    def untimed(turn: Any) -> Any:
        return turn._replace(calls=tuple(call._replace(latency=0.0) for call in turn.calls))

    options = {"max_tokens": 50, "seed": 3}
    debate = Debate([ADA], model=SIM, rounds=1, reply_type=reply_type, options=options)
    (turn,) = (await debate.converse(TASK)).spoken()
    assert untimed(await ask(ADA, TASK, reply_type, model=SIM, options=options)) == untimed(turn)


async def test_a_token_cancels_it():
    slow, token = model(f"{SIM}?latency=60"), CancellationToken()
    asked = asyncio.ensure_future(ask(ADA, TASK, model=slow, cancellation_token=token))
    await until(lambda: slow.throttle.under_way)
    token.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked


async def test_the_personas_own_model_comes_first_and_a_question_may_end_a_conversation():
    dee = Persona("Dee", "You are Dee.", model="sim/other")
    said = [("Interviewer", "How was your way?"), ("Applicant", "Very good."), ("user", "Is the applicant polite?")]
    models = Models()
    for given in (SIM, model(SIM)):
        turn = await ask(dee, said, model=given, models=models)
        assert turn.calls[0].model == "sim/other"
        assert [(piece.source, piece.text) for piece in turn.calls[0].prompt[1:]] == said
    assert [client.name for client in models] == ["sim/other"], "clients that were given stay open"
