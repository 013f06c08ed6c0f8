"""BBQ-Hard, as MABRF made it: the rows of BBQ that a model answered wrongly, in BBQ's own format.

A run is filtered by its final answers: take a run of `default`, as a loop's answers are revised. A row that was
answered several times, by methods, models or repeats, is kept if one of its answers is wrong. A row without an answer
that could be read is left out: unread is not wrong.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from parley.base.errors import ConfigError
from parley.judging.bbq.study import BbqConfig, BbqStudy
from parley.runs import RunFile, explain_damage
from parley.scenarios.bbq.rows import published

ANSWERS = """
SELECT json_extract(facets, '$.category'), json_extract(facets, '$.example_id'),
       max(value != json_extract(facets, '$.label'))
FROM units LEFT JOIN verdicts ON verdicts.unit = units.id AND metric = 'answer' AND value IS NOT NULL
GROUP BY 1, 2
"""


class HardRows(NamedTuple):
    """The lines to write, and the number of rows by what was done with them."""

    lines: list[str]
    counts: Counter[str]


def to_bbq_hard(run: Path) -> HardRows:
    """The rows that a run of `bbq` answered wrongly.

    Args:
        run: The run file. Its data must still be where they were, and the same.
    """
    with explain_damage(run), RunFile.open(run) as file:
        info = file.info()
        if info["study"] != BbqStudy.name:
            raise ConfigError(f"--format bbq-hard takes a run of bbq, and {run} is one of {info['study']}")
        study = BbqStudy(BbqConfig(**info["config"]))
        if changed := [name for name, digest in study.bbq.sources.items() if info["sources"].get(name) != digest]:
            raise ConfigError(f"{changed[0]} has changed since {run} was made: its rows cannot be told apart")
        wrong = {(category, int(number)): value for category, number, value in file.rows(ANSWERS)[1]}
    words = {1: "wrong", 0: "right", None: "unread"}
    counts = Counter(words[value] for value in wrong.values())
    kept = [row for row in study.bbq.rows if wrong.get((row.category, row.example_id))]
    if not kept:
        raise ConfigError(f"{run} has no wrong answer: nothing to write")
    return HardRows([json.dumps(published(row), ensure_ascii=False) + "\n" for row in kept], counts)
