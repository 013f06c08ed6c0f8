"""The catalogue's weights in transformers' format: converted once from the GGUF file, into a folder."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

from parley.agents.errors import ParleyError
from parley.agents.home import home
from parley.agents.models.catalogue import catalogue, fetch
from parley.agents.models.gguf_tokenizer import read_tokenizer

VERSION = 2
"""Raised when the conversion changes; folders of an older version are then converted again."""
MANIFEST = "unpacked.json"
"""Written last, so that an incomplete folder is never taken for a complete one."""


def transformers_folder(model: str) -> Path:
    """The folder of a model of the catalogue in transformers' format; converted on first use."""
    folder = home() / "bases" / model
    manifest = json.dumps({"version": VERSION, "sha256": catalogue()[model].sha256})
    if _read(folder / MANIFEST) == manifest:
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
        (part / MANIFEST).write_text(manifest, "utf-8")
        if _read(folder / MANIFEST) != manifest:  # another process may have been faster
            shutil.rmtree(folder, ignore_errors=True)
            part.rename(folder)
    except OSError as error:
        raise ParleyError(f"{folder} cannot be written: {error.strerror or error}") from None
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return folder


def _read(path: Path) -> str | None:
    try:
        return path.read_text("utf-8")
    except OSError:
        return None


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
