"""The stages, and what else `parley train` does. Apart from `stages`, which every stage imports."""

from __future__ import annotations

from collections.abc import Iterator

from parley.training.config import TRAINED, TrainConfig, seed_configs
from parley.training.repeats import ablation_levels
from parley.training.reward import REWARD
from parley.training.rl import RL
from parley.training.sft import SFT

STAGES = {stage.name: stage for stage in (SFT, REWARD, RL)}
JOBS = {
    "rlaif": "the baseline without debates: a model labels pairs, then reward and rl on them",
    "evaluate": "measure trained systems and baselines: BBQ, and BS, CE and LS on held-out topics",
    "merge": "write models that were trained with use_peft as whole models, to OUT/STAGE/merged",
    "ablate": "train and evaluate at each value of the lists in [ablate]",
    "all": "sft, reward and rl, rlaif (if rlaif.labeller is set) and evaluate (if evaluate.bbq or evaluate.judges is "
    "set)",
}
"""What `parley train` does besides single stages."""

STEP_FOLDERS = {"rlaif": TRAINED["RLAIF"], "merge": "*/merged"}
"""Where the result of a step is, if not in the folder of its name."""


def steps(name: str, config: TrainConfig) -> list[str]:
    """The stages and jobs that `parley train NAME` does once, in order.

    Args:
        name: A stage or a job.
        config: Says what `all` is.
    """
    if name != "all":
        return [name]
    return [
        *(["sft"] if config.sft_model_path is None else []),
        "reward",
        "rl",
        *(["rlaif"] if config.rlaif.labeller else []),
        *(["evaluate"] if config.evaluate.bbq is not None or config.evaluate.judges else []),
    ]


def plan(name: str, config: TrainConfig) -> Iterator[tuple[str, TrainConfig]]:
    """Every step that `parley train NAME` does, with its config: once per seed, and per level of an ablation."""
    if config.seeds > 1:
        for of_seed in seed_configs(config):
            yield from plan(name, of_seed)
    elif name == "ablate":
        for level in ablation_levels(config):
            yield from plan("all", level.config)
    else:
        for step in steps(name, config):
            yield step, config
