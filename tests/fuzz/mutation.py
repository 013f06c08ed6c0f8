"""How an input becomes another one. All choices come from the generator that is given, so a seed repeats a campaign."""

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

LONGEST = 1_000_000
"""Characters: a reply or a field of a megabyte must be read, or refused, within the second."""


def text(rng: random.Random, seeds: Sequence[str]) -> str:
    """A few changes to one of the seeds."""
    found = rng.choice(seeds)
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 5, 8))):
        found = rng.choice(_EDITS)(rng, found, seeds)
    return found[:LONGEST]


def _place(rng: random.Random, found: str) -> int:
    return rng.randint(0, len(found))


def _insert(rng: random.Random, found: str, seeds: Sequence[str]) -> str:
    at = _place(rng, found)
    return found[:at] + rng.choice(rng.choice((ODD, NUMBERS))) + found[at:]


def _delete(rng: random.Random, found: str, seeds: Sequence[str]) -> str:
    start = _place(rng, found)
    return found[:start] + found[start + rng.randint(1, 12) :]


def _cut(rng: random.Random, found: str, seeds: Sequence[str]) -> str:
    return found[: _place(rng, found)]


def _repeat(rng: random.Random, found: str, seeds: Sequence[str]) -> str:
    start = _place(rng, found)
    piece = found[start : start + rng.randint(1, 30)]
    return found[:start] + piece * rng.randint(2, 20) + found[start:]


def _swell(rng: random.Random, found: str, seeds: Sequence[str]) -> str:
    """Something once becomes the same very often: what is not linear shows."""
    at, shape = _place(rng, found), rng.choice(SHAPES)
    often = rng.choice((50, 1500)) if rng.random() < 0.97 else rng.choice((20_000, 100_000, 300_000))
    return found[:at] + shape * often + found[at:]


def _splice(rng: random.Random, found: str, seeds: Sequence[str]) -> str:
    other = rng.choice(seeds)
    return found[: _place(rng, found)] + other[_place(rng, other) :]


def _number(rng: random.Random, found: str, seeds: Sequence[str]) -> str:
    digits = [at for at, char in enumerate(found[:5000]) if char.isdigit()]
    if not digits:
        return _insert(rng, found, seeds)
    at = rng.choice(digits)
    return found[:at] + rng.choice(NUMBERS) + found[at + 1 :]


def _flip(rng: random.Random, found: str, seeds: Sequence[str]) -> str:
    if not found:
        return rng.choice(ODD)
    at = rng.randrange(len(found))
    return (
        found[:at]
        + chr(rng.choice((rng.randrange(128), rng.randrange(0x3000), rng.randrange(0x110000))))
        + found[at + 1 :]
    )


_EDITS: tuple[Callable[[random.Random, str, Sequence[str]], str], ...] = (
    _insert, _insert, _delete, _cut, _repeat, _swell, _splice, _number, _flip, _flip,
)  # fmt: skip


def raw(rng: random.Random, found: bytes) -> bytes:
    """Bits, bytes and lengths."""
    changed = bytearray(found)
    for _ in range(rng.choice((1, 1, 2, 4, 16))):
        if not changed:
            return bytes(rng.randrange(256) for _ in range(rng.randrange(40)))
        at = rng.randrange(len(changed))
        kind = rng.randrange(5)
        if kind == 0:
            changed[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            changed[at] = rng.choice((0, 0xFF, 0x80, 0x7F))
        elif kind == 2:
            del changed[at:]
        elif kind == 3:
            changed[at:at] = bytes(rng.randrange(256) for _ in range(rng.randrange(1, 9)))
        else:
            del changed[at : at + rng.randrange(1, 64)]
    return bytes(changed)


def tree(rng: random.Random, value: Any) -> Any:
    """A structure with some of its nodes replaced, dropped, added or nested."""
    whole = [copy.deepcopy(value)]
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        holder, key = rng.choice(list(_nodes(whole)))
        kind = rng.randrange(7)
        if kind == 0 and isinstance(holder, dict):
            del holder[key]
        elif kind == 1 and isinstance(holder, dict):
            holder[rng.choice(ODD) + str(key)] = holder.pop(key)
        elif kind == 2:
            holder[key] = [holder[key]]
        elif kind == 3 and isinstance(holder, list):
            holder.insert(key, copy.deepcopy(holder[key]))
        elif kind == 4 and isinstance(holder[key], str):
            holder[key] = text(rng, [holder[key]])
        else:
            holder[key] = copy.deepcopy(rng.choice(VALUES))
        if not whole:
            return None
    return whole[0]


def _nodes(holder: Any) -> Any:
    for key in list(holder) if isinstance(holder, dict) else range(len(holder)):
        yield holder, key
        if isinstance(holder[key], dict | list):
            yield from _nodes(holder[key])


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
