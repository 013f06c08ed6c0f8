"""The pages keep to their kind and to a limit of words, and quote only messages that are still in the code."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

MADE = {"licences"}
"""Pages that a command writes."""
MAX_WORDS = 37_500
MAX_HOW_TO_WORDS = 600


def words_of(page: Path) -> int:
    """Words and numbers; the lines of tables and other marks alone do not count."""
    return len(re.findall(r"\S*\w\S*", page.read_text("utf-8")))


@pytest.fixture
def pages(root: Path) -> list[Path]:
    return [page for page in sorted((root / "docs").glob("*.md")) if page.stem not in MADE]


def test_all_pages_together_have_at_most_37_500_words(pages: list[Path]) -> None:
    assert sum(map(words_of, pages)) <= MAX_WORDS


def test_a_how_to_page_has_at_most_600_words(root: Path) -> None:
    sections = tomllib.loads((root / "docs" / "nav.toml").read_text("utf-8"))["section"]
    names = [name for section in sections if section["title"].startswith("How-to") for name in section["pages"]]
    assert len(names) > 20
    counts = {name: words_of(root / "docs" / f"{name}.md") for name in names}
    assert {name: count for name, count in counts.items() if count > MAX_HOW_TO_WORDS} == {}


def test_the_first_lines_of_a_page_say_what_it_is_for(pages: list[Path]) -> None:
    without = [
        page.stem for page in pages if not re.match(r"# .*\n\n[^#]*?This (page|tutorial) ", page.read_text("utf-8"))
    ]
    assert without == []


def test_every_figure_is_shown_on_a_page(root: Path) -> None:
    text = "".join(page.read_text("utf-8") for page in [root / "README.md", *(root / "docs").glob("*.md")])
    names = {path.name.replace("-dark", "") for path in (root / "docs" / "figures").iterdir()}
    assert {name for name in names if f"figures/{name}" not in text} == set()


ROOMS = ("agents", "scenarios", "judging", "analysis", "training", "parley")


def strings_in_code(root: Path) -> Iterator[str]:
    """Every string in the code; of an f-string the pieces between its values."""
    for room in ROOMS:
        for path in (root / room).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield node.value


def missing_pieces(line: str, strings: set[str]) -> list[str]:
    pieces = [piece for piece in line.split("…") if len(piece.strip(" ,;:()'?=&")) > 2]
    return [piece for piece in pieces if not any(piece in text for text in strings)]


def test_every_quoted_message_is_still_in_the_code(root: Path) -> None:
    strings = set(strings_in_code(root))
    messages = re.findall(r"```text\n(.*)\n```", (root / "docs" / "errors.md").read_text("utf-8"))
    assert len(messages) > 20
    assert {message: pieces for message in messages if (pieces := missing_pieces(message, strings))} == {}
    assert missing_pieces("there is no unicorn called …", strings) != []
