"""A stage's folder: written under a temporary name and then renamed, manifest last; checkpoints likewise.

    trained/sft/            the model, stage.json, log.jsonl
    trained/sft.steps/      checkpoints during training, removed at the end

A folder without a manifest counts as missing.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from parley.base.errors import ConfigError, ParleyError
from parley.base.files import new_file, new_folder, nobodys, refuse
from parley.training.config import TRAINED, TrainConfig

MANIFEST = "stage.json"
CHECKPOINT_MANIFEST = "whole.json"
LOG = "log.jsonl"
BEGUN = "begun.json"
"""File with the settings of an unfinished stage, next to its checkpoints."""


class WeakReward(ParleyError):
    """The reward model ranks pairs of other topics no better than chance, so RL has nothing to follow."""


@dataclass(frozen=True, slots=True)
class StageFolder:
    """A stage's folder, and the folder of its checkpoints.

    Args:
        folder: The folder of the result, named after the stage.
        settings: All that the result depends on: settings by name, and the digest of the data.
    """

    folder: Path
    settings: Mapping[str, Any]

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def checkpoints(self) -> Path:
        return self.folder.with_name(f"{self.name}.steps")

    @property
    def log(self) -> Path:
        """The log, written during training and copied into the folder at the end."""
        return self.checkpoints / LOG

    def is_done(self) -> bool:
        """Whether the stage has a result with these settings; ConfigError if it was trained with others."""
        manifest = read_manifest(self.folder)
        if manifest is None:
            return False
        _refuse_other_settings(manifest["settings"], self.settings, self.folder)
        return True

    def begin(self, *, fresh: bool = False) -> Path | None:
        """Make the folder for checkpoints; returns the newest complete one with these settings, if any.

        Args:
            fresh: Whether to remove earlier checkpoints.
        """
        begun = self.checkpoints / BEGUN
        refuse(self.folder, nobodys, " and is no result of training: choose another --out, or remove it")
        refuse(self.checkpoints, _is_begun, " and has no checkpoints of ours: choose another --out, or remove it")
        if fresh:
            shutil.rmtree(self.checkpoints, ignore_errors=True)
        self.checkpoints.mkdir(parents=True, exist_ok=True)
        for part in self.checkpoints.glob(f".{self.name}.*"):  # left by a process that was killed while saving
            shutil.rmtree(part, ignore_errors=True)
        if begun.is_file():
            _refuse_other_settings(json.loads(begun.read_text("utf-8")), self.settings, self.checkpoints)
        else:
            _write_json(begun, self.settings)
        return newest_checkpoint(self.checkpoints)

    def finish(self, save: Callable[[Path], None], facts: Mapping[str, Any]) -> None:
        """Move the result into place; called in one process.

        Args:
            save: Writes the model into a given folder.
            facts: Entries of the manifest besides the settings.
        """
        with new_folder(self.folder, within=self.checkpoints) as part:
            save(part)
            if self.log.is_file():
                shutil.copy2(self.log, part / LOG)
            _write_json(part / MANIFEST, {"stage": self.name, "settings": dict(self.settings), **facts})
        shutil.rmtree(self.checkpoints, ignore_errors=True)


def _is_begun(checkpoints: Path) -> bool:
    """Whether a folder of checkpoints is ours, or empty."""
    names = {path.name for path in checkpoints.iterdir() if not path.name.startswith(".")}
    return not names or BEGUN in names


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """The manifest of a finished stage, or None."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return manifest if isinstance(manifest, dict) else None


def state_of(folder: Path) -> str:
    """The state of the step with this folder: finished, begun or to do."""
    if read_manifest(folder) is not None or (folder / "report.json").is_file():
        return "finished"
    return "begun" if folder.exists() or folder.with_name(f"{folder.name}.steps").exists() else "to do"


def system_folders(config: TrainConfig) -> dict[str, Path]:
    """The folder of each trained system, finished or not."""
    folders = {name: Path(config.out) / folder for name, folder in TRAINED.items()}
    return {**folders, "SFT": Path(config.sft_model_path or folders["SFT"])}


def add_facts(folder: Path, **facts: Any) -> None:
    """Add entries to the manifest of a finished stage."""
    manifest = read_manifest(folder)
    assert manifest is not None, "facts are added to finished stages only"
    _write_json(folder / MANIFEST, {**manifest, **facts})


def _refuse_other_settings(stored: Mapping[str, Any], current: Mapping[str, Any], folder: Path) -> None:
    differing = [key for key in {**stored, **current} if stored.get(key) != current.get(key)]
    if differing:
        key = differing[0]
        what = "the data differ" if key == "data" else f"{key} was {stored.get(key)!r}, not {current.get(key)!r}"
        raise ConfigError(f"{folder} was made with other settings ({what}): choose another --out, or remove it")


def sign_checkpoint(folder: Path) -> None:
    """Write a checkpoint's manifest, with every file and its size, once all files are written."""
    sizes = {str(path.relative_to(folder)): path.stat().st_size for path in sorted(folder.rglob("*")) if path.is_file()}
    _write_json(folder / CHECKPOINT_MANIFEST, sizes)


def is_complete(checkpoint: Path) -> bool:
    """Whether every file that the checkpoint's manifest lists is there with its size."""
    try:
        sizes = json.loads((checkpoint / CHECKPOINT_MANIFEST).read_text("utf-8"))
        return bool(sizes) and all((checkpoint / name).stat().st_size == size for name, size in sizes.items())
    except (OSError, ValueError):
        return False


def checkpoint_step(checkpoint: Path) -> int:
    """The number of updates after which a checkpoint was saved, from its name."""
    return int(checkpoint.name.rpartition("-")[2])


def newest_checkpoint(folder: Path) -> Path | None:
    """The newest complete checkpoint; incomplete ones are removed."""
    complete = []
    for checkpoint in sorted(folder.glob("checkpoint-*"), key=checkpoint_step):
        if is_complete(checkpoint):
            complete.append(checkpoint)
        else:
            shutil.rmtree(checkpoint, ignore_errors=True)
    return complete[-1] if complete else None


def require_free_space(folder: Path, size: int) -> None:
    """ConfigError if the result of training would not fit on the disk."""
    folder.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free
    if free < size:
        raise ConfigError(f"{folder} has {free / 1e9:.1f} GB free, but training needs about {size / 1e9:.1f} GB")


def _write_json(path: Path, value: Mapping[str, Any]) -> None:
    with new_file(path, Path.is_file) as file:
        json.dump(value, file, indent=2, ensure_ascii=False)
