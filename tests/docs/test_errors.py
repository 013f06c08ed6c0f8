"""Every message quoted on the page of errors is still in the code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOMS = ("agents", "scenarios", "judging", "analysis", "training", "parley")


def strings_in_code(root: Path) -> Iterator[str]:
    """Every string in the code; of an f-string the pieces between its values."""
    for room in ROOMS:
        for path in (root / room).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield node.value


def quoted_messages(root: Path) -> list[str]:
    return re.findall(r"```text\n(.*)\n```", (root / "docs" / "errors.md").read_text("utf-8"))


def missing_pieces(line: str, strings: set[str]) -> list[str]:
    pieces = [piece for piece in line.split("…") if len(piece.strip(" ,;:()'?=&")) > 2]
    return [piece for piece in pieces if not any(piece in text for text in strings)]


def test_every_quoted_message_is_still_in_the_code(root: Path) -> None:
    strings = set(strings_in_code(root))
    messages = quoted_messages(root)
    assert len(messages) > 20
    assert {message: pieces for message in messages if (pieces := missing_pieces(message, strings))} == {}
    assert missing_pieces("there is no unicorn called …", strings) != []
