"""Memory and time before training: `parley train … --dry-run`, and the shipped configs. Needs no torch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from parley.agents.models.catalogue import catalogue
from parley.cli.flags import CONFIGS, read_config
from parley.judging.stardtox.study import StardtoxConfig
from parley.training.config import TrainConfig
from parley.training.estimate import Data, _known, estimates, shape_of, trained


def test_parameters_follow_from_the_shape() -> None:
    """The numbers that transformers counts; Qwen's biases are left out."""
    assert shape_of("local/smollm2").parameters == 134_515_008
    assert shape_of("meta-llama/Llama-2-7b-chat-hf").parameters == 6_738_415_616
    assert shape_of("Qwen/Qwen1.5-7B-Chat").parameters == 7_721_324_544 - 393_216
    assert shape_of("local/qwen2.5-coder-1.5b").parameters == 1_543_714_304 - 57_344
    assert {f"local/{name}" for name in catalogue()} <= _known().keys()
    lora = TrainConfig(data="", use_peft=True)  # r = 8 on q and v: 8 · (576 + 576) + 8 · (576 + 192), 30 times
    assert trained(lora, shape_of("local/smollm2")) == 30 * 8 * (1152 + 768)


def test_estimates_are_near_what_a_gpu_took() -> None:
    """benchmarks/README.md, `Training that is killed`: SmolLM2, texts of at most 94 + 32 tokens with the template."""
    config = TrainConfig.model_validate(
        {
            "data": "",
            "max_length": 192,
            "sft": {"batch_size": 32},
            "reward": {"batch_size": 32},
            "rl": {"batch_size": 8, "max_steps": 64, "updates_per_generation": 4, "max_completion_length": 32},
        }
    )
    data = Data(pairs=1792, statements=1792, prompts=907, mean=94, longest=126, prompt=94)
    found = {each.stage: each for each in estimates(config, ("sft", "reward", "rl"), data)}
    assert [found[name].updates for name in ("sft", "reward", "rl")] == [56, 56, 64]
    for name, gib, seconds in (("sft", 5.7, 17.0), ("reward", 9.3, 14.8), ("rl", 6.5, 45.4)):
        assert gib < found[name].memory_gib < 1.12 * gib, name
        assert 0.7 * seconds < found[name].seconds < 1.3 * seconds, name


@pytest.mark.parametrize("name", ["qwen1.5-7b", "llama2-7b"])
def test_a_shipped_config_has_the_papers_numbers(name: str) -> None:
    """Section 4.1: batches of 32 and 4, learning rates 3e-5 and 5e-6, 2,048 tokens, one epoch, three repeats."""
    config = TrainConfig.model_validate(read_config(Path(name)))
    assert (config.reward.batch_size, config.reward.learning_rate, config.reward.num_train_epochs) == (32, 3e-5, 1)
    assert (config.rl.batch_size, config.rl.learning_rate, config.rl.num_train_epochs) == (4, 5e-6, 1)
    assert (config.max_length, config.min_pairs, config.seeds) == (2048, 5000, 3)


def test_gpt2_in_four_sizes_is_a_config_of_stardtox() -> None:
    config = StardtoxConfig.model_validate(read_config(Path("self-debias-gpt2")))
    assert (len(config.model), config.method, config.prompts, config.completions) == (4, ["self-debias-gen"], 100, 25)
    assert len(list(CONFIGS.glob("*.toml"))) == 3, "a new config needs a test"


def test_a_dry_run_needs_neither_pairs_nor_torch(parley: Callable[..., Any], place: Path) -> None:
    shown = parley("train", "all", "--config", "qwen1.5-7b", "--dry-run").out
    assert "7,720,931,328; trained 4,194,304 (LoRA adapters)" in shown
    assert "(assumed: 'pairs' is not there yet)" in shown
    full = parley("train", "rl", "--config", "qwen1.5-7b", "--set", "use_peft=false", "--dry-run", "--json").json
    assert full["stages"][0]["memory_gib"] > 141, "in full, RL does not fit on one H200"
    assert not (place / "trained").exists()


def test_a_dry_run_counts_the_pairs_that_are_there(parley: Callable[..., Any], planted: Callable[..., Path]) -> None:
    answer = parley("train", "reward", "--set", f"data={planted(200)}", "--dry-run", "--json").json
    assert 100 <= answer["data"]["pairs"] < 200, "those of the training split"
    assert answer["stages"][0]["updates"] == -(-answer["data"]["pairs"] // 32)
    assert not answer["data"]["assumed"]


@pytest.mark.parametrize(
    ("command", "line"),
    [
        (("evaluate", "--config", "qwen1.5-7b"), "--dry-run estimates all, sft, reward, rl; not evaluate"),
        (
            ("all", "--config", "qwen2"),
            "qwen2: No such file or directory (shipped configs: llama2-7b, qwen1.5-7b, self",
        ),
        (("all", "--set", "data=x", "--set", "base=folder"), "the shape of folder is not known, so nothing"),
    ],
)
def test_what_cannot_be_estimated_gives_one_line(
    parley: Callable[..., Any], place: Path, command: tuple[str, ...], line: str
) -> None:
    (place / "folder").mkdir()
    (place / "folder" / "config.json").write_text('{"hidden_size": 8}')
    result = parley("train", *command, "--dry-run")
    assert result.status == 2
    assert len(result.complaints) == 1
    assert line in result.complaints[0]
