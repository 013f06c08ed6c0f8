"""Judged texts that read like an instruction to a model. Flags are for people and audits; no judge sees them.

    with RunFile.open(path) as file:
        for flagged in flagged_texts(file): ...

A text is judged if a prompt has it between fences, or if it is a debater's statement before a referee: a silent referee
reads statements without a fence.
"""

from __future__ import annotations

import json
import shlex
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from parley.agents.fencing import fence_judged, fenced_texts, instruction_kinds
from parley.base.text import plural
from parley.runs import RunFile

_FENCED = "SELECT id, text FROM texts WHERE typeof(text) = 'text' AND instr(text, '<<<')"
_STATEMENTS = (
    "SELECT DISTINCT t.id, t.text FROM messages m JOIN texts t ON t.id = m.text WHERE m.role = 'debater' "
    "AND typeof(t.text) = 'text' AND m.unit IN (SELECT unit FROM messages WHERE role = 'referee')"
)
_READ = (
    "SELECT u.id, m.text, coalesce(c.prompt, '[]') FROM messages m JOIN units u ON u.id = m.unit "
    "LEFT JOIN calls c ON c.unit = m.unit AND c.seq = m.seq ORDER BY u.position, m.seq, c.nth"
)


class FlagCount(NamedTuple):
    """Number of different texts that a run's judges read, and how many of them are flagged."""

    total: int
    flagged: int


class FlaggedText(NamedTuple):
    """A judged text that reads like an instruction, the kinds of instruction, and the first unit that has it."""

    text: str
    kinds: tuple[str, ...]
    unit: str


def count_flags(path: Path) -> FlagCount:
    """How many of a run's judged texts are flagged."""
    with RunFile.open(path) as file:
        judged = _judged_texts(file)
    return FlagCount(len(judged), sum(bool(instruction_kinds(text)) for text in judged))


def flagged_texts(file: RunFile) -> Iterator[FlaggedText]:
    """The flagged texts of a run, each once, in the order of its units."""
    flagged: dict[int, list[str]] = defaultdict(list)
    for text, ids in _judged_texts(file).items():
        if instruction_kinds(text):
            for number in ids:
                flagged[number].append(text)
    seen: set[str] = set()
    for unit, said, prompt in file.stream(_READ) if flagged else ():
        for number in (*(piece[2] for piece in json.loads(prompt)), said):
            for text in flagged.get(number, ()):
                if text not in seen:
                    seen.add(text)
                    yield FlaggedText(text, instruction_kinds(text), unit)


def _judged_texts(file: RunFile) -> dict[str, list[int]]:
    """Every judged text as a fence shows it, with the ids of the stored texts that have it."""
    judged: dict[str, list[int]] = defaultdict(list)
    for number, prompt in file.stream(_FENCED):
        for text in fenced_texts(prompt):
            judged[text].append(number)
    for number, statement in file.stream(_STATEMENTS):
        judged[fenced_texts(fence_judged(statement, ""))[0]].append(number)
    return judged


def flag_cautions(counts: Sequence[FlagCount], paths: Sequence[Path]) -> list[str]:
    """A line on judged texts that read like instructions, with the command that prints them."""
    total, flagged = sum(count.total for count in counts), sum(count.flagged for count in counts)
    if not flagged:
        return []
    path = next(path for path, count in zip(paths, counts, strict=True) if count.flagged)
    return [
        f"{flagged:,} of {plural(total, 'judged text')} read{'s' if flagged == 1 else ''} like an instruction to the "
        f"judge, and no judge was told: parley show {shlex.quote(str(path))} --flagged"
    ]
