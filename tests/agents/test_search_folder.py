"""Searching a folder of documents without a network: BM25, stored indexes, and a reproducible ranking."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from parley.agents import ConfigError
from parley.agents.search import SearchResult, make_engine
from parley.agents.search.documents import PASSAGE_WORDS, split_passages

CALM = settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])


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
    (folder / "page.html").write_text(
        "<html><head><title>Danube &amp; more</title><style>p {color: rhine}</style></head><body>"
        "<script>rhine()</script><p>The Danube ends in the Black Sea.</p><p>It is long.</p></body></html>"
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
    (page,) = await engine.search("danube")  # without scripts and styles
    assert page == SearchResult("Danube & more", "page.html#1", "The Danube ends in the Black Sea. It is long.")


@pytest.mark.parametrize("query", ["zebra", "", "the of and", "!?", "\ud800"])
async def test_a_query_that_shares_no_word_finds_nothing(library, query):
    assert await make_engine(f"folder:{library}").search(query) == []


async def test_equal_scores_rank_in_the_order_of_the_documents_up_to_the_limit(place):
    (place / "same").mkdir()
    for name in "cab":
        (place / "same" / f"{name}.txt").write_text("one and the same text")
    results = await make_engine(f"folder:{place}/same").search("same text", 2)
    assert [result.link for result in results] == ["a.txt#1", "b.txt#1"]


async def test_a_folder_is_indexed_once_and_again_when_it_changes(library, place):
    name, indexes = f"folder:{library}", place / "home" / "search"
    first, before = await make_engine(name).search("tower bridge"), make_engine(name).sources()
    assert before == make_engine(name).sources()
    (index,) = indexes.iterdir()
    times = {path.name: path.stat().st_mtime_ns for path in index.iterdir()}
    assert await make_engine(name).search("tower bridge") == first
    assert {path.name: path.stat().st_mtime_ns for path in index.iterdir()} == times
    (library / "new.txt").write_text("Tower Bridge, tower bridge: TOWER BRIDGE.")
    assert (await make_engine(name).search("tower bridge"))[0].link == "new.txt#1"
    assert len(list(indexes.iterdir())) == 2
    assert make_engine(name).sources() != before, "a run's record tells the documents apart"


async def test_a_damaged_index_is_built_again(library, place):
    name = f"folder:{library}"
    first = await make_engine(name).search("tower bridge")
    (index,) = (place / "home" / "search").iterdir()
    (index / "passages.json").write_text("[[")
    assert await make_engine(name).search("tower bridge") == first
    (index / "vocab.index.json").unlink()
    assert await make_engine(name).search("tower bridge") == first


def test_a_folder_that_cannot_be_searched_is_refused_before_any_search(place):
    with pytest.raises(ConfigError, match="there is no folder"):
        make_engine("folder:nowhere")
    (place / "empty").mkdir()
    with pytest.raises(ConfigError, match="has no document"):
        make_engine("folder:empty")


@pytest.mark.parametrize(
    ("line", "message"), [("{", "line 2: not JSON"), ('{"title": "x"}', "line 2: expected an object with")]
)
async def test_an_invalid_line_is_named(place, line, message):
    (place / "bad").mkdir()
    (place / "bad" / "rows.jsonl").write_text('{"text": "fine"}\n' + line)
    with pytest.raises(ConfigError, match=message):
        await make_engine("folder:bad").search("fine")


@CALM
@given(st.lists(st.integers(0, 400), max_size=8))
def test_passages_have_every_word_once_and_a_limited_length(lengths):
    counter = iter(range(10_000))
    paragraphs = [" ".join(f"w{next(counter)}" for _ in range(length)) for length in lengths]
    parts = list(split_passages("\n\n".join(paragraphs)))
    assert " ".join(parts).split() == " ".join(paragraphs).split()
    assert all(0 < len(part.split()) <= 2 * PASSAGE_WORDS for part in parts)
