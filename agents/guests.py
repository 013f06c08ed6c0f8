"""AutoGen agents and teams as guests: their model clients are wrapped, so that every call of theirs is recorded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from autogen_agentchat.base import ChatAgent, Team
from autogen_core.models import ChatCompletionClient
from autogen_core.tools import Tool, Workbench

from parley.agents.models.base import Client
from parley.agents.models.registry import as_client
from parley.agents.seats import Seat

Container = ChatAgent | Team | Tool | Workbench
"""What may have a client: teams have agents, agents have tools, and a tool may be an agent again."""


def wrap_clients(guest: Any) -> list[Client]:
    """Wrap every AutoGen client of an agent or team, and of the agents and tools within it; returns all its clients.

    The clients are replaced in place. A wrapped client is saved (`dump_component`) as the one inside it.
    """
    clients: dict[int, Client] = {}
    for container in containers(guest):
        for name, value in list(vars(container).items()):
            if isinstance(value, ChatCompletionClient):
                client = as_client(value)
                if client is not value:
                    setattr(container, name, client)
                clients[id(client)] = client
    return list(clients.values())


def find_agents(guest: Any) -> list[ChatAgent]:
    """The agent itself, or all agents of a team, those of inner teams included."""
    return [container for container in containers(guest) if isinstance(container, ChatAgent)]


def containers(guest: Any) -> list[Any]:
    """The agent or team, and everything in it that may have a client."""
    found: dict[int, Any] = {}
    left: list[Any] = [guest]
    while left:
        container = left.pop()
        if id(container) in found or not hasattr(container, "__dict__"):
            continue
        found[id(container)] = container
        for value in vars(container).values():
            left += [part for part in _parts(value) if isinstance(part, Container)]
    return list(found.values())


def _parts(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        yield from value.values()
    elif isinstance(value, list | tuple):
        yield from (part.agent if isinstance(part, Seat) else part for part in value)
    else:
        yield value
