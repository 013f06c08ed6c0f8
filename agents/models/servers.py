"""Clients for other OpenAI-compatible servers: DeepSeek, OpenRouter, and servers that you run yourself
(docs/models.md).

    deepseek/deepseek-flash                              the key is DEEPSEEK_API_KEY
    openrouter/openai/gpt-6-luna                         the key is OPENROUTER_API_KEY
    vllm/Qwen/Qwen3-4B?base_url=http://gpu-box:8000/v1

Before a run's first call to a server of your own, `prepare` lists its models, so that a missing server or model is
reported immediately and not after many failed units.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

import aiohttp

from parley.agents.models.compatible import BatchingServerOptions, CompatibleClient, OwnServerOptions
from parley.agents.models.http import read_body
from parley.agents.models.reply import Reply, redact
from parley.agents.models.request import ClientOptions, Effort, Request
from parley.agents.models.wire import without_prefill
from parley.base.errors import BadRequest, ConfigError


class DeepSeekClient(CompatibleClient):
    """Client for DeepSeek. Its API has a JSON mode but does not constrain decoding to a schema. Its models think unless
    they are told not to; a temperature then has no effect, so none is sent. The thinking before a tool call must be
    sent back with the call's result.
    """

    default_url, url_variable = "https://api.deepseek.com", "DEEPSEEK_BASE_URL"
    key_variables, key_needed = ("DEEPSEEK_API_KEY",), True
    structured = "json"
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


class OpenRouterClient(CompatibleClient):
    """Client for OpenRouter, which passes requests to many vendors and translates the effort. Thinking comes back in
    `reasoning`.
    """

    default_url, url_variable = "https://openrouter.ai/api/v1", "OPENROUTER_BASE_URL"
    key_variables, key_needed = ("OPENROUTER_API_KEY",), True
    efforts: tuple[Effort, ...] = ("none", "minimal", "low", "medium", "high", "xhigh")

    def effort_fields(self, effort: Effort) -> dict[str, Any]:
        return {"reasoning": {"effort": effort}}


LIST_TIMEOUT_SECONDS = 10.0
_TOO_LONG = "maximum context length is"
"""In vLLM's message if the prompt and `max_tokens` together exceed the context. Version 0.24 does not say how long the
prompt is: it counts one token too many at most."""
MIN_REPLY_TOKENS = 32
"""A prompt that leaves less room than this is too long; the shortest JSON reports take about 25 tokens."""


class OwnServerClient(CompatibleClient):
    """A server that the user starts."""

    OptionsType: ClassVar[type[ClientOptions]] = OwnServerOptions
    start: ClassVar[str]
    """The command that starts it, for the error message."""
    serves_any_name: ClassVar[bool] = False
    """Whether the server has only one model and ignores the name in a request."""

    async def prepare(self) -> None:
        models = await self._list_models()
        names = [redact(str(entry["id"]), self._key) for entry in models]
        served = next(
            (
                entry
                for name, entry in zip(names, models, strict=True)
                if self.serves_any_name or name in (self.model, f"{self.model}:latest")
            ),
            None,
        )
        if models and served is None:
            listed = ", ".join(name[:80] for name in names[:8]) + (", …" if len(names) > 8 else "")
            raise ConfigError(f"{self.name}: {self.base_url} does not serve '{self.model}' (it has: {listed})")
        if served is not None and (context := self.context_in(served)):
            self.context_tokens = context

    def context_in(self, entry: dict[str, Any]) -> int | None:
        """The context window of a request, if the server's list of models has it."""
        return None

    async def _list_models(self) -> list[dict[str, Any]]:
        """The server's models; empty if it does not list them (an old version, or still loading)."""
        answer = await self._get(f"{self.base_url}/models")
        models = answer.get("data") if isinstance(answer, dict) else None
        entries = models if isinstance(models, list) else []
        return entries if all(isinstance(entry, dict) and "id" in entry for entry in entries) else []

    async def _get(self, url: str) -> Any:
        """Information from the server; None if it cannot be read."""
        timeout = aiohttp.ClientTimeout(total=min(LIST_TIMEOUT_SECONDS, self.options.timeout))
        try:
            session = await self._open_session()
            async with session.get(url, headers=self.bearer(), timeout=timeout, allow_redirects=False) as response:
                if response.status in (401, 403):
                    raise self.error_for(response.status, response.headers, b"")
                return json.loads(await read_body(response, self.max_bytes)) if response.status == 200 else None
        except aiohttp.ClientConnectorError:
            raise ConfigError(f"{self.name}: no server at {self.base_url}; start one: {self.start}") from None
        except (aiohttp.ClientError, TimeoutError, ValueError, RecursionError):
            return None


class TemplateClient(OwnServerClient):
    """A server that applies the model's chat template, which decides whether the model thinks."""

    def body(self, request: Request) -> dict[str, Any]:
        body = super().body(request)
        if body["messages"][-1]["role"] == "assistant":
            # A reply that has begun is past its thinking; llama.cpp's server refuses it otherwise.
            body.pop("reasoning_effort", None)
            body["chat_template_kwargs"] = {"enable_thinking": False, "thinking": False}
        return body

    def effort_fields(self, effort: Effort) -> dict[str, Any]:
        # Newer versions switch the thinking by `reasoning_effort` alone. Templates ignore the name that is not theirs.
        switch = effort != "none"
        return {"reasoning_effort": effort, "chat_template_kwargs": {"enable_thinking": switch, "thinking": switch}}


class VLLMClient(TemplateClient):
    OptionsType: ClassVar[type[ClientOptions]] = BatchingServerOptions
    default_url, url_variable = "http://localhost:8000/v1", "VLLM_BASE_URL"
    key_variables = ("VLLM_API_KEY",)
    start = "vllm serve NAME --enable-prompt-tokens-details"
    at_once = 8
    lengths = True  # vLLM 0.24's source lists keywords that xgrammar lacks; this is not one of them
    limits_spaces = True
    """Whether the server understands a structural tag: xgrammar 0.2.8 does, which vLLM 0.24 has."""

    def context_in(self, entry: dict[str, Any]) -> int | None:
        length = entry.get("max_model_len")
        return length if type(length) is int and length > 0 else None

    def body(self, request: Request) -> dict[str, Any]:
        body = super().body(request)
        # llama.cpp's server continues the last message unasked; vLLM closes it. A longer reply is a new message,
        # from an agent who speaks twice in a row.
        if body["messages"][-1]["role"] == "assistant" and body.get("max_tokens") == 1:
            body |= {"continue_final_message": True, "add_generation_prompt": False}
        return body

    def response_format(self, request: Request) -> Mapping[str, Any] | None:
        """The schema in a structural tag, with at most one blank between two parts of the JSON.

        A schema alone lets xgrammar write blanks without end, as small models do where a quotation mark inside a text
        has closed it. vLLM 0.24 has an option against it for a server only, not for a request.
        """
        form = super().response_format(request)
        if form is None or form["type"] != "json_schema" or not self.limits_spaces:
            return form
        schema = form["json_schema"]["schema"]
        content = {"type": "json_schema", "json_schema": schema, "max_whitespace_cnt": 1}
        return {"type": "structural_tag", "format": content}

    async def send(self, request: Request) -> Reply:
        """Send the request; again with half of `max_tokens` until it fits the context, or with the plain schema if the
        server does not know structural tags."""
        try:
            return await super().send(request)
        except BadRequest as error:
            if self.limits_spaces and "structural" in str(error):
                self.limits_spaces = False
                return await self.send(request)
            half = request.options.get("max_tokens", 0) // 2
            if _TOO_LONG not in str(error) or half < MIN_REPLY_TOKENS:
                raise
        return await self.send(request._replace(options={**request.options, "max_tokens": half}))


class OllamaClient(OwnServerClient):
    default_url, url_variable = "http://localhost:11434/v1", "OLLAMA_BASE_URL"
    start = "OLLAMA_CONTEXT_LENGTH=8192 ollama serve"
    efforts: tuple[Effort, ...] = ("none", "low", "medium", "high")


class LlamaCppClient(TemplateClient):
    caches_by_slot = True
    lengths = True
    serves_any_name = True
    default_url, url_variable = "http://localhost:9931/v1", "LLAMACPP_BASE_URL"
    start = "llama-server -m FILE.gguf -np 4 -c 16384 --port 9931"

    def context_in(self, entry: dict[str, Any]) -> int | None:
        length = (entry.get("meta") or {}).get("n_ctx")
        return length if type(length) is int and length > 0 else None

    async def send(self, request: Request) -> Reply:
        return without_prefill(await super().send(request), request.messages)

    async def prepare(self) -> None:
        await super().prepare()
        if self.options.effort in (None, "none"):
            return
        about = await self._get(f"{self.base_url.removesuffix('/v1')}/props")
        abilities = about.get("chat_template_caps") if isinstance(about, dict) else None
        if isinstance(abilities, dict) and abilities.get("supports_reasoning_effort") is False:
            reason = "thinking can only be switched off: effort=none"
            raise ConfigError(f"{self.name}: effort={self.options.effort} is not supported ({reason})")
