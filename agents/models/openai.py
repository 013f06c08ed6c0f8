"""OpenAI: `openai/gpt-6-luna`. The key is OPENAI_API_KEY.

OpenAI bills prompt prefixes that it has seen recently at a cached price, from 1,024 tokens on and in steps of 128. All
calls of a unit carry the same `prompt_cache_key`, so that they reach the machine that has cached their prefix.

Models that think accept neither a temperature nor tools in chat completions, and give no log-probabilities, unless
thinking is turned off.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from parley.agents.models.compatible import CompatibleClient
from parley.agents.models.request import Effort, Request
from parley.agents.models.session import SESSION


class Traits(NamedTuple):
    """Documented properties of a model (docs/models.md has the sources).

    Args:
        efforts: the efforts it accepts.
        effort: its default effort; `none` if it does not think.
        tools: whether it can call tools in chat completions when it does not think.
    """

    efforts: tuple[Effort, ...]
    effort: Effort
    tools: bool = True


FROM_LOW: tuple[Effort, ...] = ("low", "medium", "high", "xhigh", "max")
ALL: tuple[Effort, ...] = ("none", "minimal", *FROM_LOW)
PLAIN = Traits((), "none")
UNKNOWN = Traits(ALL, "none")
"""Traits of an unknown name, such as a fine-tuned model or one on another server: no option is refused."""
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
"""Models by the beginning of their names; the first match is used."""


def traits_of(model: str) -> Traits:
    """Traits of a model, by its name without the provider."""
    return next((traits for pattern, traits in MODELS if re.match(pattern, model)), UNKNOWN)


MOST_CHOICES = 8
"""Maximum number of replies per request; the API allows 128."""


class OpenAIClient(CompatibleClient):
    default_url, url_variable = "https://api.openai.com/v1", "OPENAI_BASE_URL"
    key_variables, key_needed = ("OPENAI_API_KEY",), True
    token_limit_key = "max_completion_tokens"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None) -> None:
        super().__init__(name, options)
        self.thinks = self._effort != "none"
        self.at_once = MOST_CHOICES

    def _check_capabilities(self) -> None:
        traits = traits_of(self.model)
        self.efforts = traits.efforts
        self._effort = self.options.effort or traits.effort
        self.takes_temperature = self.logprobs = self._effort == "none"
        self.calls_tools = traits.tools and self._effort == "none"
        if not self.takes_temperature and "none" in traits.efforts:
            self.sampling_effort = "none"
        super()._check_capabilities()

    def body(self, request: Request) -> dict[str, Any]:
        body = super().body(request)
        current = SESSION.get()
        if current is not None and self.base_url == self.default_url:
            # A digest, since the unit's name may reveal what the prompt does not.
            body["prompt_cache_key"] = hashlib.blake2b(current.sample.encode(), digest_size=12).hexdigest()
        return body
