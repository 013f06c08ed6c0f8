"""Model servers of one's own, by address: vLLM, llama.cpp's server and Ollama (docs/serving.md).

    vllm/Qwen/Qwen3-4B?base_url=http://gpu-box:8000/v1

Before a run's first call the server is asked what it serves: one that is not there, or has no such model, is named at
once and not after many failed units.
"""

from __future__ import annotations

import json
from typing import ClassVar

import aiohttp

from parley.agents.errors import ConfigError
from parley.agents.models.body import read_body
from parley.agents.models.compatible import CompatibleClient
from parley.agents.models.reply import hide

LISTING_SECONDS = 10.0


class OwnServerClient(CompatibleClient):
    """A server that somebody has to start."""

    start: ClassVar[str]
    """What to type for that."""
    serves_any_name: ClassVar[bool] = False
    """Whether it answers with the one model it has, however that is called."""

    async def prepare(self) -> None:
        served = await self._served()
        if served and not self.serves_any_name and not {self.model, f"{self.model}:latest"} & set(served):
            known = ", ".join(name[:80] for name in served[:8]) + (", …" if len(served) > 8 else "")
            raise ConfigError(f"{self.name}: {self.base_url} does not serve '{self.model}' (it has: {known})")

    async def _served(self) -> list[str]:
        """The names of its models; none where it does not say (an older server, one that is still loading)."""
        wait = aiohttp.ClientTimeout(total=min(LISTING_SECONDS, self.options.timeout))
        try:
            asking = self._open_session().get(f"{self.base_url}/models", timeout=wait, allow_redirects=False)
            async with asking as response:
                if response.status in (401, 403):
                    raise self.error_for(response.status, response.headers, b"")
                if response.status != 200:
                    return []
                listed = json.loads(await read_body(response, self.most_bytes))["data"]
                return [hide(str(one["id"]), self._key) for one in listed]
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
    continues = True
    """A last message of the assistant's is continued: see `parley.agents.readout`."""
    lengths = True
    serves_any_name = True
    default_url, url_variable = "http://localhost:8080/v1", "LLAMACPP_BASE_URL"
    start = "llama-server -m FILE.gguf -np 4 -c 16384"
