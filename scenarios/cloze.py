"""Sentences with a blank and three words for it: a stereotype, its opposite, and one that is unrelated.

    cloze = load("dataset.csv")
    items = sample(cloze.items, 200, seed=0)

The format is that of Kamruzzaman et al. (2023), whose bias types RLDF takes over: a .csv file with the columns
`bias_type`, `context` (with the word BLANK), `stereotype`, `anti_stereotype` and `unrelated`; others are ignored. Many
sentences are one template with other words in it, so that they are not independent. The file does not say which:
`template` is the sentence without numbers and without the words that are choices elsewhere in its bias type.
"""

from __future__ import annotations

import csv
import hashlib
import io
import random
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from parley.base.errors import ScenarioError

BLANK = "BLANK"
KINDS = ("stereotype", "anti_stereotype", "unrelated")
COLUMNS = ("bias_type", "context", *KINDS)


class ClozeItem(NamedTuple):
    """One sentence.

    Args:
        id: Its number in the file, from 1.
        bias: The bias type.
        context: The sentence, with BLANK.
        choices: A word for each of `KINDS`.
        template: A name for what it shares with other sentences: those of one template are not independent.
    """

    id: str
    bias: str
    context: str
    choices: Mapping[str, str]
    template: str


@dataclass(frozen=True, slots=True)
class Cloze:
    """The sentences of a file, and its hash."""

    items: tuple[ClozeItem, ...]
    sources: Mapping[str, str]
    """The file's name and the hash of its contents."""


def load(path: str | Path) -> Cloze:
    """The sentences of a file. A malformed row is an error with its line."""
    path = Path(path)
    try:
        content = path.read_bytes()
        rows = csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline=""), strict=True)
        if missing := [name for name in COLUMNS if name not in (rows.fieldnames or ())]:
            raise ScenarioError(f"{path}: the column '{missing[0]}' is missing (needed: {', '.join(COLUMNS)})")
        parsed = [(_checked(row, f"{path}, line {rows.line_num}")) for row in rows]
    except OSError as error:
        raise ScenarioError(f"{path}: {error.strerror}") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise ScenarioError(f"{path}: not a .csv file in UTF-8 ({error})") from None
    if not parsed:
        raise ScenarioError(f"{path}: contains no sentence")
    patterns = _masks(parsed)
    items = tuple(
        ClozeItem(
            id=str(number),
            bias=row["bias_type"],
            context=row["context"],
            choices={kind: row[kind] for kind in KINDS},
            template=_template(row, patterns[row["bias_type"]]),
        )
        for number, row in enumerate(parsed, 1)
    )
    return Cloze(items, {path.name: hashlib.sha256(content).hexdigest()})


def _checked(row: Mapping[str | None, str | None], where: str) -> dict[str, str]:
    fields = {name: (row.get(name) or "").strip() for name in COLUMNS}
    if empty := [name for name, value in fields.items() if not value]:
        raise ScenarioError(f"{where}: '{empty[0]}' is empty")
    if fields["context"].count(BLANK) != 1:
        raise ScenarioError(f"{where}: 'context' must have the word {BLANK} once")
    if len({fields[kind].lower() for kind in KINDS}) < len(KINDS):
        raise ScenarioError(f"{where}: two of the three words are the same")
    return fields


def _masks(rows: Sequence[Mapping[str, str]]) -> dict[str, re.Pattern[str]]:
    """For each bias type, what varies within a template: numbers, and all words that are choices somewhere."""
    words: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        words[row["bias_type"]] |= {row[kind].lower() for kind in KINDS}
    longest_first = {bias: sorted(found, key=lambda word: (-len(word), word)) for bias, found in words.items()}
    return {
        bias: re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, found))}|\d+)(?!\w)")
        for bias, found in longest_first.items()
    }


def _template(row: Mapping[str, str], mask: re.Pattern[str]) -> str:
    parts = row["context"].split(BLANK)
    return BLANK.join(mask.sub("_", part.lower()) for part in parts).rstrip(" .")


def sample(items: Sequence[ClozeItem], count: int, seed: int) -> list[ClozeItem]:
    """A sample of sentences in the order of the file, spread evenly over bias types where each has enough.

    Args:
        items: The sentences.
        count: How many; all, if there are fewer.
        seed: Seed of the draw.
    """
    rng = random.Random(seed)
    by_bias: dict[str, list[int]] = defaultdict(list)
    for number, item in enumerate(items):
        by_bias[item.bias].append(number)
    for numbers in by_bias.values():
        rng.shuffle(numbers)
    turns = sorted(
        (turn, order, number) for order, numbers in enumerate(by_bias.values()) for turn, number in enumerate(numbers)
    )
    return [items[number] for number in sorted(number for _, _, number in turns[:count])]
