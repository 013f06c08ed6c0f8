"""DuckDuckGo against a service on loopback; every engine's pacing, retries and cache."""

from __future__ import annotations

import asyncio
import time
from contextlib import nullcontext

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from parley.agents import ConfigError, ReplyCache, SearchError, Session, session
from parley.agents.search import SearchResult, make_engine
from parley.agents.search.web import DuckDuckGo

RESULTS = [SearchResult("Tower Bridge", "https://a.example", "Opened in 1894.")]
PAGE = """<html><body><div class="result body"><h2><a href="https://a.example">Tower <b>Bridge</b></a></h2>
<a href="https://a.example">Opened in 1894.</a></div>
<div class="body"><h2>Advert</h2><a href="https://duckduckgo.com/y.js?ad">Buy bridges</a></div></body></html>"""


class Service:
    """Sends its answers in order, and repeats the last one."""

    def __init__(self) -> None:
        self.url = ""
        self.requests: list[dict[str, str]] = []
        self.answers: list[tuple[int, str]] = []

    @property
    def name(self) -> str:
        return f"duckduckgo?base_url={self.url}"

    def says(self, *answers: tuple[int, str]) -> None:
        self.answers = list(answers)

    async def answer(self, request: web.Request) -> web.Response:
        self.requests.append({**request.query, **{key: str(value) for key, value in (await request.post()).items()}})
        status, body = self.answers[0] if len(self.answers) == 1 else self.answers.pop(0)
        return web.Response(status=status, text=body, content_type="text/html", headers={"Location": "/elsewhere"})


@pytest.fixture
async def service(monkeypatch):
    monkeypatch.delenv("DDGS_PROXY", raising=False)
    monkeypatch.setattr("parley.agents.search.registry.FIRST_WAIT_SECONDS", 0.01)
    monkeypatch.setattr(DuckDuckGo, "pause", 0.0)
    service = Service()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", service.answer)
    listening = TestServer(app)
    await listening.start_server()
    service.url = str(listening.make_url("/")).rstrip("/")
    yield service
    await listening.close()


@pytest.mark.parametrize(
    ("answers", "found", "requests"),
    [
        ([(200, PAGE)], RESULTS, 1),  # without the advert
        ([(200, "<p>")], [], 1),
        ([(202, "no"), (202, "no"), (200, PAGE)], RESULTS, 3),
        ([(202, "are you a robot?")], None, 3),  # an error, and not an empty result
    ],
)
async def test_results_are_parsed_and_a_service_that_refuses_is_asked_again(service, answers, found, requests):
    service.says(*answers)
    expected = pytest.raises(SearchError, match="refused to answer") if found is None else nullcontext()
    with expected:
        assert await make_engine(service.name).search("tower bridge") == found
    assert [request["q"] for request in service.requests] == ["tower bridge"] * requests


@pytest.mark.usefixtures("service")
async def test_a_server_that_does_not_run_cannot_be_reached():
    with pytest.raises(SearchError, match="duckduckgo cannot be reached"):
        await make_engine("duckduckgo?base_url=http://127.0.0.1:1").search("bridge")


async def test_queries_are_a_pause_apart(service, monkeypatch):
    service.says((200, PAGE))
    monkeypatch.setattr(DuckDuckGo, "pause", 0.1)
    engine, began = make_engine(service.name), time.monotonic()
    await asyncio.gather(engine.search("bridge"), engine.search("tower"))
    assert time.monotonic() - began >= 0.1


async def test_equal_queries_at_the_same_time_are_one_search(service):
    service.says((200, PAGE))
    engine = make_engine(service.name)
    assert await asyncio.gather(*(engine.search("bridge") for _ in range(8))) == [RESULTS] * 8
    assert len(service.requests) == 1


async def test_results_are_cached_with_the_replies_so_that_a_run_can_be_repeated_offline(service, tmp_path):
    service.says((200, PAGE))
    for _ in range(2):
        cache = ReplyCache(tmp_path / "replies.sqlite")
        with session(Session("a unit", cache=cache)):
            assert await make_engine(service.name).search("bridge") == RESULTS
        cache.close()
        service.says((202, "down by now"))
    assert len(service.requests) == 1


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("altavista", "unknown search engine 'altavista'"),
        ("duckduckgo?base_url=host", "must be an address"),
        ("duckduckgo?base_url=https://me:secret@host", "must not contain a user or password"),
        ("duckduckgo?lang=en", "unexpected keyword argument 'lang'"),
        ("duckduckgo?region", "option 'region' has no value"),
        ("nowhere.py:Mine", "there is no file nowhere.py"),
        ("json:JSONDecoder", "is not a search engine"),
    ],
)
def test_an_invalid_name_is_refused_before_any_search(name, message):
    with pytest.raises(ConfigError, match=message) as caught:
        make_engine(name)
    assert "secret" not in str(caught.value)


async def test_a_users_engine_is_a_class_in_a_file(tmp_path):
    (tmp_path / "mine.py").write_text(
        "class Mine:\n"
        "    def __init__(self, word='x'):\n        self.name, self.word = 'mine', word\n"
        "    async def search(self, query, limit=5):\n"
        "        from parley.agents.search import SearchResult\n"
        "        return [SearchResult(self.word, 'here', query)] * 9\n"
        "    async def close(self): ...\n"
    )
    results = await make_engine(f"{tmp_path}/mine.py:Mine?word=tower").search("bridge", 2)
    assert results == [SearchResult("tower", "here", "bridge")] * 2
