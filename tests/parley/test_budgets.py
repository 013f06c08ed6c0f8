"""Budgets of tokens and dollars: what a server does not count is estimated, and calls in progress are counted too."""

from __future__ import annotations

import copy
import json
from contextlib import suppress
from typing import Any

import pytest
from aiohttp import web
from autogen_core.models import UserMessage

from parley.agents import Budget, Session, model, session
from parley.agents.models.session import Estimate, Used
from parley.base.errors import BudgetSpent
from parley.runs import RunFile
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
    "a text": "120 tokens",
    "lists inside": {"prompt_tokens": [100], "completion_tokens": {}},
}


def completion(server, body, usage, text=None):
    message = {"role": "assistant", "content": text or server.fitting(body)}
    counts = {} if usage is ... else {"usage": usage}
    return web.json_response({"choices": [{"message": message, "finish_reason": "stop"}], **counts})


@pytest.mark.parametrize("name", USAGES)
def test_a_budget_stops_a_run_whose_server_counts_no_tokens(parley, server, run_file, name):
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


BROKEN = {
    "no choices": web.Response(text='{"choices": []}', content_type="application/json"),
    "no JSON": web.Response(body=b"\x89PNG", content_type="image/png"),
    "an error": web.Response(text='{"error": "overloaded", "usage": [1]}', content_type="application/json"),
    "shorter than it says": web.Response(body=b"{", headers={"Content-Length": "1000"}),
}


@pytest.mark.parametrize("name", BROKEN)
def test_each_response_with_status_200_counts(parley, server, run_file, name):
    """Its vendor bills it, whatever is wrong with it: before, 259 were sent on a budget of 37."""
    broken = BROKEN[name]
    server.answer = lambda nth, body: None if nth % 3 else copy.copy(broken)
    command = (*TINY_PANEL, "--model", server.model("retries=3"), "--out", "a.sqlite", "--concurrency", "8")
    for budget in (20, 37):
        result = parley(*command, "--budget-calls", str(budget))
        assert f"the budget of {budget} calls is spent" in result.err
        assert len(server.asked) == budget
    with RunFile.open(run_file("a.sqlite").path) as file:
        assert file.spent().calls == 37


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
    assert budget.reserved == {}


async def test_a_call_that_fails_or_is_abandoned_gives_back_what_it_reserved(server):
    client = model(server.model(PRICES))
    server.answer = lambda nth, body: web.Response(status=400, text="no")
    budget = Budget(max_tokens=10_000)
    with session(Session("a", budget=budget)), suppress(Exception):
        await client.create([UserMessage(content="Hello.", source="user")])
    await client.close()
    assert (budget.reserved, budget.reserved_tokens, budget.calls, budget.tokens) == ({}, 0, 0, 0)


def test_a_call_waits_for_room_and_a_lone_one_is_sent():
    budget = Budget(max_tokens=100)
    kind = ("m",)
    long = Estimate(kind, 5000, 0.0)
    assert budget.reserve(long), "its estimate may be too high"
    assert not budget.reserve(Estimate(kind, 1, 0.0)), "the first of a kind goes alone"
    assert not budget.reserve(Estimate(("other",), 1, 0.0)), "there is no room"
    budget.release(long, Used(5000))
    first, second = Estimate(kind, 60, 0.0), Estimate(kind, 40, 0.0)
    assert budget.reserve(first)
    assert budget.reserve(second)
    assert not budget.reserve(Estimate(kind, 0, 0.0)), "two for each that was answered"
    budget.release(first, Used(70))
    assert not budget.reserve(Estimate(kind, 55, 0.0)), "it may take 10 more than its prompt, too"
    assert budget.reserve(Estimate(kind, 50, 0.0))
    budget.tokens = 100
    with pytest.raises(BudgetSpent):
        budget.reserve(first)


def test_failed_calls_do_not_keep_the_others_waiting_one_by_one():
    budget, call = Budget(max_cost=1.0), Estimate(("m",), 1, 0.0)
    for failed in range(20):
        started = 0
        while budget.reserve(call):
            started += 1
        assert started == 1 + min(failed, 7)
        for _ in range(started):
            budget.calls -= 1
        budget.release(call, Used())
        for _ in range(started - 1):
            budget.release(call, Used())
            budget.kinds["m",].failed -= 1


THINKING = "retries=0&price_in=0&price_out=10"
"""A dollar for 100,000 tokens: 20 cents for a reply with its thinking."""


def dollars(server, tokens_of):
    """The server thinks for so many tokens, by the number of the call; returns what each call cost."""
    server.delay, bills = 0.05, []

    def answer(nth, body):
        tokens = tokens_of(nth)
        bills.append(tokens * 10 / 1_000_000)
        message = {"role": "assistant", "content": server.fitting(body), "reasoning_content": "Hm."}
        usage = {"prompt_tokens": 500, "completion_tokens": tokens}
        return web.json_response({"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage})

    server.answer = answer
    return bills


@pytest.mark.parametrize("model", ["thinking-model", "unknown-model"])
@pytest.mark.parametrize("concurrency", ["16", "64", "256"])
def test_replies_of_a_dollar_and_more_do_not_exceed_a_budget_by_more_than_one(parley, server, concurrency, model):
    """Calls of two kinds, statements and verdicts: before, a budget of $1 cost $4, $13 and $52."""
    bills = dollars(server, lambda nth: 20_000)
    command = (*TINY_PANEL, "--repeats", "30", "--concurrency", concurrency, "--no-cache", "--out", "a.sqlite")
    result = parley(*command, "--model", server.model(THINKING, name=model), "--budget-cost", "1")
    assert (result.status, "the budget of $1 is spent" in result.err) == (1, True), result
    assert 1.0 <= sum(bills) <= 1.0 + 2 * 0.2 + 1e-9


def test_replies_of_different_lengths_hardly_exceed_a_budget(parley, server):
    """From 1,000 to 40,000 tokens, the first of them short."""
    bills = dollars(server, lambda nth: (1, 3, 2, 5, 20, 8, 1, 40, 13, 30)[nth % 10] * 1000)
    command = (*TINY_PANEL, "--repeats", "30", "--concurrency", "256", "--no-cache", "--out", "a.sqlite")
    result = parley(*command, "--model", server.model(THINKING), "--budget-cost", "4")
    assert "the budget of $4 is spent" in result.err
    assert 4.0 <= sum(bills) <= 4.0 + 2 * 0.4
