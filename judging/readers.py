"""Readers convert the reply to a user's prompt into the reply that the study expects.

A prompt's first line names its reader: `#! reader: lines` for the one here, or `#! reader: mine.py:read` for your own,
a function of the text and the study's reply type that returns the fields of that type.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from parley.base.plugins import Registry

M = TypeVar("M", bound=BaseModel)
Reader = Callable[[str, type[BaseModel]], Mapping[str, Any]]
READERS = Registry("reader", {"lines": "parley.judging.readers:lines"}, contract="judging/readers.py")
_PLACE = re.compile(r"(?<!\w)No\. ?(?=\d)", re.IGNORECASE)
_NUMBER = r"(?<![\w.])(\d+(?:\.\d+)?)(?:\s*(?:/|out of)\s*\d+)?(?!\w|\.\d)"
_ITEM = re.compile(r"^\s*\d+[.)]\s")
HEADING_WORDS = 6
"""Maximum words of a heading; longer lines without a number are ignored."""


@lru_cache(maxsize=256)
def read_by(name: str, reply_type: type[M]) -> type[M]:
    """A study's reply type, read from plain text.

    Args:
        name: The reader.
        reply_type: The study's reply type.
    """
    from parley.agents import TextReply  # imported late: it loads AutoGen, which reading a run file does not need

    reader: Reader = READERS.find(name)

    class Read(reply_type, TextReply):  # type: ignore[valid-type, misc]
        @classmethod
        def read(cls, text: str) -> tuple[Any, str]:
            try:
                return cls.model_validate(reader(text, reply_type)), ""
            except ValidationError as error:
                first = error.errors()[0]
                return None, f"{'.'.join(map(str, first['loc'])) or 'the reply'}: {first['msg']}"

    return Read


def lines(text: str, reply_type: type[BaseModel]) -> Mapping[str, Any]:
    """Read numbers from lines that name them: "Sixty: score 3, rank 2", "No.1: Sixty", "Creativity: 7/10".

    A short line without a number is a heading for the lines below it. Lines that name nobody, one for each of those who
    are to be named, are in their order. A number that is given twice, with different values, is not read. A field for
    text gets the whole reply.
    """
    kinds = dict(_fields(reply_type))
    passed_over = {(name, *path[1:]) for path in kinds for name in getattr(reply_type, "PASSED_OVER", ())}
    paths = (*kinds, *passed_over)
    names = {name.lower().removesuffix("s"): (level, name) for path in paths for level, name in enumerate(path)}
    listed = "|".join(sorted(map(re.escape, names), key=len, reverse=True))
    token = re.compile(rf"{_NUMBER}|(?<!\w)({listed})s?(?!\w)", re.IGNORECASE)
    numbers: dict[tuple[str, ...], set[str]] = defaultdict(set)
    heading: dict[int, str] = {}
    written = _PLACE.sub("rank ", text).splitlines()
    people = list(dict.fromkeys(path[-1] for path in kinds if len(path) > 1))
    rows = [_ITEM.sub("", line) for line in written if re.search(_NUMBER, line)]
    if len(rows) == len(people) and not any(name.lower() in text.lower() for name in people):
        written = [f"{name}: {row}" for name, row in zip(people, rows, strict=True)]
    for line in written:
        by_level, waiting, named, tokens = dict(heading), "", False, token.findall(line)
        for number, name in tokens:
            if name:
                level, field = names[name.lower()]
                by_level[level], named = field, True
            waiting = number if number and named else waiting  # not the number of a list, or of a round
            if waiting and (path := tuple(by_level[level] for level in sorted(by_level))) in paths:
                numbers[path].add(waiting)
                waiting = ""
        if tokens and not any(number for number, _ in tokens) and len(line.split()) <= HEADING_WORDS:
            heading = by_level
    values: dict[str, Any] = {}
    for path, kind in kinds.items():
        value = text.strip() if kind is str else numbers[path].pop() if len(numbers[path]) == 1 else None
        inner = values
        for name in path[:-1]:
            inner = inner.setdefault(name, {})
        inner[path[-1]] = value
    return values


def _fields(reply_type: type[BaseModel], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The fields of a type and of its parts, as paths, each with its kind."""
    for name, info in reply_type.model_fields.items():
        inner, place = info.annotation, (*path, info.alias or name)
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from _fields(inner, place)
        else:
            yield place, inner
