"""Reads users' TOML, from a text or a file; refuses texts that take long to parse."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from errno import EINVAL
from pathlib import Path
from typing import Any

from parley.base.errors import ScenarioError

_DOTTED = re.compile(r"""(?m)(?:^|[\[{,])[ \t]*+(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){64}""")
"""A key of more than 64 parts (a.b.c …): tomllib's time is quadratic in their number (20,000 parts: 5 s)."""


def parse_toml(text: str) -> dict[str, Any]:
    """The text as a table. Raises ValueError if it is not TOML, and RecursionError if it is nested too deeply."""
    if _DOTTED.search(text):
        raise RecursionError
    return tomllib.loads(text)


def read_text(path: Path) -> str:
    """The text of a user's file; OSError if it is a pipe or a device, which may never end."""
    if path.is_fifo() or path.is_char_device():
        raise OSError(EINVAL, "not a regular file")
    return path.read_text("utf-8-sig")


def read_toml(path: Path, kind: str) -> dict[str, Any]:
    """Read a file's table; ScenarioError if it cannot be read.

    Args:
        path: The file.
        kind: What it should be, for messages: "suite".
    """
    try:
        return parse_toml(read_text(path))
    except (OSError, UnicodeDecodeError) as error:
        raise ScenarioError(f"{path}: {getattr(error, 'strerror', None) or 'not a text file'}") from None
    except ValueError as error:
        hint = '; a key with spaces needs quotes, as in "first name" = …' if "after a key" in str(error) else ""
        raise ScenarioError(f"{path}: {error}{hint}") from None
    except RecursionError:
        raise ScenarioError(f"{path}: nested too deeply for a {kind}") from None


_KEY = r"""[\w-]+|"[^"\n]*"|'[^'\n]*'"""
Location = tuple[int | str, ...]
"""A table and a key, as pydantic names them: ("label", 3, "text")."""


def toml_key(name: str) -> str:
    """A key in TOML's form: in quotes if it has spaces or signs.

    Args:
        name: The key.
    """
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)


class Lines:
    """Lines of the tables and keys in TOML texts, for messages.

    Args:
        texts: The texts by file name; rows of later files follow those of earlier ones.
    """

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._first: dict[Location, str] = {}
        counts: dict[tuple[str, ...], int] = {}
        for name, text in texts.items():
            file = f"{name}, " if len(texts) > 1 else ""
            table: Location = ()
            inside = ""  # the quotes of a text of several lines
            for number, line in enumerate(text.splitlines(), 1):
                if inside:
                    inside = "" if inside in line else inside
                    continue
                if header := re.match(r"\s*(\[\[?)\s*([^\[\]]+?)\s*\]", line):
                    table = _location(header[2], counts, is_row=header[1] == "[[")
                    self._first.setdefault(table, f"{file}line {number}")
                elif key := re.match(rf"\s*({_KEY})\s*=", line):
                    self._first.setdefault((*table, key[1].strip("\"'")), f"{file}line {number}")
                for quotes in ('"""', "'''"):
                    inside = quotes if line.count(quotes) == 1 else inside

    def line(self, loc: Location) -> str:
        """The line of a key, or of the table around it: "line 7"; empty if it is not known."""
        return next((self._first[loc[:end]] for end in range(len(loc), 0, -1) if loc[:end] in self._first), "")


def _location(header: str, counts: dict[tuple[str, ...], int], *, is_row: bool) -> Location:
    """The place of a table from its header: ("graded", 2, "flaw", 0) for the first [[graded.flaw]] of the third."""
    names = tuple(part.strip(" \"'") for part in header.split("."))
    if is_row:
        counts[names] = counts.get(names, -1) + 1
        for inner in [other for other in counts if len(other) > len(names) and other[: len(names)] == names]:
            del counts[inner]  # the next row begins with none
    loc: Location = ()
    for end, name in enumerate(names, 1):
        loc = (*loc, name, counts[names[:end]]) if names[:end] in counts else (*loc, name)
    return loc
