"""The stages in order. Finished ones are skipped, an interrupted one is resumed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from parley.base.errors import ConfigError
from parley.training import device
from parley.training.config import TrainConfig
from parley.training.context import TrainingContext
from parley.training.folders import read_manifest
from parley.training.stage_run import StageRun
from parley.training.stages import Stage


def run_stages(
    config: TrainConfig,
    stages: Sequence[Stage],
    report: Callable[[str], None] = lambda line: None,
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
    for stage in stages:
        stage.check(getattr(config, stage.name))
    making = [stage for stage in stages if stage.makes_data]
    made = {
        stage.name: dict(
            device.in_main_process(partial(stage.train, config, getattr(config, stage.name), report)) or {}
        )
        for stage in making
    }
    if len(made) == len(stages):
        return made
    context = TrainingContext.open(config, report)
    if why := context.why_no_gguf():
        if will_evaluate and config.inference_backend == "local":
            raise ConfigError(
                f"the evaluation needs model.gguf, which cannot be written: {why} "
                "(inference_backend = 'hf' does not need it)"
            )
        if not config.use_peft:
            report(f"no model.gguf will be written, so local/{config.out}/… will not run: {why}")
    return {**made, **{stage.name: _run(context, stage) for stage in stages if not stage.makes_data}}


def _run(context: TrainingContext, stage: Stage) -> dict[str, Any]:
    name, out = stage.name, context.config.out
    if context.folder(stage).is_done():
        context.require_same_eos(Path(out) / name)
        context.report(f"{name}: already done")
    else:
        context.report(f"{name}: started")
        run = StageRun(context, stage)
        run.save(stage.train(context, getattr(context.config, name), run))
    stage.done(context)
    manifest = read_manifest(Path(out) / name) or {}
    if "no_gguf" in manifest:
        context.report(f"{name}: no model.gguf, so local/{out}/{name} does not run: {manifest['no_gguf']}")
    return manifest
