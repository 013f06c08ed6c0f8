"""OpenRouter, which passes requests on to many vendors: `openrouter/openai/gpt-6-luna`. The key is OPENROUTER_API_KEY.

Thinking comes back in `reasoning`; OpenRouter translates the effort for the vendor.
"""

from __future__ import annotations

from typing import Any

from parley.agents.models.compatible import CompatibleClient
from parley.agents.models.options import Effort


class OpenRouterClient(CompatibleClient):
    default_url, url_variable = "https://openrouter.ai/api/v1", "OPENROUTER_BASE_URL"
    key_variable, key_needed = "OPENROUTER_API_KEY", True
    efforts: tuple[Effort, ...] = ("none", "minimal", "low", "medium", "high", "xhigh")

    def effort_fields(self, effort: Effort) -> dict[str, Any]:
        return {"reasoning": {"effort": effort}}
