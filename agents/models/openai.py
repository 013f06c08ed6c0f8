"""OpenAI: `openai/gpt-6-luna`. The key is OPENAI_API_KEY.

Prompt prefixes that it has seen recently are billed at its cached price, from 1,024 tokens on and in steps of 128. All
calls of a unit carry the same `prompt_cache_key`, so that they reach the machine that has cached their prefix.

Its models that think accept neither a temperature nor tools in chat completions, and give no log-probabilities, unless
they are told not to think. Requests with tools are then sent to the Responses API, and with `api=responses` all are.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, NamedTuple

from pydantic import Field

from parley.agents.models.compatible import Arrived, CompatibleClient, ServerOptions
from parley.agents.models.http import said
from parley.agents.models.reply import Reply
from parley.agents.models.request import ClientOptions, Effort, Request
from parley.agents.models.responses import from_response, read_event, responses_body, thinking_before_calls, uses_tools
from parley.agents.models.session import SESSION
from parley.agents.models.wire import from_completion
from parley.base.errors import BadRequest, ModelError, ServerFault


class Traits(NamedTuple):
    """What is documented about a model (docs/models.md says where).

    Args:
        efforts: the efforts it accepts.
        effort: its effort if none is set; `none` if it does not think.
        tools: whether it can call tools in chat completions when it does not think.
    """

    efforts: tuple[Effort, ...]
    effort: Effort
    tools: bool = True


FROM_LOW: tuple[Effort, ...] = ("low", "medium", "high", "xhigh", "max")
ALL: tuple[Effort, ...] = ("none", "minimal", *FROM_LOW)
PLAIN = Traits((), "none")
UNKNOWN = Traits(ALL, "none")
"""A name that is not known: a fine-tuned model, or one of another server. It is taken at its word."""
MODELS: tuple[tuple[str, Traits], ...] = (
    (r"gpt-6-astra|gpt-6\.1-sol", Traits(FROM_LOW, "medium", tools=False)),
    (r"gpt-6\.1-terra", Traits(("none", *FROM_LOW), "medium", tools=False)),
    (r"gpt-6-luna", Traits(("none", *FROM_LOW), "medium")),
    (r"gpt-5\.[12]\b(?!.*chat)", Traits(ALL, "none")),
    (r"gpt-5(-\d{4}|-mini|-nano|-pro|$)", Traits(("minimal", "low", "medium", "high"), "medium")),
    (r"gpt-[56](?!.*chat)", Traits(ALL, "medium")),  # others: no source says which efforts they accept
    (r"o[134]\b", Traits(("low", "medium", "high"), "medium")),
    (r"gpt-3|gpt-4|chatgpt|gpt-5.*chat", PLAIN),
)
"""Models by the beginning of their names; the first match counts."""


def traits_of(model: str) -> Traits:
    """What is known of a model, by its name without the provider."""
    return next((traits for pattern, traits in MODELS if re.match(pattern, model)), UNKNOWN)


class OpenAIOptions(ServerOptions):
    """The options of OpenAI's models."""

    cache_key: bool | None = Field(
        None, description="send prompt_cache_key (default: to OpenAI itself, not to another base_url)"
    )
    api: Literal["chat", "responses"] | None = Field(
        None, description="chat completions or Responses (default: Responses for tools with thinking, else chat)"
    )
    summary: Literal["auto", "concise", "detailed", "none"] | None = Field(
        None, description="the kind of summary of the thinking (default: auto with api=responses, else none)"
    )


MOST_CHOICES = 8
"""Replies that one request asks for at most; the API allows 128."""


class OpenAIClient(CompatibleClient):
    OptionsType: ClassVar[type[ClientOptions]] = OpenAIOptions
    options: OpenAIOptions
    default_url, url_variable = "https://api.openai.com/v1", "OPENAI_BASE_URL"
    key_variables, key_needed = ("OPENAI_API_KEY",), True
    token_limit_key = "max_completion_tokens"
    vision = True
    cache_minimum, cache_step = 1024, 128

    def __init__(self, name: str, options: Mapping[str, Any] | None = None) -> None:
        super().__init__(name, options)
        self.thinks = self._effort != "none"
        self.at_once = 1 if self.options.api == "responses" else MOST_CHOICES

    def _check_capabilities(self) -> None:
        traits = traits_of(self.model)
        self.efforts = traits.efforts
        self._tools_in_chat = traits.tools
        self._effort = self.options.effort or traits.effort
        self.takes_temperature = self.logprobs = self._effort == "none"
        if not self.takes_temperature and "none" in traits.efforts:
            self.sampling_effort = "none"
        super()._check_capabilities()

    def _uses_responses(self, request: Request) -> bool:
        if self.options.api is not None:
            return self.options.api == "responses"
        return uses_tools(request) and (self._effort != "none" or not self._tools_in_chat)

    def path(self, request: Request) -> str:
        return "/responses" if self._uses_responses(request) else super().path(request)

    def body(self, request: Request) -> dict[str, Any]:
        if self._uses_responses(request):
            thinks = self._effort != "none"
            # Only verified organizations get summaries, so a tool alone does not request them.
            summary = self.options.summary or ("auto" if self.options.api == "responses" else "none")
            body = responses_body(
                self.model,
                request,
                self.response_format(request) if request.schema else None,
                thinking=self.turns if thinks else None,
                summary=summary if thinks and summary != "none" else None,
            )
        else:
            body = super().body(request)
        current = SESSION.get()
        cache_key = self.options.cache_key
        if current is not None and (self.base_url == self.default_url if cache_key is None else cache_key):
            # A digest, since the unit's name may reveal what the prompt does not.
            body["prompt_cache_key"] = hashlib.blake2b(current.sample.encode(), digest_size=12).hexdigest()
        return body

    def stream_body(self, request: Request) -> dict[str, Any]:
        return {**self.body(request), "stream": True} if self._uses_responses(request) else super().stream_body(request)

    def parse(self, data: Any) -> Reply:
        if "choices" in data:
            return from_completion(data)
        reply = from_response(data)
        for call, thinking in thinking_before_calls(data["output"]).items():
            self.keep_turn(call, thinking)
        return reply

    def error_for(self, status: int, headers: Mapping[str, str], raw: bytes) -> ModelError:
        error = super().error_for(status, headers, raw)
        if status == 400 and b"reasoning.summary" in raw:
            return BadRequest(f"{error}; or append ?summary=none")
        return error

    def event_text(self, event: Mapping[str, Any], arrived: Arrived) -> str:
        if "type" not in event:
            return super().event_text(event, arrived)
        try:
            return read_event(event, arrived)
        except (KeyError, TypeError, AttributeError):
            raise self.unreadable("streamed an unreadable event") from None
        except ValueError as error:
            raise ServerFault(f"{self.where}{said(error, self._key)}") from None
