"""Searching a folder of documents without a network: BM25, and a reproducible ranking."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from contextlib import nullcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.agents import ConfigError, ReplyCache, SearchError, Session, session
from parley.agents.search import SearchResult, make_engine
from parley.agents.search.folder import PASSAGE_WORDS, split_passages
from parley.agents.search.web import DuckDuckGo


@pytest.fixture
def library(place):
    folder = place / "library"
    (folder / "deep").mkdir(parents=True)
    (folder / "bridge.md").write_text("# Tower Bridge\n\nTower Bridge was opened in 1894 by the Prince of Wales.\n")
    (folder / "deep" / "rhine.txt").write_text("The Rhine rises in Switzerland.\n\nIt flows into the North Sea.")
    (folder / "rows.jsonl").write_text(
        '{"title": "Eiffel Tower", "text": "The tower stands in Paris.", "url": "https://e.example"}\n\n'
        '{"text": "Bread is made of flour."}\n'
    )
    (folder / "picture.png").write_bytes(b"\x89PNG rhine")
    return folder


async def test_the_passage_that_answers_comes_first_with_its_link(library):
    engine = make_engine(f"folder:{library}")
    results = await engine.search("When was Tower Bridge opened?")
    assert results[0].title == "Tower Bridge"
    assert results[0].link == "bridge.md#1"
    assert "1894" in results[0].text
    assert results[1] == SearchResult("Eiffel Tower", "https://e.example#1", "The tower stands in Paris.")
    assert [result.link for result in await engine.search("Rhine")] == ["deep/rhine.txt#1"]
    assert [result.link for result in await engine.search("flour")] == ["rows.jsonl:3#1"]


@pytest.mark.parametrize("query", ["zebra", "", "the of and", "!?", "\ud800"])
async def test_a_query_that_shares_no_word_finds_nothing(library, query):
    assert await make_engine(f"folder:{library}").search(query) == []


async def test_a_folder_is_read_again_by_the_next_run_and_its_hash_tells_when_it_changed(library):
    name = f"folder:{library}"
    before = make_engine(name).sources()
    assert before == make_engine(name).sources()
    (library / "new.txt").write_text("Tower Bridge, tower bridge: TOWER BRIDGE.")
    assert (await make_engine(name).search("tower bridge"))[0].link == "new.txt#1"
    assert make_engine(name).sources() != before, "a run's record tells the documents apart"


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        (None, None, "there is no folder"),
        (None, "", "has no document"),
        ("a.txt", "!?", "^the documents of docs have no words to search$"),
        ("rows.jsonl", '{"text": "fine"}\n{', "line 2: not JSON"),
        ("rows.jsonl", '{"text": "fine"}\n{"title": "x"}', "line 2: expected an object with"),
    ],
)
async def test_a_folder_that_cannot_be_searched_is_refused(place, file, text, said):
    if text is not None:
        (place / "docs").mkdir()
    if file is not None:
        (place / "docs" / file).write_text(text)
    with pytest.raises(ConfigError, match=said):
        await make_engine("folder:docs").search("fine")


@given(st.lists(st.integers(0, 400), max_size=8))
def test_passages_have_every_word_once_and_a_limited_length(lengths):
    counter = iter(range(10_000))
    paragraphs = [" ".join(f"w{next(counter)}" for _ in range(length)) for length in lengths]
    parts = list(split_passages("\n\n".join(paragraphs)))
    assert " ".join(parts).split() == " ".join(paragraphs).split()
    assert all(0 < len(part.split()) <= 2 * PASSAGE_WORDS for part in parts)


# DuckDuckGo, and what every engine shares

RESULTS = [SearchResult("Tower Bridge", "https://a.example", "Opened in 1894.")]
PAGE = """<html><body><div class="result body"><h2><a href="https://a.example">Tower <b>Bridge</b></a></h2>
<a href="https://a.example">Opened in 1894.</a></div>
<div class="body"><h2>Advert</h2><a href="https://duckduckgo.com/y.js?ad">Buy bridges</a></div></body></html>"""


@pytest.fixture
def duckduckgo(server, monkeypatch):
    monkeypatch.delenv("DDGS_PROXY", raising=False)
    monkeypatch.setattr("parley.agents.search.registry.FIRST_WAIT_SECONDS", 0.01)
    monkeypatch.setattr(DuckDuckGo, "pause", 0.0)
    return f"duckduckgo?base_url={server.url.removesuffix('/v1')}"


@pytest.mark.parametrize(
    ("answers", "found", "requests"),
    [
        ([(200, PAGE)], RESULTS, 1),  # without the advert
        ([(200, "<p>")], [], 1),
        ([(202, "no"), (202, "no"), (200, PAGE)], RESULTS, 3),
        ([(202, "are you a robot?")], None, 3),  # an error, and not an empty result
    ],
)
async def test_results_are_parsed_and_a_service_that_refuses_is_asked_again(
    server, duckduckgo, answers, found, requests
):
    for status, page in answers:
        server.sends(page, status)
    expected = pytest.raises(SearchError, match="refused to answer") if found is None else nullcontext()
    with expected:
        assert await make_engine(duckduckgo).search("tower bridge") == found
    assert [request["q"] for request in server.asked] == ["tower bridge"] * requests


@pytest.mark.usefixtures("duckduckgo")
async def test_a_server_that_does_not_run_cannot_be_reached():
    with pytest.raises(SearchError, match="duckduckgo cannot be reached"):
        await make_engine("duckduckgo?base_url=http://127.0.0.1:1").search("bridge")


async def test_results_are_cached_with_the_replies_so_that_a_run_can_be_repeated_offline(server, duckduckgo, tmp_path):
    server.sends(PAGE)
    server.sends("down by now", 202)
    for _ in range(2):
        cache = ReplyCache(tmp_path / "replies.sqlite")
        with session(Session("a unit", cache=cache)):
            assert await make_engine(duckduckgo).search("bridge") == RESULTS
        cache.close()
    assert len(server.asked) == 1


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


async def test_a_users_engine_is_a_class_in_a_file(tmp_path, monkeypatch):
    waits: list[float] = []

    async def sleep(seconds):
        waits.append(seconds)

    (tmp_path / "mine.py").write_text(
        "class Mine:\n"
        "    pause = 1000\n"
        "    def __init__(self, word='x'):\n        self.name, self.word = 'mine', word\n"
        "    async def search(self, query, limit=5):\n"
        "        from parley.agents.search import SearchResult\n"
        "        return [SearchResult(self.word, 'here', query)] * 9\n"
        "    async def close(self): self.name = 'closed'\n"
    )
    engine = make_engine(f"{tmp_path}/mine.py:Mine?word=tower")
    monkeypatch.setattr(asyncio, "sleep", sleep)
    assert await engine.search("bridge", 2) == [SearchResult("tower", "here", "bridge")] * 2
    assert await engine.search("bridge") == [SearchResult("tower", "here", "bridge")] * 5
    assert waits[0] == 0 < waits[1] <= 1000
    await engine.close()
    assert (engine.name, engine.engine.name, engine.sources()) == ("mine", "closed", {})


def test_searching_a_folder_leaves_the_gpu_to_the_model(tmp_path):
    """bm25s runs JAX, where it is installed, as it is imported; JAX then takes most of the GPU's memory."""
    (tmp_path / "jax").mkdir()
    (tmp_path / "jax" / "__init__.py").write_text("print('JAX was imported')")
    (tmp_path / "jax" / "lax.py").write_text("top_k = lambda scores, k: print('JAX was run')")
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("Water boils at a lower temperature on a mountain.")
    code = (
        "import asyncio; from parley.agents.search.folder import FolderEngine\n"
        "print(asyncio.run(FolderEngine('texts').search('mountain'))[0].text)\n"
        "import jax"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True)

    searched, _, afterwards = done.stdout.partition("\n")
    assert "mountain" in searched, done.stderr
    assert afterwards.strip() == "JAX was imported"  # by the user's own code, which still can
