"""The page of errors quotes lines that the code still says."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOMS = ("agents", "scenarios", "judging", "analysis", "training", "parley")


def said(root: Path) -> Iterator[str]:
    """Every string of the code; of an f-string the pieces between its values."""
    for room in ROOMS:
        for path in (root / room).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield node.value


def quoted(root: Path) -> list[str]:
    return re.findall(r"```text\n(.*)\n```", (root / "docs" / "errors.md").read_text("utf-8"))


def missing(line: str, strings: set[str]) -> list[str]:
    pieces = [piece for piece in line.split("…") if len(piece.strip(" ,;:()'?=&")) > 2]
    return [piece for piece in pieces if not any(piece in text for text in strings)]


def test_every_quoted_line_is_still_said(root: Path) -> None:
    strings = set(said(root))
    lines = quoted(root)
    assert len(lines) > 20
    assert {line: gone for line in lines if (gone := missing(line, strings))} == {}
    assert missing("there is no unicorn called …", strings) != []
