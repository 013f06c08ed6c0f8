"""The logits of the next token after many prompts, on transformers: forward passes over batches, without generation.

Prompts of a study repeat each other: the same situation and answer under ten labels. A pass reads a prefix tree, which
holds shared beginnings once and needs no padding. Only attention sees whole prompts, padded on the right: there causal
attention needs no mask, and fast kernels accept none. It is a fiftieth of the arithmetic. The prompts alone decide
which of them share a pass, so the same prompts always give the same numbers.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from transformers import AttentionInterface, DynamicCache
from transformers.cache_utils import DynamicLayer

PASS_TOKENS, CPU_PASS_TOKENS = 65_536, 4_096
"""Tokens of a prefix tree: enough to keep a large GPU busy. Where memory is short, the client makes batches smaller."""
PADDED_TOKENS = 4
"""Maximum ratio of the tokens that attention sees, with shared beginnings and padding, to those of the tree."""
ATTENTION = "parley_prefix_tree"
Prompt = list[int]


@dataclass(slots=True)
class PrefixTree:
    """Prompts of one forward pass. Add them in sorted order, so that prompts that begin alike are neighbours."""

    tokens: list[int] = field(default_factory=list)
    """Token ids, each beginning once."""
    positions: list[int] = field(default_factory=list)
    """Position of each token in its prompt."""
    owners: list[int] = field(default_factory=list)
    """The first prompt that each token belongs to."""
    prompts: list[list[int]] = field(default_factory=list)
    """For each prompt, the places of its tokens in `tokens`."""
    longest: int = 0

    def shared(self, prompt: Prompt) -> int:
        """Number of first tokens that a prompt shares with the last one."""
        last = self.prompts[-1] if self.prompts else []
        differs = (
            at for at, (place, token) in enumerate(zip(last, prompt, strict=False)) if self.tokens[place] != token
        )
        return next(differs, min(len(last), len(prompt)))

    def add(self, prompt: Prompt, shared: int) -> None:
        """Add a prompt whose first `shared` tokens are those of the last one."""
        places = self.prompts[-1][:shared] if shared else []
        places += range(len(self.tokens), len(self.tokens) + len(prompt) - shared)
        self.tokens += prompt[shared:]
        self.positions += range(shared, len(prompt))
        self.owners += [len(self.prompts)] * (len(prompt) - shared)
        self.prompts.append(places)
        self.longest = max(self.longest, len(prompt))


@dataclass(frozen=True, slots=True)
class Spread:
    """Indices that map the tokens of a tree to padded prompts and back."""

    places: Any
    """For each prompt and position, the place of the token in the tree; shape (prompts, longest)."""
    back: Any
    """For each token of the tree, its place among the padded prompts."""


def prefix_trees(prompts: Sequence[Prompt], max_tokens: int, max_padded: int) -> Iterator[tuple[list[int], PrefixTree]]:
    """Group prompts into trees within the limits, each with its prompts' indices; a single prompt may exceed them."""
    rows: list[int] = []
    tree = PrefixTree()
    for row in sorted(range(len(prompts)), key=lambda row: prompts[row]):
        prompt = prompts[row]
        shared = tree.shared(prompt)
        tokens = len(tree.tokens) + len(prompt) - shared
        padded = (len(rows) + 1) * max(tree.longest, len(prompt))
        if rows and (tokens > max_tokens or padded > max_padded):
            yield rows, tree
            rows, tree, shared = [], PrefixTree(), 0
        tree.add(prompt, shared)
        rows.append(row)
    yield rows, tree


def reads_trees(model: Any) -> bool:
    """Whether a model can read prefix trees: all its attention is causal, over the whole prompt, and done by torch."""
    accepts = inspect.signature(model.forward).parameters.keys()
    # Layers with a window or a state of their own are not plain ones.
    layers = DynamicCache(config=model.config).layers
    return (
        model._supports_attention_backend
        and model.config._attn_implementation == "sdpa"
        and {"position_ids", "logits_to_keep"} <= accepts
        and all(type(layer) is DynamicLayer for layer in layers)
    )


def next_token_logits(model: Any, prompts: Sequence[Prompt], max_tokens: int = 10**6) -> Any:
    """The logits after each prompt: one row of 32-bit floats per prompt, on the model's device.

    Args:
        model: a causal language model that `reads_trees`.
        prompts: token ids, none empty.
        max_tokens: the user's limit on the tokens of a batch; a single prompt may be longer.
    """
    limit = CPU_PASS_TOKENS if model.device.type == "cpu" else PASS_TOKENS
    trees = list(prefix_trees(prompts, min(max_tokens, limit), min(max_tokens, PADDED_TOKENS * limit)))
    model.set_attn_implementation(ATTENTION)
    try:
        with torch.inference_mode():
            logits = torch.cat([_read(model, tree) for _, tree in trees])
    finally:
        model.set_attn_implementation("sdpa")  # replies are generated with it
    return logits[torch.tensor([row for rows, _ in trees for row in rows], device=logits.device).argsort()]


def _read(model: Any, tree: PrefixTree) -> Any:
    """Logits after the prompts of a tree, by one forward pass."""
    places = torch.zeros((len(tree.prompts), tree.longest), dtype=torch.long)  # padding may be any token
    for row, prompt in enumerate(tree.prompts):
        places[row, : len(prompt)] = torch.tensor(prompt)
    positions = torch.tensor(tree.positions)
    back = torch.tensor(tree.owners) * tree.longest + positions
    device = model.device
    output = model(
        input_ids=torch.tensor([tree.tokens], device=device),
        position_ids=positions.to(device)[None],
        logits_to_keep=torch.tensor([prompt[-1] for prompt in tree.prompts], device=device),
        use_cache=False,
        spread=Spread(places.to(device), back.to(device)),
    )
    return output.logits[0].float()


def _attention(module: Any, query: Any, key: Any, value: Any, _mask: Any, *, spread: Spread, **options: Any) -> Any:
    """Causal attention over the prompts of a tree; called by transformers once per layer."""
    padded = [states[0].transpose(0, 1)[spread.places].transpose(1, 2) for states in (query, key, value)]
    options |= {"is_causal": True}
    output, _ = AttentionInterface()["sdpa"](module, *padded, None, **options)
    return output.flatten(0, 1)[spread.back][None], None


AttentionInterface.register(ATTENTION, _attention)
