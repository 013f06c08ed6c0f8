"""A trained folder as one model.gguf, with which `local/FOLDER` runs everywhere in Parley.

Llama's, Mistral's and Qwen2's architectures with a byte-level BPE tokenizer. Weights are written as 32-bit floats (16
where asked for): what llama.cpp then computes agrees with transformers, and with 16 it does not (docs/training.md has
the figures). bf16 is not offered: its steps are larger than most of what training changes in a weight.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from parley.agents import ParleyError
from parley.training.base import need_same_end

NAME = "model.gguf"
ARCHITECTURES = {"LlamaForCausalLM": "llama", "MistralForCausalLM": "llama", "Qwen2ForCausalLM": "qwen2"}
INNER = {
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
OUTER = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
}


def why_not(folder: Path) -> str | None:
    """Why a folder cannot be written as GGUF, or None if it can."""
    config = json.loads((folder / "config.json").read_text("utf-8"))
    kind = (config.get("architectures") or [""])[0]
    if kind not in ARCHITECTURES:
        return f"{kind or 'its architecture'} is not one of {', '.join(ARCHITECTURES)}"
    if (config.get("rope_parameters") or {}).get("rope_type", "default") != "default":
        return "its rotary embedding is scaled"
    if not (folder / "tokenizer.json").is_file():
        return "it has no tokenizer.json"
    try:
        _pre(json.loads((folder / "tokenizer.json").read_text("utf-8")))
    except ValueError as error:
        return str(error)
    return None


def write_gguf(folder: Path, *, short: bool = False) -> Path:
    """`folder`/model.gguf; a half-written one never has that name."""
    import gguf

    if why := why_not(folder):
        raise ParleyError(f"{folder} cannot be written as GGUF: {why}; serve the folder with vLLM instead (vllm/…)")
    config = json.loads((folder / "config.json").read_text("utf-8"))
    kind = ARCHITECTURES[config["architectures"][0]]
    part = folder / f"{NAME}.part"
    writer = gguf.GGUFWriter(part, kind)
    _add_shape(writer, config, kind)
    _add_tokenizer(writer, folder, config)
    for name, values in _tensors(folder, config, kind):
        writer.add_tensor(name, _shortened(values) if short else values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return part.replace(folder / NAME)


def _add_shape(writer: Any, config: dict[str, Any], kind: str) -> None:
    heads = config["num_attention_heads"]
    writer.add_name(f"parley {kind}")
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(heads)
    writer.add_head_count_kv(config.get("num_key_value_heads") or heads)
    writer.add_rope_dimension_count(config.get("head_dim") or config["hidden_size"] // heads)
    writer.add_rope_freq_base(_theta(config))
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_vocab_size(config["vocab_size"])


def _theta(config: dict[str, Any]) -> float:
    rope = config.get("rope_parameters") or {}
    return float(rope.get("rope_theta") or config.get("rope_theta") or 10000.0)


def _add_tokenizer(writer: Any, folder: Path, config: dict[str, Any]) -> None:
    import gguf
    from transformers import AutoTokenizer

    data = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    tokenizer = AutoTokenizer.from_pretrained(str(folder))
    need_same_end(tokenizer, str(folder))
    special = {one["id"] for one in data["added_tokens"] if one["special"]}
    added = {one["id"] for one in data["added_tokens"]} - special
    named = {number: token for token, number in tokenizer.get_vocab().items()}
    kinds = gguf.TokenType
    tokens, types = [], []
    for number in range(config["vocab_size"]):
        tokens.append(named.get(number, f"[PAD{number}]"))
        types.append(
            kinds.UNUSED
            if number not in named
            else kinds.CONTROL
            if number in special
            else kinds.USER_DEFINED
            if number in added
            else kinds.NORMAL
        )
    merges = [one if isinstance(one, str) else " ".join(one) for one in data["model"]["merges"]]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(_pre(data))
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges(merges)
    writer.add_eos_token_id(tokenizer.eos_token_id)
    writer.add_pad_token_id(tokenizer.pad_token_id)
    if tokenizer.bos_token_id is not None:
        writer.add_bos_token_id(tokenizer.bos_token_id)
    writer.add_add_bos_token(tokenizer("")["input_ids"][:1] == [tokenizer.bos_token_id])
    writer.add_chat_template(tokenizer.chat_template)


def _pre(data: dict[str, Any]) -> str:
    """llama.cpp's name for how a text is cut before it is merged; ValueError if it has none for this way."""
    pre = data.get("pre_tokenizer") or {}
    steps = pre.get("pretokenizers", [pre])
    kinds = [step.get("type") for step in steps]
    if data["model"].get("type") != "BPE" or "ByteLevel" not in kinds:
        raise ValueError("its tokenizer is not byte-level BPE")
    first = data.get("normalizer") or {}
    if [one for one in first.get("normalizers", [first]) if one.get("type") not in (None, "NFC")]:
        raise ValueError("its tokenizer changes texts before it reads them")
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
    raise ValueError("its tokenizer cuts texts in a way llama.cpp has no name for")


def _tensors(folder: Path, config: dict[str, Any], kind: str) -> Iterator[tuple[str, Any]]:
    import numpy as np
    import torch
    from safetensors import safe_open

    heads = config["num_attention_heads"]
    groups = {"attn_q": heads, "attn_k": config.get("num_key_value_heads") or heads}
    for file in sorted(folder.glob("*.safetensors")):
        with safe_open(file, framework="pt") as weights:
            for name in weights.keys():  # noqa: SIM118 (it is no dictionary)
                if name == "lm_head.weight" and config.get("tie_word_embeddings"):
                    continue
                target = _target(name)
                values = weights.get_tensor(name).to(torch.float32).numpy()
                short = target.split(".")[-2]
                if kind == "llama" and short in groups:
                    values = _halves_interleaved(values, groups[short])
                yield target, np.ascontiguousarray(values)


def _shortened(values: Any) -> Any:
    """Matrices in 16 bits, where all their numbers fit; what has one dimension stays as it is, as llama.cpp asks."""
    import numpy as np

    fits = values.ndim > 1 and np.abs(values).max() <= np.finfo(np.float16).max
    return values.astype(np.float16) if fits else values


def _target(name: str) -> str:
    if name in OUTER:
        return OUTER[name]
    _, _, layer, rest = name.split(".", 3)
    module, _, end = rest.rpartition(".")
    return f"blk.{layer}.{INNER[module]}.{end}"


def _halves_interleaved(values: Any, heads: int) -> Any:
    """transformers rotates the halves of a head against each other, llama.cpp rotates neighbours."""
    shape = values.shape
    return values.reshape(heads, 2, shape[0] // heads // 2, *shape[1:]).swapaxes(1, 2).reshape(shape)
