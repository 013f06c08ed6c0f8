"""Settings of `parley train`: how they are given, what is refused before anything is trained, and `--help-all`."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from parley.agents import ConfigError
from parley.cli.train import Train
from parley.training.base_model import base_folder
from parley.training.config import RlSettings, TrainConfig, tables_of
from parley.training.stage_registry import find_stage
from parley.training.stages import stage_settings


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


TABLE = "rl is a table: [rl] in a config, --set rl.KEY=VALUE on the command line"
NO_VLLM = "rl.use_vllm needs vLLM: pip install vllm (without it, set rl.use_vllm = false)"


@pytest.mark.parametrize(
    ("text", "setting", "complaint"),
    [
        ("", "seed=1", "name the pairs to train on: --set data=FOLDER (of `parley export RUN --format trl`)"),
        ("", "data=nowhere", "there is no dataset at nowhere"),
        ('data = "x"\n[rl]\nalgoritm = "rloo"', "seed=1", "unknown key 'rl.algoritm' (did you mean 'rl.algorithm'?)"),
        ('data = "x"\nbasis = "y"', "seed=1", "unknown key 'basis' (did you mean 'base'?)"),
        ('data = "x"\n[rl]\ntemperature = 0', "seed=1", "rl.temperature must be above 0, got 0"),
        ('data = "x"\nrl = 3', "seed=1", TABLE),
        ("", "rl=3", TABLE),
        ("", "beta=1", "unknown key 'beta' (did you mean 'rl.beta'?)"),
        ("", "rll.beta=1", "unknown key 'rll.beta' (did you mean 'rl.beta'?)"),
        ("", "xyzxyz=1", "unknown key 'xyzxyz' (`parley train --help-all` lists all keys)"),
        ('data = "x"', "rl.beta=much", "rl.beta must be a number, got 'much'"),
        ('data = "x"', "evaluate.judges=sim/judge", "evaluate.judges must be a valid list, got 'sim/judge'"),
        ('data = "x"', "data.x=3", "--set data.x=3: data is not a table"),
        ("", "seed", "--set seed: expected KEY=VALUE, such as rl.beta=0.1"),
        ("", ".seed=1", "--set .seed=1: expected KEY=VALUE, such as rl.beta=0.1"),
    ],
)
def test_a_wrong_setting_gives_one_line_before_anything_is_trained(
    place: Path, parley: Callable[..., Any], text: str, setting: str, complaint: str
) -> None:
    (place / "rldf.toml").write_text(text)
    result = parley("train", "all", "--config", "rldf.toml", "--set", setting)
    assert (result.status, len(result.complaints)) == (2, 1)
    assert complaint in result.complaints[0]
    assert not (place / "trained").exists()


def test_stages_that_need_something_first_say_so(place: Path, parley: Callable[..., Any], planted: Any) -> None:
    data = f"data={planted(100)}"
    few = parley("train", "sft", "--set", data)
    assert "too few pairs to train on: 76 (min_pairs is 100; the paper asks for 5,000)" in few.complaints[0]
    for stage, setting, complaint in (
        ("evaluate", "seed=1", "nothing to evaluate: set evaluate.bbq"),
        ("rlaif", "seed=1", "RLAIF needs a model that labels pairs: set rlaif.labeller"),
        ("ablate", "seed=1", "nothing to ablate: set ablate.pairs"),
        (
            "evaluate",
            'evaluate.judges=["sim/judge"]',
            "there is no finished model at trained/sft: run `parley train sft`",
        ),
        ("rlaif", "rlaif.labeller=sim/any", "there is no finished sft stage at trained/sft: run `parley train sft`"),
    ):
        result = parley("train", stage, "--set", data, "--set", setting)
        assert (result.status, complaint in result.complaints[0]) == (2, True)


@pytest.mark.skipif(find_spec("trl") is not None, reason="they are installed")
def test_packages_that_are_missing_are_named(place: Path, parley: Callable[..., Any], planted: Any) -> None:
    result = parley("train", "sft", "--set", f"data={planted(200)}")
    needed = "training needs torch, transformers, trl and peft: pip install 'parley-autogen[training]'"
    assert (result.status, needed in result.complaints[0]) == (2, True)


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("local/nowhere/model.gguf", "there is no folder nowhere/model.gguf to train from"),
        ("./empty", "empty is not a transformers model folder: it has no config.json"),
    ],
)
def test_a_base_that_is_not_there(place: Path, name: str, complaint: str) -> None:
    (place / "empty").mkdir()
    with pytest.raises(ConfigError, match=complaint):
        base_folder(name)


def test_a_model_that_needs_its_own_code_is_refused(place: Path) -> None:
    pytest.importorskip("transformers")
    from parley.training.base_model import refuse_remote_code

    config = place / "config.json"
    config.write_text('{"model_type": "own_kind", "auto_map": {"AutoConfig": "configuration.OwnConfig"}}')
    with pytest.raises(ConfigError, match="needs Python code from its own repository"):
        refuse_remote_code(str(place))
    config.write_text('{"model_type": "llama", "auto_map": {"AutoConfig": "configuration.OwnConfig"}}')
    refuse_remote_code(str(place))  # transformers has its own code for it


# vLLM writes RL's completions


def test_trl_is_given_vllm_in_the_same_process_and_another_sampler_gives_another_result() -> None:
    with_vllm = TrainConfig.model_validate({"data": "pairs", "rl": {"use_vllm": True}})
    rl = find_stage("rl")
    assert stage_settings(with_vllm, rl) != stage_settings(TrainConfig(data="pairs"), rl)
    trl = pytest.importorskip("trl")
    from parley.training.rl_trainers import vllm_arguments

    assert vllm_arguments(RlSettings(), 512) == {}
    settings = RlSettings(use_vllm=True, vllm_gpu_memory_utilization=0.5, max_completion_length=64)
    for name in ("RLOOConfig", "GRPOConfig"):
        args = getattr(trl, name)(output_dir="x", use_cpu=True, bf16=False, **vllm_arguments(settings, 512))
        assert (args.use_vllm, args.vllm_mode) == (True, "colocate")
        assert (args.vllm_gpu_memory_utilization, args.vllm_max_model_length) == (0.5, 576)


@pytest.mark.skipif(find_spec("vllm") is not None, reason="vLLM is installed here")
def test_where_vllm_is_missing_one_line_says_so_first(
    place: Path, tiny: Path, planted: Any, parley: Callable[..., Any]
) -> None:
    planted(80)
    needed = ("data=pairs", f"base={tiny}", "min_pairs=4", "rl.use_vllm=true")
    command = ["train", "all", *(part for setting in needed for part in ("--set", setting))]
    refused = parley(*command)
    assert (refused.status, refused.complaints) == (2, [f"parley: {NO_VLLM}"])
    assert not (place / "trained" / "sft").exists(), "before anything is trained"
    other = parley(*command, "--set", "rl.algorithm=dpo")
    assert "rl.use_vllm: dpo does not generate with vLLM; rloo and grpo do" in other.complaints[0]


# All keys


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
