"""LoRA throughout: stages save adapters of a few KB, and go on from them on another machine as on the first."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

WHY = "training is tested where the extra training is installed"
torch = pytest.importorskip("torch", reason=WHY)
pytest.importorskip("trl", reason=WHY)

CONFIG = """
base = "{base}"
data = "pairs"
max_length = 96
min_pairs = 4
use_peft = true
sft = {{ batch_size = 8, max_steps = 3, learning_rate = 1e-2 }}
reward = {{ batch_size = 8, max_steps = 3, learning_rate = 1e-2 }}

[rl]
topics_from = "debates"
batch_size = 2
num_generations = 2
learning_rate = 1e-2
max_steps = 2
max_completion_length = 8
allow_weak_reward = true
"""
SMALL_FILES = ("stage.json", "log.jsonl", "adapter_config.json", "adapter_model.safetensors")


@pytest.fixture
def prepared(place: Path, tiny: Path, planted: Callable[..., Path]) -> Path:
    torch.set_num_threads(1)
    planted(80)
    (place / "rldf.toml").write_text(CONFIG.format(base=tiny))
    return place


def adapter(folder: Path) -> dict[str, Any]:
    from safetensors.torch import load_file

    weights: dict[str, Any] = load_file(folder / "adapter_model.safetensors")
    return weights


def assert_the_merged_model_is_the_trained_one(prepared: Path, tiny: Path, parley: Callable[..., Any]) -> None:
    nothing = parley("train", "merge", "--config", "rldf.toml", "--out", "empty")
    assert "there is no finished policy with adapters in empty" in nothing.complaints[0]
    merged = parley("train", "merge", "--config", "rldf.toml", "--json")
    assert merged.json == {"merge": ["hf/trained/sft/merged", "hf/trained/rl/merged"]}

    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(tiny, dtype=torch.float32)
    for stage in ("sft", "rl"):
        model = PeftModel.from_pretrained(model, str(prepared / "trained" / stage)).merge_and_unload()
    loaded = AutoModelForCausalLM.from_pretrained(prepared / "trained" / "rl" / "merged", dtype=torch.float32)
    ids = torch.tensor([[5, 6, 7, 8]])
    assert torch.allclose(model(ids).logits, loaded(ids).logits, atol=1e-5)
    untrained = AutoModelForCausalLM.from_pretrained(tiny, dtype=torch.float32)
    assert not torch.allclose(untrained(ids).logits, loaded(ids).logits, atol=1e-2)

    weights = prepared / "trained" / "rl" / "merged" / "model.safetensors"
    written = weights.stat().st_mtime_ns
    assert parley("train", "merge", "--config", "rldf.toml").status == 0
    assert weights.stat().st_mtime_ns == written, "written once"


def test_stages_go_on_from_small_files_on_another_machine(
    prepared: Path, tiny: Path, parley: Callable[..., Any]
) -> None:
    whole = parley("train", "all", "--config", "rldf.toml", "--json")
    assert whole.status == 0, whole.err
    sizes = {path.name: path.stat().st_size for path in (prepared / "trained").rglob("*") if path.is_file()}
    assert not {"model.safetensors", "tokenizer.json", "README.md"} & set(sizes)
    head = adapter(prepared / "trained" / "reward")["base_model.model.score.weight"]
    assert head.shape == (1, 96), "the reward model's head is saved with its adapter"

    for done, stage in (("sft", "reward"), ("reward", "rl")):
        folder = prepared / "elsewhere" / done
        folder.mkdir(parents=True)
        for name in SMALL_FILES:
            shutil.copy(prepared / "trained" / done / name, folder)
        skipped = parley("train", done, "--config", "rldf.toml", "--out", "elsewhere")
        assert f"{done}: already done" in skipped.err
        resumed = parley("train", stage, "--config", "rldf.toml", "--out", "elsewhere", "--json")
        assert resumed.status == 0, resumed.err
        times = {"seconds": 0.0}
        assert resumed.json[stage] | times == whole.json[stage] | times
        before, after = (adapter(prepared / out / stage) for out in ("trained", "elsewhere"))
        assert before.keys() == after.keys()
        assert all(torch.equal(before[key], after[key]) for key in before), "the same weights, to the last bit"
        shutil.rmtree(prepared / "elsewhere" / stage)  # the next stage goes on from the copied files

    assert_the_merged_model_is_the_trained_one(prepared, tiny, parley)
