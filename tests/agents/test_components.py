"""AutoGen components, saved as JSON and loaded again; and agents of Agent Framework in our conversations."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from agent_framework import Agent, BaseChatClient, tool
from agent_framework.openai import OpenAIChatCompletionClient as FrameworkClient
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.base import Team
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.messages import TextMessage
from autogen_agentchat.teams import BaseGroupChat, RoundRobinGroupChat
from autogen_core import CancellationToken, ComponentModel
from autogen_core.model_context import BufferedChatCompletionContext
from autogen_core.models import ChatCompletionClient, RequestUsage
from autogen_core.tools import FunctionTool
from autogen_ext.models.openai import OpenAIChatCompletionClient
from pydantic import BaseModel

from parley.agents import (
    Assessment,
    BadRequest,
    ConfigError,
    Critique,
    Cue,
    Debate,
    Evaluator,
    NextSpeaker,
    Persona,
    PersonaAgent,
    ReplyCache,
    Session,
    SilentBallot,
    TeamAgent,
    Transcript,
    Turn,
    Usage,
    by_model,
    model,
    session,
    shuffled,
    simultaneous,
)
from parley.agents.framework_agent import FrameworkAgent
from tests.agents.common import ADA, BEN, KEY, TASK, tool_call

REF = Persona("Ref", "You are the referee.")
SIM = "sim/judge?base=6&noise=0"


class Opinion(BaseModel):
    score: int


def instruct(cue: Cue) -> str:
    return f"Round {cue.round}."


def only_the_referee(reader: Cue, turn: Turn) -> bool:
    return reader.role == "referee"


def shown(turn: Turn) -> str:
    return turn.text.upper()


def score_length(task: str, draft: str) -> Assessment:
    return Assessment(score=min(100, len(draft)))


def reloaded(team: Team) -> Any:
    """The team, saved as JSON and loaded as AutoGen Studio does."""
    return BaseGroupChat.load_component(ComponentModel(**json.loads(team.dump_component().model_dump_json())))


def settings(team: Any) -> dict[str, Any]:
    """What a table was given that can be compared."""
    named = ("_heard", "_ballots", "_options")
    return {k: v for k, v in vars(team).items() if k in named or isinstance(v, int | str | frozenset | type)}


def prompts(transcript: Transcript) -> list[Any]:
    return [(turn.speaker, turn.text, turn.verdict, [call.prompt for call in turn.calls]) for turn in transcript.turns]


EVALUATORS: dict[str, Any] = {
    "bias": BEN,
    "length": score_length,
    "panel": Evaluator(REF, Opinion, "Score {draft}.", {"max_tokens": 9}),
}


@pytest.mark.parametrize(
    "make",
    [
        lambda: Debate([ADA, BEN], model=SIM),
        lambda: Debate([ADA, BEN], model=SIM, order=simultaneous, blind_rounds=1, fence="referee", referee=REF),
        lambda: Debate(
            [ADA, BEN], model=SIM, order=shuffled(7), chair=REF, options={"max_tokens": 50}, placement="last"
        ),
        lambda: Debate([ADA, BEN], model=SIM, instructions=instruct, sees=only_the_referee, reply_type=Opinion),
        lambda: Debate([ADA], model=SIM, termination_condition=MaxMessageTermination(3), rounds=4, name="panel"),
        lambda: Debate(
            [ADA, BEN],
            model=SIM,
            max_turns=3,
            readout="expected",
            ballots=[SilentBallot(question="How many?", samples=2)],
            heard={"Ada": "No."},
            model_client_stream=True,
        ),
        lambda: Debate([PersonaAgent(ADA, model(SIM), reply_type=Opinion), BEN], model=SIM, rounds=1),
        lambda: Critique(
            ADA,
            EVALUATORS,
            criteria={"bias": "< 5", "score": ">= 7"},
            max_iterations=1,
            measure_only=["length"],
            model=SIM,
            evaluator_task="a tram",
            revise_prompt="Again: {feedback}",
            draft="Trams.",
            show_draft=shown,
            draft_type=Opinion,
        ),
    ],
)
async def test_a_table_is_saved_and_loaded_also_after_a_run(make):
    first = make()
    before = first.dump_component()
    second = reloaded(first)
    assert (type(second), settings(second)) == (type(first), settings(first))
    assert second.dump_component() == before
    assert prompts(await second.converse(TASK)) == prompts(await first.converse(TASK))
    assert second.transcript.stop_reason == first.transcript.stop_reason
    assert first.dump_component() == before
    await second.close()


async def test_guests_and_tools_are_saved_and_members_of_a_table_share_a_client(server):
    def count(what: str) -> int:
        return len(what)

    context = BufferedChatCompletionContext(4)
    persona = PersonaAgent(ADA, server.client(), model_context=context, model_client_stream=True)
    guest = AssistantAgent("Guest", server.client(), tools=[FunctionTool(count, "Count.")], handoffs=["Ben"])
    pair = RoundRobinGroupChat([AssistantAgent("Xi", server.client())], name="pair", max_turns=1)
    inner = Debate([BEN], model=SIM, name="inner").as_agent("Inner", "One.")
    debate = reloaded(Debate([persona, guest, pair, inner], order=by_model(server.client())))
    ada, assistant, team, agent = (seat.agent for seat in debate._seats)
    assert ada.model_client_stream
    assert [tool["name"] for tool in await assistant._workbench[0].list_tools()] == ["count"]
    assert isinstance(team, TeamAgent)
    assert (agent.name, agent.description) == ("Inner", "One.")
    two = reloaded(Debate([ADA, BEN], model=SIM))
    assert len({id(seat.agent.client) for seat in two._seats}) == 1
    assert [agent.name for agent in two._participants] == ["Ada", "Ben"], "which AutoGen Studio closes"


@pytest.mark.parametrize("name", ["openai/gpt-6-luna?effort=low", "sim/judge?female=+0.4"])
def test_a_client_is_saved_without_its_key(monkeypatch, name):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    client = model(name)
    saved = client.dump_component().model_dump_json()
    assert KEY not in saved
    loaded = ChatCompletionClient.load_component(json.loads(saved))
    assert type(loaded) is type(client)
    assert (loaded.identity, loaded.options) == (client.identity, client.options)  # type: ignore[attr-defined]


def test_autogens_own_client_is_saved_as_itself(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    debate = Debate([ADA], model=OpenAIChatCompletionClient(model="gpt-4o-mini", api_key=KEY))
    saved = debate.dump_component().model_dump_json()
    assert KEY not in saved
    assert "**" not in saved
    assert "autogen_ext.models.openai.OpenAIChatCompletionClient" in saved
    assert reloaded(debate)._seats[0].agent.client.name == "openai/gpt-4o-mini"
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(Exception, match="OPENAI_API_KEY"):
        reloaded(debate)


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"order": lambda round, names: [names]}, "the speaking order"),
        ({"instructions": lambda cue: "Be brief."}, "instructions"),
        ({"sees": lambda reader, turn: True}, "sees"),
    ],
)
def test_a_function_that_cannot_be_imported_cannot_be_saved(settings, what):
    with pytest.raises(ConfigError, match=f"{what} cannot be saved: .*<lambda> is not a function or type"):
        Debate([ADA], model=SIM, **settings).dump_component()


def test_what_cannot_be_saved_or_loaded_is_named(agent):
    with pytest.raises(ConfigError, match=r"^'Ada' cannot be saved: FrameworkAgent: "):
        Debate([agent()]).dump_component()
    with pytest.raises(ConfigError, match=r"^the speaking order cannot be saved: Mine is not one of Parley's"):
        Debate([ADA], model=SIM, order=type("Mine", (NextSpeaker,), {"choose": None})()).dump_component()
    saved = Debate([ADA], model=SIM).dump_component()
    saved.config["participants"] = [model(SIM).dump_component()]
    with pytest.raises(ConfigError, match=r"is neither an agent nor a team$"):
        Debate.load_component(saved)
    saved = Debate([ADA], model=SIM, instructions=instruct).dump_component()
    saved.config["instructions"] = saved.config["instructions"].replace("instruct", "advise")
    with pytest.raises(ConfigError, match=r"instructions: there is no .*:advise"):
        Debate.load_component(saved)


# Agents of Agent Framework


@tool(approval_mode="never_require")
def fare(city: str) -> str:
    """The price of a ticket."""
    return f"3 euros in {city}"


@pytest.fixture
async def agent(server):
    """Makes agents on the server, with Agent Framework's own OpenAI client."""
    client = FrameworkClient("gpt-4o-mini", api_key=KEY, base_url=server.url)

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
    assert (told[-1]["name"], "store" in server.asked[2]) == ("Ben", False)


async def test_tool_calls_are_events_and_every_call_is_recorded_and_cached(server, agent, tmp_path, monkeypatch):
    monkeypatch.setattr(FrameworkClient, "STORES_BY_DEFAULT", True, raising=False)
    server.says("I look it up.", tool_calls=tool_call("fare", city="Ghent"))
    server.says("3 euros are too many.")
    cache = ReplyCache(tmp_path / "replies.sqlite")
    for cached in (False, True):
        debate = Debate([agent(tools=[fare])], rounds=1)
        with session(Session("unit", cache=cache)):
            items = [item async for item in debate.run_stream(task=TASK)]
        cache.commit()
        assert [type(item).__name__ for item in items[1:]] == [
            "ThoughtEvent", "ToolCallRequestEvent", "ToolCallExecutionEvent", "TextMessage", "TaskResult"
        ]  # fmt: skip
        assert (items[1].content, items[1].source, items[2].source) == ("I look it up.", "Ada", "Ada")
        assert (items[2].content[0].name, items[3].content[0].content) == ("fare", "3 euros in Ghent")
        assert items[4].models_usage == RequestUsage(24, 6)
        (turn,) = debate.transcript.spoken()
        assert [("fare" in call.reply, call.cached) for call in turn.calls] == [(True, cached), (False, cached)]
        result = turn.calls[1].prompt[-1]
        assert (result.role, "3 euros in Ghent" in result.text, turn.text) == ("tool", True, "3 euros are too many.")
    cache.close()
    assert [body["store"] for body in server.asked] == [False, False], "the cached turns would be missing there"


@tool(approval_mode="always_require")
def pay(city: str) -> str:
    """Pay for a ticket."""
    raise AssertionError("must not be called")


async def test_its_memory_is_saved_and_its_errors_are_ours(server, agent):
    server.says("Yes.")
    first, second, token = agent(), agent(), CancellationToken()
    task = TextMessage(content=TASK, source="user")
    assert (first.produced_message_types, first.description) == ((TextMessage,), "You are Ada, an auditor.")
    await first.on_messages([task], token)
    await second.load_state(json.loads(json.dumps(await first.save_state())))
    await first.on_reset(token)
    for one, heard in ((first, [TASK]), (second, [TASK, "Yes.", TASK])):
        await one.on_messages([task], token)
        assert [message["content"] for message in server.asked[-1]["messages"][1:]] == heard
    asking = agent(tools=[pay])
    server.says(tool_calls=tool_call("pay"))
    server.fails(400, f"no such model, {KEY}")
    await asking.on_messages([task], token)
    with pytest.raises(ConfigError, match=r"^'Ada' asks for approval of a tool call; give it tools that need no appr"):
        await asking.on_messages([task], token)
    with pytest.raises(BadRequest, match=r"^openai/gpt-4o-mini: the server answered 400: .*no such model, \*\*\*"):
        await first.on_messages([task], token)


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
