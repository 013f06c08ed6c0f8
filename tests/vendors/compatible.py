"""Servers whose chat completions are OpenAI's with something of their own (docs/models.md).

What is peculiar to DeepSeek, OpenRouter, Ollama and llama.cpp is in tests/agents/test_servers.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from aiohttp import web

from parley.agents.models.request import estimate_tokens
from tests.vendors.base import Answer, Received, Rejected, names
from tests.vendors.chat import ChatServer

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
CONTEXT = 16_384
"""vLLM's models have a small context window here: prompt and limit together must fit, or the request is rejected."""


class OtherServer(ChatServer):
    """Some other server that speaks chat completions: the thinking stays in the content, between tags."""

    provider, model, key_variable = "server", "my-model", "PARLEY_SERVER_KEY"
    takes_temperature = True
    counts_cached = False
    efforts: ClassVar[Mapping[str, Any]] = {name: name for name in EFFORTS}

    def usage(self, answer: Answer) -> dict[str, Any]:
        usage = super().usage(answer)
        return {key: usage[key] for key in ("prompt_tokens", "completion_tokens", "total_tokens")}


class VLLM(ChatServer):
    """vLLM's server, as its sources say (entrypoints/openai/chat_completion/protocol.py)."""

    provider, model = "vllm", "Qwen/Qwen3-4B"
    thought_field = "reasoning"
    takes_temperature = True
    formats = ChatServer.formats | {"structural_tag"}
    efforts: ClassVar[Mapping[str, Any]] = {name: (name, name != "none") for name in EFFORTS}
    parameters = names(
        "messages model frequency_penalty logit_bias logprobs top_logprobs max_tokens max_completion_tokens n "
        "presence_penalty response_format seed stop stream stream_options temperature top_p tools tool_choice "
        "reasoning_effort thinking_token_budget include_reasoning parallel_tool_calls user top_k min_p "
        "repetition_penalty chat_template_kwargs structured_outputs priority continue_final_message "
        "add_generation_prompt"
    )

    def effort(self, body: Mapping[str, Any]) -> Any:
        effort = body.get("reasoning_effort")
        return None if effort is None else (effort, body["chat_template_kwargs"]["enable_thinking"])

    def thinks(self, body: Mapping[str, Any]) -> bool:
        return body.get("reasoning_effort") != "none"

    def usage(self, answer: Answer) -> dict[str, Any]:
        usage = super().usage(answer)
        del usage["completion_tokens_details"]
        return usage

    def schema(self, body: Mapping[str, Any]) -> Mapping[str, Any] | None:
        form = body.get("response_format") or {}
        return form["format"]["json_schema"] if form.get("type") == "structural_tag" else super().schema(body)

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
            # Version 0.24 stops counting at one token too many.
            raise Rejected(
                f"This model's maximum context length is {CONTEXT} tokens. However, you requested {limit} output "
                f"tokens and your prompt contains at least {CONTEXT - limit + 1} input tokens, for a total of at least "
                f"{CONTEXT + 1} tokens. Please reduce the length of the input prompt or the number of requested "
                "output tokens."
            )

    def error(self, rejected: Rejected) -> Any:
        kind = "BadRequestError" if rejected.status == 400 else "NotFoundError"
        error = {"message": rejected.message, "type": kind, "param": rejected.param, "code": rejected.status}
        return {"error": error}
