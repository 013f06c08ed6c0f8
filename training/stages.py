"""What a stage of training is, and the settings that its result depends on. `all_stages` has the three of them.

Their modules import torch, transformers and TRL inside functions: `parley train --help` loads them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from parley.training.config import TrainConfig, tables_of

WITHOUT_EFFECT = {
    "out", "seeds", "inference_backend", "save_steps", "per_device_train_batch_size", "rl.allow_weak_reward",
}  # fmt: skip
"""Settings that change where results go, how long they take or whether RL is started, but not the results, rounding
aside."""
Facts = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A stage of training.

    Args:
        name: Its name on the command line, of its table in the config, and of its folder.
        help: What it does, in a line.
        train: Takes a TrainingContext, the stage's settings and a StageRun; trains, and returns what the manifest says
            in addition to settings, updates and seconds.
        summary: The result in words, from the manifest.
        needs: Stages whose results it starts from, the first of them with its weights; their settings are its too.
        prompts: Whether it samples answers to the prompts of topics, so that its result depends on them.
        policy: Whether its result is a model that answers, which can be run and evaluated.
    """

    name: str
    help: str
    train: Callable[..., Facts]
    summary: Callable[[Facts], Sequence[str]]
    needs: tuple[Stage, ...] = ()
    prompts: bool = False
    policy: bool = True


def stage_settings(config: TrainConfig, stage: Stage) -> dict[str, Any]:
    """All settings that a stage's result depends on, as plain values."""
    values = config.model_dump(mode="json")
    tables = {name: values.pop(name) for name in tables_of()}
    for each in (*stage.needs, stage):
        values |= {f"{each.name}.{key}": value for key, value in tables[each.name].items()}
    return {key: value for key, value in values.items() if key not in WITHOUT_EFFECT}
