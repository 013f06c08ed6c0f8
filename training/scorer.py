"""A trained reward model as a scorer of texts: prompt and answer in, one number out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from parley.training import device
from parley.training.adapters import load_reward_model
from parley.training.context import TrainingContext
from parley.training.tokenization import ChatTokenizer, pad


@dataclass(frozen=True, slots=True)
class RewardScorer:
    """A reward model on its device, with the tokenizer it was trained with."""

    model: Any
    chat: ChatTokenizer
    batch_size: int = 32

    @classmethod
    def load(cls, context: TrainingContext) -> RewardScorer:
        """The reward model of a context's finished stage."""
        model = load_reward_model(context.finished_folder("reward"), context.base, context.chat.tokenizer)
        return cls(model.to(device.device(), device.inference_dtype(context.config)).eval(), context.chat)

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
            place = next(self.model.parameters()).device
            with torch.no_grad():
                logits = self.model(input_ids=ids.to(place), attention_mask=mask.to(place)).logits
            for index, score in zip(indices, logits.float().squeeze(-1).tolist(), strict=True):
                scores[index] = score
        return scores
