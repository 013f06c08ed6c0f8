"""The two supervised stages: SFT on low-bias statements, and the reward model.

The SFT model is also the reference of RL's KL penalty. The reward model is its last token's hidden state through a
linear layer to one number, trained to rank pairs: loss −log σ(R(x, y_good) − R(x, y_bad)), as in the paper; TRL's
RewardTrainer has it. Pairs are tokenized here (see `tokenization`): the trainer would end answers as the chat template
does, and drop pairs that are too long.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from parley.base.errors import ParleyError
from parley.training import device
from parley.training.adapters import base_digest, new_reward_model
from parley.training.base_model import load_model
from parley.training.context import TrainingContext
from parley.training.evaluation.reward_quality import assess_reward_model
from parley.training.pairs import low_bias, read_sft, shuffled
from parley.training.trainer import run_trainer, save_model, stage_callbacks, to_dataset, without_printing

HELD_OUT_ANSWERS = 256
"""Held-out answers whose loss is measured before and after."""


def train_sft(context: TrainingContext) -> None:
    """Fine-tunes the base model on `sft.data`, or on the chosen answers of the pairs."""
    from transformers import set_seed
    from trl import SFTConfig, SFTTrainer

    config, settings, chat = context.config, context.config.sft, context.chat
    stage = context.stage("sft")
    examples = read_sft(Path(settings.data)) if settings.data else list(low_bias(context.pairs.train))
    held_out = list(low_bias(context.pairs.probes()))[:HELD_OUT_ANSWERS]
    model = load_model(context.base, chat.tokenizer)
    context.require_disk_space(model)
    base = {"base_digest": base_digest(model)} if config.use_peft else {}
    checkpoint = stage.begin()
    _, callbacks = stage_callbacks(context, stage, checkpoint)
    set_seed(config.seed)  # adapters are drawn at random: a stage in a new process must give the same weights
    trainer = SFTTrainer(
        model=model,
        args=SFTConfig(
            **device.training_arguments(config, settings, stage.checkpoints),
            **device.batch_arguments(settings.batch_size, config, "sft.batch_size"),
            max_length=config.max_length,
            eval_strategy="no",
        ),
        train_dataset=to_dataset([chat.sft_example(prompt, text) for prompt, text in examples]),
        eval_dataset=to_dataset([chat.sft_example(prompt, text) for prompt, text in held_out]),
        processing_class=chat.tokenizer,
        peft_config=device.lora_config(config),
        callbacks=callbacks,
    )
    loss_before = None if checkpoint else _held_out_loss(without_printing(trainer))
    seconds = run_trainer(trainer, checkpoint)
    facts = {
        "examples": len(examples),
        "cut": sum(chat.is_truncated(prompt, text) for prompt, text in examples),
        "steps": trainer.state.global_step,
        "seconds": round(seconds, 1),
        "held_out_loss_before": loss_before,
        "held_out_loss_after": _held_out_loss(trainer),
        **base,
    }
    save_model(context, stage, trainer, facts)


def _held_out_loss(trainer: Any) -> float:
    with device.explain_out_of_memory():
        return float(trainer.evaluate()["eval_loss"])


def train_reward(context: TrainingContext) -> None:
    """Trains the reward model from the SFT model, and assesses it on held-out pairs."""
    from transformers import set_seed
    from trl import RewardConfig, RewardTrainer

    config, settings, chat = context.config, context.config.reward, context.chat
    stage = context.stage("reward")
    sft_folder = context.finished_folder("sft")
    set_seed(config.seed)  # the new head is drawn at random
    model = new_reward_model(sft_folder, context.base, chat.tokenizer)
    context.require_disk_space(model)
    checkpoint = stage.begin()
    _, callbacks = stage_callbacks(context, stage, checkpoint)
    pairs = shuffled(context.pairs.train, config.seed)
    set_seed(config.seed)  # and so are adapters
    trainer = RewardTrainer(
        model=model,
        args=RewardConfig(
            **device.training_arguments(config, settings, stage.checkpoints),
            **device.batch_arguments(settings.batch_size, config, "reward.batch_size"),
            max_length=config.max_length,
        ),
        train_dataset=to_dataset([chat.pair(pair) for pair in pairs]),
        processing_class=chat.tokenizer,
        peft_config=device.lora_config(config, reward_model=True),
        callbacks=callbacks,
    )
    seconds = run_trainer(trainer, checkpoint)
    margins = [entry["margin"] for entry in trainer.state.log_history if "margin" in entry]
    if margins and not any(margins):
        raise ParleyError("the reward model gives both sides of every pair the same score: it has learnt nothing")
    facts = {
        "pairs": len(pairs),
        "cut": sum(
            chat.is_truncated(pair.prompt, side.text) for pair in pairs for side in (pair.chosen, pair.rejected)
        ),
        "steps": trainer.state.global_step,
        "seconds": round(seconds, 1),
    }
    save_model(context, stage, trainer, facts, earlier=sft_folder)
    if device.is_main():
        assess_reward_model(context)
