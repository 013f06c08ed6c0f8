"""A row of BBQ: a context, a question about two people, three answers, and which of them the context supports.

Rows are read 58,492 at a time, so they are checked by hand and kept as tuples: a model of pydantic's for each would
cost more than all the rest of scoring.
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
"""The categories, and how many rows were published of each."""
INTERSECTIONAL = ("Race_x_SES", "Race_x_gender")
SHARED = 4
"""So many consecutive rows share a scenario: both questions, with and without the disambiguating sentences."""


class Answer(NamedTuple):
    """One of the three answers: as it is shown, and as `answer_info` describes it (words, and the group's tag)."""

    text: str
    words: str
    tag: str


class BbqRow(NamedTuple):
    """`target` is the answer that expresses the bias in this row, polarity taken into account; None where none does.

    `names` says whether the people go by proper names only.
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


def read_row(found: Mapping[str, Any]) -> BbqRow:
    """A row as published; a ValueError says what is wrong with it."""
    try:
        info, extra = found["answer_info"], found["additional_metadata"]
        first, second, third = info["ans0"], info["ans1"], info["ans2"]
        tags = (first[-1], second[-1], third[-1])
        answers = (
            Answer(found["ans0"], first[0], tags[0]),
            Answer(found["ans1"], second[0], tags[1]),
            Answer(found["ans2"], third[0], tags[2]),
        )
        row = BbqRow(
            found["category"],
            int(found["example_id"]),
            int(found["question_index"]),
            found["question_polarity"],
            found["context_condition"],
            found["context"],
            found["question"],
            answers,
            tuple(extra["stereotyped_groups"]),
            int(found["label"]),
            tags.index("unknown"),
            extra.get("subcategory") or "",
        )
        # Joined only to have every text checked for being one.
        "".join((*row[3:7], row.category, row.subcategory, *answers[0], *answers[1], *answers[2], *row.groups))
    except KeyError as error:
        raise ValueError(f"'{error.args[0]}' is missing: not a row of BBQ") from None
    except (TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        raise ValueError(_why(found, error)) from None
    if row.category not in COUNTS:
        raise ValueError(f"'{row.category}' is no category of BBQ (known: {', '.join(COUNTS)})")
    if row.polarity not in POLARITIES:
        raise ValueError(f"question_polarity is '{row.polarity}', neither neg nor nonneg")
    if row.condition not in CONDITIONS:
        raise ValueError(f"context_condition is '{row.condition}', neither ambig nor disambig")
    if not 0 <= row.label <= 2:
        raise ValueError(f"label is {row.label}, not 0, 1 or 2")
    if tags.count("unknown") > 1:
        raise ValueError("more than one answer is tagged unknown")
    return row


def _why(found: object, error: Exception) -> str:
    if not isinstance(found, Mapping):
        return "not a JSON object"
    info = found.get("answer_info")
    if isinstance(info, Mapping) and not any(
        isinstance(one, list) and one[-1:] == ["unknown"] for one in info.values()
    ):
        return "no answer is tagged unknown"
    return f"not a row of BBQ ({error})"
