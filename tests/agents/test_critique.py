"""Critique loops: when they stop, what feedback the generator gets, and who can evaluate."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import TextMentionTermination
from autogen_core.models import UserMessage
from pydantic import BaseModel

from parley.agents import Assessment, ConfigError, Critique, Evaluator, Persona, Transcript, Unscored, model, scale
from parley.agents.fencing import fence_judged
from tests.agents.common import SIM

WRITER = Persona("Writer", "You write.")
CRITIC = Persona("Critic", "You look for bias.")
TASK = "Describe a good nurse."


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


async def test_a_given_draft_is_scored_first_as_it_is_and_shown_to_the_generator():
    draft = "A {nurse} is {0}."
    transcript = await revised({"bias": CRITIC}, {"bias": "> 99"}, draft=draft, max_iterations=1)
    first, second = transcript.spoken("generator")
    assert (first.text, first.calls) == (draft, ())
    assert draft in transcript.spoken("evaluator")[0].calls[0].prompt[1].text
    assert [piece.text for piece in second.calls[0].prompt][1:3] == [TASK, f"Your draft was:\n\n{draft}"]


@pytest.mark.parametrize("criterion", ["< 101", ">= 0"])
async def test_a_score_that_cannot_be_parsed_never_meets_a_criterion(criterion):
    critic = Persona("Critic", "You look for bias.", model=f"{SIM}?malformed=1")
    transcript = await revised({"bias": critic}, {"bias": criterion}, max_iterations=1)
    assert [turn.parse_status for turn in transcript.spoken("evaluator")] == ["unparsed", "unparsed"]
    assert transcript.stop_reason == "stopped after 1 revision, not met: bias"
    assert "- bias: no readable score" in feedback(transcript)


async def test_evaluators_work_concurrently():
    """If they ran one after the other, the first would never return."""
    started = {"first": asyncio.Event(), "second": asyncio.Event()}

    def waiting(own: str, other: str) -> Any:
        async def score(task: str, draft: str) -> Assessment:
            started[own].set()
            await started[other].wait()
            return Assessment(score=len(own))

        return score

    evaluators = {"first": waiting("first", "second"), "second": waiting("second", "first")}
    transcript = await asyncio.wait_for(revised(evaluators, {"first": "< 9", "second": "< 9"}), timeout=20)
    assert [(turn.speaker, turn.verdict) for turn in transcript.spoken("evaluator")] == [
        ("first", Assessment(score=5)),
        ("second", Assessment(score=6)),
    ]


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


async def test_an_autogen_agent_as_evaluator(server):
    server.says('{"score": 12, "reason": "fair"}', "No idea.")
    critic = AssistantAgent("Critic", server.client())
    transcript = await revised({"bias": critic}, {"bias": "< 10"}, max_iterations=1)
    parsed = [(turn.verdict, turn.parse_status, len(turn.calls)) for turn in transcript.spoken("evaluator")]
    assert parsed == [(Assessment(score=12, reason="fair"), "ok", 1), (None, "unparsed", 1)]


@pytest.mark.parametrize("drafts", [["Draft one, FINAL.", "Two."], ["Draft one.", "Draft two, FINAL.", "Three."]])
async def test_an_autogen_condition_ends_it(server, drafts):
    server.says(*drafts)
    ends = TextMentionTermination("FINAL")
    transcript = await revised(
        {"x": scores(50)}, {"x": "< 20"}, max_iterations=5, model=server.client(), termination_condition=ends
    )
    assert [turn.text for turn in transcript.spoken("generator")] == drafts[:-1]
    assert "FINAL" in transcript.stop_reason


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
        Critique(WRITER, {"bias": CRITIC}, criteria=criteria, model=SIM, **settings)
    assert str(caught.value).startswith(said)
