"""AutoGen's team: `RoundRobinGroupChat` of `AssistantAgent`s on its OpenAI client. It writes no log.

Set up as in its documentation (microsoft.github.io/autogen, AgentChat user guide, "Teams" and "Models"): agents of a
team share one client, `max_turns` ends it, and teams are awaited together. A model that is not OpenAI's needs a
`model_info`. One client serves all teams: a client for each costs several times as much.
"""

from __future__ import annotations

import asyncio
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core.models import ChatCompletionClient, CreateResult, ModelFamily, ModelInfo, RequestUsage
from autogen_ext.models.openai import OpenAIChatCompletionClient

from benchmarks.peers.common import Case, Instant, main
from benchmarks.workload import ABOUT, NAMES, TASK

INFO = ModelInfo(
    vision=False, function_calling=False, json_output=True, structured_output=True, family=ModelFamily.UNKNOWN
)


class InstantClient(ChatCompletionClient):
    """Answers immediately."""

    component_type = "model"

    def __init__(self, instant: Instant) -> None:
        self.instant = instant

    async def create(self, messages: Any, **settings: Any) -> CreateResult:
        await asyncio.sleep(0)
        text = self.instant.reply()
        return CreateResult(finish_reason="stop", content=text, usage=RequestUsage(100, 120), cached=False)

    async def create_stream(self, messages: Any, **settings: Any) -> Any:
        yield await self.create(messages)

    async def close(self) -> None:
        return None

    def actual_usage(self) -> RequestUsage:
        return RequestUsage(0, 0)

    total_usage = actual_usage

    def count_tokens(self, messages: Any, **settings: Any) -> int:
        return 0

    def remaining_tokens(self, messages: Any, **settings: Any) -> int:
        return 100_000

    @property
    def model_info(self) -> ModelInfo:
        return INFO

    capabilities = model_info  # type: ignore[assignment]


async def converse(client: ChatCompletionClient, messages: int) -> None:
    agents = [AssistantAgent(name, client, system_message=ABOUT[name], description=name) for name in NAMES]
    result = await RoundRobinGroupChat([*agents], max_turns=messages).run(task=TASK)
    assert sum(message.source != "user" for message in result.messages) == messages


async def run_case(case: Case) -> None:
    client = (
        OpenAIChatCompletionClient(model="bench", base_url=case.url, api_key="none", model_info=INFO)
        if case.url
        else InstantClient(case.instant)
    )
    await asyncio.gather(*(converse(client, case.messages) for _ in range(case.conversations)))
    await client.close()


if __name__ == "__main__":
    main(run_case, ["autogen-agentchat", "autogen-core", "autogen-ext", "openai"])
