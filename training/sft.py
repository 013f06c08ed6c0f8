"""Supervised fine-tuning on low-bias statements. Its result is also the reference of RL's KL penalty."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from parley.base.text import number_text, plural
from parley.training.config import SftSettings
from parley.training.stages import Facts, Stage

if TYPE_CHECKING:
    from parley.training.context import TrainingContext
    from parley.training.stage_run import StageRun

HELD_OUT_ANSWERS = 256
"""Held-out answers whose loss is measured before and after: of the validation split, so that test stays unseen."""


def _summary(facts: Facts) -> list[str]:
    before, after = (number_text(facts[f"held_out_loss_{when}"]) for when in ("before", "after"))
    done = f"{plural(facts['examples'], 'statement')}, {plural(facts['steps'], 'update')}"
    return [f"{done}; held-out loss {before} → {after}"]


def train_sft(context: TrainingContext, settings: SftSettings, run: StageRun) -> Facts:
    """Fine-tunes the base model on `sft.data`, or on the chosen answers of the pairs."""
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


SFT = Stage(name="sft", help="fine-tune the base model on low-bias statements", train=train_sft, summary=_summary)
