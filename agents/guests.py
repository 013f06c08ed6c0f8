"""AutoGen agents and teams as guests in a conversation.

Their model clients are wrapped, so that all their calls are recorded. A whole team takes part as one agent.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from typing import Any

from autogen_agentchat.agents import BaseChatAgent
from autogen_agentchat.base import ChatAgent, Response, TaskResult, Team
from autogen_agentchat.messages import BaseChatMessage, TextMessage
from autogen_core import CancellationToken
from autogen_core.models import ChatCompletionClient
from autogen_core.tools import Tool, Workbench

from parley.agents.messages import Event
from parley.agents.models.base import Client
from parley.agents.models.registry import as_client
from parley.agents.seats import Seat
from parley.base.errors import ConfigError
from parley.base.tasks import last_item

Container = ChatAgent | Team | Tool | Workbench
"""An object that may have a client: teams have agents, agents have tools, and a tool may be an agent."""


def wrap_clients(guest: Any) -> list[Client]:
    """Wrap every AutoGen client of an agent or team, and of the agents and tools within it; returns all its clients.

    The clients are replaced in place.
    """
    clients: dict[int, Client] = {}
    for container in containers(guest):
        for name, value in list(vars(container).items()):
            if isinstance(value, ChatCompletionClient):
                client = as_client(value)
                if client is not value:
                    # In place: other code may rely on the user's own client, so its `create` is not patched; with only
                    # AutoGen's log of calls, nothing could be cached or refused.
                    setattr(container, name, client)
                clients[id(client)] = client
    return list(clients.values())


def containers(guest: Any) -> list[Any]:
    """The agent or team, and everything in it that may have a client."""
    by_id: dict[int, Any] = {}
    left: list[Any] = [guest]
    while left:
        container = left.pop()
        if id(container) in by_id:
            continue
        by_id[id(container)] = container
        for value in vars(container).values():
            left += [part for part in _parts(value) if isinstance(part, Container)]
    return list(by_id.values())


def _parts(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        yield from value.values()
    elif isinstance(value, list | tuple):
        yield from (part.agent if isinstance(part, Seat) else part for part in value)
    else:
        yield value


class TeamAgent(BaseChatAgent):
    """A whole team as one agent: its members talk among themselves, and the last message is the agent's.

    This lets a team or a Parley conversation be a node of a `GraphFlow` or a member of a `SelectorGroupChat`.

    Args:
        team: Any AutoGen team. It keeps its history; resetting the agent resets the team.
        name: The agent's name; by default the team's.
        description: The description that other agents and a selector read; by default the team's.
    """

    def __init__(self, team: Team, name: str | None = None, description: str | None = None) -> None:
        super().__init__(name or team.name, description or team.description)
        self._team = team

    @property
    def produced_message_types(self) -> Sequence[type[BaseChatMessage]]:
        return (TextMessage,)

    async def on_messages(self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken) -> Response:
        return await last_item(self.on_messages_stream(messages, cancellation_token), Response)

    async def on_messages_stream(
        self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken
    ) -> AsyncGenerator[Event | Response, None]:
        result = None
        async for item in self._team.run_stream(
            task=list(messages) or None, cancellation_token=cancellation_token, output_task_messages=False
        ):
            if isinstance(item, TaskResult):
                result = item
            else:
                yield item
        assert result is not None, "a team's stream ends with a TaskResult"
        spoken = [message for message in result.messages if isinstance(message, BaseChatMessage)]
        if not spoken:
            raise ConfigError(f"the team '{self._team.name}' said nothing ({result.stop_reason})")
        message = TextMessage(content=spoken[-1].to_model_text(), source=self.name)
        yield Response(chat_message=message, inner_messages=list(result.messages))

    async def on_reset(self, cancellation_token: CancellationToken) -> None:
        await self._team.reset()

    async def on_pause(self, cancellation_token: CancellationToken) -> None:
        await self._team.pause()

    async def on_resume(self, cancellation_token: CancellationToken) -> None:
        await self._team.resume()

    async def save_state(self) -> Mapping[str, Any]:
        return await self._team.save_state()

    async def load_state(self, state: Mapping[str, Any]) -> None:
        await self._team.load_state(state)
