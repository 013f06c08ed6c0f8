"""The catalogue's weights in transformers' format: converted once from the GGUF file, into a folder."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

from parley.agents.models.catalogue import catalogue, fetch, sha256_of
from parley.agents.models.gguf_tokenizer import read_tokenizer
from parley.base.errors import ParleyError
from parley.base.home import home

VERSION = 3
"""Raised when the conversion changes; folders of an older version are then converted again."""
MANIFEST = "unpacked.json"
"""Written last, so that an incomplete folder is never taken for a complete one."""


def transformers_folder(model: str) -> Path:
    """The folder of a model of the catalogue in transformers' format; converted on first use."""
    folder = home() / "bases" / model
    if _is_sound(folder, model):
        return folder
    import torch
    from transformers import AutoModelForCausalLM

    weights = fetch(model)
    tokenizer = read_tokenizer(weights)
    source: dict[str, Any] = {"pretrained_model_name_or_path": str(weights.parent), "gguf_file": weights.name}
    converted = set_special_tokens(
        AutoModelForCausalLM.from_pretrained(**source, **_dequantize_option(), dtype=torch.float32), tokenizer
    )
    part = folder.with_name(f"{model}.{os.getpid()}.part")
    try:
        converted.to(torch.bfloat16).save_pretrained(part)
        tokenizer.save_pretrained(part)
        (part / MANIFEST).write_text(json.dumps(_manifest(part, model)), "utf-8")
        if not _is_sound(folder, model):  # another process may have been faster
            shutil.rmtree(folder, ignore_errors=True)
            part.rename(folder)
    except OSError as error:
        raise ParleyError(f"{folder} cannot be written: {error.strerror or error}") from None
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return folder


def _manifest(folder: Path, model: str) -> dict[str, Any]:
    """What the folder was converted from, and the hashes of its weights."""
    files = {file.name: sha256_of(file) for file in sorted(folder.glob("*.safetensors"))}
    return {"version": VERSION, "sha256": catalogue()[model].sha256, "files": files}


def _is_sound(folder: Path, model: str) -> bool:
    """Whether the folder is complete, of this version and these weights, and unchanged since."""
    try:
        return bool(json.loads((folder / MANIFEST).read_text("utf-8")) == _manifest(folder, model))
    except (OSError, ValueError):
        return False


def _dequantize_option() -> dict[str, Any]:
    """transformers 5.22 and later must be asked to dequantize; earlier versions always do."""
    try:
        from transformers import GgufConfig
    except ImportError:
        return {}
    return {"quantization_config": GgufConfig(dequantize=True)}


def set_special_tokens(model: Any, tokenizer: Any) -> Any:
    """The model, with the tokenizer's padding and end tokens in its config."""
    for config in (model.config, model.generation_config):
        config.pad_token_id, config.eos_token_id = tokenizer.pad_token_id, tokenizer.eos_token_id
    return model
