"""The embedded model itself: SmolLM2 in this process (its weights, 98 MB, are downloaded on first use); Self-Debias."""

from __future__ import annotations

import asyncio
import json
import math
import os
import random
import urllib.request
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Literal
from urllib.error import HTTPError

import pytest
from autogen_agentchat.messages import TextMessage
from autogen_core import CancellationToken
from autogen_core.models import AssistantMessage, UserMessage
from pydantic import BaseModel

from parley.agents import (
    BadRequest,
    ConfigError,
    ParleyError,
    SelfDebiasAgent,
    ServerFault,
    free_text,
    model,
    parse,
    record_calls,
    scale,
    structured_reply,
)
from parley.agents.models import local
from parley.agents.models.local import FLOOR, DebiasSettings, NextTokens, debiased, decode, sample
from tests.servers import PATIENCE
from tests.vendors.asking import COUNT

ASK = [UserMessage(content='Score the plan "test, then ship" as JSON.', source="user")]


class Opinion(BaseModel):
    clarity: scale(0, 10)  # type: ignore[valid-type]
    safety: scale(0, 10)  # type: ignore[valid-type]
    take: Literal["ship", "wait"]
    why: free_text(12)  # type: ignore[valid-type]


@pytest.fixture(scope="module")
def client():
    # as stored: converting the weights takes eight seconds, and others do that with the tiny model
    client = model("local/smollm2?max_connections=1&context=512&temperature=0.8&seed=11&weights=stored")
    yield client
    asyncio.run(client.close())


@pytest.fixture(scope="module")
def answer(client):
    return asyncio.run(structured_reply(client, ASK, Opinion))


async def test_a_structured_reply_fits_and_follows_the_seed(client, answer):
    assert answer.status == "ok"
    assert answer.value is not None
    assert parse(answer.raw, Opinion) == (answer.value, "")
    again = await client.create(ASK, json_output=Opinion)
    assert again.content == answer.raw
    assert min(again.usage.prompt_tokens, again.usage.completion_tokens) > 0


async def test_a_reply_that_has_begun_is_continued_by_one_token(client):
    """It has no text but the token's, though llama.cpp repeats what it was given; an end has probabilities too."""
    options = {"max_tokens": 1, "logprobs": True, "temperature": 0.0}
    contents = []
    for begun in ("From 1 to 9 I give it a ", "I would ship it."):
        prompt = [*ASK, AssistantMessage(content=begun, source="self")]
        reply = await client.create(prompt, extra_create_args=options)
        assert reply.logprobs is not None
        (token,) = reply.logprobs
        listed = [bytes(top.bytes or []).decode("utf-8", "replace").strip() for top in token.top_logprobs or []]
        assert len(listed) > 20
        assert all(len(text) == 1 for text in listed[20:]), "what a ballot may ask for, however rare"
        contents.append((reply.content, token.token, reply.usage.completion_tokens))
    assert all(content == token and count == 1 for content, token, count in contents), contents


async def test_a_streamed_reply_is_the_whole_one_and_what_cannot_be_said_is_refused(tiny_model):
    client = model(f"local/{tiny_model}?max_connections=1&context=256&weights=stored")
    options = {"max_tokens": 9, "temperature": 0}
    begun = [*ASK, AssistantMessage(content="I", source="self")]
    try:
        *chunks, reply = [part async for part in client.create_stream(ASK, extra_create_args=options)]
        whole = await client.create(ASK, extra_create_args=options)
        one, _ = [part async for part in client.create_stream(begun, extra_create_args=options)]
        free = await client.create(ASK, json_output=True, extra_create_args={"max_tokens": 200})
        assert isinstance(json.loads(str(free.content)), dict)
        with pytest.raises(BadRequest, match=r"does not support tools$"):
            await client.create(ASK, tools=[COUNT])
        long = [UserMessage(content="word " * 400, source="user")]
        said = rf"^local/{tiny_model}: .*; append \?context=8192"
        with pytest.raises(BadRequest, match=said):
            await client.create(long)
        with pytest.raises(BadRequest, match=said):
            _ = [part async for part in client.create_stream(long)]
    finally:
        await client.close()
    assert len(chunks) > 1
    assert "".join(map(str, chunks)) == reply.content == whole.content
    assert (reply.usage, reply.finish_reason) == (whole.usage, "length")
    assert isinstance(one, str)
    assert client.identity.endswith(" stored")
    slow = model(f"local/{tiny_model}?max_connections=1&context=2048&timeout=0.001&retries=0&max_tokens=2000")
    with pytest.raises(ServerFault, match=r": no answer within 0\.001 s$"):
        await slow.create(ASK)
    await slow.close()


async def uncached_share(tiny_model: Path, conversations: int, slots: int) -> float:
    """The share of the prompt tokens in each conversation's second turn that did not come from the cache."""
    client = model(f"local/{tiny_model}", max_connections=slots, context=1024, max_tokens=4)
    prompts = [[UserMessage(content=f"{n}: {'a long task ' * 40}", source="user")] for n in range(conversations)]
    try:
        for prompt in prompts:
            await client.create(prompt)
        with record_calls() as calls:
            for prompt in prompts:
                await client.create([*prompt, UserMessage(content="And now?", source="user")])
    finally:
        await client.close()
    assert all(call.cached_tokens is not None for call in calls)
    return 1 - sum(call.cached_tokens or 0 for call in calls) / sum(call.prompt_tokens for call in calls)


async def test_conversations_that_wait_for_a_slot_are_cached_in_memory(tiny_model, monkeypatch):
    """Six on two slots: without the memory every second turn is read from the start."""
    assert await uncached_share(tiny_model, conversations=6, slots=2) < 0.2
    monkeypatch.setattr(local, "REUSE_MB", 0)
    assert await uncached_share(tiny_model, conversations=6, slots=2) > 0.9


async def test_a_file_that_only_begins_like_a_model(tmp_path):
    path = tmp_path / "broken.gguf"
    path.write_bytes(b"GGUF" + b"junk" * 100)
    client = model(f"local/{path}")
    with pytest.raises(ParleyError, match="cannot be loaded"):
        await client.prepare()
    await client.close()


def test_a_retrained_model_has_another_identity(tmp_path):
    """Same name and size: it must not get the old model's replies from the cache."""
    path = tmp_path / "model.gguf"
    (tmp_path / "config.json").write_text("{}")
    identities, names = [], [f"local/{path}", *([f"hf/{tmp_path}"] if find_spec("torch") else [])]
    for weights, modified in ((b"GGUF one", 1_000_000_000), (b"GGUF two", 1_000_000_000), (b"GGUF two", 2_000_000_000)):
        for file in (path, tmp_path / "model.safetensors"):
            file.write_bytes(weights)
            os.utime(file, (modified, modified))
        identities.append([model(name).identity for name in names])
    assert all(one != two for one, two in zip(identities[0], identities[1], strict=True))
    assert identities[1] == identities[2], "the same weights, written later: seeds and cached replies are the same"


def test_its_http_port_is_locked(client, answer):
    """llama.cpp always listens on loopback; it requires a random key."""
    address = client._server.listening_address  # type: ignore[attr-defined]
    body = json.dumps({"messages": [{"role": "user", "content": "Hello."}], "max_tokens": 1}).encode()
    for path, data in (("/v1/chat/completions", body), ("/completion", body), ("/slots", None), ("/props", None)):
        request = urllib.request.Request(address + path, data, {"Content-Type": "application/json"})
        with pytest.raises(HTTPError) as refused:
            urllib.request.urlopen(request, timeout=PATIENCE)
        assert refused.value.code == 401


# Self-Debias decoding

PLAIN = {1: 0.5, 2: 0.3, 3: 0.2}
BIASED = {1: 0.6, 2: 0.1, 3: 0.3}


def test_the_arithmetic_by_hand():
    """Δ = −0.1, +0.2, −0.1. With λ = 10, tokens 1 and 3 are scaled by e^−1, token 2 is left alone."""
    shrunk = math.exp(-1)
    weights = {1: 0.5 * shrunk, 2: 0.3, 3: 0.2 * shrunk}
    total = 0.5 * shrunk + 0.3 + 0.2 * shrunk
    result = debiased(PLAIN, BIASED, 10)
    assert result == pytest.approx({token: weight / total for token, weight in weights.items()})
    assert result[2] == pytest.approx(0.5381, abs=1e-4)  # 0.3 / (0.7 · 0.36788 + 0.3)


def test_no_token_is_ruled_out_and_one_missing_from_the_biased_list_is_unchanged():
    result = debiased({1: 0.5, 2: 0.5}, {1: 1.0, 2: 0.0}, 1e6)
    assert result[1] / result[2] == pytest.approx(FLOOR)
    assert debiased({1: 0.5, 2: 0.5}, {2: 0.5}, 50) == {1: 0.5, 2: 0.5}


def test_tokens_are_drawn_in_proportion_to_their_weights():
    rng = random.Random(1)
    seen = Counter(sample(PLAIN, 1.0, rng) for _ in range(20_000))
    assert {token: count / 20_000 for token, count in seen.items()} == pytest.approx(PLAIN, abs=0.015)
    assert sample(PLAIN, 0, rng) == 1


def test_decoding_ends_at_an_empty_token_or_at_the_limit():
    spelling = {1: b"caf", 2: "é".encode()[:1], 3: "é".encode()[1:], 4: b""}
    order = [1, 2, 3, 4]

    def step(drawn: list[int]) -> NextTokens:
        return NextTokens({order[len(drawn)]: 1.0}, {}, spelling)

    how = DebiasSettings(50, 10, 9, 1.0, 0)
    assert decode(step, how) == ("café", 3, True)
    assert decode(step, how._replace(max_tokens=2)) == ("caf", 2, False)


def test_models_without_next_token_probabilities_are_refused_in_one_line():
    with pytest.raises(ConfigError) as caught:
        SelfDebiasAgent("Writer", model("sim/any"), against="Rude: {text}")
    assert "needs the log-probabilities of every next token, but sim/any does not give them" in str(caught.value)


async def test_the_embedded_model_avoids_what_the_biased_prompt_calls_for(client, tiny_model):
    """The biased prompt repeats the greedy continuation three times, which makes another one more probable."""
    beginning = "My neighbour opened the window because"

    async def continuation(decay: float, against: str = "{text}") -> str:
        options = {"max_tokens": 1, "temperature": 0.0}
        writer = SelfDebiasAgent("Writer", client, against=against, decay=decay, options=options)
        text = TextMessage(content=beginning, source="user")
        return str((await writer.on_messages([text], CancellationToken())).chat_message.to_model_text())

    plain = await continuation(0)
    defaults = {"temperature": 1.0, "seed": 0}
    bare = model(f"local/{tiny_model}?max_connections=1&context=256")
    writers = [
        SelfDebiasAgent("Writer", bare, against="{text}", options={**options, "max_tokens": 9})
        for options in ({}, defaults)
    ]
    task = [TextMessage(content="My neighbour", source="user")]
    said = [(await writer.on_messages(task, CancellationToken())).chat_message for writer in writers]
    assert (said[0].content, said[0].models_usage) == (said[1].content, said[1].models_usage)
    assert 0 < said[0].models_usage.completion_tokens <= 2 * 9, "for the text, and for the biased prompt"
    assert writers[0].produced_message_types == (TextMessage,)
    await bare.close()
    repeated = f"{beginning}{plain}.\n" * 3 + "{text}"
    assert await continuation(0, repeated) == plain  # λ = 0: the biased prompt has no effect
    assert await continuation(5000, repeated) != plain
