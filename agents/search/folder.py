"""The offline engine: BM25 over a folder of documents, for use with no network, and for runs that can be repeated.

The index is made once and kept under the user's cache by the hash of the folder's contents: a second use loads it, a
changed folder is indexed anew.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from parley.agents.errors import ConfigError
from parley.agents.home import home
from parley.agents.search.documents import digest, documents, passages
from parley.agents.search.engine import SearchResult

INDEX_VERSION = 1
"""Raised when passages or tokens are made differently, so that an older index is not used."""
PASSAGES = "passages.json"


class FolderIndex(NamedTuple):
    """BM25 over the passages, in the same order."""

    ranker: Any
    passages: list[SearchResult]


class FolderEngine:
    """`folder:DIR`."""

    pause: ClassVar[float] = 0.0
    cacheable: ClassVar[bool] = False

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)
        self.name = f"folder:{folder}"
        documents(self.folder)
        _bm25s()
        self._index: FolderIndex | None = None
        self._opening = asyncio.Lock()

    def sources(self) -> dict[str, str]:
        """What was searched, for a run to keep: the same folder has the same hash."""
        return {self.name: digest(self.folder)}

    async def search(self, query: str, limit: int = 5) -> list[SearchResult]:
        async with self._opening:
            if self._index is None:
                self._index = await asyncio.to_thread(open_index, self.folder)
        return rank(self._index, query, limit)

    async def close(self) -> None:
        self._index = None


def _bm25s() -> Any:
    try:
        import bm25s
    except ModuleNotFoundError:
        raise ConfigError("folder search needs the package 'bm25s': pip install 'parley-autogen[search]'") from None
    return bm25s


def _tokens(texts: list[str]) -> list[list[str]]:
    """Lower-case words without English stop words. Not stemmed: a stemmer would tie the index to one language."""
    tokens = _bm25s().tokenize(texts, stopwords="en", return_ids=False, show_progress=False)
    return [list(words) for words in tokens]


def rank(index: FolderIndex, query: str, limit: int) -> list[SearchResult]:
    """The best first; equals in the order of the documents. What shares no word with the query is not a result."""
    import numpy as np

    known = [word for word in _tokens([query])[0] if word in index.ranker.vocab_dict]
    if not known:
        return []
    scores = index.ranker.get_scores(known)
    order = np.argsort(-scores, kind="stable")[:limit]
    return [index.passages[place] for place in order if scores[place] > 0]


def open_index(folder: Path) -> FolderIndex:
    kept = home() / "search" / f"bm25-{INDEX_VERSION}-{digest(folder)[:32]}"
    if kept.is_dir():
        try:
            ranker = _bm25s().BM25.load(kept, show_progress=False)
            rows = json.loads((kept / PASSAGES).read_text("utf-8"))
            return FolderIndex(ranker, [SearchResult(*row) for row in rows])
        except (OSError, ValueError, KeyError, TypeError):
            shutil.rmtree(kept, ignore_errors=True)  # half-written or of another version: made anew
    index = _make(folder)
    _keep(index, kept)
    return index


def _make(folder: Path) -> FolderIndex:
    found = list(passages(folder))
    tokens = _tokens([f"{one.title} {one.text}" for one in found])
    if not any(tokens):
        raise ConfigError(f"the documents of {folder} hold no words to search")
    ranker = _bm25s().BM25()
    ranker.index(tokens, show_progress=False)
    return FolderIndex(ranker, found)


def _keep(index: FolderIndex, place: Path) -> None:
    """Written beside and moved into place, so that a half-written index is never taken for a whole one."""
    place.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix="part-", dir=place.parent))
    try:
        index.ranker.save(part, show_progress=False)
        (part / PASSAGES).write_text(json.dumps(index.passages), "utf-8")
        os.replace(part, place)
    except OSError:
        shutil.rmtree(part, ignore_errors=True)  # another process was first, or no room: the index at hand will do
