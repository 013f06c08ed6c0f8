"""Random samples of BBQ, and answers in random order; both are the same on every machine for the same seed.

A sample is spread evenly over categories, then contexts, then polarities; it is never "the first n". Rows are drawn at
random within each of these strata, and alternate between them, so that an interrupted run is still balanced.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from parley.base.errors import ScenarioError
from parley.scenarios.bbq.rows import BbqRow

Order = tuple[int, int, int]
"""Which published answer is shown in each place."""
AS_PUBLISHED: Order = (0, 1, 2)
_LEVELS: tuple[Callable[[BbqRow], str], ...] = (
    lambda row: row.category,
    lambda row: row.condition,
    lambda row: row.polarity,
)


class Stratum(NamedTuple):
    category: str
    condition: str
    polarity: str


def only(
    rows: Iterable[BbqRow], categories: Sequence[str] | None = None, conditions: Sequence[str] | None = None
) -> list[BbqRow]:
    """The rows of some categories and contexts; a name that the data does not have is an error."""
    rows = list(rows)
    for names, known, what in (
        (categories, {row.category for row in rows}, "category"),
        (conditions, {row.condition for row in rows}, "context"),
    ):
        for name in names or ():
            if name not in known:
                raise ScenarioError(f"the data has no {what} '{name}' (it has: {', '.join(sorted(known))})")
    return [
        row
        for row in rows
        if (not categories or row.category in categories) and (not conditions or row.condition in conditions)
    ]


def sample(rows: Sequence[BbqRow], limit: int, seed: int) -> list[BbqRow]:
    """A stratified random sample.

    Args:
        rows: All rows.
        limit: Maximum number of rows.
        seed: The random seed.
    """
    if limit < 1:
        raise ScenarioError("a sample needs at least one row")
    drawn: dict[Stratum, list[BbqRow]] = {}
    for stratum, (group, size) in _allot(rows, limit, seed, ()).items():
        ordered = sorted(group, key=lambda row: row.example_id)
        drawn[stratum] = random.Random(f"{seed}/{'/'.join(stratum)}").sample(ordered, size)
    turns = range(max(map(len, drawn.values()), default=0))
    return [group[turn] for turn in turns for group in drawn.values() if turn < len(group)]


def _allot(
    rows: Sequence[BbqRow], size: int, seed: int, path: tuple[str, ...]
) -> dict[Stratum, tuple[list[BbqRow], int]]:
    """The rows of each stratum, and how many to draw: divided evenly, level by level."""
    if len(path) == len(_LEVELS):
        return {Stratum(*path): (list(rows), size)}
    groups: dict[str, list[BbqRow]] = defaultdict(list)
    for row in rows:
        groups[_LEVELS[len(path)](row)].append(row)
    keys = sorted(groups)
    shares = _even(size, [len(groups[key]) for key in keys], random.Random(f"{seed}/{'/'.join(path)}"))
    strata: dict[Stratum, tuple[list[BbqRow], int]] = {}
    for key, share in zip(keys, shares, strict=True):
        strata |= _allot(groups[key], share, seed, (*path, key))
    return strata


def _even(size: int, limits: Sequence[int], rng: random.Random) -> list[int]:
    """`size` divided as evenly as possible within the limits; the remainder goes to randomly chosen parts."""
    shares = [0] * len(limits)
    left = min(size, sum(limits))
    while left:
        not_full = [place for place, share in enumerate(shares) if share < limits[place]]
        each = left // len(not_full)
        if each == 0:
            for place in rng.sample(not_full, left):
                shares[place] += 1
            break
        for place in not_full:
            added = min(each, limits[place] - shares[place])
            shares[place] += added
            left -= added
    return shares


def shuffled(row: BbqRow, seed: int) -> Order:
    """A random order of the row's answers, which depends on the row and the seed only."""
    first, second, third = random.Random(f"{seed}/{row.category}/{row.example_id}").sample(range(3), 3)
    return first, second, third
