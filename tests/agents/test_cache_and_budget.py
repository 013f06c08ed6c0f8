"""A resumed run gets back the replies it paid for, repeats get replies of their own, and budgets are limits."""

from __future__ import annotations

import asyncio
import hashlib
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from autogen_core.models import UserMessage
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
from tests.agents.common import ASK


class Score(BaseModel):
    points: int


async def ask_twice(client: Any, sample: str, path: Path) -> list[tuple[str, bool]]:
    """A unit that makes the same request twice: the replies, and whether they came from the cache."""
    cache = ReplyCache(path)
    with session(Session(sample, cache=cache)), record_calls() as calls:
        for _ in range(2):
            await client.create(ASK)
    cache.close()
    return [(call.reply, call.cached) for call in calls]


async def test_the_same_request_twice_gives_two_samples_and_both_are_cached(server: Any, tmp_path: Path) -> None:
    server.says("Seven.", "Eight.", "Nine.")
    path = tmp_path / "deep" / "replies.sqlite"
    assert await ask_twice(server.client(), "7/unit", path) == [("Seven.", False), ("Eight.", False)]
    assert server.asked[0]["seed"] != server.asked[1]["seed"]
    assert await ask_twice(server.client(), "7/unit", path) == [("Seven.", True), ("Eight.", True)]
    assert len(server.asked) == 2


async def test_another_sample_gets_replies_of_its_own(server: Any, tmp_path: Path) -> None:
    server.says("Seven.", "Eight.", "Nine.", "Ten.")
    path = tmp_path / "replies.sqlite"
    await ask_twice(server.client(), "7/unit", path)
    assert await ask_twice(server.client(), "8/unit", path) == [("Nine.", False), ("Ten.", False)]
    assert len({body["seed"] for body in server.asked}) == 4


async def test_the_address_covers_options_messages_and_schema(server: Any, tmp_path: Path) -> None:
    server.says(*"abcdefgh")
    cache = ReplyCache(tmp_path / "replies.sqlite")
    plain, warm = server.client(), server.client(temperature=1)
    other = [UserMessage(content="How many?", source="Ada")]
    requests = (
        lambda: plain.create(ASK),
        lambda: warm.create(ASK),
        lambda: plain.create(other),
        lambda: plain.create(ASK, json_output=Score),
        lambda: plain.create(ASK, json_output=True),
    )
    for _ in range(2):
        contents = []
        for request in requests:
            with session(Session("unit", cache=cache)):
                contents.append((await request()).content)
        assert contents == list("abcde")
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


async def test_one_token_without_a_text_is_cached_with_its_probabilities(server: Any, tmp_path: Path) -> None:
    top = [{"token": "7", "logprob": -1.5, "bytes": [55]}]
    choice = {"finish_reason": "length", "message": {"content": " "}}
    probabilities = {"content": [{"token": " ", "logprob": -0.5, "top_logprobs": top}]}
    server.sends(json.dumps({"choices": [{**choice, "logprobs": probabilities}]}))
    server.sends(json.dumps({"choices": [choice]}))
    options = {"max_tokens": 1, "logprobs": True, "temperature": 0.0}
    client, cache = server.client(), ReplyCache(tmp_path / "replies.sqlite")
    for _ in range(2):
        with session(Session("unit", cache=cache)):
            read = await client.create(ASK, extra_create_args=options)
            cut = await client.create(ASK, extra_create_args={"max_tokens": 1})
        cache.commit()
    cache.close()
    assert (read.cached, cut.cached) == (True, False), "a text that was cut at once is asked for again"
    assert read.logprobs is not None
    assert read.logprobs[0].top_logprobs[0].bytes == [55]


async def test_a_failure_is_not_cached(server: Any, tmp_path: Path) -> None:
    server.fails(500)
    server.says("Seven.")
    cache = ReplyCache(tmp_path / "replies.sqlite")
    client = server.client(retries=0)
    with session(Session("unit", cache=cache)), pytest.raises(ServerFault):
        await client.create(ASK)
    with session(Session("unit", cache=cache)):
        assert (await client.create(ASK)).content == "Seven."
    cache.close()


async def test_simulated_replies_are_not_cached(tmp_path: Path) -> None:
    client = model("sim/judge")
    first = await ask_twice(client, "unit", tmp_path / "replies.sqlite")
    again = await ask_twice(client, "unit", tmp_path / "replies.sqlite")
    assert first == again
    assert [cached for _, cached in again] == [False, False]


async def test_a_request_with_a_chosen_tool_is_cached(server: Any, tmp_path: Path) -> None:
    async def count(what: str) -> int:
        return len(what)

    server.says("Seven.", "Eight.")
    cache = ReplyCache(tmp_path / "replies.sqlite")
    contents = []
    tools = [FunctionTool(count, "Counts letters.") for _ in range(2)]
    for tool in tools:
        with session(Session("unit", cache=cache)):
            contents.append((await server.client().create(ASK, tools=[tool], tool_choice=tool)).content)
        cache.commit()
    cache.close()
    assert contents == ["Seven.", "Seven."]


def test_a_cache_that_cannot_be_created_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ParleyError, match="--no-cache"):
        ReplyCache(tmp_path / "file" / "replies.sqlite")


def test_a_cache_is_hardly_larger_than_its_replies(tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path / "replies.sqlite")
    for number in range(3000):
        cache.put_text(hashlib.blake2b(b"%d" % number, digest_size=20).digest(), "m", "word " * 240)
    cache.close()
    assert cache.path.stat().st_size < 1.3 * 3000 * 1200


def test_a_cache_of_an_earlier_version_is_read_and_written(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "replies.sqlite", isolation_level=None)) as db:
        db.execute(
            "CREATE TABLE replies (address BLOB PRIMARY KEY, model TEXT NOT NULL, reply TEXT NOT NULL, "
            "made_at REAL NOT NULL) WITHOUT ROWID"
        )
        db.execute("INSERT INTO replies VALUES (x'01', 'm', 'paid for', 0.0)")
    cache = ReplyCache(tmp_path / "replies.sqlite")
    cache.put_text(b"\x02", "m", "new")
    cache.commit()
    assert [cache.read(address, str) for address in (b"\x01", b"\x02")] == ["paid for", "new"]
    cache.close()


@pytest.mark.parametrize("alone", [True, False])
async def test_a_cache_that_one_process_has_finds_what_any_other_does(tmp_path: Path, alone: bool) -> None:
    first = ReplyCache(tmp_path / "replies.sqlite", alone=alone)
    first.put_text(b"\x01", "m", "of the first process")
    first.close()
    cache = ReplyCache(tmp_path / "replies.sqlite", alone=alone)
    cache.put_text(b"\x02", "m", "of this one")
    cache.commit()
    found = [await cache.find(address, str) for address in (b"\x01", b"\x02", b"\x03")]
    assert found == ["of the first process", "of this one", None]
    cache.close()


async def test_a_budget_in_calls_is_never_exceeded(server: Any) -> None:
    server.says("Seven.")
    client, budget = server.client(), Budget(max_calls=3)

    async def call() -> str:
        with session(Session("unit", budget=budget)):
            return str((await client.create(ASK)).content)

    results = await asyncio.gather(*(call() for _ in range(8)), return_exceptions=True)
    assert results.count("Seven.") == 3
    spent = [str(error) for error in results if isinstance(error, BudgetSpent)]
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


def test_a_slow_models_reply_is_on_disk_immediately(tmp_path: Path) -> None:
    """A run that is killed while it waits for the next reply does not pay for this one again."""
    cache = ReplyCache(tmp_path / "replies.sqlite")
    cache.put_text(b"1", "a/slow", "{}")
    with closing(sqlite3.connect(tmp_path / "replies.sqlite")) as db:
        assert db.execute("SELECT count(*) FROM replies").fetchone() == (1,)
