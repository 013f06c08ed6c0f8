"""DeepSeek: `deepseek/deepseek-flash`. The key is DEEPSEEK_API_KEY.

Its API has a JSON mode but no constrained decoding to a schema.
"""

from __future__ import annotations

from parley.agents.models.compatible import CompatibleClient


class DeepSeekClient(CompatibleClient):
    default_url, url_variable = "https://api.deepseek.com", "DEEPSEEK_BASE_URL"
    key_variable, key_needed = "DEEPSEEK_API_KEY", True
    structured = "json"
    cache_minimum = cache_step = 64
