"""What is peculiar to OpenAI's models: two APIs, and what they accept depends on whether they think."""

from __future__ import annotations

import operator
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from autogen_core.models import UserMessage
from autogen_core.tools import FunctionTool

from parley.agents import BadRequest, Budget, ConfigError, ServerFault, Session, model, record_calls, session
from parley.agents.models.batches import Batches
from parley.agents.models.openai import OpenAIClient, traits_of
from parley.agents.models.request import Request
from parley.agents.models.responses import from_response
from tests.panels import RUN_PANEL
from tests.vendors.base import CACHED_TOKENS, PROMPT_TOKENS, THOUGHT_TOKENS, Rejected
from tests.vendors.openai import Standin as Chat
from tests.vendors.openai_responses import Standin as Responses

SUMMARY = "reasoning.summary"
ASK = [UserMessage(content="How many?", source="user")]


async def count(what: str) -> int:
    return len(what)


TOOL = FunctionTool(count, "Counts letters.")


@pytest.mark.parametrize(
    ("name", "efforts", "thinks"),
    [
        ("gpt-6-astra", ("low", "medium", "high", "xhigh", "max"), True),
        ("gpt-6.1-sol", ("low", "medium", "high", "xhigh", "max"), True),
        ("gpt-6.1-terra", ("none", "low", "medium", "high", "xhigh", "max"), True),
        ("gpt-6-luna", ("none", "low", "medium", "high", "xhigh", "max"), True),
        ("gpt-5-mini", ("minimal", "low", "medium", "high"), True),
        ("gpt-5.2", ("none", "minimal", "low", "medium", "high", "xhigh", "max"), False),
        ("o3", ("low", "medium", "high"), True),
        ("gpt-4.1-mini", (), False),
        ("ft:gpt-4.1:me", ("none", "minimal", "low", "medium", "high", "xhigh", "max"), False),
    ],
)
def test_what_is_known_of_a_model(name: str, efforts: tuple[str, ...], thinks: bool) -> None:
    assert traits_of(name).efforts == efforts
    client = model(f"openai/{name}")
    assert client.thinks is thinks
    assert client.takes_temperature is client.logprobs is not thinks


@pytest.mark.parametrize(
    ("ending", "part", "refused"),
    [
        ({"status": "completed"}, {"type": "output_text", "text": "7"}, False),
        ({"status": "completed"}, {"type": "refusal", "refusal": "7"}, True),
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, None, False),
        ({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}, None, True),
    ],
)
def test_a_filtered_reply_is_refused_whatever_text_it_has(
    ending: dict[str, Any], part: dict[str, str] | None, refused: bool
) -> None:
    message = {"type": "message", "content": [part or {"type": "output_text", "text": "7"}]}
    reply = from_response({"output": [message], **ending})
    assert (reply.content, reply.refused) == ("7", refused)


@pytest.mark.parametrize("name", ["gpt-6-luna", "gpt-6.1-terra"])
def test_a_model_that_is_told_not_to_think_accepts_a_temperature(name: str) -> None:
    assert model(f"openai/{name}?effort=none&temperature=0.5").logprobs
    with pytest.raises(
        ConfigError, match=r"accepts no temperature; leave \?temperature= out, or append \?effort=none$"
    ):
        model(f"openai/{name}?temperature=0.5")
    with pytest.raises(ConfigError, match=r"gpt-6-astra accepts no temperature; leave \?temperature= out$"):
        model("openai/gpt-6-astra?temperature=0.5")


def test_expected_scores_are_refused_before_the_run_with_the_effort_that_gives_them(
    parley: Callable[..., Any], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    command = (*RUN_PANEL, "--suite", "tiny", "--readout", "expected", "--model")
    none = 'parley: readout = "expected" needs log-probabilities, but {} gives none'
    luna = parley(*command, "openai/gpt-6-luna")
    assert (luna.status, luna.complaints) == (2, [none.format("openai/gpt-6-luna") + " except at ?effort=none"])
    assert parley(*command, "openai/gpt-6-astra").complaints == [none.format("openai/gpt-6-astra")]
    assert not list(place.glob("runs/*"))


class OnlyResponses(Responses):
    """Addressed as any model is, without `api=responses`."""

    options = ""


async def test_tools_go_to_responses_if_the_model_thinks() -> None:
    """And always, with models whose chat completions have no tools."""
    for server, options in (
        (OnlyResponses(model="gpt-6-luna"), "retries=0"),
        (OnlyResponses(model="gpt-6.1-terra"), "effort=none"),
        (Chat(model="gpt-6-luna"), "effort=none"),
        (Chat(model="gpt-4.1"), "retries=0"),
    ):
        with server:
            client = model(server.name(options))
            reply = await client.create(ASK, tools=[TOOL])
            await client.close()
        assert reply.finish_reason == "function_calls", server.rejected


async def test_an_organization_that_gets_no_summaries() -> None:
    """OpenAI gives them to verified organizations only; they are not asked for because of a tool."""

    class Unverified(OnlyResponses):
        def check(self, received: Any) -> None:
            super().check(received)
            if received.body.get("reasoning", {}).get("summary"):
                raise Rejected("Your organization must be verified to generate reasoning summaries.", 400, SUMMARY)

    with Unverified("thinking") as server:
        for options, tools in (("api=responses&summary=none", []), ("effort=low", [TOOL])):
            client = model(server.name(options))
            assert not (await client.create(ASK, tools=tools)).thought
            await client.close()
        client = model(server.name("api=responses"))
        with pytest.raises(BadRequest, match=r"reasoning summaries\.; or append \?summary=none$"):
            await client.create(ASK)
        await client.close()


async def test_a_batch_takes_no_tools() -> None:
    client = model("openai/gpt-6-luna")
    assert isinstance(client, OpenAIClient)
    with pytest.raises(BadRequest, match="cannot be sent in a batch"):
        Batches(client).line("a", Request(tuple(ASK), tools=(TOOL,)))
    assert not model("openai/gpt-6-luna?api=responses").batches  # type: ignore[attr-defined]


async def test_writing_to_the_prompt_cache_is_paid_for() -> None:
    """gpt-6-luna: 30 of 100 tokens written at 1.25 times the price, 40 read at the cached one."""
    with Chat() as server:
        client = model(server.name())
        with record_calls() as calls:
            reply = await client.create(ASK)
        await client.close()
    price = client.price
    assert (reply.cached_tokens, reply.written_tokens) == (CACHED_TOKENS, 30)
    rates = (price.prompt or 0, price.cached or 0, price.completion or 0)
    tokens = (PROMPT_TOKENS - CACHED_TOKENS + 30 * 0.25, CACHED_TOKENS, 20)
    assert min(rates) > 0
    assert calls[0].cost == pytest.approx(sum(map(operator.mul, rates, tokens)) / 1e6)


async def test_a_stream_that_fails_counts_with_what_arrived() -> None:
    class Failing(Responses):
        def events(self, answer: Any, received: Any) -> Any:
            yield (
                "response.reasoning_summary_text.delta",
                {
                    "type": "response.reasoning_summary_text.delta",
                    "delta": "Hm.",
                },
            )
            failed = {"status": "failed", "error": {"code": "server_error", "message": "out of luck"}}
            yield "response.failed", {"type": "response.failed", "response": failed}

    budget = Budget(max_calls=5)
    with Failing("thinking") as server, session(Session(budget=budget)):
        client = model(server.name())
        with pytest.raises(ServerFault, match="out of luck"):
            [part async for part in client.create_stream(ASK)]
        await client.close()
    assert (budget.calls, budget.tokens > 0) == (1, True)


async def test_an_answer_that_failed_without_a_stream_is_paid_for() -> None:
    class Failing(Responses):
        def reply(self, answer: Any, received: Any) -> Any:
            return {**super().reply(answer, received), "status": "failed"}

    budget = Budget(max_calls=5)
    with Failing("thinking") as server, session(Session(budget=budget)):
        client = model(server.name())
        with pytest.raises(ServerFault, match="unreadable reply"):
            await client.create(ASK)
        await client.close()
    assert (budget.calls, budget.tokens) == (1, PROMPT_TOKENS + THOUGHT_TOKENS + 20)
