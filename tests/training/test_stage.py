"""Results and checkpoints: an incomplete one is never used, and settings are never mixed."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from parley.agents import ConfigError, ParleyError
from parley.training.config import TrainConfig
from parley.training.folders import (
    MANIFEST,
    StageFolder,
    is_complete,
    newest_checkpoint,
    read_manifest,
    require_free_space,
    sign_checkpoint,
)
from parley.training.stage_registry import find_stage
from parley.training.stages import stage_settings


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


def test_a_folder_without_its_manifest_is_not_done(tmp_path: Path) -> None:
    sft = stage(tmp_path)
    sft.begin()
    sft.finish(lambda part: part.mkdir(), {})
    (sft.folder / MANIFEST).write_text('{"stage": "sf')
    assert not sft.is_done()


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


def test_a_disk_that_is_too_small_is_refused_first(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"GB free, but training needs about 1000000.0 GB"):
        require_free_space(tmp_path, 10**15)


def test_progress_goes_where_the_command_wants_it() -> None:
    """With --quiet, nowhere."""
    pytest.importorskip("transformers")
    from parley.training.callbacks import TrainingProgress

    lines: list[str] = []
    progress = TrainingProgress("sft", lines.append)
    for step in (1, 2, 9):
        state = SimpleNamespace(global_step=step, max_steps=20, is_world_process_zero=True)
        progress.on_log(None, state, None, logs={"loss": 1.0})
    assert lines == ["sft 1/20 · loss 1", "sft 2/20 · loss 1", "sft 9/20 · loss 1"]
