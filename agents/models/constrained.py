"""Replies held to a JSON schema while they are written, many at a time, on transformers: llguidance says of every next
token whether the schema allows it."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any

import llguidance
import llguidance.hf
import llguidance.torch
import torch
from pydantic import BaseModel

from parley.agents.models.wire import strict_schema

WORD = 32
"""Tokens whose bits share a number."""


class Grammars:
    """What a tokenizer's tokens may spell, by schema."""

    def __init__(self, tokenizer: Any, ends: Collection[int], width: int) -> None:
        several: Any = sorted(ends) if len(ends) > 1 else min(ends)  # llguidance 1.6 knows one only
        self.tokens = llguidance.hf.from_tokenizer(tokenizer, n_vocab=width, eos_token=several)
        self.together = llguidance.LLExecutor()
        self.only_end = torch.zeros(-(-width // WORD), dtype=torch.int32)
        for end in ends:
            self.only_end[end // WORD] |= 1 << end % WORD if end % WORD < WORD - 1 else -(1 << WORD - 1)
        self._known: dict[type[BaseModel], str] = {}

    def matcher(self, schema: type[BaseModel]) -> Any:
        """White space is fixed: free white space costs a third of a reply's tokens."""
        if schema not in self._known:
            closed = strict_schema(schema.model_json_schema(), lengths=True)
            spacing = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
            self._known[schema] = llguidance.LLMatcher.grammar_from_json_schema(
                json.dumps({**closed, "x-guidance": spacing})
            )
        return llguidance.LLMatcher(self.tokens, self._known[schema])


class Held:
    """A batch of replies, each held to its own schema, or to none."""

    def __init__(self, grammars: Grammars, schemas: Sequence[type[BaseModel] | None]) -> None:
        self.together = grammars.together
        self.matchers = [(grammars.matcher(schema), row) for row, schema in enumerate(schemas) if schema is not None]
        self.rows, self.only_end = len(schemas), grammars.only_end

    def mask(self, scores: Any, last: list[int] | None) -> Any:
        """Scores without what the schemas forbid, after the tokens that were just taken."""
        if last is not None:
            for matcher, row in self.matchers:
                if not matcher.is_stopped():
                    matcher.consume_token(last[row])
        width = scores.shape[1]
        allowed = torch.full((self.rows, -(-width // WORD)), -1, dtype=torch.int32)
        going = [(matcher, row) for matcher, row in self.matchers if not matcher.is_stopped()]
        if going:
            llguidance.torch.fill_next_token_bitmask_par(self.together, going, allowed)
        if whole := [row for matcher, row in self.matchers if matcher.is_stopped()]:
            allowed[whole] = self.only_end
        bits = allowed.to(scores.device)[:, :, None] >> torch.arange(WORD, device=scores.device, dtype=torch.int32)
        return scores.masked_fill((bits & 1).flatten(1)[:, :width] == 0, float("-inf"))
