"""How a stage runs one of TRL's trainers and saves its model."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from parley.base.errors import ParleyError
from parley.training import device
from parley.training.adapters import adapter_facts, save_adapter
from parley.training.base_model import require_matching_eos
from parley.training.callbacks import CheckpointSigner, FiniteGradients, TrainingLog, TrainingProgress
from parley.training.config import TrainConfig
from parley.training.context import TrainingContext, eos_token_id
from parley.training.gguf_file import why_no_gguf, write_gguf
from parley.training.stage import Stage, checkpoint_step


def to_dataset(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Rows as TRL takes them. They must have no metadata: a column called `margin` would enter the reward loss."""
    from datasets import Dataset

    return Dataset.from_list([dict(row) for row in rows])


def stage_callbacks(context: TrainingContext, stage: Stage, checkpoint: Path | None) -> tuple[TrainingLog, list[Any]]:
    """The log of a stage, and the callbacks that every stage has."""
    log = TrainingLog(stage.log, checkpoint_step(checkpoint) if checkpoint else 0)
    return log, [log, FiniteGradients(), CheckpointSigner(), TrainingProgress(stage.name, context.report)]


def without_printing(trainer: Any) -> Any:
    """The trainer without transformers' printed logs: with --json, standard output must be JSON."""
    from transformers.trainer_callback import PrinterCallback

    trainer.remove_callback(PrinterCallback)
    return trainer


def run_trainer(trainer: Any, checkpoint: Path | None) -> float:
    """Trains, from a checkpoint if there is one; returns the seconds it took."""
    device.avoid_cudnn_attention()
    start = time.perf_counter()
    with device.explain_out_of_memory():
        without_printing(trainer).train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    return time.perf_counter() - start


def save_model(
    context: TrainingContext,
    stage: Stage,
    trainer: Any,
    facts: Mapping[str, Any],
    *,
    policy: Any = None,
    earlier: Path | None = None,
) -> None:
    """Saves the stage's result: an adapter, or a whole model with tokenizer and GGUF.

    Args:
        context: What the stage was trained with.
        stage: Gets the folder.
        trainer: Has the trained model.
        facts: What the stage's manifest says in addition to the settings.
        policy: The model to save, if it is only a part of the trainer's (PPO's has a critic too).
        earlier: The folder of the stage that this one starts from; None for the base.
    """
    accelerator = trainer.accelerator
    model = accelerator.unwrap_model(policy or trainer.model)
    tokenizer = context.chat.tokenizer
    use_peft = context.config.use_peft
    manifest = {**facts, **(adapter_facts(stage.folder, earlier, tokenizer) if use_peft else {})}

    def save(folder: Path) -> None:
        if not accelerator.is_main_process:
            return
        if use_peft:
            save_adapter(model, folder, str(earlier or context.config.base))
            return
        model.save_pretrained(folder, state_dict=_cpu_weights(model))
        tokenizer.save_pretrained(folder)
        _check_saved_tokenizer(folder, tokenizer)
        if stage.name != "reward" and (why := _write_gguf_if_possible(folder, context.config)):
            manifest["no_gguf"] = why

    stage.finish(save, manifest, main=accelerator.is_main_process)
    accelerator.wait_for_everyone()


def _write_gguf_if_possible(folder: Path, config: TrainConfig) -> str | None:
    """Writes model.gguf, or says why there is none."""
    why = why_no_gguf(folder) if config.gguf else "gguf = false"
    if why is None:
        write_gguf(folder)
    return why


def _cpu_weights(model: Any) -> dict[str, Any]:
    """The weights on the CPU. Tied ones stay tied there, so that they are written once."""
    moved: dict[Any, Any] = {}
    return {
        name: moved.setdefault((weights.data_ptr(), weights.shape), weights.detach().cpu().contiguous())
        for name, weights in model.state_dict().items()
    }


def _check_saved_tokenizer(folder: Path, tokenizer: Any) -> None:
    """A saved tokenizer must have the tokens it was trained with: some versions of transformers saved another eos.

    A reward loss of 0.693 was the only sign of it.
    """
    from transformers import AutoTokenizer

    saved = AutoTokenizer.from_pretrained(str(folder))
    for name in ("eos_token_id", "pad_token_id"):
        if getattr(saved, name) != getattr(tokenizer, name):
            raise ParleyError(
                f"{folder}: the saved tokenizer has {name} {getattr(saved, name)}, not {getattr(tokenizer, name)}: "
                "this version of transformers cannot save it"
            )
    require_matching_eos(saved, str(folder))
    if eos_token_id(folder) != tokenizer.eos_token_id:
        raise ParleyError(f"{folder}: the saved model and its tokenizer have different end tokens")
