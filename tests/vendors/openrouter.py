"""OpenRouter's chat completions, as documented (docs/models.md). Unknown parameters are ignored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from tests.vendors.base import Answer, Received, Rejected
from tests.vendors.chat import ENDINGS, ChatServer

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh")


class Standin(ChatServer):
    provider, model, key_variable = "openrouter", "z-ai/glm-5", "OPENROUTER_API_KEY"
    path = "/api/v1"
    thought_field = "reasoning"
    takes_temperature = True
    efforts: ClassVar[Mapping[str, Any]] = {name: name for name in EFFORTS}

    def check(self, received: Received) -> None:
        super().check(received)
        if self.effort(received.body) not in (None, *EFFORTS):
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
