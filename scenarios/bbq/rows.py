"""A row of BBQ: a context, a question about two people, three answers, and which of them the context supports.

The benchmark has 58,492 rows, so they are checked by hand and stored as tuples: validating each with pydantic would
take longer than all the rest of scoring.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

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
    """A published row. Raises ValueError, with what is wrong, if it is not one."""
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
