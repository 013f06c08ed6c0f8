"""A resumed run gets back the replies it paid for, repeats get replies of their own, and budgets are limits."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from autogen_core import Image
from autogen_core.models import UserMessage
from PIL import Image as Picture
from pydantic import BaseModel

from parley.agents import Budget, ParleyError, ReplyCache, Session, model, record_calls, session
from parley.agents.models.request import prompt_message
from tests.agents.common import ASK, KEY, as_logprobs
from tests.vendors.asking import COUNT


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


async def test_the_same_request_twice_gives_two_samples_and_another_sample_its_own(server, tmp_path):
    server.says("Seven.", "Eight.", "Nine.", "Ten.")
    path = tmp_path / "deep" / "replies.sqlite"
    assert await ask_twice(server.client(), "7/unit", path) == [("Seven.", False), ("Eight.", False)]
    assert await ask_twice(server.client(), "7/unit", path) == [("Seven.", True), ("Eight.", True)]
    assert await ask_twice(server.client(), "8/unit", path) == [("Nine.", False), ("Ten.", False)]
    assert len({body["seed"] for body in server.asked}) == len(server.asked) == 4
    simulated = [await ask_twice(model("sim/judge"), "unit", path) for _ in range(2)]
    assert simulated[0] == simulated[1], "simulated replies are made again, not stored"
    assert [cached for _, cached in simulated[1]] == [False, False]


async def test_the_address_covers_options_messages_schema_and_tools(server, tmp_path):
    server.says(*"abcdef")
    cache = ReplyCache(tmp_path / "replies.sqlite")
    plain, warm = server.client(), server.client(temperature=1)
    other = [UserMessage(content="How many?", source="Ada")]
    requests = (
        lambda: plain.create(ASK),
        lambda: warm.create(ASK),
        lambda: plain.create(other),
        lambda: plain.create(ASK, json_output=Score),
        lambda: plain.create(ASK, json_output=True),
        lambda: plain.create(ASK, tools=[COUNT], tool_choice=COUNT),
    )
    for _ in range(2):
        contents = []
        for request in requests:
            with session(Session("unit", cache=cache)):
                contents.append((await request()).content)
        assert contents == list("abcdef")
        cache.commit()
    cache.close()
    assert len(server.asked) == 6
    red, blue = (
        prompt_message(UserMessage(content=[Image(Picture.new("RGB", (2, 2), colour))], source="user"))
        for colour in ("red", "blue")
    )
    assert red != blue, "an AutoGen client may be shown pictures"


async def test_a_reply_from_the_cache_is_whole_and_costs_nothing(server, tmp_path):
    server.says("7", logprobs=as_logprobs([("7", {"7": 0.6, "8": 0.2})]))
    client, budget = server.client(price_in=1, price_out=1), Budget(max_calls=1)
    cache = ReplyCache(tmp_path / "replies.sqlite")
    with session(Session("unit", cache=cache, budget=budget)):
        first = await client.create(ASK)
    cache.commit()
    with session(Session("unit", cache=cache, budget=budget)), record_calls() as calls:
        text, second = [part async for part in client.create_stream(ASK)]
    cache.close()
    assert text == "7"
    assert (second.content, second.usage, second.logprobs) == (first.content, first.usage, first.logprobs)
    assert (first.cached, second.cached) == (False, True)
    assert (calls[0].cached, calls[0].cost, calls[0].attempts) == (True, 0.0, 0)
    assert budget.calls == 1


@pytest.mark.parametrize(
    ("tokens", "other"), [([f"7 {KEY}"], "8"), ([KEY[:9], KEY[9:]], "8"), (["7"], KEY)], ids=["one", "two", "another"]
)
async def test_a_key_among_log_probabilities_is_not_stored(server, tmp_path, monkeypatch, tokens, other):
    monkeypatch.setenv("PARLEY_SERVER_KEY", KEY)
    server.says("7", logprobs=as_logprobs([(token, {token: 0.6, other: 0.2}) for token in tokens]))
    cache = ReplyCache(tmp_path / "replies.sqlite")
    with session(Session("unit", cache=cache)):
        reply = await server.client().create(ASK)
    cache.close()
    with closing(sqlite3.connect(tmp_path / "replies.sqlite")) as db:
        ((stored,),) = db.execute("SELECT reply FROM replies")
    assert KEY not in stored
    assert str(list(KEY.encode())).replace(" ", "") not in stored
    assert (reply.content, reply.logprobs) == ("7", None)


def test_a_cache_that_cannot_be_created_says_what_to_do(tmp_path):
    (tmp_path / "file").write_text("")
    for path, why in (
        (tmp_path / "file" / "replies.sqlite", "Not a directory|File exists"),
        (tmp_path, "Is a directory"),
    ):
        said = rf"^the reply cache {path} cannot be opened \(({why})\); fix that, or run with --no-cache$"
        with pytest.raises(ParleyError, match=said):
            ReplyCache(path)


@pytest.mark.parametrize("alone", [True, False])
async def test_replies_of_earlier_versions_and_of_other_processes_are_found(tmp_path, alone):
    with closing(sqlite3.connect(tmp_path / "replies.sqlite", isolation_level=None)) as db:
        db.execute(
            "CREATE TABLE replies (address BLOB PRIMARY KEY, model TEXT NOT NULL, reply TEXT NOT NULL, "
            "made_at REAL NOT NULL) WITHOUT ROWID"
        )
        db.execute("INSERT INTO replies VALUES (x'01', 'm', 'of an earlier version', 0.0)")
    other = ReplyCache(tmp_path / "replies.sqlite", alone=alone)
    other.put_text(b"\x02", "m", "of another process")
    other.close()
    cache = ReplyCache(tmp_path / "replies.sqlite", alone=alone)
    cache.put_text(b"\x03", "m", "of this one")
    cache.commit()
    expected = ["of an earlier version", "of another process", "of this one", None]
    assert [await cache.find(bytes([nth]), str) for nth in range(1, 5)] == expected
    assert [cache.read(bytes([nth]), str) for nth in range(1, 5)] == expected
    cache.close()


def test_a_slow_models_reply_is_on_disk_immediately(tmp_path):
    """A run that is killed while it waits for the next reply does not pay for this one again."""
    cache = ReplyCache(tmp_path / "replies.sqlite")
    cache.put_text(b"1", "a/slow", "{}")
    cache.put_text(b"2", "a/fast", "{}")
    with closing(sqlite3.connect(tmp_path / "replies.sqlite")) as db:
        ((address, name, reply, made_at),) = db.execute("SELECT * FROM replies").fetchall()
    assert (address, name, reply, time.time() - made_at < 60) == (b"1", "a/slow", "{}", True)
