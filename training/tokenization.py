"""Prompts and answers as tokens, the same in every stage: an answer ends on the end token, in training as in sampling.

A chat template may add more after that token (a line break, say), which a policy never writes; a reward model trained
on it would score policies on texts unlike any it has seen. So the answer's tokens are appended to the prompt's here,
and TRL is given tokens only: its reward trainer drops pairs that are too long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from parley.base.errors import ConfigError
from parley.training.pairs import PreferencePair, message


@dataclass(frozen=True, slots=True)
class ChatTokenizer:
    """A tokenizer with the longest sequence it may give."""

    tokenizer: Any
    max_length: int

    def messages(self, prompt: str) -> list[dict[str, str]]:
        return [message("user", prompt)]

    def prompt(self, prompt: str) -> list[int]:
        """The prompt's tokens, up to where the answer begins."""
        encoded = self.tokenizer.apply_chat_template(
            self.messages(prompt), add_generation_prompt=True, return_dict=True
        )
        ids = list(encoded["input_ids"])
        if len(ids) >= self.max_length - 1:
            raise ConfigError(f"a prompt of {len(ids)} tokens leaves no room for an answer: raise max_length")
        return ids

    def answer(self, text: str) -> list[int]:
        return [*self.tokenizer(text, add_special_tokens=False)["input_ids"], self.tokenizer.eos_token_id]

    def conversation(self, prompt: str, text: str) -> list[int]:
        """Prompt and answer, cut on the right to `max_length`; the end token stays."""
        ids = self.prompt(prompt) + self.answer(text)
        if len(ids) <= self.max_length:
            return ids
        return [*ids[: self.max_length - 1], self.tokenizer.eos_token_id]

    def sft_example(self, prompt: str, text: str) -> dict[str, list[int]]:
        """Only the answer has labels: the prompt is not learnt."""
        ids, prompt_length = self.conversation(prompt, text), len(self.prompt(prompt))
        return {"input_ids": ids, "labels": [-100] * prompt_length + ids[prompt_length:]}

    def pair(self, pair: PreferencePair) -> dict[str, list[int]]:
        """For the reward model. Two sides with the same tokens would teach it nothing, without any sign of it."""
        chosen = self.conversation(pair.prompt, pair.chosen.text)
        rejected = self.conversation(pair.prompt, pair.rejected.text)
        if chosen == rejected:
            raise ConfigError(
                f"pair {pair.id}: chosen and rejected are the same {len(chosen)} tokens"
                + (" after truncation: raise max_length" if len(chosen) == self.max_length else "")
            )
        return {"chosen_ids": chosen, "rejected_ids": rejected}

    def is_truncated(self, prompt: str, text: str) -> bool:
        return len(self.prompt(prompt)) + len(self.answer(text)) > self.max_length


def pad(sequences: Sequence[Sequence[int]], pad_token_id: int) -> tuple[Any, Any]:
    """Token sequences as one tensor, padded on the right, with its attention mask."""
    import torch

    longest = max(map(len, sequences))
    rows = [[*ids, *[pad_token_id] * (longest - len(ids))] for ids in sequences]
    masks = [[1] * len(ids) + [0] * (longest - len(ids)) for ids in sequences]
    return torch.tensor(rows), torch.tensor(masks)
