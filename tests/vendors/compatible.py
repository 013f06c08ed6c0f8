"""Vendors and servers whose chat completions are OpenAI's with something of their own (docs/models.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from aiohttp import web

from parley.agents.models.request import estimate_tokens
from tests.vendors.base import CACHED_TOKENS, PROMPT_TOKENS, Answer, Received, Rejected, names
from tests.vendors.chat import ENDINGS, ChatServer

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
CONTEXT = 16_384
"""vLLM's models have a small context window here: prompt and limit together must fit, or the request is rejected."""


class Counting(ChatServer):
    """Usage without details."""

    counts_cached = False

    def usage(self, answer: Answer) -> dict[str, Any]:
        usage = super().usage(answer)
        return {key: usage[key] for key in ("prompt_tokens", "completion_tokens", "total_tokens")}


class Templated(ChatServer):
    """The model's chat template is told whether to think."""

    takes_temperature = True
    efforts: ClassVar[Mapping[str, Any]] = {name: (name, name != "none") for name in EFFORTS}

    def effort(self, body: Mapping[str, Any]) -> Any:
        effort = body.get("reasoning_effort")
        return None if effort is None else (effort, body["chat_template_kwargs"]["enable_thinking"])

    def thinks(self, body: Mapping[str, Any]) -> bool:
        return body.get("reasoning_effort") != "none"

    def usage(self, answer: Answer) -> dict[str, Any]:
        usage = super().usage(answer)
        del usage["completion_tokens_details"]
        return usage


class DeepSeek(ChatServer):
    """DeepSeek's chat completions, as documented (guides/thinking_mode, guides/json_mode)."""

    provider, model, key_variable = "deepseek", "deepseek-flash", "DEEPSEEK_API_KEY"
    path = ""
    parameters = names(
        "messages model thinking reasoning_effort frequency_penalty max_tokens presence_penalty response_format "
        "stop stream stream_options temperature top_p tools tool_choice logprobs top_logprobs user_id"
    )
    message_fields = ChatServer.message_fields | {"reasoning_content", "prefix"}
    schemas = False
    thought_field = "reasoning_content"
    efforts: ClassVar[Mapping[str, Any]] = {
        "none": ("disabled", None),
        "low": ("enabled", "low"),
        "high": ("enabled", "high"),
        "max": ("enabled", "max"),
    }

    def check(self, received: Received) -> None:
        super().check(received)
        body = received.body
        if (body.get("response_format") or {}).get("type") == "json_schema":
            raise Rejected("This response_format type is unavailable now")
        if self.wants_json(body) and not any("json" in text.lower() for _, text in self.turns(body)):
            raise Rejected(
                "Prompt must contain the word 'json' in some form to use 'response_format' of 'json_object'."
            )
        if self.thinks(body):
            for message in body["messages"]:
                if message.get("tool_calls") and "reasoning_content" not in message:
                    raise Rejected("The `reasoning_content` in the thinking mode must be passed back to the API.")

    def effort(self, body: Mapping[str, Any]) -> Any:
        switch = (body.get("thinking") or {}).get("type")
        return None if switch is None else (switch, body.get("reasoning_effort"))

    def thinks(self, body: Mapping[str, Any]) -> bool:
        return (body.get("thinking") or {}).get("type") != "disabled"

    def usage(self, answer: Answer) -> dict[str, Any]:
        usage = super().usage(answer)
        del usage["prompt_tokens_details"]
        hit = {"prompt_cache_hit_tokens": CACHED_TOKENS, "prompt_cache_miss_tokens": PROMPT_TOKENS - CACHED_TOKENS}
        return {**usage, **hit}


class LlamaCpp(Templated):
    """llama.cpp's server, as the real one behaved (tests/agents/test_servers.py): it ignores what it does not know."""

    provider, model = "llamacpp", "qwen3"
    thought_field = "reasoning_content"

    def add_routes(self, app: web.Application) -> None:
        app.router.add_get(f"{self.path}/models", self._list)
        app.router.add_get("/props", self._props)

    async def _list(self, request: web.Request) -> web.Response:
        model = {"id": "/models/qwen3.gguf", "object": "model", "owned_by": "llamacpp", "meta": {"n_ctx": 32_768}}
        return web.json_response({"object": "list", "data": [model]})

    async def _props(self, request: web.Request) -> web.Response:
        return web.json_response({"chat_template_caps": {"supports_reasoning_effort": True}})

    def error(self, rejected: Rejected) -> Any:
        error = {"code": rejected.status, "message": rejected.message, "type": "invalid_request_error"}
        return {"error": error}


class Ollama(Counting):
    """Ollama's chat completions, as its maintainers describe them."""

    provider, model = "ollama", "qwen3:4b"
    thought_field = "reasoning"
    takes_temperature = True
    efforts: ClassVar[Mapping[str, Any]] = {name: name for name in ("none", "low", "medium", "high")}

    def add_routes(self, app: web.Application) -> None:
        app.router.add_get(f"{self.path}/models", self._list)

    async def _list(self, request: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": self.served, "object": "model"}]})

    def check(self, received: Received) -> None:
        super().check(received)
        if self.effort(received.body) not in (None, *self.efforts):
            raise Rejected("invalid reasoning value")


class OpenRouter(ChatServer):
    """OpenRouter's chat completions, as documented. Unknown parameters are ignored."""

    provider, model, key_variable = "openrouter", "z-ai/glm-5", "OPENROUTER_API_KEY"
    path = "/api/v1"
    thought_field = "reasoning"
    takes_temperature = True
    efforts: ClassVar[Mapping[str, Any]] = {name: name for name in EFFORTS[:-1]}

    def check(self, received: Received) -> None:
        super().check(received)
        if self.effort(received.body) not in (None, *self.efforts):
            raise Rejected("Invalid option: reasoning.effort", param="reasoning.effort")

    def error(self, rejected: Rejected) -> Any:
        return {"error": {"code": rejected.status, "message": rejected.message, "metadata": {}}, "user_id": "user_1"}

    def effort(self, body: Mapping[str, Any]) -> Any:
        return (body.get("reasoning") or {}).get("effort")

    def message(self, answer: Answer) -> dict[str, Any]:
        message = super().message(answer)
        if answer.thought:
            message["reasoning_details"] = [{"type": "reasoning.text", "text": answer.thought}]
        return message

    def reply(self, answer: Answer, received: Received) -> Any:
        reply = super().reply(answer, received)
        reply["choices"][0]["native_finish_reason"] = ENDINGS[answer.ending]
        reply["usage"]["cost"] = 0.0001
        return reply


class OtherServer(Counting):
    """Some other server that speaks chat completions: the thinking stays in the content, between tags."""

    provider, model, key_variable = "server", "my-model", "PARLEY_SERVER_KEY"
    takes_temperature = True
    efforts: ClassVar[Mapping[str, Any]] = {name: name for name in EFFORTS}


class VLLM(Templated):
    """vLLM's server, as its sources say (entrypoints/openai/chat_completion/protocol.py)."""

    provider, model = "vllm", "Qwen/Qwen3-4B"
    thought_field = "reasoning"
    parameters = names(
        "messages model frequency_penalty logit_bias logprobs top_logprobs max_tokens max_completion_tokens n "
        "presence_penalty response_format seed stop stream stream_options temperature top_p tools tool_choice "
        "reasoning_effort thinking_token_budget include_reasoning parallel_tool_calls user top_k min_p "
        "repetition_penalty chat_template_kwargs structured_outputs priority continue_final_message "
        "add_generation_prompt"
    )

    def add_routes(self, app: web.Application) -> None:
        app.router.add_get(f"{self.path}/models", self._list)

    async def _list(self, request: web.Request) -> web.Response:
        card = {"id": self.served, "object": "model", "owned_by": "vllm", "max_model_len": CONTEXT}
        return web.json_response({"object": "list", "data": [card]})

    def check(self, received: Received) -> None:
        super().check(received)
        body = received.body
        if body.get("reasoning_effort") not in (None, *EFFORTS):
            raise Rejected("Input should be 'none', 'minimal', 'low', 'medium', 'high', 'xhigh' or 'max'")
        used = sum(4 + estimate_tokens(text) for _, text in self.turns(body))
        limit = body.get("max_tokens") or body.get("max_completion_tokens") or 1
        if used + limit > CONTEXT:
            raise Rejected(
                f"'max_tokens' or 'max_completion_tokens' is too large: {limit}. This model's maximum context length "
                f"is {CONTEXT} tokens and your request has {used} input tokens ({limit} > {CONTEXT} - {used})."
            )

    def error(self, rejected: Rejected) -> Any:
        kind = "BadRequestError" if rejected.status == 400 else "NotFoundError"
        error = {"message": rejected.message, "type": kind, "param": rejected.param, "code": rejected.status}
        return {"error": error}
