"""Constrained decoding on transformers: a batch of replies, each constrained to its JSON schema by llguidance."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any

import llguidance
import llguidance.hf
import llguidance.numpy
import torch
from pydantic import BaseModel

from parley.agents.models.wire import decoding_schema

BITS = 32
"""Tokens per integer in llguidance's bit masks."""


class Grammars:
    """Compiles schemas to grammars over a tokenizer's tokens.

    Args:
        tokenizer: the model's tokenizer.
        end_tokens: the ids of the tokens that end a reply.
        vocab_size: the width of the model's logits, which may be larger than the tokenizer's vocabulary.
    """

    def __init__(self, tokenizer: Any, end_tokens: Collection[int], vocab_size: int) -> None:
        ends: Any = sorted(end_tokens)
        try:
            self.tokens = llguidance.hf.from_tokenizer(tokenizer, n_vocab=vocab_size, eos_token=ends)
        except TypeError:  # llguidance 1.6 and earlier accept one end token only
            self.tokens = llguidance.hf.from_tokenizer(tokenizer, n_vocab=vocab_size, eos_token=ends[0])
        self.executor = llguidance.LLExecutor()
        self.end_mask = torch.zeros(-(-vocab_size // BITS), dtype=torch.int32)
        for end in end_tokens:
            # The highest bit of a signed integer is its sign.
            self.end_mask[end // BITS] |= 1 << end % BITS if end % BITS < BITS - 1 else -(1 << BITS - 1)
        self._compiled: dict[type[BaseModel], str] = {}

    def matcher(self, schema: type[BaseModel]) -> Any:
        """A matcher for one reply."""
        if schema not in self._compiled:
            text = json.dumps(decoding_schema(schema))
            self._compiled[schema] = llguidance.LLMatcher.grammar_from_json_schema(text)
        return llguidance.LLMatcher(self.tokens, self._compiled[schema])


class ConstrainedBatch:
    """The state of a batch of replies while they are decoded.

    Args:
        grammars: the compiler for the model's tokenizer.
        schemas: one per reply; None for an unconstrained one.
    """

    def __init__(self, grammars: Grammars, schemas: Sequence[type[BaseModel] | None]) -> None:
        self.executor, self.end_mask = grammars.executor, grammars.end_mask
        self.matchers = [(grammars.matcher(schema), row) for row, schema in enumerate(schemas) if schema is not None]
        self.batch_size = len(schemas)

    def mask(self, scores: Any, last_tokens: list[int] | None) -> Any:
        """The scores, with -inf for the tokens that a schema forbids.

        Args:
            scores: one row of logits per reply.
            last_tokens: the tokens that were sampled in the previous step; None in the first step.
        """
        if last_tokens is not None:
            for matcher, row in self.matchers:
                if not matcher.is_stopped():
                    matcher.consume_token(last_tokens[row])
        width = scores.shape[1]
        allowed = torch.full((self.batch_size, -(-width // BITS)), -1, dtype=torch.int32)
        active = [(matcher, row) for matcher, row in self.matchers if not matcher.is_stopped()]
        if active:
            # llguidance's module for torch does the same, but takes seconds to import: it compiles.
            llguidance.numpy.fill_next_token_bitmask_par(self.executor, active, allowed.numpy())
        if complete := [row for matcher, row in self.matchers if matcher.is_stopped()]:
            allowed[complete] = self.end_mask
        bits = allowed.to(scores.device)[:, :, None] >> torch.arange(BITS, device=scores.device, dtype=torch.int32)
        return scores.masked_fill((bits & 1).flatten(1)[:, :width] == 0, float("-inf"))
