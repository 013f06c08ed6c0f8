"""Decoding away from a bias, token by token: Self-Debias (Schick, Udupa and Schütze 2021).

The model is asked twice for its next token: after the text, and after the same text behind words that call for the
bias. With Δ = p(token) − p(token, biased), a token that the bias makes more likely (Δ < 0) is scaled down by
exp(λ·Δ), never below a floor; all others keep their weight; the rest is renormalised, and one token is drawn.

Only the `keep` most likely tokens of either distribution are at hand (all of them, if `keep` is the vocabulary's size).
A token is drawn from those of the plain one. One that the biased list lacks counts as 0 there, so that its Δ is too
high by at most the smallest probability of that list.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

Distribution = Mapping[int, float]
FLOOR = 0.01
"""The least factor, as in the authors' own code: no token is ruled out entirely."""


class Contrast(NamedTuple):
    """How a text is continued; `decay` is λ, and 0 leaves the model as it is."""

    decay: float
    keep: int
    max_tokens: int
    temperature: float
    seed: int


class TokenChoice(NamedTuple):
    """What may come next, plainly and under the bias, and what each token spells."""

    plain: Distribution
    biased: Distribution
    spelling: Mapping[int, bytes]


class Continued(NamedTuple):
    text: str
    tokens: int
    ended: bool
    """Whether the model ended by itself."""


def debiased(plain: Distribution, biased: Distribution, decay: float) -> dict[int, float]:
    """The distribution that is drawn from: sums to 1 over the tokens of `plain`."""
    weights = {
        token: p * max(FLOOR, math.exp(decay * min(0.0, p - biased.get(token, 0.0)))) for token, p in plain.items()
    }
    total = sum(weights.values())
    return {token: weight / total for token, weight in weights.items()}


def draw(distribution: Distribution, temperature: float, rng: random.Random) -> int:
    """One token; the most likely at temperature 0."""
    if temperature == 0:
        return max(distribution, key=lambda token: (distribution[token], -token))
    tokens = sorted(distribution)
    return rng.choices(tokens, [distribution[token] ** (1 / temperature) for token in tokens])[0]


def decode(step: Callable[[list[int]], TokenChoice], how: Contrast) -> Continued:
    """Continue until the end token (which spells nothing) or `max_tokens`; `step` is given what was drawn so far."""
    rng = random.Random(how.seed)
    drawn: list[int] = []
    said = b""
    while len(drawn) < how.max_tokens:
        found = step(drawn)
        token = draw(debiased(found.plain, found.biased, how.decay), how.temperature, rng)
        if not found.spelling[token]:
            return Continued(said.decode("utf-8", "replace"), len(drawn), True)
        drawn.append(token)
        said += found.spelling[token]
    return Continued(said.decode("utf-8", "ignore"), len(drawn), False)


def read_step(data: Mapping[str, Any]) -> TokenChoice:
    """llama.cpp's answer to two prompts: the first choice is the plain one."""
    first, second = sorted(data["choices"], key=lambda choice: int(choice["index"]))
    tops = [choice["logprobs"]["content"][0]["top_logprobs"] for choice in (first, second)]
    plain, biased = ({int(top["id"]): math.exp(top["logprob"]) for top in listed} for listed in tops)
    return TokenChoice(plain, biased, {int(top["id"]): bytes(top["bytes"]) for top in tops[0]})
