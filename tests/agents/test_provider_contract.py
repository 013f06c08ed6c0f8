"""What every provider's client does in trouble, whatever its wire format. What their replies may be, and what their
vendors accept, is in tests/vendors/test_contract.py."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from aiohttp.test_utils import unused_port
from autogen_core import CancellationToken
from autogen_core.models import AssistantMessage, SystemMessage, UserMessage
from pydantic import BaseModel, Field

from parley.agents import AuthError, BadRequest, ConfigError, ModelError, RateLimited, ServerFault, model, record_calls
from tests.agents.providers import (
    COMPLETION_TOKENS,
    GOOGLE,
    KEY,
    PROMPT_TOKENS,
    PROVIDERS,
    ProviderCase,
    ProviderServer,
    serving,
)

# The Anthropic SDK warns about models near their end of life; which ones depends on its version.
pytestmark = pytest.mark.filterwarnings("ignore:The model:DeprecationWarning")

ASK = [UserMessage(content="How many?", source="user")]
UNREADABLE = ("<html>hello</html>", "{broken", "[]", "[1, 2]", '{"a": 1}', "", "{}")


class Score(BaseModel):
    points: int = Field(ge=0, le=10)
    why: str


@pytest.fixture(params=PROVIDERS, ids=str)
def provider(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ProviderCase:
    case: ProviderCase = request.param
    for variable in case.variables:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv(case.key_variable, KEY)
    return case


@pytest.fixture
async def server(provider: ProviderCase) -> AsyncIterator[ProviderServer]:
    async with serving(provider) as server:
        yield server


def only(*cases: ProviderCase) -> pytest.MarkDecorator:
    """For stories that not every provider has."""
    return pytest.mark.parametrize("provider", cases, ids=str, indirect=True)


async def test_a_plain_reply_with_usage(server: ProviderServer) -> None:
    server.replies("Seven.")
    messages = [
        SystemMessage(content="Be short."),
        *ASK,
        AssistantMessage(content="Of what?", source="ada"),
        UserMessage(content="Of cats.", source="bob"),
    ]
    with record_calls() as calls:
        reply = await server.client().create(messages)
    assert (reply.content, reply.finish_reason, reply.cached, reply.refused) == ("Seven.", "stop", False, False)
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (PROMPT_TOKENS, COMPLETION_TOKENS)
    turns = [("user", "How many?"), ("assistant", "Of what?"), ("user", "bob: Of cats.")]
    assert server.wire.prompt(server.asked[0]) == ("Be short.", turns)
    assert server.wire.key(server.headers[0]) == KEY
    assert [(call.reply, call.attempts) for call in calls] == [("Seven.", 1)]


@only(*(case for case in PROVIDERS if case.schemas))
async def test_a_structured_reply(server: ProviderServer) -> None:
    server.sends(server.wire.structured({"points": 7, "why": "cats"}))
    reply = await server.client().create(ASK, json_output=Score)
    assert Score.model_validate_json(str(reply.content)) == Score(points=7, why="cats")
    assert (reply.finish_reason, reply.refused) == ("stop", False)
    limits = {"minimum": 0, "maximum": 10} if server.provider.limits else {"description": "{maximum: 10, minimum: 0}"}
    assert server.wire.schema(server.asked[0]) == {
        "type": "object",
        "properties": {
            "points": {"type": "integer", **limits},
            "why": {"type": "string"},
        },
        "required": ["points", "why"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize("status", [401, 403])
async def test_a_refused_key_names_its_variable_and_is_not_shown(server: ProviderServer, status: int) -> None:
    server.fails(status, f"Incorrect API key provided: {KEY}")
    with pytest.raises(AuthError, match=f"check {server.provider.key_variable}$") as caught:
        await server.client(retries=3).create(ASK)
    assert KEY not in str(caught.value)
    assert len(server.asked) == 1


async def test_a_bad_request_is_not_tried_again(server: ProviderServer) -> None:
    server.fails(400, f"no model\n of that name, {KEY}")
    with pytest.raises(BadRequest) as caught:
        await server.client(retries=3).create(ASK)
    name = server.provider.model
    assert str(caught.value) == f"{name}: {server.url} answered 400: no model of that name, ***"
    assert len(server.asked) == 1


async def test_a_rate_limit_is_waited_out(server: ProviderServer) -> None:
    server.fails(429, "slow down", {"Retry-After": "0.8"})  # longer than the first back-off, at most 0.75 s
    server.replies("Seven.")
    client = server.client(retries=2)
    started = time.monotonic()
    with record_calls() as calls:
        assert (await client.create(ASK)).content == "Seven."
    assert time.monotonic() - started >= 0.8
    assert [call.attempts for call in calls] == [2]
    assert client.throttle.slowed == 1


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "37.5"}, 37.5),
        ({"Retry-After": "2", "retry-after-ms": "1500"}, 1.5),
        ({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"Retry-After": "later"}, None),
        ({"Retry-After": "nan"}, None),
    ],
)
async def test_a_rate_limit_says_how_long_to_wait(
    server: ProviderServer, headers: dict[str, str], seconds: float | None
) -> None:
    server.fails(429, "slow down", headers)
    with pytest.raises(RateLimited) as caught:
        await server.client(retries=0).create(ASK)
    assert caught.value.retry_after == seconds
    assert len(server.asked) == 1


async def test_a_rate_limit_may_give_a_date(server: ProviderServer) -> None:
    server.fails(429, "slow down", {"Retry-After": format_datetime(datetime.now(UTC) + timedelta(seconds=90), True)})
    with pytest.raises(RateLimited) as caught:
        await server.client(retries=0).create(ASK)
    assert caught.value.retry_after == pytest.approx(90, abs=5)


@pytest.mark.parametrize("status", [408, 500, 503, 529])
async def test_a_server_fault_is_sent_once_by_the_sdk(server: ProviderServer, status: int) -> None:
    server.fails(status, f"oh no {KEY}", {"Retry-After": "2"})
    with pytest.raises(ServerFault, match=rf"answered {status}: oh no \*\*\*$") as caught:
        await server.client(retries=0).create(ASK)
    assert (caught.value.retryable, caught.value.retry_after) == (True, 2)
    assert len(server.asked) == 1


async def test_a_server_fault_is_tried_again_by_us(server: ProviderServer) -> None:
    server.fails(500, "out of memory")
    server.replies("Seven.")
    with record_calls() as calls:
        assert (await server.client(retries=1).create(ASK)).content == "Seven."
    assert [call.attempts for call in calls] == [2]


async def test_a_fault_that_persists_is_raised_with_the_servers_message(server: ProviderServer) -> None:
    server.fails(503, "overloaded")
    with pytest.raises(ServerFault, match="answered 503: overloaded"):
        await server.client(retries=1).create(ASK)
    assert len(server.asked) == 2


@pytest.mark.parametrize(
    ("provider", "body"),
    [(case, body) for case in PROVIDERS for body in (*UNREADABLE, *case.wire.unreadable)],
    ids=str,
    indirect=["provider"],
)
async def test_a_body_that_is_not_a_reply(server: ProviderServer, body: str) -> None:
    server.sends(body)
    with pytest.raises(ServerFault, match="sent an unreadable reply"):
        await server.client(retries=0).create(ASK)


@pytest.mark.parametrize("body", ["<html>hello</html>", "{broken", '{"error": "text"}', "[]"])
async def test_an_error_with_an_odd_body(server: ProviderServer, body: str) -> None:
    server.sends(body, 502)
    # Google's SDK fails on some of them before it looks at the status.
    with pytest.raises(ServerFault, match=None if server.provider is GOOGLE else "answered 502"):
        await server.client(retries=0).create(ASK)


async def test_half_a_body(server: ProviderServer) -> None:
    server.breaks_off()
    server.replies("Seven.")
    with pytest.raises(ServerFault, match=server.url):
        await server.client(retries=0).create(ASK)
    assert (await server.client().create(ASK)).content == "Seven."


async def test_no_connection_fails_quickly(provider: ProviderCase) -> None:
    url = f"http://127.0.0.1:{unused_port()}{provider.wire.path}"
    client = model(provider.model, base_url=url, retries=0)
    started = time.monotonic()
    with pytest.raises(ServerFault, match=f"{provider.model}: {url}: ") as caught:
        await client.create(ASK)
    await client.close()
    assert time.monotonic() - started < 20
    assert KEY not in str(caught.value)


async def test_a_timeout(server: ProviderServer) -> None:
    server.keeps_silent()
    with pytest.raises(ServerFault, match=rf"{server.provider.model}: no answer within 0\.1 s"):
        await server.client(retries=0, timeout=0.1).create(ASK)


async def test_a_call_can_be_cancelled(server: ProviderServer, until: Any) -> None:
    server.keeps_silent()
    client, token = server.client(), CancellationToken()
    call = asyncio.ensure_future(client.create(ASK, cancellation_token=token))
    await until(lambda: server.asked)
    token.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert client.throttle.under_way == 0


@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500])
async def test_no_error_shows_the_key(server: ProviderServer, status: int) -> None:
    """Not even a part of it, where a long message is shortened."""
    server.fails(status, "x" * 190 + KEY)
    with pytest.raises(ModelError) as caught:
        await server.client(retries=0).create(ASK)
    assert KEY[:8] not in str(caught.value)


@only(*(case for case in PROVIDERS if case.key_needed))
@pytest.mark.parametrize("value", [None, "", "  "])
def test_a_missing_key_is_reported_before_any_work(
    provider: ProviderCase, monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    monkeypatch.delenv(provider.key_variable)
    if value is not None:
        monkeypatch.setenv(provider.key_variable, value)
    with pytest.raises(ConfigError) as caught:
        model(provider.model)
    assert str(caught.value).startswith(f"{provider.model} needs a key: set {provider.key_variable}")
    assert str(caught.value).endswith(" in the environment")


@only(*(case for case in PROVIDERS if case.url_variable))
def test_addresses(provider: ProviderCase, monkeypatch: pytest.MonkeyPatch) -> None:
    assert provider.url_variable
    assert model(provider.model).identity == f"{provider.default_url} {provider.model}"
    monkeypatch.setenv(provider.url_variable, "https://proxy/v1/")
    assert model(provider.model).identity == f"https://proxy/v1 {provider.model}"


def test_an_address_that_is_not_one_is_reported_before_any_work(provider: ProviderCase) -> None:
    with pytest.raises(ConfigError, match="must begin with http"):
        model(provider.model, base_url="localhost:8000")
