"""A folder of documents as passages: .txt, .md, .html (its text), and .jsonl (one document a line: title, text, url).

What is said in a document is untrusted, like everything a search engine finds.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

from pydantic_core import from_json

from parley.agents.errors import ConfigError
from parley.agents.search.engine import SearchResult

SUFFIXES = (".txt", ".md", ".html", ".htm", ".jsonl")
PASSAGE_WORDS = 120
"""About a paragraph: long enough to hold a fact with what it is about, short enough that five fit a prompt."""
UNSEEN = {"script", "style", "noscript", "template", "head"}
BLOCKS = {"p", "div", "br", "li", "tr", "h1", "h2", "h3", "h4", "h5", "h6", "section", "article", "blockquote", "pre"}


def documents(folder: Path) -> list[Path]:
    """The files that can be searched, in an order that is the same everywhere."""
    if not folder.is_dir():
        raise ConfigError(f"there is no folder {folder} to search")
    found = [path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES and path.is_file()]
    if not found:
        raise ConfigError(f"{folder} holds no document that can be searched ({', '.join(SUFFIXES)})")
    return sorted(found, key=lambda path: path.relative_to(folder).as_posix())


def digest(folder: Path) -> str:
    """What the folder holds, as one hash: names and contents, not dates."""
    whole = hashlib.sha256()
    for path in documents(folder):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        whole.update(f"{path.relative_to(folder).as_posix()}\x1f{content}\x1e".encode("utf-8", "surrogateescape"))
    return whole.hexdigest()


def passages(folder: Path) -> Iterator[SearchResult]:
    """Every passage; its link says which document it is from, and where in it."""
    for path in documents(folder):
        for title, link, text in _texts(path, path.relative_to(folder).as_posix()):
            for number, passage in enumerate(split(text), 1):
                yield SearchResult(title, f"{link}#{number}", passage)


def split(text: str) -> Iterator[str]:
    """Paragraphs, joined while they are short and cut where they are long."""
    held: list[str] = []
    for paragraph in re.split(r"\n\s*\n", text):
        words = paragraph.split()
        if held and len(held) + len(words) > PASSAGE_WORDS:
            yield " ".join(held)
            held = []
        held += words
        start = 0
        while len(held) - start > PASSAGE_WORDS * 2:
            yield " ".join(held[start : start + PASSAGE_WORDS])
            start += PASSAGE_WORDS
        held = held[start:]
    if held:
        yield " ".join(held)


def _texts(path: Path, name: str) -> Iterator[tuple[str, str, str]]:
    content = path.read_text("utf-8", errors="replace")
    if path.suffix.lower() == ".jsonl":
        yield from _lines(content, path, name)
    elif path.suffix.lower() in (".html", ".htm"):
        page = _Page()
        page.feed(content)
        page.close()
        yield page.title.strip() or path.stem, name, "".join(page.parts)
    else:
        yield _heading(content) or path.stem, name, content


def _heading(text: str) -> str:
    first = text.lstrip().partition("\n")[0]
    return first.lstrip("#").strip() if first.startswith("#") else ""


def _lines(content: str, path: Path, name: str) -> Iterator[tuple[str, str, str]]:
    for number, line in enumerate(content.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = from_json(line)
        except ValueError as error:
            raise ConfigError(f"{path}, line {number}: not JSON ({error})") from None
        if not isinstance(row, dict) or not isinstance(row.get("text"), str):
            raise ConfigError(
                f"{path}, line {number}: an object with 'text' was expected (and 'title', 'url' if known)"
            )
        yield str(row.get("title") or path.stem), str(row.get("url") or f"{name}:{number}"), row["text"]


class _Page(HTMLParser):
    """The text of a page, without scripts and styles; the title apart."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.title = ""
        self.parts: list[str] = []
        self._inside: list[str] = []
        self._in_title = False

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag in UNSEEN:
            self._inside.append(tag)
        self._in_title = tag == "title"
        if tag in BLOCKS:
            self.parts.append("\n\n")

    def handle_endtag(self, tag: str) -> None:
        if tag in self._inside:
            while self._inside and self._inside.pop() != tag:
                pass
        self._in_title = False

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title += data
        elif not self._inside:
            self.parts.append(data)
