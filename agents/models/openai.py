"""OpenAI, on the lean client: `openai/gpt-4o-mini`. The key is OPENAI_API_KEY."""

from __future__ import annotations

from agents.models.compatible import CompatibleClient


class OpenAIClient(CompatibleClient):
    default_url, url_variable = "https://api.openai.com/v1", "OPENAI_BASE_URL"
    key_variable, key_needed = "OPENAI_API_KEY", True
    batches = True
    token_limit_key = "max_completion_tokens"
