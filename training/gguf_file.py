"""Writes a model folder as one model.gguf, which `local/FOLDER` runs.

For the architectures of Llama, Mistral and Qwen2 with a byte-level BPE tokenizer. Weights are written as 32-bit floats:
with them llama.cpp agrees with transformers, with 16 bits it changed 11 of 12 greedy replies of SmolLM2 on ARM. bf16
would round away most of what training changes in a weight.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from parley.base.errors import ParleyError
from parley.base.files import new_path
from parley.training.base_model import require_matching_eos

FILE_NAME = "model.gguf"
# Only these architectures: as GGUF, base and policy run in the same software, with grammars, batching and a prefix
# cache, and differ only in their weights. vLLM can serve others.
ARCHITECTURES = {"LlamaForCausalLM": "llama", "MistralForCausalLM": "llama", "Qwen2ForCausalLM": "qwen2"}
LAYER_TENSORS = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}
OTHER_TENSORS = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
}


def why_no_gguf(folder: Path) -> str | None:
    """Why a folder cannot be written as GGUF, or None if it can."""
    config = json.loads((folder / "config.json").read_text("utf-8"))
    kind = (config.get("architectures") or [""])[0]
    if kind not in ARCHITECTURES:
        return f"the architecture {kind or '(none named)'} is not one of {', '.join(ARCHITECTURES)}"
    if (config.get("rope_parameters") or {}).get("rope_type", "default") != "default":
        return "its rotary embedding is scaled, which is not supported"
    if not (folder / "tokenizer.json").is_file():
        return "it has no tokenizer.json"
    try:
        _pre_tokenizer_name(json.loads((folder / "tokenizer.json").read_text("utf-8")))
    except ValueError as error:
        return str(error)
    return None


def write_gguf(folder: Path) -> Path:
    """Write `folder`/model.gguf, under a temporary name until it is complete.

    Args:
        folder: A model and its tokenizer, as transformers saves them.
    """
    import gguf

    if why := why_no_gguf(folder):
        raise ParleyError(f"{folder} cannot be written as GGUF: {why}; serve the folder with vLLM instead (vllm/…)")
    config = json.loads((folder / "config.json").read_text("utf-8"))
    kind = ARCHITECTURES[config["architectures"][0]]
    with new_path(folder / FILE_NAME) as part:
        writer = gguf.GGUFWriter(part, kind)
        _add_hyperparameters(writer, config, kind)
        _add_tokenizer(writer, folder, config)
        for name, values in _tensors(folder, config, kind):
            writer.add_tensor(name, values)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
    return folder / FILE_NAME


def _add_hyperparameters(writer: Any, config: dict[str, Any], kind: str) -> None:
    heads = config["num_attention_heads"]
    writer.add_name(f"parley {kind}")
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(heads)
    writer.add_head_count_kv(config.get("num_key_value_heads") or heads)
    writer.add_rope_dimension_count(config.get("head_dim") or config["hidden_size"] // heads)
    writer.add_rope_freq_base(_rope_theta(config))
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_vocab_size(config["vocab_size"])


def _rope_theta(config: dict[str, Any]) -> float:
    rope = config.get("rope_parameters") or {}
    return float(rope.get("rope_theta") or config.get("rope_theta") or 10000.0)


def _add_tokenizer(writer: Any, folder: Path, config: dict[str, Any]) -> None:
    import gguf
    from transformers import AutoTokenizer

    data = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    tokenizer = AutoTokenizer.from_pretrained(str(folder))
    require_matching_eos(tokenizer, str(folder))
    special = {token["id"] for token in data["added_tokens"] if token["special"]}
    added = {token["id"] for token in data["added_tokens"]} - special
    vocabulary = {token_id: token for token, token_id in tokenizer.get_vocab().items()}
    kinds = gguf.TokenType
    tokens, types = [], []
    for token_id in range(config["vocab_size"]):
        tokens.append(vocabulary.get(token_id, f"[PAD{token_id}]"))
        types.append(
            kinds.UNUSED
            if token_id not in vocabulary
            else kinds.CONTROL
            if token_id in special
            else kinds.USER_DEFINED
            if token_id in added
            else kinds.NORMAL
        )
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in data["model"]["merges"]]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(_pre_tokenizer_name(data))
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges(merges)
    writer.add_eos_token_id(tokenizer.eos_token_id)
    writer.add_pad_token_id(tokenizer.pad_token_id)
    if tokenizer.bos_token_id is not None:
        writer.add_bos_token_id(tokenizer.bos_token_id)
    writer.add_add_bos_token(tokenizer("")["input_ids"][:1] == [tokenizer.bos_token_id])
    writer.add_chat_template(tokenizer.chat_template)


def _pre_tokenizer_name(data: dict[str, Any]) -> str:
    """llama.cpp's name for the tokenizer's pre-tokenizer; ValueError if it has none."""
    pre = data.get("pre_tokenizer") or {}
    steps = pre.get("pretokenizers", [pre])
    kinds = [step.get("type") for step in steps]
    if data["model"].get("type") != "BPE" or "ByteLevel" not in kinds:
        raise ValueError("its tokenizer is not byte-level BPE")
    normalizer = data.get("normalizer") or {}
    if any(step.get("type") not in (None, "NFC") for step in normalizer.get("normalizers", [normalizer])):
        raise ValueError("its tokenizer normalizes texts, which llama.cpp does not")
    if kinds == ["ByteLevel"] and steps[0].get("use_regex"):
        return "gpt-2"
    if kinds == ["Digits", "ByteLevel"] and steps[0].get("individual_digits"):
        return "smollm"
    if kinds == ["Split", "ByteLevel"]:
        pattern = str(steps[0].get("pattern", {}).get("Regex", ""))
        if r"\p{N}{1,3}" in pattern:
            return "llama-bpe"
        if r"\p{N}" in pattern:
            return "qwen2"
    raise ValueError("llama.cpp does not have its pre-tokenizer")


def _tensors(folder: Path, config: dict[str, Any], kind: str) -> Iterator[tuple[str, Any]]:
    import numpy as np
    import torch
    from safetensors import safe_open

    heads = config["num_attention_heads"]
    head_counts = {"attn_q": heads, "attn_k": config.get("num_key_value_heads") or heads}
    for file in sorted(folder.glob("*.safetensors")):
        with safe_open(file, framework="pt") as weights:
            for name in weights.keys():  # noqa: SIM118 (not a dictionary)
                if name == "lm_head.weight" and config.get("tie_word_embeddings"):
                    continue
                gguf_name = _gguf_name(name)
                values = weights.get_tensor(name).to(torch.float32).numpy()
                module = gguf_name.split(".")[-2]
                if kind == "llama" and module in head_counts:
                    values = _interleave_halves(values, head_counts[module])
                yield gguf_name, np.ascontiguousarray(values)


def _gguf_name(name: str) -> str:
    if name in OTHER_TENSORS:
        return OTHER_TENSORS[name]
    _, _, layer, rest = name.split(".", 3)
    module, _, end = rest.rpartition(".")
    return f"blk.{layer}.{LAYER_TENSORS[module]}.{end}"


def _interleave_halves(values: Any, heads: int) -> Any:
    """Reorder a head's rows: rotary embeddings pair its two halves in transformers, and neighbours in llama.cpp."""
    shape = values.shape
    return values.reshape(heads, 2, shape[0] // heads // 2, *shape[1:]).swapaxes(1, 2).reshape(shape)
