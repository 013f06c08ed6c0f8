"""A run that was cut short gets back what it paid for, repeats stay apart, and a budget is a limit."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from autogen_core.models import RequestUsage, UserMessage
from autogen_core.tools import FunctionTool
from pydantic import BaseModel

from parley.agents import (
    Budget,
    BudgetSpent,
    ParleyError,
    ReplyCache,
    ServerFault,
    Session,
    model,
    record_calls,
    session,
)
from parley.agents.models import Reply

ASK = [UserMessage(content="How many?", source="user")]


class Score(BaseModel):
    points: int


async def ask_twice(client: Any, sample: str, path: Path) -> list[tuple[str, bool]]:
    """One unit of a run that asks the same thing twice: what was said, and whether it came from the cache."""
    cache = ReplyCache(path)
    with session(Session(sample, cache=cache)), record_calls() as calls:
        for _ in range(2):
            await client.create(ASK)
    cache.close()
    return [(call.reply, call.cached) for call in calls]


async def test_the_same_request_twice_gives_two_samples_and_both_are_replayed(server: Any, tmp_path: Path) -> None:
    server.says("Seven.", "Eight.", "Nine.")
    path = tmp_path / "deep" / "replies.sqlite"
    assert await ask_twice(server.client(), "7/unit", path) == [("Seven.", False), ("Eight.", False)]
    assert server.asked[0]["seed"] != server.asked[1]["seed"]
    assert await ask_twice(server.client(), "7/unit", path) == [("Seven.", True), ("Eight.", True)]
    assert len(server.asked) == 2


async def test_another_sample_is_asked_afresh(server: Any, tmp_path: Path) -> None:
    server.says("Seven.", "Eight.", "Nine.", "Ten.")
    path = tmp_path / "replies.sqlite"
    await ask_twice(server.client(), "7/unit", path)
    assert await ask_twice(server.client(), "8/unit", path) == [("Nine.", False), ("Ten.", False)]
    assert len({asked["seed"] for asked in server.asked}) == 4


async def test_what_a_request_says_is_part_of_its_address(server: Any, tmp_path: Path) -> None:
    server.says(*"abcdefgh")
    cache = ReplyCache(tmp_path / "replies.sqlite")
    plain, warm = server.client(), server.client(temperature=1)
    other = [UserMessage(content="How many?", source="Ada")]
    calls_made = (
        lambda: plain.create(ASK),
        lambda: warm.create(ASK),
        lambda: plain.create(other),
        lambda: plain.create(ASK, json_output=Score),
        lambda: plain.create(ASK, json_output=True),
    )
    for _ in range(2):
        said = []
        for call in calls_made:
            with session(Session("unit", cache=cache)):
                said.append((await call()).content)
        assert said == list("abcde")
        cache.commit()
    cache.close()
    assert len(server.asked) == 5


async def test_a_reply_from_the_cache_is_whole_and_costs_nothing(server: Any, tmp_path: Path) -> None:
    logprob = {"token": "7", "logprob": -0.5, "top_logprobs": [{"token": "8", "logprob": -1.5, "bytes": [56]}]}
    server.says("7", logprobs=[logprob])
    client, budget = server.client(price_in=1, price_out=1), Budget(max_calls=1)
    cache = ReplyCache(tmp_path / "replies.sqlite")
    with session(Session("unit", cache=cache, budget=budget)):
        first = await client.create(ASK)
    cache.commit()
    with session(Session("unit", cache=cache, budget=budget)), record_calls() as calls:
        second = await client.create(ASK)
    cache.close()
    assert (second.content, second.usage, second.logprobs) == (first.content, first.usage, first.logprobs)
    assert (first.cached, second.cached) == (False, True)
    assert (calls[0].cached, calls[0].cost, calls[0].attempts) == (True, 0.0, 0)
    assert budget.calls == 1


async def test_a_failure_is_not_kept(server: Any, tmp_path: Path) -> None:
    server.fails(500)
    server.says("Seven.")
    cache = ReplyCache(tmp_path / "replies.sqlite")
    client = server.client(retries=0)
    with session(Session("unit", cache=cache)), pytest.raises(ServerFault):
        await client.create(ASK)
    with session(Session("unit", cache=cache)):
        assert (await client.create(ASK)).content == "Seven."
    cache.close()


async def test_simulated_replies_are_not_kept(tmp_path: Path) -> None:
    client = model("sim/judge")
    first = await ask_twice(client, "unit", tmp_path / "replies.sqlite")
    again = await ask_twice(client, "unit", tmp_path / "replies.sqlite")
    assert first == again
    assert [cached for _, cached in again] == [False, False]


async def test_a_chosen_tool_does_not_hinder_the_replay(server: Any, tmp_path: Path) -> None:
    async def count(what: str) -> int:
        return len(what)

    server.says("Seven.", "Eight.")
    cache = ReplyCache(tmp_path / "replies.sqlite")
    said = []
    tools = [FunctionTool(count, "Counts letters.") for _ in range(2)]
    for tool in tools:
        with session(Session("unit", cache=cache)):
            said.append((await server.client().create(ASK, tools=[tool], tool_choice=tool)).content)
        cache.commit()
    cache.close()
    assert said == ["Seven.", "Seven."]


def test_a_cache_that_is_no_database_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "replies.sqlite"
    path.write_text("This is a shopping list. " * 50)
    with pytest.raises(ParleyError, match="--no-cache") as caught:
        ReplyCache(path)
    assert str(path) in str(caught.value)


def test_a_cache_that_cannot_be_made_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ParleyError, match="--no-cache"):
        ReplyCache(tmp_path / "file" / "replies.sqlite")


async def test_a_budget_in_calls_is_never_exceeded(server: Any) -> None:
    server.says("Seven.")
    client, budget = server.client(), Budget(max_calls=3)

    async def one() -> str:
        with session(Session("unit", budget=budget)):
            return str((await client.create(ASK)).content)

    done = await asyncio.gather(*(one() for _ in range(8)), return_exceptions=True)
    assert done.count("Seven.") == 3
    spent = [str(error) for error in done if isinstance(error, BudgetSpent)]
    assert spent == ["the budget of 3 calls is spent"] * 5
    assert len(server.asked) == budget.calls == 3


async def test_a_call_without_a_reply_is_not_counted(server: Any) -> None:
    server.fails(500)
    server.says("Seven.")
    budget = Budget(max_calls=1)
    with session(Session("unit", budget=budget)):
        with pytest.raises(ServerFault):
            await server.client(retries=0).create(ASK)
        assert (await server.client(retries=0).create(ASK)).content == "Seven."
    assert budget.calls == 1


@pytest.mark.parametrize(
    ("budget", "message"),
    [
        (Budget(max_tokens=20), "the budget of 20 tokens is spent"),
        (Budget(max_cost=0.00002), "the budget of $2e-05 is spent"),
    ],
    ids=["tokens", "money"],
)
async def test_budgets_in_tokens_and_money_stop_the_next_call(server: Any, budget: Budget, message: str) -> None:
    server.says("Seven.")
    client = server.client(price_in=1, price_out=1)
    with session(Session("unit", budget=budget)):
        # A call is 12 + 3 tokens: the first leaves room, the second goes over, the third is not made.
        await client.create(ASK)
        await client.create(ASK)
        with pytest.raises(BudgetSpent) as caught:
            await client.create(ASK)
    assert str(caught.value) == message
    assert len(server.asked) == 2


def test_a_slow_models_reply_is_on_disk_as_soon_as_it_is_there(tmp_path: Path) -> None:
    """Whoever is killed while waiting for the next one has paid for this one."""
    cache = ReplyCache(tmp_path / "replies.sqlite")
    reply = Reply(finish_reason="stop", content="slow", usage=RequestUsage(1, 1), cached=False)
    cache.put(b"1", "a/slow", reply)
    with closing(sqlite3.connect(tmp_path / "replies.sqlite")) as db:
        assert db.execute("SELECT count(*) FROM replies").fetchone() == (1,)
