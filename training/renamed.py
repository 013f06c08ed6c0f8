"""Settings that were renamed to the names TRL and transformers use: what each was called before.

A config with an old name is refused with the new one. A stage that was trained under old names is still recognised.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from parley.agents import ConfigError

_TRAINED = {"epochs": "num_train_epochs", "batch": "batch_size", "steps": "max_steps"}
RENAMED: dict[str, str] = {
    "begin": "sft_model_path",
    "chat_template": "chat_template_path",
    "end_token": "eos_token",
    "micro_batch": "per_device_train_batch_size",
    "precision": "bf16",
    "recompute": "gradient_checkpointing",
    "lora": "use_peft",
    "lora_rank": "lora_r",
    "lora_modules": "lora_target_modules",
    "least_pairs": "min_pairs",
    "save_every": "save_steps",
    "answers": "inference_backend",
    **{f"{table}.{old}": f"{table}.{new}" for table in ("sft", "reward", "rl") for old, new in _TRAINED.items()},
    "rl.samples": "rl.num_generations",
    "rl.max_tokens": "rl.max_completion_length",
    "rl.missing_end": "rl.missing_eos_penalty",
    "rl.ahead": "rl.updates_per_generation",
    "rl.replay": "rl.cuda_graphs",
    "rl.probe_every": "rl.probe_steps",
}
"""New names by old ones; a name within a table of the config has the table's name before it."""
_PRECISIONS = {"auto": None, "fp32": False, "bf16": True}
"""`precision` had words where `bf16` is yes, no, or left to the device."""


def refuse_old_names(config: Mapping[str, Any]) -> None:
    """One line for the first setting of a config file, or of Python, that has an old name."""
    for name in _names(config):
        if name in RENAMED:
            raise ConfigError(f"{name} is now {RENAMED[name]}")


def _names(config: Mapping[str, Any]) -> Iterator[str]:
    for key, value in config.items():
        yield str(key)
        if isinstance(value, Mapping):
            yield from (f"{key}.{inner}" for inner in value)


def with_current_names(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a stage's manifest, which may have been written under old names."""
    current = {RENAMED.get(name, name): value for name, value in settings.items()}
    if "precision" in settings:
        current["bf16"] = _PRECISIONS.get(settings["precision"], settings["precision"])
    return current
