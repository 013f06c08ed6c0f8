"""OpenAI: `openai/gpt-6-luna`. The key is OPENAI_API_KEY.

Prompt prefixes that it has seen recently are billed at its cached price, from 1,024 tokens on and in steps of 128. All
calls of a unit carry the same `prompt_cache_key`, so that they reach the machine that has cached their prefix.
"""

from __future__ import annotations

import hashlib
from typing import Any, ClassVar

from pydantic import Field

from parley.agents.models.base import ClientOptions, Request
from parley.agents.models.compatible import CompatibleClient, ServerOptions
from parley.agents.models.session import SESSION


class OpenAIOptions(ServerOptions):
    """The options of OpenAI's models."""

    cache_key: bool | None = Field(
        None, description="send prompt_cache_key (default: to OpenAI itself, not to another base_url)"
    )


class OpenAIClient(CompatibleClient):
    OptionsType: ClassVar[type[ClientOptions]] = OpenAIOptions
    options: OpenAIOptions
    default_url, url_variable = "https://api.openai.com/v1", "OPENAI_BASE_URL"
    key_variable, key_needed = "OPENAI_API_KEY", True
    batches = True
    token_limit_key = "max_completion_tokens"
    cache_minimum, cache_step = 1024, 128

    def body(self, request: Request) -> dict[str, Any]:
        body = super().body(request)
        current = SESSION.get()
        cache_key = self.options.cache_key
        if current is not None and (self.base_url == self.default_url if cache_key is None else cache_key):
            # A digest, since the unit's name may reveal what the prompt does not.
            body["prompt_cache_key"] = hashlib.blake2b(current.sample.encode(), digest_size=12).hexdigest()
        return body
