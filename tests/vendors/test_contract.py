"""What every vendor's client does, against a server that rejects what the vendor rejects.

Trouble that has nothing to do with a vendor's format (broken connections, odd bodies, refused keys) is in
test_trouble.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from autogen_core.models import SystemMessage, UserMessage
from pydantic import BaseModel, Field

from parley.agents import Client, ConfigError, ServerFault, model, record_calls, structured_reply
from parley.agents.models.reply import Reply
from tests.chaos.studies import trials
from tests.vendors.asking import COUNT, STANDINS, result_of
from tests.vendors.base import (
    CACHED_TOKENS,
    KEY,
    KINDS,
    PROMPT_TOKENS,
    REFUSAL,
    TEXT_TOKENS,
    THOUGHT_TOKENS,
    Kind,
    StrictServer,
)
from tests.vendors.filling import fill

# The Anthropic SDK warns about models near their end of life; which ones depends on its version.
pytestmark = pytest.mark.filterwarnings("ignore:The model:DeprecationWarning")

ASK = [
    SystemMessage(content="You are a judge."),
    UserMessage(content='How many? Reply as JSON: {"points": <0 to 9>, "why": "<a reason>"}', source="user"),
]


class Score(BaseModel):
    points: int = Field(ge=0, le=9)
    why: str


WIRE_FORMATS = ("openai", "anthropic", "google")
"""One of each; the others are asked everything nightly, and what `every_vendor` marks always."""


@pytest.fixture(
    params=[pytest.param(name, marks=[] if name in WIRE_FORMATS else pytest.mark.nightly) for name in STANDINS]
)
def vendor(request):
    return STANDINS[request.param]


every_vendor = pytest.mark.parametrize("vendor", STANDINS, indirect=True)


@asynccontextmanager
async def talking(vendor: type[StrictServer], kind: Kind, options: str = "retries=0") -> AsyncIterator[Any]:
    """A stand-in and a client for it."""
    with vendor(kind) as server:
        client = model(server.name(options))
        try:
            await client.prepare()
            yield server, client
        finally:
            await client.close()


async def ask(client: Client, *, streamed: bool = False, **options: Any) -> Reply:
    if not streamed:
        return await client.create(ASK, **options)
    *texts, reply = [part async for part in client.create_stream(ASK, **options)]
    assert isinstance(reply, Reply)
    assert "".join(str(text) for text in texts) == reply.content
    return reply


async def test_a_plain_reply(vendor):
    async with talking(vendor, "plain", "retries=0&price_in=1&price_out=1") as (server, client):
        with record_calls() as calls:
            reply = await ask(client)
    assert (reply.finish_reason, reply.refused, reply.thinks, reply.empty) == ("stop", False, False, False)
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (PROMPT_TOKENS, TEXT_TOKENS)
    assert reply.cached_tokens == (CACHED_TOKENS if vendor.counts_cached else None)
    [call], [received] = calls, server.requests
    prompt = (("system", "", ASK[0].content), ("user", "user", ASK[1].content))
    counts = (reply.cached_tokens, reply.written_tokens, "", reply.thought_tokens, False, True)
    told = (client.name, prompt, reply.content, PROMPT_TOKENS, TEXT_TOKENS, call.latency, call.cost, False, 1, *counts)
    assert (call, 0 < call.latency < 5, call.cost > 0) == (told, True, True)
    assert [role for role, _ in server.turns(received.body)] == ["system", "user"]


@every_vendor
@pytest.mark.parametrize("kind", ["thinking", "parts"])
async def test_a_structured_reply_is_what_the_model_said(vendor, kind):
    """The thought has another score in the same form; it is kept apart, and counted."""
    async with talking(vendor, "plain") as (_, client):
        said, plain = await structured_reply(client, ASK, Score), await ask(client)
    assert said.status == "ok"
    async with talking(vendor, kind) as (server, client):
        with record_calls() as calls:
            typed, reply = await structured_reply(client, ASK, Score), await ask(client)
    assert (typed.status, typed.value, reply.content) == ("ok", said.value, plain.content)
    schemas = [server.schema(received.body) for received in server.requests]
    assert [schema is not None for schema in schemas] == [True, False]
    counted = (TEXT_TOKENS + THOUGHT_TOKENS, reply.thought_tokens)
    assert [(call.completion_tokens, call.thought_tokens, call.thought) for call in calls] == [
        (*counted, thought or "") for thought in (typed.thought, reply.thought)
    ]
    assert all(("Perhaps" in call.thought) is vendor.shows_thoughts for call in calls)
    assert reply.thought_tokens in (None, THOUGHT_TOKENS)
    assert (reply.thinks, client.thinks) == (True, True)


async def test_a_cut_reply(vendor):
    async with talking(vendor, "cut") as (_, client):
        reply = await ask(client)
        assert (reply.cut, reply.empty, reply.refused) == (True, False, False)
        assert (await structured_reply(client, ASK, Score)).status == "cut"


async def test_a_reply_that_is_all_thinking(vendor):
    """It is no fault of the server, so that it is not asked for again, and it is paid for."""
    async with talking(vendor, "null", "retries=3&max_tokens=100") as (server, client):
        with record_calls() as calls:
            reply = await ask(client)
    assert (reply.cut, reply.empty) == (True, True)
    assert sum(call.completion_tokens for call in calls) == THOUGHT_TOKENS * len(server.requests)
    assert len(server.requests) <= 2, "once more, with room to think, if nobody knew that it thinks"


async def test_a_refusal(vendor):
    async with talking(vendor, "refused") as (server, client):
        await ask(client)
        reply = await structured_reply(client, ASK, Score)
    assert (reply.value, reply.status) == (None, "refused")
    assert reply.raw in (REFUSAL, "")
    again = 0 if vendor.marks_refusals else 1
    assert len(server.requests) == 2 + again, "what the vendor marks as a refusal is not asked for again"


@pytest.mark.parametrize("kind", KINDS)
async def test_a_streamed_reply_is_the_same_as_a_whole_one(vendor, kind):
    """In everything that the tests above say of a whole one."""
    async with talking(vendor, kind) as (server, client):
        whole = await ask(client, json_output=Score)
        with record_calls() as calls:
            reply = await ask(client, streamed=True, json_output=Score)
    assert reply == whole
    assert server.wants_stream(server.requests[-1])
    assert [(call.thought, call.cut) for call in calls] == [(whole.thought or "", whole.cut)]


async def test_a_stream_that_breaks_off_is_billed_for_what_arrived(vendor):
    async with talking(vendor, "plain") as (server, client):
        whole = await ask(client)
        server.breaks_off = True
        parts: list[Any] = []
        with record_calls() as calls, pytest.raises(ServerFault):
            parts += [part async for part in client.create_stream(ASK)]
    assert len(server.requests) == 2, "what has begun is not asked for again"
    [call] = calls
    assert call.reply
    assert str(whole.content).startswith(call.reply)
    assert call.prompt_tokens
    assert call.completion_tokens


async def test_tools(vendor):
    """What was thought before a call goes back as the vendor wants it, and never as speech."""
    async with talking(vendor, "thinking", vendor.tool_options or "retries=0") as (server, client):
        reply = await client.create(ASK, tools=[COUNT])
        assert reply.finish_reason == "function_calls"
        [call] = reply.content
        [(_, schema)] = server.tool_schemas(server.requests[0].body)
        assert call.name == "count"
        assert json.loads(call.arguments).keys() == fill(schema, 0).keys()
        last = await client.create(result_of(call, "4", thought=reply.thought), tools=[COUNT])
    assert isinstance(last.content, str)
    assert last.content
    turns = server.turns(server.requests[1].body)
    assert turns[-1] == ("tool", "4")
    assert not any("Perhaps" in text for _, text in turns)


@every_vendor
async def test_room_to_think_is_added_to_the_limit_of_the_answer(vendor):
    """After the first reply every client knows; some know before."""
    async with talking(vendor, "thinking") as (server, client):
        for _ in range(2):
            reply = await client.create(ASK, extra_create_args={"max_tokens": 300})
    assert reply.cached_tokens == (CACHED_TOKENS if vendor.counts_cached else None)
    assert server.rejected == []
    (limit,) = re.findall(r'tokens": (\d+)', json.dumps(server.requests[1].body), re.IGNORECASE)
    assert int(limit) > 5000


@every_vendor
@pytest.mark.parametrize("effort", ["none", "minimal", "low", "medium", "high", "xhigh", "max"])
async def test_an_effort_is_sent_in_the_vendors_words_or_refused_before_any_call(vendor, effort):
    if effort not in vendor.efforts:
        with vendor() as server, pytest.raises(ConfigError, match=f"effort={effort} is not supported"):
            model(server.name(f"effort={effort}"))
        return
    async with talking(vendor, "thinking", f"effort={effort}&retries=0") as (server, client):
        await ask(client)
    assert server.effort(server.requests[0].body) == vendor.efforts[effort]


@every_vendor
async def test_a_temperature_is_sent_where_it_is_accepted_and_refused_where_it_is_not(vendor, capsys):
    async with talking(vendor, "plain") as (server, client):
        await client.create(ASK, extra_create_args={"temperature": 0.5})
    sent = "temperature" in json.dumps(server.requests[0].body)
    assert sent is vendor.takes_temperature is client.takes_temperature
    assert ("accepts no temperature" in capsys.readouterr().err) is not sent
    with vendor() as server:
        if not vendor.takes_temperature:
            with pytest.raises(ConfigError, match=r"accepts no temperature; leave \?temperature= out"):
                model(server.name("temperature=0.5"))


READ = "SELECT judge, metric, subject, value, text FROM verdicts WHERE status = 'ok' AND role != 'coordinator'"


@pytest.mark.nightly
@pytest.mark.parametrize("trial", trials(units=1), ids=lambda trial: trial.name)
def test_a_study_ends_as_it_should_whatever_the_replies(trial, parley, place, run_file, monkeypatch):
    """No thought is taken for speech, and a run whose replies were all cut, empty or refused fails and says so."""
    plain: Any = None
    trial.prepare(place)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    for kind in KINDS:
        (place / "a.sqlite").unlink(missing_ok=True)
        with STANDINS["openai"](kind) as server:
            result = parley(*trial.command(server.name("retries=1")), "--no-cache", "--out", "a.sqlite")
        file = run_file("a.sqlite")
        read = sorted(file.rows(READ), key=str)
        assert server.rejected == []
        assert not file.one("SELECT count(*) FROM transcript WHERE text LIKE '%A thought that nobody hears%'")
        if kind in ("plain", "thinking", "parts"):
            plain = plain or read
            assert (result.status, bool(read), read) == (0, True, plain), kind
        elif read:
            assert kind == "cut", "a text that was cut is kept, and marked"
            assert file.one("SELECT count(*) FROM messages WHERE cut")
        else:
            said = "raise --max-tokens" if kind in ("cut", "null") else "refused"
            assert (result.status, said in result.out + result.err) == (1, True), kind


@pytest.mark.parametrize("kind", KINDS)
async def test_what_was_answered_was_paid_for(vendor, kind):
    async with talking(vendor, kind, "retries=2&price_in=1&price_out=10") as (server, client):
        with record_calls() as calls:
            await structured_reply(client, ASK, Score)
    assert len(calls) == len(server.requests)
    assert all(call.cost and call.prompt_tokens == PROMPT_TOKENS for call in calls)
    spent = (PROMPT_TOKENS * len(calls), sum(call.completion_tokens for call in calls))
    assert (client.total_usage().prompt_tokens, client.actual_usage().completion_tokens) == spent
