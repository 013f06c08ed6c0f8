"""The stages by name: ours, those of installed packages, and the user's as file.py:function.

Apart from `stages`, which every stage imports: what names them all cannot be what they are made of.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import create_model

from parley.base.plugins import Registry
from parley.training.config import TrainConfig
from parley.training.stages import Stage

JOBS = {
    "rlaif": "the baseline without debates: a model labels pairs, then reward and rl on them",
    "evaluate": "measure trained systems and baselines: BBQ, and BS, CE and LS on held-out topics",
    "control": "a positive control: train on generated data with a planted bias, and check that the bias falls",
    "merge": "write models that were trained with use_peft as whole models, to OUT/STAGE/merged",
    "ablate": "train and evaluate at each value of the lists in [ablate]",
    "all": "sft, reward and rl (or the config's `stages`), rlaif (if rlaif.labeller is set) and evaluate (if "
    "evaluate.bbq or evaluate.judges is set, or a stage has an evaluation of its own)",
}
"""What `parley train` does besides single stages."""
STAGES = Registry(
    "training stage",
    group="parley.stages",
    shipped={
        "sft": "parley.training.sft:train_sft",
        "reward": "parley.training.reward:train_reward",
        "rl": "parley.training.rl:train_rl",
    },
    members=("train", "table", "depends_on"),
    contract="training/stages.py",
    others=tuple(JOBS),
)


def find_stage(name: str) -> Stage:
    """A stage by its name, or as file.py:function."""
    found: Stage = STAGES.find(name)
    return found


def config_class(names: Iterable[str]) -> type[TrainConfig]:
    """The config's class, with the tables of stages that are not ours and of those that they need."""
    needed = [each for name in names for each in find_stage(name).depends_on()]
    known = TrainConfig.model_fields
    tables: dict[str, Any] = {each.name: (each.table, each.table()) for each in needed if each.name not in known}
    return create_model("TrainConfig", __base__=TrainConfig, **tables) if tables else TrainConfig
