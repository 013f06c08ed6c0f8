"""Prompts and answers as tokens, the same in every stage: an answer ends on the end token, in training as in sampling.

A chat template may add more after that token (a line break, say), which a policy never writes; a reward model trained
on it would score policies on texts unlike any it has seen. So the answer's tokens are appended to the prompt's here,
and TRL is given tokens only: its reward trainer drops pairs that are too long. Probes are sampled here, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from parley.base.errors import ConfigError
from parley.training.config import RlSettings
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

    def prompt_text(self, prompt: str) -> str:
        """The same as text, without a BOS token that the tokenizer adds itself."""
        text = str(
            self.tokenizer.apply_chat_template(self.messages(prompt), add_generation_prompt=True, tokenize=False)
        )
        bos = self.tokenizer.bos_token
        adds_bos = bos is not None and self.tokenizer("")["input_ids"][:1] == [self.tokenizer.bos_token_id]
        return text.removeprefix(bos) if adds_bos else text

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


def pad(sequences: Sequence[Sequence[int]], pad_token_id: int, *, side: str) -> tuple[Any, Any]:
    """Token sequences as one tensor, with its attention mask; `side` is where the padding goes, left or right."""
    import torch

    longest = max(map(len, sequences))
    rows, masks = [], []
    for ids in sequences:
        gap = longest - len(ids)
        padding, mask = [pad_token_id] * gap, [1] * len(ids)
        rows.append([*padding, *ids] if side == "left" else [*ids, *padding])
        masks.append([*([0] * gap), *mask] if side == "left" else [*mask, *([0] * gap)])
    return torch.tensor(rows), torch.tensor(masks)


def sample_completions(
    model: Any,
    chat: ChatTokenizer,
    prompts: Sequence[str],
    settings: RlSettings,
    *,
    seed: int,
    batch_size: int = 32,
) -> list[list[int]]:
    """Completions as tokens, up to and including the end token; the same for the same seed.

    The random state is restored afterwards: how often a model is probed must not change its training.

    Args:
        model: A language model of transformers.
        chat: Its tokenizer.
        prompts: Texts of the user's message.
        settings: Their `max_completion_length` and `temperature` apply.
        seed: Seed of sampling.
        batch_size: Prompts per batch.
    """
    import torch

    completions: list[list[int]] = []
    device, eos, padding = next(model.parameters()).device, chat.tokenizer.eos_token_id, chat.tokenizer.pad_token_id
    was_training, cpu_state = model.training, torch.random.get_rng_state()
    cuda_state = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    torch.manual_seed(seed)
    model.eval()
    for start in range(0, len(prompts), batch_size):
        ids, mask = pad([chat.prompt(text) for text in prompts[start : start + batch_size]], padding, side="left")
        with torch.no_grad():
            generated = model.generate(
                input_ids=ids.to(device),
                attention_mask=mask.to(device),
                max_new_tokens=settings.max_completion_length,
                do_sample=True,
                temperature=settings.temperature,
                top_k=0,
                top_p=1.0,
                pad_token_id=padding,
                eos_token_id=eos,
            )
        for row in generated[:, ids.shape[1] :].tolist():
            completions.append(row[: row.index(eos) + 1] if eos in row else row)
    model.train(was_training)
    torch.random.set_rng_state(cpu_state)
    if cuda_state:
        torch.cuda.set_rng_state_all(cuda_state)
    return completions
