"""Pairs to train on: the rows of `parley export --format trl` (or `trl-explicit`), read, checked, split and filtered.

A dataset with errors is refused here, before any model is loaded.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic_core import from_json

from parley.agents import seed_from
from parley.base.errors import ConfigError
from parley.base.files import new_file
from parley.base.text import plural
from parley.judging.rldf.roles import load_bias
from parley.judging.rldf.statements import SPLITS, split_topics
from parley.scenarios import BIASES, normal
from parley.training.config import TrainConfig

Row = dict[str, Any]
SHARES = (0.8, 0.1, 0.1)
"""Shares of topics for train, validation and test, if the export has no splits."""
Part = TypeVar("Part")
NOT_A_ROW = (ValueError, KeyError, TypeError, IndexError, AttributeError, StopIteration, OverflowError)
"""Errors raised by a malformed row."""
META = tuple(f"{what}_{side}" for what in ("round", "speaker", "blind") for side in ("chosen", "rejected"))
"""Keys of a row's `meta` about its sides; `blind` is a second referee's score."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two answers: its text and, if known, its speaker, round and bias score."""

    text: str
    speaker: str = ""
    round: int = 0
    score: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PreferencePair:
    """A prompt with a better and a worse answer."""

    id: str
    prompt: str
    chosen: Side
    rejected: Side
    topic: str
    bias: str = ""
    meta: Row = field(default_factory=dict, repr=False)  # not part of the digest, which is made from this text
    """The values of `META` in the row's `meta`; None if missing."""


@dataclass(frozen=True, slots=True)
class Splits(Generic[Part]):
    """Data by split: pairs, or prompts by topic."""

    train: Part
    validation: Part
    test: Part

    def held_out(self) -> Part:
        """The split for measuring results: test, or validation if there is no test split."""
        return self.test or self.validation


@dataclass(frozen=True, slots=True)
class Pairs(Splits[tuple[PreferencePair, ...]]):
    """A dataset by split, with a hash of its rows."""

    digest: str


def read_pairs(config: TrainConfig) -> Pairs:
    """The dataset of a config, checked, with the training pairs that the config selects."""
    path = Path(config.data)
    splits = _split(_read(path), config) if path.is_file() else read_splits(path)
    _check(splits, path)
    train = subset(splits["train"], config)
    if len(train) < config.min_pairs:
        raise ConfigError(
            f"{path}: too few pairs to train on: {len(train)} (min_pairs is {config.min_pairs}; the paper asks for "
            "5,000)"
        )
    digest = hashlib.sha256(repr(splits).encode()).hexdigest()
    return Pairs(tuple(train), tuple(splits["validation"]), tuple(splits["test"]), digest)


def read_splits(folder: Path) -> dict[str, list[PreferencePair]]:
    """The pairs of an export's folder, by split."""
    files = {split: folder / f"{split}.jsonl" for split in SPLITS}
    if not folder.is_dir():
        raise ConfigError(f"there is no dataset at {folder}")
    if not files["train"].is_file():
        raise ConfigError(f"{folder} has no train.jsonl: make it with `parley export RUN --format trl --to {folder}`")
    return {split: _read(file) if file.is_file() else [] for split, file in files.items()}


def _read(path: Path) -> list[PreferencePair]:
    try:
        lines = path.read_text("utf-8-sig").split("\n")  # splitlines() would also split at separators within texts
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: {getattr(error, 'strerror', None) or 'not a text file'}") from None
    return [_pair(line, f"{path}, line {number}") for number, line in enumerate(lines, 1) if line.strip()]


def _pair(line: str, where: str) -> PreferencePair:
    try:
        row = from_json(line)
        prompt = _user_text(row["prompt"] if "prompt" in row else row["chosen"])
        meta = row.get("meta") or {}
        chosen, rejected = (_side(row, meta, name) for name in ("chosen", "rejected"))
        topic, bias = str(meta.get("topic") or prompt), str(meta.get("bias", ""))
        of_sides = {name: _meta_value(name, meta.get(name)) for name in META}
    except NOT_A_ROW:
        raise ConfigError(f"{where}: not a row of chosen and rejected as TRL reads them (docs/datasets.md)") from None
    if chosen.text == rejected.text:
        raise ConfigError(f"{where}: chosen and rejected are the same text")
    return PreferencePair(
        id=str(row.get("id", where)),
        prompt=prompt,
        chosen=chosen,
        rejected=rejected,
        topic=topic,
        bias=bias,
        meta=of_sides,
    )


def _meta_value(name: str, value: Any) -> str | float | None:
    if value in (None, ""):
        return None
    return str(value) if name.startswith("speaker") else float(value)


def _side(row: Row, meta: Row, name: str) -> Side:
    score = row.get(f"score_{name}")
    if score is not None and (isinstance(score, bool) or not math.isfinite(score)):
        raise ValueError("not a score")
    return Side(_last_text(row[name]), str(meta.get(f"speaker_{name}", "")), int(meta.get(f"round_{name}", 0)), score)


def _last_text(messages: Any) -> str:
    text = messages if isinstance(messages, str) else messages[-1]["content"]
    if not isinstance(text, str) or not text.strip():
        raise ValueError("no text")
    return text.strip()


def _user_text(messages: Any) -> str:
    if isinstance(messages, str):
        return messages
    text = next(message["content"] for message in messages if message["role"] == "user")
    if not isinstance(text, str):
        raise TypeError("no text")
    return text


def _split(pairs: Sequence[PreferencePair], config: TrainConfig) -> dict[str, list[PreferencePair]]:
    split_of = split_topics((pair.topic for pair in pairs), SHARES, config.seed)
    return {split: [pair for pair in pairs if split_of[normal(pair.topic)] == split] for split in SPLITS}


def _check(splits: dict[str, list[PreferencePair]], path: Path) -> None:
    for split in ("train", "validation"):
        if not splits[split] and not (split == "validation" and splits["test"]):
            raise ConfigError(f"{path}: no pairs in the split '{split}': use more topics")
    topics = {split: {normal(pair.topic) for pair in pairs} for split, pairs in splits.items()}
    for split in SPLITS[1:]:
        if shared := topics["train"] & topics[split]:
            raise ConfigError(
                f"{path}: {plural(len(shared), 'topic')} in both train and {split} ('{sorted(shared)[0][:60]}'): "
                f"keep each topic in one split, else {split} measures memorization"
            )


def subset(pairs: Sequence[PreferencePair], config: TrainConfig) -> list[PreferencePair]:
    """The training pairs that a config selects. A larger number includes all pairs of a smaller one."""
    selected = [pair for pair in pairs if _is_selected(pair, config)]
    if config.topics is not None:
        topics = {normal(pair.topic) for pair in selected}
        drawn = set(sorted(topics, key=lambda topic: seed_from("topic", config.seed, topic))[: config.topics])
        selected = [pair for pair in selected if normal(pair.topic) in drawn]
    if config.pairs is not None:
        selected = sorted(selected, key=lambda pair: seed_from("pair", config.seed, pair.id))[: config.pairs]
    return selected


def _is_selected(pair: PreferencePair, config: TrainConfig) -> bool:
    """Whether a pair is within the config's `rounds` and `roles`."""
    sides = (pair.chosen, pair.rejected)
    if config.rounds is not None and any(side.round > config.rounds for side in sides):
        return False
    if config.roles is None:
        return True
    return {side.speaker for side in sides} <= set(speakers(pair.bias)[: config.roles])


@lru_cache(maxsize=16)
def speakers(bias: str) -> tuple[str, ...]:
    """The debaters of a bias type, in order."""
    if bias not in BIASES:
        raise ConfigError(
            f"roles: the bias type of every pair must be one of {', '.join(BIASES)}, whose speakers have an order; "
            f"got '{bias}'"
        )
    return tuple(role.name for role in load_bias(bias).role)


def low_bias(pairs: Sequence[PreferencePair]) -> Iterator[tuple[str, str]]:
    """Prompts with chosen answers, without duplicates: the default data of SFT."""
    yield from dict.fromkeys((pair.prompt, pair.chosen.text) for pair in pairs)


def read_sft(path: Path) -> list[tuple[str, str]]:
    """Prompts and completions of `parley export --format sft`."""
    file = path / "train.jsonl" if path.is_dir() else path
    try:
        rows = [from_json(line) for line in file.read_text("utf-8-sig").split("\n") if line.strip()]
        examples = [(_user_text(row["prompt"]), _last_text(row["completion"])) for row in rows]
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror}") from None
    except NOT_A_ROW:
        raise ConfigError(f"{file}: not rows of prompt and completion as TRL reads them (docs/datasets.md)") from None
    if not examples:
        raise ConfigError(f"{file}: the file has no rows")
    return examples


def message(role: str, content: str) -> dict[str, str]:
    """A message in the format of TRL and chat templates."""
    return {"role": role, "content": content}


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write rows as JSON lines, under a temporary name until the file is complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with new_file(path, Path.is_file) as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
