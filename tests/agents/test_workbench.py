"""Personas with AutoGen's workbenches: tools in this process, and those of an MCP server over stdio."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_core.tools import FunctionTool, StaticWorkbench

from parley.agents import ConfigError, Debate, PersonaAgent, model
from tests.agents.common import ADA, tool_call

SERVER = '''
from mcp.server.fastmcp import FastMCP

server = FastMCP("letters")


@server.tool()
def count(what: str) -> int:
    """Count the letters."""
    if what == "stones":
        raise ValueError("stones have no letters")
    return len(what)


server.run()
'''


def count(what: str) -> int:
    """Count the letters."""
    return len(what)


def workbench() -> StaticWorkbench:
    return StaticWorkbench([FunctionTool(count, description="Count the letters.")])


async def test_a_persona_uses_a_workbench_as_an_assistant_does(server: Any) -> None:
    for _ in range(2):
        server.says(tool_calls=tool_call("count", what="cats"))
        server.says("Four.")
    events = []
    for agent in (
        PersonaAgent(ADA, server.client(), workbench=workbench()),
        AssistantAgent("Ada", server.client(), workbench=workbench(), max_tool_iterations=9),
    ):
        result = await agent.run(task="How many letters has 'cats'?")
        events.append([(type(message).__name__, message.to_text()) for message in result.messages])
    assert events[0] == events[1]
    assert server.asked[0]["tools"] == server.asked[2]["tools"]


async def test_tools_and_workbenches_together(server: Any) -> None:
    def shout(what: str) -> str:
        """Shout."""
        return what.upper()

    server.says(tool_calls=tool_call("shout", what="cats"))
    server.says(tool_calls=tool_call("count", what="cats"))
    server.says("Four.")
    agent = PersonaAgent(ADA, server.client(), tools=[shout], workbench=[workbench()])
    debate = Debate([agent], rounds=1)
    await debate.run(task="How many?")
    answers = [message["content"] for message in server.asked[2]["messages"] if message["role"] == "tool"]
    assert answers == ["CATS", "4"]
    assert len(debate.transcript.spoken()[0].calls) == 3


async def test_two_tools_of_one_name(server: Any) -> None:
    agent = PersonaAgent(ADA, server.client(), tools=[count], workbench=workbench())
    with pytest.raises(ConfigError, match="two tools are called 'count'"):
        await agent.run(task="How many?")


def test_a_workbench_in_the_place_of_tools(server: Any) -> None:
    with pytest.raises(ConfigError, match="for a workbench, write workbench=… instead"):
        PersonaAgent(ADA, server.client(), tools=workbench())  # type: ignore[arg-type]


def test_a_model_that_cannot_call_tools() -> None:
    with pytest.raises(ConfigError, match="sim/judge cannot call tools, but Ada has some"):
        PersonaAgent(ADA, model("sim/judge"), workbench=workbench())


async def test_a_workbench_is_part_of_the_component(server: Any) -> None:
    agent = PersonaAgent(ADA, server.client(), workbench=workbench())
    again = PersonaAgent.load_component(agent.dump_component())
    assert [schema["name"] for schema in await again.workbench[0].list_tools()] == ["count"]


async def test_an_mcp_server_over_stdio(server: Any, tmp_path: Path) -> None:
    pytest.importorskip("mcp", reason="pip install 'autogen-ext[mcp]'")
    from autogen_ext.tools.mcp import McpWorkbench, StdioServerParams

    (tmp_path / "letters.py").write_text(SERVER)
    parameters = StdioServerParams(command=sys.executable, args=[str(tmp_path / "letters.py")])
    server.says(tool_calls=tool_call("count", what="cats"))
    server.says(tool_calls=tool_call("count", what="stones"))
    server.says("Four.")
    async with McpWorkbench(parameters) as letters:
        agent = PersonaAgent(ADA, server.client(), workbench=letters)
        (turn,) = (await Debate([agent], rounds=1).converse("How many letters has 'cats'?")).spoken()
    assert (turn.text, len(turn.calls)) == ("Four.", 3)
    first, second = [message["content"] for message in server.asked[2]["messages"] if message["role"] == "tool"]
    assert first == "4"
    assert "stones have no letters" in second
