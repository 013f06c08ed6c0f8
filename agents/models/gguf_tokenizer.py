"""The tokenizer of a GGUF file, built from the file's own metadata: tokens, merges and special tokens.

transformers can read a GGUF tokenizer too, but the result depends on its version: digits that are no longer split, an
end token that begins a turn.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from parley.base.errors import ConfigError

SPLIT_DIGITS = ("smollm", "starcoder", "refact", "command-r")
"""llama.cpp's names of pre-tokenizers that split numbers into digits. Without the split, "40" would be a token that the
model has never seen."""
QWEN2_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""Qwen2's pre-tokenizer, from its tokenizer.json."""
SPECIAL_TOKENS = {"bos_token": "bos", "eos_token": "eos", "pad_token": "padding", "unk_token": "unknown"}
CONTROL = 3
"""GGUF's type of control tokens, which ordinary text cannot contain."""


def read_tokenizer(weights: Path) -> Any:
    """The file's byte-level BPE tokenizer, for transformers; a `ConfigError` if it has another kind."""
    import gguf
    from tokenizers import Tokenizer, decoders
    from tokenizers.models import BPE
    from transformers import PreTrainedTokenizerFast

    fields = gguf.GGUFReader(weights).fields

    def metadata(key: str) -> Any:
        field = fields.get(f"tokenizer.{key}")
        return None if field is None else field.contents()

    if metadata("ggml.model") != "gpt2":
        raise ConfigError(
            f"{weights.name} cannot be converted: its tokenizer is not byte-level BPE; train from a folder"
        )
    tokens, merges = metadata("ggml.tokens"), [tuple(merge.split(" ")) for merge in metadata("ggml.merges")]
    backend = Tokenizer(BPE({token: token_id for token_id, token in enumerate(tokens)}, merges))
    backend.normalizer, backend.pre_tokenizer = _pre_tokenizer(str(metadata("ggml.pre")), weights)
    backend.decoder = decoders.ByteLevel()
    types = metadata("ggml.token_type")
    backend.add_special_tokens([token for token, type_ in zip(tokens, types, strict=True) if type_ == CONTROL])
    ids = {name: metadata(f"ggml.{key}_token_id") for name, key in SPECIAL_TOKENS.items()}
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        **{name: tokens[token_id] for name, token_id in ids.items() if token_id is not None},
    )
    tokenizer.chat_template = metadata("chat_template")
    return tokenizer


def _pre_tokenizer(name: str, weights: Path) -> tuple[Any, Any]:
    """The normalizer and the pre-tokenizer, by llama.cpp's name for the latter."""
    from tokenizers import Regex, normalizers
    from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence, Split

    if name in SPLIT_DIGITS:
        return None, Sequence([Digits(individual_digits=True), ByteLevel(add_prefix_space=False)])
    if name == "gpt-2":
        return None, ByteLevel(add_prefix_space=False)
    if name == "qwen2":
        split = Split(Regex(QWEN2_PATTERN), "isolated")
        return normalizers.NFC(), Sequence([split, ByteLevel(add_prefix_space=False, use_regex=False)])
    raise ConfigError(f"{weights.name} cannot be converted: unknown pre-tokenizer '{name}'; train from a folder")
