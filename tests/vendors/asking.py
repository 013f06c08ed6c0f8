"""All stand-ins, and how tests ask one: a client that is closed afterwards, one call, a stream, and a tool."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from autogen_core.models import AssistantMessage, FunctionExecutionResult, FunctionExecutionResultMessage
from autogen_core.tools import FunctionTool

from parley.agents import Client, model
from tests.agents.common import ASK
from tests.vendors import anthropic, compatible, google, openai
from tests.vendors.base import StrictServer

STANDINS: dict[str, type[StrictServer]] = {
    "anthropic": anthropic.Standin,
    "google": google.Standin,
    "openai": openai.Standin,
    "server": compatible.OtherServer,
    "vllm": compatible.VLLM,
}


def count(letters: str) -> int:
    """Count letters."""
    return len(letters)


COUNT = FunctionTool(count, "Counts letters.")


@asynccontextmanager
async def client_of(server: StrictServer, options: str = "retries=0") -> AsyncIterator[Any]:
    client: Client = model(server.name(options))
    try:
        yield client
    finally:
        await client.close()


async def asked(server: StrictServer, options: str = "retries=0", messages: Any = ASK, **call: Any) -> Any:
    """The reply of a client that asks once."""
    async with client_of(server, options) as client:
        return await client.create(messages, **call)


async def streamed(server: StrictServer, options: str = "retries=0", **call: Any) -> tuple[str, Any]:
    """The chunks of a streamed reply as one text, and the reply."""
    async with client_of(server, options) as client:
        *chunks, reply = [part async for part in client.create_stream(ASK, **call)]
    return "".join(map(str, chunks)), reply


def result_of(call: Any, content: str = "3", *, is_error: bool = False, thought: str | None = None) -> list[Any]:
    """A conversation in which a tool was called, with its result."""
    result = FunctionExecutionResult(content=content, name=call.name, call_id=call.id, is_error=is_error)
    called = AssistantMessage(content=[call], thought=thought, source="a")
    return [*ASK, called, FunctionExecutionResultMessage(content=[result])]
