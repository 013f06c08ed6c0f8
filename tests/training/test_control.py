"""The positive control: training on planted labels lowers the planted bias, on shuffled labels it does not."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from parley.training.config import TrainConfig
from parley.training.control import PLANTED, SHUFFLED, compare, kind_of, statement, write_control_data
from parley.training.pairs import read_pairs
from parley.training.repeats import mean_over_seeds

CONFIG = """
base = "{base}"
out = "control"
max_length = 64
sft = {{ learning_rate = 5e-3, batch_size = 16, max_steps = 110 }}
reward = {{ learning_rate = 2e-3, batch_size = 32 }}
control = {{ topics = 80, held_out_topics = 24 }}

[rl]
learning_rate = 2e-3
batch_size = 8
beta = 0.5
temperature = 0.7
max_steps = 10
max_completion_length = 18
probe_prompts = 4
allow_weak_reward = {weak}
"""


def test_the_rule_tells_claims_from_counter_statements() -> None:
    rng = random.Random(1)
    for _ in range(50):
        assert kind_of(statement(rng, biased=True)) == "biased"
        assert kind_of(statement(rng, biased=False)) == "fair"
    assert kind_of("I like buses.") == "neither"


def test_a_fall_must_exceed_the_margin_with_its_interval() -> None:
    texts = {"biased": "they are too slow for it", "fair": "age does not matter"}

    def answers(system: str, biased: int) -> list[dict[str, str]]:
        """Of 40 topics, the first ones get a biased answer."""
        kinds = ["biased"] * biased + ["fair"] * (40 - biased)
        return [{"system": system, "topic": f"t{n}", "text": texts[kind]} for n, kind in enumerate(kinds)]

    frame = pd.DataFrame(answers("SFT", 30) + answers(PLANTED, 4) + answers(SHUFFLED, 19))
    planted, shuffled = compare(frame, margin=0.25)
    assert (planted["biased_before"], planted["biased_after"]) == (0.75, 0.1)
    assert planted["difference"] == pytest.approx(-0.65)
    assert planted["lowered"]
    assert shuffled["difference"] == pytest.approx(-0.275)
    assert shuffled["high"] < 0
    assert not shuffled["lowered"], "a fall of 0.275 that is significant, but not surely more than the margin"


def test_the_data_differ_in_labels_only(tmp_path: Path) -> None:
    config = TrainConfig.model_validate({"data": "x", "control": {"topics": 20, "held_out_topics": 8}, "min_pairs": 2})
    write_control_data(config, tmp_path)
    planted, shuffled = (
        read_pairs(config.model_copy(update={"data": str(tmp_path / name)})) for name in ("planted", "shuffled")
    )
    assert len({pair.topic for pair in planted.train}) == 20
    assert len({pair.topic for pair in planted.test}) == 8
    assert not {pair.topic for pair in planted.train} & {pair.topic for pair in planted.test}
    assert {kind_of(pair.chosen.text) for pair in planted.train} == {"fair"}
    for topic in {pair.topic for pair in shuffled.train}:
        kinds = [kind_of(pair.chosen.text) for pair in shuffled.train if pair.topic == topic]
        assert sorted(kinds) == ["biased", "biased", "fair", "fair"]
    for before, after in zip(planted.train, shuffled.train, strict=True):
        assert {before.chosen.text, before.rejected.text} == {after.chosen.text, after.rejected.text}


def test_means_over_seeds() -> None:
    """SD of 1, 2, 3 is 1 (n − 1 in the denominator)."""
    rows = [{"seed": n, "system": "RLDF", "mean": float(n), "low": n - 1.0, "p": 0.1, "won": n > 1} for n in (1, 2, 3)]
    assert mean_over_seeds(rows, ["system"]) == [
        {"system": "RLDF", "seeds": 3, "mean": 2.0, "mean_sd": 1.0, "low": 1.0, "won": 2}
    ]
    (alone,) = mean_over_seeds(rows[:1], ["system"])
    assert alone["mean_sd"] is None, "one seed has no spread"


def test_bias_falls_with_planted_labels_and_not_with_shuffled_ones(
    place: Path, tiny_for_control: Path, parley: Callable[..., Any]
) -> None:
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
    weak = os.environ.get("CONTROL_ALLOW_WEAK_REWARD", "false")
    (place / "control.toml").write_text(CONFIG.format(base=tiny_for_control, weak=weak))
    seeds = os.environ.get("CONTROL_SEEDS", "1")
    result = parley("train", "control", "--config", "control.toml", "--set", f"seeds={seeds}", "--json")
    assert result.status == 0, result.err
    rows = result.json["control"]["rows"]
    assert len(rows) == 2 * int(seeds)
    for row in rows:
        assert row["biased_before"] > 0.4, "the SFT model has learnt the planted bias"
        assert row["lowered"] == (row["labels"] == PLANTED), row
        assert row["neither_after"] < 0.3, "the bias has not fallen because answers became gibberish"
        refused = weak == "false" and row["labels"] == SHUFFLED
        assert row["rl_refused"] == refused, "nothing can be learnt from shuffled labels"
    assert result.json["control"]["verdict"][-1] == "the positive control passed"
    assert (place / "control" / "seed-0" / "answers.csv").is_file()
