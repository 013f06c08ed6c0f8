"""TRL's trainers of the policy, the reward that they follow, and the probe of held-out prompts during training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from parley.training import device
from parley.training.adapters import load_policy, load_reward_model
from parley.training.config import RlSettings
from parley.training.context import TrainingContext
from parley.training.evaluation.reward_metrics import better_than_chance, held_out_accuracy
from parley.training.evaluation.reward_quality import QUALITY, RewardScorer
from parley.training.folders import WeakReward
from parley.training.pairs import shuffled
from parley.training.stage_run import StageRun, to_dataset
from parley.training.tokenization import sample_completions


class RewardFunction:
    """The reward of a completion: the reward model's score.

    Args:
        scorer: The reward model.
    """

    __name__ = "reward_model"

    def __init__(self, scorer: RewardScorer) -> None:
        self.scorer = scorer

    def __call__(self, prompts: Any, completions: Any, completion_ids: Any, **more: Any) -> list[float]:
        """TRL calls this as its reward function."""
        return self.rewards([messages[-1]["content"] for messages in prompts], completion_ids)

    def rewards(self, prompts: Sequence[str], completions: Sequence[Sequence[int]]) -> list[float]:
        """Rewards of completions, as tokens, each to the prompt at its place."""
        chat = self.scorer.chat
        eos = chat.tokenizer.eos_token_id
        conversations = [[*chat.prompt(prompt), *ids] for prompt, ids in zip(prompts, completions, strict=True)]
        # A truncated completion is scored as if it ended there: the reward model has only seen texts that end. There is
        # no penalty for it: with one, 0.44 of a gain of 0.72 in reward came from completions that ended.
        return self.scorer.score_tokens(
            [ids if ids[-1] == eos else [*ids[: chat.max_length - 1], eos] for ids in conversations]
        )


class HeldOutProbe:
    """Completions of held-out prompts, compared with those of the SFT model sampled with the same seed.

    The first call must be with the SFT model, or with a policy that has not been trained yet.
    """

    def __init__(self, context: TrainingContext, reward: RewardFunction) -> None:
        settings = context.config.rl
        self.context, self.reward = context, reward
        self.prompts = list(dict.fromkeys(context.prompts.probes().values()))[: settings.probe_prompts]
        self.sft_rewards: list[float] = []

    def __call__(self, policy: Any) -> Mapping[str, float]:
        config = self.context.config
        with device.trainer_precision(config):  # within a trainer or not, as for the SFT model of a resumed stage
            completions = sample_completions(policy, self.context.chat, self.prompts, config.rl, seed=config.seed)
        rewards = self.reward.rewards(self.prompts, completions)
        eos = self.context.chat.tokenizer.eos_token_id
        unfinished = sum(eos not in ids for ids in completions) / len(completions)
        self.sft_rewards = self.sft_rewards or rewards
        wins = [
            1.0 if reward > sft_reward else 0.5 if reward == sft_reward else 0.0
            for reward, sft_reward in zip(rewards, self.sft_rewards, strict=True)
        ]
        return {
            "win_rate": sum(wins) / len(wins),
            "probe_reward": sum(rewards) / len(rewards),
            "probe_unfinished": unfinished,
            "probe_length": sum(map(len, completions)) / len(completions),
        }


def refuse_weak_reward(context: TrainingContext) -> None:
    """Raises `WeakReward` if the reward model ranks held-out pairs no better than chance, unless that is allowed.

    A reward model trained on noise has preferences too, and RL follows them like any others: with SmolLM2
    and shuffled labels the share of biased answers fell from 0.72 to 0.01. How far a policy moves does not tell signal
    from noise; ranking pairs of unseen topics better than chance does.
    """
    settings = context.config.rl
    if settings.allow_weak_reward or settings.algorithm == "dpo" or not device.is_main():
        return
    table = pd.read_csv(context.finished_folder("reward") / QUALITY)
    if not better_than_chance(table):
        raise WeakReward(
            "RL was not started: the reward model ranks held-out pairs no better than chance, accuracy "
            f"{held_out_accuracy(table)}, so the policy would follow noise. parley report DATASET shows what the pairs "
            "teach; rl.allow_weak_reward = true trains anyway"
        )


def online(context: TrainingContext, settings: RlSettings, run: StageRun, model: Any, reward: RewardFunction) -> Any:
    """RLOO or GRPO: the completions of a prompt are scored by the reward model and compared with each other."""
    import trl

    name, count = settings.algorithm.upper(), settings.num_generations
    arguments = run.arguments(settings.batch_size * count, "batch_size × rl.num_generations")
    # Completions that are not used yet are not part of a checkpoint: one is saved only where the next are generated.
    arguments["save_steps"] += -arguments["save_steps"] % settings.updates_per_generation
    args = getattr(trl, f"{name}Config")(
        **arguments,
        num_generations=count,
        # TRL counts passes here, not updates: an update has gradient_accumulation_steps of them.
        steps_per_generation=arguments["gradient_accumulation_steps"] * settings.updates_per_generation,
        max_completion_length=settings.max_completion_length,
        temperature=settings.temperature,
        beta=settings.beta,
        **vllm_arguments(settings, context.config.max_length),
    )
    context.chat.tokenizer.padding_side = "left"
    return getattr(trl, f"{name}Trainer")(
        model=model,
        reward_funcs=[reward],
        args=args,
        train_dataset=to_dataset([{"prompt": context.chat.messages(prompt)} for prompt in context.train_prompts()]),
        **run.parts(),
    )


def vllm_arguments(settings: RlSettings, max_length: int) -> dict[str, Any]:
    """TRL's arguments for vLLM in the same process, with the weights of every update; none without `use_vllm`."""
    if not settings.use_vllm:
        return {}
    return {
        "use_vllm": True,
        "vllm_mode": "colocate",
        "vllm_gpu_memory_utilization": settings.vllm_gpu_memory_utilization,
        "vllm_max_model_length": max_length + settings.max_completion_length,
    }


def dpo(context: TrainingContext, settings: RlSettings, run: StageRun, model: Any, reward: RewardFunction) -> Any:
    """DPO learns from the pairs themselves; the reward model is only used by the probes."""
    from trl import DPOConfig, DPOTrainer

    config, chat = context.config, context.chat
    rows = [
        {"prompt": chat.prompt_text(pair.prompt), "chosen": pair.chosen.text, "rejected": pair.rejected.text}
        for pair in shuffled(context.pairs.train, config.seed)
    ]
    args = DPOConfig(**run.arguments(), max_length=config.max_length, beta=settings.beta)
    return DPOTrainer(model=model, args=args, train_dataset=to_dataset(rows), **run.parts())


def ppo(context: TrainingContext, settings: RlSettings, run: StageRun, model: Any, reward: RewardFunction) -> Any:
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
        temperature=settings.temperature,
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
