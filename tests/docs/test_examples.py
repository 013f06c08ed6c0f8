"""The studies of docs/studies.md show the effect in question, and the tutorial quotes what its commands print."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from parley.runs import frames

PAGE = Path(__file__).parents[2] / "docs" / "studies.md"
EXAMPLES = dict(re.findall(r"^```python\n# example: (\w+)\n(.*?)^```", PAGE.read_text("utf-8"), re.S | re.M))


def run(name: str, models: dict[str, str]) -> Any:
    """The table that an example prints, with these models in place of the vendors'."""
    code = EXAMPLES[name]
    for written, simulated in models.items():
        assert written in code
        code = code.replace(written, simulated)
    printed: list[Any] = []
    scope = {"__name__": "example", "print": printed.append}
    exec(compile(code, f"{PAGE.name}: {name}", "exec", dont_inherit=True), scope)
    return printed[-1]


@pytest.fixture(autouse=True)
def _here(place: Path) -> None:
    """In an empty folder."""


def test_each_has_at_most_forty_lines() -> None:
    assert set(EXAMPLES) == {"turns"}
    assert {name: len(code.splitlines()) for name, code in EXAMPLES.items() if len(code.splitlines()) > 40} == {}


def test_a_label_that_was_mentioned_once_and_early() -> None:
    (row,) = run("turns", {"openai/gpt-6-luna": "sim/judge?female=+1.5&noise=0.5"}).itertuples()
    assert (row.first, row.second, row.clusters) == ("female", "male", 6)
    assert row.low > 0.5
    assert row.p_adjusted < 0.05
    turns = frames.turns("turns.sqlite")
    first = turns[turns["unit"] == turns["unit"].iloc[0]]
    assert list(first["speaker"]) == ["user", "Interviewer", "Applicant", "Interviewer", "Applicant", "user", "Judge"]
    assert first["text"].str.contains("female").tolist() == [True] + [False] * 6


RUN = slice(2, 8)
"""From "2. Run it" to "7. One page on one judge"; what follows is Python, and real models."""


def test_every_output_in_the_tutorial_is_what_its_commands_print(
    parley: Callable[..., Any], root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    page = (root / "docs" / "tutorial.md").read_text("utf-8")
    quoted = 0
    for section in page.split("\n## ")[RUN]:
        commands = [line for line in re.findall(r"^parley .*", section, re.M) if not line.startswith("parley view")]
        printed = " ".join(word for line in commands for word in parley(*_typed(line)).out.split())
        blocks = re.findall(r"```text\n(.*?)```", section, re.S)
        prose = re.sub(r"```.*?```", "", section, flags=re.S)
        sentences = [text for text in re.findall(r"`([^`]+)`", prose) if text.endswith(".")]
        for text in (*blocks, *sentences):
            assert " ".join(text.split()) in printed
            quoted += 1
    assert quoted > 3


def _typed(line: str) -> list[str]:
    """Without the files of a report, which take longer than all it prints."""
    words = shlex.split(line, comments=True)[1:]
    return [*words, "--no-files"] if words[0] == "report" else words
