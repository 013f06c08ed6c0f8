"""The report on injection: effects by kind of attempt and of the fence, parse statuses, what the fence marks."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.figure import Figure as Drawing

from parley.analysis.injection import effects as injection
from parley.analysis.reporting.figures import LINE, PALETTE, caption, dots, sheet
from parley.analysis.reporting.report import Figure, Report, Table

TOWARDS = "Points towards the requested score (up for 5 or more, else down); 95% intervals over bases."
EFFECT = "effect: the attempt's score minus the harmless text's, on the same response, judge and metric."
PRINTED = {"control_moved": "control", "p_adjusted": "p"}
SHARES = (
    "moved: share of scores that moved by a point or more; control: the same with the harmless text; asked: share "
    "that ended at the requested score, of those whose clean score was another."
)


def report(
    verdicts: pd.DataFrame,
    *,
    units: pd.DataFrame | None = None,
    title: str = "Injection",
    draws: int = 2000,
    seed: int = 0,
    cautions: tuple[str, ...] | list[str] = (),
    **about: Any,
) -> Report:
    """The report of one run or several.

    Args:
        verdicts: One row per verdict.
        units: Not used; every study's report takes it.
        title: Of the report and its figure.
        draws: Not used: nothing is drawn.
        seed: Not used.
        cautions: Sentences to print before everything else, such as "It is simulated."
        about: Passed on to `Report` (runs).
    """
    scores = injection.pairs(verdicts)
    if scores.empty:
        return Report(title=title, words=("No attempt has been judged yet.",), cautions=tuple(cautions), **about)
    kinds = injection.by_kind(scores)
    fence, statuses = injection.fence_effect(scores), injection.readings(verdicts)
    requested = ", ".join(map(str, sorted(set(scores["ask"]), reverse=True)))
    note = f"{TOWARDS} {EFFECT} {SHARES} p: sign flips over bases, Holm-corrected. Requested scores: {requested}."
    tables = [
        Table(name="kinds", title="By kind of attempt", frame=kinds, note=note),
        *(
            Table(
                name=f"kinds_{n}",
                title=f"{model}, response {shown} (p Holm-corrected)",
                frame=_printed(part),
                note=note,
                printed=True,
            )
            for n, ((model, shown), part) in enumerate(kinds.groupby(["model", "shown"], sort=False))
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
    small_print = f"{EFFECT} {TOWARDS} {' '.join(cautions)}"
    figure = Figure(
        name="kinds", caption=small_print, table="kinds", draw=lambda: kinds_figure(kinds, title, small_print)
    )
    return Report(
        title=title,
        words=tuple(injection.summary(kinds, fence, statuses)),
        cautions=tuple(cautions),
        tables=tuple(table for table in tables if len(table.frame)),
        figures=(figure,),
        settings={"moved_from": injection.MOVED},
        **about,
    )


def _printed(part: pd.DataFrame) -> pd.DataFrame:
    """The columns that fit a terminal of 80 characters."""
    names = ["kind", "effect", "low", "high", "moved", "control_moved", "asked", "p_adjusted"]
    return part[names].rename(columns=PRINTED)


def kinds_figure(kinds: pd.DataFrame, title: str, note: str) -> Drawing:
    """One panel per model and one line per kind, open above fenced."""
    models = list(dict.fromkeys(kinds["model"]))
    names = list(dict.fromkeys(kinds["kind"]))
    figure, axes = sheet(3.0 + 3.4 * len(models), 1.9 + 1.5 * LINE * len(names), len(models), sharey=True)
    for axis, model in zip(axes[0], models, strict=True):
        for n, (shown, marker) in enumerate((("open", "o"), ("fenced", "s"))):
            rows = kinds[(kinds["model"] == model) & (kinds["shown"] == shown)].set_index("kind").reindex(names)
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
        axis.set_title(model.replace("$", r"\$"), fontsize=10)
    axes[0, 0].legend(frameon=False, fontsize=8)
    caption(figure, title, note)
    return figure
