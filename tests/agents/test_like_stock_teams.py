"""The same program on a debate and on AutoGen's RoundRobinGroupChat: the same events, stop and continuation."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent, UserProxyAgent
from autogen_agentchat.base import TaskResult, Team, TerminationCondition
from autogen_agentchat.conditions import (
    MaxMessageTermination,
    SourceMatchTermination,
    StopMessageTermination,
    TextMentionTermination,
    TokenUsageTermination,
)
from autogen_agentchat.messages import ModelClientStreamingChunkEvent, TextMessage, UserInputRequestedEvent
from autogen_agentchat.teams import RoundRobinGroupChat, SelectorGroupChat, Swarm
from autogen_core.memory import ListMemory, MemoryContent, MemoryMimeType
from autogen_ext.models.replay import ReplayChatCompletionClient

from parley.agents import Critique, Debate, Evaluator, Persona, PersonaAgent, simultaneous
from tests.agents.common import ADA, BEN, CY, SIM, TASK, USAGE, Opinion, chunk, openai, tool_call


def count(what: str) -> int:
    """Count the letters."""
    return len(what)


def stock(agents: Sequence[Any], ends: TerminationCondition | None = None, turns: int | None = None) -> Team:
    return RoundRobinGroupChat([*agents], termination_condition=ends, max_turns=turns)


async def seen(stream: AsyncIterator[Any]) -> tuple[list[tuple[str, str, str]], TaskResult]:
    """Every event of a stream as its type, source and content, and the result."""
    events: list[tuple[str, str, str]] = []
    async for item in stream:
        if isinstance(item, TaskResult):
            return events, item
        content = item.to_text() if hasattr(item, "to_text") else str(item)
        events.append((type(item).__name__, item.source, content))
    raise AssertionError("no result")


async def compare(ours: Team, theirs: Team) -> list[TaskResult]:
    """Run both on the task: events and messages of the result are the same."""
    (events, result), (expected, stock_result) = [await seen(team.run_stream(task=TASK)) for team in (ours, theirs)]
    assert events == expected
    assert [type(message) for message in result.messages] == [type(message) for message in stock_result.messages]
    return [result, stock_result]


def assistants(client: Any, **settings: Any) -> list[AssistantAgent]:
    return [AssistantAgent(name, client, system_message=f"You are {name}.", **settings) for name in ("Xi", "Yu")]


CONDITIONS = [
    lambda: MaxMessageTermination(3),
    lambda: TextMentionTermination("buses"),
    lambda: SourceMatchTermination(["Yu"]),
    lambda: TokenUsageTermination(max_total_token=30),
    lambda: MaxMessageTermination(5) | StopMessageTermination(),
]


@pytest.mark.parametrize("condition", CONDITIONS)
async def test_conditions_end_both_at_the_same_message(server, condition):
    server.says("Yes.")
    client = openai(server)
    debate = Debate(assistants(client), rounds=9, termination_condition=condition())
    team = stock(assistants(client), condition())
    for _ in range(2):
        ours, theirs = await compare(debate, team)
        assert ours.stop_reason == theirs.stop_reason


FACT = MemoryContent(content="Fares pay for a quarter.", mime_type=MemoryMimeType.TEXT)


@pytest.mark.parametrize(
    ("acting", "first"),
    [
        (lambda client: AssistantAgent("Tom", client, tools=[count], max_tool_iterations=10), {"what": "cats"}),
        (lambda client: AssistantAgent("Mia", client, memory=[ListMemory(memory_contents=[FACT])]), None),
        (lambda client: Swarm([AssistantAgent("Xi", client, handoffs=["Yu"]), assistants(client)[1]], max_turns=2), {}),
        (lambda client: SelectorGroupChat(assistants(client), client, selector_func=lambda _: "Yu", max_turns=1), None),
    ],
    ids=["tools", "memory", "handoffs", "a selector function"],
)
async def test_agents_that_act_do_the_same_in_a_debate(server, acting, first):
    """Each example of docs/autogen.md: the same events and the same requests as without Parley."""
    seen_by, asked = [], []
    for _ in range(2):
        if first is not None:
            server.says(tool_calls=tool_call("count" if first else "transfer_to_yu", **first))
        server.says("Four.")
    for kind in ("ours", "stock"):
        before = len(server.asked)
        agent = acting(openai(server))
        alone = agent if isinstance(agent, Team) else stock([agent], turns=1)
        team = Debate([agent], rounds=1) if kind == "ours" else alone
        events, _ = await seen(team.run_stream(task=TASK))
        seen_by.append([event for event in events if event[1] != agent.name or not isinstance(agent, Team)])
        asked.append([body["messages"] for body in server.asked[before:]])
        if isinstance(team, Debate):
            (turn,) = team.transcript.spoken()
            assert (turn.text, len(turn.calls)) == ("Four.", len(asked[0]))
    assert seen_by[0] == seen_by[1]
    assert seen_by[0][-1][2] == "Four."
    assert asked[0] == asked[1]


async def test_personas_stream_like_assistants(server):
    server.streams(chunk("Ye"), chunk("s."), chunk(finish="stop"), USAGE)
    names = [Persona("Xi", "You are Xi."), Persona("Yu", "You are Yu.")]
    debate = Debate(names, model=server.client(), rounds=1, model_client_stream=True)
    await compare(debate, stock(assistants(openai(server), model_client_stream=True), turns=2))
    assert [turn.text for turn in debate.transcript.spoken()] == ["Yes.", "Yes."]
    items = [item async for item in debate.run_stream(task=TASK)]
    chunks = [item for item in items if isinstance(item, ModelClientStreamingChunkEvent)]
    said = {item.id for item in items if isinstance(item, TextMessage)}
    assert {item.full_message_id for item in chunks} <= said
    in_a_team = RoundRobinGroupChat(
        [PersonaAgent(persona, server.client(), model_client_stream=True) for persona in names], max_turns=2
    )
    await compare(in_a_team, stock(assistants(openai(server), model_client_stream=True), turns=2))


async def test_those_who_speak_at_once_are_shown_one_after_the_other(server):
    """But a question to the user is shown at once: the turn waits for the answer."""
    server.streams(chunk("Ye"), chunk("s."), chunk(finish="stop"), USAGE)
    asked, shown = asyncio.Event(), []

    async def answer(prompt: str, token: Any) -> str:
        await asked.wait()
        return "No."

    people = [ADA, BEN, UserProxyAgent("Uma", input_func=answer)]
    debate = Debate(people, model=server.client(), rounds=1, order=simultaneous, model_client_stream=True)
    async for item in debate.run_stream(task=TASK):
        shown.append((type(item).__name__, getattr(item, "source", "")))
        if isinstance(item, UserInputRequestedEvent):
            asked.set()
    shown.remove(("UserInputRequestedEvent", "Uma"))
    chunks = "ModelClientStreamingChunkEvent"
    spoken = [(kind, name) for name in ("Ada", "Ben") for kind in (chunks, chunks, "TextMessage")]
    assert shown == [("TextMessage", "user"), *spoken, ("TextMessage", "Uma"), ("TaskResult", "")]


# More of AgentChat at the table


async def test_what_an_assistant_says_is_parsed_as_its_own_type_or_the_debates(server):
    server.says('{"score": 7}', '{"score": 7}', "Seven.", '{"score": 7}')
    typed = AssistantAgent("Guest", server.client(), output_content_type=Opinion)
    turns = (await Debate([typed], rounds=1).converse(TASK)).spoken()
    guest = AssistantAgent("Guest", server.client())
    turns += (await Debate([guest], rounds=2, reply_type=Opinion).converse(TASK)).spoken()
    read = [(Opinion(score=7), "ok"), (Opinion(score=7), "ok"), (None, "unparsed")]
    assert [(turn.verdict, turn.parse_status) for turn in turns] == read
    critic = AssistantAgent("Critic", server.client(), output_content_type=Opinion)
    loop = Critique(ADA, {"critic": Evaluator(critic, Opinion)}, criteria={"score": "< 8"}, model=SIM)
    assert (await loop.converse(TASK)).stop_reason == "all criteria are met"


async def test_thoughts_are_events_and_nobody_hears_them(server):
    server.says("Yes.", reasoning_content="Hm.")
    uma = UserProxyAgent("Uma", input_func=lambda prompt: "<think>Well.</think>No.")
    debate = Debate([ADA, uma], model=server.client(), rounds=1)
    events, _ = await seen(debate.run_stream(task=TASK))
    assert events[1:3] == [("ThoughtEvent", "Ada", "Hm."), ("TextMessage", "Ada", "Yes.")]
    assert events[-1] == ("TextMessage", "Uma", "No.")
    assert [(turn.text, turn.thought) for turn in debate.transcript.spoken()] == [("Yes.", "Hm."), ("No.", "Well.")]


# A conversation continues where it stopped


def agents() -> list[AssistantAgent]:
    said = {name: [f"{name} says number {i}" for i in range(9)] for name in ("Ada", "Ben", "Cy")}
    return [AssistantAgent(name, ReplayChatCompletionClient(replies)) for name, replies in said.items()]


def sources(messages: Sequence[Any]) -> list[str]:
    return [message.source for message in messages]


async def saved(team: Any) -> Any:
    return json.loads(json.dumps(await team.save_state()))


@pytest.mark.parametrize(
    "make", [lambda a, **s: Debate(a, rounds=3, **s), lambda a, **s: RoundRobinGroupChat(a, **s)], ids=["ours", "stock"]
)
async def test_a_second_run_and_a_saved_state_continue_with_the_next_speaker(make):
    team, other = (make(agents(), termination_condition=SourceMatchTermination(["Ada"])) for _ in range(2))
    assert sources((await team.run(task=TASK)).messages) == ["user", "Ada"]
    await other.load_state(await saved(team))
    for continued in (team, other):
        assert sources((await continued.run()).messages) == ["Ben", "Cy", "Ada"]
    assert sources((await team.run(task="And trams?")).messages) == ["user", "Ben", "Cy", "Ada"]
    await team.reset()
    assert sources((await team.run(task=TASK)).messages) == ["user", "Ada"]


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
