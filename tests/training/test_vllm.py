"""RL's completions by vLLM: TRL gets its settings, and where vLLM is missing one line says so before training."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from parley.training.config import RlSettings, TrainConfig
from parley.training.stage_registry import find_stage
from parley.training.stages import stage_settings


def test_trl_is_given_vllm_in_the_same_process() -> None:
    trl = pytest.importorskip("trl")
    from parley.training.rl_trainers import vllm_arguments

    assert vllm_arguments(RlSettings(), 512) == {}
    settings = RlSettings(use_vllm=True, vllm_gpu_memory_utilization=0.5, max_completion_length=64)
    for name in ("RLOOConfig", "GRPOConfig"):
        args = getattr(trl, name)(output_dir="x", use_cpu=True, bf16=False, **vllm_arguments(settings, 512))
        assert (args.use_vllm, args.vllm_mode) == (True, "colocate")
        assert (args.vllm_gpu_memory_utilization, args.vllm_max_model_length) == (0.5, 576)


def test_another_sampler_gives_another_result() -> None:
    with_vllm = TrainConfig.model_validate({"data": "pairs", "rl": {"use_vllm": True}})
    rl = find_stage("rl")
    assert stage_settings(with_vllm, rl) != stage_settings(TrainConfig(data="pairs"), rl)


@pytest.mark.skipif(find_spec("vllm") is not None, reason="vLLM is installed here")
def test_where_vllm_is_missing_one_line_says_so_first(
    place: Path, tiny: Path, planted: Callable[..., Path], parley: Callable[..., Any]
) -> None:
    planted(80)
    arguments = ["train", "all"]
    for setting in ("data=pairs", f"base={tiny}", "min_pairs=4", "rl.use_vllm=true"):
        arguments += ["--set", setting]
    refused = parley(*arguments)
    assert refused.status == 2
    assert refused.complaints == [
        "parley: rl.use_vllm needs vLLM: pip install vllm (without it, set rl.use_vllm = false)"
    ]
    assert not (place / "trained" / "sft").exists(), "before anything is trained"
    other = parley(*arguments, "--set", "rl.algorithm=dpo")
    assert "rl.use_vllm: dpo does not generate with vLLM; rloo and grpo do" in other.complaints[0]
