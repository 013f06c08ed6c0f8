"""The catalogue's weights as transformers keeps them: unpacked once from the embedded GGUF file, into a folder."""

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

UNPACKED = 2
"""Raised when models are unpacked otherwise than before; those that lie there are then made anew."""
MARK = "unpacked.json"


def transformers_folder(model: str) -> Path:
    """The catalogue's weights as transformers keeps them, written once."""
    folder = home() / "bases" / model
    mark = json.dumps({"version": UNPACKED, "sha256": catalogue()[model].sha256})
    if _read(folder / MARK) == mark:
        return folder
    import torch
    from transformers import AutoModelForCausalLM

    weights = fetch(model)
    tokenizer = read_tokenizer(weights)
    where: dict[str, Any] = {"pretrained_model_name_or_path": str(weights.parent), "gguf_file": weights.name}
    whole = told_its_tokens(
        AutoModelForCausalLM.from_pretrained(**where, **_dequantised(), dtype=torch.float32), tokenizer
    )
    part = folder.with_name(f"{model}.{os.getpid()}.part")
    try:
        whole.to(torch.bfloat16).save_pretrained(part)
        tokenizer.save_pretrained(part)
        (part / MARK).write_text(mark, "utf-8")
        if _read(folder / MARK) != mark:  # another process may have been faster
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


def _dequantised() -> dict[str, Any]:
    """transformers 5.22 and later want to be told; before that, GGUF files were always unpacked."""
    try:
        from transformers import GgufConfig
    except ImportError:
        return {}
    return {"quantization_config": GgufConfig(dequantize=True)}


def told_its_tokens(model: Any, tokenizer: Any) -> Any:
    for settings in (model.config, model.generation_config):
        settings.pad_token_id, settings.eos_token_id = tokenizer.pad_token_id, tokenizer.eos_token_id
    return model
