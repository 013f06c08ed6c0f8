"""Budgets of tokens and dollars: what a server does not count is estimated, and calls in progress are counted too."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from aiohttp import web
from autogen_core.models import UserMessage

from parley.agents import Budget, Session, model, session
from parley.agents.models.session import Estimate
from parley.base.errors import BudgetSpent
from tests.panels import TINY_PANEL

PRICES = "retries=0&price_in=1000&price_out=1000"
"""A tenth of a cent a token."""
SPENT = "SELECT count(*), sum(prompt_tokens + completion_tokens), sum(cost) FROM calls WHERE NOT cached"
ALL = 72
"""Calls of the whole run."""
USAGES: dict[str, Any] = {
    "absent": ...,
    "null": None,
    "empty": {},
    "zero": {"prompt_tokens": 0, "completion_tokens": 0},
    "negative": {"prompt_tokens": -100, "completion_tokens": -20},
    "texts": {"prompt_tokens": "100", "completion_tokens": "20"},
    "floats": {"prompt_tokens": 100.5, "completion_tokens": 20.5},
    "huge": {"prompt_tokens": 10**30, "completion_tokens": 10**9},
    "nulls inside": {"prompt_tokens": None, "completion_tokens": None, "prompt_tokens_details": None},
    "booleans": {"prompt_tokens": True, "completion_tokens": False},
    "only the prompt's": {"prompt_tokens": 0, "completion_tokens": None, "total_tokens": 120},
    "a list": [100, 20],
}


def completion(server, body, usage, text=None):
    message = {"role": "assistant", "content": text or server.fitting(body)}
    counts = {} if usage is ... else {"usage": usage}
    return web.json_response({"choices": [{"message": message, "finish_reason": "stop"}], **counts})


@pytest.mark.parametrize("name", USAGES)
def test_a_budget_stops_a_run_whose_server_counts_no_tokens(parley, server, run_file, name):
    if name == "a list":
        server.answer = lambda nth, body: completion(server, body, {"prompt_tokens": [100], "completion_tokens": {}})
    else:
        server.answer = lambda nth, body: completion(server, body, USAGES[name])
    command = (*TINY_PANEL, "--model", server.model(PRICES), "--out", "a.sqlite", "--concurrency", "4")
    result = parley(*command, "--budget-cost", "5")
    assert (result.status, "the budget of $5 is spent" in result.err) == (1, True), result
    assert 4 < len(server.asked) < ALL / 2
    assert parley(*command, "--budget-cost", "5").status == 1
    calls = len(server.asked)
    assert parley(*command, "--budget-cost", "5").status == 1
    assert len(server.asked) == calls, "a run that is resumed knows what was spent"
    if name == "absent":
        assert parley(*command, "--budget-tokens", "9000").status == 1
        assert parley(*command).status == 0
        count, tokens, cost = run_file("a.sqlite").rows(SPENT)[0]
        assert (count > 0, cost) == (True, pytest.approx(tokens / 1000))
        assert tokens > 9000


@pytest.mark.parametrize("budget", [("--budget-cost", "3"), ("--budget-tokens", "3000")])
@pytest.mark.parametrize("concurrency", ["16", "64"])
def test_calls_in_progress_are_counted(parley, server, budget, concurrency):
    """120 tokens and 12 cents a call: 25 calls, however many are sent at once; before, all of those were sent."""
    server.delay = 0.02
    command = (*TINY_PANEL, "--repeats", "8", "--concurrency", concurrency, "--no-cache", "--out", "a.sqlite")
    result = parley(*command, "--model", server.model(PRICES), *budget)
    assert result.status == 1
    assert "is spent" in result.err
    assert 24 <= len(server.asked) <= 26


def test_replies_from_the_cache_cost_nothing_and_those_asked_for_again_do(parley, server, run_file, place):
    command = (*TINY_PANEL, "--model", server.model(PRICES), "--out", "a.sqlite")
    assert parley(*command, "--budget-cost", "1000").status == 0
    (place / "a.sqlite").unlink()
    asked = len(server.asked)
    assert parley(*command, "--budget-cost", "0.001", "--budget-tokens", "1").status == 0
    assert len(server.asked) == asked
    server.answer = lambda nth, body: completion(server, body, ..., "no form at all, as long as it may be")
    once_more = parley(
        *TINY_PANEL, "--seed", "5", "--model", server.model(PRICES), "--out", "b.sqlite", "--budget-cost", "5"
    )
    assert once_more.status == 1
    assert "the budget of $5 is spent" in once_more.err


async def test_a_stream_without_usage_is_counted_too(server):
    client = model(server.model(PRICES))
    chunk = json.dumps({"choices": [{"delta": {"content": "Forty characters are ten tokens, my dear."}}]})
    text = f"data: {chunk}\n\ndata: [DONE]\n\n"
    server.answer = lambda nth, body: web.Response(text=text, content_type="text/event-stream")
    budget = Budget(max_tokens=40)
    with session(Session("a", budget=budget)), suppress(BudgetSpent):
        for _ in range(20):
            _ = [part async for part in client.create_stream([UserMessage(content="Say forty.", source="user")])]
    await client.close()
    assert 40 <= budget.tokens <= 60
    assert budget.reserved == []


async def test_a_call_that_fails_or_is_abandoned_gives_back_what_it_reserved(server):
    client = model(server.model(PRICES))
    server.answer = lambda nth, body: web.Response(status=400, text="no")
    budget = Budget(max_tokens=10_000)
    with session(Session("a", budget=budget)), suppress(Exception):
        await client.create([UserMessage(content="Hello.", source="user")])
    await client.close()
    assert (budget.reserved, budget.calls, budget.tokens) == ([], 0, 0)


async def test_a_call_waits_for_room_and_a_lone_one_is_sent():
    budget = Budget(max_tokens=100)
    assert budget.reserve(Estimate(5000, 0.0)), "its estimate may be too high"
    assert not budget.reserve(Estimate(1, 0.0))
    budget.release(Estimate(5000, 0.0))
    assert budget.reserve(Estimate(60, 0.0))
    assert budget.reserve(Estimate(40, 0.0))
    assert not budget.reserve(Estimate(1, 0.0))
    budget.tokens = 100
    with pytest.raises(BudgetSpent):
        budget.reserve(Estimate(0, 0.0))
