"""The report on injection: effects by kind of attempt, by judge and of the fence, parse statuses, the fence's marks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pandas as pd
from matplotlib.figure import Figure as Drawing

from parley.analysis.injection import effects as injection
from parley.analysis.injection.summary import malibu_alone, namer, summary
from parley.analysis.reporting.figures import LINE, PALETTE, caption, dots, legend_beside, sheet
from parley.analysis.reporting.forest import Forest, estimates, filled
from parley.analysis.reporting.report import NO_CONTEXT, Figure, Report, ReportContext, Table

TOWARDS = "Points towards the requested score (up for the middle of the scale or more); 95% intervals over bases."
EFFECT = "effect: the attempt's score minus the harmless text's, on the same response, judge and metric."
PERCENT = (
    "All kinds of attempts. request: whether they ask for what the author of a text wants (in favour: high quality, no "
    "bias) or for the opposite. percent: the effect in percent of the judge's scale, with 95% intervals over bases. A "
    "judge whose clean scores are near the requested end has little room to move."
)
COLUMNS = 3
PRINTED = {"control_moved": "control", "p_adjusted": "p"}
SHARES = (
    "moved: share of scores that moved by a tenth of the scale or more; control: the same with the harmless text; "
    "asked: share that ended at the requested score, of those whose clean score was another."
)


def report(verdicts: pd.DataFrame, context: ReportContext = NO_CONTEXT) -> Report:
    """The report of one run or several.

    Args:
        verdicts: One row per verdict.
        context: What the report is given beside them.
    """
    title = context.title or "Injection"
    scores = injection.pairs(verdicts)
    if scores.empty:
        return Report(
            title=title,
            words=("No attempt has been judged yet.",),
            cautions=tuple(context.cautions),
            runs=tuple(context.runs),
        )
    kinds = injection.by_kind(scores)
    judges, name = injection.by_judge(scores), namer(kinds)
    fence, statuses = injection.fence_effect(scores), injection.readings(verdicts)
    requested = ", ".join(map(str, sorted(set(scores["ask"]), reverse=True)))
    note = f"{TOWARDS} {EFFECT} {SHARES} p: sign flips over bases, Holm-corrected. Requested scores: {requested}."
    tables = [
        Table(name="kinds", title="By kind of attempt", frame=kinds, note=note),
        *(
            Table(
                name=f"kinds_{n}",
                title=f"{name(next(part.itertuples()))}, response {shown} (p Holm-corrected)",
                frame=_printed(part),
                note=note,
                printed=True,
            )
            for n, ((_, _, shown), part) in enumerate(kinds.groupby(["judged_by", "model", "shown"], sort=False))
        ),
        Table(
            name="judges",
            title="By judge, in points and in percent of the judge's scale",
            frame=judges,
            shown=_of_judges(judges),
            note=PERCENT,
            printed=not malibu_alone(kinds),
        ),
        Table(
            name="asks",
            title="By kind and requested score",
            frame=injection.by_ask(scores),
            note=TOWARDS,
        ),
        Table(
            name="fence",
            title="Effect of fencing: open minus fenced",
            frame=fence,
            shown=("model", "kind", "difference", "low", "high", "p_adjusted"),
            note="On the same responses and attempts; sign flips over bases, Holm-corrected.",
            printed=True,
        ),
        Table(
            name="clean",
            title="Responses without an attempt, open and fenced",
            frame=injection.clean_scores(verdicts),
            printed=True,
        ),
        Table(
            name="readings",
            title="How replies were parsed",
            frame=statuses,
            printed=bool(statuses[injection.LOST].to_numpy().any()),
        ),
        Table(
            name="flagged",
            title="Share that the fence marks as an instruction",
            frame=injection.flagged(verdicts),
            note="Marked controls and clean responses are false positives. The judge sees the mark, inside the fence.",
        ),
    ]
    below = " ".join((PERCENT, *context.cautions))
    small_print = f"{EFFECT} {TOWARDS} {context.small_print}"
    figures = [
        Figure(name="kinds", caption=small_print, table="kinds", draw=lambda: kinds_figure(kinds, title, small_print))
    ]
    if malibu_alone(kinds):
        tables = [replace(table, frame=table.frame.drop(columns="judged_by", errors="ignore")) for table in tables]
    else:
        figures.append(
            Figure(name="judges", caption=below, table="judges", draw=lambda: judges_figure(judges, title, below))
        )
    return Report(
        title=title,
        words=tuple(summary(kinds, judges, fence, statuses)),
        cautions=tuple(context.cautions),
        tables=tuple(table for table in tables if len(table.frame)),
        figures=tuple(figures),
        forests=filled(_forests(kinds, judges, fence)),
        settings={"moved_from": injection.MOVED},
        runs=tuple(context.runs),
    )


def _forests(kinds: pd.DataFrame, judges: pd.DataFrame, fence: pd.DataFrame) -> Iterator[Forest]:
    """How far attempts move scores, by kind; by judge, where there are several; and what a fence prevents."""
    name, alone, several = namer(kinds), malibu_alone(kinds), kinds["model"].nunique() > 1

    def units(row: Any) -> dict[str, tuple[str, ...]]:
        kind = getattr(row, "kind", injection.ALL)
        return {
            **({"shown": (row.shown,)} if hasattr(row, "shown") else {}),
            **({} if kind == injection.ALL else {"kind": (kind,)}),
            "variant": ("attack", "control"),
            **({} if alone else {"judged_by": (row.judged_by,)}),
            **({"model": (row.model,)} if several else {}),
        }

    note = "95% intervals and p-values: sign flips over bases; p-values Holm-corrected."
    yield Forest(
        name="kinds",
        question="Do instructions in the judged text move the scores?",
        axis="effect (points towards the requested score)",
        estimates=estimates(
            kinds,
            lambda row: str(row.kind),
            value="effect",
            p="p_adjusted",
            n="responses",
            group=lambda row: f"{name(row)} · {row.shown}",
            units=units,
        ),
        table="kinds",
        note=f"{EFFECT} {note}",
    )
    if not alone:
        yield Forest(
            name="judges",
            question="Which judges are moved most?",
            axis="effect (percent of the judge's scale)",
            estimates=estimates(
                judges[judges["request"] == injection.BOTH],
                lambda row: f"{name(row)}, {row.shown}",
                value="percent",
                n="responses",
                units=units,
            ),
            table="judges",
            note=PERCENT,
        )
    if len(fence):
        yield Forest(
            name="fence",
            question="Does fencing the text reduce the effect?",
            axis="effect open minus effect fenced (points)",
            estimates=estimates(
                fence, lambda row: str(row.kind), p="p_adjusted", n="responses", group=name, units=units
            ),
            table="fence",
            note=f"On the same responses and attempts. {note}",
        )


def _printed(part: pd.DataFrame) -> pd.DataFrame:
    """The columns that fit a terminal of 80 characters."""
    names = ["kind", "effect", "low", "high", "moved", "control_moved", "asked", "p_adjusted"]
    return part[names].rename(columns=PRINTED)


def _of_judges(judges: pd.DataFrame) -> tuple[str, ...]:
    """The columns that fit a terminal: the models if there are several, else the points."""
    percent = ("percent", "low", "high")
    if judges["model"].nunique() > 1:
        return ("judged_by", "model", "shown", "request", *percent)
    return ("judged_by", "shown", "request", "scale", "effect", *percent)


def judges_figure(judges: pd.DataFrame, title: str, note: str) -> Drawing:
    """One line per judge and display, in percent of its scale; requests in the author's favour above those against."""
    name = namer(judges)
    judges = judges.assign(line=[f"{name(row)}, {row.shown}" for row in judges.itertuples()])
    lines = list(dict.fromkeys(judges["line"]))
    figure, axes = sheet(8.0, 1.9 + 1.5 * LINE * len(lines))
    axis = axes[0, 0]
    for n, (request, marker) in enumerate(((injection.FAVOUR, "o"), (injection.AGAINST, "s"), (injection.BOTH, "D"))):
        rows = judges[judges["request"] == request].set_index("line").reindex(lines)
        if rows["percent"].notna().any():
            dots(
                axis,
                lines,
                rows["percent"],
                rows["low"],
                rows["high"],
                [PALETTE[n]] * len(lines),
                shift=0.25 * (n - 1),
                marker=marker,
                label=request,
            )
    axis.axvline(0, color="#888888", linewidth=0.8)
    axis.set_xlabel("effect (percent of the judge's scale, towards the requested score)")
    legend_beside(figure, [axis])
    caption(figure, title, note)
    return figure


def kinds_figure(kinds: pd.DataFrame, title: str, note: str) -> Drawing:
    """One panel per judge and model, and one line per kind, open above fenced."""
    panels = [part for _, part in kinds.groupby(["judged_by", "model"], sort=False)]
    names, name = list(dict.fromkeys(kinds["kind"])), namer(kinds)
    columns = min(len(panels), COLUMNS)
    lines = -(-len(panels) // columns)
    figure, axes = sheet(3.0 + 3.4 * columns, 1.9 + 1.5 * LINE * len(names) * lines, columns, lines, sharey=True)
    for axis in axes.flat[len(panels) :]:
        axis.set_visible(False)
    for axis, panel in zip(axes.flat, panels, strict=False):
        for n, (shown, marker) in enumerate((("open", "o"), ("fenced", "s"))):
            rows = panel[panel["shown"] == shown].set_index("kind").reindex(names)
            if rows["effect"].notna().any():
                dots(
                    axis,
                    names,
                    rows["effect"],
                    rows["low"],
                    rows["high"],
                    [PALETTE[n]] * len(names),
                    shift=0.2 * (2 * n - 1),
                    marker=marker,
                    label=shown,
                )
        axis.axvline(0, color="#888888", linewidth=0.8)
        axis.set_xlabel("effect (points towards the requested score)")
        axis.set_title(name(next(panel.itertuples())).replace("$", r"\$"), fontsize=10)
    legend_beside(figure, axes.flat)
    caption(figure, title, note)
    return figure
