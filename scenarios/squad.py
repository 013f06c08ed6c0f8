"""SQuAD v2 in its official JSON: articles, paragraphs, and questions with several gold answers or none.

    squad = load("dev-v2.0.json")
    questions = sample(squad.questions, 100, seed=0)

A question is unanswerable if it has no gold answer, as in the official script.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from parley.base.errors import ScenarioError

SURROGATE = re.compile("[\ud800-\udfff]")


class SquadQuestion(NamedTuple):
    """One question.

    Args:
        id: Its id in the file.
        article: The title of the article.
        paragraph: The name of its paragraph: questions on the same paragraph are not independent.
        context: The text of the paragraph.
        question: The question.
        answers: The gold answers; empty if it is unanswerable.
    """

    id: str
    article: str
    paragraph: str
    context: str
    question: str
    answers: tuple[str, ...]

    @property
    def answerable(self) -> bool:
        """Whether it has a gold answer."""
        return bool(self.answers)


@dataclass(frozen=True, slots=True)
class Squad:
    """The questions of a file, and its hash."""

    questions: tuple[SquadQuestion, ...]
    sources: Mapping[str, str]
    """The file's name and the hash of its contents."""


def load(path: str | Path) -> Squad:
    """Load the questions of a file. A malformed file is an error that names the line or the field."""
    path = Path(path)
    try:
        content = path.read_bytes()
        table = json.loads(content)
    except OSError as error:
        raise ScenarioError(f"{path}: {error.strerror}") from None
    except json.JSONDecodeError as error:
        raise ScenarioError(f"{path}, line {error.lineno}, column {error.colno}: not JSON ({error.msg})") from None
    except (ValueError, RecursionError):
        raise ScenarioError(f"{path}: not JSON in UTF-8") from None
    try:
        questions = tuple(_questions(table))
    except _BadField as error:
        raise ScenarioError(f"{path}: {error}") from None
    if not questions:
        raise ScenarioError(f"{path}: contains no question")
    return Squad(questions, {path.name: hashlib.sha256(content).hexdigest()})


class _BadField(Exception):
    """Which field is wrong, and how."""


def _questions(table: Any) -> Iterator[SquadQuestion]:
    first_use: dict[str, str] = {}
    for a, article in enumerate(_get(table, "data", list, "")):
        article_path = f"data[{a}]"
        title = _get(article, "title", str, article_path)
        for p, paragraph in enumerate(_get(article, "paragraphs", list, article_path)):
            paragraph_path = f"{article_path}.paragraphs[{p}]"
            context = _get(paragraph, "context", str, paragraph_path)
            for q, row in enumerate(_get(paragraph, "qas", list, paragraph_path)):
                path = f"{paragraph_path}.qas[{q}]"
                key = _get(row, "id", str, path)
                if key in first_use:
                    raise _BadField(f"{path}.id: '{key}' is already the id of {first_use[key]}")
                first_use[key] = path
                answers = tuple(
                    _get(answer, "text", str, f"{path}.answers[{n}]")
                    for n, answer in enumerate(_get(row, "answers", list, path))
                )
                yield SquadQuestion(
                    id=key,
                    article=title,
                    paragraph=f"{title}/{p}",
                    context=context,
                    question=_get(row, "question", str, path),
                    answers=answers,
                )


def _get(table: Any, key: str, kind: type, path: str) -> Any:
    path = f"{path}.{key}" if path else key
    if not isinstance(table, dict) or key not in table:
        raise _BadField(f"{path} is missing")
    if not isinstance(table[key], kind):
        raise _BadField(f"{path} must be {'a list' if kind is list else 'a string'}")
    if kind is str and not table[key].isascii() and SURROGATE.search(table[key]):
        raise _BadField(f"{path} contains half a character (a lone surrogate), which cannot be stored")
    return table[key]


def sample(questions: Sequence[SquadQuestion], limit: int, seed: int) -> list[SquadQuestion]:
    """A random sample with answerable and unanswerable questions in the proportion of the file, evenly mixed.

    Args:
        questions: All questions.
        limit: Maximum number of questions.
        seed: The random seed.
    """
    if limit >= len(questions):
        return list(questions)
    answerable, unanswerable = (
        [question for question in questions if question.answerable is kind] for kind in (True, False)
    )
    share = round(limit * len(answerable) / len(questions))
    if answerable and unanswerable and limit > 1:
        share = min(max(share, 1), limit - 1)
    drawn = [
        random.Random(f"{seed}/{name}").sample(group, size)
        for name, group, size in (("answerable", answerable, share), ("unanswerable", unanswerable, limit - share))
    ]
    order = sorted(
        (n / len(group), side, question.id, question)
        for side, group in enumerate(drawn)
        for n, question in enumerate(group)
    )
    return [question for *_, question in order]
