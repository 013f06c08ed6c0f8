"""Mutations of inputs. All choices come from the random generator passed in, so a seed reproduces a campaign."""

from __future__ import annotations

import copy
import csv
import io
import json
import random
from collections.abc import Callable, Sequence
from typing import Any

import tomli_w
import yaml

from tests.fuzz.dictionary import NUMBERS, ODD, SHAPES, VALUES

MAX_CHARACTERS = 1_000_000
"""A reply or field of a megabyte must be parsed or rejected within a second."""


def text(rng: random.Random, seeds: Sequence[str]) -> str:
    """One of the seeds after a few edits."""
    edited = rng.choice(seeds)
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 5, 8))):
        edited = rng.choice(_EDITS)(rng, edited, seeds)
    return edited[:MAX_CHARACTERS]


def _position(rng: random.Random, text: str) -> int:
    return rng.randint(0, len(text))


def _insert(rng: random.Random, text: str, seeds: Sequence[str]) -> str:
    position = _position(rng, text)
    return text[:position] + rng.choice(rng.choice((ODD, NUMBERS))) + text[position:]


def _delete(rng: random.Random, text: str, seeds: Sequence[str]) -> str:
    start = _position(rng, text)
    return text[:start] + text[start + rng.randint(1, 12) :]


def _cut(rng: random.Random, text: str, seeds: Sequence[str]) -> str:
    return text[: _position(rng, text)]


def _repeat(rng: random.Random, text: str, seeds: Sequence[str]) -> str:
    start = _position(rng, text)
    piece = text[start : start + rng.randint(1, 30)]
    return text[:start] + piece * rng.randint(2, 20) + text[start:]


def _swell(rng: random.Random, text: str, seeds: Sequence[str]) -> str:
    """Insert a shape many times: a parser whose time is not linear becomes slow."""
    position, shape = _position(rng, text), rng.choice(SHAPES)
    count = rng.choice((50, 1500)) if rng.random() < 0.97 else rng.choice((20_000, 100_000, 300_000))
    return text[:position] + shape * count + text[position:]


def _splice(rng: random.Random, text: str, seeds: Sequence[str]) -> str:
    other = rng.choice(seeds)
    return text[: _position(rng, text)] + other[_position(rng, other) :]


def _number(rng: random.Random, text: str, seeds: Sequence[str]) -> str:
    digits = [position for position, char in enumerate(text[:5000]) if char.isdigit()]
    if not digits:
        return _insert(rng, text, seeds)
    position = rng.choice(digits)
    return text[:position] + rng.choice(NUMBERS) + text[position + 1 :]


def _flip(rng: random.Random, text: str, seeds: Sequence[str]) -> str:
    if not text:
        return rng.choice(ODD)
    position = rng.randrange(len(text))
    code_point = rng.choice((rng.randrange(128), rng.randrange(0x3000), rng.randrange(0x110000)))
    return text[:position] + chr(code_point) + text[position + 1 :]


_EDITS: tuple[Callable[[random.Random, str, Sequence[str]], str], ...] = (
    _insert, _insert, _delete, _cut, _repeat, _swell, _splice, _number, _flip, _flip,
)  # fmt: skip


def raw(rng: random.Random, content: bytes) -> bytes:
    """Changes bits and bytes, inserts and deletes."""
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 4, 16))):
        if not changed:
            return bytes(rng.randrange(256) for _ in range(rng.randrange(40)))
        index = rng.randrange(len(changed))
        kind = rng.randrange(5)
        if kind == 0:
            changed[index] ^= 1 << rng.randrange(8)
        elif kind == 1:
            changed[index] = rng.choice((0, 0xFF, 0x80, 0x7F))
        elif kind == 2:
            del changed[index:]
        elif kind == 3:
            changed[index:index] = bytes(rng.randrange(256) for _ in range(rng.randrange(1, 9)))
        else:
            del changed[index : index + rng.randrange(1, 64)]
    return bytes(changed)


def tree(rng: random.Random, value: Any) -> Any:
    """A structure with some nodes replaced, removed, added or nested."""
    root = [copy.deepcopy(value)]
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        parent, key = rng.choice(list(_nodes(root)))
        kind = rng.randrange(7)
        if kind == 0 and isinstance(parent, dict):
            del parent[key]
        elif kind == 1 and isinstance(parent, dict):
            parent[rng.choice(ODD) + str(key)] = parent.pop(key)
        elif kind == 2:
            parent[key] = [parent[key]]
        elif kind == 3 and isinstance(parent, list):
            parent.insert(key, copy.deepcopy(parent[key]))
        elif kind == 4 and isinstance(parent[key], str):
            parent[key] = text(rng, [parent[key]])
        else:
            parent[key] = copy.deepcopy(rng.choice(VALUES))
        if not root:
            return None
    return root[0]


def _nodes(parent: Any) -> Any:
    for key in list(parent) if isinstance(parent, dict) else range(len(parent)):
        yield parent, key
        if isinstance(parent[key], dict | list):
            yield from _nodes(parent[key])


def as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def as_toml(value: Any) -> str:
    return tomli_w.dumps(value) if isinstance(value, dict) else "= " + as_json(value)


def as_yaml(value: Any) -> str:
    return yaml.safe_dump(value, allow_unicode=True)


def as_csv(rows: Any) -> str:
    out = io.StringIO()
    csv.writer(out).writerows(row if isinstance(row, list) else [row] for row in rows or [])
    return out.getvalue()
