"""Runs with models that think, and with replies that are cut: recorded, shown, counted, cautioned, and never a success
without a verdict."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest
from aiohttp import web

from tests.panels import TINY_PANEL

RUN = (*TINY_PANEL, "--no-cache", "--out", "a.sqlite")
Parley = Callable[..., Any]


@pytest.fixture(autouse=True)
def _begin(place):
    """In an empty folder."""


def answer(text: str | None, finish: str = "stop", **fields: Any) -> web.Response:
    message = {"role": "assistant", "content": text, **fields}
    usage = {"prompt_tokens": 100, "completion_tokens": 400, "completion_tokens_details": {"reasoning_tokens": 380}}
    return web.json_response({"choices": [{"message": message, "finish_reason": finish}], "usage": usage})


def test_thoughts_are_recorded_shown_folded_and_not_heard(parley, server, run_file):
    server.answer = lambda nth, body: answer(f"<think>THOUGHT {nth}</think>{server.fitting(body)}")
    assert parley(*RUN, "--model", server.model()).status == 0

    file = run_file("a.sqlite")
    file.check()
    thoughts = file.rows("SELECT thought FROM transcript WHERE role != 'narrator'")
    assert len(thoughts) == 72
    assert all(thought.startswith("THOUGHT ") for (thought,) in thoughts)
    assert file.one("SELECT sum(thought_tokens) FROM calls") == 72 * 380
    assert "THOUGHT" not in json.dumps(server.asked)
    shown = parley("show", "a.sqlite")
    assert "thought: 9 characters; --thoughts shows them" in shown.out
    assert "380 of them thinking" in shown.out
    assert "THOUGHT" not in shown.out
    assert "THOUGHT" in parley("show", "a.sqlite", "--thoughts").out
    assert parley("show", "a.sqlite", "--json").json["turns"][1]["thought"].startswith("THOUGHT")


def test_a_run_of_a_model_that_only_thinks_fails_and_says_what_to_raise(parley, server):
    server.answer = lambda nth, body: answer(None, "length", reasoning="Well, let me see.")
    result = parley(*RUN, "--model", server.model("retries=6&think_tokens=100"))
    assert result.status == 1
    assert "raise --max-tokens" in result.complaints[0]
    assert "0 of 9 units done" in result.out
    assert {body["max_tokens"] for body in server.asked} == {500}
    with closing(sqlite3.connect("a.sqlite")) as db:
        [(detail,)] = db.execute("SELECT detail FROM events WHERE kind = 'abandoned'").fetchall()
    assert json.loads(detail)[:2] == [len(server.asked), len(server.asked) * 500], "all that was answered was paid for"


def test_a_budget_holds_for_replies_without_content(parley, server):
    server.answer = lambda nth, body: answer(None, "length")
    assert parley(*RUN, "--model", server.model("retries=6"), "--budget-calls", "5").status == 1
    assert len(server.asked) == 5


def test_a_run_in_which_nothing_could_be_read_is_no_success(parley, server, run_file):
    server.answer = lambda nth, body: answer('{"Creat', "length")
    result = parley(*RUN, "--model", server.model("retries=0&think_tokens=0"))
    assert result.status == 1
    assert "9 of 9 units done" in result.out
    assert result.complaints == ["parley: none of 72 replies could be read (72 cut); raise --max-tokens"]
    assert set(run_file("a.sqlite").rows("SELECT status, value FROM verdicts")) == {("cut", None)}
    assert parley(*RUN, "--model", server.model("retries=0&think_tokens=0")).status == 1, "nor is it when it is resumed"


def test_cut_replies_are_counted_shown_and_cautioned(parley, server):
    """One judge of the panel is cut whenever it speaks."""

    def one_judge(nth, body):
        cut = "You are the Examiner on a panel" in json.dumps(body["messages"])
        return answer('{"Creat', "length") if cut else None

    server.answer = one_judge
    result = parley(*RUN, "--model", server.model("retries=0&think_tokens=0"))
    assert result.status == 0
    with closing(sqlite3.connect("a.sqlite")) as db:
        [(cut,)] = db.execute("SELECT count(*) FROM messages WHERE cut").fetchall()
        assert db.execute("SELECT DISTINCT parse_status FROM messages WHERE cut").fetchall() == [("cut",)]
    assert cut == 18, "nine units of two rounds"
    assert "18 replies were cut off at the token limit" in result.out
    assert " · cut" in parley("show", "a.sqlite").out
    report = " ".join(parley("report", "a.sqlite", "--no-files", "--all", "--draws", "20").out.split())
    assert "18 of 72 replies (25%) reached the token limit and were cut off: raise --max-tokens" in report


def test_a_temperature_that_the_model_does_not_accept(parley, server, monkeypatch):
    """The user's own is refused; a study's default is left out, with one line."""
    from parley.agents.models.compatible import ServerClient

    monkeypatch.setattr(ServerClient, "takes_temperature", False)
    result = parley(*RUN, "--model", server.model(), "--temperature", "0.5")
    assert result.status == 2
    assert result.complaints == ["parley: server/judge accepts no temperature; leave --temperature out"]
    assert server.asked == []
    assert parley(*RUN, "--model", server.model()).status == 0
    assert all("temperature" not in body for body in server.asked)
