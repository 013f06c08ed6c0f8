"""Agents of Microsoft's Agent Framework, AutoGen's successor, as participants: every model call of theirs is recorded.

    agent = Agent(OpenAIChatCompletionClient("gpt-6-luna"), "You are Ada, an auditor.", name="Ada")
    transcript = await Debate([FrameworkAgent(agent), ben]).converse("Should buses be free?")

Their calls pass through a chat middleware of ours, so that cache, budget and prices apply as to our own clients.
Recording one call per turn, from the agent's total usage, would lose prompts and cache; wrapping their chat client
would mean translating every option.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from contextvars import ContextVar
from typing import Any

from autogen_agentchat.agents import BaseChatAgent
from autogen_agentchat.base import Response
from autogen_agentchat.messages import (
    BaseChatMessage,
    TextMessage,
    ThoughtEvent,
    ToolCallExecutionEvent,
    ToolCallRequestEvent,
)
from autogen_core import CancellationToken, FunctionCall
from autogen_core.models import (
    AssistantMessage,
    FunctionExecutionResult,
    FunctionExecutionResultMessage,
    LLMMessage,
    RequestUsage,
    SystemMessage,
    UserMessage,
)
from autogen_core.tools import ToolSchema

from parley.agents.messages import Emit, Event
from parley.agents.models.base import Client
from parley.agents.models.reply import Reply
from parley.agents.models.request import Request
from parley.agents.models.wrapped import model_error
from parley.base.errors import ConfigError
from parley.base.tasks import streamed

CallNext = Callable[[], Awaitable[None]]
_IN_PROGRESS: ContextVar[tuple[Any, CallNext]] = ContextVar("parley_framework_call")
"""Agent Framework's context of the call that is being made, and the function that makes it."""


class FrameworkClient(Client):
    """The chat client of an agent of Agent Framework, as one of ours. It makes the calls of that agent only.

    Args:
        inner: the chat client.
    """

    def __init__(self, inner: Any) -> None:
        vendor, model = getattr(inner, "OTEL_PROVIDER_NAME", "unknown"), getattr(inner, "model", None)
        known = model and vendor != "unknown"
        super().__init__(f"{vendor}/{model}" if known else f"agent_framework/{model or type(inner).__name__}")
        self.identity = f"{self.name} {type(inner).__name__} {inner.service_url()}"
        self._key = str(getattr(getattr(inner, "client", None), "api_key", ""))

    def for_wire(self, request: Request) -> Request:
        return request  # what is sent is up to the agent

    async def send(self, request: Request) -> Reply:
        context, call_next = _IN_PROGRESS.get()
        try:
            await call_next()
        except Exception as error:
            # Agent Framework's error has the vendor's as its cause, and that one has the HTTP status.
            cause = error.__cause__ if isinstance(error.__cause__, Exception) else error
            raise model_error(cause, self.name, self._key) from error
        return _as_reply(context.result)


class FrameworkAgent(BaseChatAgent):
    """An agent of Agent Framework as an AutoGen agent, which can take part in a conversation or be recorded alone.

    Args:
        agent: The agent. It remembers the conversation in a session that nobody else uses.
        name: Its name in the conversation; by default its own.
    """

    def __init__(self, agent: Any, name: str | None = None) -> None:
        try:
            import agent_framework  # an optional package, loaded only by those who wrap an agent
        except ModuleNotFoundError as error:
            install = "pip install 'parley-autogen[agent-framework]'"
            raise ConfigError(f"FrameworkAgent needs the package '{error.name}': {install}") from None
        name = name or getattr(agent, "name", None)
        if not name or not name.isidentifier():
            raise ConfigError(f"{name!r} cannot be an agent's name here; give another: FrameworkAgent(agent, 'Ada')")
        client = getattr(agent, "client", None)
        if not isinstance(agent, agent_framework.Agent) or not isinstance(client, agent_framework.ChatMiddlewareLayer):
            raise ConfigError(f"'{name}' cannot take part: it runs no chat middleware, so its calls cannot be recorded")
        super().__init__(name, agent.description or str(agent.default_options.get("instructions") or "")[:200])
        self._framework, self._agent, self.client = agent_framework, agent, FrameworkClient(client)
        # A service that stores the conversation itself would not get the turns that come from the reply cache.
        self._options = {"store": False} if getattr(client, "STORES_BY_DEFAULT", False) else None
        self._session, self._unread = agent.create_session(), list[Any]()

    @property
    def produced_message_types(self) -> Sequence[type[BaseChatMessage]]:
        return (TextMessage,)

    async def on_messages(self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken) -> Response:
        return await self._speak(messages, cancellation_token)

    async def on_messages_stream(
        self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken
    ) -> AsyncGenerator[Event | Response, None]:
        async with aclosing(streamed(lambda emit: self._speak(messages, cancellation_token, emit))) as items:
            async for item in items:
                yield item

    async def _speak(
        self, messages: Sequence[BaseChatMessage], token: CancellationToken, emit: Emit | None = None
    ) -> Response:
        inner: list[Event] = []

        def note(event: Event) -> None:
            inner.append(event)
            if emit is not None:
                emit(event)

        # The session gets a turn's messages at its end, so those of a turn that failed are given again.
        new = self._framework.Message
        self._unread += [new("user", [each.to_model_text()], author_name=each.source) for each in messages]
        record = self._framework.chat_middleware(self._recorder(note))
        task = asyncio.ensure_future(
            self._agent.run(list(self._unread), session=self._session, middleware=[record], options=self._options)
        )
        token.link_future(task)
        response = await task
        self._unread.clear()
        if response.user_input_requests:
            raise ConfigError(f"'{self.name}' asks for approval of a tool call; give it tools that need no approval")
        text = _text(response.messages[-1]) if response.messages else ""
        said = TextMessage(content=text, source=self.name, models_usage=_usage(response))
        return Response(chat_message=said, inner_messages=inner)

    def _recorder(self, note: Emit) -> Callable[[Any, CallNext], Awaitable[None]]:
        """A chat middleware that makes each call through our client, and notes tool calls and thoughts."""

        async def record(context: Any, call_next: CallNext) -> None:
            prompt = [_as_llm_message(message) for message in context.messages]
            options = {key: value for key, value in (context.options or {}).items() if value is not None}
            tools = [_schema(tool) for tool in options.pop("tools", ())]
            if isinstance(prompt[-1], FunctionExecutionResultMessage):
                note(ToolCallExecutionEvent(content=prompt[-1].content, source=self.name))
            if instructions := options.pop("instructions", None):
                prompt.insert(0, SystemMessage(content=instructions))
            outer = _IN_PROGRESS.set((context, call_next))
            try:
                reply = await self.client.create(prompt, tools=tools, extra_create_args=options)
            finally:
                _IN_PROGRESS.reset(outer)
            if reply.cached:
                context.result = self._response(reply)
            if reply.thought:
                note(ThoughtEvent(content=reply.thought, source=self.name))
            if not isinstance(reply.content, str):
                note(ToolCallRequestEvent(content=reply.content, source=self.name, models_usage=reply.usage))

        return record

    def _response(self, reply: Reply) -> Any:
        """A reply from the cache as Agent Framework's response."""
        contents: list[Any] = [reply.content]
        if not isinstance(reply.content, str):
            as_content = self._framework.Content.from_function_call
            contents = [reply.thought] if reply.thought else []
            contents += [as_content(call.id, call.name, arguments=call.arguments) for call in reply.content]
        usage = {"input_token_count": reply.usage.prompt_tokens, "output_token_count": reply.usage.completion_tokens}
        message = self._framework.Message("assistant", contents)
        return self._framework.ChatResponse(messages=[message], usage_details=usage)

    async def on_reset(self, cancellation_token: CancellationToken) -> None:
        self._session, self._unread = self._agent.create_session(), []

    async def save_state(self) -> Mapping[str, Any]:
        return {"session": self._session.to_dict()}

    async def load_state(self, state: Mapping[str, Any]) -> None:
        self._session, self._unread = self._framework.AgentSession.from_dict(state["session"]), []


def _text(message: Any, kind: str = "text") -> str:
    return "".join(content.text or "" for content in message.contents if content.type == kind)


def _calls(message: Any) -> list[FunctionCall]:
    return [
        FunctionCall(
            id=call.call_id,
            name=call.name,
            arguments=call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments or {}),
        )
        for call in message.contents
        if call.type == "function_call"
    ]


def _usage(response: Any) -> RequestUsage:
    counts = response.usage_details or {}
    return RequestUsage(counts.get("input_token_count") or 0, counts.get("output_token_count") or 0)


def _as_reply(response: Any) -> Reply:
    message, counts = response.messages[-1], response.usage_details or {}
    calls, reason = _calls(message), response.finish_reason
    known = reason if reason in ("stop", "length", "content_filter") else "unknown"
    return Reply(
        content=calls or _text(message),
        # Next to tool calls, the text is the thought, as in AutoGen.
        thought=_text(message, "text" if calls else "text_reasoning") or None,
        finish_reason="function_calls" if calls else known,
        usage=_usage(response),
        cached=False,
        cached_tokens=counts.get("cache_read_input_token_count"),
        thought_tokens=counts.get("reasoning_output_token_count"),
        refused=reason == "content_filter",
    )


def _as_llm_message(message: Any) -> LLMMessage:
    """A message of the prompt, for the record."""
    if message.role == "system":
        return SystemMessage(content=_text(message))
    if message.role == "assistant":
        return AssistantMessage(content=_calls(message) or _text(message), source=message.author_name or "")
    if message.role == "tool":
        return FunctionExecutionResultMessage(content=[_result(part) for part in message.contents])
    return UserMessage(content=_text(message), source=message.author_name or "user")


def _result(part: Any) -> FunctionExecutionResult:
    failed = part.exception is not None
    return FunctionExecutionResult(call_id=part.call_id, name="", content=str(part.result), is_error=failed)


def _schema(tool: Any) -> ToolSchema:
    """What the model is told of a tool. One that the vendor runs has no schema."""
    describe = getattr(tool, "to_json_schema_spec", None)
    return describe()["function"] if describe else ToolSchema(name=str(tool))
