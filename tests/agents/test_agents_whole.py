"""AgentChat's agents at Parley's table, and Parley's personas with what AgentChat's agents have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import HandoffTermination
from autogen_agentchat.messages import HandoffMessage, MultiModalMessage
from autogen_agentchat.teams import DiGraphBuilder, GraphFlow, RoundRobinGroupChat, SelectorGroupChat, Swarm
from autogen_core import Image
from autogen_core.memory import ListMemory, MemoryContent, MemoryMimeType
from autogen_core.model_context import BufferedChatCompletionContext
from autogen_core.models import UserMessage
from PIL import Image as Picture

from parley.agents import (
    BadRequest,
    ConfigError,
    Critique,
    Debate,
    Evaluator,
    PersonaAgent,
    ReplyCache,
    Session,
    model,
    record_calls,
    session,
)
from parley.agents.structured import create
from tests.agents.common import ADA, BEN, SIM, TASK, Opinion, tool_call


def count(what: str) -> int:
    """Count the letters."""
    if what == "stones":
        raise ValueError("stones have no letters")
    return len(what)


async def test_typed_output_of_an_assistant_is_a_verdict(server: Any) -> None:
    server.says('{"score": 7}')
    guest = AssistantAgent("Guest", server.client(), output_content_type=Opinion)
    (turn,) = (await Debate([guest], rounds=1).converse(TASK)).spoken()
    assert (turn.verdict, turn.parse_status) == (Opinion(score=7), "ok")


async def test_what_an_assistant_writes_is_parsed_as_the_debates_type(server: Any) -> None:
    server.says('I say {"score": 7}.', "Seven.")
    guest = AssistantAgent("Guest", server.client())
    first, second = (await Debate([guest], rounds=2, reply_type=Opinion).converse(TASK)).spoken()
    assert (first.verdict, first.parse_status) == (Opinion(score=7), "ok")
    assert (second.verdict, second.parse_status) == (None, "unparsed")


async def test_typed_output_of_an_evaluator_counts(server: Any) -> None:
    server.says('{"score": 7}')
    critic = AssistantAgent("Critic", server.client(), output_content_type=Opinion)
    loop = Critique(ADA, {"critic": Evaluator(critic, Opinion)}, criteria={"score": "< 8"}, model=SIM)
    assert (await loop.converse(TASK)).stop_reason == "all criteria are met"


async def test_a_persona_calls_tools_before_it_speaks(server: Any) -> None:
    server.says(tool_calls=tool_call("count", what="cats"))
    server.says("Four.")
    debate = Debate([PersonaAgent(ADA, server.client(), tools=[count])], rounds=1)
    result = await debate.run(task="How many letters has 'cats'?")
    assert [type(message).__name__ for message in result.messages] == [
        "TextMessage",
        "ToolCallRequestEvent",
        "ToolCallExecutionEvent",
        "TextMessage",
    ]
    (turn,) = debate.transcript.spoken()
    assert (turn.text, len(turn.calls)) == ("Four.", 2)
    *_, asked, answered = server.asked[1]["messages"]
    assert asked["tool_calls"][0]["function"]["name"] == "count"
    assert (answered["role"], answered["content"]) == ("tool", "4")
    assert server.asked[0]["tools"][0]["function"]["description"] == "Count the letters."


async def test_a_tool_that_fails_and_one_that_is_not_there(server: Any) -> None:
    server.says(tool_calls=tool_call("count", what="stones"))
    server.says(tool_calls=tool_call("weigh"))
    server.says("I do not know.")
    await PersonaAgent(ADA, server.client(), tools=[count]).run(task="How many?")
    contents = [message["content"] for message in server.asked[2]["messages"] if message["role"] == "tool"]
    assert contents == ["stones have no letters", "there is no tool 'weigh'"]


async def test_a_persona_that_has_called_tools_often_enough_must_speak(server: Any) -> None:
    server.says(tool_calls=tool_call("count", what="cats"))
    server.says("Four.")
    agent = PersonaAgent(ADA, server.client(), tools=[count], max_tool_iterations=1)
    assert (await agent.run(task="How many?")).messages[-1].to_text() == "Four."  # type: ignore[union-attr]
    assert "tools" not in server.asked[1]


async def test_a_typed_reply_after_tools(server: Any) -> None:
    server.says(tool_calls=tool_call("count", what="cats"))
    server.says('{"score": 4}')
    agent = PersonaAgent(ADA, server.client(), tools=[count])
    (turn,) = (await Debate([agent], rounds=1, reply_type=Opinion).converse("How many?")).spoken()
    assert (turn.verdict, len(turn.calls)) == (Opinion(score=4), 2)


def test_a_model_without_tools() -> None:
    with pytest.raises(ConfigError, match="sim/judge cannot call tools, but Ada has some"):
        PersonaAgent(ADA, model(SIM), tools=[count])


@pytest.mark.parametrize("team", ["debate", "swarm"])
async def test_a_persona_hands_over(server: Any, team: str) -> None:
    server.says(tool_calls=tool_call("transfer_to_user"))
    agent = PersonaAgent(ADA, server.client(), handoffs=["user"])
    ends = HandoffTermination(target="user")
    table = (
        Debate([agent], termination_condition=ends) if team == "debate" else Swarm([agent], termination_condition=ends)
    )
    result = await table.run(task=TASK)
    assert isinstance(result.messages[-1], HandoffMessage)
    assert result.stop_reason == "Handoff to user from Ada detected."


async def test_a_persona_with_a_memory(server: Any) -> None:
    server.says("Noted.")
    memory = ListMemory()
    await memory.add(MemoryContent(content="Fares pay for a quarter.", mime_type=MemoryMimeType.TEXT))
    result = await PersonaAgent(ADA, server.client(), memory=[memory]).run(task=TASK)
    assert [type(message).__name__ for message in result.messages] == [
        "TextMessage",
        "MemoryQueryEvent",
        "TextMessage",
    ]
    assert "Fares pay for a quarter." in json.dumps(server.asked[0]["messages"])


async def test_a_persona_with_a_short_model_context(server: Any) -> None:
    server.says("Yes.", "No.", "Yes, again.")
    agent = PersonaAgent(ADA, server.client(), model_context=BufferedChatCompletionContext(2))
    debate = Debate([agent], rounds=3, instructions=lambda cue: f"Round {cue.round}.")
    await debate.converse(TASK)
    assert [message["content"] for message in server.asked[2]["messages"]] == [ADA.about, "No.", "Round 3."]
    other = PersonaAgent(ADA, server.client(), model_context=BufferedChatCompletionContext(2))
    await other.load_state(json.loads(json.dumps(await agent.save_state())))
    assert await other.save_state() == await agent.save_state()


def picture(colour: str) -> Image:
    return Image(Picture.new("RGB", (2, 2), colour))


def ask(*content: Any) -> list[Any]:
    return [UserMessage(content=list(content), source="Ben")]


async def test_personas_see_images(server: Any) -> None:
    server.says("Red.")
    task = MultiModalMessage(content=["Which colour?", picture("red")], source="user")
    debate = Debate([ADA, BEN], model=server.client(vision=True), rounds=1)
    await debate.run(task=task)
    text, image = server.asked[0]["messages"][1]["content"]
    assert text == {"type": "text", "text": "Which colour?"}
    assert image["image_url"]["url"].startswith("data:image/png;base64,")
    assert "image " in debate.transcript.spoken()[0].calls[0].prompt[1].text


async def test_replies_about_different_images_are_cached_apart(server: Any, tmp_path: Path) -> None:
    server.says("Red.", "Blue.")
    cache, client = ReplyCache(tmp_path / "replies.sqlite"), server.client(vision=True)
    replies = []
    for colour in ("red", "blue", "red"):
        with session(Session("unit", cache=cache)), record_calls() as calls:
            replies.append(((await create(client, ask(picture(colour)), None)).content, calls[0].cached))
        cache.commit()
    cache.close()
    assert replies == [("Red.", False), ("Blue.", False), ("Red.", True)]


async def test_a_client_for_text_only() -> None:
    with pytest.raises(BadRequest, match="accepts text only"):
        await model(SIM).create(ask(picture("red")))


async def test_a_table_is_a_node_of_a_graph(server: Any) -> None:
    server.says("Yes.")
    panel = Debate([ADA, BEN], model=SIM, rounds=1).as_agent("Panel")
    writer, editor = (AssistantAgent(name, server.client()) for name in ("Writer", "Editor"))
    graph = DiGraphBuilder().add_node(writer).add_node(panel).add_node(editor)
    graph.add_edge(writer, panel).add_edge(panel, editor)
    flow = GraphFlow(graph.get_participants(), graph.build())
    result = await flow.run(task=TASK)
    assert [message.source for message in result.messages] == ["user", "Writer", "Ada", "Ben", "Panel", "Editor"]


async def test_a_table_is_a_member_of_a_selector_group_chat(server: Any) -> None:
    server.says("Panel")
    panel = Debate([ADA, BEN], model=SIM, rounds=1).as_agent("Panel", "Two who disagree.")
    guest = AssistantAgent("Guest", model(SIM))
    team = SelectorGroupChat([panel, guest], model_client=server.client(), max_turns=1)
    result = await team.run(task=TASK)
    assert [message.source for message in result.messages] == ["user", "Ada", "Ben", "Panel"]
    assert "Panel: Two who disagree." in json.dumps(server.asked[0])


async def test_a_persona_with_tools_in_a_stock_team(server: Any) -> None:
    server.says(tool_calls=tool_call("count", what="cats"))
    server.says("Four.")
    team = RoundRobinGroupChat([PersonaAgent(ADA, server.client(), tools=[count])], max_turns=1)
    result = await team.run(task="How many?")
    assert [type(message).__name__ for message in result.messages][1:3] == [
        "ToolCallRequestEvent",
        "ToolCallExecutionEvent",
    ]
