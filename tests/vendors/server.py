"""Some other server that speaks chat completions: the thinking stays in the content, between tags."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from tests.vendors.base import Answer
from tests.vendors.chat import ChatServer

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


class Standin(ChatServer):
    provider, model, key_variable = "server", "my-model", "PARLEY_SERVER_KEY"
    takes_temperature = True
    counts_cached = False
    efforts: ClassVar[Mapping[str, Any]] = {name: name for name in EFFORTS}

    def usage(self, answer: Answer) -> dict[str, Any]:
        usage = super().usage(answer)
        return {key: usage[key] for key in ("prompt_tokens", "completion_tokens", "total_tokens")}
