"""Searching the web: services on loopback that answer, refuse, stumble and talk nonsense."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from parley.agents import ConfigError, ReplyCache, SearchError, Session, session
from parley.agents.search import Careful, SearchResult, make_engine
from parley.agents.search.brave import Brave
from parley.agents.search.duckduckgo import DuckDuckGo
from parley.agents.search.searxng import SearxNG

KEY = "BSA-very-secret"
SEARX = {"results": [{"title": "Tower Bridge", "url": "https://a.example", "content": "Opened in 1894.", "score": 1}]}
BRAVE = {"web": {"results": [{"title": "Tower Bridge", "url": "https://a.example", "description": "Opened in 1894."}]}}
FOUND = [SearchResult("Tower Bridge", "https://a.example", "Opened in 1894.")]
PAGE = """<html><body><div class="result body"><h2><a href="https://a.example">Tower <b>Bridge</b></a></h2>
<a href="https://a.example">Opened in 1894.</a></div>
<div class="body"><h2>Advert</h2><a href="https://duckduckgo.com/y.js?ad">Buy bridges</a></div></body></html>"""


class Service:
    """Gives its answers in turn, the last one again and again."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[dict[str, str]] = []
        self.tokens: list[str | None] = []
        self.answers: list[tuple[int, str]] = []

    def says(self, *answers: object) -> None:
        self.answers = [one if isinstance(one, tuple) else (200, json.dumps(one)) for one in answers]

    async def answer(self, request: web.Request) -> web.Response:
        self.asked.append({**request.query, **{key: str(value) for key, value in (await request.post()).items()}})
        self.tokens.append(request.headers.get("X-Subscription-Token"))
        status, body = self.answers[0] if len(self.answers) == 1 else self.answers.pop(0)
        return web.Response(status=status, text=body, content_type="text/html", headers={"Location": "/elsewhere"})


@pytest.fixture
async def service(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Service]:
    monkeypatch.setenv("BRAVE_API_KEY", KEY)
    monkeypatch.delenv("DDGS_PROXY", raising=False)
    service = Service()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", service.answer)
    listening = TestServer(app)
    await listening.start_server()
    service.url = str(listening.make_url("/")).rstrip("/")
    yield service
    await listening.close()


async def test_searxng_is_asked_for_json_and_its_results_are_read(service: Service) -> None:
    service.says(SEARX)
    engine = make_engine(f"searxng?base_url={service.url}&language=de")
    assert await engine.search("tower bridge", 5) == FOUND
    assert service.asked == [{"q": "tower bridge", "format": "json", "language": "de"}]


async def test_brave_is_sent_the_key_and_its_results_are_read(service: Service) -> None:
    service.says(BRAVE)
    assert await make_engine(f"brave?base_url={service.url}").search("tower bridge", 3) == FOUND
    assert service.asked[0]["count"] == "3"
    assert service.tokens == [KEY]


async def test_duckduckgo_page_is_read_without_its_adverts(service: Service) -> None:
    service.says((200, PAGE))
    assert await make_engine(f"duckduckgo?base_url={service.url}").search("tower bridge") == FOUND
    assert service.asked[0]["q"] == "tower bridge"


@pytest.mark.parametrize(
    ("kind", "nothing"),
    [(SearxNG, {"results": []}), (Brave, {"web": {"results": []}}), (Brave, {"query": {}}), (DuckDuckGo, (200, "<p>"))],
)
async def test_nothing_found_is_an_empty_list(service: Service, kind: type, nothing: object) -> None:
    service.says(nothing)
    assert await Careful(kind(base_url=service.url)).search("xyzzy") == []


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_a_service_that_stumbles_is_asked_again(service: Service, status: int) -> None:
    service.says((status, "no"), (status, "no"), SEARX)
    assert await Careful(SearxNG(base_url=service.url), first_wait=0.01).search("bridge") == FOUND
    assert len(service.asked) == 3


async def test_a_robot_check_of_duckduckgo_is_a_failure_and_not_an_empty_page(service: Service) -> None:
    service.says((202, "are you a robot?"))
    with pytest.raises(SearchError, match="refused to answer"):
        await Careful(DuckDuckGo(base_url=service.url), first_wait=0.01).search("bridge")
    assert len(service.asked) == 3


@pytest.mark.parametrize(
    ("answer", "tries", "says"),
    [
        ((500, "no"), 3, "status 500"),
        ((429, "no"), 3, "fewer queries"),
        ((403, "no"), 1, "refuses the request"),
        ((302, "go there"), 1, "status 302"),
        ((200, "<html>not json"), 1, "did not answer with JSON"),
        ((200, "[" * 100_000), 1, "did not answer with JSON"),
        ([1, 2], 1, "holds no results"),
        ({"web": [], "results": 7}, 1, "holds no results"),
        ({"web": {"results": ["text"]}, "results": ["text"]}, 1, "holds no results"),
    ],
)
@pytest.mark.parametrize("kind", [Brave, SearxNG])
async def test_a_service_that_is_down_says_so_and_never_shows_the_key(
    service: Service, kind: type, answer: object, tries: int, says: str
) -> None:
    service.says(answer)
    engine = kind(base_url=service.url)
    engine.pause = 0.0
    with pytest.raises(SearchError, match=says) as caught:
        await Careful(engine, first_wait=0.001).search("bridge")
    assert len(service.asked) == tries
    assert KEY not in str(caught.value)


async def test_a_server_nobody_runs_cannot_be_reached() -> None:
    with pytest.raises(SearchError, match=r"^127\.0\.0\.1:1 cannot be reached"):
        await Careful(SearxNG(base_url="http://127.0.0.1:1"), first_wait=0.001).search("bridge")


async def test_engines_behind_searxng_that_are_down_are_not_nothing_found(service: Service) -> None:
    service.says({"results": [], "unresponsive_engines": [["google", "CAPTCHA"]]})
    with pytest.raises(SearchError, match="none of the engines"):
        await Careful(SearxNG(base_url=service.url), first_wait=0.001).search("bridge")


async def test_equal_queries_at_the_same_time_are_one_search(service: Service) -> None:
    service.says(SEARX)
    engine = make_engine(f"searxng?base_url={service.url}")
    assert await asyncio.gather(*(engine.search("bridge") for _ in range(8))) == [FOUND] * 8
    assert len(service.asked) == 1


async def test_results_are_kept_with_the_replies_so_that_a_run_can_be_repeated_offline(
    service: Service, tmp_path: Path
) -> None:
    service.says(SEARX)
    name = f"searxng?base_url={service.url}"
    for _ in range(2):
        cache = ReplyCache(tmp_path / "replies.sqlite")
        with session(Session("a unit", cache=cache)):
            assert await make_engine(name).search("bridge") == FOUND
        cache.close()
        service.says((500, "down by now"))
    assert len(service.asked) == 1


async def test_without_a_cache_every_run_searches_anew(service: Service) -> None:
    service.says(SEARX)
    for _ in range(2):
        with session(Session("a unit")):
            await make_engine(f"searxng?base_url={service.url}").search("bridge")
    assert len(service.asked) == 2


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("altavista", "unknown search engine 'altavista'"),
        ("searxng", "searxng needs its server"),
        ("searxng?base_url=host", "must be an address"),
        ("searxng?base_url=https://me:secret@host", "must not hold a user or password"),
        ("searxng?lang=en", "unexpected keyword argument 'lang'"),
        ("duckduckgo?region", "option 'region' has no value"),
        ("nowhere.py:Mine", "there is no file nowhere.py"),
        ("json:JSONDecoder", "is not a search engine"),
    ],
)
def test_a_name_that_cannot_work_is_refused_before_work_starts(name: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as caught:
        make_engine(name)
    assert "secret" not in str(caught.value)


def test_brave_without_a_key_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BRAVE_API_KEY", raising=False)
    with pytest.raises(ConfigError, match="BRAVE_API_KEY"):
        make_engine("brave")


async def test_an_engine_of_the_users_own_is_a_class_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "class Mine:\n"
        "    def __init__(self, word='x'):\n        self.name, self.word = 'mine', word\n"
        "    async def search(self, query, limit=5):\n"
        "        from parley.agents.search import Found\n        return [Found(self.word, 'here', query)] * 9\n"
        "    async def close(self): ...\n"
    )
    found = await make_engine(f"{tmp_path}/mine.py:Mine?word=tower").search("bridge", 2)
    assert found == [SearchResult("tower", "here", "bridge")] * 2
