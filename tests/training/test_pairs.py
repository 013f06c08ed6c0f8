"""Datasets and topics as training reads them: which are used, which are refused, and that splits share no topic."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from parley.agents import ConfigError
from parley.scenarios import load_topics, normal
from parley.training.config import TrainConfig
from parley.training.pairs import PreferencePair, Side, low_bias, read_pairs, read_sft, subset
from parley.training.prompts import PromptSplits, read_prompts

Planted = Callable[..., Path]


def config(data: Path, **more: object) -> TrainConfig:
    return TrainConfig.model_validate({"data": str(data), "min_pairs": 10, **more})


def test_an_export_is_read_with_its_splits(planted: Planted) -> None:
    pairs = read_pairs(config(planted(100)))
    assert (len(pairs.train), len(pairs.validation), len(pairs.test)) == (76, 16, 8)
    first = pairs.train[0]
    assert first.prompt == "What do you think about this? Are buses here good, case 0?"
    assert first.chosen.score == 1.0
    assert first.chosen.speaker == "Sixty"
    assert "those people" not in first.chosen.text


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\x85"])
def test_a_row_ends_at_a_line_feed_and_at_nothing_else(planted: Planted, mark: str) -> None:
    """Models write line separators, and JSON does not escape them."""
    folder = planted(100)
    before = len(read_pairs(config(folder)).train)
    rows = [json.loads(line) for line in (folder / "train.jsonl").read_text().split("\n") if line]
    rows[3]["chosen"][-1]["content"] = f"One{mark}two."
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    (folder / "train.jsonl").write_text(text, "utf-8")
    assert len(read_pairs(config(folder)).train) == before


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda rows: rows[:3], r"too few pairs to train on: 3 \(min_pairs is 10"),
        (
            lambda rows: [{**rows[0], "rejected": rows[0]["chosen"]}, *rows[1:]],
            r"line 1: chosen and rejected are the s",
        ),
        (lambda rows: [{"text": "?"}, *rows], r"line 1: not a row of chosen and rejected as TRL reads them"),
        (lambda rows: [{**rows[0], "chosen": [{"role": "assistant", "content": " "}]}, *rows], r"line 1: not a row"),
    ],
)
def test_bad_rows_are_named_before_anything_is_loaded(
    planted: Planted, change: Callable[[list[object]], list[object]], complaint: str
) -> None:
    folder = planted(100)
    file = folder / "train.jsonl"
    rows = change([json.loads(line) for line in file.read_text().splitlines()])
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(ConfigError, match=complaint):
        read_pairs(config(folder))


def test_empty_splits_and_topics_that_leak_are_refused(planted: Planted) -> None:
    folder = planted(100)
    (folder / "test.jsonl").write_text((folder / "train.jsonl").read_text())
    with pytest.raises(ConfigError, match=r"38 topics in both train and test"):
        read_pairs(config(folder))
    (folder / "test.jsonl").unlink()
    (folder / "validation.jsonl").unlink()
    with pytest.raises(ConfigError, match=r"no pairs in the split 'validation'"):
        read_pairs(config(folder))
    (folder / "train.jsonl").unlink()
    with pytest.raises(ConfigError, match=r"no train.jsonl: make it with `parley export"):
        read_pairs(config(folder))


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(fewer=st.integers(2, 79), more=st.integers(2, 79), seed=st.integers(0, 50))
def test_a_larger_subset_includes_a_smaller_one(fewer: int, more: int, seed: int) -> None:
    sides = {"chosen": Side("good"), "rejected": Side("bad")}
    pairs = [PreferencePair(id=f"p{n}", prompt="?", **sides, topic=f"topic {n % 20}") for n in range(80)]
    small, large = sorted((fewer, more))
    fewer_ids, more_ids = (
        {pair.id for pair in subset(pairs, config(Path("x"), pairs=count, seed=seed))} for count in (small, large)
    )
    assert fewer_ids <= more_ids
    assert (len(fewer_ids), len(more_ids)) == (small, large)


def test_rounds_topics_and_roles_select_pairs(planted: Planted) -> None:
    folder = planted(100)
    everything = read_pairs(config(folder)).train
    early = read_pairs(config(folder, rounds=2)).train
    assert 0 < len(early) < len(everything)
    assert all(max(pair.chosen.round, pair.rejected.round) <= 2 for pair in early)
    assert len({pair.topic for pair in read_pairs(config(folder, topics=5)).train}) == 5
    two = read_pairs(config(folder, roles=2)).train
    assert {pair.chosen.speaker for pair in two} == {"Sixty", "Twenty"}  # the first two of the bias type `age`


def test_sft_has_the_chosen_answers_without_duplicates_or_its_own_data(planted: Planted, tmp_path: Path) -> None:
    pairs = read_pairs(config(planted(100))).train
    texts = list(low_bias([*pairs, *pairs]))
    assert len(texts) == len(set(texts)) == len({(pair.prompt, pair.chosen.text) for pair in pairs})
    file = tmp_path / "sft.jsonl"
    row = {"prompt": [{"role": "user", "content": "Q"}], "completion": [{"role": "assistant", "content": "A"}]}
    file.write_text(json.dumps(row) + "\n")
    assert read_sft(file) == [("Q", "A")]
    file.write_text('{"prompt": []}\n')
    with pytest.raises(ConfigError, match="not rows of prompt and completion"):
        read_sft(file)


# The topics of RL and evaluation


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
