"""A call that waits for its reply by a model in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple

from pydantic import BaseModel

from parley.base.errors import ParleyError


class PendingCall(NamedTuple):
    """A call that waits for a batch."""

    prompt: list[int]
    """Token ids."""
    max_tokens: int
    temperature: float
    top_p: float
    seed: int
    logprobs: bool
    schema: type[BaseModel] | None
    completion: asyncio.Future[dict[str, Any]]
    """Set to the reply, in OpenAI's format."""
    read: Callable[[PendingCall, list[int], Any], dict[str, Any]]
    """Makes the reply from its tokens."""

    def cancelled(self) -> bool:
        return self.completion.done()

    def resolve(self, tokens: list[int], alternatives: Any) -> None:
        """Called in the engine's thread."""
        reply = self.read(self, tokens, alternatives)
        self.completion.get_loop().call_soon_threadsafe(_set, self.completion, reply)

    def fail(self, error: Exception) -> None:
        """Called in the engine's thread."""
        failure = ParleyError(f"vLLM: {' '.join(str(error).split())[:200]}")
        self.completion.get_loop().call_soon_threadsafe(_set, self.completion, failure)

    @property
    def group(self) -> tuple[int, float, bool, bool]:
        """Calls of the same group can share a batch without waiting for each other."""
        return self.max_tokens, self.top_p, self.logprobs, self.schema is None


def _set(completion: asyncio.Future[dict[str, Any]], outcome: dict[str, Any] | Exception) -> None:
    if completion.done():
        return
    if isinstance(outcome, Exception):
        completion.set_exception(outcome)
    else:
        completion.set_result(outcome)
