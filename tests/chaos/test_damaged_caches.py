"""A damaged cache stops no run: it is set aside and named; a sound one that cannot be opened is left where it is."""

from __future__ import annotations

import json
import os
import random
import resource
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from autogen_core.models import RequestUsage

from parley.agents import ParleyError, ReplyCache
from parley.agents.models import Reply
from parley.agents.models.cache import TextCache
from parley.agents.models.reply import stored_reply
from parley.judging.toxicity.registry import CachedScorer, ScoreCache
from parley.judging.toxicity.scorer import Toxicity
from tests.panels import TINY_PANEL

RUN = (*TINY_PANEL, "--out")
ADDRESS = b"a" * 20


def sql(*statements: str, anew: bool = False) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        if anew:
            path.unlink()
        with closing(sqlite3.connect(path)) as db:
            for statement in statements:
                db.execute(statement)
            db.commit()

    return damage


def changed(old: bytes, new: bytes) -> Callable[[Path], None]:
    return lambda path: path.write_bytes(path.read_bytes().replace(old, new, 1)) and None


def not_a_database(path: Path) -> None:
    path.write_text("This is a shopping list. " * 500)


def overwritten_pages(path: Path) -> None:
    """The header is sound; what follows is not."""
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(random.Random(1).randbytes(path.stat().st_size - 4096))


DAMAGES: dict[str, Callable[[Path], object]] = {
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


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_reply_cache_is_set_aside(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    path, aside = tmp_path / "replies.sqlite", tmp_path / "replies.sqlite.damaged"
    fill(path)
    DAMAGES[name](path)
    content = path.read_bytes()

    cache = ReplyCache(path)
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


@pytest.mark.parametrize("damage", [not_a_database, overwritten_pages], ids=lambda damage: damage.__name__)
def test_a_run_with_a_damaged_reply_cache_asks_again(
    parley: Callable[..., Any], server: Any, place: Path, run_file: Any, damage: Callable[[Path], None]
) -> None:
    command = (*RUN, "a.sqlite", "--model", server.model())
    assert parley(*command).status == 0
    calls, cache = len(server.asked), place / "home" / "replies.sqlite"
    damage(cache)
    (place / "a.sqlite").rename(place / "b.sqlite")

    result = parley(*command)

    assert result.status == 0, result.err
    assert len(result.complaints) == 1, result.err
    assert f"it was set aside as {cache}.damaged" in result.complaints[0]
    assert "Traceback" not in result.err
    assert len(server.asked) == 2 * calls
    assert run_file("a.sqlite").story() == run_file("b.sqlite").story()

    (place / "a.sqlite").unlink()
    again = parley(*command)
    assert (again.status, again.complaints) == (0, [])
    assert len(server.asked) == 2 * calls, "the new cache has the replies"


def test_two_damaged_caches_are_both_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "replies.sqlite"
    for text in ("first" * 500, "second" * 500):
        path.write_text(text)
        ReplyCache(path).close()
    assert (tmp_path / "replies.sqlite.damaged").read_text() == "first" * 500
    assert (tmp_path / "replies.sqlite.damaged-2").read_text() == "second" * 500


def test_a_cache_that_another_process_has_replaced_is_not_set_aside(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two workers find the same damage: the second uses what the first has begun."""
    path = tmp_path / "replies.sqlite"
    fill(path)
    overwritten_pages(path)
    caches = [ReplyCache(path), ReplyCache(path)]
    for number, cache in enumerate(caches):
        assert cache.read(bytes([number]) * 20, stored_reply) is None
        cache.put_text(bytes([number]) * 20, "m", reply(f"fresh {number}"))
        cache.commit()
    for cache in caches:
        assert [cache.read(bytes([number]) * 20, stored_reply).content for number in range(2)] == ["fresh 0", "fresh 1"]  # type: ignore[union-attr]
        cache.close()
    assert sorted(file.name for file in tmp_path.glob("*.damaged*") if file.suffix == ".damaged") == [
        "replies.sqlite.damaged"
    ]
    assert capsys.readouterr().err.count("\n") == 1


def reply(text: str) -> str:
    return Reply(finish_reason="stop", content=text, usage=RequestUsage(1, 1), cached=False).model_dump_json()


def fill(path: Path, count: int = 400) -> None:
    cache = ReplyCache(path)
    for number in range(count):
        cache.put_text(number.to_bytes(20, "big"), "m", reply("word " * 50))
    cache.close()


@pytest.mark.parametrize("stored", [b"\xff\xfe", "{", "{}", "[]", "null", 7, '{"content": ' + "[" * 100_000])
def test_a_damaged_entry_is_a_miss_and_is_replaced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], stored: object
) -> None:
    path = tmp_path / "replies.sqlite"
    ReplyCache(path).close()
    with closing(sqlite3.connect(path)) as db:
        db.execute("INSERT INTO replies VALUES (?, 'm', ?, 0)", (ADDRESS, stored))
        db.commit()
    cache = ReplyCache(path)
    assert cache.read(ADDRESS, stored_reply) is None
    assert capsys.readouterr().err == (
        f"parley: the reply cache {path} has an entry that cannot be read; such entries are made again\n"
    )
    cache.put_text(ADDRESS, "m", reply("fresh"))
    cache.commit()
    assert (found := cache.read(ADDRESS, stored_reply)) is not None
    assert found.content == "fresh"
    cache.close()


class Fixed:
    name, version = "fixed", "1"

    async def score(self, texts: Any) -> list[Toxicity]:
        return [Toxicity(0.5) for _ in texts]

    async def close(self) -> None:
        """Nothing to let go of."""


@pytest.mark.parametrize(
    "stored", ["{", "[0.1]", '["0.1", null, []]', "[NaN, null, []]", '[0.1, "x", []]', "[7, 0, []]", "[0.1, 0, [3]]"]
)
async def test_a_damaged_score_is_scored_again(tmp_path: Path, stored: str) -> None:
    scorer = CachedScorer(Fixed(), ScoreCache(tmp_path / "scores.sqlite"))
    await scorer.score(["text"])
    with closing(sqlite3.connect(tmp_path / "scores.sqlite")) as db:
        db.execute("UPDATE replies SET reply = ?", (stored,))
        db.commit()
    assert await scorer.score(["text"]) == [Toxicity(0.5)]
    await scorer.close()


async def test_a_damaged_score_cache_is_set_aside(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    not_a_database(tmp_path / "scores.sqlite")
    scorer = CachedScorer(Fixed(), ScoreCache(tmp_path / "scores.sqlite"))
    assert await scorer.score(["text"]) == [Toxicity(0.5)]
    await scorer.close()
    assert capsys.readouterr().err.startswith(f"parley: the score cache {tmp_path / 'scores.sqlite'} cannot be read (")


# A cache that is sound, and cannot be used


@contextmanager
def no_file_descriptors() -> Iterator[None]:
    """What `ulimit -n` does to a process that has opened too many files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(name) for name in os.listdir("/proc/self/fd"))
    taken = [os.open(os.devnull, os.O_RDONLY)]
    while taken[-1] < highest:  # the gaps too
        taken.append(os.open(os.devnull, os.O_RDONLY))
    resource.setrlimit(resource.RLIMIT_NOFILE, (taken[-1] + 1, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for descriptor in taken:
            os.close(descriptor)


@pytest.mark.skipif(sys.platform != "linux", reason="counts descriptors in /proc")
def test_too_many_open_files_leave_the_cache_alone(tmp_path: Path) -> None:
    path = tmp_path / "replies.sqlite"
    fill(path, 3)
    with no_file_descriptors(), pytest.raises(ParleyError) as caught:
        ReplyCache(path)
    assert str(caught.value) == (
        f"the reply cache {path} cannot be opened (Too many open files); fix that, or run with --no-cache"
    )
    assert [file.name for file in tmp_path.iterdir()] == ["replies.sqlite"]
    cache = ReplyCache(path)
    assert cache.read((1).to_bytes(20, "big"), stored_reply) is not None
    cache.close()


def test_a_read_only_disk_leaves_the_cache_alone(
    parley: Callable[..., Any],
    mounted: Callable[[str], Path],
    remount: Callable[[Path, str], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    home = mounted("size=20m")
    fill(home / "replies.sqlite", 3)
    before = (home / "replies.sqlite").read_bytes()
    remount(home, "ro")
    monkeypatch.setenv("PARLEY_HOME", str(home))
    result = parley(*RUN, "a.sqlite", "--model", "sim/judge")
    assert result.status == 1
    assert len(result.complaints) == 1, result.err
    assert f"the reply cache {home / 'replies.sqlite'} cannot be opened (" in result.complaints[0]
    assert "delete" not in result.err
    assert (home / "replies.sqlite").read_bytes() == before
    assert parley(*RUN, "a.sqlite", "--model", "sim/judge", "--no-cache").status == 0

    remount(home, "rw")
    not_a_database(home / "replies.sqlite")
    remount(home, "ro")
    damaged = parley(*RUN, "b.sqlite", "--model", "sim/judge")
    assert damaged.status == 1
    assert len(damaged.complaints) == 1, damaged.err
    assert "is damaged" in damaged.err
    assert "cannot be set aside" in damaged.err


def test_a_cache_in_use_by_another_program_is_not_taken_for_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "replies.sqlite"
    cache = TextCache(path)
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


async def test_a_damaged_search_index_is_set_aside_and_one_that_cannot_be_opened_stays(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from parley.agents.search.folder import load_or_build_index

    pytest.importorskip("bm25s")
    (place / "docs").mkdir()
    (place / "docs" / "a.txt").write_text("A bridge over the river.")
    load_or_build_index(place / "docs")
    (index,) = (place / "home" / "search").iterdir()
    if sys.platform == "linux":
        before = sorted(file.name for file in index.iterdir())
        with no_file_descriptors(), pytest.raises(OSError, match="Too many open files"):
            load_or_build_index(place / "docs")
        assert sorted(file.name for file in index.iterdir()) == before
    for name in [file.name for file in index.iterdir()]:
        (index / name).write_bytes(b"[[")
        assert len(load_or_build_index(place / "docs").passages) == 1
    (index / "passages.json").write_text(json.dumps([[1, 2, 3]]))
    assert load_or_build_index(place / "docs").passages[0].title
    assert capsys.readouterr().err.startswith(f"parley: the search index {index} cannot be read (")
    assert (index.parent / f"{index.name}.damaged").is_dir()
