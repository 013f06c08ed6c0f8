"""The model that training starts from: `local/smollm2` (the embedded weights, unpacked once), a folder, or a hub name.

Training needs a tokenizer with an end token, a pad token other than that, and a chat template. A model without one of
these is refused here, before training.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from parley.agents.models.catalogue import catalogue
from parley.agents.models.weights import set_special_tokens, transformers_folder
from parley.agents.providers import provider_of
from parley.base.errors import ConfigError, install
from parley.training.config import TrainConfig

MISSING = f"training needs torch, transformers, trl and peft: {install('training')}"
PAD_TOKENS = ("<|endoftext|>", "<pad>", "<|pad|>", "[PAD]", "<|finetune_right_pad_id|>")
"""Common padding tokens that do not end an answer."""


def require_packages() -> None:
    """ConfigError if a package of the extra `training` is missing."""
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
    """The source for transformers: a folder on this machine, or the hub name as it is."""
    if provider_of(name).embedded:
        model = name.partition("/")[2]
        if model in catalogue():
            return str(transformers_folder(model))
        name = model
    path = Path(name).expanduser()
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise ConfigError(f"{path} is not a transformers model folder: it has no config.json")
        return str(path)
    if path.suffix == ".gguf" or name.count("/") > 1 or name.startswith((".", "/", "~")):
        raise ConfigError(f"there is no folder {path} to train from; a .gguf file cannot be trained")
    return name


def refuse_remote_code(folder: str) -> None:
    """ConfigError for a model that transformers can only load with Python code from the model's own repository."""
    from transformers import CONFIG_MAPPING, PretrainedConfig

    try:
        config, _ = PretrainedConfig.get_config_dict(folder)
    except (OSError, ValueError) as error:
        raise ConfigError(f"the config of {folder} cannot be read: {_one_line(error)}") from None
    if config.get("auto_map") and config.get("model_type") not in CONFIG_MAPPING:
        raise ConfigError(
            f"{folder} needs Python code from its own repository (trust_remote_code), which training does not run: "
            "use a model that transformers supports itself"
        )


def load_tokenizer(folder: str, config: TrainConfig) -> Any:
    """The tokenizer with the config's chat template and tokens; ConfigError if it lacks what training needs.

    Args:
        folder: A folder or hub name, as `base_folder` gives it.
        config: Its `eos_token` and `pad_token` are applied.
    """
    from transformers import AutoTokenizer

    refuse_remote_code(folder)
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
    except (OSError, ValueError, KeyError, ImportError) as error:
        raise ConfigError(f"the tokenizer of {folder} cannot be loaded: {_one_line(error)}") from None
    if not tokenizer.chat_template:
        raise ConfigError(f"the tokenizer of {config.base} has no chat template: save one with it")
    vocabulary = tokenizer.get_vocab()
    for name, token in (("eos_token", config.eos_token), ("pad_token", config.pad_token)):
        if token is not None and token not in vocabulary:
            raise ConfigError(f"{name}: '{token}' is not in the vocabulary of {config.base}")
    tokenizer.eos_token = config.eos_token or tokenizer.eos_token
    tokenizer.pad_token = config.pad_token or tokenizer.pad_token
    if tokenizer.eos_token_id is None:
        raise ConfigError(f"the tokenizer of {config.base} has no end token: set eos_token")
    require_matching_eos(tokenizer, config.base)
    if tokenizer.pad_token_id in (None, tokenizer.eos_token_id):
        # Padding with the end token would hide whether an answer ended.
        pads = [token for token in PAD_TOKENS if token in vocabulary and token != tokenizer.eos_token]
        if not pads:
            raise ConfigError(
                f"the tokenizer of {config.base} has no pad token other than its end token: "
                "set pad_token to a token of its vocabulary"
            )
        tokenizer.pad_token = pads[0]
    return tokenizer


def require_matching_eos(tokenizer: Any, name: str) -> None:
    """ConfigError if the chat template ends a turn on another token than the tokenizer: a policy would never stop."""
    answer = "This is the answer."
    messages = [{"role": "user", "content": "Say it."}, {"role": "assistant", "content": answer}]
    after = str(tokenizer.apply_chat_template(messages, tokenize=False)).rpartition(answer)[2].strip()
    if after and not after.startswith(tokenizer.eos_token):
        raise ConfigError(
            f"the tokenizer of {name} ends answers on '{tokenizer.eos_token}', its chat template on "
            f"'{after.split()[0][:40]}': set eos_token to the right one"
        )


def load_model(folder: str, tokenizer: Any) -> Any:
    """The language model, with the tokenizer's end and pad tokens in its config.

    Args:
        folder: A folder or hub name, as `base_folder` gives it.
        tokenizer: Its tokenizer.
    """
    import torch
    from transformers import AutoModelForCausalLM

    try:
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)  # small updates are lost in 16 bits
    except (OSError, ValueError, KeyError, ImportError) as error:
        raise ConfigError(f"transformers cannot load {folder}: {_one_line(error)}") from None
    return set_special_tokens(model, tokenizer)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
