"""CUDA graphs: every input reaches the captured step, whatever the format of a model's masks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

WHY = "models on transformers are tested where parley-autogen[training] is installed"
torch = pytest.importorskip("torch", reason=WHY)
transformers = pytest.importorskip("transformers", reason=WHY)

from parley.agents.models import cuda_graphs  # noqa: E402


class SimulatedGraph(cuda_graphs.CudaGraphModel):
    """A CUDA graph without a GPU: a replay uses the tensors it was captured with, and no others."""

    replays = 0

    def warm_up(self, inputs: dict[str, Any]) -> Any:
        return self.model(**inputs)

    def capture(self, inputs: dict[str, Any]) -> Callable[[], Any]:
        def replay() -> Any:
            type(self).replays += 1
            return self.model(**inputs)

        return replay


def qwen(tiny: Path) -> Any:
    """Its masks are in a dict, one per type of layer."""
    config = transformers.Qwen2Config(
        vocab_size=600, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, bos_token_id=0, eos_token_id=1, pad_token_id=0,
    )  # fmt: skip
    torch.manual_seed(0)
    return transformers.Qwen2ForCausalLM(config)


def llama(tiny: Path) -> Any:
    return transformers.AutoModelForCausalLM.from_pretrained(tiny)


@pytest.fixture
def simulated_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Graphs can be captured on this machine too."""
    monkeypatch.setattr(cuda_graphs, "can_capture", lambda model: True)
    monkeypatch.setattr(cuda_graphs, "CudaGraphModel", SimulatedGraph)


IDS = torch.tensor([[0, 0, 0, 5, 6, 7], [8, 9, 10, 11, 12, 13]])
ANY_DEVICE = transformers.CompileConfig()
ANY_DEVICE._compile_all_devices = True


def generate(model: Any, **kwargs: Any) -> list[list[int]]:
    inputs = {"input_ids": IDS, "attention_mask": (IDS > 0).long(), "max_new_tokens": 20, "do_sample": False}
    with torch.no_grad():
        return model.generate(**inputs, **kwargs).tolist()  # type: ignore[no-any-return]


@pytest.mark.parametrize("make", [llama, qwen])
@pytest.mark.parametrize("mixed", [False, True], ids=["32 bits", "mixed"])
def test_the_generated_tokens_are_the_same(
    simulated_gpu: None, tiny: Path, make: Callable[[Path], Any], mixed: bool
) -> None:
    model = make(tiny).eval()
    with torch.autocast("cpu", torch.bfloat16, enabled=mixed):
        plain, before = generate(model), SimulatedGraph.replays
        with cuda_graphs.cuda_graph_decoding(model, 26) as extra:
            assert generate(model, compile_config=ANY_DEVICE, **extra) == plain
    assert SimulatedGraph.replays - before >= 16, "the steps were not replayed"
    assert "get_compiled_call" not in vars(model), "a model that refers to itself is never freed"


def test_adapters_use_the_graph_of_their_base(simulated_gpu: None, tiny: Path) -> None:
    peft = pytest.importorskip("peft")
    model = peft.get_peft_model(llama(tiny), peft.LoraConfig(r=2, target_modules=["q_proj"])).eval()
    plain, before = generate(model), SimulatedGraph.replays
    with cuda_graphs.cuda_graph_decoding(model, 26) as extra:
        assert generate(model, compile_config=ANY_DEVICE, **extra) == plain
    assert SimulatedGraph.replays - before >= 16


def test_a_trainers_generation_uses_the_graph_and_nothing_else_does(simulated_gpu: None, tiny: Path) -> None:
    from parley.training.generation import use_cuda_graphs

    model = llama(tiny).eval()
    config = transformers.GenerationConfig(
        max_new_tokens=20,
        do_sample=False,
        disable_compile=True,
        compile_config=ANY_DEVICE,
        eos_token_id=1,
        pad_token_id=0,
    )
    accelerator = SimpleNamespace(unwrap_model=lambda given: given)
    use_cuda_graphs(
        SimpleNamespace(accelerator=accelerator, model=model, generation_config=config, max_completion_length=20)
    )
    before = SimulatedGraph.replays
    generated = model.generate(input_ids=IDS, attention_mask=(IDS > 0).long(), generation_config=config).tolist()
    assert SimulatedGraph.replays - before >= 16
    after = SimulatedGraph.replays
    assert generate(model, eos_token_id=1, pad_token_id=0) == generated
    assert SimulatedGraph.replays == after, "a probe does its own sampling"


def test_what_cannot_be_captured_runs_normally(tiny: Path) -> None:
    with cuda_graphs.cuda_graph_decoding(llama(tiny), 20) as extra:
        assert extra == {}, "this is not a GPU"
    calls: list[dict[str, Any]] = []
    graph = SimulatedGraph(lambda **inputs: calls.append(inputs))
    for step in range(3):
        graph(input_ids=torch.tensor([step]), states=[torch.tensor([step])])
    assert [int(inputs["input_ids"]) for inputs in calls] == [0, 1, 2], "a list of tensors cannot be captured"
    for step, flag in enumerate((True, True, False, True)):
        graph(input_ids=torch.tensor([step]), use_cache=flag)
    assert [inputs["use_cache"] for inputs in calls[3:]] == [True, True, False, True]
