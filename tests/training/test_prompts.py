"""The topics of RL, probes and evaluation: more than the pairs have, and each in one split."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from parley.scenarios import load_topics, normal
from parley.training.config import TrainConfig
from parley.training.pairs import read_pairs
from parley.training.prompts import PromptSplits, read_prompts

Planted = Callable[..., Path]


def prompts(data: Path, **settings: Any) -> PromptSplits:
    config = TrainConfig.model_validate({"data": str(data), "min_pairs": 4, **settings})
    return read_prompts(config, read_pairs(config))


def test_the_shipped_topics_of_the_datas_bias_types_are_split_too(planted: Planted) -> None:
    data = planted(40)
    few, more = prompts(data, rl={"topics_from": "debates"}), prompts(data)
    assert [len(few.train), len(few.validation), len(few.test)] == [15, 3, 2]
    assert [len(more.train), len(more.validation), len(more.test)] == [15 + 160, 3 + 20, 2 + 20]
    assert set(few.train) <= set(more.train)
    prompt = f"What do you think about this? {load_topics('age')[0]}"
    assert prompt in (more.train | more.validation | more.test).values(), "the same prompt as for debated topics"
    assert prompts(data) == more, "the same draw again"
    assert set(prompts(data, topics=5).train) < set(few.train), "fewer topics are fewer topics"


def test_a_debated_topic_keeps_its_split_without_a_pair(planted: Planted, tmp_path: Path) -> None:
    data = planted(40)
    held_out, trained = load_topics("age")[:2]
    listed = {"train": [trained], "validation": [], "test": [held_out]}
    (data / "export.json").write_text(json.dumps({"topics": listed}))
    for source in ("debates", "shipped"):
        splits = prompts(data, rl={"topics_from": source})
        assert trained in splits.train
        assert held_out in splits.test


@pytest.mark.parametrize("seed", range(5))
def test_no_topic_is_trained_on_and_held_out(planted: Planted, tmp_path: Path, seed: int) -> None:
    data = planted(40)
    held_out = [json.loads(line)["meta"]["topic"] for line in (data / "test.jsonl").read_text().splitlines()]
    own = tmp_path / "own.txt"
    own.write_text("\n".join([held_out[0].upper(), *(f"Is number {n} a good number?" for n in range(30))]))
    splits = prompts(data, seed=seed, rl={"topics_from": str(own)})
    train, validation, test = (set(map(normal, part)) for part in (splits.train, splits.validation, splits.test))
    assert not train & (validation | test)
    assert not validation & test
    assert normal(held_out[0]) in test
    assert len(train) == 15 + 24 or len(train) == 15 + 25, "four fifths of 31, one of which was held out before"


def test_sft_data_are_not_held_out(planted: Planted, tmp_path: Path) -> None:
    data, listed = planted(40), load_topics("age")
    rows = [{"prompt": f"What do you think about this? {topic}", "completion": "So."} for topic in listed[:100]]
    (tmp_path / "sft.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    splits = prompts(data, sft={"data": str(tmp_path / "sft.jsonl")})
    assert set(listed[:100]) <= set(splits.train)
    assert splits.test
