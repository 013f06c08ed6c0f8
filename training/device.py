"""Settings that depend on the machine, for all stages: precision, batches over devices, adapters, memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from parley.base.errors import ConfigError, ParleyError
from parley.base.text import plural
from parley.training.config import TrainConfig, TrainerSettings

LORA_DROPOUT = 0.05
"""As in the published script."""


def world_size() -> int:
    """The number of processes that train together, as `accelerate launch` sets it."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def is_main() -> bool:
    """Whether this is the process that prints and writes."""
    return int(os.environ.get("RANK", "0")) == 0


def in_main_process(work: Callable[[], None]) -> None:
    """Run a function in the main process, while the others wait."""
    if world_size() == 1:
        work()
        return
    import torch
    from accelerate import PartialState

    PartialState(cpu=not torch.cuda.is_available())  # the processes wait for each other
    # A separate process group, since this may take hours: the trainers' group times out after ten minutes.
    group = torch.distributed.new_group(backend="gloo", timeout=timedelta(days=30))
    if is_main():
        work()
    torch.distributed.barrier(group)


def use_bf16(config: TrainConfig) -> bool:
    """Whether to use bf16: as configured, else only on GPUs, since on a CPU it is about 200 times slower than fp32."""
    import torch

    if config.bf16 is None:
        return bool(torch.cuda.is_available() and torch.cuda.is_bf16_supported())
    return config.bf16


def inference_dtype(config: TrainConfig) -> Any:
    """The type of weights that are not trained. Trained ones keep 32 bits, with bf16 as mixed precision."""
    import torch

    return torch.bfloat16 if use_bf16(config) else torch.float32


def device() -> Any:
    """This process's GPU, or the CPU."""
    import torch

    if torch.cuda.is_available():
        return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    return torch.device("cpu")


def reset_peak_memory() -> None:
    """Reset the measurement of peak memory."""
    import torch

    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()


def peak_memory() -> dict[str, float]:
    """Peak GPU memory of tensors since the reset, in GiB, for a manifest; empty without a GPU."""
    import torch

    return {"peak_gib": round(torch.cuda.max_memory_allocated() / 2**30, 2)} if torch.cuda.is_available() else {}


def batch_arguments(batch_size: int, config: TrainConfig, setting: str) -> dict[str, int]:
    """A batch over all devices as TRL's two settings: examples per pass, and passes whose gradients are accumulated.

    Args:
        batch_size: Examples per update, over all devices.
        config: Its `per_device_train_batch_size` limits the examples per pass.
        setting: The batch's name in the config, for the message if it cannot be divided.
    """
    per_device, remainder = divmod(batch_size, world_size())
    if remainder or not per_device:
        raise ConfigError(f"{setting} = {batch_size} cannot be divided evenly over {plural(world_size(), 'device')}")
    per_pass = min(per_device, config.per_device_train_batch_size or per_device)
    while per_device % per_pass:
        per_pass -= 1
    return {"per_device_train_batch_size": per_pass, "gradient_accumulation_steps": per_device // per_pass}


def training_arguments(config: TrainConfig, table: TrainerSettings, folder: Path) -> dict[str, Any]:
    """The arguments that TRL's configs share.

    Args:
        config: The whole config.
        table: Its table for the stage.
        folder: Where checkpoints go.
    """
    import torch

    return {
        "output_dir": str(folder),
        "num_train_epochs": table.num_train_epochs,
        "max_steps": table.max_steps or -1,
        "learning_rate": table.learning_rate,
        "bf16": use_bf16(config),
        "use_cpu": not torch.cuda.is_available(),
        "gradient_checkpointing": config.gradient_checkpointing,
        "save_strategy": "steps",
        "save_steps": config.save_steps,
        "save_total_limit": 2,  # the newest may be incomplete after a crash
        "logging_steps": 1,
        "report_to": "none",
        "disable_tqdm": True,
        "seed": config.seed,
        "dataloader_pin_memory": torch.cuda.is_available(),
    }


def lora_config(config: TrainConfig, *, reward_model: bool = False) -> Any:
    """PEFT's LoraConfig, or None without `use_peft`. A reward model's new head is trained in full."""
    if not config.use_peft:
        return None
    from peft import LoraConfig

    return LoraConfig(
        r=config.lora_r,
        lora_alpha=config.lora_alpha,
        lora_dropout=LORA_DROPOUT,
        target_modules=list(config.lora_target_modules),
        task_type="SEQ_CLS" if reward_model else "CAUSAL_LM",
        modules_to_save=["score"] if reward_model else None,
    )


def avoid_cudnn_attention() -> None:
    """Turn cuDNN's attention off: since torch 2.11 its backward pass gives NaN on Hopper GPUs for some lengths.

    https://github.com/pytorch/pytorch/issues/196678; Qwen2.5-Coder-1.5B met it in its tenth update.
    """
    import torch

    torch.backends.cuda.enable_cudnn_sdp(False)


@contextmanager
def explain_out_of_memory() -> Iterator[None]:
    """Turn an out-of-memory error into one line. Checkpoints stay, so that the same command resumes."""
    import torch

    try:
        yield
    except (torch.OutOfMemoryError, MemoryError):
        raise ParleyError(
            "out of memory: set a smaller per_device_train_batch_size, gradient_checkpointing = true, or "
            "use_peft = true; checkpoints are kept, and the same command resumes from the last one"
        ) from None


def silence_libraries() -> None:
    """Log only errors of transformers and datasets."""
    import datasets
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    datasets.disable_progress_bars()
