"""A stage's folder: written whole beside its place and then moved there, its manifest last; checkpoints likewise.

    trained/sft/            the model, stage.json, log.jsonl
    trained/sft.steps/      checkpoints while it is trained, gone when it is done

A folder without its manifest is not there, whatever lies in it.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from parley.agents import ConfigError, ParleyError
from parley.training.config import TrainConfig, made_by

MANIFEST = "stage.json"
CHECKPOINT = "whole.json"
LOG = "log.jsonl"


@dataclass(frozen=True, slots=True)
class Stage:
    """One of sft, reward and rl, in its place under the config's folder."""

    name: str
    config: TrainConfig
    digest: str
    """Of the data it is trained on."""

    @property
    def folder(self) -> Path:
        return Path(self.config.out) / self.name

    @property
    def steps(self) -> Path:
        return self.folder.with_name(f"{self.name}.steps")

    @property
    def log(self) -> Path:
        """Written as the stage runs, so that it can be watched; moved into the folder at the end."""
        return self.steps / LOG

    def settings(self) -> dict[str, Any]:
        return {**made_by(self.config, self.name), "data": self.digest}

    def is_done(self) -> bool:
        """Whether the stage's result is there, made with these settings; one made with others is not touched."""
        manifest = read_manifest(self.folder)
        if manifest is None:
            return False
        _same(manifest["settings"], self.settings(), self.folder)
        return True

    def begin(self) -> Path | None:
        """A place for checkpoints; the newest whole one, if the stage was begun before with the same settings."""
        self.steps.mkdir(parents=True, exist_ok=True)
        begun = self.steps / "begun.json"
        if begun.is_file():
            _same(json.loads(begun.read_text("utf-8")), self.settings(), self.steps)
        else:
            _write(begun, self.settings())
        return newest_checkpoint(self.steps)

    def finish(self, save: Callable[[Path], None], facts: Mapping[str, Any], *, main: bool = True) -> None:
        """The result in its place. Every process of a many-device run saves; one of them moves and signs."""
        part = self.folder.with_name(f"{self.name}.part")
        with writing(self.folder):
            if main:
                shutil.rmtree(part, ignore_errors=True)
            save(part)
            if not main:
                return
            if self.log.is_file():
                shutil.copy2(self.log, part / LOG)
            shutil.rmtree(self.folder, ignore_errors=True)
            _write(part / MANIFEST, {"stage": self.name, "settings": self.settings(), **facts})
            part.rename(self.folder)
            shutil.rmtree(self.steps, ignore_errors=True)


def read_manifest(folder: Path) -> dict[str, Any] | None:
    try:
        found = json.loads((folder / MANIFEST).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def add_facts(folder: Path, **facts: Any) -> None:
    """More about a finished stage, found out later."""
    manifest = read_manifest(folder)
    assert manifest is not None, "only a finished stage is added to"
    _write(folder / MANIFEST, {**manifest, **facts})


def _same(made: Mapping[str, Any], asked: Mapping[str, Any], folder: Path) -> None:
    differ = [key for key in {**made, **asked} if made.get(key) != asked.get(key)]
    if differ:
        key = differ[0]
        what = "the data" if key == "data" else f"{key} = {made.get(key)!r}, not {asked.get(key)!r},"
        raise ConfigError(f"{folder} was made with other settings ({what} differs): name another --out, or remove it")


def sign_checkpoint(folder: Path) -> None:
    """The manifest of a checkpoint: every file with its size, written when all of them are."""
    sizes = {str(path.relative_to(folder)): path.stat().st_size for path in sorted(folder.rglob("*")) if path.is_file()}
    _write(folder / CHECKPOINT, sizes)


def is_whole(checkpoint: Path) -> bool:
    try:
        sizes = json.loads((checkpoint / CHECKPOINT).read_text("utf-8"))
        return bool(sizes) and all((checkpoint / name).stat().st_size == size for name, size in sizes.items())
    except (OSError, ValueError):
        return False


def newest_checkpoint(steps: Path) -> Path | None:
    """The last checkpoint that is whole; those that are not are cleared away."""
    found = [(int(path.name.rpartition("-")[2]), path) for path in steps.glob("checkpoint-*")]
    whole = [path for _, path in sorted(found) if is_whole(path)]
    for _, path in found:
        if path not in whole:
            shutil.rmtree(path, ignore_errors=True)
    return whole[-1] if whole else None


@contextmanager
def writing(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ParleyError(f"{target} cannot be written: {error.strerror or error}") from None


def need_room(folder: Path, size: int) -> None:
    """One line before hours of work, if their result would not fit."""
    folder.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free
    if free < size:
        raise ConfigError(f"{folder} has {free / 1e9:.1f} GB free, and training needs about {size / 1e9:.1f} GB there")


def _write(path: Path, value: Mapping[str, Any]) -> None:
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    part.write_text(json.dumps(value, indent=2, ensure_ascii=False), "utf-8")
    part.replace(path)
