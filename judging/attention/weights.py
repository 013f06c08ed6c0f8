"""Attention on the words of the framing when a model is asked about its biases (RLDF's figure 2).

    parley run attention --from runs/framing-….sqlite

Only for local weights, a Llama-like model read by transformers (extra `attention`), from a
.gguf file or a folder. Attention is measured at the last token of the prompt, where the reply begins. The first token
of a text always gets most of the attention (an "attention sink"), so it is excluded from the shares. Framings have
different lengths, so each share is given with the share under uniform attention over all other tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from parley.base.errors import ConfigError, install

MISSING = f"attention needs weights in transformers: {install('attention')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PhraseAttention:
    """Attention from the prompt's end to a phrase in it, averaged over heads.

    Args:
        tokens: Tokens of the prompt.
        phrase_tokens: Tokens of the phrase.
        share: The phrase's share of the attention on all tokens but the first, averaged over layers.
        even: The share under uniform attention over those tokens.
        by_layer: The share in each layer.
        by_token: The phrase's tokens with the attention on each, averaged over layers.
    """

    tokens: int
    phrase_tokens: int
    share: float
    even: float
    by_layer: tuple[float, ...]
    by_token: tuple[tuple[str, float], ...]


def require_weights(path: Path) -> None:
    """ConfigError, before anything is run, if transformers or the weights are missing."""
    if find_spec("torch") is None or find_spec("transformers") is None:
        raise ConfigError(MISSING)
    if not path.exists():
        raise ConfigError(f"there are no weights at {path}")


@dataclass(frozen=True, slots=True)
class AttentionWeights:
    """A model whose attention weights can be read."""

    model: Any
    tokenizer: Any

    @classmethod
    def load(cls, path: Path) -> AttentionWeights:
        """Load the model of a .gguf file or a folder."""
        require_weights(path)
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer
        from transformers.utils import logging

        logging.disable_progress_bar()
        gguf = {"gguf_file": path.name} if path.is_file() else {}
        folder = str(path.parent if path.is_file() else path)
        try:
            tokenizer = AutoTokenizer.from_pretrained(folder, **gguf)
            model = AutoModelForCausalLM.from_pretrained(
                folder, dtype=torch.float32, attn_implementation="eager", **gguf
            )
        except (OSError, ValueError, KeyError, ImportError) as error:
            raise ConfigError(f"{path} cannot be read by transformers: {' '.join(str(error).split())[:200]}") from None
        model.eval()
        return cls(model, tokenizer)

    def attention_to(self, chat: Sequence[Mapping[str, str]], phrase: str) -> PhraseAttention:
        """The share of the last token's attention that a phrase gets.

        Args:
            chat: The messages before the reply, with `role` and `content`.
            phrase: Words that occur in the chat.
        """
        import torch

        text = self.tokenizer.apply_chat_template(list(chat), add_generation_prompt=True, tokenize=False)
        start = text.find(phrase)
        assert start >= 0, "the phrase must occur in the prompt"
        encoded = self.tokenizer(text, return_offsets_mapping=True, return_tensors="pt", add_special_tokens=False)
        offsets = encoded.pop("offset_mapping")[0].tolist()
        inside = [n for n, (low, high) in enumerate(offsets) if low < start + len(phrase) and high > start]
        with torch.no_grad():
            layers = self.model(input_ids=encoded["input_ids"], output_attentions=True, use_cache=False).attentions
        # (layers, tokens): the last token's attention, averaged over heads, without the first token, normalised to 1.
        last = torch.stack([layer[0, :, -1, :].mean(dim=0) for layer in layers])
        last[:, 0] = 0
        last = last / last.sum(dim=1, keepdim=True)
        by_layer = last[:, inside].sum(dim=1)
        by_token = last.mean(dim=0)
        return PhraseAttention(
            tokens=len(offsets),
            phrase_tokens=len(inside),
            share=float(by_layer.mean()),
            even=len(inside) / (len(offsets) - 1),
            by_layer=tuple(float(share) for share in by_layer),
            by_token=tuple((text[slice(*offsets[n])], float(by_token[n])) for n in inside),
        )
