"""Scores read as expectations over the scale, from the log-probabilities of the reply's own tokens.

A tiny model answers "7" to almost everything; how much it leans to 6 or 8 still tells something. For every number
in a JSON reply, the alternatives that the model weighed at that place are renormalised over the whole numbers of
the scale. Where "10" is two tokens, the weight on "1" belongs to 1 and to 10: the model is asked how likely a "0"
follows, if it can be made to continue a text; otherwise that number has no expectation. Texts that are one of a few
choices are read the same way, as a probability for each choice.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from autogen_core.models import (
    AssistantMessage,
    ChatCompletionClient,
    ChatCompletionTokenLogprob,
    LLMMessage,
)

TOP = 10
"""The scale's end; scores run from 0 to 10."""
NEGLIGIBLE = 0.002

_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|-?\d+(?:\.\d+)?|[{}\[\],:]|true|false|null')


@dataclass(frozen=True, slots=True)
class Number:
    path: str
    start: int
    value: float


def numbers(text: str, begin: int = 0) -> Iterator[Number]:
    """Every number of the JSON object that begins at `begin` or later, with its path and place."""
    for path, start, found in _values(text, begin):
        if not found.startswith('"'):
            yield Number(path, start, float(found))


def _values(text: str, begin: int) -> Iterator[tuple[str, int, str]]:
    """Every number and text of the object: its path, its place, and how it is written."""
    stack: list[str] = []
    key = ""
    begin = max(text.find("{", begin), 0)
    tokens = list(_TOKEN.finditer(text, begin))
    for index, token in enumerate(tokens):
        found = token.group()
        if found == "{":
            stack.append(key)
        elif found == "}":
            if stack:
                stack.pop()
            if not stack:
                return
        elif found.startswith('"'):
            if index + 1 < len(tokens) and tokens[index + 1].group() == ":":
                key = json.loads(found)
            else:
                yield ".".join([*filter(None, stack[1:]), key]), token.start(), found
        elif found[0] in "-0123456789":
            yield ".".join([*filter(None, stack[1:]), key]), token.start(), found


def _alternatives(token: ChatCompletionTokenLogprob) -> Iterator[tuple[str, float]]:
    for top in token.top_logprobs or []:
        yield bytes(top.bytes or []).decode("utf-8", "replace"), math.exp(top.logprob)


@dataclass(frozen=True, slots=True)
class TokenProbabilities:
    """Weight on each whole number of the scale, and whether that on 1 may hide a 10."""

    of: Mapping[int, float]
    one_may_be_ten: bool

    def expectation(self, ten_after_one: float = 0.0) -> float | None:
        weights = dict(self.of)
        if self.one_may_be_ten:
            one = weights.get(1, 0.0)
            weights[1] = one * (1 - ten_after_one)
            weights[TOP] = weights.get(TOP, 0.0) + one * ten_after_one
        total = sum(weights.values())
        if total <= 0:
            return None
        return sum(value * weight for value, weight in weights.items()) / total


def weights_at(token: ChatCompletionTokenLogprob, lead: str) -> TokenProbabilities:
    """`lead` is what the token holds before the number begins (a space, a quote)."""
    weights: dict[int, float] = {}
    bare_one = ten = 0.0
    for text, weight in _alternatives(token):
        if not text.startswith(lead):
            continue
        match = re.match(r"\d+", text[len(lead) :])
        if match is None or int(match.group()) > TOP:
            continue
        value = int(match.group())
        weights[value] = weights.get(value, 0.0) + weight
        ten += weight if value == TOP else 0.0
        if value == 1 and match.end() == len(text) - len(lead):
            bare_one += weight
    total = sum(weights.values()) or 1.0
    return TokenProbabilities(weights, ten == 0.0 and bare_one / total > NEGLIGIBLE)


def _zero_share(token: ChatCompletionTokenLogprob) -> float:
    zero = sum(weight for text, weight in _alternatives(token) if text.startswith("0"))
    return min(1.0, zero)


def _starts(raw: str, logprobs: Sequence[ChatCompletionTokenLogprob]) -> list[int]:
    """Where each token begins in the reply; none, if the tokens do not spell it."""
    spoken = "".join(token.token for token in logprobs)
    if not spoken.startswith(raw.rstrip()):
        return []
    lengths = [len(token.token) for token in logprobs]
    return [0, *accumulate(lengths)][: len(lengths)]


def expected_choices(
    raw: str, begin: int, logprobs: Sequence[ChatCompletionTokenLogprob], choices: Mapping[str, Sequence[str]]
) -> dict[str, float]:
    """ "path=choice" → probability, for the texts of the object that are one of a few choices.

    The alternatives at the choice's first token are renormalised over the choices they can begin; one that could
    begin several of them belongs to none.
    """
    starts = _starts(raw, logprobs)
    found: dict[str, float] = {}
    for path, quote, _ in _values(raw, begin) if starts else ():
        if path not in choices:
            continue
        start = quote + 1
        index = max(i for i, at in enumerate(starts) if at <= start)
        lead = raw[starts[index] : start]
        weights = dict.fromkeys(choices[path], 0.0)
        for text, weight in _alternatives(logprobs[index]):
            word = re.match(r"\w*", text[len(lead) :]) if text.startswith(lead) else None
            fits = [one for one in weights if word and word.group() and one.startswith(word.group())]
            if len(fits) == 1:
                weights[fits[0]] += weight
        total = sum(weights.values())
        if total > 0:
            found |= {f"{path}={one}": weight / total for one, weight in weights.items()}
    return found


async def expected_numbers(
    client: ChatCompletionClient,
    messages: Sequence[LLMMessage],
    raw: str,
    begin: int,
    logprobs: Sequence[ChatCompletionTokenLogprob],
    options: Mapping[str, Any],
) -> dict[str, float]:
    """Path → expectation, for the numbers of the object at `begin` whose distribution can be known."""
    starts = _starts(raw, logprobs)
    found: dict[str, float] = {}
    for number in numbers(raw, begin) if starts else ():
        index = max((i for i, start in enumerate(starts) if start <= number.start), default=0)
        lead = raw[starts[index] : number.start]
        weights = weights_at(logprobs[index], lead)
        share = 0.0
        if weights.one_may_be_ten:
            if logprobs[index].token == lead + "1" and index + 1 < len(logprobs):
                share = _zero_share(logprobs[index + 1])
            elif getattr(client, "continues", False):
                share = await _probe(client, messages, raw[: number.start] + "1", options)
            else:
                continue
        value = weights.expectation(share)
        if value is not None:
            found[number.path] = value
    return found


async def _probe(
    client: ChatCompletionClient, messages: Sequence[LLMMessage], begun: str, options: Mapping[str, Any]
) -> float:
    """How likely a "0" comes next after `begun`, from a model that can be made to continue a text."""
    prompt = [*messages, AssistantMessage(content=begun, source="self")]
    extra = {**options, "max_tokens": 1, "logprobs": True, "temperature": 0.0}
    reply = await client.create(prompt, extra_create_args=extra)
    return _zero_share(reply.logprobs[0]) if reply.logprobs else 0.0
