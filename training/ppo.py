"""PPO with a critic, as in the paper, on trl 1.12.0's experimental trainer (later versions have none).

The critic begins as the reward model. The trainer cannot go on from a checkpoint, so none is kept; it ignores bf16, and
logs divergence summed over an answer.
"""

from __future__ import annotations

import sys
import time
from contextlib import redirect_stdout, suppress
from typing import Any

from parley.training import device
from parley.training.base import load_model
from parley.training.callbacks import Stopped
from parley.training.trainer import Course, hushed, table


def train_ppo(course: Course, model: Any, begins: str, callbacks: list[Any]) -> tuple[Any, float]:
    """The trainer, when it is done, and the seconds it took."""
    from transformers import AutoModelForSequenceClassification
    from trl.experimental.ppo import PPOConfig, PPOTrainer

    config, part, chat = course.config, course.config.rl, course.chat
    asked = course.prompts()
    given = device.arguments(config, part, course.stage("rl").steps)
    del given["max_steps"]
    shape = device.batches(part.batch, config, "rl.batch")
    args = PPOConfig(
        **(given | {"bf16": False, "save_strategy": "no"}),
        **shape,
        total_episodes=part.steps * part.batch if part.steps else int(part.epochs * len(asked)),
        num_mini_batches=1,
        local_rollout_forward_batch_size=shape["per_device_train_batch_size"],
        response_length=part.max_tokens,
        temperature=part.temperature,
        stop_token="eos",
        missing_eos_penalty=part.missing_end,
        kl_coef=part.beta,
        num_sample_generations=0,
    )
    judges = [
        AutoModelForSequenceClassification.from_pretrained(str(course.folder("reward")), num_labels=1, dtype="float32")
        for _ in range(2)
    ]
    for judge in judges:
        judge.config.pad_token_id = chat.tokenizer.pad_token_id
    chat.tokenizer.padding_side = "left"
    rows = table([{"input_ids": chat.prompt(one)} for one in asked])
    trainer = PPOTrainer(
        args=args,
        processing_class=chat.tokenizer,
        model=model,
        ref_model=None if config.lora else load_model(begins, chat.tokenizer),
        reward_model=judges[0],
        value_model=judges[1],
        train_dataset=rows,
        eval_dataset=rows.select(range(1)),
        peft_config=device.adapters(config),
        callbacks=callbacks,
    )
    trainer.accelerator.gradient_accumulation_steps = 1
    begun = time.perf_counter()
    with device.enough_memory(), redirect_stdout(sys.stderr), suppress(Stopped):
        hushed(trainer).train()
    return trainer, time.perf_counter() - begun
