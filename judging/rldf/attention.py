"""Where a model looks when it is asked about its biases: attention on the words of the framing (RLDF's figure 2).

    parley attention runs/framing-….sqlite

Only for local weights: a Llama-like model read by transformers (`pip install "parley-autogen[attention]"`), a .gguf
file or a folder. Measured at the last token of the prompt, from which the reply begins. The first token of a text draws
most attention whatever it is (an "attention sink"), so shares are given with it left out, and beside what even
attention over all other tokens would give the framing: framings have different lengths.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from parley.agents import ConfigError

MISSING = "attention needs weights in transformers: pip install 'parley-autogen[attention]'"


@dataclass(frozen=True, slots=True)
class Looked:
    """Attention from the prompt's end to a phrase in it, averaged over heads, one number a layer and their mean."""

    tokens: int
    phrase_tokens: int
    share: float
    """Of the attention on all tokens but the first."""
    even: float
    """What the share would be if all those tokens got the same."""
    by_layer: tuple[float, ...]
    by_token: tuple[tuple[str, float], ...]
    """The phrase's tokens with the attention on each, averaged over layers."""


@dataclass(frozen=True, slots=True)
class AttentionWeights:
    model: Any
    tokenizer: Any

    @classmethod
    def load(cls, path: Path) -> AttentionWeights:
        try:
            import torch
            from transformers import AutoModelForCausalLM, AutoTokenizer
            from transformers.utils import logging
        except ModuleNotFoundError:
            raise ConfigError(MISSING) from None
        if not path.exists():
            raise ConfigError(f"there are no weights at {path}")
        logging.disable_progress_bar()
        where = {"gguf_file": path.name} if path.is_file() else {}
        folder = str(path.parent if path.is_file() else path)
        try:
            tokenizer = AutoTokenizer.from_pretrained(folder, **where)
            model = AutoModelForCausalLM.from_pretrained(
                folder, dtype=torch.float32, attn_implementation="eager", **where
            )
        except (OSError, ValueError, KeyError, ImportError) as error:
            raise ConfigError(f"{path} cannot be read by transformers: {' '.join(str(error).split())[:200]}") from None
        model.eval()
        return cls(model, tokenizer)

    def looks_at(self, chat: Sequence[Mapping[str, str]], phrase: str) -> Looked:
        """How much of the last token's attention the phrase gets."""
        import torch

        text = self.tokenizer.apply_chat_template(list(chat), add_generation_prompt=True, tokenize=False)
        start = text.find(phrase)
        assert start >= 0, "the phrase stands in the prompt"
        read = self.tokenizer(text, return_offsets_mapping=True, return_tensors="pt", add_special_tokens=False)
        places = read.pop("offset_mapping")[0].tolist()
        inside = [n for n, (low, high) in enumerate(places) if low < start + len(phrase) and high > start]
        with torch.no_grad():
            layers = self.model(input_ids=read["input_ids"], output_attentions=True, use_cache=False).attentions
        # (layers, tokens): the last token's attention, heads averaged, the first token left out and the rest to one.
        last = torch.stack([layer[0, :, -1, :].mean(dim=0) for layer in layers])
        last[:, 0] = 0
        last = last / last.sum(dim=1, keepdim=True)
        by_layer = last[:, inside].sum(dim=1)
        each = last.mean(dim=0)
        return Looked(
            tokens=len(places),
            phrase_tokens=len(inside),
            share=float(by_layer.mean()),
            even=len(inside) / (len(places) - 1),
            by_layer=tuple(float(one) for one in by_layer),
            by_token=tuple((text[slice(*places[n])], float(each[n])) for n in inside),
        )
