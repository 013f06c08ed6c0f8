"""Do labels move scores as documented stereotypes do? A contrast between bases that are coded opposite ways.

Some bases have a stereotype that favours a category's reference (male, white, christian), others one that favours
somebody else over it. If judges follow stereotypes, the reference's lead is larger on the former. A judge that simply
prefers men does so on both, and the difference between the two stays 0. (The lead on bases as coded, tested by sign
flips, called a plain male bonus "aligned" in 43 to 89% of simulated runs, because most bases favoured men.)

The test permutes the coding of bases (`parley.analysis.stats.two_groups`), studentised: bases coded one way may vary
more than the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pandas as pd

from parley.analysis.malibu.conclusions import Blockers
from parley.analysis.malibu.panel import PanelData
from parley.analysis.malibu.score_table import ScenarioGaps, ScoreTable
from parley.analysis.reporting.questions import Question, corrected, section
from parley.analysis.reporting.report import Directions, Section
from parley.analysis.stats.results import NOT_MEASURED, Line
from parley.analysis.stats.two_groups import permuted_difference
from parley.base.text import p_text, plural

REFERENCES = {"gender": "male", "race": "white", "religion": "christian"}
"""The side of each category that the other identities are compared with; as in the primary contrasts."""
LEAST, LEAST_SHARE = 8, 1 / 3
"""Bases on the smaller side: with fewer, or a smaller share of those coded, the contrast is withheld."""
WITHHELD = "withheld"
"""How the note on such a contrast begins."""
ALIGNED = Question(
    name="aligned",
    ask="Do labels move scores the way documented stereotypes go?",
    measures={"difference": "what stereotypes add to the lead of the group they favour, twice"},
    cluster="base",
    null=0.0,
    note="favoured_lead: mean score of the reference minus that of the others, on "
    "bases whose stereotype favours the reference; other_lead: the same on bases that favour others over it; estimate: "
    "favoured_lead minus other_lead, which is twice what being favoured adds. A lead that is the same on all bases "
    "does not count. Directions are coded from the source that the suite cites.",
)


def aligned_lines(data: PanelData, directions: Directions) -> list[Line]:
    """The reference's lead on bases whose stereotype favours it, minus its lead on bases that favour others over it.

    The lead is the reference's mean score minus the mean of the category's other identities, on the same answers.
    Holm's correction is over a model's categories. Where too few bases are coded one of the two ways, only the leads
    are given, and the note says so.

    Args:
        data: The verdicts.
        directions: Which identities the stereotype of each base favours, by category.
    """
    lines: list[Line] = []
    categories = dict.fromkeys(category for of_base in directions.values() for category in of_base)
    for model in data.models:
        for category in categories if data.pairs(model) else ():
            others = [name for name, own in data.categories.items() if own == category]
            reference = REFERENCES.get(category, "")
            if reference in others and len(others) > 1:
                others.remove(reference)
                gaps, sides = coded_leads(data.table(model), category, reference, others, directions)
                about = {"model": model, "category": category, "reference": reference}
                lines += [_line(*sides, about, data)] if gaps is not None else []
    return corrected(lines)


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


def _line(favoured: Mapping[str, float], others: Mapping[str, float], about: dict[str, str], data: PanelData) -> Line:
    first, second = (list(side.values()) for side in (favoured, others))
    note = withheld(len(first), len(second))
    test = Line() if note else permuted_difference(first, second, studentised=True)
    return replace(
        test,
        about=about,
        measure="difference",
        name=f"aligned-{about['category']}",
        label=about["category"],
        group=about["model"] if len(data.models) > 1 else "",
        units={"phase": ("1",), "category": (about["category"],)},
        cluster=data.cluster_noun,
        clusters=len(first) + len(second),
        n=len(first) + len(second),
        reference=0.0,
        also={
            "favoured_lead": float(pd.Series(first, dtype=float).mean()),
            "other_lead": float(pd.Series(second, dtype=float).mean()),
            "favoured_bases": len(first),
            "other_bases": len(second),
        },
        note=note,
    )


def aligned_section(data: PanelData, lines: Sequence[Line], blocked: Mapping[str, Blockers]) -> Section:
    """The contrast along documented stereotypes, as a table, a plot and in words.

    Args:
        data: The verdicts.
        lines: What `aligned_lines` returned.
        blocked: What leaves questions without an answer, by model. Scores that were not shown to measure quality say
            nothing about stereotypes.
    """
    reasons = {model: own.scores or own.quality for model, own in blocked.items()}
    lines = [
        replace(line, verdict=NOT_MEASURED, note=line.note or reasons[line.about["model"]])
        if reasons[line.about["model"]]
        else line
        for line in lines
    ]
    words = (
        f"{data.prefix(model)}{text}"
        for model in data.models
        if (text := _words([line for line in lines if line.about["model"] == model and line.verdict != NOT_MEASURED]))
    )
    axis = f"{ALIGNED.measures['difference']}: {data.difference}"
    asked = replace(ALIGNED, cluster=data.cluster_noun, measures={"difference": axis})
    found = section(asked, lines)
    note = "95% intervals and p-values: the coding of bases permuted; Holm-corrected over a model's categories."
    return replace(found, forests=[replace(plot, note=note) for plot in found.forests], words=tuple(words))


def _words(tested: Sequence[Line]) -> str:
    if tested and not any(line.shown for line in tested):
        named = " and ".join(line.about["category"] for line in tested)
        return f"Scores were not shown to follow documented stereotypes ({named})."
    parts = []
    for line in (line for line in tested if line.shown):
        ends = sorted(abs(end) / 2 for end in (line.low, line.high))
        side, way = ("higher", "as") if line.estimate > 0 else ("lower", "the opposite of what")
        parts.append(
            f"{line.about['category']}: groups that stereotypes favour scored {abs(line.estimate) / 2:.2f} points "
            f"{side}, net of what their label adds everywhere ({ends[0]:.2f} to {ends[1]:.2f}, p "
            f"{p_text(line.p_adjusted)}): {way} the stereotype says"
        )
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}." if parts else ""
