"""A trained reward model as a scorer of texts: prompt and answer in, one number out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from parley.agents import ConfigError
from parley.training.stage import read_manifest
from parley.training.tokenization import ChatTokenizer, pad


@dataclass(frozen=True, slots=True)
class RewardScorer:
    """A reward model on its device, with the tokenizer it was trained with."""

    model: Any
    chat: ChatTokenizer
    batch_size: int = 32

    @classmethod
    def load(cls, folder: Path, chat: ChatTokenizer, *, device: Any, dtype: Any) -> RewardScorer:
        """The reward model of a finished stage."""
        from transformers import AutoModelForSequenceClassification

        if read_manifest(folder) is None:
            raise ConfigError(f"there is no reward model at {folder}: parley train reward")
        model = AutoModelForSequenceClassification.from_pretrained(str(folder), dtype=dtype, num_labels=1)
        model.config.pad_token_id = chat.tokenizer.pad_token_id
        return cls(model.to(device).eval(), chat)

    def score_texts(self, prompts: Sequence[str], answers: Sequence[str]) -> list[float]:
        """Scores of answers, each to the prompt at its place."""
        return self.score_tokens(
            [self.chat.conversation(prompt, text) for prompt, text in zip(prompts, answers, strict=True)]
        )

    def score_tokens(self, sequences: Sequence[Sequence[int]]) -> list[float]:
        """Scores of token sequences. Sorted by length for batching, which saves padding; returned in their order."""
        import torch

        order = sorted(range(len(sequences)), key=lambda index: len(sequences[index]))
        scores = [0.0] * len(sequences)
        for start in range(0, len(order), self.batch_size):
            indices = order[start : start + self.batch_size]
            ids, mask = pad([sequences[index] for index in indices], self.chat.tokenizer.pad_token_id, side="right")
            device = next(self.model.parameters()).device
            with torch.no_grad():
                logits = self.model(input_ids=ids.to(device), attention_mask=mask.to(device)).logits
            for index, score in zip(indices, logits.float().squeeze(-1).tolist(), strict=True):
                scores[index] = score
        return scores
