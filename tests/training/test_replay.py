"""Replayed steps: every input reaches the recording, whatever shape a model gives its masks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

WHY = "models on transformers are tested where parley-autogen[training] is installed"
torch = pytest.importorskip("torch", reason=WHY)
transformers = pytest.importorskip("transformers", reason=WHY)

from parley.agents.models import cuda_graphs as replay  # noqa: E402


class Remembered(replay.Replayed):
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


@pytest.fixture
def recording(monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine records as a GPU does."""
    monkeypatch.setattr(replay, "can_record", lambda model: True)
    monkeypatch.setattr(replay, "Replayed", Remembered)


IDS = torch.tensor([[0, 0, 0, 5, 6, 7], [8, 9, 10, 11, 12, 13]])
ANYWHERE = transformers.CompileConfig()
ANYWHERE._compile_all_devices = True


def write(model: Any, **more: Any) -> list[list[int]]:
    asked = {"input_ids": IDS, "attention_mask": (IDS > 0).long(), "max_new_tokens": 20, "do_sample": False}
    with torch.no_grad():
        return model.generate(**asked, **more).tolist()  # type: ignore[no-any-return]


@pytest.mark.parametrize("make", [llama, qwen])
@pytest.mark.parametrize("mixed", [False, True], ids=["32 bits", "mixed"])
def test_what_is_written_is_the_same(recording: None, tiny: Path, make: Callable[[Path], Any], mixed: bool) -> None:
    model = make(tiny).eval()
    with torch.autocast("cpu", torch.bfloat16, enabled=mixed):
        plain, before = write(model), Remembered.steps
        with replay.replayed(model, 26) as fast:
            assert write(model, compile_config=ANYWHERE, **fast) == plain
    assert Remembered.steps - before >= 16, "the steps were not replayed"
    assert "get_compiled_call" not in vars(model), "a model that holds itself is never let go"


def test_adapters_are_replayed_by_their_base(recording: None, tiny: Path) -> None:
    peft = pytest.importorskip("peft")
    model = peft.get_peft_model(llama(tiny), peft.LoraConfig(r=2, target_modules=["q_proj"])).eval()
    plain, before = write(model), Remembered.steps
    with replay.replayed(model, 26) as fast:
        assert write(model, compile_config=ANYWHERE, **fast) == plain
    assert Remembered.steps - before >= 16


def test_a_trainers_answers_are_replayed_and_nothing_else(recording: None, tiny: Path) -> None:
    from parley.training.generation import use_cuda_graphs

    model = llama(tiny).eval()
    how = transformers.GenerationConfig(
        max_new_tokens=20,
        do_sample=False,
        disable_compile=True,
        compile_config=ANYWHERE,
        eos_token_id=1,
        pad_token_id=0,
    )
    accelerator = SimpleNamespace(unwrap_model=lambda given: given)
    use_cuda_graphs(
        SimpleNamespace(accelerator=accelerator, model=model, generation_config=how, max_completion_length=20)
    )
    before = Remembered.steps
    said = model.generate(input_ids=IDS, attention_mask=(IDS > 0).long(), generation_config=how).tolist()
    assert Remembered.steps - before >= 16
    after = Remembered.steps
    assert write(model, eos_token_id=1, pad_token_id=0) == said
    assert Remembered.steps == after, "a probe has draws of its own"


def test_what_cannot_be_recorded_is_written_plainly(tiny: Path) -> None:
    with replay.replayed(llama(tiny), 20) as fast:
        assert fast == {}, "this is no GPU"
    seen: list[dict[str, Any]] = []
    stand_in = Remembered(lambda **inputs: seen.append(inputs))
    for step in range(3):
        stand_in(input_ids=torch.tensor([step]), states=[torch.tensor([step])])
    assert [int(one["input_ids"]) for one in seen] == [0, 1, 2], "a list of tensors is not known, and changes"
    for step, flag in enumerate((True, True, False, True)):
        stand_in(input_ids=torch.tensor([step]), use_cache=flag)
    assert [one["use_cache"] for one in seen[3:]] == [True, True, False, True]
