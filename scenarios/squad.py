"""SQuAD v2 in its official JSON: articles, paragraphs, and questions with several gold answers or none.

    squad = load("dev-v2.0.json")
    some = sample(squad.questions, 100, seed=0)

A question is unanswerable if it has no gold answer, as the official script reads it.
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

from parley.scenarios.errors import ScenarioError

HALF = re.compile("[\ud800-\udfff]")


class Question(NamedTuple):
    """One question. `paragraph` names the text it was written for: questions that share one are not independent."""

    id: str
    article: str
    paragraph: str
    context: str
    question: str
    answers: tuple[str, ...]

    @property
    def answerable(self) -> bool:
        return bool(self.answers)


@dataclass(frozen=True, slots=True)
class Squad:
    """The questions of a file, and its hash."""

    questions: tuple[Question, ...]
    sources: Mapping[str, str]
    """The file's name and the hash of its contents."""


def load(path: str | Path) -> Squad:
    """The questions of a file; one that is malformed is refused, with the line or the field that is wrong."""
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
    except _Wrong as error:
        raise ScenarioError(f"{path}: {error}") from None
    if not questions:
        raise ScenarioError(f"{path}: no question in it")
    return Squad(questions, {path.name: hashlib.sha256(content).hexdigest()})


class _Wrong(Exception):
    """Which field is wrong, and how."""


def _questions(table: Any) -> Iterator[Question]:
    seen: dict[str, str] = {}
    for a, article in enumerate(_get(table, "data", list, "")):
        at = f"data[{a}]"
        title = _get(article, "title", str, at)
        for p, paragraph in enumerate(_get(article, "paragraphs", list, at)):
            here = f"{at}.paragraphs[{p}]"
            context = _get(paragraph, "context", str, here)
            for q, row in enumerate(_get(paragraph, "qas", list, here)):
                where = f"{here}.qas[{q}]"
                key = _get(row, "id", str, where)
                if key in seen:
                    raise _Wrong(f"{where}.id: '{key}' stands at {seen[key]} already")
                seen[key] = where
                gold = tuple(
                    _get(answer, "text", str, f"{where}.answers[{n}]")
                    for n, answer in enumerate(_get(row, "answers", list, where))
                )
                yield Question(key, title, f"{title}/{p}", context, _get(row, "question", str, where), gold)


def _get(table: Any, key: str, kind: type, where: str) -> Any:
    place = f"{where}.{key}" if where else key
    if not isinstance(table, dict) or key not in table:
        raise _Wrong(f"{place} is missing")
    if not isinstance(table[key], kind):
        raise _Wrong(f"{place} is not {'a list' if kind is list else 'a text'}")
    if kind is str and not table[key].isascii() and HALF.search(table[key]):
        raise _Wrong(f"{place} holds half a character (a lone surrogate), which no file can")
    return table[key]


def sample(questions: Sequence[Question], limit: int, seed: int) -> list[Question]:
    """At most `limit` questions, with answerable and unanswerable ones in the proportion of the file, in turn."""
    if limit < 1:
        raise ScenarioError("a sample needs at least one question")
    if limit >= len(questions):
        return list(questions)
    answerable, unanswerable = ([one for one in questions if one.answerable is kind] for kind in (True, False))
    share = round(limit * len(answerable) / len(questions))
    if answerable and unanswerable and limit > 1:
        share = min(max(share, 1), limit - 1)
    drawn = [
        random.Random(f"{seed}/{name}").sample(group, size)
        for name, group, size in (("answerable", answerable, share), ("unanswerable", unanswerable, limit - share))
    ]
    order = sorted(
        (n / len(group), side, one.id, one) for side, group in enumerate(drawn) for n, one in enumerate(group)
    )
    return [one for *_, one in order]
