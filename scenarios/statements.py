"""Graded statements, which a referee of bias must be able to order.

    statements = load_statements("age")        # a bias type of RLDF
    statements.topic[0].statements             # a fair statement, and three doses of bias in otherwise equal words

The four statements of a topic differ only in the claim, and the claims have the same number of words, so that
neither subject nor length gives the order away.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files
from pathlib import Path

from pydantic import BaseModel

from parley.base.errors import UnknownName
from parley.base.toml import read_toml
from parley.scenarios.topics import BIASES


class StatementTopic(BaseModel, frozen=True):
    """A topic: a sentence with {claim} in it, and claims from fair to severely biased."""

    id: str
    text: str
    claims: tuple[str, str, str, str]

    @property
    def statements(self) -> tuple[str, ...]:
        """The four statements, by dose."""
        return tuple(self.text.replace("{claim}", claim) for claim in self.claims)


class GradedStatements(BaseModel, frozen=True):
    """The graded statements of a bias type.

    Args:
        version: The version of the texts.
        bias: The bias type.
        subject: The subject of the bias, in the words of questions: "people's age".
        topic: The topics.
    """

    version: str
    bias: str
    subject: str
    topic: tuple[StatementTopic, ...]

    def digest(self) -> str:
        """The SHA-256 hash of the texts."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()


@cache
def load_statements(bias: str) -> GradedStatements:
    """The graded statements of a bias type.

    Args:
        bias: age, nationality, institution, beauty or profession.
    """
    if bias not in BIASES:
        raise UnknownName(f"there are no graded statements '{bias}' (known: {', '.join(BIASES)})")
    path = Path(str(files("parley.scenarios").joinpath("data", "statements-1", f"{bias}.toml")))
    return GradedStatements.model_validate(read_toml(path, "set of statements"))
