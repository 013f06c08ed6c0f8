"""The same program on a debate and on AutoGen's RoundRobinGroupChat: the same events, the same stop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.base import TaskResult, Team, TerminationCondition
from autogen_agentchat.conditions import (
    FunctionCallTermination,
    MaxMessageTermination,
    SourceMatchTermination,
    StopMessageTermination,
    TextMentionTermination,
    TokenUsageTermination,
)
from autogen_agentchat.messages import ModelClientStreamingChunkEvent, TextMessage
from autogen_agentchat.teams import RoundRobinGroupChat, SelectorGroupChat, Swarm
from autogen_core import CancellationToken
from autogen_core.memory import ListMemory, MemoryContent, MemoryMimeType
from autogen_core.tools import FunctionTool, StaticWorkbench
from autogen_ext.models.openai import OpenAIChatCompletionClient

from parley.agents import ConfigError, Critique, Debate, Persona, PersonaAgent
from tests.agents.common import ADA, BEN, SIM, TASK, USAGE, chunk, tool_call


def openai(server: Any) -> OpenAIChatCompletionClient:
    return OpenAIChatCompletionClient(model="gpt-4o-mini", base_url=server.url, api_key="none", max_retries=0)


def count(what: str) -> int:
    """Count the letters."""
    return len(what)


async def stock(agents: Sequence[Any], ends: TerminationCondition | None = None, turns: int | None = None) -> Team:
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


async def compare(ours: Team, theirs: Team, task: Any = TASK) -> tuple[list[tuple[str, str, str]], TaskResult]:
    """Run both on the task: events, messages of the result and reason to stop are the same."""
    events, result = await seen(ours.run_stream(task=task))
    expected, stock_result = await seen(theirs.run_stream(task=task))
    assert events == expected
    assert [type(message) for message in result.messages] == [type(message) for message in stock_result.messages]
    return events, result


def assistants(client: Any, **settings: Any) -> list[AssistantAgent]:
    return [AssistantAgent(name, client, system_message=f"You are {name}.", **settings) for name in ("Xi", "Yu")]


CONDITIONS = [
    lambda: MaxMessageTermination(3),
    lambda: MaxMessageTermination(1),
    lambda: TextMentionTermination("Yes"),
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
    team = await stock(assistants(client), condition())
    events, result = await seen(debate.run_stream(task=TASK))
    expected, stock_result = await seen(team.run_stream(task=TASK))
    assert events == expected
    assert result.stop_reason == stock_result.stop_reason
    again, _ = await seen(debate.run_stream(task=TASK))
    assert again == (await seen(team.run_stream(task=TASK)))[0]


async def test_tool_calls_and_results_are_streamed_and_conditions_see_them(server):
    results = []
    for kind in ("ours", "stock"):
        server.says(tool_calls=tool_call("count", what="cats"))
        agents = assistants(openai(server), tools=[count])
        ends = FunctionCallTermination("count")
        team = Debate(agents, rounds=3, termination_condition=ends) if kind == "ours" else await stock(agents, ends)
        results.append(await seen(team.run_stream(task=TASK)))
    (events, result), (expected, stock_result) = results
    assert events == expected
    assert [kind for kind, *_ in events] == [
        "TextMessage",
        "ToolCallRequestEvent",
        "ToolCallExecutionEvent",
        "ToolCallSummaryMessage",
    ]
    assert (result.stop_reason, len(result.messages)) == (stock_result.stop_reason, 4)


async def with_memory(client: Any) -> Any:
    memory = ListMemory()
    await memory.add(MemoryContent(content="Fares pay for a quarter.", mime_type=MemoryMimeType.TEXT))
    return AssistantAgent("Mia", client, memory=[memory])


async def with_tools(client: Any) -> Any:
    return AssistantAgent("Tom", client, tools=[count], max_tool_iterations=10)


async def with_a_workbench(client: Any) -> Any:
    tools = StaticWorkbench([FunctionTool(count, description="Count the letters.")])
    return AssistantAgent("Wim", client, workbench=tools, max_tool_iterations=10)


async def with_handoffs(client: Any) -> Any:
    return Swarm([AssistantAgent("Xi", client, handoffs=["Yu"]), AssistantAgent("Yu", client)], max_turns=2)


async def with_a_selector_function(client: Any) -> Any:
    return SelectorGroupChat(assistants(client), client, selector_func=lambda messages: "Yu", max_turns=1)


@pytest.mark.parametrize(
    ("acting", "first"),
    [
        (with_tools, {"tool_calls": tool_call("count", what="cats")}),
        (with_a_workbench, {"tool_calls": tool_call("count", what="cats")}),
        (with_memory, None),
        (with_handoffs, {"tool_calls": tool_call("transfer_to_yu")}),
        (with_a_selector_function, None),
    ],
)
async def test_agents_that_act_do_the_same_in_a_debate(server, acting, first):
    """Each example of docs/autogen.md: the same events and the same requests as without Parley."""
    seen_by, asked = [], []
    for _ in range(2):
        if first is not None:
            server.says(**first)
        server.says("Four.")
    for kind in ("ours", "stock"):
        before = len(server.asked)
        agent = await acting(openai(server))
        alone = agent if isinstance(agent, Team) else await stock([agent], turns=1)
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
    await compare(debate, await stock(assistants(openai(server), model_client_stream=True), turns=2))
    assert [turn.text for turn in debate.transcript.spoken()] == ["Yes.", "Yes."]
    items = [item async for item in debate.run_stream(task=TASK)]
    chunks = [item for item in items if isinstance(item, ModelClientStreamingChunkEvent)]
    said = {item.id for item in items if isinstance(item, TextMessage)}
    assert {item.full_message_id for item in chunks} <= said
    in_a_team = RoundRobinGroupChat(
        [PersonaAgent(persona, server.client(), model_client_stream=True) for persona in names], max_turns=2
    )
    await compare(in_a_team, await stock(assistants(openai(server), model_client_stream=True), turns=2))


@pytest.mark.parametrize("kind", ["ours", "stock"])
async def test_a_second_run_of_a_running_table_is_refused(server, until, kind):
    server.keeps_silent()
    team = Debate(assistants(openai(server))) if kind == "ours" else await stock(assistants(openai(server)))
    token = CancellationToken()
    first = asyncio.ensure_future(team.run(task=TASK, cancellation_token=token))
    await until(lambda: server.asked)
    with pytest.raises(ConfigError if kind == "ours" else ValueError, match="running"):
        await team.run(task=TASK)
    token.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_cancellation_is_noticed_between_turns():
    token = CancellationToken()
    debate = Debate([ADA, BEN], model=SIM)
    heard: list[str] = []

    async def listen() -> None:
        async for turn in debate.stream(TASK, token):
            heard.append(turn.speaker)
            if turn.speaker == "Ada":
                token.cancel()

    with pytest.raises(asyncio.CancelledError):
        await listen()
    assert heard == ["user", "Ada"]
    assert [turn.speaker for turn in (await debate.converse(TASK)).spoken()] == ["Ben", "Ada", "Ben"]


async def test_a_critique_loop_counts_its_messages_like_a_team():
    loop = Critique(
        ADA, {"bias": BEN}, criteria={"bias": "< 0"}, model=SIM, termination_condition=MaxMessageTermination(4)
    )
    result = await loop.run(task=TASK)
    assert [message.source for message in result.messages] == ["user", "Ada", "Ben", "coordinator"]
