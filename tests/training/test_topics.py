"""Which topics a policy answers, is watched on and is judged by: more than the pairs have, and never both."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from parley.scenarios import load_topics, normal
from parley.training.config import TrainConfig
from parley.training.pairs import read_pairs
from parley.training.prompts import Topics, read_topics

Planted = Callable[..., Path]


def topics(data: Path, **settings: Any) -> Topics:
    config = TrainConfig.model_validate({"data": str(data), "least_pairs": 4, **settings})
    return read_topics(config, read_pairs(config))


def test_the_shipped_topics_of_the_datas_bias_types_are_split_too(planted: Planted) -> None:
    data = planted(40)
    few, more = topics(data, rl={"topics_from": "debates"}), topics(data)
    assert [len(few.train), len(few.validation), len(few.test)] == [15, 3, 2]
    assert [len(more.train), len(more.validation), len(more.test)] == [15 + 160, 3 + 20, 2 + 20]
    assert set(few.train) <= set(more.train)
    asked = f"What do you think about this? {load_topics('age')[0]}"
    assert asked in (more.train | more.validation | more.test).values(), "asked as the debates' own are"
    assert topics(data) == more, "the same draw again"
    assert set(topics(data, topics=5).train) < set(few.train), "fewer topics are fewer topics"


def test_what_was_debated_keeps_its_split_even_without_a_pair(planted: Planted, tmp_path: Path) -> None:
    data = planted(40)
    spared, shown = load_topics("age")[:2]
    listed = {"train": [shown], "validation": [], "test": [spared]}
    (data / "export.json").write_text(json.dumps({"topics": listed}))
    for chosen in ("debates", "shipped"):
        found = topics(data, rl={"topics_from": chosen})
        assert shown in found.train
        assert spared in found.test


@pytest.mark.parametrize("seed", range(5))
def test_no_topic_is_trained_on_and_held_out(planted: Planted, tmp_path: Path, seed: int) -> None:
    data = planted(40)
    held_out = [json.loads(line)["meta"]["topic"] for line in (data / "test.jsonl").read_text().splitlines()]
    own = tmp_path / "own.txt"
    own.write_text("\n".join([held_out[0].upper(), *(f"Is number {n} a good number?" for n in range(30))]))
    found = topics(data, seed=seed, rl={"topics_from": str(own)})
    train, validation, test = (set(map(normal, part)) for part in (found.train, found.validation, found.test))
    assert not train & (validation | test)
    assert not validation & test
    assert normal(held_out[0]) in test
    assert len(train) == 15 + 24 or len(train) == 15 + 25, "four fifths of 31, one of which was held out before"


def test_what_sft_has_learnt_is_not_held_out(planted: Planted, tmp_path: Path) -> None:
    data, listed = planted(40), load_topics("age")
    rows = [{"prompt": f"What do you think about this? {topic}", "completion": "So."} for topic in listed[:100]]
    (tmp_path / "sft.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = topics(data, sft={"data": str(tmp_path / "sft.jsonl")})
    assert set(listed[:100]) <= set(found.train)
    assert found.test
