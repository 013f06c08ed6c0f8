"""Results and checkpoints: a half-written one is never taken for a whole one, and other settings never mix."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from parley.agents import ConfigError, ParleyError
from parley.training.config import TrainConfig
from parley.training.stage import (
    MANIFEST,
    Stage,
    is_whole,
    need_room,
    newest_checkpoint,
    read_manifest,
    sign_checkpoint,
)


def stage(out: Path, **more: object) -> Stage:
    return Stage("sft", TrainConfig.model_validate({"data": "pairs", "out": str(out), **more}), "digest")


def checkpoint(steps: Path, number: int, *, signed: bool) -> Path:
    folder = steps / f"checkpoint-{number}"
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(b"weights" * number)
    if signed:
        sign_checkpoint(folder)
    return folder


def test_the_newest_whole_checkpoint_is_taken_and_broken_ones_are_cleared(tmp_path: Path) -> None:
    whole = checkpoint(tmp_path, 20, signed=True)
    unsigned = checkpoint(tmp_path, 100, signed=False)
    cut = checkpoint(tmp_path, 60, signed=True)
    (cut / "model.safetensors").write_bytes(b"weig")
    assert (is_whole(whole), is_whole(unsigned), is_whole(cut)) == (True, False, False)
    assert newest_checkpoint(tmp_path) == whole
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint-20"]


def test_a_stage_that_failed_while_saving_is_not_done(tmp_path: Path) -> None:
    here = stage(tmp_path)
    here.begin()

    def no_space(part: Path) -> None:
        part.mkdir()
        (part / "model.safetensors").write_bytes(b"half")
        raise OSError(28, "No space left on device")

    with pytest.raises(ParleyError, match=r"sft cannot be written: No space left on device"):
        here.finish(no_space, {})
    assert not here.is_done()
    assert not here.folder.exists()
    assert here.steps.is_dir(), "its checkpoints stay"
    here.finish(lambda part: part.mkdir(exist_ok=True), {"steps": 3})
    assert here.is_done()
    assert not here.steps.exists()
    assert (read_manifest(here.folder) or {})["steps"] == 3


def test_a_folder_without_its_manifest_is_not_there(tmp_path: Path) -> None:
    here = stage(tmp_path)
    here.begin()
    here.finish(lambda part: part.mkdir(), {})
    (here.folder / MANIFEST).write_text('{"stage": "sf')
    assert not here.is_done()


def test_what_was_made_with_other_settings_is_refused_by_name(tmp_path: Path) -> None:
    here = stage(tmp_path)
    here.begin()
    other = stage(tmp_path, sft={"learning_rate": 1e-3})
    with pytest.raises(ConfigError, match=r"sft.learning_rate = 2e-05, not 0.001,"):
        other.begin()
    here.finish(lambda part: part.mkdir(), {})
    with pytest.raises(ConfigError, match=r"was made with other settings"):
        other.is_done()
    faster = stage(tmp_path, micro_batch=4, save_every=7)
    assert faster.is_done(), "how fast it goes changes no result"
    assert json.loads((here.folder / MANIFEST).read_text())["settings"]["data"] == "digest"


def test_a_disk_that_is_too_small_is_said_so_first(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"GB free, and training needs about 1000000.0 GB there"):
        need_room(tmp_path, 10**15)
