"""The offline engine: BM25 over a folder of documents, for use without a network and for reproducible runs.

The index is built once and stored in Parley's home folder under the hash of the documents: it is loaded when the same
folder is searched again, and a changed folder gets a new one.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from parley.agents.search.documents import digest, documents, passages
from parley.agents.search.engine import SearchResult, read_results
from parley.base.errors import ConfigError, ParleyError
from parley.base.files import new_folder
from parley.base.home import home, set_aside

INDEX_VERSION = 1
"""Increased when passages or tokens are made differently, so that an older index is not used."""
PASSAGES = "passages.json"


class FolderIndex(NamedTuple):
    """A BM25 ranker, and the passages in its order."""

    ranker: Any
    passages: list[SearchResult]


class FolderEngine:
    """BM25 over a folder: `folder:DIR`.

    Args:
        folder: The folder of documents, with those of its subfolders.
    """

    pause: ClassVar[float] = 0.0
    cacheable: ClassVar[bool] = False  # a search costs nothing, and the folder may change

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)
        self.name = f"folder:{folder}"
        documents(self.folder)  # this and the next line fail now, not at the first search
        _bm25s()
        self._index: FolderIndex | None = None
        self._loading = asyncio.Lock()

    def sources(self) -> dict[str, str]:
        """The hash of the folder's documents, which a run stores."""
        return {self.name: digest(self.folder)}

    async def search(self, query: str, limit: int = 5) -> list[SearchResult]:
        async with self._loading:
            if self._index is None:
                self._index = await asyncio.to_thread(load_or_build_index, self.folder)
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
    """Passages that share a word with the query, best first; equal scores in the order of the documents."""
    import numpy as np  # comes with bm25s, which is optional

    words = [word for word in _tokens([query])[0] if word in index.ranker.vocab_dict]
    if not words:
        return []
    scores = index.ranker.get_scores(words)
    order = np.argsort(-scores, kind="stable")[:limit]
    return [index.passages[position] for position in order if scores[position] > 0]


def load_or_build_index(folder: Path) -> FolderIndex:
    """The stored index of the folder's documents, or a new one, which is then stored."""
    path = home() / "search" / f"bm25-{INDEX_VERSION}-{digest(folder)[:32]}"
    if path.is_dir():
        try:
            ranker = _bm25s().BM25.load(path, show_progress=False)
            return FolderIndex(ranker, read_results((path / PASSAGES).read_text("utf-8")))
        except Exception as error:  # damaged, or of another version of bm25s, which has no errors of its own
            if not isinstance(error, OSError) or isinstance(error, FileNotFoundError | NotADirectoryError):
                with suppress(OSError):
                    set_aside(path, "search index", f"{type(error).__name__}: {str(error)[:80]}")
    index = _build_index(folder)
    _store_index(index, path)
    return index


def _build_index(folder: Path) -> FolderIndex:
    results = list(passages(folder))
    tokens = _tokens([f"{passage.title} {passage.text}" for passage in results])
    if not any(tokens):
        raise ConfigError(f"the documents of {folder} have no words to search")
    ranker = _bm25s().BM25()
    ranker.index(tokens, show_progress=False)
    return FolderIndex(ranker, results)


def _store_index(index: FolderIndex, path: Path) -> None:
    """Written to a temporary folder and renamed, so that a half-written index is never loaded."""
    # Where another process was first, or the disk is full, the index in memory is enough for now.
    with suppress(ParleyError), new_folder(path) as part:
        index.ranker.save(part, show_progress=False)
        (part / PASSAGES).write_text(json.dumps(index.passages), "utf-8")
