"""Servers' prompt caches: recorded, shown, and estimated in the dry run; and run files from before that."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web

from tests.panels import PANEL_FLAGS, RUN_PANEL, TINY_PANEL

RUN = (*TINY_PANEL, "--out", "a.sqlite")
FULL = ("run", "malibu", *PANEL_FLAGS, "--suite", "full", "--per-base", "1")
PAIRS = (*FULL, "--phases", "2", "--rounds", "3", "--dry-run", "--json")
"""With three rounds: after a blind round, two share less than the 1,024 tokens that OpenAI begins to cache at."""
LENGTHY = 50
"""Words in a justification, so that a reply to a pair is about as long as the dry run takes it to be."""
Parley = Callable[..., Any]


@pytest.fixture(autouse=True)
def _begin(place):
    """In an empty folder."""


def shared_beginning(one: str, other: str) -> int:
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


class Remembering:
    """An OpenAI server with the documented prompt cache and tokens of four characters: whole prompts, the schema first,
    from 1,024 tokens on, in steps of 128, and only among calls that carry the same key."""

    def __init__(self, server: Any) -> None:
        self._server = server
        self._seen: dict[str, list[str]] = {}
        self.cached = 0
        server.answer = self._answer

    def _answer(self, nth: int, body: dict[str, Any]) -> web.Response:
        prompt = "".join(message["role"] + message["content"] for message in body["messages"])
        form = json.dumps(body["response_format"])
        before = self._seen.setdefault(body["prompt_cache_key"] + form, [])
        shared = max((shared_beginning(prompt, earlier) for earlier in before), default=0) // 4
        before.append(prompt)
        cached = shared - shared % 128 if shared >= 1024 else 0
        self.cached += cached
        reply = self._server.fitting(body).replace("remark", "remark " * LENGTHY)
        choice = {"message": {"content": reply}, "finish_reason": "stop"}
        usage = {"prompt_tokens": len(prompt) // 4, "prompt_tokens_details": {"cached_tokens": cached}}
        return web.json_response({"choices": [choice], "usage": {**usage, "completion_tokens": 100}})


def openai(server: Any) -> str:
    return str(server.model("retries=0&cache_key=true", provider="openai", name="gpt-4o-mini"))


@pytest.mark.parametrize("personas", ["system", "last"])
def test_the_dry_run_estimates_the_cached_tokens(parley, server, run_file, monkeypatch, personas):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    vendor = Remembering(server)
    judged = "--yardstick off --suite full --scenarios law-fire-exit --identities gender --no-controls --phases 2"
    flags = (*judged.split(), "--rounds", "3", "--personas", personas, "--out", "a.sqlite")
    command = (*RUN_PANEL, *flags, "--model", openai(server))
    plan = parley(*command, "--dry-run", "--json").json
    assert plan["cost_if_cached"] == pytest.approx(plan["cost"] - plan["cached_tokens"] * (0.15 - 0.075) / 1e6)
    assert parley(*command, "--quiet").status == 0
    recorded, cost = run_file("a.sqlite").rows("SELECT sum(cached_tokens), sum(cost) FROM calls")[0]
    assert recorded == vendor.cached
    assert recorded == pytest.approx(plan["cached_tokens"], rel=0.2)
    assert 0 < cost < plan["cost"]
    report = parley("report", "a.sqlite", "--no-files", "--all", "--draws", "20")
    assert "of prompt tokens were in the server's cache" in " ".join(report.out.split())
    assert "in the server's cache" in " ".join(parley("show", "a.sqlite", "p2/").out.split())


def test_personas_last_share_more_and_some_providers_cache_less(parley):
    def cached(model, *more):
        return int(parley(*PAIRS, "--model", model, *more).json["cached_tokens"])

    system, last = (cached("openai/gpt-4o-mini", "--personas", position) for position in ("system", "last"))
    assert 0 < system < last
    assert cached("deepseek/deepseek-chat") > system, "64 tokens are enough there"
    assert cached("google/gemini-3.8-flash") == 0, "4,096 are wanted there"
    assert cached("sim/judge") == cached("server/m?base_url=http://localhost:1/v1") == 0
