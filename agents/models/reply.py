"""A model's reply, made safe to store: counts can be summed, text can be encoded, log-probabilities are numbers, and
the API key is redacted."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from typing import Any, Self

from autogen_core import FunctionCall
from autogen_core.models import ChatCompletionTokenLogprob, CreateResult, RequestUsage
from pydantic import model_validator

from parley.agents.models.thoughts import join_thoughts, of_answer, split_thought
from parley.base.text import encodable

MAX_TOKENS = 10**7
"""A larger count of tokens is taken for an error of the server."""
LEAST_LOGPROB = -10_000.0
"""Smaller log-probabilities become this one: JSON, in which replies are stored, has no infinity."""
MOST_PROBABILITY = 1.05
"""If the alternatives of a token add up to more, which rounding cannot explain, they are not probabilities."""
ENDED = ("stop", "length", "function_calls")
"""How a reply ends that may be read: what is not known to be an end may be a fault or a filter of the server."""
MIN_KEY_LENGTH = 12
"""A shorter key (such as "EMPTY") is a placeholder; redacting it would damage ordinary text."""
NO_SECRETS = ("anthropic-", "accept", "content-", "user-agent")
"""How the names of headers begin whose values may be ordinary words."""


class Reply(CreateResult):
    """AutoGen's `CreateResult`, with what providers add.

    Inherited fields:
        content: the text, or the tool calls.
        finish_reason: why the reply ended: `stop`, `length`, `content_filter`, `function_calls` or `unknown`.
        usage: prompt and completion tokens.
        cached: whether it came from the reply cache.
        logprobs: the log-probabilities of its tokens, if they were requested and the provider returns them.
        thought: the model's thinking, if the provider returns it. It is never part of `content`: what a server puts in
            front of the answer, between marks such as `<think>` and `</think>`, is moved here whenever a reply is made.
    """

    refused: bool = False
    """Whether the provider says that the model refused or that a filter blocked the reply."""
    cached_tokens: int | None = None
    """Prompt tokens that the server read from its prompt cache; None if the server does not say."""
    written_tokens: int = 0
    """Prompt tokens that were written to the vendor's prompt cache, which some vendors charge for."""
    thought_tokens: int | None = None
    """Completion tokens that were spent on thinking; None if the server does not say. They are part of `usage`."""

    others: tuple[str, ...] = ()
    """The texts of further replies, where the request asked for several."""
    unclosed: bool = False
    """Whether the model never stopped thinking: a mark opens its thoughts, and none closes them."""

    @property
    def cut(self) -> bool:
        """Whether the reply ended before the model was done: at its limit of tokens, or in the middle of a thought."""
        return self.finish_reason == "length" or self.unclosed

    @property
    def whole(self) -> bool:
        """Whether the provider says how the reply ended, and that nothing was withheld. Others give no verdict."""
        return self.finish_reason in ENDED and not self.refused

    @property
    def empty(self) -> bool:
        """Whether there is neither text nor a tool call."""
        return not self.content or (isinstance(self.content, str) and not self.content.strip())

    @property
    def thinks(self) -> bool:
        """Whether the model was seen to think."""
        return bool(self.thought or self.thought_tokens)

    def each(self) -> list[Self]:
        """This reply and the further ones, each as a reply of its own; the usage of all is that of the first."""
        none = RequestUsage(0, 0)
        return [
            self,
            *(type(self)(finish_reason="stop", content=text, usage=none, cached=False) for text in self.others),
        ]

    @model_validator(mode="after")
    def _make_safe(self) -> Self:
        """One validator for all fields: every reply passes through it, and each one takes as long as the rest."""
        usage = self.usage
        counts = (_token_count(usage.prompt_tokens), _token_count(usage.completion_tokens))
        if counts != (usage.prompt_tokens, usage.completion_tokens):
            self.usage = RequestUsage(*counts)
        if self.thought_tokens is not None:
            self.thought_tokens = _token_count(self.thought_tokens)
        if self.thought:
            self.thought = encodable(self.thought)
        if self.others:
            self.others = tuple(map(encodable, self.others))
        if isinstance(self.content, str):
            content = encodable(self.content)
            thought, answer, closed = split_thought(content, cut=self.finish_reason == "length")
            if thought:
                self.thought = join_thoughts([self.thought, thought]) or None
            if not closed:
                self.unclosed = True
            if answer is not self.content:
                self.content = answer
            if self.logprobs and self.thought:
                self.logprobs = of_answer(self.logprobs, answer)
        if self.logprobs:
            self.logprobs = [_usable(token) for token in self.logprobs]
        return self


def stored_reply(text: str) -> Reply:
    """A reply that was stored as JSON, marked as `cached`."""
    reply = Reply.model_validate_json(text)
    reply.cached = True
    return reply


def secrets(key: str) -> tuple[str, ...]:
    """What is redacted: the API key, and what Anthropic's SDK sends with it from ANTHROPIC_CUSTOM_HEADERS."""
    return _secrets(key, os.environ.get("ANTHROPIC_CUSTOM_HEADERS", ""))


@lru_cache
def _secrets(key: str, custom_headers: str) -> tuple[str, ...]:
    headers = (line.partition(":") for line in custom_headers.splitlines())
    values = [value.strip() for name, _, value in headers if not name.strip().lower().startswith(NO_SECRETS)]
    tokens = (value.rpartition(" ")[2] for value in values)  # "Bearer TOKEN": a server may echo either
    return tuple(secret for secret in (key, *values, *tokens) if len(secret) >= MIN_KEY_LENGTH)


def redact(text: str, key: str) -> str:
    """The text with every secret replaced by `***`, in case a server echoes it."""
    for secret in secrets(key):
        text = text.replace(secret, "***")
    return text


def redact_reply(reply: Reply, key: str) -> Reply:
    """The reply with all secrets redacted from its text, its reasoning and its tool calls.

    Log-probabilities whose tokens have a secret, as one or in a row, are dropped: what they say is no ballot.
    """
    if not (hidden := secrets(key)):
        return reply
    if isinstance(reply.content, str):
        reply.content = redact(reply.content, key)
    else:
        reply.content = [
            FunctionCall(id=redact(call.id, key), name=redact(call.name, key), arguments=redact(call.arguments, key))
            for call in reply.content
        ]
    if reply.thought:
        reply.thought = redact(reply.thought, key)
    reply.others = tuple(redact(text, key) for text in reply.others)
    if reply.logprobs:
        spelled = "".join(token.token for token in reply.logprobs)
        others = (top.bytes or () for token in reply.logprobs for top in token.top_logprobs or ())
        long = [bytes(byte % 256 for byte in other) for other in others if len(other) >= MIN_KEY_LENGTH]
        if any(secret in spelled or any(secret.encode() in other for other in long) for secret in hidden):
            reply.logprobs = None
    return reply


class StreamRedactor:
    """Redacts secrets from streamed text: the end of a chunk that may be the start of one waits for the next."""

    def __init__(self, key: str) -> None:
        self._key, self._secrets, self._pending = key, secrets(key), ""

    def feed(self, chunk: str) -> str:
        """The text that can be shown so far."""
        if not self._secrets:
            return chunk
        text = redact(self._pending + chunk, self._key)
        overlaps = (
            size for secret in self._secrets for size in range(len(secret) - 1, 0, -1) if text.endswith(secret[:size])
        )
        end = len(text) - max(overlaps, default=0)
        self._pending = text[end:]
        return text[:end]

    def flush(self) -> str:
        """The pending text, at the end of the stream: it was no secret."""
        pending, self._pending = self._pending, ""
        return pending


def _usable(token: ChatCompletionTokenLogprob) -> ChatCompletionTokenLogprob:
    """The token with log-probabilities that can be stored; without alternatives if one of its numbers is not one."""
    tops = token.top_logprobs or []
    numbers = [token.logprob, *(top.logprob for top in tops)]
    # A NaN fails the comparison. Of the rest, one that is left out could be the model's answer: so none is left in.
    if (
        not all(type(number) in (float, int) and number < 1 for number in numbers)
        or max(math.exp(numbers[0]), math.fsum(map(math.exp, numbers[1:]))) > MOST_PROBABILITY
        or not _are_bytes([top.bytes for top in tops if top.bytes is not None])
    ):
        return token.model_copy(update={"logprob": LEAST_LOGPROB, "top_logprobs": []})
    if min(numbers) >= LEAST_LOGPROB:
        return token
    lifted = [replace(top, logprob=max(top.logprob, LEAST_LOGPROB)) for top in tops]
    return token.model_copy(update={"logprob": max(token.logprob, LEAST_LOGPROB), "top_logprobs": lifted})


def _are_bytes(given: list[Any]) -> bool:
    """Whether what tokens have as their bytes are bytes."""
    if not all(isinstance(part, list) for part in given):
        return False
    together = list(chain.from_iterable(given))
    return set(map(type, together)) <= {int} and min(together, default=0) >= 0 and max(together, default=0) < 256


def _token_count(count: Any) -> int:
    """The count if it is a plausible one, else 0."""
    return count if type(count) is int and 0 <= count <= MAX_TOKENS else 0
