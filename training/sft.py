"""Supervised tuning on low-bias statements: the first stage, and the point the policy may not stray far from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from parley.training import device
from parley.training.base import load_model
from parley.training.pairs import low_bias, read_sft
from parley.training.trainer import Course, hushed, put_away, table, train, watchers

LOOKED_AT = 256
"""Held-out answers whose loss is measured before and after."""


def train_sft(course: Course) -> None:
    from trl import SFTConfig, SFTTrainer

    config, part, chat = course.config, course.config.sft, course.chat
    stage = course.stage("sft")
    texts = read_sft(Path(part.data)) if part.data else list(low_bias(course.pairs.train))
    held_out = list(low_bias(course.pairs.probes()))[:LOOKED_AT]
    model = load_model(course.base, chat.tokenizer)
    course.need_room(model)
    resume = stage.begin()
    _, callbacks = watchers(stage, resume)
    trainer = SFTTrainer(
        model=model,
        args=SFTConfig(
            **device.arguments(config, part, stage.steps),
            **device.batches(part.batch, config, "sft.batch"),
            max_length=config.max_length,
            eval_strategy="no",
        ),
        train_dataset=table([chat.example(prompt, text) for prompt, text in texts]),
        eval_dataset=table([chat.example(prompt, text) for prompt, text in held_out]),
        processing_class=chat.tokenizer,
        peft_config=device.adapters(config),
        callbacks=callbacks,
    )
    before = None if resume else _loss(hushed(trainer))
    seconds = train(trainer, resume)
    facts = {
        "examples": len(texts),
        "cut": sum(chat.is_cut(prompt, text) for prompt, text in texts),
        "steps": trainer.state.global_step,
        "seconds": round(seconds, 1),
        "held_out_loss_before": before,
        "held_out_loss_after": _loss(trainer),
    }
    put_away(course, stage, trainer, facts)


def _loss(trainer: Any) -> float:
    with device.enough_memory():
        return float(trainer.evaluate()["eval_loss"])
