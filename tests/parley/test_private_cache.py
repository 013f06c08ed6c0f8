"""With --no-cache a run has a reply cache of its own, next to its file: it goes with the last unit, and until then
nothing is paid for twice."""

from __future__ import annotations

import sqlite3
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.panels import TINY_PANEL

RUN = (*TINY_PANEL, "--no-cache")
CALLS = 9 * 8
BOUND_SECONDS = 3.0
"""Replies are written about twice a second; the rest is for a busy machine."""


@pytest.fixture
def private(place: Path) -> Path:
    return place / "a.sqlite.replies"


def kept(private: Path) -> int:
    """How many replies the private cache has."""
    if not private.exists():
        return 0
    with closing(sqlite3.connect(private)) as db:
        try:
            return int(db.execute("SELECT count(*) FROM replies").fetchone()[0])
        except sqlite3.OperationalError:  # the table is yet to be made
            return 0


def fail_after(server: Any, calls: int) -> None:
    server.answer = lambda nth, body: None if nth < calls else web.Response(status=400, text="no")


def test_a_killed_run_does_not_ask_again_for_replies_older_than_a_second(
    parley: Callable[..., Any], start: Callable[..., Any], server: Any, run_file: Any, private: Path, place: Path
) -> None:
    server.delay = 0.3
    answered: dict[int, float] = {}
    server.answer = lambda nth, body: answered.setdefault(body["seed"], time.monotonic()) and None
    command = (*RUN, "--model", server.model(), "--concurrency", "6", "--out", "a.sqlite")
    process = start(*command)
    process.wait_for(lambda: kept(private) >= 12)
    killed = time.monotonic()
    process.kill()
    asked, stored = len(server.asked), kept(private)

    server.delay = 0.0
    ended = parley(*command)

    assert ended.status == 0, ended.err
    times = Counter(body["seed"] for body in server.asked)
    assert len(times) == CALLS
    assert all(answered[seed] > killed - BOUND_SECONDS for seed, count in times.items() if count > 1)
    assert len(server.asked) == CALLS + asked - stored, "what was stored was not asked for again"
    assert [path.name for path in place.glob("a.sqlite*")] == ["a.sqlite"], "it goes with the last unit"
    assert not (place / "home" / "replies.sqlite").exists(), "nothing is kept for other runs"
    file = run_file("a.sqlite")
    file.check()
    assert parley(*RUN, "--model", server.model(), "--out", "peace.sqlite").status == 0
    assert file.story() == run_file("peace.sqlite").story()


def test_a_unit_that_failed_gets_its_replies_back_with_and_without_the_flag(
    parley: Callable[..., Any], server: Any, run_file: Any, private: Path
) -> None:
    fail_after(server, 20)
    command = (*RUN, "--model", server.model(), "--concurrency", "1", "--out", "a.sqlite")
    assert parley(*command).status == 1
    file = run_file("a.sqlite")
    assert (file.count(), file.count("failed")) == (2, 7)
    assert kept(private) == 20

    assert parley("import", "--damaged", "a.sqlite", "--out", "copy.sqlite").status == 0

    server.answer, before = (lambda nth, body: None), len(server.asked)
    assert parley(*command[:-1], "copy.sqlite").status == 0, "a copy has them too"
    assert len(server.asked) - before == 7 * 8 - 4

    before = len(server.asked)
    assert parley(*(part for part in command if part != "--no-cache")).status == 0
    assert len(server.asked) - before == 7 * 8 - 4, "the third unit had failed after four replies"
    assert file.one("SELECT count(*) FROM calls WHERE cached") == 4
    assert not private.exists()


def test_a_new_run_does_not_get_the_replies_of_a_deleted_one(
    parley: Callable[..., Any], server: Any, private: Path, place: Path
) -> None:
    fail_after(server, 4)
    command = (*RUN, "--model", server.model(), "--concurrency", "1", "--out", "a.sqlite")
    assert parley(*command).status == 1
    assert kept(private) == 4
    (place / "a.sqlite").unlink()

    server.answer, before = (lambda nth, body: None), len(server.asked)
    assert parley(*command).status == 0
    assert len(server.asked) - before == CALLS


def test_a_run_from_before_gets_its_pending_replies_back(
    parley: Callable[..., Any], server: Any, run_file: Any, private: Path, place: Path
) -> None:
    """Earlier versions kept them in the run file."""
    fail_after(server, 4)
    command = (*RUN, "--model", server.model(), "--concurrency", "1", "--out", "a.sqlite")
    assert parley(*command).status == 1
    with closing(sqlite3.connect(private)) as cache, closing(sqlite3.connect(place / "a.sqlite")) as run, run:
        run.execute(
            "CREATE TABLE pending_replies (unit TEXT NOT NULL, address BLOB NOT NULL, "
            "reply TEXT NOT NULL, PRIMARY KEY (unit, address)) WITHOUT ROWID"
        )
        replies = cache.execute("SELECT 'a unit', address, reply FROM replies")
        run.executemany("INSERT INTO pending_replies VALUES (?, ?, ?)", replies)
    private.unlink()

    server.answer, before = (lambda nth, body: None), len(server.asked)
    assert parley(*command).status == 0
    assert len(server.asked) - before == CALLS - 4
    assert run_file("a.sqlite").rows("SELECT name FROM sqlite_master WHERE name = 'pending_replies'") == []
