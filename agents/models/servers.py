"""Clients for model servers that you run yourself: vLLM, llama.cpp's server and Ollama (docs/serving.md).

    vllm/Qwen/Qwen3-4B?base_url=http://gpu-box:8000/v1

Before a run's first call, `prepare` lists the server's models, so that a missing server or model is reported
immediately and not after many failed units.
"""

from __future__ import annotations

import json
from typing import ClassVar

import aiohttp

from parley.agents.errors import ConfigError
from parley.agents.models.body import read_body
from parley.agents.models.compatible import CompatibleClient
from parley.agents.models.reply import redact

LIST_TIMEOUT_SECONDS = 10.0


class OwnServerClient(CompatibleClient):
    """A server that the user has to start."""

    start: ClassVar[str]
    """The command that starts it, for the error message."""
    serves_any_name: ClassVar[bool] = False
    """Whether the server has one model and ignores the name in a request."""

    async def prepare(self) -> None:
        models = await self._list_models()
        if models and not self.serves_any_name and not {self.model, f"{self.model}:latest"} & set(models):
            known = ", ".join(name[:80] for name in models[:8]) + (", …" if len(models) > 8 else "")
            raise ConfigError(f"{self.name}: {self.base_url} does not serve '{self.model}' (it has: {known})")

    async def _list_models(self) -> list[str]:
        """The names of the server's models; empty if it does not say (an old version, or still loading)."""
        timeout = aiohttp.ClientTimeout(total=min(LIST_TIMEOUT_SECONDS, self.options.timeout))
        try:
            request = self._open_session().get(f"{self.base_url}/models", timeout=timeout, allow_redirects=False)
            async with request as response:
                if response.status in (401, 403):
                    raise self.error_for(response.status, response.headers, b"")
                if response.status != 200:
                    return []
                models = json.loads(await read_body(response, self.max_bytes))["data"]
                return [redact(str(model["id"]), self._key) for model in models]
        except aiohttp.ClientConnectorError:
            raise ConfigError(f"{self.name}: no server at {self.base_url}; start one: {self.start}") from None
        except (aiohttp.ClientError, TimeoutError, ValueError, KeyError, TypeError, RecursionError):
            return []


class VLLMClient(OwnServerClient):
    default_url, url_variable, key_variable = "http://localhost:8000/v1", "VLLM_BASE_URL", "VLLM_API_KEY"
    start = "vllm serve NAME --enable-prompt-tokens-details"


class OllamaClient(OwnServerClient):
    default_url, url_variable = "http://localhost:11434/v1", "OLLAMA_BASE_URL"
    start = "OLLAMA_CONTEXT_LENGTH=8192 ollama serve"


class LlamaCppClient(OwnServerClient):
    caches_by_slot = True
    continues = True
    """A final assistant message is continued (prefill): see `parley.agents.readout`."""
    lengths = True
    serves_any_name = True
    default_url, url_variable = "http://localhost:8080/v1", "LLAMACPP_BASE_URL"
    start = "llama-server -m FILE.gguf -np 4 -c 16384"
