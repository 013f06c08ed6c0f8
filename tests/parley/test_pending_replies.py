"""Without the reply cache, what unfinished units have paid for is in the run file until they are done."""

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
BOUND_SECONDS = 3.0
"""Replies are written about once a second; the rest is for a busy machine."""


def settled(server: Any) -> int:
    """How many requests there were, once no more come: workers live on for a moment after the run's process."""
    count = -1
    while count != len(server.asked):
        count = len(server.asked)
        time.sleep(1.0)
    return count


def pending(file: Any) -> int:
    try:
        return int(file.one("SELECT count(*) FROM pending_replies"))
    except sqlite3.OperationalError:
        return 0


@pytest.mark.parametrize(
    "executor",
    [("asyncio",), pytest.param(("processes", "--workers", "2"), marks=pytest.mark.nightly)],
    ids=lambda option: option[0],
)
def test_a_killed_run_does_not_ask_again_for_replies_older_than_a_second(
    executor: tuple[str, ...], parley: Callable[..., Any], start: Callable[..., Any], server: Any, run_file: Any
) -> None:
    server.delay = 0.3
    answered: dict[int, float] = {}
    server.answer = lambda nth, body: answered.setdefault(body["seed"], time.monotonic()) and None
    command = (*RUN, "--model", server.model(), "--executor", *executor, "--concurrency", "6", "--out", "a.sqlite")
    file = run_file("a.sqlite")
    process = start(*command)
    process.wait_for(lambda: file.starts() == 1 and pending(file) >= 12)
    killed = time.monotonic()
    process.kill()
    asked, kept = settled(server), pending(file) + 8 * file.count()

    server.delay = 0.0
    ended = parley(*command)

    assert ended.status == 0, ended.err
    times = Counter(body["seed"] for body in server.asked)
    assert len(times) == 9 * 8
    again = [seed for seed, count in times.items() if count > 1]
    assert all(answered[seed] > killed - BOUND_SECONDS for seed in again)
    assert len(server.asked) == 9 * 8 + asked - kept, "what was in the file was not asked for again"
    assert file.rows("SELECT name FROM sqlite_master WHERE name = 'pending_replies'") == []
    file.check()
    assert parley(*RUN, "--model", server.model(), "--out", "peace.sqlite").status == 0
    assert file.story() == run_file("peace.sqlite").story()


def test_a_unit_that_failed_keeps_its_replies_until_it_is_done(
    parley: Callable[..., Any], server: Any, run_file: Any
) -> None:
    server.answer = lambda nth, body: None if nth < 20 else web.Response(status=400, text="no")
    command = (*RUN, "--model", server.model(), "--concurrency", "1", "--out", "a.sqlite")
    assert parley(*command).status == 1
    file = run_file("a.sqlite")
    assert (file.count(), file.count("failed")) == (2, 7)
    assert pending(file) == 4, "the third unit failed after four replies"
    assert parley("import", "--damaged", "a.sqlite", "--out", "copy.sqlite").status == 0
    assert file.rows("SELECT * FROM pending_replies") == run_file("copy.sqlite").rows("SELECT * FROM pending_replies")

    server.answer, before = (lambda nth, body: None), len(server.asked)
    assert parley(*command).status == 0
    assert len(server.asked) - before == 7 * 8 - 4
    assert file.one("SELECT count(*) FROM calls WHERE cached") == 4
    assert pending(file) == 0


def test_with_the_cache_nothing_is_kept_twice_and_what_was_kept_is_used(
    parley: Callable[..., Any], server: Any, run_file: Any
) -> None:
    server.answer = lambda nth, body: None if nth < 4 else web.Response(status=400, text="no")
    with_cache = [part for part in RUN if part != "--no-cache"]
    options = ("--model", server.model(), "--concurrency", "1", "--out")
    assert parley(*with_cache, "--seed", "5", *options, "cached.sqlite").status == 1
    assert pending(run_file("cached.sqlite")) == 0
    server.asked.clear()
    assert parley(*RUN, *options, "a.sqlite").status == 1
    assert pending(run_file("a.sqlite")) == 4

    server.answer, before = (lambda nth, body: None), len(server.asked)
    assert parley(*with_cache, *options, "a.sqlite").status == 0
    assert len(server.asked) - before == 9 * 8 - 4


def test_a_pending_reply_that_cannot_be_read_is_asked_for_again(
    parley: Callable[..., Any], server: Any, run_file: Any, place: Path
) -> None:
    server.answer = lambda nth, body: None if nth < 4 else web.Response(status=400, text="no")
    command = (*RUN, "--model", server.model(), "--concurrency", "1", "--out", "a.sqlite")
    assert parley(*command).status == 1
    with closing(sqlite3.connect(place / "a.sqlite")) as db, db:
        db.execute("UPDATE pending_replies SET reply = '{'")

    server.answer, before = (lambda nth, body: None), len(server.asked)
    assert parley(*command).status == 0
    assert len(server.asked) - before == 9 * 8
