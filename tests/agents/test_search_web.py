"""Web search engines against services on loopback that answer, refuse, fail and send invalid data."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from parley.agents import ConfigError, ReplyCache, SearchError, Session, session
from parley.agents.search import SearchClient, SearchResult, make_engine
from parley.agents.search.web import Brave, DuckDuckGo, SearxNG

KEY = "BSA-very-secret"
SEARX = {"results": [{"title": "Tower Bridge", "url": "https://a.example", "content": "Opened in 1894.", "score": 1}]}
BRAVE = {"web": {"results": [{"title": "Tower Bridge", "url": "https://a.example", "description": "Opened in 1894."}]}}
RESULTS = [SearchResult("Tower Bridge", "https://a.example", "Opened in 1894.")]
PAGE = """<html><body><div class="result body"><h2><a href="https://a.example">Tower <b>Bridge</b></a></h2>
<a href="https://a.example">Opened in 1894.</a></div>
<div class="body"><h2>Advert</h2><a href="https://duckduckgo.com/y.js?ad">Buy bridges</a></div></body></html>"""


class Service:
    """Sends its answers in order, and repeats the last one."""

    def __init__(self) -> None:
        self.url = ""
        self.requests: list[dict[str, str]] = []
        self.tokens: list[str | None] = []
        self.answers: list[tuple[int, str]] = []

    def says(self, *answers: object) -> None:
        self.answers = [answer if isinstance(answer, tuple) else (200, json.dumps(answer)) for answer in answers]

    async def answer(self, request: web.Request) -> web.Response:
        self.requests.append({**request.query, **{key: str(value) for key, value in (await request.post()).items()}})
        self.tokens.append(request.headers.get("X-Subscription-Token"))
        status, body = self.answers[0] if len(self.answers) == 1 else self.answers.pop(0)
        return web.Response(status=status, text=body, content_type="text/html", headers={"Location": "/elsewhere"})


@pytest.fixture
async def service(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Service]:
    monkeypatch.setenv("BRAVE_API_KEY", KEY)
    monkeypatch.delenv("DDGS_PROXY", raising=False)
    monkeypatch.setattr("parley.agents.search.registry.FIRST_WAIT_SECONDS", 0.01)
    for engine in (Brave, DuckDuckGo, SearxNG):
        monkeypatch.setattr(engine, "pause", 0.0)
    service = Service()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", service.answer)
    listening = TestServer(app)
    await listening.start_server()
    service.url = str(listening.make_url("/")).rstrip("/")
    yield service
    await listening.close()


async def test_searxng_is_asked_for_json_and_its_results_are_parsed(service: Service) -> None:
    service.says(SEARX)
    engine = make_engine(f"searxng?base_url={service.url}&language=de")
    assert await engine.search("tower bridge", 5) == RESULTS
    assert service.requests == [{"q": "tower bridge", "format": "json", "language": "de"}]


async def test_brave_gets_the_key_and_its_results_are_parsed(service: Service) -> None:
    service.says(BRAVE)
    assert await make_engine(f"brave?base_url={service.url}").search("tower bridge", 3) == RESULTS
    assert service.requests[0]["count"] == "3"
    assert service.tokens == [KEY]


async def test_duckduckgo_results_are_parsed_without_adverts(service: Service) -> None:
    service.says((200, PAGE))
    assert await make_engine(f"duckduckgo?base_url={service.url}").search("tower bridge") == RESULTS
    assert service.requests[0]["q"] == "tower bridge"


@pytest.mark.parametrize(
    ("engine_class", "nothing"),
    [(SearxNG, {"results": []}), (Brave, {"web": {"results": []}}), (Brave, {"query": {}}), (DuckDuckGo, (200, "<p>"))],
)
async def test_nothing_found_is_an_empty_list(service: Service, engine_class: type, nothing: object) -> None:
    service.says(nothing)
    assert await SearchClient(engine_class(base_url=service.url)).search("xyzzy") == []


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_a_service_that_fails_is_asked_again(service: Service, status: int) -> None:
    service.says((status, "no"), (status, "no"), SEARX)
    assert await SearchClient(SearxNG(base_url=service.url)).search("bridge") == RESULTS
    assert len(service.requests) == 3


async def test_a_robot_check_of_duckduckgo_is_an_error_and_not_an_empty_result(service: Service) -> None:
    service.says((202, "are you a robot?"))
    with pytest.raises(SearchError, match="refused to answer"):
        await SearchClient(DuckDuckGo(base_url=service.url)).search("bridge")
    assert len(service.requests) == 3


@pytest.mark.parametrize(
    ("answer", "attempts", "message"),
    [
        ((500, "no"), 3, "status 500"),
        ((429, "no"), 3, "too many queries"),
        ((403, "no"), 1, "refused the request"),
        ((302, "go there"), 1, "status 302"),
        ((200, "<html>not json"), 1, "did not answer with JSON"),
        ((200, "[" * 100_000), 1, "did not answer with JSON"),
        ([1, 2], 1, "has no results"),
        ({"web": [], "results": 7}, 1, "has no results"),
        ({"web": {"results": ["text"]}, "results": ["text"]}, 1, "has no results"),
    ],
)
@pytest.mark.parametrize("engine_class", [Brave, SearxNG])
async def test_a_service_that_is_down_raises_an_error_without_the_key(
    service: Service, engine_class: type, answer: object, attempts: int, message: str
) -> None:
    service.says(answer)
    engine = engine_class(base_url=service.url)
    with pytest.raises(SearchError, match=message) as caught:
        await SearchClient(engine).search("bridge")
    assert len(service.requests) == attempts
    assert KEY not in str(caught.value)


@pytest.mark.usefixtures("service")
async def test_a_server_that_does_not_run_cannot_be_reached() -> None:
    with pytest.raises(SearchError, match=r"^127\.0\.0\.1:1 cannot be reached"):
        await SearchClient(SearxNG(base_url="http://127.0.0.1:1")).search("bridge")


async def test_a_searxng_whose_engines_are_down_raises_an_error(service: Service) -> None:
    service.says({"results": [], "unresponsive_engines": [["google", "CAPTCHA"]]})
    with pytest.raises(SearchError, match="none of the engines"):
        await SearchClient(SearxNG(base_url=service.url)).search("bridge")


async def test_queries_are_a_pause_apart(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    service.says(SEARX)
    monkeypatch.setattr(SearxNG, "pause", 0.1)
    engine, began = make_engine(f"searxng?base_url={service.url}"), time.monotonic()
    await asyncio.gather(engine.search("bridge"), engine.search("tower"))
    assert time.monotonic() - began >= 0.1


async def test_equal_queries_at_the_same_time_are_one_search(service: Service) -> None:
    service.says(SEARX)
    engine = make_engine(f"searxng?base_url={service.url}")
    assert await asyncio.gather(*(engine.search("bridge") for _ in range(8))) == [RESULTS] * 8
    assert len(service.requests) == 1


async def test_results_are_cached_with_the_replies_so_that_a_run_can_be_repeated_offline(
    service: Service, tmp_path: Path
) -> None:
    service.says(SEARX)
    name = f"searxng?base_url={service.url}"
    for _ in range(2):
        cache = ReplyCache(tmp_path / "replies.sqlite")
        with session(Session("a unit", cache=cache)):
            assert await make_engine(name).search("bridge") == RESULTS
        cache.close()
        service.says((500, "down by now"))
    assert len(service.requests) == 1


async def test_without_a_cache_every_run_searches_again(service: Service) -> None:
    service.says(SEARX)
    for _ in range(2):
        with session(Session("a unit")):
            await make_engine(f"searxng?base_url={service.url}").search("bridge")
    assert len(service.requests) == 2


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("altavista", "unknown search engine 'altavista'"),
        ("searxng", "searxng needs its server's address"),
        ("searxng?base_url=host", "must be an address"),
        ("searxng?base_url=https://me:secret@host", "must not contain a user or password"),
        ("searxng?lang=en", "unexpected keyword argument 'lang'"),
        ("duckduckgo?region", "option 'region' has no value"),
        ("nowhere.py:Mine", "there is no file nowhere.py"),
        ("json:JSONDecoder", "is not a search engine"),
    ],
)
def test_an_invalid_name_is_refused_before_any_search(name: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        make_engine(name)
    assert "secret" not in str(caught.value)


def test_brave_without_a_key_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BRAVE_API_KEY", raising=False)
    with pytest.raises(ConfigError, match="BRAVE_API_KEY"):
        make_engine("brave")


async def test_a_users_engine_is_a_class_in_a_file(tmp_path: Path) -> None:
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
