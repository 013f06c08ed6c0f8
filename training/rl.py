"""Reinforcement learning: reward − β·KL(policy ‖ SFT), by RLOO (the default), GRPO, DPO (on the pairs), or PPO.

RLOO has the paper's objective, with the mean reward of a prompt's other completions in place of a critic. PPO with a
critic, as in the paper, was last in trl 1.12.0. Completions are sampled: the published script turns sampling off, and
then all completions of a prompt are equal and there is nothing to learn from.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd

from parley.base.errors import ConfigError
from parley.training import device
from parley.training.adapters import load_policy, load_reward_model
from parley.training.callbacks import KlLimit, SampleProbe, TimeLimit, TrainingStopped
from parley.training.config import RlSettings
from parley.training.context import TrainingContext
from parley.training.evaluation.reward_metrics import better_than_chance, held_out_accuracy
from parley.training.evaluation.reward_quality import QUALITY, RewardScorer, assess_reward_model
from parley.training.pairs import shuffled
from parley.training.stage import WeakReward
from parley.training.tokenization import sample_completions
from parley.training.trainer import run_trainer, save_model, stage_callbacks, to_dataset, without_printing

PPO_TRL = "1.12.0"


def check_rl(settings: RlSettings) -> None:
    """ConfigError, before anything is trained, if trl does not have the algorithm or vLLM is missing."""
    if settings.use_vllm and settings.algorithm not in ("rloo", "grpo"):
        raise ConfigError(f"rl.use_vllm: {settings.algorithm} does not generate with vLLM; rloo and grpo do")
    if settings.use_vllm and find_spec("vllm") is None:
        raise ConfigError("rl.use_vllm needs vLLM: pip install vllm (without it, set rl.use_vllm = false)")
    if settings.algorithm == "ppo":
        try:
            import trl.experimental.ppo  # noqa: F401
        except ModuleNotFoundError:
            raise ConfigError(
                f"trl dropped PPO in 1.13: pip install trl=={PPO_TRL}, or use rl.algorithm = 'rloo', which has the "
                "same objective without a critic"
            ) from None


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
    path = context.finished_folder("reward") / QUALITY
    if settings.allow_weak_reward or settings.algorithm == "dpo" or not device.is_main():
        return
    if not path.is_file():  # the stage was interrupted just before its end
        assess_reward_model(context)
    table = pd.read_csv(path)
    if not better_than_chance(table):
        raise WeakReward(
            "RL was not started: the reward model ranks held-out pairs no better than chance, accuracy "
            f"{held_out_accuracy(table)}, so the policy would follow noise. parley audit shows what the pairs "
            "teach; rl.allow_weak_reward = true trains anyway"
        )


def train_rl(context: TrainingContext) -> None:
    """Trains the policy from the SFT model, with the config's algorithm.

    Raises:
        WeakReward: The reward model has learnt nothing to train with.
    """
    from transformers import set_seed

    config, settings, chat = context.config, context.config.rl, context.chat
    check_rl(settings)
    refuse_weak_reward(context)
    stage = context.stage("rl")
    sft_folder = context.finished_folder("sft")
    scorer = RewardScorer.load(context)
    model = load_policy(sft_folder, context.base, chat.tokenizer)
    context.require_disk_space(model)
    if settings.algorithm == "ppo":
        shutil.rmtree(stage.checkpoints, ignore_errors=True)  # its trainer cannot resume from a checkpoint
    checkpoint = stage.begin()
    log, callbacks = stage_callbacks(context, stage, checkpoint)
    reward = RewardFunction(scorer)
    probe = HeldOutProbe(context, reward)
    if checkpoint is not None:
        # A resumed policy is compared with the SFT model too, not with itself at the checkpoint.
        probe(load_policy(sft_folder, context.base, chat.tokenizer).to(device.device()))
    by_exception = settings.algorithm == "ppo"
    kl_limit = KlLimit(settings.max_kl or float("inf"), by_exception=by_exception)
    time_limit = TimeLimit(settings.max_seconds or float("inf"), by_exception=by_exception)
    callbacks += [kl_limit, time_limit, SampleProbe(log, settings.probe_steps, probe)]
    set_seed(config.seed)  # adapters are drawn at random
    if settings.algorithm == "ppo":
        trainer, seconds = _train_ppo(context, model, sft_folder, callbacks)
    else:
        if settings.algorithm == "dpo":
            trainer = _dpo_trainer(context, stage.checkpoints, model, callbacks)
        else:
            trainer = _online_trainer(context, stage.checkpoints, model, reward, callbacks)
        seconds = run_trainer(trainer, checkpoint)
    facts = {
        "algorithm": settings.algorithm,
        "prompts": len(context.train_prompts()),
        "steps": trainer.state.global_step,
        "seconds": round(seconds, 1),
        "stopped_at_kl": kl_limit.reached or None,
        "held_out": probe(trainer.accelerator.unwrap_model(getattr(trainer.model, "policy", trainer.model))),
        "held_out_before": {"probe_reward": sum(probe.sft_rewards) / len(probe.sft_rewards)},
    }
    policy = getattr(trainer.model, "policy", None)
    save_model(context, stage, trainer, facts, policy=policy, earlier=sft_folder)


def _online_trainer(
    context: TrainingContext, checkpoints: Path, model: Any, reward: RewardFunction, callbacks: list[Any]
) -> Any:
    """RLOO or GRPO: the completions of a prompt are scored by the reward model and compared with each other."""
    import trl

    config, settings = context.config, context.config.rl
    name = settings.algorithm.upper()
    batch = device.batch_arguments(
        settings.batch_size * settings.num_generations, config, "rl.batch_size × rl.num_generations"
    )
    args = getattr(trl, f"{name}Config")(
        **device.training_arguments(config, settings, checkpoints),
        **batch,
        num_generations=settings.num_generations,
        # TRL counts passes here, not updates: an update has gradient_accumulation_steps of them.
        steps_per_generation=batch["gradient_accumulation_steps"] * settings.updates_per_generation,
        max_completion_length=settings.max_completion_length,
        temperature=settings.temperature,
        beta=settings.beta,
        **vllm_arguments(settings, config.max_length),
    )
    tokenizer = context.chat.tokenizer
    tokenizer.padding_side = "left"
    return getattr(trl, f"{name}Trainer")(
        model=model,
        reward_funcs=[reward],
        args=args,
        train_dataset=to_dataset([{"prompt": context.chat.messages(prompt)} for prompt in context.train_prompts()]),
        processing_class=tokenizer,
        peft_config=device.lora_config(config),
        callbacks=callbacks,
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


def _dpo_trainer(context: TrainingContext, checkpoints: Path, model: Any, callbacks: list[Any]) -> Any:
    """DPO learns from the pairs themselves; the reward model is only used by the probes."""
    from trl import DPOConfig, DPOTrainer

    config, settings, chat = context.config, context.config.rl, context.chat
    rows = [
        {"prompt": chat.prompt_text(pair.prompt), "chosen": pair.chosen.text, "rejected": pair.rejected.text}
        for pair in shuffled(context.pairs.train, config.seed)
    ]
    return DPOTrainer(
        model=model,
        args=DPOConfig(
            **device.training_arguments(config, settings, checkpoints),
            **device.batch_arguments(settings.batch_size, config, "rl.batch_size"),
            max_length=config.max_length,
            beta=settings.beta,
        ),
        train_dataset=to_dataset(rows),
        processing_class=chat.tokenizer,
        peft_config=device.lora_config(config),
        callbacks=callbacks,
    )


def _train_ppo(context: TrainingContext, model: Any, sft_folder: Path, callbacks: list[Any]) -> tuple[Any, float]:
    """Trains with a critic, as in the paper; returns the trainer and the seconds it took.

    The critic starts as the reward model. The trainer is trl 1.12.0's experimental one, which cannot resume from a
    checkpoint, so none is saved; it ignores bf16, and logs KL summed over a completion.

    Args:
        context: The config, data and tokenizer.
        model: The policy to train.
        sft_folder: The reference model of the KL penalty (with LoRA, it is the model without adapters).
        callbacks: For the trainer.
    """
    from trl.experimental.ppo import PPOConfig, PPOTrainer

    config, settings, chat = context.config, context.config.rl, context.chat
    prompts = context.train_prompts()
    arguments = device.training_arguments(config, settings, context.stage("rl").checkpoints)
    del arguments["max_steps"]  # PPO counts episodes
    batch = device.batch_arguments(settings.batch_size, config, "rl.batch_size")
    args = PPOConfig(
        **(arguments | {"bf16": False, "save_strategy": "no"}),
        **batch,
        total_episodes=settings.max_steps * settings.batch_size
        if settings.max_steps
        else int(settings.num_train_epochs * len(prompts)),
        num_mini_batches=1,
        local_rollout_forward_batch_size=batch["per_device_train_batch_size"],
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
    trainer = PPOTrainer(
        args=args,
        processing_class=chat.tokenizer,
        model=model,
        ref_model=None if config.use_peft else load_policy(sft_folder, context.base, chat.tokenizer),
        reward_model=reward_model,
        value_model=critic,
        train_dataset=dataset,
        eval_dataset=dataset.select(range(1)),
        peft_config=device.lora_config(config),
        callbacks=callbacks,
    )
    # The trainer splits batches itself: accelerate must not divide the gradients a second time.
    trainer.accelerator.gradient_accumulation_steps = 1
    start = time.perf_counter()
    with device.explain_out_of_memory(), redirect_stdout(sys.stderr), suppress(TrainingStopped):
        without_printing(trainer).train()
    return trainer, time.perf_counter() - start
