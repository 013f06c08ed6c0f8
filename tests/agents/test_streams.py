"""Replies that are streamed, and servers that say too much: the key, and no end."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest
from aiohttp import web
from autogen_core import FunctionCall
from autogen_core.models import UserMessage
from autogen_core.tools import FunctionTool
from hypothesis import given
from hypothesis import strategies as st

from parley.agents import BadRequest, Budget, ServerFault, Session, record_calls, session
from parley.agents.models.compatible import CompatibleClient
from parley.agents.models.reply import Hiding, hide

KEY = "sk-a-secret-that-must-not-show"
ASK = [UserMessage(content="How many?", source="user")]


def chunk(text: str | None = None, finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"delta": {"content": text, **delta}, "finish_reason": finish}]}


USAGE = {"choices": [], "usage": {"prompt_tokens": 12, "completion_tokens": 3}}


async def test_streaming_gives_text_as_it_comes_and_then_the_usage(server: Any) -> None:
    server.streams(chunk("Sev"), chunk("en."), chunk(finish="stop"), USAGE)
    *texts, last = [part async for part in server.client().create_stream(ASK)]
    assert texts == ["Sev", "en."]
    assert (last.content, last.finish_reason) == ("Seven.", "stop")
    assert (last.usage.prompt_tokens, last.usage.completion_tokens) == (12, 3)
    assert server.asked[0]["stream"] is True


async def test_streaming_fails_like_any_call(server: Any) -> None:
    server.fails(400, "no such model")
    with pytest.raises(BadRequest, match="no such model"):
        _ = [part async for part in server.client().create_stream(ASK)]


async def test_streamed_calls_are_recorded_and_budgeted_too(server: Any) -> None:
    server.streams(chunk("Seven.", "stop"), USAGE)
    budget = Budget(max_calls=1)
    with session(Session("unit", budget=budget)), record_calls() as calls:
        _ = [part async for part in server.client().create_stream(ASK)]
    assert ([call.reply for call in calls], budget.calls) == (["Seven."], 1)


async def test_a_stream_with_tools_comes_in_one_piece(server: Any) -> None:
    async def count(what: str) -> int:
        """Count."""
        return len(what)

    called = {"name": "count", "arguments": '{"what": "cats"}'}
    server.says(tool_calls=[{"id": "c1", "type": "function", "function": called}])
    *_, last = [part async for part in server.client().create_stream(ASK, tools=[FunctionTool(count, "Count.")])]
    assert last.content == [FunctionCall(id="c1", name="count", arguments='{"what": "cats"}')]


async def test_an_error_in_the_middle_of_a_stream(server: Any) -> None:
    server.streams(chunk("Sev"), {"error": {"message": "out of memory"}})
    with pytest.raises(ServerFault, match="out of memory"):
        _ = [part async for part in server.client().create_stream(ASK)]


@pytest.mark.parametrize("cut", [1, 7, 20, 200])
async def test_a_stream_that_says_the_key_is_shown_and_recorded_without_it(
    server: Any, monkeypatch: pytest.MonkeyPatch, cut: int
) -> None:
    monkeypatch.setenv("PARLEY_SERVER_KEY", KEY)
    said = f"Your key {KEY} is sk-a good one, {KEY}, sk-a-s"
    server.streams(*(chunk(said[at : at + cut]) for at in range(0, len(said), cut)), chunk(finish="stop"), USAGE)
    with record_calls() as calls:
        *texts, last = [part async for part in server.client().create_stream(ASK)]
    assert "".join(texts) == last.content == calls[0].reply == "Your key *** is sk-a good one, ***, sk-a-s"


@given(st.text("ab", min_size=12, max_size=14), st.lists(st.text("abc", max_size=9), max_size=9), st.data())
def test_wherever_a_text_is_cut_the_same_is_hidden(key: str, words: list[str], data: st.DataObject) -> None:
    text = key.join(words)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    hiding = Hiding(key)
    shown = "".join(hiding.feed(text[a:b]) for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True))
    assert shown + hiding.rest() == hide(text, key)


async def test_a_key_among_a_tools_arguments_is_hidden(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARLEY_SERVER_KEY", KEY)
    called = {"name": "send", "arguments": json.dumps({"what": KEY})}
    server.says(tool_calls=[{"id": KEY, "type": "function", "function": called}], reasoning_content=f"I know {KEY}.")
    with record_calls() as calls:
        reply = await server.client().create(ASK)
    assert reply.content == [FunctionCall(id="***", name="send", arguments='{"what": "***"}')]
    assert reply.thought == "I know ***."
    assert KEY not in calls[0].reply


ODD_EVENTS: list[Any] = [
    {"choices": [5]},
    {"choices": "none"},
    {"choices": [{"delta": {"content": ["a", "list"]}}]},
    {"choices": [{"delta": "words"}]},
    {"choices": [], "usage": 7},
    [],
]


@pytest.mark.parametrize("event", ODD_EVENTS, ids=str)
async def test_an_event_that_is_none_fails_the_call_and_costs_nothing(server: Any, event: Any) -> None:
    server.streams(chunk("Sev"), event)
    budget, client = Budget(max_calls=1), server.client()
    with session(Session("unit", budget=budget)), pytest.raises(ServerFault, match="server/m: "):
        _ = [part async for part in client.create_stream(ASK)]
    assert (budget.calls, client.throttle.under_way) == (0, 0)


async def test_a_complaint_that_is_nested_without_end(server: Any) -> None:
    server.sends("[" * 100_000, status=500)
    with pytest.raises(ServerFault, match="answered 500"):
        await server.client(retries=0).create(ASK)


MUCH = 3_000_000


async def _all_of(parts: Any) -> None:
    async for _ in parts:
        pass


@pytest.mark.parametrize("how", ["said before", "unsaid", "packed", "streamed"])
async def test_an_answer_without_end_is_not_read_to_its_end(
    server: Any, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """The limit is 32 MiB, and a hundredth of it here."""
    monkeypatch.setattr(CompatibleClient, "most_bytes", MUCH // 10)

    async def answer(request: web.Request) -> web.StreamResponse:
        if how == "said before":
            return web.Response(body=b" " * MUCH)
        if how == "packed":
            return web.Response(body=gzip.compress(b" " * MUCH), headers={"Content-Encoding": "gzip"})
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(MUCH // 1000):
            await response.write(b"data: {}" + b" " * 991 + b"\n")
        return response

    server._answers.append(answer)
    client = server.client(retries=0)
    asked = _all_of(client.create_stream(ASK)) if how == "streamed" else client.create(ASK)
    with pytest.raises(ServerFault, match="it answered with more than 300,000 bytes"):
        await asked
