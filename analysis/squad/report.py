"""SQuAD's report: exact match and F1 by arm, answerable and unanswerable apart, arms compared, what was searched."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure as Drawing

from parley.analysis.reporting.figures import bounded, caption, colours, dots, sheet
from parley.analysis.reporting.report import Figure, Report, Table
from parley.analysis.reporting.verdicts import uncategorised
from parley.analysis.squad.scores import mark
from parley.analysis.stats.clustered import bootstrap_difference, bootstrap_mean
from parley.analysis.stats.multiplicity import holm
from parley.analysis.stats.paired import mcnemar, paired_permutation

MEASURES = ("exact", "f1")
PARTS = ("all", "answerable", "unanswerable")
ITEM = ["question_id", "repeat"]
CLUSTERED = "Intervals are 95%, by a bootstrap over paragraphs: questions on one text are not independent."
UNREAD = "Answers that could not be read are left out of the scores, and wrong in the columns “unread wrong”."
SCORES = (
    "system", "part", "exact", "exact_low", "exact_high", "f1", "f1_low", "f1_high", "n", "unparsed", "refused",
    "exact_unread_wrong", "f1_unread_wrong", "calls_an_item",
)  # fmt: skip
SHORT = ["system", "part", "exact", "f1", "n", "unparsed"]
COMPARED = (
    "model", "first", "second", "part", "measure", "difference", "low", "high", "p", "p_adjusted", "p_mcnemar", "n",
    "clusters", "note",
)  # fmt: skip


def report(
    verdicts: pd.DataFrame,
    *,
    units: pd.DataFrame | None = None,
    title: str = "SQuAD v2",
    draws: int = 2000,
    seed: int = 0,
    **about: Any,
) -> Report:
    """All of it from a frame of verdicts, over one run or several; `about` is handed on (runs, cautions)."""
    frame = answers(verdicts)
    table = scores(frame, units, draws=draws, seed=seed)
    tests = between_arms(frame, draws=draws, seed=seed)
    note = f"{CLUSTERED} {' '.join(about.get('cautions', ()))}"
    tables = [
        Table("scores", "SQuAD v2: exact match and F1, in %", table, SCORES, f"{CLUSTERED} {UNREAD}"),
        Table("in_short", "SQuAD v2, in %", table[SHORT], printed=True),
        Table(
            "between_arms",
            "Arms compared, on the questions both answered readably",
            tests,
            COMPARED,
            "First minus second, in points. p: sign flips by paragraph; Holm over the table. McNemar takes questions "
            "as independent.",
        ),
        Table("searches", "What was searched, an item", searches(verdicts), note="Means over items with search."),
    ]
    return Report(
        title,
        tuple(_words(table, tests)),
        tables=tuple(one for one in tables if len(one.frame)),
        figures=(Figure("scores", note, "scores", lambda: _drawn(table, title, note)),),
        settings={"draws": draws, "seed": seed},
        **about,
    )


def answers(verdicts: pd.DataFrame) -> pd.DataFrame:
    """One row an answer, marked by the official rules; NaN where nothing could be read."""
    frame = uncategorised(verdicts[verdicts["metric"].astype(str) == "answer"]).reset_index(drop=True)
    said = [
        (np.nan, np.nan) if pd.isna(value) else mark(text if value else "", json.loads(golds))
        for value, text, golds in zip(frame["value"], frame["text"], frame["answers"], strict=True)
    ]
    frame[list(MEASURES)] = 100 * np.array(said, dtype=float).reshape(len(frame), 2)
    frame["search"] = _arms(frame)
    frame["system"] = systems(frame)
    return frame


def comparable(verdicts: pd.DataFrame) -> pd.DataFrame:
    """What `compare` may set side by side: the official measures as shares, answerable and unanswerable apart."""
    marked = answers(verdicts).assign(text=None)
    kind = np.where(marked["answerable"].astype(bool), "answerable", "unanswerable")
    return pd.concat(
        [marked.assign(metric=f"{name}, " + pd.Series(kind), value=marked[name] / 100) for name in MEASURES]
    )


def systems(frame: pd.DataFrame) -> pd.Series:
    """The arm, and the model where there are several."""
    arm, model = _arms(frame), frame["model"].astype(str)
    return arm if model.nunique() == 1 else arm + " · " + model


def _arms(frame: pd.DataFrame) -> pd.Series:
    """The arms by name; folders without the way to them, as long as that keeps them apart."""
    arm = frame["search"].astype(str)
    short = arm.str.replace(r"^folder:.*[/\\](?=[^/\\])", "folder:", regex=True)
    return short if short.nunique() == arm.nunique() else arm


def _part(frame: pd.DataFrame, part: str) -> pd.DataFrame:
    return frame if part == "all" else frame[frame["answerable"].astype(bool) == (part == "answerable")]


def scores(frame: pd.DataFrame, units: pd.DataFrame | None, *, draws: int, seed: int) -> pd.DataFrame:
    calls = {} if units is None else units.assign(system=systems(units)).groupby("system")["calls"].mean().to_dict()
    rows = []
    for system, whole in frame.groupby("system", sort=False):
        for part in PARTS:
            here = _part(whole, part)
            if here.empty:
                continue
            row: dict[str, Any] = {"system": system, "part": part}
            for measure in MEASURES:
                found = bootstrap_mean(here[measure], here["paragraph"], weight="row", draws=draws, seed=seed)
                row |= {measure: found.estimate, f"{measure}_low": found.low, f"{measure}_high": found.high}
                row[f"{measure}_unread_wrong"] = float(here[measure].fillna(0.0).mean())
            status = here["status"].astype(str)
            row |= {"n": int(here["exact"].notna().sum()), "clusters": here["paragraph"].nunique()}
            row |= {kind: int((status == kind).sum()) for kind in ("unparsed", "refused")}
            rows.append({**row, "calls_an_item": calls.get(system, np.nan)})
    return pd.DataFrame(rows)


def between_arms(frame: pd.DataFrame, *, draws: int, seed: int) -> pd.DataFrame:
    """Every two arms of a model, the later one first (so that search stands against none)."""
    rows = []
    for model, whole in frame.groupby("model", sort=False):
        arms = dict(list(whole.groupby("search", sort=False)))
        for second, first in combinations(arms, 2):
            both = arms[first].merge(arms[second], on=ITEM, suffixes=("", "_second"))
            both = both[both["exact"].notna() & both["exact_second"].notna()]
            place = {"model": model, "first": first, "second": second}
            rows += [
                {**place, "part": part, **row} for part in PARTS for row in _compared(_part(both, part), draws, seed)
            ]
    table = pd.DataFrame(rows)
    if len(table):
        table["p_adjusted"] = holm(table["p"], "arms × parts × measures").adjusted
    return table


def _compared(both: pd.DataFrame, draws: int, seed: int) -> Iterator[dict[str, Any]]:
    if both.empty:
        return
    clusters = pd.concat([both["paragraph"]] * 2)
    arms = np.repeat(["first", "second"], len(both))
    for measure in MEASURES:
        one, other = both[measure], both[f"{measure}_second"]
        flips = paired_permutation(one, other, both["paragraph"], draws=draws, seed=seed)
        gap = bootstrap_difference(
            pd.concat([one, other]), arms, clusters, "first", "second", weight="row", draws=draws, seed=seed
        )
        yield {
            "measure": measure,
            "difference": gap.estimate,
            "low": gap.low,
            "high": gap.high,
            "p": flips.p,
            "p_mcnemar": mcnemar(one / 100, other / 100).p if measure == "exact" else np.nan,
            "n": flips.n,
            "clusters": flips.clusters,
            "note": flips.note,
        }


def searches(verdicts: pd.DataFrame) -> pd.DataFrame:
    """What the search agent did, by system; without search there is nothing to tell."""
    frame = uncategorised(verdicts)
    metric = frame["metric"].str.removeprefix("search_")
    kept = frame[frame["metric"].str.startswith("search_")].assign(what=metric)
    if kept.empty:
        return pd.DataFrame()
    kept = kept.assign(system=systems(frame).loc[kept.index])
    table = kept.pivot_table(index="system", columns="what", values="value", aggfunc="mean", sort=False)
    for what, name in (("queries", "queries_unread"), ("unknown_sources", "summaries_unread")):
        here = kept[kept["what"] == what]
        table[name] = here["status"].isin(["unparsed", "refused"]).groupby(here["system"]).sum()
    return table.reset_index().rename_axis(columns=None)


def _words(table: pd.DataFrame, tests: pd.DataFrame) -> Iterator[str]:
    for row in table.itertuples():
        unread = f"; {row.unparsed + row.refused} unread" if row.unparsed + row.refused else ""
        yield (
            f"{row.system}, {row.part}: exact {row.exact:.1f}%{_ends(row.exact_low, row.exact_high)}, "
            f"F1 {row.f1:.1f}%{_ends(row.f1_low, row.f1_high)}, n = {row.n}{unread}."
        )
    for row in tests.itertuples():
        if row.part == "all":
            tested = row.note if row.p != row.p else f"p = {row.p:.2g}, {row.p_adjusted:.2g} after Holm"
            yield (
                f"{row.first} against {row.second}, {row.measure}: {row.difference:+.1f} points"
                f"{_ends(row.low, row.high)}, {tested}, on {row.n} questions of {row.clusters} paragraphs."
            )


def _ends(low: float, high: float) -> str:
    return "" if low != low else f" ({low:.1f} to {high:.1f})"


def _drawn(table: pd.DataFrame, title: str, note: str) -> Drawing:
    labels = [f"{row.system}, {row.part}" for row in table.itertuples()]
    figure, axes = sheet(9.5, 1.6 + 0.3 * len(labels), 2, sharey=True)
    tints = [colours(list(table["system"]))[system] for system in table["system"]]
    for axis, measure in zip(axes[0], MEASURES, strict=True):
        dots(axis, labels, table[measure], table[f"{measure}_low"], table[f"{measure}_high"], tints)
        axis.set_xlabel({"exact": "exact match, %", "f1": "F1, %"}[measure])
        bounded(axis, "x", whole=True)
    caption(figure, title, note)
    return figure
