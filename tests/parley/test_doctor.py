"""`parley doctor` on servers that answer, refuse, are slow or absent. No model is called."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web

from parley.agents.providers import PROVIDERS
from tests.servers import PATIENCE, Loopback, until

KEY = "sk-not-to-be-shown"


class Provider(Loopback):
    """A server that has a list of models; it records what was asked for and with which key."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.answer: Callable[[], web.Response] = lambda: web.json_response({"data": [{"id": "a"}, {"id": "b"}]})
        self.delay = 0.0
        self.waits_for = 0
        super().__init__()
        self.url = f"http://127.0.0.1:{self.port}/v1"

    def _add_routes(self, app: web.Application) -> None:
        app.router.add_route("*", "/{rest:.*}", self.reply)

    async def reply(self, request: web.Request) -> web.Response:
        self.asked.append((f"{request.method} {request.path}", request.headers.get("Authorization", "")))
        await asyncio.sleep(self.delay)
        await until(lambda: len(self.asked) >= self.waits_for)
        return self.answer()


@pytest.fixture
def provider(monkeypatch):
    """A provider on loopback; no other server can be reached."""
    for entry in PROVIDERS.values():
        if entry.key:
            monkeypatch.delenv(entry.key, raising=False)
    for name in ("VLLM", "OLLAMA", "LLAMACPP"):
        monkeypatch.setenv(f"{name}_BASE_URL", "http://127.0.0.1:9/v1")
    server = Provider()
    yield server
    server.close()


def states(result: Any) -> dict[str, str]:
    return {row["name"]: row["state"] for row in result.json["models"]}


def test_offline_and_without_keys_nothing_is_wrong(parley, provider):
    result = parley("doctor", "--json")
    assert result.status == 0
    found = states(result)
    assert (found["sim/"], found["openai/"], found["ollama/"]) == ("ready", "no key", "not reached")
    assert result.json["keys"]["OPENAI_API_KEY"] is False
    assert set(result.json["packages"]) > {"parley-autogen", "autogen-core", "pydantic"}
    assert list(result.json["extras"]["analysis"])[:1] == ["pandas"]
    assert provider.asked == []


def test_the_screen_is_small_and_shows_no_key_and_no_password(parley, provider, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", KEY)
    monkeypatch.setenv("VLLM_BASE_URL", provider.url)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("HTTPS_PROXY", f"http://someone:{KEY}@proxy.example:3128")
    monkeypatch.setenv("ALL_PROXY", f"some@one:a/b@{KEY}@proxy.example:3129")
    result = parley("doctor")
    assert result.status == 0, result.out
    assert len(result.out.splitlines()) <= 34
    said = " ".join(result.out.split())
    for words in ("set: HF_TOKEN", "2 models", "no problems found"):
        assert words in said
    assert "https: http://…@proxy.example:3128" in result.out
    assert "all: …@proxy.example:3129" in said
    assert KEY not in result.out + parley("doctor", "--json").out


def test_models_are_listed_and_never_called(parley, provider, monkeypatch):
    monkeypatch.setenv("PARLEY_SERVER_KEY", KEY)
    named = [f"server/{name}?base_url={provider.url}&insecure=true" for name in ("a", "missing")]
    result = parley("doctor", *named, "sim/judge", "--json")
    found = states(result)
    assert [found[name] for name in (*named, "sim/judge")] == ["ready", "not reached", "ready"]
    assert result.status == 1
    assert [problem.partition(": ")[2] for problem in result.json["problems"]] == [
        f"{provider.url[7:-3]} has no 'missing' (it has: a, b)"
    ]
    assert provider.asked == [("GET /v1/models", f"Bearer {KEY}")] * 2
    assert KEY not in result.out


def test_a_refused_key_is_a_problem(parley, provider, monkeypatch):
    monkeypatch.setenv("VLLM_BASE_URL", provider.url)
    for status, state, why in ((401, "refused", "the key is not accepted"), (404, "not reached", "not with a list")):
        provider.answer = lambda status=status: web.Response(status=status, text=f"bad key {KEY}")
        result = parley("doctor", "--json")
        row = next(row for row in result.json["models"] if row["name"] == "vllm/")
        assert (row["state"], why in row["detail"], KEY in result.out) == (state, True, False)
        assert result.status == (1 if state == "refused" else 0)


def test_a_silent_server_costs_no_more_than_the_timeout(parley, provider, monkeypatch):
    monkeypatch.setattr("parley.cli.doctor.SECONDS", 0.01)
    provider.delay = 3600.0
    named = f"server/a?base_url={provider.url}"
    result = parley("doctor", named, "--json")
    assert (states(result)[named], "no answer in 0.01 s" in result.out) == ("not reached", True)


def test_servers_are_asked_at_the_same_time(parley, provider, monkeypatch):
    monkeypatch.setattr("parley.cli.doctor.SECONDS", PATIENCE)
    provider.waits_for = 5
    names = [f"server/a?base_url={provider.url}&max_connections={number}" for number in range(1, 6)]
    result = parley("doctor", *names, "--json")
    assert {states(result)[name] for name in names} == {"ready"}
