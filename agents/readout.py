"""Expected scores, from the log-probabilities of a reply's tokens.

A small model answers "7" to almost everything, but the probabilities of 6 and 8 still differ. For every number in a
JSON reply, the probabilities of the alternative tokens at its position are renormalised over the integers of the scale.
Where "10" is two tokens, the probability of "1" is shared by 1 and 10: if the model can continue a given text, it is
asked for the probability that "0" follows; otherwise that number has no expectation. Fields with a few allowed texts
are read in the same way, as the probability of each choice. Where less than half of the probability is on the scale or
the choices (`LEAST_ON_SCALE`), there is no expectation: it would come from what the model would rarely say.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from autogen_core.models import AssistantMessage, ChatCompletionTokenLogprob, LLMMessage

from parley.agents.models.base import Client
from parley.agents.transcripts import LEAST_ON_SCALE

SCALE_MAX = 10
"""Expectations are read for scores from 0 to 10."""
NEGLIGIBLE = 0.002
"""A smaller probability of "1" is not worth a call to ask whether it means 10."""

_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|-?\d+(?:\.\d+)?|[{}\[\],:]|true|false|null')


def values(text: str) -> Iterator[tuple[str, int, str]]:
    """Path, position and literal of every number and string in the first JSON object."""
    stack: list[str] = []
    key = ""
    tokens = list(_TOKEN.finditer(text, max(text.find("{"), 0)))
    for index, token in enumerate(tokens):
        literal = token.group()
        if literal == "{":
            stack.append(key)
        elif literal == "}":
            if stack:
                stack.pop()
            if not stack:
                return
        elif literal.startswith('"'):
            if index + 1 < len(tokens) and tokens[index + 1].group() == ":":
                key = json.loads(literal)
            else:
                yield ".".join([*filter(None, stack[1:]), key]), token.start(), literal
        elif literal[0] in "-0123456789":
            yield ".".join([*filter(None, stack[1:]), key]), token.start(), literal


def _alternatives(token: ChatCompletionTokenLogprob) -> Iterator[tuple[str, float]]:
    """The most probable tokens at this position, with their probabilities."""
    for top in token.top_logprobs or []:
        yield bytes(top.bytes or []).decode("utf-8", "replace"), math.exp(top.logprob)


@dataclass(frozen=True, slots=True)
class TokenProbabilities:
    """Probability of each integer of the scale, and whether the probability of 1 includes that of 10."""

    weights: Mapping[int, float]
    one_may_be_ten: bool

    def expectation(self, ten_after_one: float = 0.0) -> float | None:
        """The mean; `ten_after_one` is the probability that "1" continues as "10"."""
        weights = dict(self.weights)
        if self.one_may_be_ten:
            one = weights[1]
            weights[1] = one * (1 - ten_after_one)
            weights[SCALE_MAX] = one * ten_after_one
        total = sum(weights.values())
        if total < LEAST_ON_SCALE:
            return None
        return sum(value * weight for value, weight in weights.items()) / total


def weights_at(token: ChatCompletionTokenLogprob, lead: str) -> TokenProbabilities:
    """Probabilities at a token; `lead` is its part before the number (a space, a quote)."""
    weights: dict[int, float] = {}
    bare_one = ten = 0.0
    for text, weight in _alternatives(token):
        if not text.startswith(lead):
            continue
        match = re.match(r"\d+", text[len(lead) :])
        if match is None or int(match.group()) > SCALE_MAX:
            continue
        value = int(match.group())
        weights[value] = weights.get(value, 0.0) + weight
        ten += weight if value == SCALE_MAX else 0.0
        if value == 1 and match.end() == len(text) - len(lead):
            bare_one += weight
    may_be_ten = ten == 0.0 and bare_one > NEGLIGIBLE * sum(weights.values())
    return TokenProbabilities(weights, may_be_ten)


def _zero_probability(tokens: Sequence[ChatCompletionTokenLogprob]) -> float | None:
    """The probability that the first token begins with "0"; None if it is not known."""
    token = next(iter(tokens), None)
    if token is None or not token.top_logprobs:
        return None
    zero = sum(weight for text, weight in _alternatives(token) if text.startswith("0"))
    return min(1.0, zero)


def _starts(raw: str, logprobs: Sequence[ChatCompletionTokenLogprob]) -> list[int]:
    """Start of each token in the reply; empty if the tokens do not add up to the reply."""
    spelled = "".join(token.token for token in logprobs)
    if not spelled.startswith(raw.rstrip()):
        return []
    lengths = [len(token.token) for token in logprobs]
    return [0, *accumulate(lengths)][: len(lengths)]


def expected_choices(
    raw: str, logprobs: Sequence[ChatCompletionTokenLogprob], choices: Mapping[str, Sequence[str]]
) -> dict[str, float]:
    """ "path=choice" → probability, for the object's fields that have a few allowed texts.

    The alternatives at the choice's first token are renormalised over the choices that they can begin. An alternative
    that could begin several choices counts for none.
    """
    starts = _starts(raw, logprobs)
    probabilities: dict[str, float] = {}
    for path, quote, _ in values(raw) if starts else ():
        if path not in choices:
            continue
        start = quote + 1
        index = max(i for i, position in enumerate(starts) if position <= start)
        lead = raw[starts[index] : start]
        weights = dict.fromkeys(choices[path], 0.0)
        for text, weight in _alternatives(logprobs[index]):
            word = re.match(r"\w*", text[len(lead) :]) if text.startswith(lead) else None
            matches = [choice for choice in weights if word and word.group() and choice.startswith(word.group())]
            if len(matches) == 1:
                weights[matches[0]] += weight
        total = sum(weights.values())
        if total >= LEAST_ON_SCALE:
            probabilities |= {f"{path}={choice}": weight / total for choice, weight in weights.items()}
    return probabilities


async def expected_numbers(
    client: Client,
    messages: Sequence[LLMMessage],
    raw: str,
    logprobs: Sequence[ChatCompletionTokenLogprob],
    options: Mapping[str, Any],
) -> dict[str, float]:
    """Expected values by path, for numbers in the object whose distribution is known.

    They are read at each number's place in the sampled reply, so that all scores cost the one call they come from.
    """
    starts = _starts(raw, logprobs)
    expectations: dict[str, float] = {}
    for path, start, literal in values(raw) if starts else ():
        if literal.startswith('"'):
            continue
        index = max(i for i, position in enumerate(starts) if position <= start)
        lead = raw[starts[index] : start]
        probabilities = weights_at(logprobs[index], lead)
        ten_after_one: float | None = 0.0
        if probabilities.one_may_be_ten:
            ten_after_one = None
            if logprobs[index].token == lead + "1":
                ten_after_one = _zero_probability(logprobs[index + 1 :])
            elif client.continues:
                ten_after_one = await _ask_for_zero(client, messages, raw[:start] + "1", options)
        value = None if ten_after_one is None else probabilities.expectation(ten_after_one)
        if value is not None:
            expectations[path] = value
    return expectations


async def _ask_for_zero(
    client: Client, messages: Sequence[LLMMessage], prefix: str, options: Mapping[str, Any]
) -> float | None:
    """The probability that "0" follows `prefix`, from a model that can continue a given text."""
    prompt = [*messages, AssistantMessage(content=prefix, source="self")]
    extra = {**options, "max_tokens": 1, "think_tokens": 0, "logprobs": True, "temperature": 0.0}
    reply = await client.create(prompt, extra_create_args=extra)
    return _zero_probability(reply.logprobs or [])
