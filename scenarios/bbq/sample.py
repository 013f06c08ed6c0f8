"""Samples of BBQ, and answers in another order: both by a seed, both the same on every machine.

A sample is spread evenly over categories, then contexts, then polarities, and never is "the first n". Rows are drawn
at random within each of these strata, and come out in turns, so that a run cut short is still balanced.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from parley.scenarios.bbq.rows import BbqRow
from parley.scenarios.errors import ScenarioError

Order = tuple[int, int, int]
"""Which published answer stands in each place."""
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
    """The rows of some categories and contexts; one that is not there is named."""
    rows = list(rows)
    for wanted, there, what in (
        (categories, {row.category for row in rows}, "category"),
        (conditions, {row.condition for row in rows}, "context"),
    ):
        for name in wanted or ():
            if name not in there:
                raise ScenarioError(f"there is no {what} '{name}' in the data (there: {', '.join(sorted(there))})")
    return [
        row
        for row in rows
        if (not categories or row.category in categories) and (not conditions or row.condition in conditions)
    ]


def sample(rows: Sequence[BbqRow], limit: int, seed: int) -> list[BbqRow]:
    """At most `limit` rows, stratified."""
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
    """How many rows of each stratum: level by level, evenly."""
    if len(path) == len(_LEVELS):
        return {Stratum(*path): (list(rows), size)}
    groups: dict[str, list[BbqRow]] = defaultdict(list)
    for row in rows:
        groups[_LEVELS[len(path)](row)].append(row)
    keys = sorted(groups)
    shares = _even(size, [len(groups[key]) for key in keys], random.Random(f"{seed}/{'/'.join(path)}"))
    found: dict[Stratum, tuple[list[BbqRow], int]] = {}
    for key, share in zip(keys, shares, strict=True):
        found |= _allot(groups[key], share, seed, (*path, key))
    return found


def _even(size: int, most: Sequence[int], rng: random.Random) -> list[int]:
    """`size` in parts as equal as they can be, none beyond its `most`; what is left over falls by lot."""
    shares = [0] * len(most)
    left = min(size, sum(most))
    while left:
        open_ = [place for place, share in enumerate(shares) if share < most[place]]
        each = left // len(open_)
        if each == 0:
            for place in rng.sample(open_, left):
                shares[place] += 1
            break
        for place in open_:
            more = min(each, most[place] - shares[place])
            shares[place] += more
            left -= more
    return shares


def shuffled(row: BbqRow, seed: int) -> Order:
    """The row's answers in an order of their own."""
    first, second, third = random.Random(f"{seed}/{row.category}/{row.example_id}").sample(range(3), 3)
    return first, second, third
