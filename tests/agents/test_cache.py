"""Replies are kept: a damaged cache stops no run, a resumed run gets back what it paid for, repeats get their own."""

from __future__ import annotations

import os
import random
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from autogen_core import Image
from autogen_core.models import RequestUsage, UserMessage
from PIL import Image as Picture
from pydantic import BaseModel

from parley.agents import Budget, ParleyError, ReplyCache, Session, model, record_calls, session
from parley.agents.models import Reply
from parley.agents.models.reply import stored_reply
from parley.agents.models.request import prompt_message
from tests.agents.common import ASK, KEY, as_logprobs
from tests.vendors.asking import COUNT

ADDRESS = b"a" * 20


def sql(*statements, anew=False):
    def damage(path):
        if anew:
            path.unlink()
        with closing(sqlite3.connect(path)) as db, db:
            for statement in statements:
                db.execute(statement)

    return damage


def changed(old, new):
    return lambda path: path.write_bytes(path.read_bytes().replace(old, new, 1))


def not_a_database(path):
    path.write_text("This is a shopping list. " * 500)


def overwritten_pages(path):
    """The header is sound; what follows is not."""
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(random.Random(1).randbytes(path.stat().st_size - 4096))


DAMAGES = {
    "truncated": lambda path: os.truncate(path, 5000),
    "not a database": not_a_database,
    "other tables": sql("CREATE TABLE recipes (name TEXT)", anew=True),
    "other columns": sql("CREATE TABLE replies (address BLOB PRIMARY KEY, reply TEXT)", anew=True),
    "a trigger": sql("CREATE TRIGGER t AFTER INSERT ON replies BEGIN DELETE FROM replies; END"),
    "overwritten pages": overwritten_pages,
    "unreadable schema": sql("PRAGMA writable_schema = ON", "UPDATE sqlite_master SET sql = 'CREATE TABLE replies (('"),
    "unknown format": lambda path: path.write_bytes(
        (data := path.read_bytes())[:44] + (9).to_bytes(4, "big") + data[48:]
    ),
    "undecodable schema": changed(b"CREATE TABLE replies", b"CREATE TABL\xff replies"),
    "undecodable name": changed(b"tablereplies", b"tablere\xfflies"),
}


def reply(text):
    return Reply(finish_reason="stop", content=text, usage=RequestUsage(1, 1), cached=False).model_dump_json()


def fill(path, count=400):
    cache = ReplyCache(path)
    for number in range(count):
        cache.put_text(number.to_bytes(20, "big"), "m", reply("word " * 50))
    cache.close()


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_reply_cache_is_set_aside(tmp_path, capsys, name, alone):
    path, aside = tmp_path / "replies.sqlite", tmp_path / "replies.sqlite.damaged"
    fill(path)
    DAMAGES[name](path)
    content = path.read_bytes()
    cache = ReplyCache(path, alone=alone)
    assert cache.read((1).to_bytes(20, "big"), str) is None
    cache.put_text(ADDRESS, "m", reply("fresh"))
    cache.close()
    said = capsys.readouterr().err
    assert said.startswith(f"parley: the reply cache {path} ")
    assert f"it was set aside as {aside}" in said
    assert said.count("\n") == 1
    if name != "overwritten pages":  # that one is noticed while it is used, and SQLite may have tidied it
        assert aside.read_bytes() == content
    again = ReplyCache(path)
    assert again.read(ADDRESS, str) == reply("fresh")
    again.close()
    assert capsys.readouterr().err == ""
    path.write_text("second" * 500)
    cache = ReplyCache(path)
    assert (tmp_path / "replies.sqlite.damaged-2").read_text() == "second" * 500, "both are kept"
    sql("DROP TABLE replies")(path)
    cache.put_text(ADDRESS, "m", "written all the same")
    assert cache.read(ADDRESS, str) == "written all the same"
    cache.close()
    assert (tmp_path / "replies.sqlite.damaged-3").exists()


def test_a_damaged_entry_is_a_miss_and_is_replaced(tmp_path, capsys):
    for nth, stored in enumerate((b"\xff\xfe", "{", "{}", "[]", "null", 7, '{"content": ' + "[" * 100_000)):
        path = tmp_path / f"{nth}.sqlite"
        ReplyCache(path).close()
        with closing(sqlite3.connect(path)) as db, db:
            db.execute("INSERT INTO replies VALUES (?, 'm', ?, 0)", (ADDRESS, stored))
        cache = ReplyCache(path)
        assert cache.read(ADDRESS, stored_reply) is None
        assert capsys.readouterr().err == (
            f"parley: the reply cache {path} has an entry that cannot be read; such entries are made again\n"
        )
        cache.put_text(ADDRESS, "m", reply("fresh"))
        cache.commit()
        assert cache.read(ADDRESS, stored_reply).content == "fresh"
        cache.close()


def test_a_cache_in_use_by_another_program_is_not_taken_for_damaged(tmp_path):
    path = tmp_path / "replies.sqlite"
    cache = ReplyCache(path)
    cache._db.execute("PRAGMA busy_timeout = 10")
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(ParleyError, match="cannot be written: database is locked"):
            cache.put_text(ADDRESS, "m", "text")
        other.execute("ROLLBACK")
    cache.commit()
    assert cache.read(ADDRESS, str) == "text", "what could not be written is written later"
    cache.close()
    assert [file.name for file in tmp_path.iterdir()] == ["replies.sqlite"]


# What a cached reply is, and what is asked for anew


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
