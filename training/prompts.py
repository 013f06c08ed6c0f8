"""Topics to answer, by split: reinforcement learning and the evaluation need no pairs, and so have more than pairs do.

A topic's split is the one its pairs have, else the one `parley export` gave it (a debate may give no pair), else a draw
by the seed: the shipped lists of the data's bias types, or a file. What is held out is never trained on.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from pathlib import Path

from parley.agents import ConfigError
from parley.judging.rldf.answers import NEUTRAL
from parley.judging.rldf.splits import SPLITS, split_topics
from parley.scenarios import BIASES, load_topics, normal
from parley.training.config import TrainConfig
from parley.training.pairs import Pairs, read_sft

MANIFEST = "export.json"


@dataclass(frozen=True, slots=True)
class Topics:
    """Prompts by topic, for each split."""

    train: dict[str, str]
    validation: dict[str, str]
    test: dict[str, str]

    def held_out(self) -> dict[str, str]:
        return self.test or self.validation

    def probes(self) -> dict[str, str]:
        """What RL is watched on while it runs: validation, so that test stays untouched."""
        return self.validation or self.test


def read_topics(config: TrainConfig, pairs: Pairs) -> Topics:
    found: dict[str, dict[str, str]] = {split: {} for split in SPLITS}
    known: set[str] = set()

    def add(split: str, topic: str, prompt: str) -> None:
        if normal(topic) not in known:
            known.add(normal(topic))
            found[split][topic] = prompt

    for split in SPLITS:
        for pair in getattr(pairs, split):
            add(split, pair.topic, pair.prompt)
    # Fewer topics were asked for: others would undo it. They are held out nowhere either, since SFT may know them.
    closed = config.topics is not None
    learnt = {prompt for prompt, _ in read_sft(Path(config.sft.data))} if config.sft.data else set()
    for split, listed in (_debated(Path(config.data)) | ({} if closed else {"": _listed(config, pairs)})).items():
        drawn = split_topics(listed, config.splits, config.seed)
        for topic in listed:
            prompt = NEUTRAL(topic=topic)
            place = split or ("train" if prompt in learnt else drawn[normal(topic)])
            if not (closed and place == "train"):
                add(place, topic, prompt)
    mixed = list(found["train"].items())
    random.Random(config.seed).shuffle(mixed)
    return Topics(dict(mixed), found["validation"], found["test"])


def _debated(data: Path) -> dict[str, list[str]]:
    """The topics an export was made from, by split; none where the data is something else."""
    try:
        listed = json.loads((data / MANIFEST).read_text("utf-8")).get("topics", {})
        return {split: [str(topic) for topic in listed.get(split, [])] for split in SPLITS}
    except OSError:
        return {}
    except (ValueError, AttributeError):
        raise ConfigError(f"{data / MANIFEST}: not what `parley export` writes") from None


def _listed(config: TrainConfig, pairs: Pairs) -> list[str]:
    """Topics beside the dataset's own."""
    chosen = config.rl.topics_from
    if chosen == "debates":
        return []
    if chosen != "shipped":
        return list(load_topics(chosen))
    biases = {pair.bias for split in SPLITS for pair in getattr(pairs, split)}
    return [topic for bias in BIASES if bias in biases for topic in load_topics(bias)]
