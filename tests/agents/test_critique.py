"""Critique loops: when they stop, what feedback the generator gets, and who can evaluate."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination, TextMentionTermination
from autogen_core.models import UserMessage
from pydantic import BaseModel

from parley.agents import Assessment, ConfigError, Critique, Evaluator, Persona, Transcript, Unscored, model, scale
from parley.agents.fencing import fence_judged
from tests.agents.common import SIM

WRITER = Persona("Writer", "You write.")
CRITIC = Persona("Critic", "You look for bias.")
TASK = "Describe a good nurse."


def scores(*values: float) -> Callable[[str, str], Assessment]:
    """An evaluator that gives these scores in turn."""
    remaining = list(values)
    return lambda task, draft: Assessment(score=remaining.pop(0), reason="as planned")


def speakers_and_rounds(transcript: Transcript) -> list[tuple[str, int]]:
    return [(turn.speaker, turn.round) for turn in transcript.turns]


async def test_it_stops_as_soon_as_the_criteria_are_met() -> None:
    loop = Critique(WRITER, {"bias": scores(50, 10)}, criteria={"bias": "< 20"}, max_iterations=5, model=SIM)
    transcript = await loop.converse(TASK)
    assert speakers_and_rounds(transcript) == [
        ("user", 0),
        ("Writer", 0),
        ("bias", 0),
        ("coordinator", 0),
        ("Writer", 1),
        ("bias", 1),
        ("coordinator", 1),
    ]
    assert [turn.text for turn in transcript.spoken("coordinator")] == ["revise: bias", "all criteria are met"]
    assert transcript.stop_reason == "all criteria are met"


async def test_it_stops_at_the_highest_number_of_revisions() -> None:
    loop = Critique(WRITER, {"bias": lambda t, d: Assessment(score=50)}, criteria={"bias": "< 20"}, model=SIM)
    transcript = await loop.converse(TASK)
    assert [turn.round for turn in transcript.spoken("generator")] == [0, 1, 2]
    assert transcript.stop_reason == "stopped after 2 revisions, not met: bias"


@pytest.mark.parametrize(
    ("criterion", "met"),
    [("< 20", False), ("<= 20", True), ("> 20", False), (">= 20", True), (" <20.5 ", True), ("> -1", True)],
)
async def test_criteria_at_the_threshold(criterion: str, met: bool) -> None:
    loop = Critique(WRITER, {"x": scores(20)}, criteria={"x": criterion}, max_iterations=0, model=SIM)
    assert ((await loop.converse(TASK)).stop_reason == "all criteria are met") is met


async def test_every_criterion_must_be_met() -> None:
    loop = Critique(
        WRITER,
        {"bias": scores(5, 5), "quality": scores(60, 90), "length": scores(1, 1)},
        criteria={"bias": "< 20", "quality": ">= 80"},
        model=SIM,
    )
    transcript = await loop.converse(TASK)
    assert [turn.text for turn in transcript.spoken("coordinator")] == ["revise: quality", "all criteria are met"]


async def test_the_generator_gets_scores_and_reasons() -> None:
    loop = Critique(WRITER, {"bias": scores(50, 10)}, criteria={"bias": "< 20"}, model=SIM)
    first, second = (await loop.converse(TASK)).spoken("generator")
    assert [piece.text for piece in first.calls[0].prompt] == [WRITER.about, TASK]
    prompt = second.calls[0].prompt
    assert [piece.text for piece in prompt[:3]] == [WRITER.about, TASK, first.text]
    assert "- bias: 50. as planned" in prompt[3].text


async def test_a_persona_evaluates_each_draft_without_memory() -> None:
    loop = Critique(WRITER, {"bias": CRITIC}, criteria={"bias": "> 99"}, max_iterations=1, model=f"{SIM}?base=30")
    transcript = await loop.converse(TASK)
    drafts = [turn.text for turn in transcript.spoken("generator")]
    opinions = transcript.spoken("evaluator")
    assert [turn.speaker for turn in opinions] == ["Critic", "Critic"]
    for draft, opinion in zip(drafts, opinions, strict=True):
        system, question = opinion.calls[0].prompt
        assert system.text == CRITIC.about
        assert "on one criterion only: bias." in question.text
        assert f"Task:\n{TASK}\n" in question.text
        assert f" DRAFT\n> {draft}\n" in question.text
        assert isinstance(opinion.verdict, Assessment)
        assert 0 < opinion.verdict.score < 100


async def test_braces_in_task_and_draft_are_kept() -> None:
    loop = Critique(WRITER, {"bias": CRITIC}, criteria={}, draft="A {nurse} is {0}.", model=SIM)
    transcript = await loop.converse("Describe {someone}.")
    question = transcript.spoken("evaluator")[0].calls[0].prompt[1].text
    assert "Describe {someone}." in question
    assert "A {nurse} is {0}." in question


async def test_a_score_that_cannot_be_parsed_never_meets_a_criterion() -> None:
    for criterion in ("< 101", ">= 0"):
        critic = Persona("Critic", "You look for bias.", model=f"{SIM}?malformed=1")
        loop = Critique(WRITER, {"bias": critic}, criteria={"bias": criterion}, max_iterations=1, model=SIM)
        transcript = await loop.converse(TASK)
        assert [turn.parse_status for turn in transcript.spoken("evaluator")] == ["unparsed", "unparsed"]
        assert transcript.stop_reason == "stopped after 1 revision, not met: bias"
        assert "- bias: no readable score" in transcript.spoken("generator")[1].calls[0].prompt[-1].text


async def test_evaluators_work_concurrently() -> None:
    started = {"first": asyncio.Event(), "second": asyncio.Event()}

    async def first(task: str, draft: str) -> Assessment:
        started["first"].set()
        await started["second"].wait()
        return Assessment(score=1)

    async def second(task: str, draft: str) -> Assessment:
        started["second"].set()
        await started["first"].wait()
        return Assessment(score=2)

    evaluators = {"first": first, "second": second}
    loop = Critique(WRITER, evaluators, criteria={"first": "< 9", "second": "< 9"}, model=SIM)
    # If they ran one after the other, the first would never return.
    transcript = await asyncio.wait_for(loop.converse(TASK), timeout=20)
    assert [(turn.speaker, turn.verdict) for turn in transcript.spoken("evaluator")] == [
        ("first", Assessment(score=1)),
        ("second", Assessment(score=2)),
    ]


async def test_a_plain_function_gets_task_and_draft() -> None:
    given = []

    def count(task: str, draft: str) -> Assessment:
        given.append((task, draft))
        return Assessment(score=len(draft.split()))

    transcript = await Critique(WRITER, {"length": count}, criteria={"length": "> 2"}, model=SIM).converse(TASK)
    assert given == [(TASK, transcript.spoken("generator")[0].text)]
    opinion = transcript.spoken("evaluator")[0]
    assert (opinion.speaker, opinion.parse_status, opinion.calls) == ("length", "ok", ())


async def test_a_given_draft_is_scored_first_and_shown_to_the_generator() -> None:
    loop = Critique(WRITER, {"x": scores(50, 5)}, criteria={"x": "< 20"}, draft="She is kind.", model=SIM)
    transcript = await loop.converse(TASK)
    first, second = transcript.spoken("generator")
    assert (first.text, first.calls) == ("She is kind.", ())
    prompt = [piece.text for piece in second.calls[0].prompt]
    assert prompt[1:3] == [TASK, "Your draft was:\n\nShe is kind."]


async def test_an_autogen_agent_as_evaluator(server: Any) -> None:
    server.says('My evaluation: {"score": 12, "reason": "fair"}', "No idea.")
    critic = AssistantAgent("Critic", server.client())
    loop = Critique(WRITER, {"bias": critic}, criteria={"bias": "< 10"}, max_iterations=1, model=SIM)
    transcript = await loop.converse(TASK)
    parsed = [(turn.verdict, turn.parse_status) for turn in transcript.spoken("evaluator")]
    assert parsed == [(Assessment(score=12, reason="fair"), "ok"), (None, "unparsed")]
    assert [len(turn.calls) for turn in transcript.spoken("evaluator")] == [1, 1]


async def test_an_autogen_condition_ends_it(server: Any) -> None:
    server.says("Draft one.", "Draft two, FINAL.", "Draft three.")
    loop = Critique(
        WRITER,
        {"x": lambda task, draft: Assessment(score=50)},
        criteria={"x": "< 20"},
        max_iterations=5,
        model=server.client(),
        termination_condition=TextMentionTermination("FINAL"),
    )
    transcript = await loop.converse(TASK)
    assert [turn.text for turn in transcript.spoken("generator")] == ["Draft one.", "Draft two, FINAL."]
    assert "FINAL" in transcript.stop_reason


async def test_an_autogen_condition_ends_it_at_the_first_draft(server: Any) -> None:
    server.says("Draft one, FINAL.", "Draft two.")
    loop = Critique(
        WRITER,
        {"x": scores(50, 50, 50)},
        criteria={"x": "< 20"},
        model=server.client(),
        termination_condition=TextMentionTermination("FINAL"),
    )
    transcript = await loop.converse(TASK)
    assert [turn.text for turn in transcript.spoken("generator")] == ["Draft one, FINAL."]


async def test_all_concurrent_evaluations_are_in_the_transcript() -> None:
    client = model(SIM)
    critics = {name: Persona(name, f"You are {name}.") for name in ("Ada", "Ben")}
    ends = MaxMessageTermination(1)
    loop = Critique(
        WRITER, critics, criteria={"Ada": "> 99"}, draft="A draft.", model=client, termination_condition=ends
    )
    transcript = await loop.converse(TASK)
    assert sum(usage.prompt_tokens for usage in transcript.usage().values()) == client.total_usage().prompt_tokens


async def test_messages_of_the_team_have_their_speakers_as_sources() -> None:
    loop = Critique(WRITER, {"x": scores(5)}, criteria={"x": "< 20"}, draft="She is kind.", model=SIM)
    result = await loop.run(task=TASK)
    assert [message.source for message in result.messages] == ["user", "Writer", "x", "coordinator"]
    assert result.stop_reason == "all criteria are met"


@pytest.mark.parametrize("text", ["20", "under 20", "= 20", "< twenty", "", "< 20 %"])
def test_an_invalid_criterion(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Critique(WRITER, {"x": scores()}, criteria={"x": text}, model=SIM)
    assert str(caught.value) == f"'{text}' is not a criterion; write one like '< 0.1' or '>= 80'"


def test_a_criterion_for_an_unknown_score() -> None:
    with pytest.raises(ConfigError, match="criteria name scores that no evaluator gives: biass"):
        Critique(WRITER, {"bias": CRITIC}, criteria={"biass": "< 20"}, model=SIM)


# Evaluators with several scores, evaluators that only measure, and evaluators that are down


class Craft(BaseModel):
    fluency: scale(0, 100)  # type: ignore[valid-type]
    relevance: scale(0, 100)  # type: ignore[valid-type]
    reason: str = ""


EDITOR = Evaluator(
    Persona("Editor", "You edit."),
    reply_type=Craft,
    prompt="Task: {task}\nText: {draft}\nScore it.",
    options={"max_tokens": 60},
)


async def test_an_evaluator_may_give_several_scores_each_with_its_own_criterion() -> None:
    loop = Critique(
        WRITER,
        {"craft": EDITOR},
        criteria={"fluency": ">= 80", "relevance": ">= 10"},
        max_iterations=1,
        model=f"{SIM}?base=50&noise=0",
        options={"max_tokens": 9},
    )
    transcript = await loop.converse(TASK)
    assert [turn.text for turn in transcript.spoken("coordinator")] == [
        "revise: fluency",
        "stopped after 1 revision, not met: fluency",
    ]
    feedback = transcript.spoken("generator")[1].calls[0].prompt[-1].text
    assert "- fluency: 50, relevance: 50." in feedback
    assert "(asked for: fluency >= 80, relevance >= 10)" in feedback
    question = transcript.spoken("evaluator")[0].calls[0].prompt[-1].text
    draft = fence_judged(transcript.spoken("generator")[0].text, "DRAFT")
    assert question == f"Task: {TASK}\nText: {draft}\nScore it."


async def test_an_evaluator_that_only_measures_gives_no_feedback() -> None:
    loop = Critique(
        WRITER,
        {"bias": scores(50, 10), "craft": scores(1, 2)},
        criteria={"bias": "< 20"},
        measure_only=["craft"],
        model=SIM,
    )
    transcript = await loop.converse(TASK)
    assert [(turn.speaker, turn.verdict.score) for turn in transcript.spoken("evaluator")] == [  # type: ignore[union-attr]
        ("bias", 50),
        ("craft", 1),
        ("bias", 10),
        ("craft", 2),
    ]
    assert "craft" not in transcript.spoken("generator")[1].calls[0].prompt[-1].text


def test_an_evaluator_that_only_measures_has_no_criterion() -> None:
    with pytest.raises(ConfigError, match="criteria name scores that no evaluator gives: craft"):
        Critique(WRITER, {"craft": scores()}, criteria={"craft": "> 1"}, measure_only=["craft"], model=SIM)


async def test_a_scorer_that_is_down_neither_meets_a_criterion_nor_causes_a_revision() -> None:
    for criterion in ("< 101", ">= 0"):
        loop = Critique(WRITER, {"bias": lambda t, d: Unscored("over quota")}, criteria={"bias": criterion}, model=SIM)
        transcript = await loop.converse(TASK)
        (opinion,) = transcript.spoken("evaluator")
        assert (opinion.text, opinion.verdict, opinion.parse_status) == ("over quota", None, "unscored")
        assert transcript.stop_reason == "stopped after 0 revisions, not scored: bias"


async def test_the_draft_is_revised_by_the_other_evaluators_if_one_is_down() -> None:
    loop = Critique(
        WRITER,
        {"bias": lambda t, d: Unscored("over quota"), "craft": scores(10, 90)},
        criteria={"bias": "< 20", "craft": ">= 80"},
        model=SIM,
    )
    transcript = await loop.converse(TASK)
    assert [turn.text for turn in transcript.spoken("coordinator")] == [
        "revise: craft",
        "stopped after 1 revision, not scored: bias",
    ]
    assert "- bias: not scored (over quota)" in transcript.spoken("generator")[1].calls[0].prompt[-1].text


async def test_evaluators_may_read_another_task_and_another_form_of_the_draft() -> None:
    given = []

    def note(task: str, draft: str) -> Assessment:
        given.append((task, draft))
        return Assessment(score=1)

    loop = Critique(
        WRITER,
        {"x": note},
        criteria={"x": "< 9"},
        draft="She is kind.",
        show_draft=lambda turn: turn.text.upper(),
        evaluator_task="a nurse",
        model=SIM,
    )
    await loop.converse(TASK)
    assert given == [("a nurse", "SHE IS KIND.")]


async def test_calls_made_inside_a_plain_evaluator_are_recorded() -> None:
    client = model(SIM)

    async def asks_a_model(task: str, draft: str) -> Assessment:
        await client.create([UserMessage(content=draft, source="user")])
        return Assessment(score=1)

    transcript = await Critique(
        WRITER, {"x": asks_a_model}, criteria={"x": "< 9"}, draft="A draft.", model=SIM
    ).converse(TASK)
    assert [call.prompt[0].text for call in transcript.spoken("evaluator")[0].calls] == ["A draft."]
