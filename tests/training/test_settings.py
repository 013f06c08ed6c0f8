"""Settings of `parley train`: how they are given, what is refused before anything is trained, and `--help-all`."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tomli_w

import parley as parley_package
from parley.agents import ConfigError, ParleyError
from parley.cli.flags import read_config
from parley.cli.train import Train
from parley.training.config import TrainConfig, stage_settings, tables_of
from parley.training.evaluation.systems import evaluated_systems
from parley.training.folders import (
    MANIFEST,
    StageFolder,
    is_complete,
    newest_checkpoint,
    read_manifest,
    sign_checkpoint,
)
from parley.training.stages import STAGES, steps


def config(*settings: str, **parsed: Any) -> TrainConfig:
    return Train(**{"stage": "sft", "set": ["data=pairs", *settings], **parsed}).settings()


def test_values_are_read_as_toml_or_as_plain_texts() -> None:
    changed = config(
        "base=hub/model?revision=a=b",
        "rl.beta=1e-3",
        "use_peft=true",
        "rl.algorithm=ppo",
        "eos_token = '<|end|>'",
        'evaluate.judges=["sim/judge", "sim/other"]',
        "evaluate.models.RLDF=vllm/rl",
        "sft={max_steps = 3, batch_size = 8}",
    )
    assert (changed.base, changed.rl.beta, changed.use_peft) == ("hub/model?revision=a=b", 0.001, True)
    assert (changed.rl.algorithm, changed.eos_token) == ("ppo", "<|end|>")
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


def test_a_model_that_another_tool_trained_takes_a_systems_place() -> None:
    chosen = config('evaluate.systems=["Default", "RLDF"]', 'evaluate.models={Default="sim/a", RLDF="hf/dpo"}')
    assert [(each.name, each.key, each.model) for each in evaluated_systems(chosen)] == [
        ("Default", "default", "sim/a"),
        ("RLDF", "rl", "hf/dpo"),
    ]


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
    return StageFolder(out / "sft", {**stage_settings(config, STAGES["sft"]), "data": "digest"})


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
        (part / "model.safetensors").write_bytes(b"half")
        raise OSError(28, "No space left on device")

    with pytest.raises(ParleyError, match=r"sft cannot be written: No space left on device"):
        sft.finish(no_space, {})
    assert not sft.is_done()
    assert not sft.folder.exists()
    assert sft.checkpoints.is_dir(), "its checkpoints stay"
    sft.finish(lambda part: None, {"steps": 3})
    assert sft.is_done()
    assert not sft.checkpoints.exists()
    assert (read_manifest(sft.folder) or {})["steps"] == 3


def test_other_settings_are_refused_by_name(tmp_path: Path) -> None:
    sft = stage(tmp_path)
    sft.begin()
    other = stage(tmp_path, sft={"learning_rate": 1e-3})
    with pytest.raises(ConfigError, match=r"sft.learning_rate was 2e-05, not 0.001"):
        other.begin()
    sft.finish(lambda part: None, {})
    with pytest.raises(ConfigError, match=r"was made with other settings"):
        other.is_done()
    faster = stage(tmp_path, per_device_train_batch_size=4, save_steps=7)
    assert faster.is_done(), "settings of speed change no result"
    assert json.loads((sft.folder / MANIFEST).read_text())["settings"]["data"] == "digest"


@pytest.mark.parametrize("name", ["qwen1.5-7b", "llama2-7b"])
def test_a_shipped_config_has_the_papers_numbers(name: str) -> None:
    """Section 4.1: batches of 32 and 4, learning rates 3e-5 and 5e-6, 2,048 tokens, one epoch, three repeats."""
    config = TrainConfig.model_validate(read_config(Path(name)))
    assert (config.reward.batch_size, config.reward.learning_rate, config.reward.num_train_epochs) == (32, 3e-5, 1)
    assert (config.rl.batch_size, config.rl.learning_rate, config.rl.num_train_epochs) == (4, 5e-6, 1)
    assert (config.max_length, config.seeds) == (2048, 3)
    assert steps("all", config) == ["sft", "reward", "rl", "rlaif", "evaluate"]
    assert config.min_pairs <= 452, "the training pairs of a real model's 5 x 40 topics"


def test_a_dry_run_needs_neither_pairs_nor_torch(parley: Callable[..., Any], place: Path) -> None:
    shown = parley("train", "all", "--config", "qwen1.5-7b", "--dry-run")
    assert "pairs: no pairs yet" in shown.out
    assert "trained/seed-2/rl: to do" in shown.out
    assert "[reward] num_train_epochs 1.0, batch_size 32, learning_rate 3e-05" in shown.out
    assert not (place / "trained").exists()


def test_a_dry_run_says_what_is_finished_and_what_would_be_done(
    parley: Callable[..., Any], place: Path, planted: Callable[..., Path]
) -> None:
    sft = stage(place / "trained")
    sft.begin()
    settings = ["--set", f"data={planted(200)}", "--set", "rlaif.labeller=sim/any", "--dry-run", "--json"]
    begun = parley("train", "all", *settings).json
    assert [(row["step"], row["state"]) for row in begun["steps"]] == [
        ("sft", "begun"), ("reward", "to do"), ("rl", "to do"), ("rlaif", "to do"),
    ]  # fmt: skip
    assert 100 <= begun["pairs"]["train"] < 200
    sft.finish(lambda part: None, {})
    assert parley("train", "sft", *settings).json["steps"][0]["state"] == "finished"
    levels = parley("train", "ablate", *settings, "--set", "ablate.pairs=[60, 120]").json["steps"]
    assert [row["folder"] for row in levels if row["step"] == "rl"] == [
        "trained/ablate/pairs-60/rl", "trained/ablate/pairs-120/rl",
    ]  # fmt: skip


def test_training_from_python_does_what_the_command_does(parley: Callable[..., Any], place: Path, planted: Any) -> None:
    """The evaluation of a baseline needs no trainer."""
    evaluation = {"systems": ["Default"], "topics": 4, "judges": ["sim/judge"], "models": {"Default": "sim/any"}}
    given = {"data": str(planted(100)), "min_pairs": 76, "evaluate": evaluation, "out": "python"}
    results = parley_package.train(given, "evaluate")
    (place / "rldf.toml").write_text(tomli_w.dumps({**given, "out": "command"}))
    printed = parley("train", "evaluate", "--config", "rldf.toml", "--quiet", "--json").json
    assert json.loads(json.dumps(results["evaluate"])) == printed["evaluate"]
    assert [path.name for path in (place / "python").iterdir()] == [path.name for path in (place / "command").iterdir()]
    with pytest.raises(ConfigError, match="unknown training stage 'evaluates'; did you mean 'evaluate'"):
        parley_package.train(given, "evaluates")
    with pytest.raises(ConfigError, match="betta"):
        parley_package.train({"data": "pairs", "rl": {"betta": 1}})
