"""TOML that users write, as a text or a file; what takes long to parse is refused."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from parley.base.errors import ScenarioError

_DOTTED = re.compile(r"""(?m)(?:^|[\[{,])[ \t]*+(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){64}""")
"""A key of more than 64 parts (a.b.c …), which no file has: tomllib's time is quadratic in their number (20,000 parts:
5 s)."""


def parse_toml(text: str) -> dict[str, Any]:
    """The text as a table. Raises ValueError if it is not TOML, and RecursionError if it is nested too deeply."""
    if _DOTTED.search(text):
        raise RecursionError
    return tomllib.loads(text)


def read_toml(path: Path, kind: str) -> dict[str, Any]:
    """The table in a file; ScenarioError, in one line, if it cannot be read.

    Args:
        path: The file.
        kind: What it should be, for messages: "suite".
    """
    try:
        return parse_toml(path.read_text("utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        raise ScenarioError(f"{path}: {getattr(error, 'strerror', None) or 'not a text file'}") from None
    except ValueError as error:
        raise ScenarioError(f"{path}: {error}") from None
    except RecursionError:
        raise ScenarioError(f"{path}: nested too deeply for a {kind}") from None


Location = tuple[int | str, ...]
"""A table and a key, as pydantic names them: ("label", 3, "text")."""


class Lines:
    """Where the tables and keys of a TOML text begin, for messages."""

    def __init__(self, text: str) -> None:
        self._first: dict[Location, int] = {}
        table: Location = ()
        counts: dict[str, int] = {}
        inside = ""  # the quotes of a text of several lines
        for number, line in enumerate(text.splitlines(), 1):
            if inside:
                inside = "" if inside in line else inside
                continue
            if header := re.match(r"\s*(\[\[?)\s*([^\[\]]+?)\s*\]", line):
                parts: Location = tuple(part.strip(" \"'") for part in header[2].split("."))
                if header[1] == "[[":
                    counts[header[2]] = counts.get(header[2], -1) + 1
                    parts = (*parts, counts[header[2]])
                table = parts
                self._first.setdefault(table, number)
            elif key := re.match(r"""\s*["']?([\w-]+)["']?\s*=""", line):
                self._first.setdefault((*table, key[1]), number)
            for quotes in ('"""', "'''"):
                inside = quotes if line.count(quotes) == 1 else inside

    def place(self, loc: Sequence[int | str], table: Mapping[str, Any]) -> str:
        """The table and key in words, with the line: "label 'byline-by' (line 80)"."""
        loc = tuple(loc)
        words = ".".join(map(str, loc))
        if len(loc) > 1 and isinstance(loc[1], int):
            row = table[str(loc[0])][loc[1]]
            named = isinstance(row, dict) and row.get("id")
            words = f"{loc[0]} '{named}'" if named else f"{loc[0]} {loc[1] + 1}"
            words += f" {loc[-1]}" if len(loc) > 2 and loc[0] != "label" else ""
        line = next((self._first[loc[:end]] for end in range(len(loc), 0, -1) if loc[:end] in self._first), 0)
        return f"{words} (line {line})" if line else words
