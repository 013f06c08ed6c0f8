"""A conversation continues where it stopped, and streams and messages are those of AutoGen's teams."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent, BaseChatAgent, UserProxyAgent
from autogen_agentchat.base import Response, Team
from autogen_agentchat.conditions import MaxMessageTermination, SourceMatchTermination
from autogen_agentchat.messages import (
    BaseChatMessage,
    ModelClientStreamingChunkEvent,
    StructuredMessage,
    TextMessage,
    UserInputRequestedEvent,
)
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_agentchat.ui import Console
from autogen_core import CancellationToken
from autogen_core.models import ModelFamily, UserMessage
from autogen_ext.models.replay import ReplayChatCompletionClient
from pydantic import BaseModel

from parley.agents import ConfigError, Critique, Cue, Debate, Persona, PersonaAgent, model, simultaneous
from tests.agents.common import ADA, BEN, CY, SIM, TASK, Opinion


def replay(*replies: str) -> ReplayChatCompletionClient:
    return ReplayChatCompletionClient([*replies])


def agents(**settings: Any) -> list[AssistantAgent]:
    return [
        AssistantAgent(name, replay(*(f"{name} says number {i}" for i in range(9))), **settings)
        for name in ("Ada", "Ben", "Cy")
    ]


Make = Callable[..., Team]
BOTH = pytest.mark.parametrize(
    "make", [lambda a, **s: Debate(a, rounds=3, **s), lambda a, **s: RoundRobinGroupChat(a, **s)], ids=["ours", "stock"]
)


def sources(messages: Sequence[Any]) -> list[str]:
    return [message.source for message in messages]


# Each story below holds for a debate and for a stock team alike.


@BOTH
async def test_a_second_run_continues_with_the_next_speaker(make: Make) -> None:
    team = make(agents(), termination_condition=SourceMatchTermination(["Ada"]))
    assert sources((await team.run(task=TASK)).messages) == ["user", "Ada"]
    assert sources((await team.run()).messages) == ["Ben", "Cy", "Ada"]
    assert sources((await team.run(task="And trams?")).messages) == ["user", "Ben", "Cy", "Ada"]


@BOTH
async def test_a_saved_state_continues_with_the_next_speaker(make: Make) -> None:
    first, second = (make(agents(), termination_condition=MaxMessageTermination(2)) for _ in range(2))
    await first.run(task=TASK)
    await second.load_state(json.loads(json.dumps(await first.save_state())))
    assert sources((await second.run()).messages) == ["Ben", "Cy"]


@BOTH
async def test_after_a_reset_the_first_speaker_begins(make: Make) -> None:
    team = make(agents(), termination_condition=MaxMessageTermination(2))
    await team.run(task=TASK)
    await team.reset()
    assert sources((await team.run(task=TASK)).messages) == ["user", "Ada"]


@BOTH
async def test_a_run_of_so_many_turns(make: Make) -> None:
    team = make(agents(), max_turns=2)
    result = await team.run(task=TASK)
    assert sources(result.messages) == ["user", "Ada", "Ben"]
    assert result.stop_reason == "Maximum number of turns 2 reached."
    assert sources((await team.run()).messages) == ["Cy", "Ada"]


class Signed(BaseChatMessage):
    text: str
    signature: str

    def to_text(self) -> str:
        return self.text

    to_model_text = to_text

    def to_model_message(self) -> UserMessage:
        return UserMessage(content=self.text, source=self.source)


class Notary(BaseChatAgent):
    produced_message_types = (Signed,)

    async def on_messages(self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken) -> Response:
        return Response(chat_message=Signed(text="Sworn.", signature="J. Doe", source=self.name))

    async def on_reset(self, cancellation_token: CancellationToken) -> None:
        pass


async def test_a_message_of_an_agents_own_type_is_itself_again_after_loading() -> None:
    first, second = (Debate([Notary("Nora", "A notary."), BEN], model=SIM, max_turns=1) for _ in range(2))
    await first.run(task=TASK)
    await second.load_state(json.loads(json.dumps(await first.save_state())))
    unread = second._seats[1].inbox[-1]
    assert isinstance(unread, Signed)
    assert unread.signature == "J. Doe"


# What a stock team does not have: rounds, blind rounds, referees, instructions.


async def test_complete_rounds_are_followed_by_new_ones_with_the_history_kept() -> None:
    debate = Debate([ADA, BEN], model=SIM, rounds=1)
    await debate.converse(TASK)
    turns = (await debate.converse("And trams?")).spoken()
    assert [turn.speaker for turn in turns] == ["Ada", "Ben"]
    assert [turn.round for turn in turns] == [1, 1]
    assert [piece.source for piece in turns[0].calls[0].prompt[1:]] == ["user", "Ada", "Ben", "user"]


async def test_rounds_that_end_with_the_condition_are_complete() -> None:
    debate = Debate([ADA, BEN], model=SIM, rounds=1, termination_condition=MaxMessageTermination(3))
    await debate.run(task=TASK)
    assert sources((await debate.run()).messages) == ["Ada", "Ben"]


@pytest.mark.parametrize("turns", range(1, 8))
async def test_a_debate_in_pieces_is_the_same_debate(turns: int) -> None:
    """Stopped and saved after so many turns, it ends with the prompts of the debate that ran through."""

    def make(**settings: Any) -> Debate:
        return Debate(
            [ADA, BEN],
            model=SIM,
            rounds=2,
            blind_rounds=1,
            referee=CY,
            chair=Persona("Di", "You sum up."),
            instructions=lambda cue: f"Round {cue.round}, {cue.speaker}.",
            **settings,
        )

    whole = (await make().converse(TASK)).spoken()
    assert len(whole) == 7
    piece = make(termination_condition=MaxMessageTermination(turns + 1))
    said = (await piece.converse(TASK)).spoken()
    rest = make()
    await rest.load_state(json.loads(json.dumps(await piece.save_state())))
    said += (await rest.converse(None)).spoken() if len(said) < 7 else []
    assert [(t.speaker, t.round, t.calls[0].prompt) for t in said] == [
        (t.speaker, t.round, t.calls[0].prompt) for t in whole
    ]


async def test_a_cancelled_turn_is_taken_again_with_its_instruction_once(until: Any) -> None:
    slow = model(f"{SIM}?latency=60")
    told = Debate([ADA], model=slow, rounds=1, instructions=lambda cue: "Be brief.")
    token = CancellationToken()
    running = asyncio.ensure_future(told.run(task=TASK, cancellation_token=token))
    await until(lambda: slow.throttle.under_way)
    token.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    told._seats[0].agent.client = model(SIM)  # type: ignore[attr-defined]
    (turn,) = (await told.converse(None)).spoken()
    assert [piece.text for piece in turn.calls[0].prompt[1:]] == [TASK, "Be brief."]


async def test_a_state_that_was_saved_without_its_position_begins_a_round() -> None:
    first, second = (Debate([ADA, BEN], model=SIM, rounds=1) for _ in range(2))
    await first.converse(TASK)
    state = {name: saved for name, saved in (await first.save_state()).items() if name in ("Ada", "Ben")}
    await second.load_state(state)
    assert [turn.speaker for turn in (await second.converse("And trams?")).spoken()] == ["Ada", "Ben"]


def test_turns_and_rounds() -> None:
    assert Debate([ADA], model=SIM).rounds == 2
    assert Debate([ADA], model=SIM, max_turns=7).rounds == 7
    assert Debate([ADA], model=SIM, max_turns=7, rounds=3).rounds == 3
    with pytest.raises(ConfigError, match="max_turns must be at least 1, got 0"):
        Debate([ADA], model=SIM, max_turns=0)


# Streams.


@pytest.mark.parametrize("settings", [{"blind_rounds": 1}, {"order": simultaneous}], ids=["blind", "simultaneous"])
async def test_the_console_shows_concurrent_speakers_one_after_the_other(
    capsys: pytest.CaptureFixture[str], settings: dict[str, Any]
) -> None:
    await Console(Debate(agents(model_client_stream=True), rounds=1, **settings).run_stream(task=TASK))
    concurrent = capsys.readouterr().out
    await Console(RoundRobinGroupChat(agents(model_client_stream=True), max_turns=3).run_stream(task=TASK))  # type: ignore[arg-type]
    assert concurrent == capsys.readouterr().out
    assert "(Ben) ----------\nBen says number 0\n" in concurrent


async def test_evaluators_are_shown_one_after_the_other() -> None:
    loop = Critique(
        ADA,
        {name: AssistantAgent(name, replay("Much too long"), model_client_stream=True) for name in ("bias", "length")},
        criteria={},
        model=SIM,
    )
    shown = [item.source async for item in loop.run_stream(task=TASK) if hasattr(item, "source")]
    assert shown == ["user", "Ada", *["bias"] * 4, *["length"] * 4, "coordinator"]


async def test_a_request_for_input_does_not_wait_for_the_others() -> None:
    asked = asyncio.Event()

    async def answer(prompt: str, token: CancellationToken | None) -> str:
        await asked.wait()  # as a page does that shows the prompt when the event arrives
        return "I agree."

    guest = UserProxyAgent("Guest", input_func=answer)
    debate = Debate([ADA, guest], model=SIM, rounds=1, blind_rounds=1)
    async with asyncio.timeout(5):
        async for item in debate.run_stream(task=TASK):
            if isinstance(item, UserInputRequestedEvent):
                asked.set()
    assert [turn.text for turn in debate.transcript.spoken() if turn.speaker == "Guest"] == ["I agree."]


# Typed replies.


async def test_a_typed_reply_is_a_structured_message_as_an_assistants() -> None:
    text = '{"score": 7}'
    client = ReplayChatCompletionClient(
        [text] * 2,
        model_info={
            "vision": False,
            "function_calling": False,
            "json_output": True,
            "family": ModelFamily.UNKNOWN,
            "structured_output": True,
        },
    )
    persona = PersonaAgent(ADA, client, reply_type=Opinion)
    assistant = AssistantAgent("Ada", client, output_content_type=Opinion)
    ours, theirs = [(await agent.run(task=TASK)).messages[-1] for agent in (persona, assistant)]
    assert type(ours) is type(theirs) is StructuredMessage[Opinion]
    assert ours.content == theirs.content == Opinion(score=7)  # type: ignore[union-attr]
    assert StructuredMessage[Opinion] in persona.produced_message_types


async def test_the_others_read_a_typed_reply_as_it_was_written() -> None:
    written = 'Here is my verdict: {"score" :  7, "so": "{it} is"}'
    debate = Debate([ADA, BEN], model=replay(written, "{}", "{}"), rounds=1, reply_type=lambda c: _type_for(c))
    ada, ben = (await debate.converse(TASK)).spoken()
    assert (ada.text, ada.verdict) == (written, Opinion(score=7))
    assert ben.calls[0].prompt[-1].text == written


def _type_for(cue: Cue) -> type[BaseModel] | None:
    return Opinion if cue.speaker == "Ada" else None


async def test_a_reply_that_cannot_be_parsed_is_a_text_message() -> None:
    result = await Debate([ADA], model=f"{SIM}?malformed=1", rounds=1, reply_type=Opinion).run(task=TASK)
    assert isinstance(result.messages[-1], TextMessage)


async def test_a_saved_typed_reply_is_typed_again() -> None:
    first, second = (Debate([ADA, BEN], model=SIM, max_turns=1, reply_type=Opinion) for _ in range(2))
    await first.run(task=TASK)
    await second.load_state(json.loads(json.dumps(await first.save_state())))
    assert type(second._seats[1].inbox[-1]) is StructuredMessage[Opinion]


async def test_chunks_of_the_first_speaker_are_shown_as_they_arrive() -> None:
    """Only the others wait: chunks of Ada come although Ben has not answered yet."""
    slow = Persona("Ben", "You are slow.", model=f"{SIM}?latency=60")
    quick = AssistantAgent("Ada", replay("Ada says no"), model_client_stream=True)
    stream = Debate([quick, slow], rounds=1, blind_rounds=1).run_stream(task=TASK)
    async with asyncio.timeout(5):
        items = [await anext(stream) for _ in range(4)]
    assert [type(item) for item in items[1:]] == [ModelClientStreamingChunkEvent] * 3
    await stream.aclose()
