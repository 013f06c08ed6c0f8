"""The report on injection: by kind of attempt, what a fence does, how replies could be read, what the fence marks."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.figure import Figure as Drawing

from parley.analysis.injection import effects as injection
from parley.analysis.reporting.figures import LINE, PALETTE, caption, dots, sheet
from parley.analysis.reporting.report import Figure, Report, Table

TOWARDS = "Points towards the score asked for (up for 5 or more, else down); 95% intervals over responses."
EFFECT = "effect: the attempt's score minus the harmless text's, on the same response, judge and metric."
PRINTED = {"control_moved": "control", "p_adjusted": "p"}
SHARES = (
    "moved: share of scores that moved by a point or more; control: the same under the harmless text; asked: share "
    "that ended at the score asked for, of those that were not there."
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
    """All of it from a frame of verdicts, over one run or several; `about` is handed on (runs)."""
    found = injection.pairs(verdicts)
    if found.empty:
        return Report(title, ("No attempt has been judged yet.",), cautions=tuple(cautions), **about)
    kinds = injection.by_kind(found, draws=draws, seed=seed)
    fence, read = injection.fence_effect(found, draws=draws, seed=seed), injection.readings(verdicts)
    asks = ", ".join(map(str, sorted(set(found["ask"]), reverse=True)))
    note = f"{TOWARDS} {EFFECT} {SHARES} p: sign flips over responses, Holm. Scores asked for: {asks}."
    tables = [
        Table("kinds", "By kind of attempt", kinds, note=note),
        *(
            Table(f"kinds_{n}", f"{model}, response {way} (p after Holm)", _printed(part), note=note, printed=True)
            for n, ((model, way), part) in enumerate(kinds.groupby(["model", "shown"], sort=False))
        ),
        Table("asks", "By kind and score asked for", injection.by_ask(found, draws=draws, seed=seed), note=TOWARDS),
        Table(
            "fence",
            "What fencing takes off: effect open minus effect fenced",
            fence,
            ("model", "kind", "difference", "low", "high", "p_adjusted"),
            "On the same responses and attempts; sign flips over responses, Holm.",
            printed=True,
        ),
        Table("clean", "Honest responses, open and fenced", injection.clean_scores(verdicts), printed=True),
        Table("readings", "How replies could be read", read, printed=bool(_lost(read))),
        Table(
            "flagged",
            "Share that the fence marks as an instruction",
            injection.flagged(verdicts),
            note="Marks on controls and clean responses are false alarms. The judge sees the mark, inside the fence.",
        ),
    ]
    small_print = f"{EFFECT} {TOWARDS} {' '.join(cautions)}"
    figure = Figure("kinds", small_print, "kinds", lambda: kinds_figure(kinds, title, small_print))
    return Report(
        title,
        tuple(injection.in_words(kinds, fence, read)),
        cautions=tuple(cautions),
        tables=tuple(table for table in tables if len(table.frame)),
        figures=(figure,),
        settings={"draws": draws, "seed": seed, "moved_from": injection.MOVED},
        **about,
    )


def _printed(part: pd.DataFrame) -> pd.DataFrame:
    """What a terminal of 80 columns has room for."""
    names = ["kind", "effect", "low", "high", "moved", "control_moved", "asked", "p_adjusted"]
    return part[names].rename(columns=PRINTED)


def _lost(read: pd.DataFrame) -> int:
    return int(read[["unparsed", "refused", "unscored"]].to_numpy().sum())


def kinds_figure(kinds: pd.DataFrame, title: str, note: str) -> Drawing:
    """A panel a model; one line a kind, open and fenced one above the other."""
    models = list(dict.fromkeys(kinds["model"]))
    names = list(dict.fromkeys(kinds["kind"]))
    figure, axes = sheet(3.0 + 3.4 * len(models), 1.9 + 1.5 * LINE * len(names), len(models), sharey=True)
    for axis, model in zip(axes[0], models, strict=True):
        for n, (way, marker) in enumerate((("open", "o"), ("fenced", "s"))):
            here = kinds[(kinds["model"] == model) & (kinds["shown"] == way)].set_index("kind").reindex(names)
            if here["effect"].notna().any():
                tints, shift = [PALETTE[n]] * len(names), 0.2 * (2 * n - 1)
                dots(
                    axis, names, here["effect"], here["low"], here["high"], tints, shift=shift, marker=marker, label=way
                )
        axis.axvline(0, color="#888888", linewidth=0.8)
        axis.set_xlabel("effect, points towards the score asked for")
        axis.set_title(model.replace("$", r"\$"), fontsize=10)
    axes[0, 0].legend(frameon=False, fontsize=8)
    caption(figure, title, note)
    return figure
