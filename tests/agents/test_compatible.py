"""The lean client against a server on loopback: what goes over the wire, and what each kind of trouble becomes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiohttp.test_utils import unused_port
from autogen_core import CancellationToken, FunctionCall
from autogen_core.models import (
    AssistantMessage,
    FunctionExecutionResult,
    FunctionExecutionResultMessage,
    SystemMessage,
    UserMessage,
)
from autogen_core.tools import FunctionTool
from pydantic import BaseModel, Field

from parley.agents import (
    AuthError,
    BadRequest,
    ConfigError,
    RateLimited,
    ServerFault,
    model,
    record_calls,
)

KEY = "sk-a-secret-that-must-not-show"
ASK = [UserMessage(content="How many?", source="user")]


class Score(BaseModel):
    points: int = Field(ge=0, le=10)
    why: str = Field("", max_length=80)


class Verdict(BaseModel):
    A: Score
    B: Score


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OLLAMA_BASE_URL", "PARLEY_SERVER_KEY", "DEEPSEEK_API_KEY"):
        monkeypatch.delenv(name, raising=False)


async def test_an_ordinary_reply_with_usage(server: Any) -> None:
    server.says("Seven.")
    client = server.client(temperature=0.2, max_tokens=9, price_in=1, price_out=10)
    with record_calls() as calls:
        reply = await client.create(ASK)
    assert (reply.content, reply.finish_reason, reply.cached, reply.refused) == ("Seven.", "stop", False, False)
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (12, 3)
    assert server.asked == [
        {
            "model": "m",
            "messages": [{"role": "user", "content": "How many?"}],
            "temperature": 0.2,
            "max_tokens": 9,
        }
    ]
    (call,) = calls
    assert (call.model, call.reply, call.attempts, call.cached) == ("server/m", "Seven.", 1, False)
    assert [tuple(piece) for piece in call.prompt] == [("user", "user", "How many?")]
    # 12 tokens at 1 dollar and 3 at 10 dollars a million
    assert call.cost == pytest.approx(42e-6)
    assert client.total_usage().prompt_tokens == 12


async def test_a_model_without_a_known_price_costs_an_unknown_amount(server: Any) -> None:
    server.says("Seven.")
    with record_calls() as calls:
        await server.client().create(ASK)
    assert calls[0].cost is None


async def test_names_stand_in_the_text_and_neighbours_of_one_role_are_joined(server: Any) -> None:
    server.says("Seven.")
    messages = [
        SystemMessage(content="You are Cy."),
        UserMessage(content="How many?", source="user"),
        UserMessage(content="Six.", source="Ada"),
        UserMessage(content="Eight.", source="Ben"),
        AssistantMessage(content="Seven.", source="Cy"),
        UserMessage(content="Why?", source="Ada"),
    ]
    await server.client().create(messages)
    assert server.asked[0]["messages"] == [
        {"role": "system", "content": "You are Cy."},
        {"role": "user", "content": "How many?\n\nAda: Six.\n\nBen: Eight."},
        {"role": "assistant", "content": "Seven."},
        {"role": "user", "content": "Ada: Why?"},
    ]


async def test_a_schema_is_sent_closed_and_without_references(server: Any) -> None:
    server.says("{}")
    await server.client().create(ASK, json_output=Verdict)
    sent = server.asked[0]["response_format"]
    score = {
        "type": "object",
        "properties": {"points": {"type": "integer", "minimum": 0, "maximum": 10}, "why": {"type": "string"}},
        "required": ["points", "why"],
        "additionalProperties": False,
    }
    assert sent == {
        "type": "json_schema",
        "json_schema": {
            "name": "Verdict",
            "strict": True,
            "schema": {
                "type": "object",
                "properties": {"A": score, "B": score},
                "required": ["A", "B"],
                "additionalProperties": False,
            },
        },
    }


async def test_json_mode_and_no_mode_at_all(server: Any) -> None:
    server.says("{}")
    await server.client(structured="json").create(ASK, json_output=Score)
    await server.client().create(ASK, json_output=True)
    await server.client(structured="none").create(ASK, json_output=Score)
    formats = [asked.get("response_format") for asked in server.asked]
    assert formats == [{"type": "json_object"}, {"type": "json_object"}, None]


async def test_tool_calls_there_and_back(server: Any) -> None:
    async def count(what: str) -> int:
        return len(what)

    call = {"id": "c1", "type": "function", "function": {"name": "count", "arguments": '{"what": "cats"}'}}
    server.says(tool_calls=[call])
    server.says("Four.")
    client = server.client()
    tool = FunctionTool(count, "Counts letters.")
    reply = await client.create(ASK, tools=[tool], tool_choice=tool)
    wanted = FunctionCall(id="c1", name="count", arguments='{"what": "cats"}')
    assert (reply.content, reply.finish_reason) == ([wanted], "function_calls")
    assert server.asked[0]["tools"][0]["function"]["name"] == "count"
    assert server.asked[0]["tool_choice"] == {"type": "function", "function": {"name": "count"}}

    done = FunctionExecutionResult(content="4", name="count", call_id="c1", is_error=False)
    history = [*ASK, AssistantMessage(content=[wanted], source="Cy"), FunctionExecutionResultMessage(content=[done])]
    assert (await client.create(history, tools=[tool])).content == "Four."
    assert server.asked[1]["messages"][1:] == [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "4"},
    ]
    assert server.asked[1]["tool_choice"] == "auto"


async def test_a_bad_request_is_not_tried_again(server: Any) -> None:
    server.fails(400, "the model m\n does not exist")
    with pytest.raises(BadRequest) as caught:
        await server.client().create(ASK)
    assert str(caught.value) == f"server/m: {server.url} answered 400: the model m does not exist"
    assert len(server.asked) == 1


async def test_a_refused_key_names_its_variable_and_never_shows_it(
    server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    server.fails(401, f"Incorrect API key provided: {KEY}")
    client = model("openai/gpt-4o-mini", base_url=server.url)
    with pytest.raises(AuthError) as caught:
        await client.create(ASK)
    await client.close()
    assert "OPENAI_API_KEY" in str(caught.value)
    assert KEY not in str(caught.value)
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
    assert len(server.asked) == 1


async def test_too_many_requests_then_success(server: Any) -> None:
    server.fails(429, headers={"Retry-After": "0.01"})
    server.says("Seven.")
    client = server.client()
    with record_calls() as calls:
        assert (await client.create(ASK)).content == "Seven."
    assert [call.attempts for call in calls] == [2]
    assert client.throttle.slowed == 1


async def test_too_many_requests_tells_how_long_to_wait(server: Any) -> None:
    server.fails(429, headers={"Retry-After": "7"})
    server.fails(429, headers={"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"})
    for expected in (7.0, None):
        with pytest.raises(RateLimited) as caught:
            await server.client(retries=0).create(ASK)
        assert caught.value.retry_after == expected


async def test_a_server_fault_then_success(server: Any) -> None:
    server.fails(500, "out of memory")
    server.says("Seven.")
    with record_calls() as calls:
        assert (await server.client().create(ASK)).content == "Seven."
    assert [call.attempts for call in calls] == [2]


async def test_a_fault_that_stays_is_given_up_with_the_servers_words(server: Any) -> None:
    server.fails(503, "overloaded")
    with pytest.raises(ServerFault, match="answered 503: overloaded"):
        await server.client(retries=1).create(ASK)
    assert len(server.asked) == 2


@pytest.mark.parametrize(
    "body",
    ["<html>Welcome</html>", "[]", "{}", '{"choices": []}', '{"choices": [{"message": {"content": null}}]}', ""],
)
async def test_a_body_that_is_no_reply(server: Any, body: str) -> None:
    server.sends(body)
    with pytest.raises(ServerFault, match="answered what is no reply"):
        await server.client(retries=0).create(ASK)


async def test_half_a_body(server: Any) -> None:
    server.breaks_off()
    server.says("Seven.")
    with pytest.raises(ServerFault, match=server.url):
        await server.client(retries=0).create(ASK)
    assert (await server.client().create(ASK)).content == "Seven."


async def test_no_answer(server: Any) -> None:
    server.keeps_silent()
    with pytest.raises(ServerFault, match=r"server/m: no answer within 0\.05 s"):
        await server.client(retries=0, timeout=0.05).create(ASK)


async def test_nobody_there() -> None:
    url = f"http://127.0.0.1:{unused_port()}/v1"
    client = model(f"server/m?base_url={url}&retries=0")
    with pytest.raises(ServerFault, match=f"server/m: {url}: "):
        await client.create(ASK)
    await client.close()


async def test_a_call_can_be_cancelled(server: Any, until: Any) -> None:
    server.keeps_silent()
    client, token = server.client(), CancellationToken()
    call = asyncio.ensure_future(client.create(ASK, cancellation_token=token))
    await until(lambda: server.asked)
    token.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert client.throttle.under_way == 0


async def test_log_probabilities_can_be_declined(server: Any) -> None:
    server.says("Seven.")
    await server.client().create(ASK, extra_create_args={"logprobs": False})
    assert not server.asked[0].get("logprobs")


def test_a_missing_key_is_told_before_any_work() -> None:
    with pytest.raises(ConfigError) as caught:
        model("openai/gpt-4o-mini")
    assert str(caught.value) == "openai/gpt-4o-mini needs a key: set OPENAI_API_KEY in the environment"
    with pytest.raises(ConfigError, match="DEEPSEEK_API_KEY"):
        model("deepseek/deepseek-chat")


def test_a_missing_or_odd_address_is_told_before_any_work() -> None:
    with pytest.raises(ConfigError, match=r"server/m needs an address: write server/m\?base_url="):
        model("server/m")
    with pytest.raises(ConfigError, match="must begin with http"):
        model("server/m?base_url=localhost:8000")


def test_an_address_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_BASE_URL", "http://gpu:11434/v1/")
    assert model("ollama/llama3.2").identity == "http://gpu:11434/v1 ollama/llama3.2"


def test_options_that_do_not_fit_are_told_before_any_work() -> None:
    with pytest.raises(ConfigError, match="ollama/m: unknown option 'temprature'"):
        model("ollama/m?temprature=1")
    with pytest.raises(ConfigError, match="ollama/m: option 'temperature': "):
        model("ollama/m?temperature=warm")
    with pytest.raises(ConfigError, match="ollama/m: option 'retries': "):
        model("ollama/m", retries=-1)


async def test_openai_gets_its_own_name_for_the_token_limit(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    server.says("Seven.")
    client = model("openai/gpt-4o-mini", base_url=server.url, max_tokens=9)
    await client.create(ASK)
    await client.close()
    assert server.asked[0]["max_completion_tokens"] == 9
    assert "max_tokens" not in server.asked[0]


async def test_no_more_calls_under_way_than_allowed(server: Any) -> None:
    server.says("Seven.")
    client = server.client(max_connections=3)
    replies = await asyncio.gather(*(client.create(ASK) for _ in range(12)))
    assert [reply.content for reply in replies] == ["Seven."] * 12
    assert server.most_under_way == 3


async def test_the_pace_drops_when_the_server_complains_and_recovers(server: Any) -> None:
    server.fails(429)
    server.says("Seven.")
    client = server.client(max_connections=8)
    replies = await asyncio.gather(*(client.create(ASK) for _ in range(8)))
    assert [reply.content for reply in replies] == ["Seven."] * 8
    assert client.throttle.slowed == 1
    assert client.throttle.limit < 8
    for _ in range(40):
        await client.create(ASK)
    assert client.throttle.limit == 8


async def test_refusals_of_one_moment_take_away_one_third_and_not_more(server: Any) -> None:
    for _ in range(5):
        server.fails(429, headers={"Retry-After": "60"})
    server.says("Seven.")
    client = server.client(max_connections=8, retries=0)
    replies = await asyncio.gather(*(client.create(ASK) for _ in range(8)), return_exceptions=True)
    assert sum(isinstance(reply, RateLimited) for reply in replies) == 5
    assert client.throttle.slowed == 5
    assert 8 * 0.67 <= client.throttle.limit < 8


async def test_the_pace_never_drops_to_nothing(server: Any) -> None:
    for _ in range(3):
        server.fails(429)
    server.says("Seven.")
    client = server.client(max_connections=2, retries=0)
    for _ in range(3):
        with pytest.raises(RateLimited):
            await client.create(ASK)
    assert client.throttle.limit == 1
    assert (await client.create(ASK)).content == "Seven."


async def test_who_waits_for_a_place_heeds_the_servers_pause_too(server: Any) -> None:
    server.fails(429, headers={"Retry-After": "60"})
    server.says("Seven.")
    client = server.client(max_connections=1, retries=0)
    first, second = (asyncio.ensure_future(client.create(ASK)) for _ in range(2))
    with pytest.raises(RateLimited):
        await first
    await asyncio.wait([second], timeout=0.2)
    second.cancel()
    assert len(server.asked) == 1
