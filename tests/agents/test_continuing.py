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
    MultiModalMessage,
    StructuredMessage,
    TextMessage,
    UserInputRequestedEvent,
)
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_agentchat.ui import Console
from autogen_core import CancellationToken, Image
from autogen_core.models import ModelFamily, UserMessage
from autogen_ext.models.replay import ReplayChatCompletionClient
from PIL import Image as Picture

from parley.agents import ConfigError, Critique, Debate, Persona, PersonaAgent, model, simultaneous
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


async def saved(team: Any) -> Any:
    return json.loads(json.dumps(await team.save_state()))


# Each story below holds for a debate and for a stock team alike.


@BOTH
async def test_a_second_run_and_a_saved_state_continue_with_the_next_speaker(make):
    team, other = (make(agents(), termination_condition=SourceMatchTermination(["Ada"])) for _ in range(2))
    assert sources((await team.run(task=TASK)).messages) == ["user", "Ada"]
    await other.load_state(await saved(team))
    for continued in (team, other):
        assert sources((await continued.run()).messages) == ["Ben", "Cy", "Ada"]
    assert sources((await team.run(task="And trams?")).messages) == ["user", "Ben", "Cy", "Ada"]
    await team.reset()
    assert sources((await team.run(task=TASK)).messages) == ["user", "Ada"]


@BOTH
async def test_a_run_of_so_many_turns(make):
    team = make(agents(), max_turns=2)
    result = await team.run(task=TASK)
    assert sources(result.messages) == ["user", "Ada", "Ben"]
    assert result.stop_reason == "Maximum number of turns 2 reached."
    assert sources((await team.run()).messages) == ["Cy", "Ada"]


# What a stock team does not have: rounds, blind rounds, referees, instructions.


@pytest.mark.parametrize("turns", range(1, 8))
async def test_a_debate_in_pieces_is_the_same_debate(turns):
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
    await rest.load_state(await saved(piece))
    said += (await rest.converse(None)).spoken() if len(said) < 7 else []
    assert [(t.speaker, t.round, t.calls[0].prompt) for t in said] == [
        (t.speaker, t.round, t.calls[0].prompt) for t in whole
    ]


async def test_a_cancelled_turn_is_taken_again_with_its_instruction_once(until):
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


async def test_states_without_a_position_and_of_other_participants():
    first, second = (Debate([ADA, BEN], model=SIM, rounds=1) for _ in range(2))
    await first.converse(TASK)
    state = await saved(first)
    await second.load_state({name: state[name] for name in ("Ada", "Ben")})
    assert [turn.speaker for turn in (await second.converse("And trams?")).spoken()] == ["Ada", "Ben"]
    with pytest.raises(ConfigError, match="the saved state belongs to Ada, Ben, but 'debate' has Ada, Cy; load"):
        await Debate([ADA, CY], model=SIM).load_state(state)


def test_turns_and_rounds():
    assert Debate([ADA], model=SIM).rounds == 2
    assert Debate([ADA], model=SIM, max_turns=7).rounds == 7
    assert Debate([ADA], model=SIM, max_turns=7, rounds=3).rounds == 3


# Messages are themselves again after loading.


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


PICTURE = MultiModalMessage(content=["Look.", Image(Picture.new("RGB", (2, 2)))], source="user")


@pytest.mark.parametrize(
    ("first", "settings", "task", "seat", "kind"),
    [
        (lambda: Notary("Nora", "A notary."), {}, TASK, 1, Signed),
        (lambda: ADA, {"reply_type": Opinion}, TASK, 1, StructuredMessage[Opinion]),
        (lambda: ADA, {}, PICTURE, 0, MultiModalMessage),
    ],
)
async def test_an_unread_message_is_itself_again_after_loading(first, settings, task, seat, kind):
    ends = {"termination_condition": MaxMessageTermination(2 if seat else 1)}
    before, after = (Debate([first(), BEN], model=SIM, **ends, **settings) for _ in range(2))
    await before.run(task=task)
    await after.load_state(await saved(before))
    unread, loaded = (debate._seats[seat].inbox[-1] for debate in (before, after))
    assert type(loaded) is kind
    assert loaded.model_dump(exclude={"created_at"}) == unread.model_dump(exclude={"created_at"})


# Streams.


@pytest.mark.parametrize("settings", [{"blind_rounds": 1}, {"order": simultaneous}], ids=["blind", "simultaneous"])
async def test_the_console_shows_concurrent_speakers_one_after_the_other(capsys, settings):
    await Console(Debate(agents(model_client_stream=True), rounds=1, **settings).run_stream(task=TASK))
    concurrent = capsys.readouterr().out
    await Console(RoundRobinGroupChat(agents(model_client_stream=True), max_turns=3).run_stream(task=TASK))  # type: ignore[arg-type]
    assert concurrent == capsys.readouterr().out
    assert "(Ben) ----------\nBen says number 0\n" in concurrent


async def test_evaluators_are_shown_one_after_the_other():
    loop = Critique(
        ADA,
        {name: AssistantAgent(name, replay("Much too long"), model_client_stream=True) for name in ("bias", "length")},
        criteria={},
        model=SIM,
    )
    shown = [item.source async for item in loop.run_stream(task=TASK) if hasattr(item, "source")]
    assert shown == ["user", "Ada", *["bias"] * 4, *["length"] * 4, "coordinator"]


async def test_neither_a_request_for_input_nor_the_first_speaker_waits_for_the_others():
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
    slow = Persona("Ben", "You are slow.", model=f"{SIM}?latency=60")
    quick = AssistantAgent("Ada", replay("Ada says no"), model_client_stream=True)
    stream = Debate([quick, slow], rounds=1, blind_rounds=1).run_stream(task=TASK)
    async with asyncio.timeout(5):
        items = [await anext(stream) for _ in range(4)]
    assert [type(item) for item in items[1:]] == [ModelClientStreamingChunkEvent] * 3
    await stream.aclose()


# Typed replies.


async def test_a_typed_reply_is_a_structured_message_as_an_assistants():
    info = {"vision": False, "function_calling": False, "json_output": True, "structured_output": True}
    client = ReplayChatCompletionClient(['{"score": 7}'] * 2, model_info={**info, "family": ModelFamily.UNKNOWN})  # type: ignore[arg-type]
    persona = PersonaAgent(ADA, client, reply_type=Opinion)
    assistant = AssistantAgent("Ada", client, output_content_type=Opinion)
    ours, theirs = [(await agent.run(task=TASK)).messages[-1] for agent in (persona, assistant)]
    assert type(ours) is type(theirs) is StructuredMessage[Opinion]
    assert ours.content == theirs.content == Opinion(score=7)  # type: ignore[union-attr]
    assert StructuredMessage[Opinion] in persona.produced_message_types


async def test_the_others_read_a_typed_reply_as_it_was_written_and_an_unread_one_is_text():
    written = '{"score" :  7, "so": "{it} is"}'
    typed = {"reply_type": lambda cue: Opinion if cue.speaker == "Ada" else None}
    ada, ben = (await Debate([ADA, BEN], model=replay(written, "{}", "{}"), rounds=1, **typed).converse(TASK)).spoken()
    assert (ada.text, ada.verdict) == (written, Opinion(score=7))
    assert ben.calls[0].prompt[-1].text == written
    result = await Debate([ADA], model=f"{SIM}?malformed=1", rounds=1, reply_type=Opinion).run(task=TASK)
    assert isinstance(result.messages[-1], TextMessage)
