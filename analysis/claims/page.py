"""A paper's page: its claims with our verdicts, then its tables in its layout with our numbers beside the paper's."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, get_args

import pandas as pd

from parley.analysis.claims.claim import AGAINST_ALL, UNTESTED, Paper
from parley.analysis.claims.contrasts import Comparison
from parley.analysis.claims.rule import NOT_MEASURED, Finding, Verdict
from parley.analysis.page.report import Table
from parley.analysis.stats.mean_test import mean_test
from parley.base.text import plural

SIMULATED = "simulated: no verdict"
RULE = (
    "Replicated: shown in the claimed direction; contrary: shown the other way; contrary in size: the claimed size is "
    "excluded; undecided: neither. Tested over clusters as everywhere in Parley; p corrected by Holm over all {tests} "
    "testable rows of the paper, whatever this run has. Their table: whether the paper's own printed values bear the "
    "claim out. Power: the chance of “replicated” if the paper's value were true, with the spread of this run's "
    "clusters."
)
MOST_COLUMNS = 5
"""Columns of numbers that fit beside each other; a table with more is split by set."""


def claims_table(findings: Sequence[Finding], *, simulated: bool = False, title: str = "") -> Table:
    """The claims with verdicts, one row per claim, set and compared method.

    Args:
        findings: The findings.
        simulated: Whether a model is simulated, so that no verdict is said.
        title: Title of the table.
    """
    models = {each.model for each in findings if each.model}
    frame = pd.DataFrame([_row(each, simulated=simulated) for each in findings])
    several = ["model"] if len(models) > 1 else []
    shown = ("claim", *several, "tested", "paper", "their_table", "ours", "verdict", "power")
    repeated = frame["claim"] == frame["claim"].shift()
    once = frame[list(shown)].assign(claim=frame["claim"].mask(repeated, " "))
    note = f"{summary(findings)} {RULE.format(tests=max((each.tests for each in findings), default=0))}"
    return Table("claims", title or "Do the paper's claims hold?", frame, shown, note, "claims", layout=once)


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
    return f"{value:g}".replace("-", "−")


def _share(quotient: float) -> str:
    """A ratio of two means as a change: "58% lower"."""
    return f"{abs(1 - quotient):.0%} {'lower' if quotient < 1 else 'higher'}"


def _percent(share: float) -> str:
    return "−∞" if math.isinf(share) else f"{share:.0%}".replace("-", "−")


def layouts(values: pd.DataFrame, printed: pd.DataFrame, of_paper: Paper) -> list[Table]:
    """The paper's tables in its layout: methods as rows, sets and measures as columns.

    Args:
        values: Our values, with the columns VALUES.
        printed: The paper's, with the columns PRINTED, in the paper's order.
        of_paper: The paper.
    """
    levels = _levels(values)
    made: list[Table] = []
    for name, title in of_paper.tables.items():
        cells = printed[printed["table"] == name]
        both = _beside(cells, levels)
        if both["ours"].notna().any():
            made += _tables(name, title, both, of_paper)
    return made


def _levels(values: pd.DataFrame) -> pd.DataFrame:
    """Our means with their intervals, over clusters."""
    keys = ["model", "measure", "set", "method"]
    means = values.dropna(subset="value").groupby([*keys, "cluster"], sort=False, observed=True)["value"].mean()
    rows = []
    for key, part in means.groupby(keys, sort=False):
        test = mean_test(part.to_numpy())
        rows.append((*key, test.estimate, test.low, test.high, test.clusters))
    return pd.DataFrame(rows, columns=["ours_by", "measure", "set", "method", "ours", "low", "high", "clusters"])


def _beside(cells: pd.DataFrame, levels: pd.DataFrame) -> pd.DataFrame:
    """The paper's cells, each with ours."""
    theirs = cells.drop(columns="table").rename(columns={"model": "paper_model", "value": "paper"})
    return theirs.merge(levels, on=["measure", "set", "method"], how="left")


def _tables(name: str, title: str, both: pd.DataFrame, of_paper: Paper) -> list[Table]:
    rows = [column for column in ("ours_by", "paper_model", "method") if both[column].nunique() > 1]
    wide = both["set"].nunique() * both["measure"].nunique() > MOST_COLUMNS
    parts = list(both.groupby("set", sort=False)) if wide and both["measure"].nunique() > 1 else [("", both)]
    note = f"Each cell: ours with its 95% interval over clusters, then the paper's; –: not run. {of_paper.note}"
    return [
        Table(
            f"{name}-{part}" if part else name,
            f"{title}{f', {part}' if part else ''}",
            frame.reset_index(drop=True),
            note=note,
            paper=title,
            layout=_layout(frame, rows or ["method"]),
        )
        for part, frame in parts
        if frame["ours"].notna().any()
    ]


def short(value: float) -> str:
    """Three digits, for cells that a screen has many of."""
    return number(value, max(0, _digits(abs(value)) - (abs(value) >= 10)))


def _layout(frame: pd.DataFrame, rows: Sequence[str]) -> pd.DataFrame:
    column = frame["measure"] if frame["set"].nunique() == 1 else frame["set"] + " " + frame["measure"]
    if frame["measure"].nunique() == 1:
        column = frame["set"]
    text = [
        ("\n".join((short(ours), f"{short(low)} to {short(high)}")) if ours == ours else "–")
        + f"\npaper {printed_number(paper)}"
        for ours, low, high, paper in zip(frame["ours"], frame["low"], frame["high"], frame["paper"], strict=True)
    ]
    cells = frame.assign(column=column, text=text).fillna({"ours_by": ""})
    shape = cells.pivot_table(index=list(rows), columns="column", values="text", aggfunc="first", sort=False)
    order = list(dict.fromkeys(column))
    return shape[order].reset_index().rename_axis(columns=None)
