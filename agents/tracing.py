"""OpenTelemetry spans of conversations and model calls, with the attributes of the GenAI semantic conventions.

A conversation outside a run sends them if the program has set a tracer provider, as AutoGen's teams do: `invoke_agent`
for the conversation and for each turn, and `chat` for each call. Within a run only `--trace` decides
(`parley.runs.telemetry`). Spans contain no messages, unless the variable `CONTENT` is "true".
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from opentelemetry import trace

from parley.agents.models.session import SESSION
from parley.agents.transcripts import Call, record_calls

CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


def with_content() -> bool:
    """Whether spans may contain messages."""
    return os.environ.get(CONTENT, "").lower() == "true"


def chat_span(tracer: Any, call: Call, *, messages: bool) -> None:
    """Send the span of a call that has just ended, as a child of the current span.

    Args:
        tracer: An OpenTelemetry tracer.
        call: The call.
        messages: Whether the span contains the prompt and the reply.
    """
    plain = call.model.partition("?")[0]
    provider, _, model = plain.partition("/")
    attributes: dict[str, Any] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": provider,
        "gen_ai.request.model": model,
        "gen_ai.usage.input_tokens": call.prompt_tokens,
        "gen_ai.usage.output_tokens": call.completion_tokens,
        "parley.cached": call.cached,
        "parley.attempts": call.attempts,
    }
    if call.cost is not None:
        attributes["parley.cost"] = call.cost
    if messages:
        prompt = [_message(piece.role, piece.text) for piece in call.prompt]
        attributes["gen_ai.input.messages"] = json.dumps(prompt, ensure_ascii=False)
        attributes["gen_ai.output.messages"] = json.dumps([_message("assistant", call.reply)], ensure_ascii=False)
    end = time.time_ns()
    start = end - round(call.latency * 1e9)
    span = tracer.start_span(f"chat {model}", kind=trace.SpanKind.CLIENT, attributes=attributes, start_time=start)
    span.end(end)


def _message(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": text}]}


class _SpannedCalls(list[Call]):
    """A list for `record_calls` that sends the span of each call as the call ends."""

    def __init__(self, tracer: Any) -> None:
        super().__init__()
        self._tracer, self._messages = tracer, with_content()

    def append(self, call: Call) -> None:
        super().append(call)
        chat_span(self._tracer, call, messages=self._messages)


class ConversationSpans:
    """The spans of one conversation.

    Args:
        tracer: An OpenTelemetry tracer.
        name: The conversation's name.
        description: Its description.
    """

    def __init__(self, tracer: Any, name: str, description: str) -> None:
        self._tracer = tracer
        self._whole = self._start(name, description, None)

    @classmethod
    def wanted(cls, name: str, description: str) -> ConversationSpans | None:
        """The spans of a conversation that begins; None within a run, or if no tracer provider is set."""
        if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider) or SESSION.get() is not None:
            return None
        return cls(trace.get_tracer("parley"), name, description)

    def _start(self, name: str, description: str, parent: Any) -> Any:
        # Not AutoGen's `trace_invoke_agent_span`: the conversation's span cannot be the current one, because a
        # generator ends in whatever context its consumer has.
        attributes = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.system": "autogen",
            "gen_ai.agent.name": name,
            "gen_ai.agent.description": description,
        }
        context = None if parent is None else trace.set_span_in_context(parent)
        return self._tracer.start_span(
            f"invoke_agent {name}", context=context, kind=trace.SpanKind.CLIENT, attributes=attributes
        )

    @contextmanager
    def turn(self, name: str, description: str) -> Iterator[list[Call]]:
        """A turn's span, with a span for each call inside; yields the calls, as `record_calls` does."""
        span = self._start(name, description, self._whole)
        with (
            trace.use_span(span, end_on_exit=True),
            record_calls(_SpannedCalls(self._tracer)) as calls,
        ):
            yield calls

    def end(self) -> None:
        """The conversation has ended."""
        self._whole.end()
