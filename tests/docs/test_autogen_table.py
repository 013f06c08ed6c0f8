"""docs/autogen.md's table, row by row: the block that a row leads to, beside the same program on stock AutoGen."""

from __future__ import annotations

import ast
import re
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.base import Team
from autogen_agentchat.conditions import MaxMessageTermination, TextMentionTermination
from autogen_agentchat.messages import BaseChatMessage
from autogen_agentchat.teams import DiGraphBuilder, GraphFlow, RoundRobinGroupChat, SelectorGroupChat
from autogen_agentchat.ui import Console
from autogen_core.model_context import BufferedChatCompletionContext
from pydantic import BaseModel

from parley.runs import frames
from tests.docs.test_python import predefined_names

PAGE = (Path(__file__).parents[2] / "docs" / "autogen.md").read_text("utf-8")
TASK = "Should buses be free?"
SAID = "Ada agrees."
Names = dict[str, Any]


def rows() -> list[tuple[str, str]]:
    """What a row of the table is about, and the section that it leads to."""
    table = PAGE.split("| you know | with Parley |\n|---|---|\n")[1].split("\n\n")[0]
    return re.findall(r"^\| (.*?) \| .*?\]\(#([\w-]+)\)", table, re.M)


def block(section: str) -> str:
    """The Python of a section, by its anchor."""
    for heading, body in re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE, re.S | re.M):
        if re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") == section:
            (code,) = re.findall(r"^```python\n(.*?)^```", body, re.S | re.M)
            return str(code)
    raise AssertionError(f"there is no section #{section}")


async def run_block(section: str) -> Names:
    """Run a section's block, and return its names."""
    code = block(section).replace('"openai/gpt-6-luna"', "client")
    names: Names = {"__name__": "a_block_of_the_docs", **predefined_names()}
    compiled = compile(code, section, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    made = eval(compiled, names)
    if made is not None:
        await made
    return names


def said(messages: Iterable[Any]) -> list[tuple[str, str]]:
    """Who said what, without the task: of messages, or of a transcript's turns."""
    pairs = [
        (m.source, m.to_model_text()) if isinstance(m, BaseChatMessage) else (m.speaker, m.text)
        for m in messages
        if isinstance(m, BaseChatMessage) or hasattr(m, "speaker")
    ]
    return [(who, text) for who, text in pairs if who not in ("user", "selector")]


def assistants(client: Any, *names: str, **settings: Any) -> list[AssistantAgent]:
    return [AssistantAgent(name, client, **settings) for name in names or ("Ada", "Ben")]


def round_robin(client: Any, *names: str, **settings: Any) -> RoundRobinGroupChat:
    return RoundRobinGroupChat([*assistants(client, *names)], **settings)


async def clients(ours: Names) -> None:
    team = round_robin(ours["client"], max_turns=2)
    assert said(ours["transcript"].turns) == said((await team.run(task=TASK)).messages)


async def agents_and_teams(ours: Names) -> None:
    client = ours["client"]
    team: list[Any] = [*assistants(client, "Ada", "Helper"), round_robin(client, "Xi", "Yu", name="pair", max_turns=2)]
    stock = said((await RoundRobinGroupChat(team, max_turns=3).run(task=TASK)).messages)
    # The one difference: the whole team speaks with its last message.
    assert [who for who, _ in stock] == ["Ada", "Helper", "Xi", "Yu"]
    assert said(ours["transcript"].turns) == [*stock[:2], ("pair", stock[-1][1])]


async def agent_framework(ours: Names) -> None:
    alone = await ours["Agent"](ours["chat_client"], "You are Eva, an auditor.", name="Eva").run(TASK)
    assert said(ours["transcript"].turns)[0] == ("Eva", alone.text)


async def tools(ours: Names) -> None:
    ada = AssistantAgent(
        "Ada",
        ours["client"],
        tools=[ours["search"]],
        handoffs=["Ben"],
        model_context=BufferedChatCompletionContext(20),
        memory=[],
    )
    team = RoundRobinGroupChat([ada, *assistants(ours["client"], "Ben")], max_turns=2)
    assert said(ours["result"].messages) == said((await team.run(task=TASK)).messages)


async def typed(ours: Names) -> None:
    from parley.agents import Debate, Persona, PersonaAgent, model

    opinion: type[BaseModel] = ours["Opinion"]
    judge = AssistantAgent("Judge", model("sim/judge"), output_content_type=opinion)
    stock = (await judge.run(task=TASK)).messages[-1]
    persona = PersonaAgent(Persona("Judge", "You are a helpful AI assistant."), model("sim/judge"), reply_type=opinion)
    mine = (await persona.run(task=TASK)).messages[-1]
    assert type(mine) is type(stock)
    (turn,) = (await Debate([judge], rounds=1).converse(TASK)).spoken()
    assert isinstance(turn.verdict, opinion)
    assert (ours["turn"].verdict, ours["turn"].parse_status) == (None, "unparsed")


async def instead_of_round_robin(ours: Names) -> None:
    ends = MaxMessageTermination(10) | TextMentionTermination("APPROVE")
    stock = await round_robin(ours["client"], termination_condition=ends).run(task=TASK)
    assert ours["result"].stop_reason == stock.stop_reason
    assert said(ours["result"].messages) == said(stock.messages)


async def next_speaker(ours: Names) -> None:
    """The model names nobody but Ada, so with repeated speakers allowed she goes on in both."""
    team = SelectorGroupChat([*assistants(ours["client"])], ours["client"], allow_repeated_speaker=True, max_turns=2)
    assert said(ours["transcript"].turns) == said((await team.run(task=TASK)).messages)


async def streaming(ours: Names) -> None:
    names = predefined_names()
    team = RoundRobinGroupChat([*assistants(names["client"], model_client_stream=True)], max_turns=2)
    await Console(team.run_stream(task=TASK))


async def stopping(ours: Names) -> None:
    stock = await round_robin(ours["client"], termination_condition=MaxMessageTermination(3)).run(task=TASK)
    again = ours["Debate"](
        [ours["ada"], ours["ben"]], model=ours["client"], rounds=9, termination_condition=MaxMessageTermination(3)
    )
    mine = await again.run(task=TASK)
    assert (said(mine.messages), mine.stop_reason) == (said(stock.messages), stock.stop_reason)


async def a_node(ours: Names) -> None:
    writer, panel = assistants(ours["client"], "Writer", "Panel")
    graph = DiGraphBuilder().add_node(writer).add_node(panel).add_edge(writer, panel)
    stock = await GraphFlow(graph.get_participants(), graph.build()).run(task=TASK)
    mine = said(ours["result"].messages)
    assert [pair for pair in mine if pair[0] not in ("Ada", "Ben")] == said(stock.messages)


async def state(ours: Names) -> None:
    first, second = (round_robin(ours["client"], max_turns=1) for _ in range(2))
    await first.run(task=TASK)
    await second.load_state(await first.save_state())
    stock = said((await second.run()).messages)
    ada_and_ben = {"model": ours["client"], "max_turns": 1}
    one, two = (ours["Debate"]([ours["ada"], ours["ben"]], **ada_and_ben) for _ in range(2))
    await one.run(task=TASK)
    await two.load_state(await one.save_state())
    assert said((await two.run()).messages) == stock == [("Ben", SAID)]


async def components(ours: Names) -> None:
    stock = Team.load_component(round_robin(ours["client"], max_turns=2).dump_component())
    mine = Team.load_component(ours["debate"].dump_component())
    assert said((await mine.run(task=TASK)).messages) == said((await stock.run(task=TASK)).messages)


async def recorded(ours: Names) -> None:
    turns = frames.turns("runs/team.sqlite")
    for _, unit in turns.groupby("unit", observed=True):
        task, *spoken = zip(unit["speaker"], unit["text"], strict=True)
        stock = (await ours["team"]().run(task=task[1])).messages
        assert [pair for pair in spoken if pair[0] != "user"] == said(stock)


BESIDE: dict[str, Callable[[Names], Awaitable[None]]] = {
    "`OpenAIChatCompletionClient(…)`": clients,
    "`AssistantAgent(…)`, a team": agents_and_teams,
    "an agent of Microsoft's Agent Framework": agent_framework,
    "`tools=`, `workbench=`, `handoffs=`, `memory=`, `model_context=`": tools,
    "`output_content_type=`": typed,
    "`RoundRobinGroupChat`": instead_of_round_robin,
    "`SelectorGroupChat`, `Swarm`, `selector_func`": next_speaker,
    "`run_stream`, `Console`, `model_client_stream`": streaming,
    "`MaxMessageTermination(3)` and the others": stopping,
    "a node of a `GraphFlow`": a_node,
    "`save_state`, `load_state`": state,
    "`dump_component`, `load_component`": components,
    "`team.run(task=…)` in a loop over tasks": recorded,
}


def test_every_row_is_compared() -> None:
    assert [row for row, _ in rows()] == list(BESIDE)


@pytest.mark.parametrize(("row", "section"), rows(), ids=[section for _, section in rows()])
async def test_a_row_of_the_table_beside_stock(
    row: str, section: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ours = await run_block(section)
    shown = capsys.readouterr().out
    await BESIDE[row](ours)
    if section == "streaming":
        stock = capsys.readouterr().out
        assert shown.startswith(stock), "the block prints the usage after it"
        assert "ModelClientStreamingChunkEvent (Ben)" in stock
