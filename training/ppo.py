"""PPO with a critic, as in the paper, on trl 1.12.0's experimental trainer (later versions have none).

The critic starts as the reward model. The trainer cannot resume from a checkpoint, so none is saved; it ignores bf16,
and logs KL summed over a completion.
"""

from __future__ import annotations

import sys
import time
from contextlib import redirect_stdout, suppress
from pathlib import Path
from typing import Any

from parley.training import device
from parley.training.adapters import load_policy, load_reward_model
from parley.training.callbacks import TrainingStopped
from parley.training.context import TrainingContext
from parley.training.trainer import to_dataset, without_printing


def train_ppo(context: TrainingContext, model: Any, sft_folder: Path, callbacks: list[Any]) -> tuple[Any, float]:
    """Trains, and gives the trainer with the seconds it took.

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
        missing_eos_penalty=settings.missing_eos_penalty or None,
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
