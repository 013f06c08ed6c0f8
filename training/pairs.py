"""Pairs to train on: the rows of `parley export --format trl` (or `trl-explicit`), read, checked, split, and cut down.

What is wrong with a dataset is said here, before anything is loaded.
"""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from parley.agents import ConfigError, seed_from
from parley.judging.rldf.roles import load_bias
from parley.judging.rldf.splits import SPLITS, split_topics
from parley.scenarios import BIASES, normal
from parley.training.config import TrainConfig

Row = dict[str, Any]
NOT_A_ROW = (ValueError, KeyError, TypeError, IndexError, AttributeError, StopIteration, OverflowError)
"""What comes of reading something else as a row."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two answers: its text, who gave it in which round, and its bias score, where they are known."""

    text: str
    speaker: str = ""
    round: int = 0
    score: float | None = None


@dataclass(frozen=True, slots=True)
class PreferencePair:
    """A prompt with a better and a worse answer."""

    id: str
    prompt: str
    chosen: Side
    rejected: Side
    topic: str
    bias: str = ""


@dataclass(frozen=True, slots=True)
class Pairs:
    """A dataset by split, with the hash of what it was read from."""

    train: tuple[PreferencePair, ...]
    validation: tuple[PreferencePair, ...]
    test: tuple[PreferencePair, ...]
    digest: str

    def held_out(self) -> tuple[PreferencePair, ...]:
        """What a reward model is judged by: the test split, or validation where there is no test."""
        return self.test or self.validation

    def probes(self) -> tuple[PreferencePair, ...]:
        """What RL is watched on while it runs: validation, so that test stays untouched."""
        return self.validation or self.test


def read_pairs(config: TrainConfig) -> Pairs:
    """The dataset of a config, checked and cut down as the config says."""
    path = Path(config.data)
    if path.is_dir():
        found = {split: _read(path / f"{split}.jsonl") for split in SPLITS if (path / f"{split}.jsonl").is_file()}
        if "train" not in found:
            raise ConfigError(f"{path} has no train.jsonl: make it with `parley export RUN --format trl --to {path}`")
        parts = {split: found.get(split, []) for split in SPLITS}
    elif path.is_file():
        parts = _split(_read(path), config)
    else:
        raise ConfigError(f"there is no dataset at {path}")
    _check(parts, path)
    digest = hashlib.sha256(repr(parts).encode()).hexdigest()
    train = subset(parts["train"], config)
    if len(train) < config.least_pairs:
        raise ConfigError(
            f"{path}: {len(train)} pairs to train on are too few (least_pairs is {config.least_pairs}; the paper "
            "asks for 5,000)"
        )
    return Pairs(tuple(train), tuple(parts["validation"]), tuple(parts["test"]), digest)


def _read(path: Path) -> list[PreferencePair]:
    try:
        lines = path.read_text("utf-8").split("\n")  # texts may hold other marks that splitlines() takes for ends
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: {getattr(error, 'strerror', None) or 'not a text file'}") from None
    return [_pair(line, f"{path}, line {n}") for n, line in enumerate(lines, 1) if line.strip()]


def _pair(line: str, where: str) -> PreferencePair:
    try:
        row = from_json(line)
        prompt = _user(row["prompt"] if "prompt" in row else row["chosen"])
        meta = row.get("meta") or {}
        chosen, rejected = (_side(row, meta, name) for name in ("chosen", "rejected"))
        topic, bias = str(meta.get("topic") or prompt), str(meta.get("bias", ""))
    except NOT_A_ROW:
        raise ConfigError(f"{where}: not a row of chosen and rejected as TRL reads them (docs/rldf.md)") from None
    if chosen.text == rejected.text:
        raise ConfigError(f"{where}: chosen and rejected are the same text")
    return PreferencePair(str(row.get("id", where)), prompt, chosen, rejected, topic, bias)


def _side(row: Row, meta: Row, name: str) -> Side:
    score = row.get(f"score_{name}")
    if score is not None and (isinstance(score, bool) or not math.isfinite(score)):
        raise ValueError("no score")
    return Side(_last(row[name]), str(meta.get(f"speaker_{name}", "")), int(meta.get(f"round_{name}", 0)), score)


def _last(said: Any) -> str:
    text = said if isinstance(said, str) else said[-1]["content"]
    if not isinstance(text, str) or not text.strip():
        raise ValueError("no text")
    return text.strip()


def _user(said: Any) -> str:
    text = said if isinstance(said, str) else next(one["content"] for one in said if one["role"] == "user")
    if not isinstance(text, str):
        raise TypeError("no text")
    return text


def _split(pairs: Sequence[PreferencePair], config: TrainConfig) -> dict[str, list[PreferencePair]]:
    split_of = split_topics((pair.topic for pair in pairs), config.splits, config.seed)
    return {split: [pair for pair in pairs if split_of[normal(pair.topic)] == split] for split in SPLITS}


def _check(parts: dict[str, list[PreferencePair]], path: Path) -> None:
    for split in ("train", "validation"):
        if not parts[split] and not (split == "validation" and parts["test"]):
            raise ConfigError(f"{path}: no pairs in the split '{split}': more topics are needed, or other shares")
    topics = {split: {normal(pair.topic) for pair in rows} for split, rows in parts.items()}
    for split in SPLITS[1:]:
        if shared := topics["train"] & topics[split]:
            raise ConfigError(
                f"{path}: {len(shared)} topics stand in train and in {split} ('{sorted(shared)[0][:60]}'): "
                "what is learnt by heart would pass for what is learnt"
            )


def subset(pairs: Sequence[PreferencePair], config: TrainConfig) -> list[PreferencePair]:
    """The training pairs a config asks for. A larger number holds all of a smaller one."""
    kept = [pair for pair in pairs if _within(pair, config)]
    if config.topics is not None:
        names = sorted({normal(pair.topic) for pair in kept}, key=lambda name: seed_from("topic", config.seed, name))
        chosen = set(names[: config.topics])
        kept = [pair for pair in kept if normal(pair.topic) in chosen]
    if config.pairs is not None:
        kept = sorted(kept, key=lambda pair: seed_from("pair", config.seed, pair.id))[: config.pairs]
    return kept


def _within(pair: PreferencePair, config: TrainConfig) -> bool:
    sides = (pair.chosen, pair.rejected)
    if config.rounds is not None and any(side.round > config.rounds for side in sides):
        return False
    if config.roles is None:
        return True
    return {side.speaker for side in sides} <= set(speakers(pair.bias)[: config.roles])


@lru_cache(maxsize=16)
def speakers(bias: str) -> tuple[str, ...]:
    """The debaters of a bias type in their order."""
    if bias not in BIASES:
        raise ConfigError(f"roles: '{bias or 'this dataset'}' is no shipped bias type, so its speakers have no order")
    return tuple(role.name for role in load_bias(bias).role)


def low_bias(pairs: Sequence[PreferencePair]) -> Iterator[tuple[str, str]]:
    """Prompts with what was chosen, each once: what SFT learns from where it has no data of its own."""
    yield from dict.fromkeys((pair.prompt, pair.chosen.text) for pair in pairs)


def read_sft(path: Path) -> list[tuple[str, str]]:
    """Prompts and completions of `parley export --format sft`."""
    file = path / "train.jsonl" if path.is_dir() else path
    try:
        rows = [from_json(line) for line in file.read_text("utf-8").split("\n") if line.strip()]
        found = [(_user(row["prompt"]), _last(row["completion"])) for row in rows]
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror}") from None
    except NOT_A_ROW:
        raise ConfigError(f"{file}: not rows of prompt and completion as TRL reads them (docs/rldf.md)") from None
    if not found:
        raise ConfigError(f"{file}: there is no row in it")
    return found


def shuffled(pairs: Sequence[PreferencePair], seed: int) -> list[PreferencePair]:
    """The same pairs in an order drawn by the seed."""
    mixed = list(pairs)
    random.Random(seed).shuffle(mixed)
    return mixed


def with_texts(pair: PreferencePair, chosen: str, rejected: str) -> PreferencePair:
    """The same pair with other texts."""
    return replace(pair, chosen=replace(pair.chosen, text=chosen), rejected=replace(pair.rejected, text=rejected))
