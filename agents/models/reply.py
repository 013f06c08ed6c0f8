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
"""Larger token counts are treated as server errors."""
LEAST_LOGPROB = -10_000.0
"""The smallest log-probability that is stored: JSON has no infinity."""
MOST_PROBABILITY = 1.05
"""Alternatives of a token that add up to more than this are not probabilities: rounding cannot explain it."""
ENDED = ("stop", "length", "function_calls")
"""Finish reasons of replies that may be read; any other may be a fault or a filter of the server."""
MIN_KEY_LENGTH = 12
"""A shorter key (such as "EMPTY") is a placeholder; redacting it would damage ordinary text."""
NO_SECRETS = ("anthropic-", "accept", "content-", "user-agent")
"""Prefixes of headers whose values may be ordinary words, not secrets."""


class Reply(CreateResult):
    """AutoGen's `CreateResult`, with fields that providers add.

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
        """Whether the provider says how the reply ended and withheld nothing. Other replies give no verdict."""
        return self.finish_reason in ENDED and not self.refused

    @property
    def empty(self) -> bool:
        """Whether there is neither text nor a tool call."""
        return not self.content or (isinstance(self.content, str) and not self.content.strip())

    @property
    def thinks(self) -> bool:
        """Whether the reply shows that the model thinks."""
        return bool(self.thought or self.thought_tokens)

    def each(self) -> list[Self]:
        """This reply and the further ones as separate replies; the first has the usage of all."""
        none = RequestUsage(0, 0)
        return [
            self,
            *(type(self)(finish_reason="stop", content=text, usage=none, cached=False) for text in self.others),
        ]

    @model_validator(mode="after")
    def _make_safe(self) -> Self:
        """Validate all fields at once: every reply passes here, and each further validator would take as long again."""
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
    """Load a reply that was stored as JSON, and mark it as `cached`."""
    reply = Reply.model_validate_json(text)
    reply.cached = True
    return reply


def secrets(key: str) -> tuple[str, ...]:
    """Secrets to redact: the API key, and the headers that Anthropic's SDK takes from ANTHROPIC_CUSTOM_HEADERS."""
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

    Log-probabilities are dropped if their tokens contain a secret, alone or together: such a reply is not a ballot.
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
    """Redacts secrets from streamed text: the end of a chunk that may begin a secret waits for the next chunk."""

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
        """The pending text at the end of the stream, which was not a secret."""
        pending, self._pending = self._pending, ""
        return pending


def _usable(token: ChatCompletionTokenLogprob) -> ChatCompletionTokenLogprob:
    """The token with log-probabilities that can be stored; its alternatives are dropped if a number is invalid."""
    tops = token.top_logprobs or []
    numbers = [token.logprob, *(top.logprob for top in tops)]
    # NaN fails the comparison. All are dropped, since a dropped one could be the model's answer.
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
    """Whether the bytes of all tokens are valid."""
    if not all(isinstance(part, list) for part in given):
        return False
    together = list(chain.from_iterable(given))
    return set(map(type, together)) <= {int} and min(together, default=0) >= 0 and max(together, default=0) < 256


def _token_count(count: Any) -> int:
    """The count if it is plausible, else 0."""
    return count if type(count) is int and 0 <= count <= MAX_TOKENS else 0
