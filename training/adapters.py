"""LoRA adapters: a stage's small result, and the model it forms with the base and earlier stages.

With `use_peft`, a finished stage has an adapter (a reward model's includes its head) instead of a model. The SFT
adapter is on the base; those of the reward model and of RL are on the base with the SFT adapter merged into it.
So the reference of the KL penalty is the policy with its adapter switched off, as TRL expects. A stage's result is
4.4 MB instead of 6 GB for a model of 1.5 billion parameters, and a stage can continue on another machine.

Adapters are merged when a model is loaded, in memory. To run a trained model elsewhere, `merged_folder` writes it out.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from parley.base.errors import ConfigError
from parley.base.files import new_folder
from parley.training.base_model import load_model
from parley.training.folders import read_manifest, require_free_space

CONFIG_FILE, WEIGHTS_FILE = "adapter_config.json", "adapter_model.safetensors"
MERGED, MERGED_MANIFEST = "merged", "merged.json"


def is_adapter(folder: Path) -> bool:
    """Whether a stage's result is an adapter, not a whole model."""
    return (folder / CONFIG_FILE).is_file()


def save_adapter(model: Any, folder: Path, trained_on: str) -> None:
    """Save an adapter, with a reward model's head, but without PEFT's model card.

    Args:
        model: PEFT's model.
        folder: Where to.
        trained_on: The base, or the folder of the stage that the adapter is on, for PEFT's config.
    """
    model.peft_config["default"].base_model_name_or_path = trained_on
    model.save_pretrained(folder, save_embedding_layers=False)
    (folder / "README.md").unlink(missing_ok=True)


def adapter_facts(folder: Path, earlier: Path | None, tokenizer: Any) -> dict[str, Any]:
    """The manifest's entries about an adapter.

    Args:
        folder: The stage's folder.
        earlier: The folder of the stage that it is trained on; None for the base.
        tokenizer: Its end token is recorded, since an adapter has no model config.
    """
    begins_from = os.path.relpath(earlier, folder) if earlier else None
    return {"adapter": True, "begins_from": begins_from, "eos_token_id": tokenizer.eos_token_id}


def load_policy(folder: Path, base: str, tokenizer: Any) -> Any:
    """The language model of a finished SFT or RL stage, in 32 bits, with its adapters merged.

    Args:
        folder: The stage's folder.
        base: The model that adapters are on: a folder or hub name.
        tokenizer: The base's tokenizer.
    """
    adapters, model_folder = _chain(folder)
    model = load_model(str(model_folder or base), tokenizer)
    if model_folder is None:
        _require_same_base(adapters[0], model, base)
    for adapter in adapters:
        model = _merge(model, adapter)
    return model


def new_reward_model(sft_folder: Path, base: str, tokenizer: Any) -> Any:
    """A reward model with the weights of the SFT model, and a new head drawn at random."""
    from transformers import AutoModelForSequenceClassification

    source = base if is_adapter(sft_folder) else str(sft_folder)
    model = AutoModelForSequenceClassification.from_pretrained(source, num_labels=1, dtype="float32")
    if is_adapter(sft_folder):
        name = model.base_model_prefix
        setattr(model, name, getattr(load_policy(sft_folder, base, tokenizer), name))
    model.config.pad_token_id = tokenizer.pad_token_id
    return model


def load_reward_model(folder: Path, base: str, tokenizer: Any) -> Any:
    """The reward model of a finished stage, in 32 bits, with its adapters merged."""
    from transformers import AutoModelForSequenceClassification

    if read_manifest(folder) is None:
        raise ConfigError(f"there is no reward model at {folder}: run `parley train reward` first")
    if is_adapter(folder):
        return _merge(new_reward_model(_earlier(folder), base, tokenizer), folder)
    model = AutoModelForSequenceClassification.from_pretrained(str(folder), dtype="float32", num_labels=1)
    model.config.pad_token_id = tokenizer.pad_token_id
    return model


def merged_folder(folder: Path, base: str, tokenizer: Any) -> Path:
    """FOLDER/merged with the whole model of a stage that has an adapter; written if missing."""
    merged = folder / MERGED
    digest = _chain_digest(folder)
    try:
        if json.loads((merged / MERGED_MANIFEST).read_text("utf-8")).get("digest") == digest:
            return merged
    except (OSError, ValueError):
        pass
    model = load_policy(folder, base, tokenizer)
    require_free_space(folder, 2 * 4 * sum(weights.numel() for weights in model.parameters()))
    with new_folder(merged, lambda path: (path / MERGED_MANIFEST).is_file()) as part:
        model.save_pretrained(part)
        tokenizer.save_pretrained(part)
        (part / MERGED_MANIFEST).write_text(json.dumps({"digest": digest}), "utf-8")
    return merged


def base_digest(model: Any) -> str:
    """A hash of up to 64 weights of every layer, to recognise the base that an adapter was trained on."""
    hasher = hashlib.sha256()
    for name, weights in model.named_parameters():
        values = weights.detach().flatten()
        sample = values[:: max(1, values.numel() // 64)][:64].float().tolist()
        hasher.update(f"{name} {tuple(weights.shape)} {sample}".encode())
    return hasher.hexdigest()


def _merge(model: Any, adapter: Path) -> Any:
    from peft import PeftConfig, PeftModel

    config = PeftConfig.from_pretrained(str(adapter))
    config.inference_mode = True
    try:
        return PeftModel.from_pretrained(model, str(adapter), config=config).merge_and_unload()
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        raise ConfigError(f"the adapter in {adapter} cannot be loaded: {' '.join(str(error).split())[:200]}") from None


def _earlier(folder: Path) -> Path:
    """The stage that an adapter is on."""
    earlier = folder / str((read_manifest(folder) or {}).get("begins_from"))
    if read_manifest(earlier) is None:
        raise ConfigError(f"{folder} is an adapter for {os.path.normpath(earlier)}, which is not a finished stage")
    return earlier


def _adapters(folder: Path) -> Iterator[Path]:
    """The adapters that lead to a stage, newest first."""
    while is_adapter(folder):
        yield folder
        if (read_manifest(folder) or {}).get("begins_from") is None:
            return
        folder = _earlier(folder)


def _chain(folder: Path) -> tuple[list[Path], Path | None]:
    """The adapters to merge, in order, and the folder of the whole model that they are on; None for the base."""
    if not is_adapter(folder):
        return [], folder
    newest_first = list(_adapters(folder))
    oldest = newest_first[-1]
    on_base = (read_manifest(oldest) or {}).get("begins_from") is None
    return newest_first[::-1], None if on_base else _earlier(oldest)


def _chain_digest(folder: Path) -> str:
    hasher = hashlib.sha256()
    for adapter in _adapters(folder):
        hasher.update((adapter / WEIGHTS_FILE).read_bytes())
    return hasher.hexdigest()


def _require_same_base(adapter: Path, model: Any, base: str) -> None:
    expected = (read_manifest(adapter) or {}).get("base_digest")
    if expected is not None and expected != base_digest(model):
        raise ConfigError(f"{adapter} was trained on a different base model than {base}: the weights differ")
