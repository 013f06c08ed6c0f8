"""Supervised fine-tuning on low-bias statements: the first stage, and the reference model of RL's KL penalty."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from parley.training import device
from parley.training.adapters import base_digest
from parley.training.base_model import load_model
from parley.training.context import TrainingContext
from parley.training.pairs import low_bias, read_sft
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
    set_seed(config.seed)  # adapters are drawn at random
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
