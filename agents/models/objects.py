"""The JSON objects in a text, found in linear time.

decoded('{"score": 4} or so', 0)         # ({'score': 4}, 12)
objects_in('On {this} scale: {"score": 4}')     # [(17, 29)]
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

_OBJECT_START = re.compile(r'\{\s*+["}]')
MAX_WASTED_CHARS = 200_000
"""Limit on the characters read by failed attempts, in addition to four times the text's length."""
NESTING_COST = 10_000
"""Cost of an attempt that fails on deeply nested brackets or a number too long to convert."""


class JsonObject(dict[str, Any]):
    """A decoded object that remembers which keys it had twice, whatever their case."""

    repeated: frozenset[str] = frozenset()


def _pairs(pairs: list[tuple[str, Any]]) -> JsonObject:
    value = JsonObject(pairs)
    names = [key.strip().lower() for key, _ in pairs]
    if len(set(names)) < len(names):
        value.repeated = frozenset(name for name, count in Counter(names).items() if count > 1)
    return value


_DECODER = json.JSONDecoder(object_pairs_hook=_pairs)


def decoded(text: str, start: int) -> tuple[JsonObject, int]:
    """Decode the object that begins at a brace; returns it and its end, or raises ValueError or RecursionError."""
    value, end = _DECODER.raw_decode(text, start)
    return value, end


def objects_in(text: str) -> list[tuple[int, int]]:
    """Start and end of every outermost object that can be decoded.

    Each failed attempt costs the characters that were read for it, and the total is limited: otherwise a text of
    nothing but opening braces would take quadratic time.
    """
    spans: list[tuple[int, int]] = []
    budget = 4 * len(text) + MAX_WASTED_CHARS
    start = text.find("{")
    while start >= 0 and budget > 0:
        end = start + 1
        if _OBJECT_START.match(text, start):
            try:
                _, end = decoded(text, start)
                spans.append((start, end))
            except json.JSONDecodeError as error:
                # The exception counts the lines before its position, which takes time as well: hence start // 64.
                budget -= error.pos - start + start // 64 + 64
            except (ValueError, RecursionError):  # a number of thousands of digits; brackets nested too deeply
                budget -= NESTING_COST
        start = text.find("{", end)
    return spans
