"""Prompts by split, for RL and the evaluation. They need no pairs, so there are more topics than in the pairs.

A topic's split is that of its pairs, else the one `parley export` gave it (a debate may give no pair), else drawn by
the seed. Topics other than the debated ones come from the shipped lists of the data's bias types, or a file. Held-out
topics are never trained on.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path

from parley.base.errors import ConfigError
from parley.base.files import MANIFEST
from parley.judging.prompts import Prompt
from parley.judging.rldf.answers import CONTINUE, NEUTRAL
from parley.judging.rldf.statements import SPLITS, split_topics
from parley.scenarios import BIASES, load_topics, normal
from parley.training.config import TrainConfig
from parley.training.exported import manifest_of
from parley.training.pairs import SHARES, Pairs, Splits, read_sft

PromptSplits = Splits[dict[str, str]]
"""Prompts by topic, for each split."""


def read_prompts(config: TrainConfig, pairs: Pairs) -> PromptSplits:
    """The prompts of a config, each topic in one split.

    Args:
        config: Its `data`, `topics` and `rl.topics_from` choose the topics.
        pairs: The pairs of the same config, whose topics keep their splits.
    """
    prompts: dict[str, dict[str, str]] = {split: {} for split in SPLITS}
    topics_seen: set[str] = set()

    def add(split: str, topic: str, prompt: str) -> None:
        if normal(topic) not in topics_seen:
            topics_seen.add(normal(topic))
            prompts[split][topic] = prompt

    for split in SPLITS:
        for pair in getattr(pairs, split):
            add(split, pair.topic, pair.prompt)
    # If topics are limited, the others are not trained on, nor held out, since SFT may have seen them.
    limited = config.topics is not None
    sft_prompts = {prompt for prompt, _ in read_sft(Path(config.sft.data))} if config.sft.data else set()
    question, exported = _exported_topics(Path(config.data))
    topics_of = exported | ({} if limited else {"": _further_topics(config, pairs)})
    for split, topics in topics_of.items():
        drawn = split_topics(topics, SHARES, config.seed)
        for topic in topics:
            prompt = (question if split else NEUTRAL)(topic=topic)
            target = split or ("train" if prompt in sft_prompts else drawn[normal(topic)])
            if not (limited and target == "train"):
                add(target, topic, prompt)
    train = list(prompts["train"].items())
    random.Random(config.seed).shuffle(train)
    return Splits(dict(train), prompts["validation"], prompts["test"])


def biases_of(topics: Iterable[str], pairs: Pairs) -> dict[str, str]:
    """The bias type of each topic: of its pairs, else of the shipped list that has it, else "other"."""
    bias_by_topic = {normal(topic): bias for bias in BIASES for topic in load_topics(bias)}
    bias_by_topic |= {normal(pair.topic): pair.bias for split in SPLITS for pair in getattr(pairs, split) if pair.bias}
    return {topic: bias_by_topic.get(normal(topic), "other") for topic in topics}


def _exported_topics(data: Path) -> tuple[Prompt, dict[str, list[str]]]:
    """An export's question, and its topics by split, including topics without pairs; empty without an export."""
    manifest = manifest_of(data)
    if not manifest:
        return NEUTRAL, {}
    try:
        topics = {split: [str(topic) for topic in manifest.get("topics", {}).get(split, [])] for split in SPLITS}
    except (AttributeError, TypeError):
        raise ConfigError(f"{data / MANIFEST}: not a manifest of `parley export`") from None
    return CONTINUE if manifest.get("prompt") == CONTINUE.name else NEUTRAL, topics


def _further_topics(config: TrainConfig, pairs: Pairs) -> list[str]:
    """Topics other than the debated ones."""
    source = config.rl.topics_from
    if source == "debates":
        return []
    if source != "shipped":
        return list(load_topics(source))
    biases = {pair.bias for split in SPLITS for pair in getattr(pairs, split)}
    return [topic for bias in BIASES if bias in biases for topic in load_topics(bias)]
