"""The embedded model itself: SmolLM2 in this process (its weights, 98 MB, are downloaded on first use)."""

from __future__ import annotations

import asyncio
import json
import os
import urllib.request
from importlib.util import find_spec
from pathlib import Path
from typing import Literal
from urllib.error import HTTPError

import pytest
from autogen_core.models import AssistantMessage, CreateResult, UserMessage
from pydantic import BaseModel

from parley.agents import (
    ParleyError,
    free_text,
    model,
    parse,
    record_calls,
    scale,
    structured_reply,
)
from parley.agents.models.request import Request

ASK = [UserMessage(content='Score the plan "test, then ship" as JSON.', source="user")]


class Opinion(BaseModel):
    clarity: scale(0, 10)  # type: ignore[valid-type]
    safety: scale(0, 10)  # type: ignore[valid-type]
    take: Literal["ship", "wait"]
    why: free_text(12)  # type: ignore[valid-type]


@pytest.fixture(scope="module")
def client():
    client = model("local/smollm2?max_connections=1&context=512&temperature=0.8&seed=11")
    yield client
    asyncio.run(client.close())


@pytest.fixture(scope="module")
def answer(client):
    return asyncio.run(structured_reply(client, ASK, Opinion, readout="expected"))


async def test_a_structured_reply_fits_has_expectations_and_follows_the_seed(client, answer):
    assert answer.status == "ok"
    assert answer.value is not None
    assert parse(answer.raw, Opinion) == (answer.value, "")
    assert set(answer.expected) == {"clarity", "safety"}
    assert all(0 <= value <= 10 for value in answer.expected.values())
    assert answer.expected["clarity"] != round(answer.expected["clarity"])
    again = await client.create(ASK, json_output=Opinion)
    assert again.content == answer.raw
    assert min(again.usage.prompt_tokens, again.usage.completion_tokens) > 0


async def test_a_reply_arrives_token_by_token(client):
    messages = [UserMessage(content="Say hello.", source="user")]
    extra = {"max_tokens": 6, "temperature": 0.0}
    *chunks, reply = [part async for part in client.create_stream(messages, extra_create_args=extra)]
    assert isinstance(reply, CreateResult)
    assert len(chunks) > 2
    assert "".join(map(str, chunks)) == reply.content
    assert (reply.finish_reason, reply.usage.completion_tokens) == ("length", 6)
    whole = await client.create(messages, extra_create_args=extra)
    assert (whole.content, whole.usage.prompt_tokens) == (reply.content, reply.usage.prompt_tokens)


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


async def uncached_share(tiny_model: Path, conversations: int, slots: int, reuse_mb: int) -> float:
    """The share of the prompt tokens in each conversation's second turn that did not come from the cache."""
    client = model(f"local/{tiny_model}", max_connections=slots, context=1024, reuse_mb=reuse_mb, max_tokens=4)
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


async def test_conversations_that_wait_for_a_slot_are_cached_in_memory(tiny_model):
    """Six on two slots: without the memory every second turn is read from the start."""
    assert await uncached_share(tiny_model, conversations=6, slots=2, reuse_mb=64) < 0.2
    assert await uncached_share(tiny_model, conversations=6, slots=2, reuse_mb=0) > 0.9


async def test_calls_for_one_token_read_a_shared_prefix_once(tiny_model):
    """All at once and with free slots, they take turns in one: only what is new in a prompt is read."""
    client = model(f"local/{tiny_model}", max_connections=4, context=1024)
    prompts = [
        [
            UserMessage(content=f"{'a long task ' * 40} by {name}", source="user"),
            AssistantMessage(content="Score: ", source="self"),
        ]
        for name in ("Ada", "Ben", "Cleo", "Dan", "Eve", "Fay")
    ]
    options = {"max_tokens": 1, "logprobs": True, "temperature": 0.0}
    slots = [client.body(Request(ASK, options={"max_tokens": n})).get("id_slot") for n in (1, 2)]  # type: ignore[attr-defined]
    assert slots == [0, None]
    try:
        with record_calls() as calls:
            replies = await asyncio.gather(*(client.create(prompt, extra_create_args=options) for prompt in prompts))
    finally:
        await client.close()
    assert all(reply.usage.completion_tokens == 1 for reply in replies)
    read = [call.prompt_tokens - (call.cached_tokens or 0) for call in calls]
    assert read[0] > 400
    assert max(read[1:]) < 100


async def test_a_file_that_only_begins_like_a_model(tmp_path):
    path = tmp_path / "broken.gguf"
    path.write_bytes(b"GGUF" + b"junk" * 100)
    client = model(f"local/{path}")
    with pytest.raises(ParleyError, match="cannot be loaded"):
        await client.prepare()
    await client.close()


def test_a_retrained_model_has_another_identity(tmp_path):
    """Same folder and size: it must not get the old model's replies from the cache."""
    path = tmp_path / "model.gguf"
    (tmp_path / "config.json").write_text("{}")
    identities, providers = [], ["local", *(["hf"] if find_spec("torch") else [])]
    for weights, modified in ((b"GGUF one", 1_000_000_000), (b"GGUF two", 1_000_000_000), (b"GGUF two", 2_000_000_000)):
        for file in (path, tmp_path / "model.safetensors"):
            file.write_bytes(weights)
            os.utime(file, (modified, modified))
        identities.append([model(f"{provider}/{tmp_path}").identity for provider in providers])
    assert all(one != two for one, two in zip(identities[0], identities[1], strict=True))
    assert identities[1] == identities[2], "the same weights, written later: seeds and cached replies are the same"


def test_its_http_port_is_locked(client, answer):
    """llama.cpp always listens on loopback; it requires a random key."""
    address = client._server.listening_address  # type: ignore[attr-defined]
    body = json.dumps({"messages": [{"role": "user", "content": "Hello."}], "max_tokens": 1}).encode()
    for path, data in (("/v1/chat/completions", body), ("/completion", body), ("/slots", None), ("/props", None)):
        request = urllib.request.Request(address + path, data, {"Content-Type": "application/json"})
        with pytest.raises(HTTPError) as refused:
            urllib.request.urlopen(request, timeout=10)
        assert refused.value.code == 401
