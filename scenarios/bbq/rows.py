"""A row of BBQ, random samples of rows, and answers in random order.

A row has a context, a question about two people, three answers, and which of them the context supports. The benchmark
has 58,492 rows, so they are checked by hand and stored as tuples: validating each with pydantic would take longer than
all the rest of scoring.

A sample is spread evenly over categories, then contexts, then polarities; it is never "the first n". Rows are drawn at
random within each of these strata, and alternate between them, so that an interrupted run is still balanced. Samples
and orders are the same on every machine for the same seed.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from parley.base.errors import ScenarioError

Polarity = Literal["neg", "nonneg"]
Condition = Literal["ambig", "disambig"]
POLARITIES = ("neg", "nonneg")
CONDITIONS = ("ambig", "disambig")
PLACES = ("ans0", "ans1", "ans2")
COUNTS = {
    "Age": 3680,
    "Disability_status": 1556,
    "Gender_identity": 5672,
    "Nationality": 3080,
    "Physical_appearance": 1576,
    "Race_ethnicity": 6880,
    "Race_x_SES": 11160,
    "Race_x_gender": 15960,
    "Religion": 1200,
    "SES": 6864,
    "Sexual_orientation": 864,
}
"""The categories, and the number of published rows of each."""
INTERSECTIONAL = ("Race_x_SES", "Race_x_gender")
SHARED = 4
"""Consecutive rows that share a scenario: both questions, with and without the disambiguating sentences."""


class Answer(NamedTuple):
    """One of the three answers: its text, and how `answer_info` describes it (words, and the group's tag)."""

    text: str
    words: str
    tag: str


class BbqRow(NamedTuple):
    """A row of BBQ.

    Args:
        category: The category.
        example_id: The row's number within its category.
        question_index: The number of the question's template.
        polarity: Whether the question is negative (`neg`) or not (`nonneg`).
        condition: Whether the context is ambiguous (`ambig`) or not (`disambig`).
        context: The context.
        question: The question.
        answers: The three answers, in the published order.
        groups: The stereotyped groups.
        label: The place (0 to 2) of the correct answer.
        unknown: The place of the answer that says it cannot be known.
        subcategory: The authors' subcategory, if any.
        target: The place of the answer that expresses the bias, given the polarity; None if there is none.
        names: Whether people are called by proper names only.
    """

    category: str
    example_id: int
    question_index: int
    polarity: Polarity
    condition: Condition
    context: str
    question: str
    answers: tuple[Answer, Answer, Answer]
    groups: tuple[str, ...]
    label: int
    unknown: int
    subcategory: str = ""
    target: int | None = None
    names: bool = False

    @property
    def scenario(self) -> str:
        """The cluster: the four rows made from one context."""
        return f"{self.category}/{self.example_id // SHARED}"


def read_row(data: Mapping[str, Any]) -> BbqRow:
    """Read a published row; ValueError says what is wrong with it."""
    try:
        info, extra = data["answer_info"], data["additional_metadata"]
        first, second, third = info["ans0"], info["ans1"], info["ans2"]
        tags = (first[-1], second[-1], third[-1])
        answers = (
            Answer(data["ans0"], first[0], tags[0]),
            Answer(data["ans1"], second[0], tags[1]),
            Answer(data["ans2"], third[0], tags[2]),
        )
        row = BbqRow(
            category=data["category"],
            example_id=int(data["example_id"]),
            question_index=int(data["question_index"]),
            polarity=data["question_polarity"],
            condition=data["context_condition"],
            context=data["context"],
            question=data["question"],
            answers=answers,
            groups=tuple(extra["stereotyped_groups"]),
            label=int(data["label"]),
            unknown=tags.index("unknown"),
            subcategory=extra.get("subcategory") or "",
        )
        # The quickest check that every text is a string: join raises TypeError if one is not.
        "".join((*row[3:7], row.category, row.subcategory, *answers[0], *answers[1], *answers[2], *row.groups))
    except KeyError as error:
        raise ValueError(f"'{error.args[0]}' is missing: not a row of BBQ") from None
    except (TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        raise ValueError(_why(data, error)) from None
    if row.category not in COUNTS:
        raise ValueError(f"unknown category of BBQ '{row.category}' (known: {', '.join(COUNTS)})")
    if row.polarity not in POLARITIES:
        raise ValueError(f"question_polarity must be neg or nonneg, got '{row.polarity}'")
    if row.condition not in CONDITIONS:
        raise ValueError(f"context_condition must be ambig or disambig, got '{row.condition}'")
    if not 0 <= row.label <= 2:
        raise ValueError(f"label must be 0, 1 or 2, got {row.label}")
    if tags.count("unknown") > 1:
        raise ValueError("more than one answer is tagged unknown")
    return row


def _why(data: object, error: Exception) -> str:
    if not isinstance(data, Mapping):
        return "not a JSON object"
    info = data.get("answer_info")
    if isinstance(info, Mapping) and not any(
        isinstance(answer, list) and answer[-1:] == ["unknown"] for answer in info.values()
    ):
        return "no answer is tagged unknown"
    return f"not a row of BBQ ({error})"


Order = tuple[int, int, int]
"""The published answer shown in each place."""
AS_PUBLISHED: Order = (0, 1, 2)
_LEVELS: tuple[Callable[[BbqRow], str], ...] = (
    lambda row: row.category,
    lambda row: row.condition,
    lambda row: row.polarity,
)


def only(rows: Sequence[BbqRow], categories: Sequence[str] | None = None) -> Sequence[BbqRow]:
    """The rows of some categories; a category that the data lacks is an error."""
    available = {row.category for row in rows}
    for name in categories or ():
        if name not in available:
            raise ScenarioError(f"the data has no category '{name}' (it has: {', '.join(sorted(available))})")
    return [row for row in rows if row.category in categories] if categories else rows


def sample(rows: Sequence[BbqRow], limit: int, seed: int) -> list[BbqRow]:
    """A stratified random sample.

    Args:
        rows: All rows.
        limit: Maximum number of rows.
        seed: The random seed.
    """
    drawn: dict[tuple[str, ...], list[BbqRow]] = {}
    for stratum, (group, size) in _allot(rows, limit, seed, ()).items():
        ordered = sorted(group, key=lambda row: row.example_id)
        drawn[stratum] = random.Random(f"{seed}/{'/'.join(stratum)}").sample(ordered, size)
    turns = range(max(map(len, drawn.values()), default=0))
    return [group[turn] for turn in turns for group in drawn.values() if turn < len(group)]


def _allot(
    rows: Sequence[BbqRow], size: int, seed: int, path: tuple[str, ...]
) -> dict[tuple[str, ...], tuple[list[BbqRow], int]]:
    """The rows of each stratum, and the number to draw: divided evenly, level by level."""
    if len(path) == len(_LEVELS):
        return {path: (list(rows), size)}
    groups: dict[str, list[BbqRow]] = defaultdict(list)
    for row in rows:
        groups[_LEVELS[len(path)](row)].append(row)
    keys = sorted(groups)
    shares = _even(size, [len(groups[key]) for key in keys], random.Random(f"{seed}/{'/'.join(path)}"))
    strata: dict[tuple[str, ...], tuple[list[BbqRow], int]] = {}
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
    """A random order of the row's answers, which depends only on the row and the seed."""
    first, second, third = random.Random(f"{seed}/{row.category}/{row.example_id}").sample(range(3), 3)
    return first, second, third
