"""Replies that arrive in chunks: thoughts and the key are hidden from viewers, and a partial reply is billed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Any

from autogen_core.models import RequestUsage

from parley.agents.models.reply import Reply, StreamRedactor
from parley.agents.models.request import Request, estimate_tokens
from parley.agents.models.thoughts import ThoughtSplitter
from parley.agents.transcripts import PromptMessage

OnText = Callable[[str], None]
"""Gets an answer as it arrives, chunk by chunk."""


class Arriving(ABC):
    """The part of a streamed reply that has arrived."""

    @abstractmethod
    def add(self, event: Any) -> str:
        """Take one event of the stream; returns the text of the answer in it."""

    @abstractmethod
    def reply(self) -> Reply:
        """The reply so far."""


class Streams(ABC):
    """What a client has besides `send` if it streams replies."""

    @abstractmethod
    def events(self, request: Request) -> AsyncGenerator[Any, None]:
        """The events of one streamed reply; raises a `ModelError` if there is an error among them."""

    @abstractmethod
    def arriving(self) -> Arriving:
        """Collects the events of one reply."""


class ReplyStream:
    """One streamed reply.

    Args:
        client: streams it.
        on_text: gets the answer, without thoughts.
        key: the API key, in case a server echoes it.
    """

    def __init__(self, client: Streams, on_text: OnText, key: str) -> None:
        self._client, self._arriving, self._on_text = client, client.arriving(), on_text
        self._splitter, self._redactor = ThoughtSplitter(), StreamRedactor(key)
        self.began = False
        """True once any event has arrived."""

    async def receive(self, request: Request) -> Reply:
        """The whole reply, once it has arrived."""
        async with aclosing(self._client.events(request)) as events:
            async for event in events:
                self.began = True
                if text := self._redactor.feed(self._splitter.feed(self._arriving.add(event))):
                    self._on_text(text)
        if text := self._redactor.feed(self._splitter.flush()) + self._redactor.flush():
            self._on_text(text)
        return self._arriving.reply()  # it separates its thinking itself

    def so_far(self, prompt: Sequence[PromptMessage]) -> Reply:
        """The part of a broken stream that arrived; its usage is estimated if the server did not state it."""
        reply = self._arriving.reply()
        stated = reply.usage
        read = sum(estimate_tokens(message.text) for message in prompt)
        written = estimate_tokens(str(reply.content)) + estimate_tokens(reply.thought or "")
        reply.usage = RequestUsage(stated.prompt_tokens or read, max(stated.completion_tokens, written))
        return reply
