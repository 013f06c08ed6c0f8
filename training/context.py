"""Shared by all stages: the config, the data, the base model's tokenizer, and the folders of earlier stages.

Prompts and answers become tokens in the same way in every stage: an answer ends on the end token, in training as in
sampling. A chat template may add more after that token (a line break, say), which a policy never writes; a reward model
trained on it would score policies on texts unlike any it has seen. So the answer's tokens are appended to the prompt's
here, and TRL gets only tokens: its reward trainer drops pairs that are too long.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from parley.base.errors import ConfigError
from parley.training import device
from parley.training.base_model import base_folder, load_tokenizer, require_packages
from parley.training.config import Stage, TrainConfig, stage_settings
from parley.training.folders import StageFolder, read_manifest, require_free_space
from parley.training.pairs import Pairs, PreferencePair, message, read_pairs
from parley.training.prompts import PromptSplits, read_prompts


@dataclass(frozen=True, slots=True)
class ChatTokenizer:
    """A tokenizer with the maximum length of a sequence."""

    tokenizer: Any
    max_length: int

    def messages(self, prompt: str) -> list[dict[str, str]]:
        return [message("user", prompt)]

    def prompt(self, prompt: str) -> list[int]:
        """The prompt's tokens, up to the answer."""
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
        """An example for SFT. Only the answer has labels: the prompt is not learnt."""
        ids, prompt_length = self.conversation(prompt, text), len(self.prompt(prompt))
        return {"input_ids": ids, "labels": [-100] * prompt_length + ids[prompt_length:]}

    def pair(self, pair: PreferencePair) -> dict[str, list[int]]:
        """A pair for the reward model. Two sides with the same tokens would silently teach it nothing."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingContext:
    """A config with its data and tokenizer, checked."""

    config: TrainConfig
    pairs: Pairs
    prompts: PromptSplits
    base: str
    """A folder, or a name on the hub."""
    chat: ChatTokenizer
    report: Callable[[str], None]
    """Receives progress lines."""

    @classmethod
    def open(cls, config: TrainConfig, report: Callable[[str], None] = lambda line: None) -> TrainingContext:
        """Read the data, and check all that can fail early."""
        pairs = read_pairs(config)
        prompts = read_prompts(config, pairs)
        require_packages()
        device.silence_libraries()
        base = base_folder(config.base)
        chat = ChatTokenizer(load_tokenizer(base, config), config.max_length)
        for pair in (*pairs.train, *pairs.held_out()):
            chat.pair(pair)
        for prompt in (*prompts.train.values(), *prompts.held_out().values()):
            chat.prompt(prompt)
        return cls(config=config, pairs=pairs, prompts=prompts, base=base, chat=chat, report=report)

    def train_prompts(self) -> list[str]:
        """The prompts of the training topics, without duplicates."""
        return list(dict.fromkeys(self.prompts.train.values()))

    def folder(self, stage: Stage) -> StageFolder:
        """A stage's folder, with all that its result depends on: settings, pairs and, for some, prompts."""
        data = f"{self.pairs.digest} {self.prompts.train}"
        digest = hashlib.sha256(data.encode()).hexdigest() if stage.prompts else self.pairs.digest
        return StageFolder(Path(self.config.out) / stage.name, {**stage_settings(self.config, stage), "data": digest})

    def finished_folder(self, name: str) -> Path:
        """The folder of an earlier stage; ConfigError if that stage is not done."""
        path = self.config.sft_model_path if name == "sft" else None
        folder = Path(path) if path else Path(self.config.out) / name
        if read_manifest(folder) is None:
            raise ConfigError(f"there is no finished {name} stage at {folder}: run `parley train {name}` first")
        self.require_same_eos(folder)
        return folder

    def require_same_eos(self, folder: Path) -> None:
        """ConfigError if a stage was trained with another end token, as by another version of transformers."""
        token, expected = self.chat.tokenizer.eos_token, self.chat.tokenizer.eos_token_id
        if (stored := eos_token_id(folder)) != expected:
            raise ConfigError(
                f"{folder} was trained to end answers on token {stored}, but its base ends them on {expected} "
                f"('{token}'): choose another --out, or remove it"
            )

    def require_disk_space(self, model: Any) -> None:
        """ConfigError if the stage would not fit on the disk; adapters need almost no space.

        Two copies of the model (the result, and one being written), and two checkpoints, each with the optimizer's two
        moments.
        """
        if not self.config.use_peft:
            size = sum(weights.numel() for weights in model.parameters())
            require_free_space(Path(self.config.out), 4 * (2 * size + 2 * 3 * size))


def eos_token_id(folder: Path) -> int | None:
    """The end token of a stage, from an adapter's manifest or the model's config."""
    manifest = read_manifest(folder) or {}
    config = manifest if manifest.get("adapter") else json.loads((folder / "config.json").read_text("utf-8"))
    eos: Any = config.get("eos_token_id")
    return int(eos[0] if isinstance(eos, list) else eos) if eos is not None else None
