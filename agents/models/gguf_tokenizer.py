"""The tokenizer inside a GGUF file, made from the file's own words: tokens, merges, and which of them end and pad.

transformers reads GGUF too, and what it makes of a tokenizer changes from version to version: digits that are no longer
read one by one, an end token that begins a turn. Nothing is left to it here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from parley.agents.errors import ConfigError

DIGITS = ("smollm", "starcoder", "refact", "command-r")
"""llama.cpp's names of tokenizers that read digits one by one: "40-year-old" is otherwise words never seen."""
QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""How Qwen2's vocabulary cuts texts, as its tokenizer.json says."""
NAMED = {"bos_token": "bos", "eos_token": "eos", "pad_token": "padding", "unk_token": "unknown"}
CONTROL = 3
"""The kind of token that texts cannot hold."""


def read_tokenizer(weights: Path) -> Any:
    """A byte-level BPE tokenizer as transformers uses it; one line about a file that has another."""
    import gguf
    from tokenizers import Tokenizer, decoders
    from tokenizers.models import BPE
    from transformers import PreTrainedTokenizerFast

    fields = gguf.GGUFReader(weights).fields

    def said(key: str) -> Any:
        field = fields.get(f"tokenizer.{key}")
        return None if field is None else field.contents()

    if said("ggml.model") != "gpt2":
        raise ConfigError(
            f"{weights.name} cannot be unpacked: its tokenizer is not byte-level BPE; train from a folder"
        )
    tokens, merges = said("ggml.tokens"), [tuple(one.split(" ")) for one in said("ggml.merges")]
    backend = Tokenizer(BPE({token: number for number, token in enumerate(tokens)}, merges))
    backend.normalizer, backend.pre_tokenizer = _cuts(str(said("ggml.pre")), weights)
    backend.decoder = decoders.ByteLevel()
    kinds = said("ggml.token_type")
    backend.add_special_tokens([token for token, kind in zip(tokens, kinds, strict=True) if kind == CONTROL])
    numbers = {name: said(f"ggml.{key}_token_id") for name, key in NAMED.items()}
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        **{name: tokens[number] for name, number in numbers.items() if number is not None},
    )
    tokenizer.chat_template = said("chat_template")
    return tokenizer


def _cuts(name: str, weights: Path) -> tuple[Any, Any]:
    """What is done to a text before it is merged, by llama.cpp's name for it: a normalizer, a pre-tokenizer."""
    from tokenizers import Regex, normalizers
    from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence, Split

    if name in DIGITS:
        return None, Sequence([Digits(individual_digits=True), ByteLevel(add_prefix_space=False)])
    if name == "gpt-2":
        return None, ByteLevel(add_prefix_space=False)
    if name == "qwen2":
        split = Split(Regex(QWEN2), "isolated")
        return normalizers.NFC(), Sequence([split, ByteLevel(add_prefix_space=False, use_regex=False)])
    raise ConfigError(f"{weights.name} cannot be unpacked: texts are cut as '{name}' does; train from a folder")
