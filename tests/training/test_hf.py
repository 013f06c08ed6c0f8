"""`hf/FOLDER`: calls are answered together, and each gets what it would have got alone."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from autogen_core.models import AssistantMessage, LLMMessage, UserMessage
from pydantic import BaseModel

WHY = "models on transformers are tested where parley-autogen[training] is installed"
torch = pytest.importorskip("torch", reason=WHY)
pytest.importorskip("trl", reason=WHY)
pytest.importorskip("llguidance", reason=WHY)

from parley.agents import ConfigError, ModelError, ParleyError, model, scale, structured_reply  # noqa: E402


def asked(text: str) -> list[LLMMessage]:
    return [UserMessage(content=text, source="user")]


def talk(folder: Path, calls: Sequence[tuple[list[LLMMessage], dict[str, Any]]], **options: Any) -> list[Any]:
    """The replies to calls that are made all at once."""

    async def all_at_once() -> list[Any]:
        client = model(f"hf/{folder}", **options)
        try:
            return list(await asyncio.gather(*(client.create(one, extra_create_args=how) for one, how in calls)))
        finally:
            await client.close()

    return asyncio.run(all_at_once())


def test_what_a_call_is_given_does_not_depend_on_its_neighbours(tiny: Path) -> None:
    calls = [
        (asked("Are buses good? " * (1 + n)), {"seed": n, "temperature": 1.0 if n % 3 else 0.0, "max_tokens": 12})
        for n in range(9)
    ]
    together = [reply.content for reply in talk(tiny, calls)]
    alone = [reply.content for reply in talk(tiny, calls, max_connections=1)]
    assert together == alone
    other = [(one, how | {"seed": how["seed"] + 100}) for one, how in calls]
    drawn = [reply.content for reply in talk(tiny, other)]
    assert [new == old for new, old in zip(drawn, together, strict=True)] == [n % 3 == 0 for n in range(9)]


def test_greedy_replies_are_those_of_transformers(tiny: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer, plain = AutoTokenizer.from_pretrained(tiny), AutoModelForCausalLM.from_pretrained(tiny)
    (reply,) = talk(tiny, [(asked("Are parks good?"), {"temperature": 0.0, "max_tokens": 10, "logprobs": True})])
    chat = [{"role": "user", "content": "Are parks good?"}]
    ids = tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    said = plain.generate(**ids, max_new_tokens=10, do_sample=False)[0, ids["input_ids"].shape[1] :]
    assert reply.content == tokenizer.decode(said, skip_special_tokens=True)
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (ids["input_ids"].shape[1], 10)
    first = torch.log_softmax(plain(**ids).logits[0, -1].detach().float(), -1)
    assert reply.logprobs[0].logprob == pytest.approx(float(first.max()), abs=1e-3)
    assert len(reply.logprobs[0].top_logprobs) == 20


@pytest.mark.skipif(not torch.cuda.is_available(), reason="steps are recorded on CUDA devices only")
def test_replayed_steps_say_what_plain_ones_say(tiny: Path) -> None:
    calls = [
        (asked("Are trains good? " * (1 + n)), {"seed": n, "temperature": float(n % 2), "max_tokens": 24})
        for n in range(6)
    ]
    replayed = [reply.content for reply in talk(tiny, calls)]
    assert replayed == [reply.content for reply in talk(tiny, calls, replay=False)]


def test_tokens_are_drawn_with_their_probabilities() -> None:
    from parley.agents.models.hf import gumbel

    weights = torch.tensor([0.5, 0.3, 0.15, 0.05])
    seeds = torch.arange(20_000)
    drawn = (weights.log() + gumbel(seeds, 3, 4)).argmax(-1)
    shares = torch.bincount(drawn, minlength=4) / len(seeds)
    # Four standard errors of a share are at most 4 · sqrt(0.25 / 20,000) = 0.014.
    assert torch.allclose(shares, weights, atol=0.014)
    noise = gumbel(seeds, 0, 5)
    assert bool(torch.isfinite(noise).all())
    assert float(noise.mean()) == pytest.approx(0.5772, abs=0.02), "Euler's constant is the mean of Gumbel's noise"
    assert float(noise.var()) == pytest.approx(math.pi**2 / 6, rel=0.03)


def test_the_noise_is_splitmix64s() -> None:
    """Published outputs for the seed 1234567 (Rosetta Code, "Pseudo-random numbers/Splitmix64")."""
    from parley.agents.models.hf import GOLDEN, mixed

    counters = torch.tensor(1234567) + torch.arange(1, 6) * GOLDEN
    known = (6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821)
    assert [int(one) % 2**64 for one in mixed(counters)] == list(known)


class Scores(BaseModel):
    Sixty: scale(0, 10)  # type: ignore[valid-type]
    Forty: scale(0, 10)  # type: ignore[valid-type]


def test_replies_are_held_to_a_schema_and_read_as_expectations(tiny: Path) -> None:
    async def judge() -> Any:
        client = model(f"hf/{tiny}", max_tokens=40)
        how = {"temperature": 1.0}
        return await asyncio.gather(
            *(
                structured_reply(client, asked(f"Case {n}?"), Scores, readout="expected", options={**how, "seed": n})
                for n in range(4)
            ),
            structured_reply(client, asked("And in words?"), Scores, options={**how, "seed": 9}),
        )

    answers = asyncio.run(judge())
    assert {one.status for one in answers} == {"ok"}, "a model with random weights could not write JSON by itself"
    for one in answers[:4]:
        # Random weights need not have a digit among the likeliest tokens; then there is no expectation.
        assert set(one.expected) <= {"Sixty", "Forty"}
        assert all(0 <= mean <= 10 for mean in one.expected.values())


def test_a_begun_reply_is_continued(tiny: Path) -> None:
    begun = [*asked("Are games good?"), AssistantMessage(content="I say every", source="self")]
    how = {"temperature": 0.0, "max_tokens": 4}
    going, fresh = talk(tiny, [(begun, how), (asked("Are games good?"), how)])
    # No second turn is opened: beside the question there are the words begun, and no more marks than before.
    assert 0 < going.usage.prompt_tokens - fresh.usage.prompt_tokens <= len("I say every")


def test_what_cannot_work_is_said_in_one_line(tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match=r"has no config\.json"):
        model(f"hf/{tmp_path / 'empty'}")
    with pytest.raises(ConfigError, match="there is no folder"):
        model(f"hf/{tmp_path / 'none'}")
    (tmp_path / "empty" / "config.json").write_text("{}")
    with pytest.raises(ParleyError, match="cannot be loaded"):
        talk(tmp_path / "empty", [(asked("Hello?"), {})])
    with pytest.raises(ModelError, match=r"no answer within 0\.001 s"):
        talk(tiny, [(asked("Hello?"), {"max_tokens": 200})], timeout=0.001, retries=0)
    with pytest.raises(ModelError, match="pass 64"):
        talk(tiny, [(asked("Hello? " * 40), {"max_tokens": 20})], context=64)


def test_a_batch_that_does_not_fit_is_halved(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from parley.agents.models.hf import HfClient

    write: Callable[..., Any] = HfClient._write
    sizes: list[int] = []

    def small_memory(self: HfClient, batch: Sequence[Any]) -> Any:
        sizes.append(len(batch))
        if len(batch) > 2:
            raise torch.OutOfMemoryError
        return write(self, batch)

    monkeypatch.setattr(HfClient, "_write", small_memory)
    calls = [(asked(f"Case {n}?"), {"seed": n, "max_tokens": 4}) for n in range(8)]
    assert len(talk(tiny, calls)) == 8
    assert sizes[0] == 8
    assert sizes[-1] <= 2
