"""A damaged cache stops no run: it is set aside and named; a sound one that cannot be opened is left where it is."""

from __future__ import annotations

import json
import os
import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from autogen_core.models import RequestUsage

from parley.agents import ParleyError, ReplyCache
from parley.agents.models import Reply
from parley.agents.models.reply import stored_reply
from parley.agents.search.folder import load_or_build_index

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


async def test_a_damaged_search_index_is_set_aside(place: Path, capsys):
    pytest.importorskip("bm25s")
    (place / "docs").mkdir()
    (place / "docs" / "a.txt").write_text("A bridge over the river.")
    load_or_build_index(place / "docs")
    (index,) = (place / "home" / "search").iterdir()
    for name in [file.name for file in index.iterdir()]:
        (index / name).write_bytes(b"[[")
        assert len(load_or_build_index(place / "docs").passages) == 1
    (index / "passages.json").write_text(json.dumps([[1, 2, 3]]))
    assert load_or_build_index(place / "docs").passages[0].title
    assert capsys.readouterr().err.startswith(f"parley: the search index {index} cannot be read (")
    assert (index.parent / f"{index.name}.damaged").is_dir()
