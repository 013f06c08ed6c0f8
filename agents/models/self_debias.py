"""Self-Debias (Schick, Udupa and Schütze 2021): decoding that lowers the probability of biased tokens.

At each step the model gives two distributions of the next token: after the text, and after the same text behind a
prefix that asks for the bias. With Δ = p(token) − p(token, biased), a token that the prefix makes more likely (Δ < 0)
is scaled by exp(λ·Δ), but never below a floor; all others keep their weight. The result is renormalized and sampled.

Only the `top_k` most likely tokens of each distribution are known (all of them, if `top_k` is the vocabulary's size).
The next token is sampled from those of the plain distribution. A token that is missing from the biased list counts as
0 there, so its Δ is too high by at most the smallest probability in that list.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

Distribution = Mapping[int, float]
FLOOR = 0.01
"""The smallest factor, as in the authors' code: no token is ruled out entirely."""


class DebiasSettings(NamedTuple):
    """How a text is continued."""

    decay: float
    """λ of the paper; 0 leaves the model as it is."""
    top_k: int
    """How many of the most likely tokens of each distribution are used."""
    max_tokens: int
    temperature: float
    seed: int


class NextTokens(NamedTuple):
    """The two distributions of the next token, and the text of each token."""

    plain: Distribution
    biased: Distribution
    token_bytes: Mapping[int, bytes]


class Continuation(NamedTuple):
    """The text that was generated."""

    text: str
    tokens: int
    """How many tokens it has."""
    ended: bool
    """Whether the model ended it, rather than `max_tokens`."""


def debiased(plain: Distribution, biased: Distribution, decay: float) -> dict[int, float]:
    """The distribution that is sampled from: sums to 1 over the tokens of `plain`."""
    weights = {
        token: p * max(FLOOR, math.exp(decay * min(0.0, p - biased.get(token, 0.0)))) for token, p in plain.items()
    }
    total = sum(weights.values())
    return {token: weight / total for token, weight in weights.items()}


def sample(distribution: Distribution, temperature: float, rng: random.Random) -> int:
    """One token; the most likely one at temperature 0."""
    if temperature == 0:
        return max(distribution, key=lambda token: (distribution[token], -token))
    tokens = sorted(distribution)
    return rng.choices(tokens, [distribution[token] ** (1 / temperature) for token in tokens])[0]


def decode(step: Callable[[list[int]], NextTokens], settings: DebiasSettings) -> Continuation:
    """Generate until the end token (whose text is empty) or `max_tokens`.

    Args:
        step: returns the distributions of the next token, given the tokens generated so far.
        settings: how to sample.
    """
    rng = random.Random(settings.seed)
    tokens: list[int] = []
    text = b""
    while len(tokens) < settings.max_tokens:
        candidates = step(tokens)
        token = sample(debiased(candidates.plain, candidates.biased, settings.decay), settings.temperature, rng)
        if not candidates.token_bytes[token]:
            return Continuation(text.decode("utf-8", "replace"), len(tokens), True)
        tokens.append(token)
        text += candidates.token_bytes[token]
    return Continuation(text.decode("utf-8", "ignore"), len(tokens), False)


def read_step(data: Mapping[str, Any]) -> NextTokens:
    """llama.cpp's completion of two prompts, of which the first is the plain one."""
    first, second = sorted(data["choices"], key=lambda choice: int(choice["index"]))
    tops = [choice["logprobs"]["content"][0]["top_logprobs"] for choice in (first, second)]
    plain, biased = ({int(top["id"]): math.exp(top["logprob"]) for top in entries} for entries in tops)
    return NextTokens(plain, biased, {int(top["id"]): bytes(top["bytes"]) for top in tops[0]})
