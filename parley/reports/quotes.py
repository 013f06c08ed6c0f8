"""Two lines of a run's debate, for its first screen: what one judge says first, and what another says last."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from parley.base.text import in_words
from parley.runs import RunFile


@dataclass(frozen=True, slots=True)
class Quote:
    """What somebody said in a debate."""

    unit: str
    speaker: str
    text: str


def quotes(path: Path) -> list[Quote]:
    """The first statement of the first debate, and the last one by somebody else; none if nobody talks to another.

    Args:
        path: The run file.
    """
    with RunFile.open(path) as file:
        lines = file.stream(
            "SELECT t.unit, t.speaker, t.text, t.parsed FROM transcript t JOIN units u ON u.id = t.unit "
            "WHERE u.status = 'done' AND t.role = 'debater' AND t.round > 0 ORDER BY u.position, t.seq"
        )
        for unit, turns in groupby(lines, key=lambda line: str(line[0])):
            said = [
                Quote(unit, str(speaker), in_words(str(text), json.loads(parsed) if parsed else None))
                for _, speaker, text, parsed in turns
            ]
            said = [quote for quote in said if quote.text]
            if replies := [quote for quote in said if quote.speaker != said[0].speaker]:
                return [said[0], replies[-1]]
    return []
