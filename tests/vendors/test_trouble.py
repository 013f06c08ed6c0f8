"""What every vendor's client does in trouble: errors, odd bodies, broken connections, settings that cannot work.

What their replies may be, and what their vendors accept, is in test_contract.py.
"""

from __future__ import annotations

import asyncio
import json
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from aiohttp.test_utils import unused_port
from autogen_core import CancellationToken, FunctionCall, Image
from autogen_core.models import (
    AssistantMessage,
    FunctionExecutionResult,
    FunctionExecutionResultMessage,
    SystemMessage,
    UserMessage,
)
from PIL import Image as Picture

from parley.agents import (
    AuthError,
    BadRequest,
    Budget,
    BudgetSpent,
    ConfigError,
    ModelError,
    RateLimited,
    ServerFault,
    Session,
    model,
    record_calls,
    session,
)
from parley.agents.models.throttle import backoff
from parley.base.errors import Unreachable
from tests.agents.common import ASK, KEY
from tests.servers import until
from tests.vendors.asking import STANDINS, client_of
from tests.vendors.base import PROMPT_TOKENS, TEXT_TOKENS, StrictServer

# The Anthropic SDK warns about models near their end of life; which ones depends on its version.
pytestmark = pytest.mark.filterwarnings("ignore:The model:DeprecationWarning")

OWN_FORMATS = ("anthropic", "google", "openai", "server")
"""The others' clients are these with other names: what is said of them is tested nightly too."""
PROXIES = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy")


@pytest.fixture(
    params=[pytest.param(name, marks=[] if name in OWN_FORMATS else pytest.mark.nightly) for name in STANDINS]
)
def server(request, monkeypatch):
    for variable in PROXIES:
        monkeypatch.delenv(variable, raising=False)
    # Without the back-off, which is tested once: only what the server asks for is waited.
    monkeypatch.setattr("parley.agents.models.throttle.backoff", lambda attempt, retry_after: retry_after or 0.0)
    with STANDINS[request.param]() as running:
        yield running


def of(*names: str) -> pytest.MarkDecorator:
    """For stories that not every vendor has."""
    return pytest.mark.parametrize("server", names, indirect=True)


def each(field: str, *more: Any) -> pytest.MarkDecorator:
    """For values that each format has of its own, and for more that are the same for all."""
    rows = [(name, value) for name in OWN_FORMATS for value in getattr(STANDINS[name], field)]
    rows += [(name, value) for name in OWN_FORMATS for value in more]
    return pytest.mark.parametrize(("server", "body"), rows, indirect=["server"], ids=str)


async def failure(server: StrictServer, options: str = "retries=0") -> ModelError:
    """How a call fails."""
    async with client_of(server, options) as client:
        with pytest.raises(ModelError) as caught:
            await client.create(ASK)
    assert KEY[:8] not in str(caught.value)
    return caught.value


def secret_of(server: StrictServer) -> str:
    """The key, or what a server without one would show of it."""
    return KEY if server.key_variable else "***"


TROUBLE: list[tuple[int, dict[str, str], type[ModelError], float | None]] = [
    (401, {}, AuthError, None),
    (403, {}, AuthError, None),
    (400, {}, BadRequest, None),
    (408, {"Retry-After": "2"}, ServerFault, 2),
    (529, {"Retry-After": "2"}, ServerFault, 2),
    (503, {}, ServerFault, None),
    (429, {"Retry-After": "37.5"}, RateLimited, 37.5),
    (429, {"Retry-After": "2", "retry-after-ms": "1500"}, RateLimited, 1.5),
    (429, {"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, RateLimited, 0.0),
    (429, {"Retry-After": "a date, 90 s from now"}, RateLimited, 90),
    (429, {"Retry-After": "later"}, RateLimited, None),
    (429, {"Retry-After": "nan"}, RateLimited, None),
    (429, {"Retry-After": "1e300"}, RateLimited, 1e9),
    (429, {"Retry-After": "Fri, 31 Dec 99999 00:00:00 GMT"}, RateLimited, None),
]


@pytest.mark.parametrize(("status", "headers", "error", "seconds"), TROUBLE)
async def test_trouble_has_the_servers_message_without_the_key_and_says_whether_and_when_to_try_again(
    server, status, headers, error, seconds
):
    if seconds == 90:
        headers = {"Retry-After": format_datetime(datetime.now(UTC) + timedelta(seconds=90), True)}
    server.fails(status, f"no model\n of that name, {secret_of(server)}", headers)
    again = error in (ServerFault, RateLimited)
    caught = await failure(server, "retries=0" if again else "retries=3")
    assert (type(caught), caught.retryable, len(server.asked)) == (error, again, 1), "neither we nor the SDK try again"
    said, name = str(caught), f"{server.provider}/{server.served}"
    if error is AuthError:
        assert said.endswith(f"check {server.key_variable}") or not server.key_variable
    elif error is not RateLimited:
        assert said.startswith(f"{name}: {server.url} answered {status}: no model of that name, ***")
    assert getattr(caught, "retry_after", None) == (pytest.approx(seconds, abs=20) if seconds == 90 else seconds)


async def test_no_part_of_the_key_is_shown_where_a_long_message_is_shortened(server):
    server.fails(400, "x" * 190 + secret_of(server))
    assert "xxx" in str(await failure(server))


@pytest.mark.parametrize(("status", "headers"), [(429, {"Retry-After": "0.3"}), (500, {})])
async def test_what_may_pass_is_tried_again_after_the_pause_that_the_server_asks_for(server, status, headers):
    server.fails(status, "slow down", headers)
    server.says("Seven.")
    started = time.monotonic()
    async with client_of(server, "retries=2") as client:
        with record_calls() as calls:
            assert (await client.create(ASK)).content == "Seven."
    assert time.monotonic() - started >= float(headers.get("Retry-After", 0))
    assert ([call.attempts for call in calls], client.throttle.slowed) == ([2], status == 429)


def test_the_wait_doubles_up_to_a_limit_and_is_at_least_what_the_server_asks_for():
    for attempt, seconds in ((1, 0.5), (2, 1.0), (4, 4.0), (12, 30.0)):
        assert 0.5 * seconds <= backoff(attempt, None) <= 1.5 * seconds
    assert backoff(1, 60.0) == 60.0


@each("unreadable", "<html>hello</html>", "{broken", "[]", "[1, 2]", '{"a": 1}', "", "{}")
async def test_a_body_that_is_not_a_reply(server, body):
    server.sends(body)
    caught = await failure(server)
    assert (type(caught), "sent an unreadable reply" in str(caught)) == (ServerFault, True)


@each("spoilt")
async def test_an_answer_that_cannot_be_used_is_billed_all_the_same(server, body):
    whole, budget = server.reply, Budget(max_calls=2)
    server.reply = lambda answer, received: {**whole(answer, received), **body}  # type: ignore[method-assign]
    async with client_of(server, "retries=6") as client:
        with session(Session(sample="s", budget=budget)), record_calls() as calls, pytest.raises(BudgetSpent):
            await client.create(ASK)
    assert (len(server.asked), len(calls), budget.calls) == (2, 2, 2)
    assert budget.tokens == 2 * (PROMPT_TOKENS + TEXT_TOKENS)


CALL = FunctionCall(id="y", name="sum", arguments='{"a": 1}')


@of("anthropic", "google")
async def test_broken_tool_calls_and_empty_turns_can_be_sent(server):
    server.says("7")
    result = FunctionExecutionResult(content="no", name="count", call_id="x", is_error=True)
    history = [
        *ASK,
        AssistantMessage(content="", source="a"),
        UserMessage(content="Again.", source="user"),
        AssistantMessage(content=[FunctionCall(id="x", name="count", arguments="{broken"), CALL], source="a"),
        FunctionExecutionResultMessage(content=[result, result.model_copy(update={"call_id": "y", "name": "sum"})]),
        UserMessage(content="And?", source="user"),
    ]
    async with client_of(server) as client:
        await client.create(history)
    turns = server.turns(server.asked[0].body)
    assert ([role for role, _ in turns], turns[0][1]) == (["user", "assistant", "tool"], "How many?\n\nAgain.")
    body = json.dumps(server.asked[0].body)
    assert "And?" in body
    assert all(part in body for part in ('{"a": 1}', '"count"', '"sum"', ": {}"))


@pytest.mark.parametrize("body", ["<html>hello</html>", "{broken", '{"error": "text"}', "[]"])
async def test_an_error_with_an_odd_body(server, body):
    server.sends(body, 502)
    caught = await failure(server)
    # Google's SDK fails on some of them before it looks at the status.
    assert (type(caught), "answered 502" in str(caught) or server.provider == "google") == (ServerFault, True)


async def test_neither_a_body_without_end_nor_a_broken_one_is_waited_for(server, monkeypatch):
    monkeypatch.setattr(server.size_limit, 5000)
    server.says("x" * 6000)
    server.fails(400, "x" * 6000)
    for _ in range(2):
        assert "the response is larger than 5,000 bytes" in str(await failure(server))
    monkeypatch.setattr(server.size_limit, 20)
    async with client_of(server) as client:
        with pytest.raises(ServerFault, match=f"{server.url}: the response is larger than 20 bytes$"):
            _ = [part async for part in client.create_stream(ASK)]
    monkeypatch.setattr(server.size_limit, 5000)
    server.cuts_off()
    assert server.url in str(await failure(server))
    server.cuts_off()
    server.says("Seven.")
    async with client_of(server, "retries=1") as client:
        assert (await client.create(ASK)).content == "Seven."


async def test_a_server_that_never_answered_is_given_up_soon(server, monkeypatch):
    monkeypatch.setattr("parley.agents.models.throttle.FIRST_CONTACT_SECONDS", 0.0)
    server.url = f"http://127.0.0.1:{unused_port()}{server.path}"
    caught = await failure(server, "retries=1000")
    name = f"{server.provider}/{server.served}"
    assert str(caught).startswith(f"{name}: no connection to {server.url} (connection refused)")
    assert type(caught) is Unreachable
    server.url = "http://models.invalid"
    hint = "check the address and the network; local/smollm2 works offline"
    assert str(await failure(server)) == f"{name}: the name models.invalid cannot be resolved: {hint}"


@pytest.mark.parametrize("proxy", ["127.0.0.1", "proxy.invalid"], ids=["refuses", "has no address"])
async def test_a_proxy_that_cannot_be_reached_is_named(server, proxy, monkeypatch):
    """Anthropic's message named the server, and all of them did where the proxy's name was wrong."""
    monkeypatch.setenv("HTTPS_PROXY", f"http://ada:s3cret@{proxy}:{unused_port()}")
    server.url = "https://models.invalid"
    said = str(await failure(server))
    assert said.endswith(f"no connection to the proxy {proxy}: check HTTPS_PROXY and the network")


PICTURE = Image(Picture.new("RGB", (2, 2), "red"))
SHOWN = [UserMessage(content=["Which colour?", PICTURE], source="Ben")]


@pytest.mark.parametrize(
    ("server", "messages", "options", "said"),
    [
        ("anthropic", [SystemMessage(content="Be short.")], {}, "there is no message to answer"),
        ("google", [SystemMessage(content="Be short.")], {}, "there is no message to answer"),
        ("google", ASK, {"effort": "max"}, r"effort=max is not supported \(supported: low, medium, high\)"),
        *((vendor, SHOWN, {}, "this client accepts text only, but a message contains an image") for vendor in STANDINS),
    ],
    indirect=["server"],
)
async def test_what_cannot_be_sent_is_said(server, messages, options, said):
    async with client_of(server) as client:
        with pytest.raises(BadRequest, match=f"{said}$"):
            await client.create(messages, extra_create_args=options)
    assert server.asked == []


@of("google", "openai", "server")
async def test_a_streamed_line_without_end(server):
    server.sends(f"data: {'x' * 5 * 2**20}")
    async with client_of(server) as client:
        with pytest.raises(ServerFault, match="sent a line that is too long"):
            _ = [part async for part in client.create_stream(ASK)]


async def test_a_timeout_and_a_cancelled_call(server):
    for _ in range(2):
        server.keeps_silent()
    caught = await failure(server, "retries=0&timeout=0.1")
    name = f"{server.provider}/{server.served}"
    assert (type(caught), str(caught).startswith(f"{name}: no answer within 0.1 s")) == (ServerFault, True)
    before = len(server.asked)
    async with client_of(server) as client:
        token = CancellationToken()
        call = asyncio.ensure_future(client.create(ASK, cancellation_token=token))
        await until(lambda: len(server.asked) > before)
        token.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert client.throttle.under_way == 0


# Before any call


@pytest.mark.parametrize(
    ("key", "address", "proxy", "said"),
    [
        (f"{KEY}\n{KEY}", "https://host", "", "{variable} contains a line break; a key has none"),
        (None, None, "", "{model} needs a key: set {variable}"),
        ("  ", None, "", "{model} needs a key: set {variable}"),
        (KEY, "localhost:8000", "", "must begin with http"),
        (KEY, "https://host", "socks5://proxy:1080", "only proxies that begin with http:// are supported"),
    ],
    ids=["key with a line break", "no key", "blank key", "no address", "proxy"],
)
def test_what_cannot_work_is_said_before_any_work(server, monkeypatch, key, address, proxy, said):
    if server.key_variable is None or (address is None and server.provider == "server"):
        pytest.skip("it needs no key")
    monkeypatch.delenv(server.key_variable)
    if key is not None:
        monkeypatch.setenv(server.key_variable, key)
    monkeypatch.setenv("ALL_PROXY", proxy)
    name = f"{server.provider}/{server.served}"
    with pytest.raises(ConfigError) as caught:
        model(name, **({} if address is None else {"base_url": address}))
    assert said.format(variable=server.key_variable, model=name) in str(caught.value)
    assert KEY not in str(caught.value)
