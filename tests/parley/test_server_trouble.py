"""Servers that refuse, are overloaded or broken, or never answer: one clear line, and no finished unit is lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web

from tests.panels import TINY_PANEL

KEY = "sk-a-secret-that-must-not-show"


def refuse_key(nth: int, body: Any) -> web.Response:
    return web.json_response({"error": {"message": f"Incorrect API key provided: {KEY}"}}, status=401)


def too_many(nth: int, body: Any) -> web.Response:
    return web.json_response({"error": {"message": "slow down"}}, status=429, headers={"Retry-After": "0.01"})


def broken(nth: int, body: Any) -> web.Response:
    return web.Response(text="<h1>Internal Server Error</h1>", status=500)


TROUBLE = {
    "429 for ever": (too_many, "retries=1", "answered 429, too many requests"),
    "500 for ever": (broken, "retries=0", "answered 500: <h1>Internal Server Error</h1>"),
    "half a body": ("cuts_short", "retries=0", "http://127.0.0.1:"),
    "nothing at all": ("silent", "retries=0&timeout=0.2", "no answer within 0.2 s"),
}


def test_a_server_that_asks_for_days_ends_the_run_at_once(
    start: Callable[..., Any], server: Any, run_file: Any
) -> None:
    """Calls that had not been sent waited five minutes, three times, though 20 units had failed."""
    server.answer = lambda nth, body: web.Response(status=429, headers={"Retry-After": "1000000"})
    command = (*TINY_PANEL, "--repeats", "6", "--concurrency", "54", "--out", "a.sqlite", "--no-cache")
    ended = start(*command, "--model", server.model("max_connections=8")).end(200)
    assert ended.status == 1
    assert "parley: stopped: 20 units failed in a row, the last with: server/judge: " in ended.err
    assert "the server asks to wait 1000000 s" in ended.err
    assert run_file("a.sqlite").count("failed") >= 20


@pytest.mark.parametrize("trouble", TROUBLE)
def test_a_server_in_trouble_costs_no_finished_unit(
    parley: Callable[..., Any], server: Any, run_file: Any, monkeypatch: pytest.MonkeyPatch, trouble: str
) -> None:
    monkeypatch.setenv("PARLEY_SERVER_KEY", KEY)
    how, options, words = TROUBLE[trouble]
    command = (*TINY_PANEL, "--concurrency", "1", "--out", "a.sqlite", "--model", server.model(options))
    file = run_file("a.sqlite")
    assert parley(*command, "--budget-calls", "16").status == 1
    assert file.count() == 2
    done = file.done()

    if isinstance(how, str):
        setattr(server, how, True)
    else:
        server.answer = how
    result = parley(*command)

    assert result.status == 1
    assert result.complaints == [line for line in result.err.splitlines() if "units failed" in line]
    assert "7 units failed, the first with: server/judge: " in result.complaints[0]
    assert words in result.complaints[0]
    assert "run the same command again to resume" in result.err
    assert "Traceback" not in result.err
    assert KEY not in result.err + result.out
    assert file.done() == done
    assert file.count("failed") == 7
    file.check()

    if isinstance(how, str):
        setattr(server, how, False)
    server.answer = lambda nth, body: None
    assert parley(*command).status == 0
    assert file.count() == 9
    assert all(headers["Authorization"] == f"Bearer {KEY}" for headers in server.headers)


@pytest.mark.parametrize("provider", ["server", "openai"])
def test_a_refused_key_stops_the_run_immediately(
    parley: Callable[..., Any], server: Any, run_file: Any, monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    variable = {"server": "PARLEY_SERVER_KEY", "openai": "OPENAI_API_KEY"}[provider]
    monkeypatch.setenv(variable, KEY)
    command = (*TINY_PANEL, "--out", "a.sqlite", "--model", server.model("retries=5", provider), "--concurrency", "1")
    server.answer = lambda nth, body: refuse_key(nth, body) if nth >= 20 else None
    file = run_file("a.sqlite")

    result = parley(*command)

    assert result.status == 1
    assert len(server.asked) == 21, "once is enough"
    assert len(result.complaints) == 1
    assert f"stopped: {provider}/judge: " in result.complaints[0]
    assert f"answered 401, the key was refused; check {variable}" in result.complaints[0]
    assert KEY not in result.err + result.out
    assert file.count() == 2
    assert file.count("failed") == 0

    server.answer = lambda nth, body: None
    assert parley(*command).status == 0
    assert file.count() == 9
    assert len(server.asked) == 21 + 72 - 20, "what was answered is not asked again"


def test_a_server_that_does_not_run(parley: Callable[..., Any], server: Any) -> None:
    model = server.model()
    server.close()

    result = parley(*TINY_PANEL, "--out", "a.sqlite", "--model", model)

    assert result.status == 1
    assert len(result.complaints) == 1
    assert f"no connection to http://127.0.0.1:{server.port}/v1 (connection refused): " in result.complaints[0]
    assert "Traceback" not in result.err
    for command in ("show", "report"):
        (line,) = parley(command, "a.sqlite").complaints
        assert "none of 9 units is done (it was stopped: server/judge: no connection to" in line
        assert line.endswith("type the same `parley run malibu` command again to resume it")
