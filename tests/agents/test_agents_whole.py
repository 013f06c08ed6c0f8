"""AgentChat's agents and teams at Parley's table: tools, workbenches, memories, handoffs, typed output, images."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.messages import MultiModalMessage
from autogen_agentchat.teams import DiGraphBuilder, GraphFlow, SelectorGroupChat
from autogen_core import Image
from autogen_core.model_context import BufferedChatCompletionContext
from autogen_core.models import UserMessage
from PIL import Image as Picture

from parley.agents import (
    BadRequest,
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
from tests.agents.common import ADA, BEN, SIM, TASK, Opinion, tool_call

MCP_SERVER = '''
from mcp.server.fastmcp import FastMCP

server = FastMCP("letters")


@server.tool()
def count(what: str) -> int:
    """Count the letters."""
    return len(what)


server.run()
'''


def count(what: str) -> int:
    """Count the letters."""
    return len(what)


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


async def test_an_mcp_server_over_stdio(server, tmp_path):
    pytest.importorskip("mcp", reason="pip install 'autogen-ext[mcp]'")
    from autogen_ext.tools.mcp import McpWorkbench, StdioServerParams

    (tmp_path / "letters.py").write_text(MCP_SERVER)
    parameters = StdioServerParams(command=sys.executable, args=[str(tmp_path / "letters.py")])
    server.says(tool_calls=tool_call("count", what="cats"))
    server.says("Four.")
    async with McpWorkbench(parameters) as letters:
        guest = AssistantAgent("Guest", server.client(), workbench=letters, max_tool_iterations=9)
        (turn,) = (await Debate([guest], rounds=1).converse("How many letters has 'cats'?")).spoken()
    assert (turn.text, len(turn.calls)) == ("Four.", 2)


async def test_a_typed_reply_after_tools(server):
    server.says(tool_calls=tool_call("count", what="cats"))
    server.says('{"score": 4}')
    guest = AssistantAgent("Guest", server.client(), tools=[count], max_tool_iterations=9)
    (turn,) = (await Debate([guest], rounds=1, reply_type=Opinion).converse("How many?")).spoken()
    assert (turn.verdict, len(turn.calls)) == (Opinion(score=4), 2)


async def test_a_persona_with_a_short_model_context(server):
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


async def test_personas_see_images(server):
    server.says("Red.")
    task = MultiModalMessage(content=["Which colour?", picture("red")], source="user")
    debate = Debate([ADA, BEN], model=server.client(vision=True), rounds=1)
    await debate.run(task=task)
    text, image = server.asked[0]["messages"][1]["content"]
    assert text == {"type": "text", "text": "Which colour?"}
    assert image["image_url"]["url"].startswith("data:image/png;base64,")
    assert "image " in debate.transcript.spoken()[0].calls[0].prompt[1].text


async def test_replies_about_different_images_are_cached_apart(server, tmp_path):
    server.says("Red.", "Blue.")
    cache, client = ReplyCache(tmp_path / "replies.sqlite"), server.client(vision=True)
    replies = []
    for colour in ("red", "blue", "red"):
        with session(Session("unit", cache=cache)), record_calls() as calls:
            replies.append(((await client.create(ask(picture(colour)))).content, calls[0].cached))
        cache.commit()
    cache.close()
    assert replies == [("Red.", False), ("Blue.", False), ("Red.", True)]


async def test_a_client_for_text_only():
    with pytest.raises(BadRequest, match="accepts text only"):
        await model(SIM).create(ask(picture("red")))


async def test_a_table_is_a_node_of_a_graph(server):
    server.says("Yes.")
    panel = Debate([ADA, BEN], model=SIM, rounds=1).as_agent("Panel")
    writer, editor = (AssistantAgent(name, server.client()) for name in ("Writer", "Editor"))
    graph = DiGraphBuilder().add_node(writer).add_node(panel).add_node(editor)
    graph.add_edge(writer, panel).add_edge(panel, editor)
    flow = GraphFlow(graph.get_participants(), graph.build())
    result = await flow.run(task=TASK)
    assert [message.source for message in result.messages] == ["user", "Writer", "Ada", "Ben", "Panel", "Editor"]


async def test_a_table_is_a_member_of_a_selector_group_chat(server):
    server.says("Panel")
    panel = Debate([ADA, BEN], model=SIM, rounds=1).as_agent("Panel", "Two who disagree.")
    guest = AssistantAgent("Guest", model(SIM))
    team = SelectorGroupChat([panel, guest], model_client=server.client(), max_turns=1)
    result = await team.run(task=TASK)
    assert [message.source for message in result.messages] == ["user", "Ada", "Ben", "Panel"]
    assert "Panel: Two who disagree." in json.dumps(server.asked[0])
