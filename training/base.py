"""The model training begins with: `local/smollm2` (the embedded weights, unpacked once), a folder, or a hub's name.

A tokenizer must be able to end an answer, to pad without ending one, and to write a chat. What it cannot do is said
here, before anything is trained.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from agents import ConfigError, ParleyError
from agents.models.catalogue import catalogue, fetch, home
from training.config import TrainConfig

MISSING = "training needs torch, transformers, trl and peft: pip install 'parley[training]'"
PADS = ("<|endoftext|>", "<pad>", "<|pad|>", "[PAD]", "<|finetune_right_pad_id|>")
"""Tokens that many vocabularies hold and no answer ends on."""
DIGITS = ("smollm", "starcoder", "refact", "command-r")
"""llama.cpp's names of tokenizers that read digits one by one. transformers forgets it when it reads a GGUF file:
"40-year-old" would be read as words the model has never seen."""


def need_packages() -> None:
    """One line where something is missing."""
    try:
        import accelerate  # noqa: F401
        import datasets  # noqa: F401
        import peft  # noqa: F401
        import torch  # noqa: F401
        import transformers  # noqa: F401
        import trl  # noqa: F401
    except ModuleNotFoundError as error:
        raise ConfigError(f"{MISSING} ('{error.name}' is missing)") from None


def base_folder(name: str) -> str:
    """Where transformers finds a base: a folder on this machine, or the hub's name as it is."""
    if name.startswith("local/"):
        model = name.removeprefix("local/")
        if model in catalogue():
            return str(_unpacked(model))
        name = model
    path = Path(name).expanduser()
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise ConfigError(f"{path} is no folder of transformers': it has no config.json")
        return str(path)
    if path.suffix == ".gguf" or name.count("/") > 1 or name.startswith((".", "/", "~")):
        raise ConfigError(f"there is no folder {path} to train from (a .gguf file cannot be trained; a folder can)")
    return name


def _unpacked(model: str) -> Path:
    """The catalogue's weights as transformers keeps them, written once."""
    folder = home() / "bases" / model
    if (folder / "config.json").is_file():
        return folder
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    weights = fetch(model)
    where: dict[str, Any] = {"pretrained_model_name_or_path": str(weights.parent), "gguf_file": weights.name}
    tokenizer = AutoTokenizer.from_pretrained(**where)
    _read_digits_one_by_one(tokenizer, weights)
    unpacked = AutoModelForCausalLM.from_pretrained(**where, **_dequantised(), dtype=torch.float32)
    part = folder.with_name(f"{model}.part")
    shutil.rmtree(part, ignore_errors=True)
    try:
        unpacked.to(torch.bfloat16).save_pretrained(part)
        tokenizer.save_pretrained(part)
        part.rename(folder)
    except OSError as error:
        raise ParleyError(f"{folder} cannot be written: {error.strerror or error}") from None
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return folder


def _dequantised() -> dict[str, Any]:
    """transformers 5.22 and later want to be told; before that, GGUF files were always unpacked."""
    try:
        from transformers import GgufConfig
    except ImportError:
        return {}
    return {"quantization_config": GgufConfig(dequantize=True)}


def _read_digits_one_by_one(tokenizer: Any, weights: Path) -> None:
    import gguf
    from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence

    field = gguf.GGUFReader(weights).fields.get("tokenizer.ggml.pre")
    if field is not None and field.contents() in DIGITS:
        steps = [Digits(individual_digits=True), ByteLevel(add_prefix_space=False, use_regex=True)]
        tokenizer.backend_tokenizer.pre_tokenizer = Sequence(steps)


def load_tokenizer(folder: str, config: TrainConfig) -> Any:
    """The tokenizer, able to do all that training asks of it, or one line about what it lacks."""
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(folder)
    except (OSError, ValueError, KeyError, ImportError) as error:
        raise ConfigError(f"{folder} has no tokenizer to read: {' '.join(str(error).split())[:200]}") from None
    if config.chat_template is not None:
        try:
            tokenizer.chat_template = Path(config.chat_template).read_text("utf-8")
        except OSError as error:
            raise ConfigError(f"{config.chat_template}: {error.strerror}") from None
    if not tokenizer.chat_template:
        raise ConfigError(f"the tokenizer of {config.base} has no chat template: name one with chat_template = FILE")
    if tokenizer.eos_token_id is None:
        raise ConfigError(f"the tokenizer of {config.base} has no token that ends an answer (eos_token)")
    vocabulary = tokenizer.get_vocab()
    if config.pad_token is not None and config.pad_token not in vocabulary:
        raise ConfigError(f"pad_token: '{config.pad_token}' is not in the vocabulary of {config.base}")
    if config.pad_token is not None:
        tokenizer.pad_token = config.pad_token
    if tokenizer.pad_token_id in (None, tokenizer.eos_token_id):
        # Padding with the token that ends an answer would hide whether one ended.
        pads = [token for token in PADS if token in vocabulary and token != tokenizer.eos_token]
        if not pads:
            raise ConfigError(
                f"the tokenizer of {config.base} has no pad token apart from the one that ends an answer: "
                "name one of its vocabulary with pad_token"
            )
        tokenizer.pad_token = pads[0]
    return tokenizer


def load_model(folder: str, tokenizer: Any, *, dtype: Any = None) -> Any:
    """The language model, told which tokens end and pad."""
    import torch
    from transformers import AutoModelForCausalLM

    try:
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype or torch.float32)
    except (OSError, ValueError, KeyError, ImportError) as error:
        raise ConfigError(f"{folder} cannot be read by transformers: {' '.join(str(error).split())[:200]}") from None
    for settings in (model.config, model.generation_config):
        settings.pad_token_id, settings.eos_token_id = tokenizer.pad_token_id, tokenizer.eos_token_id
    return model
