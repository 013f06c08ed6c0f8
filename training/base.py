"""The model training begins with: `local/smollm2` (the embedded weights, unpacked once), a folder, or a hub's name.

A tokenizer must be able to end an answer, to pad without ending one, and to write a chat. What it cannot do is said
here, before anything is trained.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from parley.agents import ConfigError
from parley.agents.models.catalogue import catalogue
from parley.agents.models.transformers_weights import set_special_tokens, transformers_folder
from parley.training.config import TrainConfig

MISSING = "training needs torch, transformers, trl and peft: pip install 'parley-autogen[training]'"
PADS = ("<|endoftext|>", "<pad>", "<|pad|>", "[PAD]", "<|finetune_right_pad_id|>")
"""Tokens that many vocabularies hold and no answer ends on."""


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
            return str(transformers_folder(model))
        name = model
    path = Path(name).expanduser()
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise ConfigError(f"{path} is no folder of transformers': it has no config.json")
        return str(path)
    if path.suffix == ".gguf" or name.count("/") > 1 or name.startswith((".", "/", "~")):
        raise ConfigError(f"there is no folder {path} to train from (a .gguf file cannot be trained; a folder can)")
    return name


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
    vocabulary = tokenizer.get_vocab()
    for name, token in (("end_token", config.end_token), ("pad_token", config.pad_token)):
        if token is not None and token not in vocabulary:
            raise ConfigError(f"{name}: '{token}' is not in the vocabulary of {config.base}")
    tokenizer.eos_token = config.end_token or tokenizer.eos_token
    tokenizer.pad_token = config.pad_token or tokenizer.pad_token
    if tokenizer.eos_token_id is None:
        raise ConfigError(f"the tokenizer of {config.base} has no token that ends an answer (eos_token)")
    need_same_end(tokenizer, config.base)
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


def need_same_end(tokenizer: Any, name: str) -> None:
    """An answer must end on the token with which the chat template ends a turn, or a policy never learns to stop."""
    said = "What was said."
    turn = [{"role": "user", "content": "Say it."}, {"role": "assistant", "content": said}]
    after = str(tokenizer.apply_chat_template(turn, tokenize=False)).rpartition(said)[2].strip()
    if after and not after.startswith(tokenizer.eos_token):
        raise ConfigError(
            f"the tokenizer of {name} ends answers on '{tokenizer.eos_token}', its chat template on "
            f"'{after.split()[0][:40]}': name the right one with end_token"
        )


def load_model(folder: str, tokenizer: Any, *, dtype: Any = None) -> Any:
    """The language model, told which tokens end and pad."""
    import torch
    from transformers import AutoModelForCausalLM

    try:
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype or torch.float32)
    except (OSError, ValueError, KeyError, ImportError) as error:
        raise ConfigError(f"{folder} cannot be read by transformers: {' '.join(str(error).split())[:200]}") from None
    return set_special_tokens(model, tokenizer)
