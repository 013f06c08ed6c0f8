"""The offline engine: BM25 over a folder of documents, for use without a network and for reproducible runs.

Documents are .txt, .md, and .jsonl (one document per line: title, text, url), and are cut into passages. They are
untrusted text, like all search results.

The index is built in memory at the first search: 20,000 passages of 120 words take 1.3 s of CPU.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from pydantic_core import from_json

from parley.agents.search.engine import SearchResult
from parley.base.errors import ConfigError, install


class FolderIndex(NamedTuple):
    """A BM25 ranker, and the passages in its order."""

    ranker: Any
    passages: list[SearchResult]


class FolderEngine:
    """BM25 over a folder: `folder:DIR`.

    Args:
        folder: The folder of documents, including subfolders.
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
        """The hash of the folder's documents, for the run file."""
        return {self.name: digest(self.folder)}

    async def search(self, query: str, limit: int = 5) -> list[SearchResult]:
        async with self._loading:
            if self._index is None:
                self._index = await asyncio.to_thread(_build_index, self.folder)
        return rank(self._index, query, limit)

    async def close(self) -> None:
        self._index = None


def _bm25s() -> Any:
    # Where JAX is installed, bm25s runs it as it is imported, and that takes three quarters of a GPU's memory from the
    # model that is served there. It is hidden for the time of the import: results are ranked by NumPy.
    hidden = {"jax": None} if "jax" not in sys.modules else {}
    sys.modules.update(hidden)  # type: ignore[arg-type]  # None is what stops an import
    try:
        import bm25s
    except ModuleNotFoundError:
        raise ConfigError(f"folder search needs the package 'bm25s': {install('search')}") from None
    finally:
        for name in hidden:
            del sys.modules[name]
    return bm25s


def _tokens(texts: list[str]) -> list[list[str]]:
    """Lower-case words without English stop words. Not stemmed: a stemmer would tie the index to one language."""
    tokens = _bm25s().tokenize(texts, stopwords="en", return_ids=False, show_progress=False)
    return [list(words) for words in tokens]


def rank(index: FolderIndex, query: str, limit: int) -> list[SearchResult]:
    """Passages that share a word with the query, best first; ties in the order of the documents."""
    import numpy as np  # comes with bm25s, which is optional

    words = [word for word in _tokens([query])[0] if word in index.ranker.vocab_dict]
    if not words:
        return []
    scores = index.ranker.get_scores(words)
    order = np.argsort(-scores, kind="stable")[:limit]
    return [index.passages[position] for position in order if scores[position] > 0]


def _build_index(folder: Path) -> FolderIndex:
    results = list(passages(folder))
    tokens = _tokens([f"{passage.title} {passage.text}" for passage in results])
    if not any(tokens):
        raise ConfigError(f"the documents of {folder} have no words to search")
    ranker = _bm25s().BM25()
    ranker.index(tokens, show_progress=False)
    return FolderIndex(ranker, results)


SUFFIXES = (".txt", ".md", ".jsonl")
PASSAGE_WORDS = 120
"""About a paragraph: long enough for a fact with its context, short enough that five fit a prompt."""


def documents(folder: Path) -> list[Path]:
    """The files that can be searched, in the same order on every machine."""
    if not folder.is_dir():
        raise ConfigError(f"there is no folder {folder} to search")
    paths = [path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES and path.is_file()]
    if not paths:
        raise ConfigError(f"{folder} has no document that can be searched ({', '.join(SUFFIXES)})")
    return sorted(paths, key=lambda path: path.relative_to(folder).as_posix())


def digest(folder: Path) -> str:
    """One hash of the folder's documents: their names and contents, not their dates."""
    combined = hashlib.sha256()
    for path in documents(folder):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        combined.update(f"{path.relative_to(folder).as_posix()}\x1f{content}\x1e".encode("utf-8", "surrogateescape"))
    return combined.hexdigest()


def passages(folder: Path) -> Iterator[SearchResult]:
    """All passages; a link has the document and the passage's number in it."""
    for path in documents(folder):
        for title, link, text in _texts(path, path.relative_to(folder).as_posix()):
            for number, passage in enumerate(split_passages(text), 1):
                yield SearchResult(title=title, link=f"{link}#{number}", text=passage)


def split_passages(text: str) -> Iterator[str]:
    """Paragraphs, joined while they are short and cut where they are long."""
    pending: list[str] = []
    for paragraph in re.split(r"\n\s*\n", text):
        words = paragraph.split()
        if pending and len(pending) + len(words) > PASSAGE_WORDS:
            yield " ".join(pending)
            pending = []
        pending += words
        start = 0
        while len(pending) - start > PASSAGE_WORDS * 2:
            yield " ".join(pending[start : start + PASSAGE_WORDS])
            start += PASSAGE_WORDS
        pending = pending[start:]
    if pending:
        yield " ".join(pending)


def _texts(path: Path, name: str) -> Iterator[tuple[str, str, str]]:
    """The title, link and text of each document in a file."""
    content = path.read_text("utf-8", errors="replace")
    if path.suffix.lower() == ".jsonl":
        yield from _json_lines(content, path, name)
    else:
        yield _heading(content) or path.stem, name, content


def _heading(text: str) -> str:
    first = text.lstrip().partition("\n")[0]
    return first.lstrip("#").strip() if first.startswith("#") else ""


def _json_lines(content: str, path: Path, name: str) -> Iterator[tuple[str, str, str]]:
    for number, line in enumerate(content.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = from_json(line)
        except ValueError as error:
            raise ConfigError(f"{path}, line {number}: not JSON ({error})") from None
        if not isinstance(row, dict) or not isinstance(row.get("text"), str):
            raise ConfigError(f"{path}, line {number}: expected an object with 'text' (and 'title' and 'url' if known)")
        yield str(row.get("title") or path.stem), str(row.get("url") or f"{name}:{number}"), row["text"]
