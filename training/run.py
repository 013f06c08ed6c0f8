"""The stages in their order; those that are done are left alone, one that was cut short goes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from parley.agents import ConfigError
from parley.training.config import TrainConfig
from parley.training.reward import train_reward
from parley.training.rl import check_algorithm, train_rl
from parley.training.sft import train_sft
from parley.training.stage import read_manifest
from parley.training.trainer import Course

STAGES: dict[str, Callable[[Course], None]] = {"sft": train_sft, "reward": train_reward, "rl": train_rl}


def run_stages(
    config: TrainConfig,
    stages: Sequence[str],
    tell: Callable[[str], None] = lambda line: None,
    *,
    to_evaluate: bool = False,
) -> dict[str, dict[str, Any]]:
    """What each stage's manifest says."""
    course = Course.open(config)
    if why := course.no_gguf():
        if to_evaluate and config.answers == "local":
            raise ConfigError(
                f"an evaluation needs model.gguf, and there would be none: {why} (answers = 'hf' does without)"
            )
        tell(f"no model.gguf will be written, and local/{config.out}/… will not run: {why}")
    if "rl" in stages:
        check_algorithm(config.rl.algorithm)
    found: dict[str, dict[str, Any]] = {}
    for name in stages:
        if course.stage(name).is_done():
            course.need_same_end(Path(config.out) / name)
            tell(f"{name}: done before, left as it is")
        else:
            tell(f"{name}: begun")
            STAGES[name](course)
        if name == "rl":
            _draw(course)
        found[name] = read_manifest(Path(config.out) / name) or {}
        if "no_gguf" in found[name]:
            tell(f"{name}: no model.gguf, so local/{config.out}/{name} does not run: {found[name]['no_gguf']}")
    return found


def _draw(course: Course) -> None:
    from parley.analysis.reporting.figures import save
    from parley.training.callbacks import read_log
    from parley.training.device import is_main
    from parley.training.figures import curves
    from parley.training.stage import LOG

    folder = course.folder("rl")
    if is_main() and not (folder / "curves.svg").is_file():
        save(curves(read_log(folder / LOG), f"{course.config.rl.algorithm} on {course.config.base}"), folder / "curves")
