"""A folder of documents as passages: .txt, .md, and .jsonl (one document per line: title, text, url).

Documents are untrusted text, like all search results.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

from pydantic_core import from_json

from parley.agents.search.engine import SearchResult
from parley.base.errors import ConfigError

SUFFIXES = (".txt", ".md", ".jsonl")
PASSAGE_WORDS = 120
"""About a paragraph: long enough for a fact with its context, short enough that five fit a prompt."""


def documents(folder: Path) -> list[Path]:
    """The files that can be searched, in an order that is the same everywhere."""
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
    """Every passage; its link names the document and the passage's number in it."""
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
