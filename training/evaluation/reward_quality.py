"""A trained reward model as a scorer of texts, and its assessment on held-out pairs, with and without persona words.

Tables, a figure and conclusions are written next to it. The metrics are in `reward_metrics`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from parley.analysis.page.figures import save
from parley.analysis.say import json_values
from parley.judging.rldf.roles import load_bias
from parley.scenarios import BIASES
from parley.training import device
from parley.training.adapters import load_reward_model
from parley.training.context import ChatTokenizer, TrainingContext, pad
from parley.training.evaluation.reward_metrics import (
    calibration_error,
    conclusions,
    quality,
    reliability,
    reliability_figure,
)
from parley.training.folders import add_facts
from parley.training.pairs import PreferencePair

MASK = "someone"
QUALITY = "quality.csv"
"""The table of accuracies, in the folder of the reward model."""


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
        """Scores of answers to the prompts at the same positions."""
        return self.score_tokens(
            [self.chat.conversation(prompt, text) for prompt, text in zip(prompts, answers, strict=True)]
        )

    def score_tokens(self, sequences: Sequence[Sequence[int]]) -> list[float]:
        """Scores of token sequences, in the same order. Batches are sorted by length, which saves padding."""
        import torch

        order = sorted(range(len(sequences)), key=lambda index: len(sequences[index]))
        scores = [0.0] * len(sequences)
        for start in range(0, len(order), self.batch_size):
            indices = order[start : start + self.batch_size]
            ids, mask = pad([sequences[index] for index in indices], self.chat.tokenizer.pad_token_id)
            place = next(self.model.parameters()).device
            with torch.no_grad():
                logits = self.model(input_ids=ids.to(place), attention_mask=mask.to(place)).logits
            for index, score in zip(indices, logits.float().squeeze(-1).tolist(), strict=True):
                scores[index] = score
        return scores


def assess_reward_model(context: TrainingContext) -> None:
    """Score the held-out pairs, and write tables, a figure and a summary into the folder of the reward model."""
    folder = context.finished_folder("reward")
    scorer = RewardScorer.load(context)
    with device.explain_out_of_memory():
        held_out = score_pairs(scorer, context.pairs.held_out())
    held_out.to_csv(folder / "held_out.csv", index=False)
    table = quality(held_out, pair_lengths(context.pairs.train))
    table.to_csv(folder / QUALITY, index=False)
    bins = reliability(held_out)
    bins.to_csv(folder / "reliability.csv", index=False)
    save(reliability_figure(bins, held_out), folder / "reliability")
    add_facts(folder, quality=json_values(table), ece=calibration_error(bins), verdict=conclusions(table))


def score_pairs(scorer: RewardScorer, pairs: Sequence[PreferencePair]) -> pd.DataFrame:
    """One row per pair: both scores, with and without persona words, and both lengths."""
    frame, prompts = pair_lengths(pairs), [pair.prompt for pair in pairs]
    changed = np.zeros(len(pairs), dtype=bool)
    for side in ("chosen", "rejected"):
        texts = [getattr(pair, side).text for pair in pairs]
        masked = [mask_persona(text, pair) for text, pair in zip(texts, pairs, strict=True)]
        frame[side] = scorer.score_texts(prompts, texts)
        frame[f"{side}_masked"] = scorer.score_texts(prompts, masked)
        changed |= np.array([text != version for text, version in zip(texts, masked, strict=True)], dtype=bool)
    return frame.assign(changed=changed)


def pair_lengths(pairs: Sequence[PreferencePair]) -> pd.DataFrame:
    """One row per pair: its topic, and the words of both answers."""
    return pd.DataFrame(
        {
            "id": [pair.id for pair in pairs],
            "topic": [pair.topic for pair in pairs],
            "words_chosen": [len(pair.chosen.text.split()) for pair in pairs],
            "words_rejected": [len(pair.rejected.text.split()) for pair in pairs],
        }
    )


def mask_persona(text: str, pair: PreferencePair) -> str:
    """A text without the words that reveal its speaker: role labels, phrases that mark a role, and names."""
    names = tuple(sorted({pair.chosen.speaker, pair.rejected.speaker} - {""}))
    pattern = _persona_words(pair.bias, names)
    return pattern.sub(MASK, text.replace("’", "'")) if pattern else text


@lru_cache(maxsize=1024)
def _persona_words(bias: str, names: tuple[str, ...]) -> re.Pattern[str] | None:
    words = set(names)
    if bias in BIASES:
        for role in load_bias(bias).role:
            words |= {role.name, *role.marks, re.sub(r"^(?:an?|the) ", "", role.label)}
    longest_first = sorted(words, key=len, reverse=True)
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, longest_first))})\b", re.IGNORECASE) if words else None
