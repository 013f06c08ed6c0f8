"""`--set KEY=VALUE` and `--help-all` of `parley train`, without torch."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from parley.cli.train import Train
from parley.training.config import TrainConfig, tables_of


def config(*settings: str, **parsed: Any) -> TrainConfig:
    return Train(**{"stage": "sft", "set": ["data=pairs", *settings], **parsed}).settings()


def test_values_are_read_as_toml_or_as_plain_texts() -> None:
    changed = config(
        "base=hub/model?revision=a=b",
        "rl.beta=1e-3",
        "use_peft=true",
        "rl.algorithm=dpo",
        "eos_token = '<|end|>'",
        'evaluate.judges=["sim/judge", "sim/other"]',
        "evaluate.models.RLDF=vllm/rl",
        "sft={max_steps = 3, batch_size = 8}",
    )
    assert (changed.base, changed.rl.beta, changed.use_peft) == ("hub/model?revision=a=b", 0.001, True)
    assert (changed.rl.algorithm, changed.eos_token) == ("dpo", "<|end|>")
    assert changed.evaluate.judges == ["sim/judge", "sim/other"]
    assert changed.evaluate.models == {"RLDF": "vllm/rl"}
    assert (changed.sft.max_steps, changed.sft.batch_size) == (3, 8)


def test_the_command_line_stands_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "rldf.toml"
    file.write_text('data = "mine"\nout = "a"\n[rl]\nbeta = 0.2\nmax_kl = 3.0\n')
    changed = config("rl.beta=0.1", "rl.beta=0.4", config=str(file), out="b")
    assert (changed.data, changed.out, changed.rl.beta, changed.rl.max_kl) == ("pairs", "b", 0.4, 3.0)


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        ("beta=1", "unknown key 'beta' (did you mean 'rl.beta'?)"),
        ("rll.beta=1", "unknown key 'rll.beta' (did you mean 'rl.beta'?)"),
        ("xyzxyz=1", "unknown key 'xyzxyz' (`parley train --help-all` lists all keys)"),
        ("rl.beta=much", "rl.beta must be a number, got 'much'"),
        ("evaluate.judges=sim/judge", "evaluate.judges must be a valid list, got 'sim/judge'"),
        ("rl=3", "rl is a table: [rl] in a config, --set rl.KEY=VALUE on the command line"),
        ("data.x=3", "--set data.x=3: data is not a table"),
        ("seed", "--set seed: expected KEY=VALUE, such as rl.beta=0.1"),
        (".seed=1", "--set .seed=1: expected KEY=VALUE, such as rl.beta=0.1"),
    ],
)
def test_a_wrong_setting_gives_one_line(parley: Callable[..., Any], setting: str, complaint: str) -> None:
    result = parley("train", "sft", "--set", "data=pairs", "--set", setting)
    assert (result.status, result.complaints) == (2, [f"parley: {complaint}"])


def test_all_keys_are_listed_as_a_config_file_with_the_defaults(parley: Callable[..., Any]) -> None:
    result = parley("train", "--help-all")
    assert result.status == 0
    listed = tomllib.loads(result.out)
    assert TrainConfig.model_validate({**listed, "data": "pairs"}) == TrainConfig(data="pairs")
    keys = [name for name in TrainConfig.model_fields if name not in tables_of()]
    keys += [name for table in tables_of().values() for name in table.model_fields]
    lines = [line for line in result.out.splitlines() if " =" in line]
    assert [line.removeprefix("# ").partition(" =")[0] for line in lines] == keys
    assert "beta = 0.05  # number: weight of the KL divergence from the SFT model" in lines
    assert "# max_steps =  # integer: number of updates (overrides num_train_epochs)" in lines


def test_help_names_the_stages_and_where_the_keys_are(parley: Callable[..., Any]) -> None:
    result = parley("train", "sft", "--help")
    assert result.status == 0
    assert "  reward    train the reward model on pairs" in result.out
    assert "docs/training.md explains the keys; --help-all" in result.out
    assert "--rl-" not in result.out
