"""The people, the questions and the servers' messages that many of these tests use."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from autogen_core.models import UserMessage
from pydantic import BaseModel

from parley.agents import Persona, scale

ADA = Persona("Ada", "You are Ada, an auditor.")
BEN = Persona("Ben", "You are Ben, a baker.")
CY = Persona("Cy", "You are Cy, a cyclist.")
TASK = "Should buses be free?"
SIM = "sim/judge"
ASK = [UserMessage(content="How many?", source="user")]
KEY = "sk-a-secret-that-must-not-show"


class Opinion(BaseModel):
    score: scale(0, 10)  # type: ignore[valid-type]


def openai(server: Any, name: str = "gpt-4o-mini", **settings: Any) -> Any:
    """AutoGen's own client, asking this server. It is imported here: every worker would take a second for it."""
    from autogen_ext.models.openai import OpenAIChatCompletionClient

    settings = {"model": name, "base_url": server.url, "api_key": KEY, "max_retries": 0, **settings}
    return OpenAIChatCompletionClient(**settings)


def tool_call(name: str, **arguments: Any) -> list[dict[str, Any]]:
    """A call of a tool, as chat completions have it."""
    return [{"id": "c1", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}]


def chunk(text: str | None = None, finish: str | None = None, **delta: Any) -> dict[str, Any]:
    """One event of a streamed chat completion."""
    return {"choices": [{"delta": {"content": text, **delta}, "finish_reason": finish}]}


Token = str | tuple[str, Mapping[str, float]]


def as_logprobs(tokens: Sequence[Token]) -> list[dict[str, Any]]:
    """Tokens with the alternatives at each (by default the token alone), as servers send them."""
    entries = []
    for token in tokens:
        text, alternatives = (token, {token: 1.0}) if isinstance(token, str) else token
        tops = [{"token": t, "logprob": math.log(p), "bytes": list(t.encode())} for t, p in alternatives.items()]
        entries.append({"token": text, "logprob": math.log(alternatives[text]), "top_logprobs": tops})
    return entries


USAGE = {"choices": [], "usage": {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15}}
"""The last event of a stream."""
