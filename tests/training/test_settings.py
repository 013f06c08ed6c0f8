"""Settings of `parley train`: how they are given, what is refused before anything is trained, and `--help-all`."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from parley.agents import ConfigError, ParleyError
from parley.agents.models.catalogue import catalogue
from parley.cli.flags import CONFIGS, read_config
from parley.cli.train import Train
from parley.judging.stardtox.study import StardtoxConfig
from parley.training.config import TrainConfig, tables_of
from parley.training.estimate import Data, _known, estimates, shape_of, trained
from parley.training.folders import (
    MANIFEST,
    StageFolder,
    is_complete,
    newest_checkpoint,
    read_manifest,
    sign_checkpoint,
)
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


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('data = "x"\n[rl]\nalgoritm = "rloo"', "unknown key 'rl.algoritm' (did you mean 'rl.algorithm'?)"),
        ('data = "x"\nbasis = "y"', "unknown key 'basis' (did you mean 'base'?)"),
        ('data = "x"\nrl = 3', "rl is a table: [rl] in a config, --set rl.KEY=VALUE on the command line"),
    ],
)
def test_a_wrong_config_gives_one_line_before_anything_is_trained(
    place: Path, parley: Callable[..., Any], text: str, complaint: str
) -> None:
    """Wrong settings of the command line are rows of tests/parley/bad_commands.txt."""
    (place / "rldf.toml").write_text(text)
    result = parley("train", "all", "--config", "rldf.toml")
    assert (result.status, len(result.complaints)) == (2, 1)
    assert complaint in result.complaints[0]
    assert not (place / "trained").exists()


def test_an_evaluation_needs_a_trained_model(place: Path, parley: Callable[..., Any], planted: Any) -> None:
    settings = ("--set", f"data={planted(100)}", "--set", "min_pairs=76", "--set", 'evaluate.judges=["sim/judge"]')
    result = parley("train", "evaluate", *settings)
    assert (result.status, len(result.complaints)) == (2, 1)
    assert "there is no finished model at trained/sft: run `parley train sft`" in result.complaints[0]


def test_a_model_that_needs_its_own_code_is_refused(place: Path) -> None:
    pytest.importorskip("transformers")
    from parley.training.base_model import refuse_remote_code

    config = place / "config.json"
    config.write_text('{"model_type": "own_kind", "auto_map": {"AutoConfig": "configuration.OwnConfig"}}')
    with pytest.raises(ConfigError, match="needs Python code from its own repository"):
        refuse_remote_code(str(place))
    config.write_text('{"model_type": "llama", "auto_map": {"AutoConfig": "configuration.OwnConfig"}}')
    refuse_remote_code(str(place))  # transformers has its own code for it


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


# Results and checkpoints


def stage(out: Path, **more: object) -> StageFolder:
    config = TrainConfig.model_validate({"data": "pairs", "out": str(out), **more})
    return StageFolder(out / "sft", {**stage_settings(config, find_stage("sft")), "data": "digest"})


def checkpoint(parent: Path, number: int, *, signed: bool) -> Path:
    folder = parent / f"checkpoint-{number}"
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(b"weights" * number)
    if signed:
        sign_checkpoint(folder)
    return folder


def test_the_newest_complete_checkpoint_is_used_and_others_are_removed(tmp_path: Path) -> None:
    complete = checkpoint(tmp_path, 20, signed=True)
    unsigned = checkpoint(tmp_path, 100, signed=False)
    cut = checkpoint(tmp_path, 60, signed=True)
    (cut / "model.safetensors").write_bytes(b"weig")
    assert (is_complete(complete), is_complete(unsigned), is_complete(cut)) == (True, False, False)
    assert newest_checkpoint(tmp_path) == complete
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint-20"]


def test_a_stage_that_failed_while_saving_is_not_done(tmp_path: Path) -> None:
    sft = stage(tmp_path)
    sft.begin()

    def no_space(part: Path) -> None:
        part.mkdir()
        (part / "model.safetensors").write_bytes(b"half")
        raise OSError(28, "No space left on device")

    with pytest.raises(ParleyError, match=r"sft cannot be written: No space left on device"):
        sft.finish(no_space, {})
    assert not sft.is_done()
    assert not sft.folder.exists()
    assert sft.checkpoints.is_dir(), "its checkpoints stay"
    sft.finish(lambda part: part.mkdir(exist_ok=True), {"steps": 3})
    assert sft.is_done()
    assert not sft.checkpoints.exists()
    assert (read_manifest(sft.folder) or {})["steps"] == 3


def test_other_settings_are_refused_by_name(tmp_path: Path) -> None:
    sft = stage(tmp_path)
    sft.begin()
    other = stage(tmp_path, sft={"learning_rate": 1e-3})
    with pytest.raises(ConfigError, match=r"sft.learning_rate was 2e-05, not 0.001"):
        other.begin()
    sft.finish(lambda part: part.mkdir(), {})
    with pytest.raises(ConfigError, match=r"was made with other settings"):
        other.is_done()
    faster = stage(tmp_path, per_device_train_batch_size=4, save_steps=7)
    assert faster.is_done(), "settings of speed change no result"
    assert json.loads((sft.folder / MANIFEST).read_text())["settings"]["data"] == "digest"


# Memory and time before training


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


def test_a_dry_run_counts_the_pairs_that_are_there_and_needs_a_known_shape(
    parley: Callable[..., Any], place: Path, planted: Callable[..., Path]
) -> None:
    answer = parley("train", "reward", "--set", f"data={planted(200)}", "--dry-run", "--json").json
    assert 100 <= answer["data"]["pairs"] < 200, "those of the training split"
    assert answer["stages"][0]["updates"] == -(-answer["data"]["pairs"] // 32)
    assert not answer["data"]["assumed"]
    (place / "config.json").write_text('{"hidden_size": 8}')
    unknown = parley("train", "all", "--set", "data=x", "--set", f"base={place}", "--dry-run")
    assert (unknown.status, len(unknown.complaints)) == (2, 1)
    assert f"the shape of {place} is not known, so nothing" in unknown.complaints[0]
