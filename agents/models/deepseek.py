"""DeepSeek: `deepseek/deepseek-flash`. The key is DEEPSEEK_API_KEY.

Its API has a JSON mode but no constrained decoding to a schema. Its models think unless they are told not to; a
temperature then has no effect, so that none is sent. What they thought before a tool call must be sent back with its
result.
"""

from __future__ import annotations

from typing import Any

from parley.agents.models.compatible import CompatibleClient
from parley.agents.models.options import Effort
from parley.agents.models.request import Request


class DeepSeekClient(CompatibleClient):
    default_url, url_variable = "https://api.deepseek.com", "DEEPSEEK_BASE_URL"
    key_variable, key_needed = "DEEPSEEK_API_KEY", True
    structured = "json"
    cache_minimum = cache_step = 64
    efforts: tuple[Effort, ...] = ("none", "low", "high", "max")

    def _check_capabilities(self) -> None:
        self.takes_temperature = self.logprobs = self.options.effort == "none"
        self.sampling_effort = None if self.takes_temperature else "none"
        self.thought_key = None if self.takes_temperature else "reasoning_content"
        super()._check_capabilities()

    def effort_fields(self, effort: Effort) -> dict[str, Any]:
        if effort == "none":
            return {"thinking": {"type": "disabled"}}
        return {"thinking": {"type": "enabled"}, "reasoning_effort": effort}

    def body(self, request: Request) -> dict[str, Any]:
        body = super().body(request)
        body.pop("seed", None)  # it has none
        return body
