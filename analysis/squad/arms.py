"""SQuAD's arms compared: does search change the score, on the questions that both arms answered readably?"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from parley.analysis.reporting.forest import Forest, lines_of
from parley.analysis.reporting.report import Section, Table, format_interval
from parley.analysis.squad.answers import ALL, LABELS, MEASURES, PARTS, part_of, units_of
from parley.analysis.stats.multiplicity import with_holm
from parley.analysis.stats.paired import mcnemar_p, paired_permutation
from parley.analysis.stats.results import ALPHA, columns
from parley.base.text import p_text, plural

ITEM = ["question_id", "repeat"]
PRIMARY = "f1"
SHOWN = (
    "model", "first", "second", "part", "measure", "difference", "low", "high", "p", "p_adjusted", "p_mcnemar", "n",
    "clusters", "note",
)  # fmt: skip
NOTE = (
    "First minus second, in points, mean over paragraphs. p and interval: sign flips over paragraphs. p_adjusted: Holm "
    "over F1 of all questions, which is planned, and over all other rows; p_mcnemar assumes independent questions."
)


def arms_section(frame: pd.DataFrame) -> Section:
    """Does search change the score? F1 of all questions is planned; the rest is added.

    Args:
        frame: One row per answer, from `answers`.
    """
    tests = between_arms(frame)
    table = Table("between_arms", "Arms compared, on the questions both answered readably", tests, SHOWN, note=NOTE)
    return Section(tables=[table], forests=list(_forests(frame, tests)), words=list(_words(tests)))


def _words(tests: pd.DataFrame) -> Iterator[str]:
    for row in tests[tests["p_adjusted"] <= ALPHA].itertuples() if len(tests) else ():
        questions = plural(row.n, "question" if row.part == ALL else f"{row.part} question")
        yield (
            f"{row.first} compared with {row.second}: {LABELS[row.measure]} "
            f"{'rises' if row.difference > 0 else 'falls'} by {abs(row.difference):.1f} points "
            f"({format_interval(row.low, row.high, '+.1f')}; p {p_text(row.p_adjusted)}) on {questions} of "
            f"{plural(row.clusters, 'paragraph')}."
        )


def _forests(frame: pd.DataFrame, tests: pd.DataFrame) -> Iterator[Forest]:
    several, units = frame["model"].nunique() > 1, units_of(frame)
    for measure in (PRIMARY, "exact") if len(tests) else ():
        yield Forest(
            name=f"between-arms-{measure}",
            question="Does search change the score?",
            axis=f"difference in {LABELS[measure]} (points of 100)",
            lines=lines_of(
                tests[tests["measure"] == measure],
                lambda row: f"{row.first} − {row.second}, {row.part}",
                p="p_adjusted",
                group=lambda row: str(row.model) if several else "",
                units=lambda row: units(row.part, row.model, row.first, row.second),
                secondary=lambda row: row.part != ALL,
            ),
            table="between_arms",
            note=NOTE,
        )


def between_arms(frame: pd.DataFrame) -> pd.DataFrame:
    """Every two arms of a model, the later one first (so that it is search minus none)."""
    rows = []
    for model, answered in frame.groupby("model", sort=False):
        arms = dict(list(answered.groupby("search", sort=False)))
        for second, first in combinations(arms, 2):
            both = arms[first].merge(arms[second], on=ITEM, suffixes=("", "_second"))
            both = both[both["exact"].notna() & both["exact_second"].notna()]
            names = {"model": model, "first": first, "second": second}
            rows += [{**names, "part": part, **row} for part in PARTS for row in _compared(part_of(both, part))]
    table = pd.DataFrame(rows)
    return with_holm(table, (table["part"] == ALL) & (table["measure"] == PRIMARY)) if len(table) else table


def _compared(both: pd.DataFrame) -> Iterator[dict[str, Any]]:
    if both.empty:
        return
    for measure in MEASURES:
        first, second = both[measure], both[f"{measure}_second"]
        flips = paired_permutation(first, second, both["paragraph"])
        yield {
            "measure": measure,
            **columns(flips, "difference", "p"),
            "p_mcnemar": mcnemar_p(first / 100, second / 100) if measure == "exact" else np.nan,
            "n": flips.n,
            "clusters": flips.clusters,
            "note": flips.note,
        }
