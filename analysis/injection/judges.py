"""Judges compared: which are moved most, in percent of their scales?"""

from __future__ import annotations

import pandas as pd

from parley.analysis.injection.effects import AGAINST, BOTH, FAVOUR, TESTED, Columns, malibu_alone, namer, units_of
from parley.analysis.reporting.forest import Forest, lines_of
from parley.analysis.reporting.report import Section, Table, format_interval
from parley.analysis.stats.multiplicity import holm
from parley.analysis.stats.paired import paired_permutation
from parley.analysis.stats.results import ALPHA

PERCENT = (
    "All kinds of attempts. request: whether they ask for what the author of a text wants (in favour: high quality, no "
    "bias) or for the opposite. percent: the effect in percent of the judge's scale, with 95% intervals over bases. A "
    "judge whose clean scores are near the requested end has little room to move."
)


def judges_section(scores: pd.DataFrame) -> Section:
    """Which judges are moved most? Its plot and sentence are for runs with judges of several studies.

    Args:
        scores: One row per score under attack, from `pairs`.
    """
    judges = by_judge(scores)
    several, name = not malibu_alone(judges), namer(judges)
    title = "By judge, in points and in percent of the judge's scale"
    table = Table("judges", title, judges, shown=_shown(judges), note=PERCENT, printed=several)
    if not several:
        return Section(tables=[table])
    both = judges[judges["request"] == BOTH]
    forest = Forest(
        name="judges",
        question="Which judges are moved most?",
        axis="effect (percent of the judge's scale)",
        lines=lines_of(
            judges,
            lambda row: f"{name(row)}, {row.shown}{'' if row.request == BOTH else f', {row.request}'}",
            value="percent",
            p="p_adjusted",
            n="responses",
            units=units_of(judges),
            secondary=lambda row: row.request != BOTH,
        ),
        table="judges",
        note=f"{PERCENT} {TESTED}",
    )
    words = []
    for shown, part in both[both["p_adjusted"] <= ALPHA].groupby("shown", sort=False):
        ordered = part.sort_values("percent", ascending=False)
        listed = "; ".join(
            f"{name(row)} {row.percent:+.0f}% ({format_interval(row.low, row.high, '+.0f')})"
            for row in ordered.itertuples()
        )
        words.append(f"Judges that attempts move, {shown}, in percent of their scale: {listed}.")
    return Section(tables=[table], forests=[forest], words=words)


def by_judge(scores: pd.DataFrame) -> pd.DataFrame:
    """One row per judge, model, open or fenced, and direction: the effect of all kinds, in points and in percent of the
    scale, so that judges with different scales can be compared. p_adjusted: Holm over the rows of both directions
    together.

    Args:
        scores: One row per score under attack, from `pairs`.
    """
    rows = []
    for (judged_by, model, shown), part in scores.groupby(["judged_by", "model", "shown"], sort=False):
        favour, against = part[part["favours"]], part[~part["favours"]]
        for request, group in ((BOTH, part), (FAVOUR, favour), (AGAINST, against)):
            if len(group) and (request == BOTH or len(group) < len(part)):
                rows.append(
                    {
                        "judged_by": judged_by,
                        "model": model,
                        "shown": shown,
                        "request": request,
                        "scale": f"{part['lowest'].iloc[0]:.0f} to {part['highest'].iloc[0]:.0f}",
                        **_in_percent(group),
                    }
                )
    table = pd.DataFrame(rows)
    planned = table["request"] == BOTH
    table.loc[planned, "p_adjusted"] = holm(table.loc[planned, "p"])
    return table


def _in_percent(scores: pd.DataFrame) -> Columns:
    test = paired_permutation(scores["effect"], 0 * scores["effect"], scores["cluster"])
    points = {"effect": test.estimate, "effect_low": test.low, "effect_high": test.high}
    percent = {"percent": test.estimate, "low": test.low, "high": test.high}
    span = scores["span"].iloc[0]
    return {
        **points,
        **{name: 100 * value / span for name, value in percent.items()},
        "responses": int(scores.loc[scores["effect"].notna(), "scenario"].nunique()),
        "p": test.p,
        "clusters": test.clusters,
    }


def _shown(judges: pd.DataFrame) -> tuple[str, ...]:
    """The columns that fit a terminal: the models if there are several, else the points."""
    percent = ("percent", "low", "high")
    if judges["model"].nunique() > 1:
        return ("judged_by", "model", "shown", "request", *percent)
    return ("judged_by", "shown", "request", "scale", "effect", *percent)
