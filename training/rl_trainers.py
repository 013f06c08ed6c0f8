"""TRL's trainers of the policy, and their reward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

from parley.training import device
from parley.training.adapters import load_policy, load_reward_model
from parley.training.config import RlSettings
from parley.training.context import TrainingContext
from parley.training.evaluation.reward_metrics import better_than_chance, held_out_accuracy
from parley.training.evaluation.reward_quality import QUALITY, RewardScorer
from parley.training.folders import WeakReward
from parley.training.stage_run import StageRun, to_dataset

TEMPERATURE = 1.0
"""Sampling temperature of completions; at 0 a prompt's completions would be equal, and nothing could be learnt."""


def reward_function(scorer: RewardScorer) -> Callable[..., list[float]]:
    """The reward function for TRL: the reward model's scores of completions."""
    chat, eos = scorer.chat, scorer.chat.tokenizer.eos_token_id

    def reward_model(prompts: Any, completions: Any, completion_ids: Any, **more: Any) -> list[float]:
        conversations = [
            [*chat.prompt(messages[-1]["content"]), *ids] for messages, ids in zip(prompts, completion_ids, strict=True)
        ]
        # A truncated completion is scored as if it ended there: the reward model has only seen texts that end. There is
        # no penalty for it: with one, 0.44 of a gain of 0.72 in reward came from completions that ended.
        return scorer.score_tokens(
            [ids if ids[-1] == eos else [*ids[: chat.max_length - 1], eos] for ids in conversations]
        )

    return reward_model


def refuse_weak_reward(context: TrainingContext) -> None:
    """Raise `WeakReward` if the reward model ranks held-out pairs no better than chance, unless allowed.

    A reward model trained on noise has preferences too, and RL follows them like any others: with SmolLM2 and shuffled
    labels the share of biased answers fell from 0.72 to 0.01. The distance that a policy moves does not separate signal
    from noise; ranking pairs of unseen topics does.
    """
    settings = context.config.rl
    if settings.allow_weak_reward or not device.is_main():
        return
    table = pd.read_csv(context.finished_folder("reward") / QUALITY)
    if not better_than_chance(table):
        raise WeakReward(
            "RL was not started: the reward model ranks held-out pairs no better than chance, accuracy "
            f"{held_out_accuracy(table)}, so the policy would follow noise. parley report DATASET shows what the pairs "
            "teach; rl.allow_weak_reward = true trains anyway"
        )


def rloo(context: TrainingContext, settings: RlSettings, run: StageRun, model: Any) -> Any:
    """RLOO: the completions of a prompt are scored by the reward model and compared with each other."""
    from trl import RLOOConfig, RLOOTrainer

    count = settings.num_generations
    args = RLOOConfig(
        **run.arguments(settings.batch_size * count, "batch_size × rl.num_generations"),
        num_generations=count,
        max_completion_length=settings.max_completion_length,
        temperature=TEMPERATURE,
        beta=settings.beta,
    )
    context.chat.tokenizer.padding_side = "left"
    return RLOOTrainer(
        model=model,
        reward_funcs=[reward_function(RewardScorer.load(context))],
        args=args,
        train_dataset=to_dataset([{"prompt": context.chat.messages(prompt)} for prompt in context.train_prompts()]),
        **run.parts(),
    )


def ppo(context: TrainingContext, settings: RlSettings, run: StageRun, model: Any) -> Any:
    """PPO with a critic, as in the paper. The critic starts as the reward model.

    The trainer is trl 1.12.0's experimental one, which cannot resume from a checkpoint, so none is saved; it ignores
    bf16, and logs KL summed over a completion. The SFT model is the reference of the KL penalty (with LoRA, the model
    without adapters is).
    """
    from trl.experimental.ppo import PPOConfig, PPOTrainer

    config, chat, prompts = context.config, context.chat, context.train_prompts()
    arguments = run.arguments() | {"bf16": False, "save_strategy": "no"}
    del arguments["max_steps"]  # PPO counts episodes
    args = PPOConfig(
        **arguments,
        total_episodes=settings.max_steps * settings.batch_size
        if settings.max_steps
        else int(settings.num_train_epochs * len(prompts)),
        num_mini_batches=1,
        local_rollout_forward_batch_size=arguments["per_device_train_batch_size"],
        response_length=settings.max_completion_length,
        temperature=TEMPERATURE,
        stop_token="eos",
        kl_coef=settings.beta,
        num_sample_generations=0,
    )
    reward_model, critic = (
        load_reward_model(context.finished_folder("reward"), context.base, chat.tokenizer) for _ in range(2)
    )
    chat.tokenizer.padding_side = "left"
    dataset = to_dataset([{"input_ids": chat.prompt(prompt)} for prompt in prompts])
    sft = context.finished_folder("sft")
    trainer = PPOTrainer(
        args=args,
        model=model,
        ref_model=None if config.use_peft else load_policy(sft, context.base, chat.tokenizer),
        reward_model=reward_model,
        value_model=critic,
        train_dataset=dataset,
        eval_dataset=dataset.select(range(1)),
        **run.parts(),
    )
    # The trainer splits batches itself: accelerate must not divide the gradients a second time.
    trainer.accelerator.gradient_accumulation_steps = 1
    return trainer
