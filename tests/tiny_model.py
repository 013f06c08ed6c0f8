"""A language model of a few thousand random weights that reads bytes, as a GGUF file: it says nonsense, at once.

What llama.cpp does around a model (slots, batches, kept prefixes, grammars) can be tested on it in milliseconds.
"""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np

WIDTH, HEADS, INNER = 32, 2, 64
TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")


def _letters() -> list[str]:
    """The printable letters that stand for the 256 bytes in a byte-level vocabulary (GPT-2's)."""
    plain = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    return [chr(byte) if byte in plain else chr(256 + sum(b not in plain for b in range(byte))) for byte in range(256)]


def write_tiny_model(path: Path, context: int = 16_384) -> Path:
    letters = _letters()
    merged = letters[ord(" ")] + "t"
    tokens = [*SPECIAL, *letters, merged]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny")
    writer.add_context_length(context)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(1)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types([gguf.TokenType.CONTROL] * len(SPECIAL) + [gguf.TokenType.NORMAL] * (len(letters) + 1))
    writer.add_token_merges([f"{letters[ord(' ')]} t"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_pad_token_id(0)
    writer.add_add_bos_token(False)
    writer.add_chat_template(TEMPLATE)
    rng = np.random.default_rng(0)

    def add(name: str, *shape: int) -> None:
        values = np.ones(shape) if len(shape) == 1 else rng.normal(0, 0.3, shape)
        writer.add_tensor(f"{name}.weight", values.astype(np.float32))

    add("token_embd", len(tokens), WIDTH)
    add("output_norm", WIDTH)
    add("output", len(tokens), WIDTH)
    for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
        add(f"blk.0.{name}", WIDTH, WIDTH)
    add("blk.0.ffn_gate", INNER, WIDTH)
    add("blk.0.ffn_up", INNER, WIDTH)
    add("blk.0.ffn_down", WIDTH, INNER)
    add("blk.0.attn_norm", WIDTH)
    add("blk.0.ffn_norm", WIDTH)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
