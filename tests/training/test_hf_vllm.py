"""`hf/FOLDER?engine=vllm`: the same replies as by transformers, one engine for one model, and clear errors."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import pytest
from autogen_core.models import UserMessage
from pydantic import BaseModel, Field

WHY = "models on transformers are tested where parley-autogen[training] is installed"
pytest.importorskip("torch", reason=WHY)
pytest.importorskip("trl", reason=WHY)
pytest.importorskip("llguidance", reason=WHY)

from parley.agents import ConfigError, model  # noqa: E402
from parley.agents.models import vllm_engine  # noqa: E402
from parley.training.config import TrainConfig  # noqa: E402
from tests.training import vllm_stand_in  # noqa: E402


@pytest.fixture
def vllm(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    stand_in = vllm_stand_in.module()
    monkeypatch.setitem(sys.modules, "vllm", stand_in)
    monkeypatch.setattr(vllm_engine, "_idle", None)
    yield stand_in
    if vllm_engine._idle is not None:
        vllm_engine._idle.shut_down()


def replies(name: str, calls: list[dict[str, Any]], schema: type[BaseModel] | None = None) -> list[Any]:
    async def create_all() -> list[Any]:
        client = model(name)
        try:
            create = [
                client.create(
                    [UserMessage(content="Are buses good? " * (1 + n), source="u")],
                    json_output=schema,
                    extra_create_args=call,
                )
                for n, call in enumerate(calls)
            ]
            return await asyncio.gather(*create, return_exceptions=True)
        finally:
            await client.close()

    return asyncio.run(create_all())


GREEDY = [{"temperature": 0.0, "max_tokens": 4 + 2 * n, "logprobs": True} for n in range(5)]


def test_greedy_replies_and_log_probabilities_are_those_of_transformers(vllm: Any, tiny: Path) -> None:
    plain, by_vllm = replies(f"hf/{tiny}", GREEDY), replies(f"hf/{tiny}?engine=vllm", GREEDY)
    assert [reply.content for reply in by_vllm] == [reply.content for reply in plain]
    assert [reply.usage for reply in by_vllm] == [reply.usage for reply in plain]
    for ours, theirs in zip(by_vllm, plain, strict=True):
        for mine, other in zip(ours.logprobs, theirs.logprobs, strict=True):
            assert mine.token == other.token
            assert mine.logprob == pytest.approx(other.logprob, abs=1e-4)
    assert vllm.LLMEngine.made[0].most_at_once > 1, "calls share the engine's batch"


class Answer(BaseModel):
    choice: Literal["A", "B"]
    score: int = Field(ge=0, le=100)


def test_constrained_replies_are_those_of_transformers(vllm: Any, tiny: Path) -> None:
    call = {"temperature": 0.0, "max_tokens": 40}
    plain, by_vllm = (replies(name, [call] * 3, Answer) for name in (f"hf/{tiny}", f"hf/{tiny}?engine=vllm"))
    assert [reply.content for reply in by_vllm] == [reply.content for reply in plain]
    assert all(re.fullmatch(r'\{"choice": "[AB]", "score": \d+\}', reply.content) for reply in by_vllm)


def test_the_engine_stays_for_the_same_model_and_makes_room_for_another(vllm: Any, tiny: Path) -> None:
    for name in (f"hf/{tiny}?engine=vllm", f"hf/{tiny}?engine=vllm", f"hf/{tiny}?engine=vllm&context=128"):
        replies(name, GREEDY[:1])
    first, second = vllm.LLMEngine.made
    assert (first.open, second.open, second.args.max_model_len) == (False, True, 128)


def test_a_refused_call_fails_alone(vllm: Any, tiny: Path) -> None:
    good, bad = replies(f"hf/{tiny}?engine=vllm", [{"max_tokens": 4}, {"max_tokens": 13}])
    assert isinstance(good.content, str)
    assert isinstance(bad, Exception)
    assert "13 tokens are refused" in str(bad)


def test_a_cancelled_call_leaves_the_batch(vllm: Any, tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vllm.LLMEngine, "seconds_per_step", 0.02)
    message = [UserMessage(content="Are buses good?", source="u")]

    async def cancel() -> None:
        client = model(f"hf/{tiny}?engine=vllm")
        await client.prepare()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(client.create(message, extra_create_args={"max_tokens": 100}), 0.1)
        await client.create(message, extra_create_args={"max_tokens": 4})
        await client.close()

    asyncio.run(cancel())
    assert vllm.LLMEngine.made[0].aborted == ["0"]


@pytest.mark.skipif(find_spec("vllm") is not None, reason="vLLM is installed here")
def test_without_vllm_one_line_says_so(tiny: Path) -> None:
    async def prepare() -> None:
        await model(f"hf/{tiny}?engine=vllm").prepare()

    with pytest.raises(ConfigError, match="engine=vllm needs vLLM: pip install vllm"):
        asyncio.run(prepare())


def test_evaluations_run_on_it(tiny: Path) -> None:
    from parley.jobs.evaluation import model_name

    config = TrainConfig(data="pairs", inference_backend="vllm")
    assert model_name(tiny, config) == f"hf/{tiny}?engine=vllm"
