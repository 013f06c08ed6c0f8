"""Do labels move scores as documented stereotypes do? A contrast between bases that are coded opposite ways.

Some bases have a stereotype that favours a category's reference (male, white, christian), others one that favours
somebody else over it. If judges follow stereotypes, the reference's lead is larger on the former. A judge that simply
prefers men does so on both, and the difference between the two stays 0. (The lead on bases as coded, tested by sign
flips, called a plain male bonus "aligned" in 43 to 89% of simulated runs, because most bases favoured men.)

The test permutes the coding of bases (`parley.analysis.stats.two_groups`): if stereotypes play no part, any other
division would have been as likely.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd

from parley.analysis.malibu.contrasts import with_holm
from parley.analysis.malibu.panel import PanelData, ScenarioGaps, ScoreTable, Verdicts, panel_data
from parley.analysis.reporting.report import Directions, ReportContext, Table
from parley.analysis.stats.two_groups import permuted_difference
from parley.base.text import plural

REFERENCES = {"gender": "male", "race": "white", "religion": "christian"}
"""The side of each category that the other identities are compared with; as in the primary contrasts."""
LEAST, LEAST_SHARE = 3, 1 / 3
"""Bases on the smaller side: with fewer, or a smaller share of those coded, the contrast is withheld."""
WITHHELD = "withheld"
"""How the note on such a contrast begins."""
ALIGNED = [
    *("model", "category", "reference", "favoured_lead", "other_lead", "difference", "low", "high", "p", "p_adjusted"),
    *("favoured_bases", "other_bases", "note"),
]


def aligned_contrast(verdicts: Verdicts, directions: Directions) -> pd.DataFrame:
    """The reference's lead on bases whose stereotype favours it, minus its lead on bases that favour others over it.

    The lead is the reference's mean score minus the mean of the category's other identities, on the same answers.
    Holm's correction is over a model's categories. Where too few bases are coded one of the two ways, only the leads
    are given, and the note says so.

    Args:
        verdicts: One row per verdict, or their `PanelData`.
        directions: Which identities the stereotype of each base favours, by category.
    """
    data = panel_data(verdicts)
    rows: list[dict[str, Any]] = []
    for model in data.models:
        categories = dict.fromkeys(category for of_base in directions.values() for category in of_base)
        for category in categories if data.pairs(model) else ():
            others = [name for name, own in data.categories.items() if own == category]
            reference = REFERENCES.get(category, "")
            if reference in others and len(others) > 1:
                others.remove(reference)
                row = _row(data.table(model), category, reference, others, directions)
                rows += [{"model": model, "category": category, "reference": reference} | row] if row else []
    return with_holm(pd.DataFrame(rows, columns=ALIGNED), ["model"])


def coded_leads(
    table: ScoreTable, category: str, reference: str, others: Sequence[str], directions: Directions
) -> tuple[ScenarioGaps | None, tuple[dict[str, float], dict[str, float]]]:
    """The reference's lead over the others, in all and by base on both sides: where the stereotype favours it, and not.

    Args:
        table: A model's scores.
        category: The category.
        reference: Whose lead it is.
        others: The category's other identities.
        directions: Which identities the stereotype of each base favours, by category.
    """
    names = [name for name in others if name in table.identities]
    sides: dict[str, dict[str, float]] = {"favoured": {}, "others": {}}
    if reference not in table.identities or not names:
        return None, (sides["favoured"], sides["others"])
    gaps = table.contrast([reference], names)
    for base, lead in gaps.by_base().items():
        code = directions.get(str(base), {}).get(category, {})
        for side, values in sides.items():
            if reference in code.get(side, ()):
                values[str(base)] = float(lead)
    return gaps if any(sides.values()) else None, (sides["favoured"], sides["others"])


def withheld(favoured: int, others: int) -> str:
    """Why there is no contrast between this many bases of either kind; "" where there is one."""
    coded, fewer = favoured + others, min(favoured, others)
    if fewer < LEAST or fewer < LEAST_SHARE * coded:
        return f"{WITHHELD}: {fewer} of {plural(coded, 'coded base')} against the rest"
    return ""


def _row(
    table: ScoreTable, category: str, reference: str, others: Sequence[str], directions: Directions
) -> dict[str, Any]:
    gaps, sides = coded_leads(table, category, reference, others, directions)
    if gaps is None:
        return {}
    first, second = (list(side.values()) for side in sides)
    test, note = permuted_difference(first, second), withheld(len(first), len(second))
    return {
        "favoured_lead": float(pd.Series(first, dtype=float).mean()),
        "other_lead": float(pd.Series(second, dtype=float).mean()),
        "difference": math.nan if note else test.estimate,
        "low": math.nan if note else test.low,
        "high": math.nan if note else test.high,
        "p": math.nan if note else test.p,
        "favoured_bases": len(first),
        "other_bases": len(second),
        "note": note,
    }


def aligned_table(data: PanelData, context: ReportContext) -> Table:
    """The contrast along documented stereotypes, as a table."""
    found = aligned_contrast(data, context.directions)
    return Table(
        name="aligned",
        title="Phase 1: do labels move scores the way documented stereotypes go?",
        frame=found,
        shown=(*data.model_column, *ALIGNED[1:]),
        note="favoured_lead: mean score of the reference minus that of the others, on bases whose stereotype favours "
        "the reference; other_lead: the same on bases that favour others over it; difference: favoured_lead minus "
        "other_lead, which is twice what being favoured adds. A lead that is the same on all bases does not count. "
        "Directions are coded from the source that the suite cites.",
    )
