"""OpenAI's chat completions, as documented for its current models (openai-python 3.49; docs/models.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from tests.vendors.base import Answer, Received, Rejected, SchemaRules, names
from tests.vendors.chat import ChatServer

STRICT = SchemaRules(
    names(
        "type properties required additionalProperties items enum const anyOf description minimum maximum "
        "exclusiveMinimum exclusiveMaximum multipleOf pattern format minItems maxItems"
    )
)
EFFORTS = {
    "gpt-6-astra": ("low", "medium", "high", "xhigh", "max"),
    "gpt-6.1-sol": ("low", "medium", "high", "xhigh", "max"),
    "gpt-6.1-terra": ("none", "low", "medium", "high", "xhigh", "max"),
    "gpt-6-luna": ("none", "low", "medium", "high", "xhigh", "max"),
    "gpt-4.1": (),
}
"""The efforts of each model; without any, it does not think."""
ONLY_RESPONSES = frozenset({"gpt-6-astra", "gpt-6.1-sol", "gpt-6.1-terra"})
"""Models that call tools in Responses only."""
SAMPLING = ("temperature", "top_p", "logprobs", "top_logprobs")


def check_effort(model: str, effort: str | None, param: str) -> bool:
    """Whether the model thinks; raises `Rejected` for an effort that it does not have."""
    efforts = EFFORTS[model]
    if effort is not None and effort not in efforts:
        if not efforts:
            raise Rejected(f"Unsupported parameter: '{param}' is not supported with this model.", param=param)
        names = ", ".join(f"'{name}'" for name in efforts)
        raise Rejected(f"Unsupported value: '{param}' does not support '{effort}'. Supported values: {names}.")
    return bool(efforts) and effort != "none"


class Standin(ChatServer):
    provider, model, key_variable = "openai", "gpt-6-luna", "OPENAI_API_KEY"
    parameters = names(
        "messages model audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens "
        "max_tokens metadata modalities moderation n parallel_tool_calls prediction presence_penalty "
        "prompt_cache_key prompt_cache_options prompt_cache_retention reasoning_effort response_format "
        "safety_identifier seed service_tier stop store stream stream_options temperature tool_choice tools "
        "top_logprobs top_p user verbosity web_search_options"
    )
    message_fields = frozenset({"role", "content", "name", "tool_calls", "tool_call_id", "refusal", "audio"})
    rules = STRICT
    shows_thoughts = False
    tool_options = "effort=none"
    marks_refusals = True
    efforts: ClassVar[Mapping[str, Any]] = {name: name for name in EFFORTS["gpt-6-luna"]}

    def check(self, received: Received) -> None:
        super().check(received)
        body = received.body
        thinks = check_effort(self.served, body.get("reasoning_effort"), "reasoning_effort")
        if thinks:
            for name in SAMPLING:
                if name in body:
                    raise Rejected(f"Unsupported parameter: '{name}' is not supported with this model.", param=name)
            if "max_tokens" in body:
                raise Rejected(
                    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' "
                    "instead.",
                    param="max_tokens",
                )
        if body.get("tools") and (thinks or self.served in ONLY_RESPONSES):
            raise Rejected(
                f"Function tools with reasoning_effort are not supported for {self.served} in /v1/chat/completions. To "
                "use function tools, use /v1/responses or set reasoning_effort to 'none'.",
                param="reasoning_effort",
            )
        if self.wants_json(body) and not any("json" in text.lower() for _, text in self.turns(body)):
            raise Rejected("'messages' must contain the word 'json' in some form, to use 'response_format'.")

    def thinks(self, body: Mapping[str, Any]) -> bool:
        return bool(EFFORTS[self.served]) and self.effort(body) != "none"

    def usage(self, answer: Answer) -> dict[str, Any]:
        usage = super().usage(answer)
        usage["prompt_tokens_details"]["cache_write_tokens"] = 30
        return usage
