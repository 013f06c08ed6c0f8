"""The JSON objects in a text, found in linear time.

objects_in('On {this} scale: {"score": 4}')     # [Found({'score': 4}, 17, 29, inside=False)]
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any, NamedTuple

_OBJECT_START = re.compile(r'\{\s*+["}]')
_BRACE = re.compile(r"[{}]")
MAX_WASTED_CHARS = 200_000
"""Characters of failed attempts at an object before a text is given up, beyond four times its length."""
NESTING_COST = 10_000
"""Cost of an attempt that fails on deeply nested brackets or a number too long to convert."""


class JsonObject(dict[str, Any]):
    """A decoded object that remembers which keys it had twice, whatever their case."""

    repeated: frozenset[str] = frozenset()


class Found(NamedTuple):
    """An outermost object that decodes, where it begins and ends, and whether it stands inside one that does not."""

    value: JsonObject
    start: int
    end: int
    inside: bool


def _pairs(pairs: list[tuple[str, Any]]) -> JsonObject:
    value = JsonObject(pairs)
    names = [key.strip().lower() for key, _ in pairs]
    if len(set(names)) < len(names):
        value.repeated = frozenset(name for name, count in Counter(names).items() if count > 1)
    return value


_DECODER = json.JSONDecoder(object_pairs_hook=_pairs)


def objects_in(text: str) -> list[Found]:
    """Every outermost object that decodes.

    Each failed attempt costs the characters that were read for it, and the total is limited: otherwise a text of
    nothing but opening braces would take quadratic time.
    """
    found: list[Found] = []
    if "{" not in text:
        return found
    budget = 4 * len(text) + MAX_WASTED_CHARS
    open_braces: list[bool] = []  # True for one that began an object and did not decode
    broken = 0  # how many of them are True
    since = -1  # how many objects were found before the last one that did not decode
    brace = _BRACE.search(text)
    while brace and budget > 0:
        start, end = brace.start(), brace.end()
        if text[start] == "}":
            if open_braces:
                broken -= open_braces.pop()
            elif since >= 0:
                # Its opening brace was taken for another's: the text between them did not decode.
                found[since:] = [entry._replace(inside=True) for entry in found[since:]]
                since = len(found)
        else:
            attempt = _OBJECT_START.match(text, start) is not None
            if attempt:
                try:
                    value, end = _DECODER.raw_decode(text, start)
                except json.JSONDecodeError as error:
                    # The exception counts the lines before its position, which takes time as well: hence start // 64.
                    budget -= error.pos - start + start // 64 + 64
                except (ValueError, RecursionError):  # a number of thousands of digits; brackets nested too deeply
                    budget -= NESTING_COST
                else:
                    found.append(Found(value, start, end, broken > 0))
                    brace = _BRACE.search(text, end)
                    continue
                broken, since = broken + 1, len(found)
            open_braces.append(attempt)
        brace = _BRACE.search(text, end)
    return found
