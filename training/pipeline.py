"""The stages in order. Finished ones are skipped, an interrupted one is resumed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from parley.base.errors import ConfigError
from parley.training import device
from parley.training.config import TrainConfig
from parley.training.context import TrainingContext
from parley.training.evaluation.reward_quality import assess_reward_model
from parley.training.folders import read_manifest
from parley.training.reward import REWARD
from parley.training.rl import RL, check_algorithm
from parley.training.stage_run import StageRun
from parley.training.stages import Stage


def run_stages(
    config: TrainConfig,
    stages: Sequence[Stage],
    report: Callable[[str], None],
    *,
    will_evaluate: bool = False,
) -> dict[str, dict[str, Any]]:
    """Trains, and gives the manifest of each stage.

    Args:
        config: The whole config.
        stages: The stages, in order.
        report: Takes lines about the progress.
        will_evaluate: Whether an evaluation follows, which needs models that can be run.
    """
    if RL in stages:
        check_algorithm(config.rl)
    context = TrainingContext.open(config, report)
    if why := context.why_no_gguf():
        if will_evaluate:
            raise ConfigError(
                f"the evaluation needs model.gguf, which cannot be written: {why} "
                "(inference_backend = 'hf' does not need it)"
            )
        if not config.use_peft:
            report(f"no model.gguf will be written, so local/{config.out}/… will not run: {why}")
    return {stage.name: _run(context, stage) for stage in stages}


def _run(context: TrainingContext, stage: Stage) -> dict[str, Any]:
    name, folder = stage.name, Path(context.config.out) / stage.name
    if context.folder(stage).is_done():
        context.require_same_eos(folder)
        context.report(f"{name}: already done")
    else:
        context.report(f"{name}: started")
        run = StageRun(context, stage)
        run.save(stage.train(context, getattr(context.config, name), run))
    manifest = read_manifest(folder) or {}
    if stage is REWARD and device.is_main() and "verdict" not in manifest:
        assess_reward_model(context)
        manifest = read_manifest(folder) or {}
    if "no_gguf" in manifest:
        context.report(f"{name}: no model.gguf, so local/{folder} does not run: {manifest['no_gguf']}")
    return manifest
