"""DeepSeek's chat completions, as documented (guides/thinking_mode, guides/json_mode; docs/models.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from tests.vendors.base import CACHED_TOKENS, PROMPT_TOKENS, Answer, Received, Rejected, names
from tests.vendors.chat import ChatServer


class Standin(ChatServer):
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
