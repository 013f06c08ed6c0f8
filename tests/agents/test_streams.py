"""Streamed replies, and servers that echo the key or never stop sending."""

from __future__ import annotations

import json
from typing import Any

import pytest
from autogen_core import FunctionCall
from autogen_core.tools import FunctionTool
from hypothesis import given
from hypothesis import strategies as st

from parley.agents import BadRequest, Budget, ServerFault, Session, record_calls, session
from parley.agents.models.compatible import CompatibleClient
from parley.agents.models.reply import StreamRedactor, redact
from tests.agents.common import ASK, KEY, USAGE, chunk


async def test_streaming_gives_text_as_it_arrives_and_then_the_usage(server: Any) -> None:
    server.streams(chunk("Sev"), chunk("en."), chunk(finish="stop"), USAGE)
    *texts, last = [part async for part in server.client().create_stream(ASK)]
    assert texts == ["Sev", "en."]
    assert (last.content, last.finish_reason) == ("Seven.", "stop")
    assert (last.usage.prompt_tokens, last.usage.completion_tokens) == (12, 3)
    assert server.asked[0]["stream"] is True


async def test_streaming_fails_like_any_call(server: Any) -> None:
    server.fails(400, "no such model")
    unit = Session("unit")
    with session(unit), pytest.raises(BadRequest, match="no such model"):
        _ = [part async for part in server.client().create_stream(ASK)]
    assert isinstance(unit.failure, BadRequest), "AutoGen may raise something else in its place"


async def test_a_request_with_tools_is_not_streamed(server: Any) -> None:
    async def count(what: str) -> int:
        """Count."""
        return len(what)

    function = {"name": "count", "arguments": '{"what": "cats"}'}
    server.says(tool_calls=[{"id": "c1", "type": "function", "function": function}])
    *_, last = [part async for part in server.client().create_stream(ASK, tools=[FunctionTool(count, "Count.")])]
    assert last.content == [FunctionCall(id="c1", name="count", arguments='{"what": "cats"}')]


@pytest.mark.parametrize("size", [1, 7, 20, 200])
async def test_the_key_is_redacted_from_a_stream(server: Any, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setenv("PARLEY_SERVER_KEY", KEY)
    text = f"Your key {KEY} is sk-a good one, {KEY}, sk-a-s"
    server.streams(
        *(chunk(text[start : start + size]) for start in range(0, len(text), size)), chunk(finish="stop"), USAGE
    )
    with record_calls() as calls:
        *texts, last = [part async for part in server.client().create_stream(ASK)]
    assert "".join(texts) == last.content == calls[0].reply == "Your key *** is sk-a good one, ***, sk-a-s"


@given(st.text("ab", min_size=12, max_size=14), st.lists(st.text("abc", max_size=9), max_size=9), st.data())
def test_redaction_does_not_depend_on_how_a_text_is_divided(key: str, words: list[str], data: st.DataObject) -> None:
    text = key.join(words)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    redactor = StreamRedactor(key)
    shown = "".join(redactor.feed(text[a:b]) for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True))
    assert shown + redactor.flush() == redact(text, key)


async def test_the_key_is_redacted_from_tool_calls_and_reasoning(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARLEY_SERVER_KEY", KEY)
    function = {"name": "send", "arguments": json.dumps({"what": KEY})}
    server.says(tool_calls=[{"id": KEY, "type": "function", "function": function}], reasoning_content=f"I know {KEY}.")
    with record_calls() as calls:
        reply = await server.client().create(ASK)
    assert reply.content == [FunctionCall(id="***", name="send", arguments='{"what": "***"}')]
    assert reply.thought == "I know ***."
    assert KEY not in calls[0].reply


ODD_EVENTS: list[Any] = [
    {"choices": [5]},
    {"choices": "none"},
    {"choices": [{"delta": {"content": [5, 6]}}]},
    {"choices": [{"delta": "words"}]},
    {"choices": [], "usage": 7},
    [],
    {"error": {"message": "out of memory"}},
]


@pytest.mark.parametrize("event", ODD_EVENTS, ids=str)
async def test_a_stream_that_breaks_off_counts_with_what_arrived(server: Any, event: Any) -> None:
    server.streams(chunk("Sev"), event)
    budget, client = Budget(max_calls=1), server.client()
    with (
        session(Session("unit", budget=budget)),
        record_calls() as calls,
        pytest.raises(ServerFault, match="server/m: "),
    ):
        _ = [part async for part in client.create_stream(ASK)]
    assert (budget.calls, client.throttle.under_way) == (1, 0)
    assert [(call.reply, call.completion_tokens) for call in calls] == [("Sev", 1)]
    assert budget.tokens == calls[0].prompt_tokens + 1


async def test_a_stream_that_does_not_begin_is_not_counted(server: Any) -> None:
    server.streams({"error": {"message": "out of order"}})
    budget = Budget(max_calls=1)
    with session(Session("unit", budget=budget)), pytest.raises(ServerFault, match="out of order"):
        _ = [part async for part in server.client(retries=0).create_stream(ASK)]
    assert (budget.calls, budget.tokens) == (0, 0)


async def test_a_stream_that_does_not_begin_is_retried(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("parley.agents.models.retries.backoff", lambda *_: 0.0)
    server.fails(503, "busy")
    server.streams(chunk("Seven.", "stop"), USAGE)
    budget = Budget(max_calls=1)
    with session(Session("unit", budget=budget)), record_calls() as calls:
        *_, reply = [part async for part in server.client().create_stream(ASK)]
    assert (reply.content, budget.calls, calls[0].attempts) == ("Seven.", 1, 2)


async def test_an_error_body_that_is_nested_too_deeply(server: Any) -> None:
    server.sends("[" * 100_000, status=500)
    with pytest.raises(ServerFault, match="answered 500"):
        await server.client(retries=0).create(ASK)


async def test_a_stream_without_end_is_not_read_to_its_end(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is 32 MiB; whole responses are in test_http.py."""
    monkeypatch.setattr(CompatibleClient, "max_bytes", 10_000)
    server.streams(*[chunk("x" * 1000)] * 100)
    with pytest.raises(ServerFault, match="the response is larger than 10,000 bytes"):
        _ = [part async for part in server.client(retries=0).create_stream(ASK)]
