"""The pages keep to a limit of words, quote only messages that are in the code, and are in words of our own."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.published import FOLDER, needs

MAX_PAGES = 26
MAX_WORDS = 23_600  # 1,200 of them are the page of replications
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


# No text of ours shares twelve consecutive words with a paper; with the papers' texts, at night

RUN = 12
FOLDERS = ("agents", "analysis", "benchmarks", "docs", "judging", "parley", "scenarios", "tests", "training")
KINDS = ("*.txt", "*.toml", "*.md", "*.py", "*.json", "*.ipynb")


def runs(text: str) -> Iterator[tuple[str, ...]]:
    """Consecutive words, without numbers: printed figures are data, whoever prints them."""
    words = re.findall(r"[a-z]+", text.lower().replace("-\n", ""))
    return zip(*(words[place:] for place in range(RUN)), strict=False)


def test_a_copied_sentence_is_found_across_lines_and_punctuation() -> None:
    copied = "The quick brown fox jumps\nover the lazy dog, and then it sleeps."
    assert [*runs("Once 12 foxes… " + copied)][-1] in set(runs(copied.replace(",", " –")))
    assert not set(runs("The quick brown fox jumps over a lazy dog, and then it sleeps.")) & set(runs(copied))


@needs("papers")
def test_no_shipped_text_shares_twelve_words_in_a_row_with_a_paper(root: Path) -> None:
    printed = {run: paper.name for paper in (FOLDER / "papers").glob("*.txt") for run in runs(paper.read_text("utf-8"))}
    assert len(printed) > 20_000
    files = [*root.glob("*.md"), *(path for room in FOLDERS for kind in KINDS for path in (root / room).rglob(kind))]
    copied = {
        f"{path.relative_to(root)}: {' '.join(run)}"
        for path in files
        for run in runs(path.read_text("utf-8"))
        if run in printed
    }
    assert sorted(copied) == []
