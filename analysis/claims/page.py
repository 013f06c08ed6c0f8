"""A paper's page: its claims with our verdicts, then its tables in its layout with our numbers beside the paper's."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, get_args

import pandas as pd

from parley.analysis.claims.claim import AGAINST_ALL, UNTESTED, Paper, PrintedTable
from parley.analysis.claims.contrasts import Comparison
from parley.analysis.claims.rule import NOT_MEASURED, Finding, Verdict
from parley.analysis.page.report import Table
from parley.analysis.say import format_cell
from parley.analysis.stats.mean_test import mean_test
from parley.base.text import p_text, plural

SIMULATED = "simulated: no verdict"
RULE = (
    "Replicated: shown in the claimed direction; contrary: shown the other way; contrary in size: the claimed size is "
    "excluded; undecided: neither. Tested over clusters as everywhere in Parley; p corrected by Holm over all {tests} "
    "testable rows of the paper, whatever this run has. Intervals are of 95%, not corrected, so a row may be undecided "
    "whose interval excludes the claim. “At most 5 lower” is contrary if a fall is shown; “nearer to 0” compares "
    "distances from 0. Their table: whether the paper's own printed values bear the claim out. Power: the chance of "
    "“replicated” if the paper's value were true, with the spread of this run's clusters."
)
MOST_COLUMNS = 3
"""Columns with two headings each that fit beside each other; a table with more is split by its first heading."""


def claims_table(
    findings: Sequence[Finding],
    *,
    simulated: bool = False,
    unfinished: bool = False,
    title: str = "Do the paper's claims hold?",
) -> Table:
    """The claims with verdicts, one row per claim, set and compared method.

    Args:
        findings: The findings.
        simulated: Whether a model is simulated, so that no verdict is said.
        unfinished: Whether a run is not finished, so that verdicts are not counted.
        title: Title of the table, to which the count of verdicts is added.
    """
    models = {each.model for each in findings if each.model}
    frame = pd.DataFrame([_row(each, simulated=simulated) for each in findings])
    several = ["model"] if len(models) > 1 else []
    shown = ("claim", *several, "tested", "verdict", "ours", "paper", "their_table", "power")
    repeated = frame["claim"] == frame["claim"].shift()
    once = frame[list(shown)].assign(claim=frame["claim"].mask(repeated, " "))
    note = RULE.format(tests=max((each.tests for each in findings), default=0))
    if not simulated and not unfinished:
        title = f"{title}{'' if title.endswith('?') else '.'} {summary(findings)}"
    return Table("claims", title, frame, shown, note, "claims", layout=once.set_index("claim"))


def _row(finding: Finding, *, simulated: bool) -> dict[str, Any]:
    row, claim, given = finding.row, finding.claim, finding.evidence
    held = finding.papers_models_that_hold
    shown = given.deciding.shown if given else None
    silent = simulated and claim.form not in UNTESTED and finding.verdict != NOT_MEASURED
    return {
        "claim": f"“{claim.quote}” ({claim.section})",
        "model": finding.model,
        "tested": row.what,
        "paper_model": claim.model,
        "paper": _in_paper(finding),
        "their_table": "" if not held else _yes(held),
        "ours": _ours(finding),
        "verdict": SIMULATED if silent else f"{finding.verdict}: {finding.why}" if finding.why else finding.verdict,
        "estimate": shown.estimate if shown else math.nan,
        "low": shown.low if shown else math.nan,
        "high": shown.high if shown else math.nan,
        "p": finding.p,
        "p_against": finding.p_against,
        "clusters": given.clusters if given else 0,
        "power": "" if math.isnan(finding.power) else f"{finding.power:.0%}",
    }


def summary(findings: Sequence[Finding]) -> str:
    """How many rows have which verdict: "Of 40 rows 6 are replicated, 2 contrary, 32 not measured." """
    counts = Counter(each.verdict for each in findings if each.claim.form not in UNTESTED)
    listed = ", ".join(f"{counts[name]} {name}" for name in get_args(Verdict) if counts[name])
    return f"{plural(sum(counts.values()), 'testable row')}: {listed}."


def _yes(held: Sequence[bool]) -> str:
    """Whether the paper's values bear it out, for all of its models."""
    if all(held) or not any(held):
        return "yes" if held[0] else "no"
    return f"for {sum(held)} of {plural(len(held), 'model')}"


def _in_paper(finding: Finding) -> str:
    """The paper's values, of its first model if it has several."""
    if finding.claim.paper or not finding.paper:
        return finding.claim.paper
    model, given = finding.paper[0]
    about = f" ({model})" if len(finding.paper) > 1 else ""
    return _means(finding, _least(given.comparisons), printed_number) + about


def _least(comparisons: Sequence[Comparison]) -> Comparison:
    """The comparison that bears the claim out least, of single values."""
    return min(comparisons, key=lambda each: min(float(part.sum()) for part in each.parts))


def _ours(finding: Finding) -> str:
    """Our values with the interval of the difference, or of the level."""
    if finding.evidence is None:
        return ""
    deciding = finding.evidence.deciding
    shown = deciding.shown
    if deciding.ratio:
        point, low, high = deciding.ratio
        return f"{_share(point)} ({_percent(1 - high)} to {_percent(1 - low)})"
    if finding.claim.form == "differ":
        return f"{', '.join(number(mean, 2) for mean in deciding.means)}: p {p_text(finding.p)}"
    written = partial(number, digits=_digits(max(map(abs, deciding.means))))
    interval = f"({written(shown.low)} to {written(shown.high)})" if shown.bounded else "(no interval)"
    gap = f": {'+' * (shown.estimate > 0)}{written(shown.estimate)}" if len(deciding.means) > 1 else ""
    return f"{_means(finding, deciding, written)}{gap} {interval}"


def _means(finding: Finding, each: Comparison, written: Callable[[float], str]) -> str:
    """Such as "5.1 against 12.09"; for "lowest of all" with the name of the other; of a size the share."""
    if finding.row.size:
        return _share(each.means[0] / each.means[1])
    rival = f" of {each.rival}" if finding.claim.form in AGAINST_ALL else ""
    return " against ".join(written(mean) for mean in each.means) + rival


def _digits(largest: float) -> int:
    return 1 if largest >= 100 else 2 if largest >= 1 else 3


def number(value: float, digits: int) -> str:
    """A number with one minus sign, and none before 0."""
    return f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "−")


def printed_number(value: float) -> str:
    """A paper's number, with all its decimals."""
    return f"{value:.4g}".replace("-", "−")


def _share(quotient: float) -> str:
    """A ratio of two means as a change: "58% lower"."""
    return f"{abs(1 - quotient):.0%} {'lower' if quotient < 1 else 'higher'}"


def _percent(share: float) -> str:
    return "−∞" if math.isinf(share) else f"{share:.0%}".replace("-", "−")


def layouts(values: pd.DataFrame, printed: pd.DataFrame, of_paper: Paper) -> list[Table]:
    """The paper's tables in its layout, those of which our values have a cell.

    Args:
        values: Our values, with the columns VALUES.
        printed: The paper's, with the columns PRINTED, in the paper's order.
        of_paper: The paper.
    """
    levels = _levels(values)
    return [
        table
        for name, form in of_paper.tables.items()
        for table in _tables(name, form, _beside(printed[printed["table"] == name], levels, form), of_paper.note)
    ]


def _levels(values: pd.DataFrame) -> pd.DataFrame:
    """Our means with their intervals, over clusters."""
    keys = ["model", "measure", "set", "method"]
    means = values.dropna(subset="value").groupby([*keys, "cluster"], sort=False, observed=True)["value"].mean()
    tests = {key: mean_test(part.to_numpy()) for key, part in means.groupby(keys, sort=False)}
    rows = [(*key, test.estimate, test.low, test.high) for key, test in tests.items()]
    return pd.DataFrame(rows, columns=["ours_by", "measure", "set", "method", "ours", "low", "high"])


def _beside(cells: pd.DataFrame, levels: pd.DataFrame, form: PrintedTable) -> pd.DataFrame:
    """The paper's cells with ours in the same cell, or as rows above, if the table's rows are models."""
    cells, key = cells.rename(columns={"value": "paper"}), ["measure", "set", "method"]
    if "model" not in form.rows:
        return cells.merge(levels, on=key, how="left")
    ours = cells[key].drop_duplicates().merge(levels, on=key)
    names = ours["ours_by"].map(lambda name: f"{name.rpartition('/')[2]} (ours)")
    return pd.concat([ours.assign(model=names), cells.assign(ours=math.nan)], ignore_index=True)


def _tables(name: str, form: PrintedTable, frame: pd.DataFrame, note: str) -> list[Table]:
    """The table, or one for each value of its first heading if it has too many columns."""
    columns = [column for column in form.columns if frame[column].nunique() > 1] or list(form.columns[-1:])
    parts: list[tuple[str, pd.DataFrame]] = [("", frame)]
    if len(columns) > 1 and len(frame.drop_duplicates(columns)) > MOST_COLUMNS:
        parts = [(str(value), part) for value, part in frame.groupby(columns[0], sort=False)]
        columns = columns[1:]
    place = "as rows of their own" if "model" in form.rows else "in the same cell"
    note = f"Ours with 95% intervals over clusters, the paper's {place}; –: not run. {note}"
    return [
        Table(
            "-".join(filter(None, (name, part))),
            ", ".join(filter(None, (form.title, part))),
            cells.drop(columns="table").reset_index(drop=True),
            note=note,
            paper=form.title,
            layout=_layout(cells, list(form.rows), columns),
        )
        for part, cells in parts
        if cells["ours"].notna().any()
    ]


def _layout(cells: pd.DataFrame, rows: list[str], columns: Sequence[str]) -> pd.DataFrame:
    texts = [
        _cell(*numbers, together="model" not in rows)
        for numbers in zip(cells["ours"], cells["low"], cells["high"], cells["paper"], strict=True)
    ]
    heading = cells[list(columns)].agg(" ".join, axis=1)
    named = cells.assign(**{name: cells[name].str.replace("_", " ") for name in rows}, text=texts, heading=heading)
    shape = named.pivot_table(index=rows, columns="heading", values="text", aggfunc="first", sort=False)
    return shape[list(dict.fromkeys(heading))].fillna("–").rename_axis(columns=None)


def _cell(ours: float, low: float, high: float, paper: float, together: bool) -> str:
    """Ours with its interval, then the paper's, if they are in the same cell."""
    texts = [short(ours), f"{short(low)} to {short(high)}"] if ours == ours else ["–"] * together
    return "\n".join([*texts, *(["paper " * together + printed_number(paper)] if paper == paper else [])])


def short(value: float) -> str:
    """Three digits, for cells that a screen has many of."""
    return (
        number(value, max(0, _digits(abs(value)) - (abs(value) >= 10))) if math.isfinite(value) else format_cell(value)
    )
