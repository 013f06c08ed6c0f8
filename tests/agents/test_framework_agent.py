"""Agents of Agent Framework in our conversations, on its own OpenAI client: recorded, cached, budgeted, cancelled."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest
from agent_framework import Agent, BaseChatClient, tool
from agent_framework.openai import OpenAIChatCompletionClient

import parley
from parley.agents import (
    AuthError,
    Budget,
    BudgetSpent,
    ConfigError,
    Debate,
    ReplyCache,
    Session,
    Usage,
    session,
)
from parley.agents.framework_agent import FrameworkAgent
from tests.agents.common import BEN, KEY, TASK

Make = Callable[..., FrameworkAgent]
CALL = {"id": "c1", "type": "function", "function": {"name": "fare", "arguments": '{"city": "Ghent"}'}}


@tool(approval_mode="never_require")
def fare(city: str) -> str:
    """The price of a ticket."""
    return f"3 euros in {city}"


@pytest.fixture
async def agent(server):
    """Makes agents on the server, with Agent Framework's own OpenAI client."""
    client = OpenAIChatCompletionClient("gpt-4o-mini", api_key=KEY, base_url=server.url)

    def make(name: str = "Ada", **settings: Any) -> FrameworkAgent:
        return FrameworkAgent(Agent(client, f"You are {name}, an auditor.", name=name, **settings))

    yield make
    await client.client.close()


async def test_it_debates_with_a_persona_and_remembers(server, agent):
    server.says("Yes.", "No.", "Still yes.", "Still no.")
    transcript = await Debate([agent(), BEN], model=server.client(), rounds=2).converse(TASK)
    assert [turn.text for turn in transcript.spoken()] == ["Yes.", "No.", "Still yes.", "Still no."]
    spent = Usage(calls=2, prompt_tokens=24, completion_tokens=6, cost=pytest.approx(2 * (12 * 0.15 + 3 * 0.6) / 1e6))
    assert transcript.usage()["Ada"] == spent
    ((call,), told) = transcript.spoken()[2].calls, server.asked[2]["messages"]
    assert (call.model, call.reply, call.attempts, call.cut) == ("openai/gpt-4o-mini", "Still yes.", 1, False)
    heard = [("system", "You are Ada, an auditor."), ("user", TASK), ("assistant", "Yes."), ("user", "No.")]
    assert [(piece.role, piece.text) for piece in call.prompt] == heard
    assert [(message["role"], message["content"]) for message in told] == heard
    assert told[-1]["name"] == "Ben"


async def test_tool_calls_are_events_and_every_call_is_recorded(server, agent):
    server.says(tool_calls=[CALL])
    server.says("3 euros are too many.")
    debate = Debate([agent(tools=[fare])], rounds=1)
    items = [item async for item in debate.run_stream(task=TASK)]
    assert [type(item).__name__ for item in items[1:]] == [
        "ToolCallRequestEvent", "ToolCallExecutionEvent", "TextMessage", "TaskResult"
    ]  # fmt: skip
    assert (items[1].content[0].name, items[2].content[0].content) == ("fare", "3 euros in Ghent")
    assert items[3].models_usage.completion_tokens == 6
    (turn,) = debate.transcript.spoken()
    assert ["fare" in call.reply for call in turn.calls] == [True, False]
    result = turn.calls[1].prompt[-1]
    assert (result.role, "3 euros in Ghent" in result.text, turn.text) == ("tool", True, "3 euros are too many.")


async def test_its_replies_are_cached_and_its_calls_budgeted(server, agent, tmp_path):
    server.says(tool_calls=[CALL])
    server.says("Yes.", "No.")
    cache, budget = ReplyCache(tmp_path / "replies.sqlite"), Budget(max_calls=3)
    seen = []
    for _ in range(2):
        with session(Session("unit", cache=cache, budget=budget)):
            seen.append(await Debate([agent(tools=[fare])], rounds=2).converse(TASK))
        cache.commit()
    assert [[turn.text for turn in transcript.spoken()] for transcript in seen] == [["Yes.", "No."]] * 2
    cached = [[call.cached for turn in transcript.spoken() for call in turn.calls] for transcript in seen]
    assert cached == [[False] * 3, [True] * 3]
    assert len(server.asked) == budget.calls == 3
    with session(Session("other", cache=cache, budget=budget)), pytest.raises(BudgetSpent):
        await Debate([agent()], rounds=1).converse(TASK)
    cache.close()
    assert KEY.encode() not in (tmp_path / "replies.sqlite").read_bytes()


async def test_a_failed_turn_loses_nothing_it_was_told(server, agent):
    server.fails(401, f"no, {KEY}")
    server.says("Yes.")
    debate = Debate([agent()], rounds=1)
    with pytest.raises(AuthError, match="openai/gpt-4o-mini: the server answered 401, the key was refused"):
        await debate.converse(TASK)
    await debate.converse("And trams?")
    assert [message["content"] for message in server.asked[-1]["messages"][1:]] == [TASK, "And trams?"]


async def test_state_and_reset(server, agent):
    server.says("Yes.")
    debate = Debate([agent()], rounds=1)
    await debate.converse(TASK)
    state = json.loads(json.dumps(await debate.save_state()))
    again = Debate([agent()], rounds=1)
    await again.load_state(state)
    await again.converse("Sure?")
    told = [message["content"] for message in server.asked[-1]["messages"][1:]]
    assert told == [TASK, "Yes.", "Sure?"]
    await again.reset()
    await again.converse("Sure?")
    assert [message["content"] for message in server.asked[-1]["messages"][1:]] == ["Sure?"]


async def test_a_recorded_run_is_resumed(server, agent, tmp_path):
    server.says("Yes.", "No.")
    server.fails(400, "too long")
    server.says("Yes.")

    def team() -> Debate:
        return Debate([agent()], rounds=1)

    tasks = [{"task": f"Should a {who} ride for free?", "who": who} for who in ("nurse", "pilot", "baker")]
    options = parley.Options(concurrency=1)
    first = await parley.record_async(team, tasks, out=str(tmp_path / "run.sqlite"), options=options)
    assert (first.progress.done, first.progress.failed) == (2, 1)
    second = await parley.record_async(team, tasks, out=str(tmp_path / "run.sqlite"), options=options)
    assert (second.progress.done, len(server.asked)) == (3, 4)


class Plain(BaseChatClient):
    """A client without the layers that run middleware."""

    def _inner_get_response(self, **_: Any) -> Any:
        raise AssertionError("must not be called")


async def test_what_cannot_take_part_says_why(agent, monkeypatch):
    with pytest.raises(ConfigError, match="'Ada' cannot take part: it runs no chat middleware"):
        FrameworkAgent(Agent(Plain(), name="Ada"))
    with pytest.raises(ConfigError, match=r"give another: FrameworkAgent\(agent, 'Ada'\)"):
        agent("Dr. Ada")
    monkeypatch.setitem(sys.modules, "agent_framework", None)
    with pytest.raises(ConfigError, match=r"pip install 'parley-autogen\[agent-framework\]'"):
        FrameworkAgent(object())
