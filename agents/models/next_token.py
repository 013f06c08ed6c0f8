"""The logits of the next token after many prompts, on transformers: forward passes over batches, nothing generated.

Prompts of a study repeat each other: the same situation and answer under ten labels. What several prompts begin with
is read once; its keys and values are then copied for each of them. Which prompts share a pass follows from the prompts
alone, so that the same prompts give the same numbers twice.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

PASS_TOKENS, CPU_PASS_TOKENS = 32_768, 4_096
"""Tokens that are read for one batch, padding included: enough to keep a large GPU busy, and a small part of its
memory."""
KEPT_TOKENS = 8
"""How many times as many tokens may have keys and values in memory, copies of shared ones included."""
LEAST_SHARED = 32
"""A shorter common beginning is not worth a pass of its own."""
Prompt = list[int]


class SharedPrefix(NamedTuple):
    """Prompts that begin alike."""

    rows: list[int]
    """Their places in the list of all prompts."""
    length: int
    """How many tokens are read once for all of them; 0 if each is read whole."""


def next_token_logits(model: Any, prompts: Sequence[Prompt], pad: int, max_tokens: int = 10**6) -> Any:
    """The logits after each prompt: one row of 32-bit floats per prompt, on the model's device.

    Args:
        model: a causal language model.
        prompts: token ids, none empty.
        pad: the id of the token that shorter prompts are padded with.
        max_tokens: the user's limit on the tokens of a batch; a single prompt may be longer.
    """
    pass_tokens = CPU_PASS_TOKENS if model.device.type == "cpu" else PASS_TOKENS
    reader = Reader(model, pad)
    logits: list[Any] = []
    rows: list[int] = []
    groups = shared_prefixes(prompts) if reader.shares else [SharedPrefix([row], 0) for row in range(len(prompts))]
    limits = min(max_tokens, pass_tokens), min(max_tokens, KEPT_TOKENS * pass_tokens)
    for batch in batches(prompts, groups, *limits):
        logits.append(reader.read(prompts, batch))
        rows += [row for group in batch for row in group.rows]
    order = torch.tensor(rows, device=logits[0].device).argsort()
    return torch.cat(logits)[order]


def common_length(one: Prompt, other: Prompt) -> int:
    """How many tokens two prompts begin with alike."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def shared_prefixes(prompts: Sequence[Prompt]) -> list[SharedPrefix]:
    """The prompts in groups, so that reading each group's common prefix once saves as many tokens as possible.

    One level only: a prefix that all groups share is read once per group.
    """
    order = sorted(range(len(prompts)), key=lambda row: prompts[row])
    # At least one token of each prompt is left to read: the logits come from it.
    common = [
        min(common_length(prompts[one], prompts[other]), len(prompts[one]) - 1, len(prompts[other]) - 1)
        for one, other in pairwise(order)
    ]

    def together(rows: list[int], length: int) -> tuple[int, list[SharedPrefix]]:
        if len(rows) > 1 and length >= LEAST_SHARED:
            return length * (len(rows) - 1), [SharedPrefix(rows, length)]
        return 0, [SharedPrefix([row], 0) for row in rows]

    def best(start: int, end: int) -> tuple[int, list[SharedPrefix]]:
        """Tokens saved, and the groups, of the sorted prompts from `start` to before `end`."""
        if end - start < 2:
            return together(order[start:end], 0)
        length = min(common[start : end - 1])
        # Apart: cut wherever neighbours have no more than this in common. What then shares no more with others is
        # together.
        cuts = [start, *(at + 1 for at in range(start, end - 1) if common[at] == length), end]
        parts = [best(one, other) for one, other in pairwise(cuts)]
        groups = [group for _, part in parts for group in part]
        saved, left = together([row for group in groups if not group.length for row in group.rows], length)
        apart = saved + sum(saved for saved, _ in parts), [group for group in groups if group.length] + left
        return max(together(order[start:end], length), apart, key=lambda choice: choice[0])

    return best(0, len(order))[1]


class Size(NamedTuple):
    """The size of a batch in tokens, padding included."""

    prefix: int
    rest: int
    groups: int
    rows: int

    @property
    def read(self) -> int:
        """Tokens that are read."""
        return self.groups * self.prefix + self.rows * self.rest

    @property
    def kept(self) -> int:
        """Tokens whose keys and values are in memory."""
        return self.rows * (self.prefix + self.rest)


def batches(
    prompts: Sequence[Prompt], groups: Sequence[SharedPrefix], max_read: int, max_kept: int
) -> Iterator[list[SharedPrefix]]:
    """The groups in batches of similar lengths, within the limits on tokens that are read and kept."""

    def size(group: SharedPrefix) -> Size:
        rest = max(len(prompts[row]) for row in group.rows) - group.length
        return Size(group.length, rest, groups=1, rows=len(group.rows))

    def fits(size: Size) -> bool:
        return size.read <= max_read and size.kept <= max_kept

    pieces: list[tuple[Size, SharedPrefix]] = []
    for group in groups:
        rows = len(group.rows)
        while rows > 1 and not fits(size(group)._replace(rows=rows)):  # a group too large for a batch is read in parts
            rows = (rows + 1) // 2
        parts = [group._replace(rows=group.rows[start : start + rows]) for start in range(0, len(group.rows), rows)]
        pieces += [(size(part), part) for part in parts]
    batch: list[SharedPrefix] = []
    total = Size(0, 0, 0, 0)
    # Prompts with a prefix and prompts without one have passes of their own.
    pieces.sort(key=lambda piece: (piece[0].prefix > 0, piece[0].prefix + piece[0].rest, piece[1]))
    for own, group in pieces:
        larger = Size(
            prefix=max(total.prefix, own.prefix),
            rest=max(total.rest, own.rest),
            groups=total.groups + 1,
            rows=total.rows + own.rows,
        )
        if batch and ((total.prefix > 0) != (own.prefix > 0) or not fits(larger)):
            yield batch
            batch, larger = [], own
        batch.append(group)
        total = larger
    yield batch


class Reader:
    """Forward passes of one model.

    Args:
        model: a causal language model.
        pad: the id of the token that shorter prompts are padded with.
    """

    def __init__(self, model: Any, pad: int) -> None:
        self.model, self.pad = model, pad
        self.accepts = inspect.signature(model.forward).parameters.keys()
        # Layers with a window or a state of their own do not keep the keys and values of a whole prefix.
        layers = DynamicCache(config=model.config).layers
        self.shares = "past_key_values" in self.accepts and all(type(layer) is DynamicLayer for layer in layers)

    def read(self, prompts: Sequence[Prompt], batch: Sequence[SharedPrefix]) -> Any:
        """The logits after the prompts of a batch, group by group."""
        with torch.inference_mode():
            if not batch[0].length:
                return self._pass([prompts[row] for group in batch for row in group.rows])
            prefixes = [prompts[group.rows[0]][: group.length] for group in batch]
            cache = DynamicCache(config=self.model.config)
            self._pass(prefixes, cache)
            copies = [number for number, group in enumerate(batch) for _ in group.rows]
            cache.batch_select_indices(torch.tensor(copies, device=self.model.device))
            rests = [prompts[row][group.length :] for group in batch for row in group.rows]
            return self._pass(rests, cache, [group.length for group in batch for _ in group.rows])

    def _pass(self, texts: Sequence[Prompt], cache: Any = None, lengths_before: Sequence[int] | None = None) -> Any:
        """One forward pass over token ids, padded on the left.

        Args:
            texts: token ids.
            cache: takes the keys and values, and has those of the tokens before; None if none are kept.
            lengths_before: how many tokens are before each text; by default none.
        """
        device, longest = self.model.device, max(map(len, texts))
        before = lengths_before or [0] * len(texts)
        padded_before = max(before)
        pads = [(padded_before - start, longest - len(text)) for start, text in zip(before, texts, strict=True)]
        ids = [[self.pad] * padding + [*text] for (_, padding), text in zip(pads, texts, strict=True)]
        mask = [
            [0] * padding_before + [1] * start + [0] * padding + [1] * len(text)
            for (padding_before, padding), start, text in zip(pads, before, texts, strict=True)
        ]
        attended = torch.tensor(mask, device=device)
        arguments: dict[str, Any] = {"use_cache": cache is not None}
        if cache is not None:
            arguments["past_key_values"] = cache
        if "position_ids" in self.accepts:
            arguments["position_ids"] = (attended.cumsum(-1) - 1).clamp(min=0)[:, padded_before:]
        if "logits_to_keep" in self.accepts:
            arguments["logits_to_keep"] = 1
        output = self.model(input_ids=torch.tensor(ids, device=device), attention_mask=attended, **arguments)
        return output.logits[:, -1].float()
