"""Graded statements: what a referee of bias must be able to put in order.

    statements = load_statements("age")        # a bias type of RLDF, or your own .toml file
    statements.topic[0].statements             # a fair statement, and three doses of bias in otherwise equal words

Everything around the claim is the same in the four statements of a topic, and the claims have as many words, so that
neither the subject nor the length gives the order away. What can be counted is checked; people must read whether each
dose is more biased than the one before.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from parley.base.errors import UnknownName
from parley.base.problems import ID_PATTERN, UserFile
from parley.base.text import words
from parley.base.toml import read_toml
from parley.scenarios.checks import Finding, shared_runs, similarity
from parley.scenarios.topics import BIASES

DOSES = ("fair", "mild", "plain", "severe")
"""A topic's claims, in order: fair, and the same bias mildly, as a flat generalisation, and as an insult."""
NEEDED_TOPICS = 20
MAX_WORDS_APART = 1
"""Words by which the claims of a topic may differ."""
MAX_SHARE_APART = 0.1
"""Share by which the statements of one dose may be longer than those of another, in characters over all topics."""
TOO_ALIKE = 0.9
CLAIM = "{claim}"


class StatementTopic(BaseModel, extra="forbid", frozen=True):
    """A topic: a sentence with {claim} in it, and four claims, from fair to severely biased."""

    id: Annotated[str, Field(pattern=ID_PATTERN)]
    text: Annotated[str, Field(min_length=1)]
    claims: tuple[str, str, str, str]

    @property
    def statements(self) -> tuple[str, ...]:
        """The four statements, by dose."""
        return tuple(self.text.replace(CLAIM, claim) for claim in self.claims)


class GradedStatements(BaseModel, extra="forbid", frozen=True):
    """The graded statements of a bias type.

    Args:
        schema_version: The version of this format.
        version: The version of the texts.
        bias: The bias type.
        subject: What the bias is about, as questions name it: "people's age".
        definition: What counts as this bias.
        source: Where the definition is from.
        topic: The topics.
    """

    schema_version: Literal[1] = Field(alias="schema")
    version: str
    bias: Annotated[str, Field(min_length=1)]
    subject: Annotated[str, Field(min_length=1)]
    definition: Annotated[str, Field(min_length=1)]
    source: Annotated[str, Field(min_length=1)]
    topic: Annotated[tuple[StatementTopic, ...], Field(min_length=1)]

    def digest(self) -> str:
        """The SHA-256 hash of everything in the file."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()


def load_statements(name: str) -> GradedStatements:
    """The graded statements of a bias type.

    Args:
        name: age, nationality, institution, beauty, profession, or the path of a .toml file.
    """
    if name in BIASES:
        return _shipped(name)
    if not name.endswith(".toml"):
        raise UnknownName(f"there are no graded statements '{name}' (known: {', '.join(BIASES)}, or a .toml file)")
    return _read(Path(name))


def names_statements(name: str) -> bool:
    """Whether a name that a user gave stands for graded statements, not for a suite.

    Args:
        name: A bias type, or the path of a .toml file.
    """
    if name in BIASES:
        return True
    return name.endswith(".toml") and os.path.isfile(name) and "topic" in read_toml(Path(name), "set of statements")


@lru_cache(maxsize=len(BIASES))
def _shipped(bias: str) -> GradedStatements:
    return _read(Path(str(files("parley.scenarios").joinpath("data", "statements-1", f"{bias}.toml"))))


def _read(path: Path) -> GradedStatements:
    file = UserFile.read(path, "set of statements")
    statements = file.validate(GradedStatements)
    ids = Counter(topic.id for topic in statements.topic) if statements else Counter[str]()
    if repeated := sorted(name for name, count in ids.items() if count > 1):
        file.add((), f"topics occur twice: {', '.join(repeated)}")
    for number, topic in enumerate(statements.topic if statements else ()):
        if topic.text.count(CLAIM) != 1:
            file.add(("topic", number, "text"), f"must contain {CLAIM} once")
    file.refuse()
    assert statements is not None
    return statements


def check_statements(statements: GradedStatements) -> list[Finding]:
    """The problems of graded statements; an empty list if they are fit to check a referee with.

    Args:
        statements: The statements of a bias type.
    """
    found = [Finding(topic.id, problem) for topic in statements.topic for problem in _problems(topic)]
    found += [Finding(statements.bias, problem) for problem in _of_all(statements)]
    for first, second, ngram in shared_runs({topic.id: "\n\n".join(topic.statements) for topic in statements.topic}):
        found.append(Finding(first, f"shares words with {second}: '{ngram}'"))
    return found


def _problems(topic: StatementTopic) -> Iterator[str]:
    counts = [len(words(claim)) for claim in topic.claims]
    if max(counts) - min(counts) > MAX_WORDS_APART:
        listed = ", ".join(f"{dose} {count}" for dose, count in zip(DOSES, counts, strict=True))
        yield f"claims differ in length by more than {MAX_WORDS_APART} word: {listed}"
    for number, claim in enumerate(topic.claims):
        for other in range(number):
            if similarity(claim, topic.claims[other]) > TOO_ALIKE or words(claim) == words(topic.claims[other]):
                yield f"the claims '{DOSES[other]}' and '{DOSES[number]}' are the same"


def _of_all(statements: GradedStatements) -> Iterator[str]:
    if len(statements.topic) < NEEDED_TOPICS:
        yield f"has {len(statements.topic)} topics (expected at least {NEEDED_TOPICS})"
    lengths = {
        dose: sum(len(topic.statements[place]) for topic in statements.topic) for place, dose in enumerate(DOSES)
    }
    shortest, longest = min(lengths, key=lambda dose: lengths[dose]), max(lengths, key=lambda dose: lengths[dose])
    if lengths[longest] > (1 + MAX_SHARE_APART) * lengths[shortest]:
        yield f"'{longest}' statements are more than {MAX_SHARE_APART:.0%} longer than '{shortest}' ones, in characters"
