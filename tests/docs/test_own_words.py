"""What is shipped is in our words: no text of ours shares twelve consecutive words with a paper.

The papers are no part of the repository; the test reads them where they lie next to the checkout.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PAPERS = Path(__file__).parents[3] / "shared" / "seeds"
RUN = 12
ROOMS = ("agents", "analysis", "benchmarks", "docs", "judging", "parley", "scenarios", "tests", "training")
KINDS = ("*.txt", "*.toml", "*.md", "*.py", "*.json", "*.ipynb")


def runs(text: str) -> Iterator[tuple[str, ...]]:
    """Consecutive words, without numbers: printed figures are data, whoever prints them."""
    words = re.findall(r"[a-z]+", text.lower().replace("-\n", ""))
    return zip(*(words[place:] for place in range(RUN)), strict=False)


def test_a_copied_sentence_is_found_across_lines_and_punctuation() -> None:
    copied = "The quick brown fox jumps\nover the lazy dog, and then it sleeps."
    assert [*runs("Once 12 foxes… " + copied)][-1] in set(runs(copied.replace(",", " –")))
    assert not set(runs("The quick brown fox jumps over a lazy dog, and then it sleeps.")) & set(runs(copied))


@pytest.mark.skipif(not PAPERS.is_dir(), reason="the papers are not next to this checkout")
def test_no_shipped_text_shares_twelve_words_in_a_row_with_a_paper(root: Path) -> None:
    printed = {run: paper.name for paper in PAPERS.glob("*.txt") for run in runs(paper.read_text("utf-8"))}
    assert len(printed) > 20_000
    files = [*root.glob("*.md"), *(path for room in ROOMS for kind in KINDS for path in (root / room).rglob(kind))]
    copied = {
        f"{path.relative_to(root)}: {' '.join(run)}"
        for path in files
        for run in runs(path.read_text("utf-8"))
        if run in printed
    }
    assert sorted(copied) == []
