"""The stages in order. Finished ones are skipped, an interrupted one is resumed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from parley.analysis.reporting.figures import save
from parley.base.errors import ConfigError
from parley.training.callbacks import read_log
from parley.training.config import TrainConfig
from parley.training.context import TrainingContext
from parley.training.device import is_main
from parley.training.figures import training_curves
from parley.training.rl import check_rl, train_rl
from parley.training.stage import LOG, read_manifest
from parley.training.supervised import train_reward, train_sft

STAGES: dict[str, Callable[[TrainingContext], None]] = {"sft": train_sft, "reward": train_reward, "rl": train_rl}


def run_stages(
    config: TrainConfig,
    stages: Sequence[str],
    report: Callable[[str], None] = lambda line: None,
    *,
    will_evaluate: bool = False,
) -> dict[str, dict[str, Any]]:
    """Trains, and gives the manifest of each stage.

    Args:
        config: The whole config.
        stages: Names of `STAGES`, in order.
        report: Takes lines about the progress.
        will_evaluate: Whether an evaluation follows, which needs models that can be run.
    """
    context = TrainingContext.open(config, report)
    if why := context.why_no_gguf():
        if will_evaluate and config.inference_backend == "local":
            raise ConfigError(
                f"the evaluation needs model.gguf, which cannot be written: {why} "
                "(inference_backend = 'hf' does not need it)"
            )
        if not config.use_peft:
            report(f"no model.gguf will be written, so local/{config.out}/… will not run: {why}")
    if "rl" in stages:
        check_rl(config.rl)
    manifests: dict[str, dict[str, Any]] = {}
    for name in stages:
        if context.stage(name).is_done():
            context.require_same_eos(Path(config.out) / name)
            report(f"{name}: already done")
        else:
            report(f"{name}: started")
            STAGES[name](context)
        if name == "rl":
            _draw_curves(context)
        manifests[name] = read_manifest(Path(config.out) / name) or {}
        if "no_gguf" in manifests[name]:
            report(f"{name}: no model.gguf, so local/{config.out}/{name} does not run: {manifests[name]['no_gguf']}")
    return manifests


def _draw_curves(context: TrainingContext) -> None:
    folder, config = context.finished_folder("rl"), context.config
    if is_main() and not (folder / "curves.svg").is_file():
        figure = training_curves(read_log(folder / LOG), f"{config.rl.algorithm} on {config.base}")
        save(figure, folder / "curves")
