"""Who repeats whom in a run, as a frame without texts: `repeated_remarks(path, units)`.

Texts are read unit by unit and compared at once, so that only a row of flags per statement stays in memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

import pandas as pd

from parley.judging.malibu.echo import REMARKS, Statement, judge_statements, unit_repeats
from parley.runs import RunFile

SAME_TEXT = ("model", "phase", "scenario", "response_a", "response_b")
REMEMBERED = 64
"""Units whose statements are kept for comparison: those on one text are close together in a plan."""


def repeated_remarks(path: Path, units: pd.DataFrame) -> pd.DataFrame:
    """One row per statement of a judge, with the unit's facets: does it repeat what another judge said in round 1?

    `near_chance` is the same for what these judges said in the last unit on the same text, missing where there is
    none. What counts as repeating is defined in `parley.judging.malibu.echo`.

    Args:
        path: The run file.
        units: Its units by position (see `parley.runs.frames.units`).
    """
    positions: list[int] = []
    rows: list[tuple[Any, ...]] = []
    with RunFile.open(path) as file:
        names = [name for name in SAME_TEXT if name in units]
        values = units[names].astype(object).where(units[names].notna(), None)  # NaN is not equal to itself
        texts = dict(zip(units.index, values.itertuples(index=False, name=None), strict=True))
        remembered: dict[tuple[Any, ...], list[Statement]] = {}
        for position, spoken in _spoken(file):
            if position not in texts:  # the unit ended after the units were read
                continue
            elsewhere = remembered.pop(texts[position], None)
            for row in unit_repeats(spoken, elsewhere):
                positions.append(position)
                rows.append(row)
            remembered[texts[position]] = spoken
            if len(remembered) > REMEMBERED:
                del remembered[next(iter(remembered))]
    remarks = pd.DataFrame(rows, columns=REMARKS)
    of_units = units.drop(columns=REMARKS, errors="ignore").reindex(positions).reset_index(drop=True)
    return pd.concat([of_units, remarks], axis=1)


def _spoken(file: RunFile) -> Iterator[tuple[int, list[Statement]]]:
    """The judges' statements of every finished unit, by its position in the plan; none where no two judges spoke."""
    by_unit = "SELECT 1 FROM messages WHERE role = 'debater' GROUP BY unit HAVING min(speaker) < max(speaker) LIMIT 1"
    if not file.rows(by_unit)[1]:  # silent ballots: reading them all takes a tenth of a report
        return
    lines = file.stream(
        "SELECT u.position, m.speaker, m.round, m.parsed FROM messages m JOIN units u ON u.id = m.unit "
        "WHERE u.status = 'done' AND m.role = 'debater' ORDER BY u.position, m.seq"
    )
    for position, spoken in groupby(lines, key=lambda line: int(line[0])):
        yield position, judge_statements((judge, int(round), _reply(parsed)) for _, judge, round, parsed in spoken)


def _reply(parsed: str | None) -> Mapping[str, Any] | None:
    """A stored reply; None if there is none, or if another tool stored something else there."""
    try:
        reply = json.loads(parsed) if parsed else None
    except (ValueError, RecursionError):
        return None
    return reply if isinstance(reply, dict) else None
