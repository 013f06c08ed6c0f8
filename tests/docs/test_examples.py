"""The studies of docs/examples.md: at most 40 lines each, and on a model with the effect in question they show it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from parley.runs import frames

PAGE = Path(__file__).parents[2] / "docs" / "examples.md"
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
    assert set(EXAMPLES) == {"turns", "authors", "vendors"}
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


def test_who_is_said_to_have_written_it() -> None:
    table = run("authors", {"openai/gpt-6-luna": "sim/judge?gpt=+0.5"})
    found = {(row.first, row.second): row for row in table.itertuples()}
    assert len(found) == 3
    for (first, second), row in found.items():
        expected = 0.5 * ((first == "gpt") - (second == "gpt"))
        assert row.estimate == pytest.approx(expected, abs=0.05), (first, second)
        assert (row.p_adjusted < 0.05) == bool(expected)


def test_differences_by_vendor() -> None:
    models = {
        "openai/gpt-6-luna": "sim/luna?female=+0.6",
        "anthropic/claude-haiku-5-5": "sim/haiku",
        "google/gemini-3.8-flash": "sim/flash",
    }
    table = run("vendors", models).set_index("name")
    assert table["estimate"].round(1).to_dict() == {"sim/luna": 0.6, "sim/haiku": 0.0, "sim/flash": 0.0}
    assert (table["p_differ"] < 0.001).all()
