"""Runs a stage: prepares the arguments of TRL's trainers, trains, and saves the result."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout, suppress
from pathlib import Path
from typing import Any

from parley.base.errors import ParleyError
from parley.training import device
from parley.training.adapters import adapter_facts, save_adapter
from parley.training.base_model import require_matching_eos
from parley.training.callbacks import (
    CheckpointSigner,
    FiniteGradients,
    TrainingLog,
    TrainingProgress,
    TrainingStopped,
)
from parley.training.config import Stage
from parley.training.context import TrainingContext, eos_token_id
from parley.training.folders import checkpoint_step


class StageRun:
    """A stage being trained: load the model, `start`, make a trainer of `arguments` and `parts`, `train`.

    Args:
        context: The config, data and tokenizer.
        stage: The stage.
    """

    def __init__(self, context: TrainingContext, stage: Stage) -> None:
        self.context, self.stage, self.folder = context, stage, context.folder(stage)
        self.checkpoint: Path | None = None
        self.callbacks: list[Any] = []
        self.trainer: Any = None
        self.seconds = 0.0
        self.resumable = True
        device.avoid_cudnn_attention()
        device.reset_peak_memory()
        self._seed()  # a new head is drawn at random when the model is loaded

    def _seed(self) -> None:
        from transformers import set_seed

        set_seed(self.context.config.seed)

    def start(self, model: Any, *, resumable: bool = True) -> Any:
        """Find the checkpoint to resume from, and return the model; call it before making the trainer.

        Args:
            model: The model to train.
            resumable: Whether the trainer can resume; otherwise earlier checkpoints are removed. One that cannot
                (PPO's) also prints, and is stopped by an exception.
        """
        self.context.require_disk_space(model)
        self.resumable = resumable
        self.checkpoint = self.folder.begin(fresh=not resumable)
        self.log = TrainingLog(self.folder.log, checkpoint_step(self.checkpoint) if self.checkpoint else 0)
        progress = TrainingProgress(self.stage.name, self.context.report)
        self.callbacks = [self.log, FiniteGradients(), CheckpointSigner(), progress]
        self._seed()  # adapters are drawn at random: a stage in a new process must give the same weights
        return model

    def arguments(self, batch_size: int | None = None, setting: str = "batch_size") -> dict[str, Any]:
        """Shared arguments of TRL's configs: folder, epochs, learning rate, precision, batches.

        Args:
            batch_size: Examples per update, over all devices (default: the stage's setting).
            setting: The batch's name in the stage's table.
        """
        config, table = self.context.config, getattr(self.context.config, self.stage.name)
        return {
            **device.training_arguments(config, table, self.folder.checkpoints),
            **device.batch_arguments(batch_size or table.batch_size, config, f"{self.stage.name}.{setting}"),
        }

    def parts(self) -> dict[str, Any]:
        """Shared arguments of TRL's trainers: tokenizer, adapters, callbacks."""
        return {
            "processing_class": self.context.chat.tokenizer,
            "peft_config": device.lora_config(self.context.config, reward_model=not self.stage.policy),
            "callbacks": self.callbacks,
        }

    def train(self, trainer: Any) -> None:
        """Train with one of TRL's trainers, from the checkpoint if there is one."""
        self.trainer = without_printing(trainer)
        resume = {"resume_from_checkpoint": str(self.checkpoint) if self.checkpoint else None} if self.resumable else {}
        start = time.perf_counter()
        with device.explain_out_of_memory(), redirect_stdout(sys.stderr), suppress(TrainingStopped):
            trainer.train(**resume)
        self.seconds = time.perf_counter() - start

    def save(self, facts: Mapping[str, Any]) -> None:
        """Save the result: an adapter, or a whole model with its tokenizer.

        Args:
            facts: Entries of the manifest besides settings, updates and seconds.
        """
        context, accelerator = self.context, self.trainer.accelerator
        model = accelerator.unwrap_model(getattr(self.trainer.model, "policy", self.trainer.model))
        tokenizer, use_peft = context.chat.tokenizer, context.config.use_peft
        earlier = context.finished_folder(self.stage.needs[0].name) if self.stage.needs else None
        manifest = {
            **facts,
            "steps": self.trainer.state.global_step,
            "seconds": round(self.seconds, 1),
            **device.peak_memory(),
            **(adapter_facts(self.folder.folder, earlier, tokenizer) if use_peft else {}),
        }

        def save(folder: Path) -> None:
            if use_peft:
                save_adapter(model, folder, str(earlier or context.config.base))
                return
            model.save_pretrained(folder, state_dict=_cpu_weights(model))
            tokenizer.save_pretrained(folder)
            _check_saved_tokenizer(folder, tokenizer)

        if accelerator.is_main_process:
            self.folder.finish(save, manifest)
        accelerator.wait_for_everyone()


def to_dataset(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Rows as a dataset for TRL, without metadata: a column called `margin` would enter the reward loss."""
    from datasets import Dataset

    return Dataset.from_list([dict(row) for row in rows])


def without_printing(trainer: Any) -> Any:
    """Stop the trainer from printing logs: with --json, standard output must be JSON."""
    from transformers.trainer_callback import PrinterCallback

    trainer.remove_callback(PrinterCallback)
    return trainer


def _cpu_weights(model: Any) -> dict[str, Any]:
    """The weights on the CPU. Tied ones stay tied there, so that they are written once."""
    moved: dict[Any, Any] = {}
    return {
        name: moved.setdefault((weights.data_ptr(), weights.shape), weights.detach().cpu().contiguous())
        for name, weights in model.state_dict().items()
    }


def _check_saved_tokenizer(folder: Path, tokenizer: Any) -> None:
    """Check that the saved tokenizer has its tokens: some versions of transformers saved another eos, and the only sign
    was a reward loss of 0.693.
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
