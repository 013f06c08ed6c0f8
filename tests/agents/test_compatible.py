"""What is peculiar to OpenAI-compatible servers: requests, streams, and how many calls there are at a time.

What all vendors share is in tests/vendors.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from autogen_core import FunctionCall
from autogen_core.models import AssistantMessage, RequestUsage, SystemMessage, UserMessage
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from parley.agents import (
    BadRequest,
    Budget,
    RateLimited,
    ServerFault,
    Session,
    model,
    record_calls,
    session,
    structured_reply,
)
from parley.agents.models.openai import OpenAIClient
from parley.agents.models.reply import StreamRedactor, redact
from parley.agents.models.throttle import Throttle
from parley.agents.transcripts import tool_calls_as_text, tool_calls_in
from tests.agents.common import ASK, KEY, USAGE, chunk, tool_call
from tests.vendors.asking import COUNT, result_of


class Score(BaseModel):
    points: int = Field(ge=0, le=10)
    why: str = Field("", max_length=80)


class Empty(BaseModel):
    """An object without fields."""


class Verdict(BaseModel):
    A: Score
    B: Score


SENT = tool_call("count", what="cats")
CALL = FunctionCall(id="c1", name="count", arguments='{"what": "cats"}')


@pytest.fixture(autouse=True)
def no_variables(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OLLAMA_BASE_URL", "PARLEY_SERVER_KEY", "PARLEY_SERVER_URL"):
        monkeypatch.delenv(name, raising=False)


async def test_names_are_written_into_the_text_and_messages_of_one_role_are_joined(server, monkeypatch):
    server.says("Seven.")
    messages = [
        SystemMessage(content="You are Cy."),
        UserMessage(content="How many?", source="user"),
        UserMessage(content="Six.", source="Ada"),
        UserMessage(content="Ben: Eight.", source="Ben"),  # who begins with the name is not named twice
        AssistantMessage(content="Seven.", source="Cy"),
        UserMessage(content="Why?", source="Ada"),
    ]
    await server.client(temperature=0.2, max_tokens=9).create(messages, extra_create_args={"logprobs": False})
    sent = [
        {"role": "system", "content": "You are Cy."},
        {"role": "user", "content": "How many?\n\nAda: Six.\n\nBen: Eight."},
        {"role": "assistant", "content": "Seven."},
        {"role": "user", "content": "Ada: Why?"},
    ]
    assert not server.asked[0].pop("logprobs", False)
    assert server.asked[0] == {"model": "m", "messages": sent, "temperature": 0.2, "max_tokens": 9}
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    await server.client("openai/gpt-4o-mini", max_tokens=9).create(ASK)
    assert (server.asked[1]["max_completion_tokens"], "max_tokens" in server.asked[1]) == (9, False)


async def test_a_nested_schema_is_sent_closed_and_without_references(server):
    server.says("{}")
    await server.client().create(ASK, json_output=Verdict)
    points = {"type": "integer", "minimum": 0, "maximum": 10}
    closed = {"type": "object", "additionalProperties": False}
    score = {**closed, "properties": {"points": points, "why": {"type": "string"}}, "required": ["points", "why"]}
    schema = {**closed, "properties": {"A": score, "B": score}, "required": ["A", "B"]}
    named = {"name": "Verdict", "strict": True, "schema": schema}
    assert server.asked[0]["response_format"] == {"type": "json_schema", "json_schema": named}


async def test_json_mode_and_no_mode_at_all(server, monkeypatch):
    monkeypatch.setenv("DEEPSEEK_API_KEY", KEY)
    server.says("{}")
    ask = [UserMessage(content="How many? Answer as JSON.", source="user")]
    await server.client(structured="json").create(ask, json_output=Score)
    await server.client().create(ask, json_output=True)
    await server.client(structured="none").create(ask, json_output=Score)
    await structured_reply(server.client(structured="json"), ask, Empty)
    deepseek = server.client("deepseek/deepseek-flash")
    await deepseek.create(ask, json_output=Score)
    await deepseek.create(ASK, json_output=Score)  # whose prompt does not speak of JSON: it would be rejected
    formats = [body.get("response_format") for body in server.asked]
    spoken = {"type": "json_object"}
    assert formats == [spoken, spoken, None, spoken, spoken, None]


async def test_tool_calls_and_their_results(server):
    server.says(tool_calls=SENT)
    server.says("Four.")
    client = server.client()
    reply = await client.create(ASK, tools=[COUNT], tool_choice=COUNT)
    assert (reply.content, reply.finish_reason) == ([CALL], "function_calls")
    assert server.asked[0]["tools"][0]["function"]["name"] == "count"
    assert server.asked[0]["tool_choice"] == {"type": "function", "function": {"name": "count"}}
    with record_calls() as calls:
        assert (await client.create(result_of(CALL, "4 Äpfel"), tools=[COUNT])).content == "Four."
    assert "4 Äpfel" in calls[0].prompt[-1].text, "as it is read"
    assert server.asked[1]["messages"][1:] == [
        {"role": "assistant", "content": None, "tool_calls": SENT},
        {"role": "tool", "tool_call_id": "c1", "content": "4 Äpfel"},
    ]
    assert server.asked[1]["tool_choice"] == "auto"
    assert tool_calls_in(tool_calls_as_text([CALL])) == [("count", '{"what": "cats"}')]
    assert tool_calls_in('[{"tool": "a"}]') == tool_calls_in('[{"tool": ') == tool_calls_in("Four.") == []


# Streams


async def streamed(client: Any, **options: Any) -> tuple[list[Any], Any]:
    *texts, last = [part async for part in client.create_stream(ASK, **options)]
    return texts, last


@pytest.mark.parametrize("size", [1, 7, 20, 200])
async def test_the_key_is_redacted_from_a_stream(server, monkeypatch, size):
    monkeypatch.setenv("PARLEY_SERVER_KEY", KEY)
    text = f"Your key {KEY} is sk-a good one, {KEY}, sk-a-s"
    pieces = [chunk(text[start : start + size]) for start in range(0, len(text), size)]
    server.streams(*pieces, chunk(finish="stop"), USAGE)
    with record_calls() as calls:
        texts, last = await streamed(server.client())
    assert "".join(texts) == last.content == calls[0].reply == "Your key *** is sk-a good one, ***, sk-a-s"


@given(st.text("ab", min_size=12, max_size=14), st.lists(st.text("abc", max_size=9), max_size=9), st.data())
def test_redaction_does_not_depend_on_how_a_text_is_divided(key, words, data):
    text = key.join(words)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    redactor = StreamRedactor(key)
    shown = "".join(redactor.feed(text[a:b]) for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True))
    assert shown + redactor.flush() == redact(text, key)


async def test_the_key_is_redacted_from_tool_calls_and_reasoning(server, monkeypatch):
    monkeypatch.setenv("PARLEY_SERVER_KEY", KEY)
    (call,) = tool_call("send", what=KEY)
    server.says(tool_calls=[{**call, "id": KEY}], reasoning_content=f"I know {KEY}.")
    with record_calls() as calls:
        reply = await server.client().create(ASK)
    assert reply.content == [FunctionCall(id="***", name="send", arguments='{"what": "***"}')]
    assert reply.thought == "I know ***."
    assert KEY not in calls[0].reply
    several = [{"finish_reason": "stop", "message": {"content": text}} for text in ("7", f"8 {KEY}", "9", "10")]
    server._answers.clear()
    server.sends(json.dumps({"choices": several}))
    for count, others in ((1, ()), (2, ("8 ***",)), (3, ("8 ***", "9"))):
        reply = await server.client().create(ASK, extra_create_args={"n": count})
        assert reply.others == others, "no more than were asked for"


ODD_EVENTS: list[Any] = [
    {"choices": [5]},
    {"choices": "none"},
    {"choices": [{"delta": {"content": [5, 6]}}]},
    {"choices": [{"delta": {"content": [{"type": "text", "text": 7}]}}]},
    {"choices": [{"delta": "words"}]},
    [],
    {"error": {"message": "out of memory"}},
]


@pytest.mark.parametrize("event", ODD_EVENTS, ids=str)
async def test_a_stream_that_breaks_off_counts_with_what_arrived(server, event):
    server.streams(chunk("Sev"), event)
    budget, client = Budget(max_calls=1), server.client()
    fault = pytest.raises(ServerFault, match="server/m: ")
    with session(Session("unit", budget=budget)), record_calls() as calls, fault:
        await streamed(client)
    assert (budget.calls, client.throttle.under_way) == (1, 0)
    assert [(call.reply, call.completion_tokens) for call in calls] == [("Sev", 1)]
    assert budget.tokens == calls[0].prompt_tokens + 1


async def test_a_streamed_list_of_parts(server):
    parts = ["Sev", {"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "en."}]
    server.streams({"choices": [{"delta": {"content": parts}}]}, chunk(finish="stop"), chunk("x" * 1_900_000), USAGE)
    texts, reply = await streamed(server.client())
    assert (texts[0], len(texts[1]), reply.thought, reply.finish_reason) == ("Seven.", 1_900_000, "Hm.", "stop")


async def test_a_stream_that_does_not_begin_is_retried_and_counts_unless_it_was_refused(server, monkeypatch):
    monkeypatch.setattr("parley.agents.models.throttle.backoff", lambda *_: 0.0)
    server.streams({"error": {"message": "out of order"}})
    server.fails(400, "no such model")
    server.fails(503, "busy")
    server.streams(chunk("Seven.", "stop"), USAGE)
    budget, unit = Budget(max_calls=2), Session("unit")
    with session(Session("unit", budget=budget)), pytest.raises(ServerFault, match="out of order"):
        await streamed(server.client(retries=0))
    with session(unit), pytest.raises(BadRequest, match="no such model"):
        await streamed(server.client())
    assert isinstance(unit.failure, BadRequest), "AutoGen may raise something else in its place"
    with session(Session("unit", budget=budget)), record_calls() as calls:
        _, reply = await streamed(server.client())
    assert (reply.content, budget.calls, calls[0].attempts) == ("Seven.", 2, 2)


# How many calls there are at a time


async def test_no_more_concurrent_calls_than_allowed(server):
    server.says("Seven.")
    server.delay = 0.3  # enough for all that may start to overlap
    client = server.client(max_connections=3)
    replies = await asyncio.gather(*(client.create(ASK) for _ in range(12)))
    assert [reply.content for reply in replies] == ["Seven."] * 12
    assert server.most_under_way == 3


def test_a_429_lowers_the_limit_by_a_third_and_successful_calls_raise_it_by_one():
    throttle = Throttle(32)
    throttle.under_way = 31
    throttle.slow_down(None)
    assert throttle.limit == pytest.approx(32 * 0.67)
    throttle.leave()
    assert throttle.limit == pytest.approx(32 * 0.67)
    throttle.leave(succeeded=True)
    assert throttle.limit == pytest.approx(32 * 0.67 + 1 / (32 * 0.67))
    told: list[float] = []
    shared = Throttle(32, 0.25, told.append)
    shared.slow_down(None)
    shared.slow_down(2.0, reported=True)
    shared.slow_down(0.5)
    assert (shared.limit, shared.slowed, told) == (1, 3, [0.0, 0.5])
    shared.under_way = 1
    shared.leave(succeeded=True)
    assert shared.limit == 1.25
    small = Throttle(2)
    for _ in range(3):
        small.slow_down(None)
        small.under_way = 1
        small.leave()
    assert small.limit == 1


async def test_calls_that_wait_start_in_the_order_of_their_units_and_a_cancelled_one_gives_its_place():
    throttle, started = Throttle(1), []
    await throttle.enter()

    async def call(order: int, name: str) -> None:
        await throttle.enter(order)
        started.append(name)
        throttle.leave(succeeded=True)

    calls = ((3, "c"), (1, "a"), (0, "cancelled"), (2, "b"), (1, "a again"))
    waiting = [asyncio.ensure_future(call(*one)) for one in calls]
    await asyncio.sleep(0)
    waiting.pop(2).cancel()
    await asyncio.sleep(0)
    throttle.leave(succeeded=True)
    await asyncio.gather(*waiting)
    assert started == ["a", "a again", "b", "c"]
    assert throttle.under_way == 0
    for pause in (0.0, 60.0):  # cancelled when its place was given to it, and while it waits out a pause
        await throttle.enter()
        late = asyncio.ensure_future(throttle.enter())
        await asyncio.sleep(0)
        throttle.slow_down(pause)
        throttle.leave()
        if pause:
            await asyncio.sleep(0)
        late.cancel()
        with pytest.raises(asyncio.CancelledError):
            await late
        assert throttle.under_way == 0


def test_a_vendor_gets_more_calls_at_a_time_than_a_server_of_ones_own(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    assert model("openai/gpt-4o-mini").throttle.limit == 256
    assert model("ollama/m").throttle.limit == model("server/m?base_url=http://localhost/v1").throttle.limit == 64
    assert model("ollama/m?max_connections=3").throttle.limit == 3


def test_vllm_batches_as_many_calls_as_arrive(monkeypatch):
    monkeypatch.setattr("parley.agents.models.base.most_connections", lambda: None)
    assert model("vllm/m").concurrency == model("vllm/m").throttle.limit == 1024
    monkeypatch.setattr("parley.agents.models.base.most_connections", lambda: 900)
    assert model("vllm/m").concurrency == 900


# Vendors' prompt caches


async def test_openai_gets_one_cache_key_per_unit(server, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    server.says("Seven.")
    client = server.client("openai/gpt-4o-mini")
    for address in (OpenAIClient.default_url, client.base_url):
        monkeypatch.setattr(OpenAIClient, "default_url", address)
        for unit in ("0/a", "0/a", "0/b"):
            with session(Session(unit)):
                await client.create(ASK)
        await client.create(ASK)
    keys = [body.get("prompt_cache_key") for body in server.asked]
    assert keys[4] == keys[5] != keys[6]
    assert keys[4] is not None
    assert [*keys[:4], keys[7]] == [None] * 5, "no key outside a unit, nor to a server that is not OpenAI's"
    assert all("0/a" not in str(key) for key in keys)


@pytest.mark.parametrize("details", [*({"cached_tokens": count} for count in (-1, 99, "5", None)), [], "many", {}])
async def test_an_impossible_count_is_recorded_as_unknown(server, details):
    server.says("Seven.", usage={"prompt_tokens_details": details})
    with record_calls() as calls:
        await server.client(price_in=1, price_out=10, price_cached=0).create(ASK)
    assert (calls[0].cached_tokens, calls[0].cost) == (None, pytest.approx(42e-6))


async def test_a_count_that_is_no_count_is_none_and_a_long_wait_is_not_waited(server):
    server.says("Seven.", usage={"prompt_tokens": -1})
    server.fails(429, headers={"Retry-After": "301"})
    client = server.client()
    assert (await client.create(ASK)).usage == RequestUsage(0, 3)
    with pytest.raises(RateLimited, match=r"too many requests; the server asks to wait 301 s$"):
        await client.create(ASK)
    assert (client.throttle._paused_until, client.throttle.slowed, len(server.asked)) == (0.0, 1, 2)
