"""The tools of an agent: AutoGen tools and functions, workbenches such as an MCP server's, and handoffs to others."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

from autogen_agentchat.base import Handoff
from autogen_core import CancellationToken, FunctionCall
from autogen_core.models import FunctionExecutionResult
from autogen_core.tools import BaseTool, FunctionTool, Tool, ToolSchema, Workbench

from parley.base.errors import ConfigError

ToolLike = BaseTool[Any, Any] | Callable[..., Any]
"""An AutoGen tool, or a function with type annotations: its docstring tells the model what it does."""


class Toolbox:
    """The tools that an agent may call, and the agents that it may hand over to.

    Args:
        tools: AutoGen tools or functions.
        handoffs: Names of agents, or AutoGen's `Handoff`s.
        workbenches: AutoGen's workbenches. Their tools are listed again before every model call, since a server may
            change them.
    """

    def __init__(
        self, tools: Sequence[ToolLike], handoffs: Sequence[Handoff | str], workbenches: Sequence[Workbench]
    ) -> None:
        if isinstance(tools, Workbench):
            raise ConfigError("tools takes a list of tools; for a workbench, write workbench=… instead")
        self._handoffs = {
            handoff.name: handoff
            for handoff in (Handoff(target=given) if isinstance(given, str) else given for given in handoffs)
        }
        self.tools: list[BaseTool[Any, Any]] = [
            tool if isinstance(tool, BaseTool) else FunctionTool(tool, description=tool.__doc__ or "") for tool in tools
        ]
        callable_tools = [*self.tools, *(handoff.handoff_tool for handoff in self._handoffs.values())]
        self._by_name = {tool.name: tool for tool in callable_tools}
        if len(self._by_name) < len(callable_tools):
            raise ConfigError("two tools or handoffs have the same name; names must differ")
        self._workbenches = tuple(workbenches)
        self._workbench_of: dict[str, Workbench] = {}

    def __bool__(self) -> bool:
        return bool(self._by_name or self._workbenches)

    async def offered(self) -> list[Tool | ToolSchema]:
        """All tools, as the model is offered them."""
        offered: list[Tool | ToolSchema] = [*self._by_name.values()]
        self._workbench_of = {}
        for workbench in self._workbenches:
            for schema in await workbench.list_tools():
                name = schema["name"]
                if name in self._by_name or name in self._workbench_of:
                    raise ConfigError(f"two tools are called '{name}'; names must differ, even across workbenches")
                self._workbench_of[name] = workbench
                offered.append(schema)
        return offered

    async def execute(self, calls: Sequence[FunctionCall], token: CancellationToken) -> list[FunctionExecutionResult]:
        """The results of the calls, which are made concurrently. An error is a result too: the model reads it."""
        return list(await asyncio.gather(*(self._execute(call, token) for call in calls)))

    async def _execute(self, call: FunctionCall, token: CancellationToken) -> FunctionExecutionResult:
        try:
            arguments = json.loads(call.arguments or "{}")
            if call.name in self._workbench_of:
                result = await self._workbench_of[call.name].call_tool(call.name, arguments, token, call.id)
                text, failed = result.to_text(), result.is_error
            elif call.name in self._by_name:
                tool = self._by_name[call.name]
                text = tool.return_value_as_string(await tool.run_json(arguments, token, call_id=call.id))
                failed = False
            else:
                text, failed = f"there is no tool '{call.name}'", True
        except Exception as error:  # whatever a user's function raises
            text, failed = str(error) or type(error).__name__, True
        return FunctionExecutionResult(call_id=call.id, name=call.name, content=text, is_error=failed)

    def handoff(self, calls: Sequence[FunctionCall]) -> Handoff | None:
        """The first handoff among the calls, if there is one."""
        return next((self._handoffs[call.name] for call in calls if call.name in self._handoffs), None)
