"""The stages of training (fine-tuning, the reward model, reinforcement learning), and the other jobs of `parley train`.

torch, transformers and TRL are imported inside functions: `parley train --help` loads this module.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parley.base.errors import ConfigError, ParleyError
from parley.base.problems import near_key
from parley.base.text import number_text, plural
from parley.training.config import (
    TRAINED,
    Facts,
    RewardSettings,
    RlSettings,
    SftSettings,
    Stage,
    TrainConfig,
    seed_configs,
)
from parley.training.repeats import ablation_levels

if TYPE_CHECKING:
    from parley.training.context import TrainingContext
    from parley.training.stage_run import StageRun

HELD_OUT_ANSWERS = 256
"""Number of validation answers whose loss is measured before and after; the test split stays unseen."""


def sft_summary(facts: Facts) -> list[str]:
    before, after = (number_text(facts[f"held_out_loss_{when}"]) for when in ("before", "after"))
    done = f"{plural(facts['examples'], 'statement')}, {plural(facts['steps'], 'update')}"
    return [f"{done}; held-out loss {before} → {after}"]


def train_sft(context: TrainingContext, settings: SftSettings, run: StageRun) -> Facts:
    """Fine-tune the base model on `sft.data`, or on the chosen answers of the pairs.

    The result is also the reference of RL's KL penalty.
    """
    from trl import SFTConfig, SFTTrainer

    from parley.training.adapters import base_digest
    from parley.training.base_model import load_model
    from parley.training.callbacks import read_log
    from parley.training.pairs import low_bias, read_sft
    from parley.training.stage_run import to_dataset, without_printing

    config, chat = context.config, context.chat
    examples = read_sft(Path(settings.data)) if settings.data else list(low_bias(context.pairs.train))
    held_out = list(low_bias(context.pairs.validation or context.pairs.test))[:HELD_OUT_ANSWERS]
    model = run.start(load_model(context.base, chat.tokenizer))
    base = {"base_digest": base_digest(model)} if config.use_peft else {}
    trainer = SFTTrainer(
        model=model,
        args=SFTConfig(**run.arguments(), max_length=config.max_length, eval_strategy="no"),
        train_dataset=to_dataset([chat.sft_example(prompt, text) for prompt, text in examples]),
        eval_dataset=to_dataset([chat.sft_example(prompt, text) for prompt, text in held_out]),
        **run.parts(),
    )
    if not run.checkpoint:
        _held_out_loss(without_printing(trainer))
    loss_before = next((entry["eval_loss"] for entry in read_log(run.folder.log) if "eval_loss" in entry), None)
    run.train(trainer)
    return {
        "examples": len(examples),
        "cut": sum(chat.is_truncated(prompt, text) for prompt, text in examples),
        "held_out_loss_before": loss_before,
        "held_out_loss_after": _held_out_loss(trainer),
        **base,
    }


def _held_out_loss(trainer: Any) -> float:
    from parley.training.device import explain_out_of_memory

    with explain_out_of_memory():
        return float(trainer.evaluate()["eval_loss"])


SFT = Stage(name="sft", help="fine-tune the base model on low-bias statements", train=train_sft, summary=sft_summary)


def reward_summary(facts: Facts) -> list[str]:
    return [*facts["verdict"], f"ECE {number_text(facts['ece'])}"]


def train_reward(context: TrainingContext, settings: RewardSettings, run: StageRun) -> Facts:
    """Train the reward model: the SFT model's last hidden state through a linear layer to one number.

    The loss is −log σ(R(x, y_good) − R(x, y_bad)), as in the paper; TRL's RewardTrainer has it. Pairs are tokenized
    here (see `context`): the trainer would end answers as the chat template does, and drop those that are too
    long.
    """
    from trl import RewardConfig, RewardTrainer

    from parley.training.adapters import new_reward_model
    from parley.training.stage_run import to_dataset

    config, chat = context.config, context.chat
    pairs = list(context.pairs.train)
    random.Random(config.seed).shuffle(pairs)
    trainer = RewardTrainer(
        model=run.start(new_reward_model(context.finished_folder("sft"), context.base, chat.tokenizer)),
        args=RewardConfig(**run.arguments(), max_length=config.max_length),
        train_dataset=to_dataset([chat.pair(pair) for pair in pairs]),
        **run.parts(),
    )
    run.train(trainer)
    margins = [entry["margin"] for entry in trainer.state.log_history if "margin" in entry]
    if margins and not any(margins):
        raise ParleyError("the reward model gives both sides of every pair the same score: it has learnt nothing")
    texts = [(pair.prompt, side.text) for pair in pairs for side in (pair.chosen, pair.rejected)]
    return {"pairs": len(pairs), "cut": sum(chat.is_truncated(*each) for each in texts)}


REWARD = Stage(
    name="reward",
    help="train the reward model on pairs, and assess it on held-out ones",
    train=train_reward,
    summary=reward_summary,
    needs=(SFT,),
    policy=False,
)


PPO_TRL = "1.12.0"


def check_algorithm(settings: RlSettings) -> None:
    """ConfigError if the installed trl does not have the algorithm."""
    if settings.algorithm == "ppo":
        try:
            import trl.experimental.ppo  # noqa: F401
        except ModuleNotFoundError:
            raise ConfigError(
                f"trl dropped PPO in 1.13: pip install trl=={PPO_TRL}, or use rl.algorithm = 'rloo', which has the "
                "same objective without a critic"
            ) from None


def rl_summary(facts: Facts) -> list[str]:
    stopped = f"; stopped at a KL of {facts['stopped_at_kl']:.1f} nats" if facts["stopped_at_kl"] else ""
    before, after = (number_text(facts[f"reward_{when}"]) for when in ("before", "after"))
    updates = plural(facts["steps"], "update")
    return [f"{facts['algorithm']}, {updates}; reward of the sampled answers {before} → {after}{stopped}"]


def train_rl(context: TrainingContext, settings: RlSettings, run: StageRun) -> Facts:
    """Train the policy from the SFT model: reward − β·KL(policy ‖ SFT), by RLOO (the default) or PPO.

    RLOO has the paper's objective, with the mean reward of a prompt's other completions in place of a critic. PPO with
    a critic, as in the paper, was last in trl 1.12.0. Completions are sampled: the published script turns sampling off,
    and then all completions of a prompt are equal and there is nothing to learn from.

    Raises:
        WeakReward: The reward model has learnt nothing to train with.
    """
    from parley.training import rl_trainers
    from parley.training.adapters import load_policy
    from parley.training.callbacks import KlLimit, read_log

    rl_trainers.refuse_weak_reward(context)
    resumable = settings.algorithm != "ppo"
    policy = load_policy(context.finished_folder("sft"), context.base, context.chat.tokenizer)
    model = run.start(policy, resumable=resumable)
    kl_limit = KlLimit(settings.max_kl or float("inf"), by_exception=not resumable)
    run.callbacks.append(kl_limit)
    make_trainer = rl_trainers.ppo if settings.algorithm == "ppo" else rl_trainers.rloo
    run.train(make_trainer(context, settings, run, model))
    rewards = [entry["reward"] for entry in read_log(run.folder.log) if "reward" in entry]
    return {
        "algorithm": settings.algorithm,
        "prompts": len(context.train_prompts()),
        "stopped_at_kl": kl_limit.reached or None,
        "reward_before": rewards[0] if rewards else None,
        "reward_after": rewards[-1] if rewards else None,
    }


RL = Stage(
    name="rl",
    help="train the policy against the reward model",
    train=train_rl,
    summary=rl_summary,
    needs=(SFT, REWARD),
    prompts=True,
)


STAGES = {stage.name: stage for stage in (SFT, REWARD, RL)}
JOBS = {
    "rlaif": "the baseline without debates: a model labels pairs, then reward and rl on them",
    "evaluate": "measure trained systems and baselines: BBQ, and BS, CE and LS on held-out topics",
    "merge": "write models that were trained with use_peft as whole models, to OUT/STAGE/merged",
    "ablate": "train and evaluate at each value of the lists in [ablate]",
    "all": "sft, reward and rl, rlaif (if rlaif.labeller is set) and evaluate (if evaluate.bbq or evaluate.judges is "
    "set)",
}
"""Jobs of `parley train` besides single stages."""

STEP_FOLDERS = {"rlaif": TRAINED["RLAIF"], "merge": "*/merged"}
"""Folder of a step's result, if it differs from the step's name."""


def refuse_unknown_stage(name: str) -> None:
    """Raise `ConfigError` if there is no stage or job of this name."""
    if name not in (known := [*STAGES, *JOBS]):
        raise ConfigError(f"unknown training stage '{name}'{near_key(name, known)}")


def steps(name: str, config: TrainConfig) -> list[str]:
    """The stages and jobs of one `parley train NAME`, in order.

    Args:
        name: A stage or a job.
        config: Determines the stages of `all`.
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
    """All steps of `parley train NAME` with their configs: once per seed, and per level of an ablation."""
    if config.seeds > 1:
        for of_seed in seed_configs(config):
            yield from plan(name, of_seed)
    elif name == "ablate":
        for level in ablation_levels(config):
            yield from plan("all", level.config)
    else:
        for step in steps(name, config):
            yield step, config


def run_stages(
    config: TrainConfig,
    stages: Sequence[Stage],
    report: Callable[[str], None],
) -> dict[str, dict[str, Any]]:
    """Train; returns the manifest of each stage. Finished stages are skipped, an interrupted one is resumed.

    Args:
        config: The whole config.
        stages: The stages, in order.
        report: Receives progress lines.
    """
    from parley.training.context import TrainingContext

    if RL in stages:
        check_algorithm(config.rl)
    context = TrainingContext.open(config, report)
    return {stage.name: _run(context, stage) for stage in stages}


def _run(context: TrainingContext, stage: Stage) -> dict[str, Any]:
    from parley.training import device
    from parley.training.evaluation.reward_quality import assess_reward_model
    from parley.training.folders import read_manifest
    from parley.training.stage_run import StageRun

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
    return manifest
