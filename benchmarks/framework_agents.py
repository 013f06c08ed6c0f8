"""CPU per message of one debate with three kinds of agents: personas, AutoGen's agents, Agent Framework's agents.

    python -m benchmarks.framework_agents                      # 32 conversations of 8 messages, five times
    python -m benchmarks.framework_agents --conversations 4    # to try it out

Needs the extra `agent-framework`. All cases run in this process in turn, on models that answer immediately. In a debate
every call is recorded. Agent Framework's agents alone, in a plain loop of `run`, record nothing; neither does its own
group chat, which is measured where agent-framework-orchestrations is installed.
"""

from __future__ import annotations

import asyncio
import importlib.util
import itertools
import logging
from collections.abc import Callable
from typing import Any

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    FunctionInvocationLayer,
    Message,
)
from agent_framework.observability import ChatTelemetryLayer
from autogen_agentchat.agents import AssistantAgent

from benchmarks.panel import PERSONAS
from benchmarks.panel import InstantClient as ParleyInstant
from benchmarks.peers.autogen import InstantClient as AutoGenInstant
from benchmarks.peers.common import Instant
from benchmarks.streaming import Case, measure
from benchmarks.workload import ABOUT, MESSAGES, NAMES, ROUNDS, TASK, reply
from parley.agents import Debate, FrameworkAgent


class FrameworkInstant(FunctionInvocationLayer, ChatMiddlewareLayer, ChatTelemetryLayer, BaseChatClient):  # type: ignore[misc]
    """Answers immediately, with the layers of Agent Framework's own clients."""

    async def _inner_get_response(self, **_: Any) -> ChatResponse:
        await asyncio.sleep(0)
        usage = {"input_token_count": 100, "output_token_count": 120}
        return ChatResponse(messages=[Message("assistant", [reply()])], usage_details=usage, finish_reason="stop")


def framework_agents() -> list[Agent]:
    client = FrameworkInstant()
    return [Agent(client, ABOUT[name], name=name) for name in NAMES]


async def debate(participants: list[Any]) -> None:
    transcript = await Debate(participants, model=ParleyInstant("instant/bench"), rounds=ROUNDS).converse(TASK)
    assert sum(len(turn.calls) for turn in transcript.spoken()) == MESSAGES


async def plain_loop() -> None:
    """Each agent keeps its own session and hears what was said since its last turn."""
    agents = framework_agents()
    sessions = [agent.create_session() for agent in agents]
    said = [Message("user", [TASK])]
    for turn in range(MESSAGES):
        seat = turn % len(agents)
        heard = said[-len(agents) + 1 :] if turn >= len(agents) else said
        response = await agents[seat].run(list(heard), session=sessions[seat])
        said.append(Message("user", [response.text], author_name=NAMES[seat]))


async def group_chat() -> None:
    from agent_framework_orchestrations import GroupChatBuilder

    names = itertools.cycle(NAMES)
    chat = GroupChatBuilder(
        participants=framework_agents(), selection_func=lambda state: next(names), max_rounds=MESSAGES
    )
    await chat.build().run(TASK)


CASES: dict[str, Callable[[], Any]] = {
    "personas": lambda: debate(list(PERSONAS)),
    "AutoGen's agents": lambda: debate(
        [AssistantAgent(n, AutoGenInstant(Instant()), system_message=ABOUT[n], description=n) for n in NAMES]
    ),
    "Agent Framework's agents": lambda: debate([FrameworkAgent(agent) for agent in framework_agents()]),
    "Agent Framework's agents, alone": plain_loop,
}
if importlib.util.find_spec("agent_framework_orchestrations"):
    CASES["Agent Framework's group chat"] = group_chat


def many(converse: Callable[[], Any]) -> Case:
    async def run(count: int, folder: str) -> None:
        await asyncio.gather(*(converse() for _ in range(count)))

    return run


if __name__ == "__main__":
    logging.disable(logging.WARNING)  # a group chat warns that it ends after its last round
    measure({name: many(converse) for name, converse in CASES.items()}, __doc__)
