"""Sampling in batches on transformers, with a seed for each reply."""

from __future__ import annotations

from typing import Any

import torch
import transformers

from parley.agents.models.constrained import ConstrainedBatch
from parley.agents.models.request import FLOOR


class SeededSampler(transformers.LogitsProcessor):  # type: ignore[misc]
    """Samples by the Gumbel-max trick: noise is added to the logits, and greedy decoding takes the largest sum. The
    noise follows from each call's seed and the position, so a reply does not depend on the rest of its batch.

    Args:
        seeds: one per call, in 63 bits, on the model's device.
        temperatures: one per call; 0 takes the most likely token.
        top_p: nucleus sampling; 1 for none.
        alternatives: how many of the most likely tokens to note, with their log-probabilities; 0 for none.
        prompt_length: tokens before the reply.
        constraints: the constraints of the replies; None if there are none.
    """

    def __init__(
        self,
        *,
        seeds: Any,
        temperatures: Any,
        top_p: float,
        alternatives: int,
        prompt_length: int,
        constraints: ConstrainedBatch | None,
    ) -> None:
        self.seeds, self.temperatures, self.noted = seeds, temperatures, alternatives
        self.prompt_length, self.constraints = prompt_length, constraints
        self.any_sampled = bool((temperatures > 0).any())
        self.nucleus = transformers.TopPLogitsWarper(top_p) if top_p < 1 else None
        self.steps: list[tuple[Any, Any, Any]] = []

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        temperatures, logits = self.temperatures[:, None], scores
        step = input_ids.shape[1] - self.prompt_length
        if self.constraints is not None:
            scores = self.constraints.mask(scores, input_ids[:, -1].tolist() if step else None)
        if self.any_sampled:
            scaled = scores / temperatures.clamp(min=1e-6)
            if self.nucleus is not None:
                scaled = self.nucleus(input_ids, scaled)
            noise = gumbel_noise(self.seeds, step, scores.shape[1])
            scores = torch.where(temperatures > 0, scaled + noise, scores)
        if self.noted:
            logs = torch.log_softmax(logits.float(), dim=-1)
            top = logs.topk(min(self.noted, scores.shape[1]), dim=-1)
            self.steps.append((logs.gather(1, scores.argmax(-1, keepdim=True))[:, 0], top.indices, top.values))
        return scores

    def alternatives(self) -> list[list[tuple[float, list[int], list[float]]]]:
        """For each call and token: its own log-probability, and the most likely tokens with theirs."""
        steps = [(token_logprobs.tolist(), ids.tolist(), values.tolist()) for token_logprobs, ids, values in self.steps]
        rows = range(len(self.seeds)) if steps else ()
        return [[(token_logprobs[row], ids[row], values[row]) for token_logprobs, ids, values in steps] for row in rows]


class Debiasing(transformers.LogitsProcessor):  # type: ignore[misc]
    """Self-Debias (`local` has the arithmetic) over the whole vocabulary: rows are pairs, the plain text and then the
    biased one, which both go on with the token that the plain one draws.

    Args:
        decay: λ.
    """

    def __init__(self, decay: float) -> None:
        self.decay = decay

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        plain, biased = torch.softmax(scores.float(), dim=-1).unflatten(0, (-1, 2)).unbind(1)
        factor = torch.exp(self.decay * (plain - biased).clamp(max=0)).clamp(min=FLOOR)
        return torch.log(plain * factor).repeat_interleave(2, dim=0)


GOLDEN = -0x61C8864680B583EB
"""The increment of splitmix64, as a signed integer."""


def splitmix64(x: Any) -> Any:
    """Splitmix64's hash of a counter. The masks undo the sign extension of shifts of signed integers."""
    x = (x ^ ((x >> 30) & 0x3FFFFFFFF)) * -0x40A7B892E31B1A47
    x = (x ^ ((x >> 27) & 0x1FFFFFFFFF)) * -0x6B2FB644ECCEEE15
    return x ^ ((x >> 31) & 0x1FFFFFFFF)


def gumbel_noise(seeds: Any, step: int, vocab_size: int) -> Any:
    """Gumbel noise for each seed and token: a hash of seed, step and token, so that it does not depend on the batch."""
    states = splitmix64(seeds + torch.tensor(step + 1, device=seeds.device) * GOLDEN)
    tokens = torch.arange(1, vocab_size + 1, device=seeds.device)
    bits = (splitmix64(states[:, None] + (tokens * GOLDEN)[None]) >> 41) & 0x7FFFFF
    uniform = (bits.float() + 0.5) / 2**23  # never 0 or 1 in 32 bits
    return -torch.log(-torch.log(uniform))
