"""Tools and handoffs of a persona: AutoGen's own, called as the model asks for them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

from autogen_agentchat.base import Handoff
from autogen_core import CancellationToken, FunctionCall
from autogen_core.models import FunctionExecutionResult
from autogen_core.tools import BaseTool, FunctionTool

from parley.base.errors import ConfigError

ToolLike = BaseTool[Any, Any] | Callable[..., Any]
"""An AutoGen tool, or a function with type annotations: its docstring tells the model what it does."""


class Toolbox:
    """The tools that an agent may call, and the agents that it may hand over to.

    Args:
        tools: AutoGen tools or functions.
        handoffs: Names of agents, or AutoGen's `Handoff`s.
    """

    def __init__(self, tools: Sequence[ToolLike], handoffs: Sequence[Handoff | str]) -> None:
        self._handoffs = {
            handoff.name: handoff
            for handoff in (Handoff(target=given) if isinstance(given, str) else given for given in handoffs)
        }
        self.tools: list[BaseTool[Any, Any]] = [
            tool if isinstance(tool, BaseTool) else FunctionTool(tool, description=tool.__doc__ or "") for tool in tools
        ]
        self.tools += [handoff.handoff_tool for handoff in self._handoffs.values()]
        self._by_name = {tool.name: tool for tool in self.tools}
        if len(self._by_name) < len(self.tools):
            raise ConfigError("two tools or handoffs have the same name; names must differ")

    async def execute(self, calls: Sequence[FunctionCall], token: CancellationToken) -> list[FunctionExecutionResult]:
        """The results of the calls, which are made concurrently. An error is a result too: the model reads it."""
        return list(await asyncio.gather(*(self._execute(call, token) for call in calls)))

    async def _execute(self, call: FunctionCall, token: CancellationToken) -> FunctionExecutionResult:
        try:
            tool = self._by_name[call.name]
            returned = await tool.run_json(json.loads(call.arguments or "{}"), token, call_id=call.id)
            text, failed = tool.return_value_as_string(returned), False
        except KeyError:
            text, failed = f"there is no tool '{call.name}'", True
        except Exception as error:  # whatever a user's function raises
            text, failed = str(error) or type(error).__name__, True
        return FunctionExecutionResult(call_id=call.id, name=call.name, content=text, is_error=failed)

    def handoff(self, calls: Sequence[FunctionCall]) -> Handoff | None:
        """The first handoff among the calls, if there is one."""
        return next((self._handoffs[call.name] for call in calls if call.name in self._handoffs), None)
