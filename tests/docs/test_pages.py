"""The pages keep to a limit of words, and quote only messages that are still in the code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

MAX_PAGES = 25
MAX_WORDS = 22_600
"""As `python -m tests.size` counts them."""


@pytest.fixture
def pages(root: Path) -> list[Path]:
    return sorted((root / "docs").glob("*.md"))


def test_the_pages_are_few_and_short(pages: list[Path], root: Path) -> None:
    assert len(pages) <= MAX_PAGES
    assert sum(len(page.read_text("utf-8").split()) for page in [*pages, root / "README.md"]) <= MAX_WORDS


def test_a_page_says_what_it_is_for_before_its_first_heading(pages: list[Path]) -> None:
    assert [page.stem for page in pages if not re.match(r"# .*\n\n\w", page.read_text("utf-8"))] == []


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
    assert len(messages) > 15
    assert {message: pieces for message in messages if (pieces := missing_pieces(message, strings))} == {}
    assert missing_pieces("there is no unicorn called …", strings) != []
