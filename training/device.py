"""What a trainer is told about the machine: precision, batches over devices, adapters. The same for every stage."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from parley.agents import ConfigError, ParleyError
from parley.training.config import TrainConfig


def world() -> int:
    """Processes that train together (`accelerate launch` says so)."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def is_main() -> bool:
    return int(os.environ.get("RANK", "0")) == 0


def has_bf16(config: TrainConfig) -> bool:
    """On a CPU, bf16 is some 200 times slower than fp32: only where it was asked for by name."""
    import torch

    if config.precision == "auto":
        return bool(torch.cuda.is_available() and torch.cuda.is_bf16_supported())
    return config.precision == "bf16"


def dtype(config: TrainConfig) -> Any:
    """Of models that are only asked, never trained."""
    import torch

    return torch.bfloat16 if has_bf16(config) else torch.float32


def device() -> Any:
    import torch

    if torch.cuda.is_available():
        return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    return torch.device("cpu")


def batches(batch: int, config: TrainConfig, key: str) -> dict[str, int]:
    """A batch over all devices as examples at once and steps that are added up."""
    each, left = divmod(batch, world())
    if left or not each:
        raise ConfigError(f"{key} = {batch} cannot be shared evenly by {world()} devices")
    at_once = min(each, config.micro_batch or each)
    while each % at_once:
        at_once -= 1
    return {"per_device_train_batch_size": at_once, "gradient_accumulation_steps": each // at_once}


def arguments(config: TrainConfig, part: Any, steps: Path) -> dict[str, Any]:
    """What TRL's configs share."""
    import torch

    return {
        "output_dir": str(steps),
        "num_train_epochs": part.epochs,
        "max_steps": part.steps or -1,
        "learning_rate": part.learning_rate,
        "bf16": has_bf16(config),
        "use_cpu": not torch.cuda.is_available(),
        "gradient_checkpointing": config.recompute,
        "save_strategy": "steps",
        "save_steps": config.save_every,
        "save_total_limit": 2,
        "logging_steps": 1,
        "report_to": "none",
        "disable_tqdm": True,
        "seed": config.seed,
        "dataloader_pin_memory": torch.cuda.is_available(),
    }


def adapters(config: TrainConfig, *, scores: bool = False) -> Any:
    """LoRA as the config has it, or None. A reward model's new head is trained whole."""
    if not config.lora:
        return None
    from peft import LoraConfig

    return LoraConfig(
        r=config.lora_rank,
        lora_alpha=config.lora_alpha,
        lora_dropout=config.lora_dropout,
        target_modules=list(config.lora_modules),
        task_type="SEQ_CLS" if scores else "CAUSAL_LM",
        modules_to_save=["score"] if scores else None,
    )


def merged(model: Any) -> Any:
    """A model without adapters, whatever it was trained with."""
    return model.merge_and_unload() if hasattr(model, "merge_and_unload") else model


@contextmanager
def enough_memory() -> Iterator[None]:
    """Out of memory in one line. What was saved before stays, and the same command goes on from it."""
    import torch

    try:
        yield
    except (torch.OutOfMemoryError, MemoryError):
        raise ParleyError(
            "the memory ran out: set a smaller micro_batch, recompute = true, or lora = true; checkpoints are kept, "
            "and the same command goes on from the last one"
        ) from None


def quiet() -> None:
    """Libraries say only what went wrong."""
    import datasets
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    datasets.disable_progress_bars()
