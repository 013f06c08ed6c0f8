"""Replayed steps: every input reaches the recording, whatever shape a model gives its masks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

WHY = "models on transformers are tested where parley[training] is installed"
torch = pytest.importorskip("torch", reason=WHY)
transformers = pytest.importorskip("transformers", reason=WHY)

from agents.models.replay import OfOneType, Replayed, replayed  # noqa: E402


class Remembered(Replayed):
    """A recording without a GPU: the inputs it was made with are used again, and no others."""

    steps = 0

    def first(self, inputs: dict[str, Any]) -> Any:
        return self.model(**inputs)

    def record(self, inputs: dict[str, Any]) -> Callable[[], Any]:
        def again() -> Any:
            type(self).steps += 1
            return self.model(**inputs)

        return again


def qwen(tiny: Path) -> Any:
    """Its masks come in a dict, one for each kind of layer."""
    config = transformers.Qwen2Config(
        vocab_size=600, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, bos_token_id=0, eos_token_id=1, pad_token_id=0,
    )  # fmt: skip
    torch.manual_seed(0)
    return transformers.Qwen2ForCausalLM(config)


def llama(tiny: Path) -> Any:
    return transformers.AutoModelForCausalLM.from_pretrained(tiny)


@pytest.mark.parametrize("make", [llama, qwen])
@pytest.mark.parametrize("mixed", [False, True], ids=["32 bits", "mixed"])
def test_what_is_written_is_the_same(tiny: Path, make: Callable[[Path], Any], mixed: bool) -> None:
    model = make(tiny).eval()
    ids = torch.tensor([[0, 0, 0, 5, 6, 7], [8, 9, 10, 11, 12, 13]])
    mask = (ids > 0).long()
    anywhere = transformers.CompileConfig()
    anywhere._compile_all_devices = True

    def write(**more: Any) -> list[list[int]]:
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=mixed):
            made = model.generate(input_ids=ids, attention_mask=mask, max_new_tokens=20, do_sample=False, **more)
        return made.tolist()  # type: ignore[no-any-return]

    plain = write()
    cache = transformers.StaticCache(config=model.config, max_cache_len=26)
    cache.layers = [OfOneType(26) for _ in cache.layers]
    model.get_compiled_call = lambda _: Remembered(model)
    before = Remembered.steps
    assert write(past_key_values=cache, compile_config=anywhere) == plain
    assert Remembered.steps - before >= 16, "the steps were not replayed"


def test_nothing_is_replayed_on_a_processor(tiny: Path) -> None:
    assert replayed(llama(tiny), 20) == {}
