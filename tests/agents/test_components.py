"""Tables, personas and clients as AutoGen components: saved as JSON, loaded again, the same conversation."""

from __future__ import annotations

import json
from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.base import Team
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.teams import BaseGroupChat, RoundRobinGroupChat
from autogen_core import ComponentModel
from autogen_core.model_context import BufferedChatCompletionContext
from autogen_core.models import ChatCompletionClient
from autogen_core.tools import FunctionTool
from autogen_ext.models.openai import OpenAIChatCompletionClient
from pydantic import BaseModel

from parley.agents import (
    Assessment,
    ConfigError,
    Critique,
    Cue,
    Debate,
    Evaluator,
    Persona,
    PersonaAgent,
    TeamAgent,
    Transcript,
    Turn,
    by_model,
    model,
    shuffled,
    simultaneous,
)
from tests.agents.common import ADA, BEN, KEY, TASK

REF = Persona("Ref", "You are the referee.")
SIM = "sim/judge?base=6&noise=0"


class Opinion(BaseModel):
    score: int


def instruct(cue: Cue) -> str:
    return f"Round {cue.round}."


def only_the_referee(reader: Cue, turn: Turn) -> bool:
    return reader.role == "referee"


def score_length(task: str, draft: str) -> Assessment:
    return Assessment(score=min(100, len(draft)))


def reloaded(team: Team) -> Any:
    """The team, saved as JSON and loaded as AutoGen Studio does."""
    return BaseGroupChat.load_component(ComponentModel(**json.loads(team.dump_component().model_dump_json())))


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
        lambda: Debate([PersonaAgent(ADA, model(SIM), reply_type=Opinion), BEN], model=SIM, rounds=1),
        lambda: Critique(
            ADA,
            EVALUATORS,
            criteria={"bias": "< 5", "score": ">= 7"},
            max_iterations=1,
            measure_only=["length"],
            model=SIM,
        ),
    ],
)
async def test_a_table_is_saved_and_loaded_also_after_a_run(make):
    first = make()
    before = first.dump_component()
    second = reloaded(first)
    assert type(second) is type(first)
    assert second.dump_component() == before
    assert prompts(await second.converse(TASK)) == prompts(await first.converse(TASK))
    assert second.transcript.stop_reason == first.transcript.stop_reason
    assert first.dump_component() == before
    await second.close()


async def test_an_agents_own_reply_type_is_kept():
    agent = PersonaAgent(ADA, model(SIM), reply_type=Opinion)
    ada, ben = (await Debate([agent, BEN], model=SIM, rounds=1).converse(TASK)).spoken()
    assert (ada.verdict, ben.verdict) == (Opinion(score=6), None)
    (turn,) = (await Debate([agent], rounds=1, reply_type=Assessment).converse(TASK)).spoken()
    assert isinstance(turn.verdict, Assessment)
    assert agent.reply_type is Opinion


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


async def test_a_client_of_a_keyless_server_needs_no_key_after_loading(server, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    server.says("Yes.")
    info = {"vision": False, "function_calling": True, "json_output": False, "family": "unknown"}
    client = OpenAIChatCompletionClient(
        model="m", base_url=server.url, api_key="not-needed", model_info={**info, "structured_output": False}
    )
    again = reloaded(Debate([ADA, AssistantAgent("Helper", client)], model=client, rounds=1))
    assert [message.source for message in (await again.run(task=TASK)).messages] == ["user", "Ada", "Helper"]


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


def test_a_saved_function_that_is_gone():
    saved = Debate([ADA], model=SIM, instructions=instruct).dump_component()
    saved.config["instructions"] = saved.config["instructions"].replace("instruct", "advise")
    with pytest.raises(ConfigError, match=r"instructions: there is no .*:advise"):
        Debate.load_component(saved)
