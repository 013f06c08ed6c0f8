"""SQuAD's report: exact match and F1 by arm, also by answerability; tests between arms; searches; MABRF's table 4."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure as Drawing

from parley.analysis.bbq.mabrf.reproduction import LOG, paper_model
from parley.analysis.reporting.figures import bounded, caption, colours, dots, sheet
from parley.analysis.reporting.forest import Forest, estimates, filled
from parley.analysis.reporting.report import NO_CONTEXT, Figure, Report, ReportContext, Table, format_interval
from parley.analysis.reporting.verdicts import MissingColumns, require, uncategorised
from parley.analysis.squad.scores import mark
from parley.analysis.stats.clustered import bootstrap_mean
from parley.analysis.stats.multiplicity import holm
from parley.analysis.stats.paired import mcnemar, paired_permutation
from parley.analysis.stats.resampling import words_on_draws
from parley.base.text import plural

MEASURES = ("exact", "f1")
LABELS = {"exact": "exact match", "f1": "F1"}
PARTS = ("all", "answerable", "unanswerable")
ITEM = ["question_id", "repeat"]
CLUSTERED = "Intervals are 95%, from a bootstrap over paragraphs: questions on one paragraph are not independent."
UNREAD = "Unreadable answers are left out of the scores; the “unread wrong” columns count them as wrong."
CLOSED_BOOK = (
    "The paragraph was not shown. “Unanswerable” is ill-defined then: these have no answer in their paragraph, "
    "but some have one elsewhere, and a model that knows it is counted as wrong."
)
SCORES = (
    "system", "part", "exact", "exact_low", "exact_high", "f1", "f1_low", "f1_high", "n", "unparsed", "refused", "cut",
    "exact_unread_wrong", "f1_unread_wrong", "calls_an_item",
)  # fmt: skip
SHORT = ["system", "part", "exact", "f1", "n", "unparsed"]
COMPARED = (
    "model", "first", "second", "part", "measure", "difference", "low", "high", "p", "p_adjusted", "p_mcnemar", "n",
    "clusters", "note",
)  # fmt: skip


def report(verdicts: pd.DataFrame, context: ReportContext = NO_CONTEXT) -> Report:
    """The report of one run or several.

    Args:
        verdicts: One row per verdict.
        context: What the report is given beside them.
    """
    title = context.title or "SQuAD v2"
    require(verdicts, texts=("question_id", "paragraph"), numbers=("repeat", "paragraph_shown"))
    frame = answers(verdicts)
    if frame.empty:
        raise MissingColumns("none of its verdicts is an answer")
    table = scores(frame, context.units, draws=context.draws, seed=context.seed)
    tests = between_arms(frame)
    published = reproduction(frame)
    note = f"{CLUSTERED} {context.small_print}"
    tables = [
        Table(
            name="scores",
            title="SQuAD v2: exact match and F1 (%)",
            frame=table,
            shown=SCORES,
            note=f"{CLUSTERED} {UNREAD}",
        ),
        Table(name="in_short", title="SQuAD v2 (%)", frame=table[SHORT], printed=True),
        Table(
            name="between_arms",
            title="Arms compared, on the questions both answered readably",
            frame=tests,
            shown=COMPARED,
            note="First minus second, in points, mean over paragraphs. p and interval: sign flips over paragraphs, p "
            "Holm-corrected over the table; p_mcnemar assumes independent questions.",
        ),
        Table(
            name="searches",
            title="Searches per item",
            frame=searches(verdicts),
            note="Means over items with search.",
        ),
        Table(
            name="reproduction",
            title="MABRF's table 4: the paper, its logs and our runs (%)",
            frame=published,
            note="paper: as printed; recomputed: from the authors' logs through this code, failed calls as empty "
            "answers, as in the notebooks; without_failed: without them; ours: runs of the same "
            "model with the paragraph shown. comes_back: whether paper and recomputed agree to two decimals.",
        ),
    ]
    return Report(
        title=title,
        words=(
            *words_on_draws(context.draws),
            *_summary(table, tests),
            *_closed_book(frame),
            *_failed_calls(published),
        ),
        tables=tuple(table for table in tables if len(table.frame)),
        figures=(Figure(name="scores", caption=note, table="scores", draw=lambda: scores_figure(table, title, note)),),
        forests=filled(_forests(frame, table, tests)),
        settings={"draws": context.draws, "seed": context.seed},
        cautions=tuple(context.cautions),
        runs=tuple(context.runs),
    )


def _forests(frame: pd.DataFrame, table: pd.DataFrame, tests: pd.DataFrame) -> Iterator[Forest]:
    """Does search help? Then the scores of every arm."""
    several = frame["model"].nunique() > 1
    arms = dict(zip(frame["search"], frame["arm"], strict=True))
    systems = frame.drop_duplicates("system").set_index("system")

    def units(part: str, model: str, *names: str) -> dict[str, tuple[str, ...]]:
        kind = {} if part == "all" else {"answerable": (str(part == "answerable").lower(),)}
        return {"search": tuple(arms[name] for name in names), **kind, **({"model": (model,)} if several else {})}

    for measure in ("f1", "exact") if len(tests) else ():
        yield Forest(
            name=f"between-arms-{measure}",
            question="Does search change the score?",
            axis=f"difference in {LABELS[measure]} (points of 100)",
            estimates=estimates(
                tests[tests["measure"] == measure],
                lambda row: f"{row.first} − {row.second}, {row.part}",
                p="p_adjusted",
                group=lambda row: str(row.model) if several else "",
                units=lambda row: units(row.part, row.model, row.first, row.second),
            ),
            table="between_arms",
            note="95% intervals and p-values: sign flips over paragraphs; p-values Holm-corrected over the table.",
        )
    for measure in ("f1", "exact"):
        yield Forest(
            name=f"scores-{measure}",
            question="How good are the answers?",
            axis=f"{LABELS[measure]} (%)",
            estimates=estimates(
                table,
                lambda row: str(row.part),
                value=measure,
                ends=(f"{measure}_low", f"{measure}_high"),
                group=lambda row: f"search: {row.system}",
                units=lambda row: units(row.part, systems["model"][row.system], systems["search"][row.system]),
            ),
            reference=None,
            table="scores",
            note=CLUSTERED,
        )


def answers(verdicts: pd.DataFrame) -> pd.DataFrame:
    """One row per answer, scored by the official rules; NaN if it could not be read."""
    require(verdicts, texts=("answers", "search", "model"), numbers=("answerable",))
    frame = uncategorised(verdicts[verdicts["metric"].astype(str) == "answer"]).reset_index(drop=True)
    marks = [
        (np.nan, np.nan) if pd.isna(value) else mark(text if value else "", json.loads(golds))
        for value, text, golds in zip(frame["value"], frame["text"], frame["answers"], strict=True)
    ]
    frame[list(MEASURES)] = 100 * np.array(marks, dtype=float).reshape(len(frame), 2)
    frame["arm"], frame["search"] = frame["search"].astype(str), _arms(frame)
    frame["system"] = systems(frame)
    return frame


def comparable(verdicts: pd.DataFrame) -> pd.DataFrame:
    """What `compare` can compare: the official measures as shares, answerable and unanswerable separately."""
    scored = answers(verdicts).assign(text=None)
    kind = np.where(scored["answerable"].astype(bool), "answerable", "unanswerable")
    return pd.concat(
        [scored.assign(metric=f"{LABELS[name]}, " + pd.Series(kind), value=scored[name] / 100) for name in MEASURES]
    )


def systems(frame: pd.DataFrame) -> pd.Series:
    """The arm, and the model if there are several."""
    arm, model = _arms(frame), frame["model"].astype(str)
    return arm if model.nunique() == 1 else arm + " · " + model


def _arms(frame: pd.DataFrame) -> pd.Series:
    """The names of the arms; folders without their path, unless two would then have the same name."""
    arm = frame["search"].astype(str)
    short = arm.str.replace(r"^folder:.*[/\\](?=[^/\\])", "folder:", regex=True)
    return short if short.nunique() == arm.nunique() else arm


def _part(frame: pd.DataFrame, part: str) -> pd.DataFrame:
    return frame if part == "all" else frame[frame["answerable"].astype(bool) == (part == "answerable")]


def scores(frame: pd.DataFrame, units: pd.DataFrame | None, *, draws: int, seed: int) -> pd.DataFrame:
    """Both measures by system and answerability, with intervals, parse statuses and calls per item."""
    calls = {} if units is None else units.assign(system=systems(units)).groupby("system")["calls"].mean().to_dict()
    rows = []
    for system, answered in frame.groupby("system", sort=False):
        for part in PARTS:
            questions = _part(answered, part)
            if questions.empty:
                continue
            row: dict[str, Any] = {"system": system, "part": part}
            for measure in MEASURES:
                mean = bootstrap_mean(questions[measure], questions["paragraph"], weight="row", draws=draws, seed=seed)
                row |= {measure: mean.estimate, f"{measure}_low": mean.low, f"{measure}_high": mean.high}
                row[f"{measure}_unread_wrong"] = float(questions[measure].fillna(0.0).mean())
            status = questions["status"].astype(str)
            row |= {"n": int(questions["exact"].notna().sum()), "clusters": questions["paragraph"].nunique()}
            row |= {kind: int((status == kind).sum()) for kind in ("unparsed", "refused", "cut")}
            rows.append({**row, "calls_an_item": calls.get(system, np.nan)})
    return pd.DataFrame(rows)


def between_arms(frame: pd.DataFrame) -> pd.DataFrame:
    """Every two arms of a model, the later one first (so that it is search minus none)."""
    rows = []
    for model, answered in frame.groupby("model", sort=False):
        arms = dict(list(answered.groupby("search", sort=False)))
        for second, first in combinations(arms, 2):
            both = arms[first].merge(arms[second], on=ITEM, suffixes=("", "_second"))
            both = both[both["exact"].notna() & both["exact_second"].notna()]
            names = {"model": model, "first": first, "second": second}
            rows += [{**names, "part": part, **row} for part in PARTS for row in _compared(_part(both, part))]
    table = pd.DataFrame(rows)
    if len(table):
        table["p_adjusted"] = holm(table["p"], "arms × parts × measures").adjusted
    return table


def _compared(both: pd.DataFrame) -> Iterator[dict[str, Any]]:
    if both.empty:
        return
    for measure in MEASURES:
        first, second = both[measure], both[f"{measure}_second"]
        flips = paired_permutation(first, second, both["paragraph"])
        yield {
            "measure": measure,
            "difference": flips.effect,
            "low": flips.low,
            "high": flips.high,
            "p": flips.p,
            "p_mcnemar": mcnemar(first / 100, second / 100).p if measure == "exact" else np.nan,
            "n": flips.n,
            "clusters": flips.clusters,
            "note": flips.note,
        }


def searches(verdicts: pd.DataFrame) -> pd.DataFrame:
    """What the search agent did, by system; empty without search."""
    frame = uncategorised(verdicts)
    metric = frame["metric"].str.removeprefix("search_")
    searched = frame[frame["metric"].str.startswith("search_")].assign(what=metric)
    if searched.empty:
        return pd.DataFrame()
    searched = searched.assign(system=systems(frame).loc[searched.index])
    table = searched.pivot_table(index="system", columns="what", values="value", aggfunc="mean", sort=False)
    for what, name in (("queries", "queries_unread"), ("unknown_sources", "summaries_unread")):
        rows = searched[searched["what"] == what]
        table[name] = rows["status"].isin(["unparsed", "refused", "cut"]).groupby(rows["system"]).sum()
    return table.reset_index().rename_axis(columns=None)


def _summary(table: pd.DataFrame, tests: pd.DataFrame) -> Iterator[str]:
    for row in table.itertuples():
        lost = row.unparsed + row.refused + row.cut
        unread = f"; {lost:,} unreadable" if lost else ""
        yield (
            f"{row.system}, {row.part}: exact match {row.exact:.1f}%{_interval(row.exact_low, row.exact_high)}, "
            f"F1 {row.f1:.1f}%{_interval(row.f1_low, row.f1_high)}, n = {row.n:,}{unread}."
        )
    for row in tests.itertuples():
        if row.part == "all":
            test = f"p = {row.p:.2g}, {row.p_adjusted:.2g} after Holm correction"
            yield (
                f"{row.first} compared with {row.second}, {LABELS[row.measure]}: {row.difference:+.1f} points"
                f"{_interval(row.low, row.high)} on {plural(row.n, 'question')} of "
                f"{plural(row.clusters, 'paragraph')} ({test})."
            )


def _closed_book(frame: pd.DataFrame) -> Iterator[str]:
    if (frame["paragraph_shown"].astype(float) == 0).any():
        yield CLOSED_BOOK


def _interval(low: float, high: float) -> str:
    interval = format_interval(low, high, ".1f")
    return f" ({interval})" if interval else ""


def scores_figure(table: pd.DataFrame, title: str, note: str) -> Drawing:
    """Exact match on the left, F1 on the right; one line per system and part."""
    labels = [f"{row.system}, {row.part}" for row in table.itertuples()]
    figure, axes = sheet(9.5, 1.6 + 0.3 * len(labels), 2, sharey=True)
    tints = [colours(list(table["system"]))[system] for system in table["system"]]
    for axis, measure in zip(axes[0], MEASURES, strict=True):
        dots(axis, labels, table[measure], table[f"{measure}_low"], table[f"{measure}_high"], tints)
        axis.set_xlabel(f"{LABELS[measure]} (%)")
        bounded(axis, "x", whole=True)
    caption(figure, title, note)
    return figure


def _failed_calls(published: pd.DataFrame) -> Iterator[str]:
    """What the notebooks' way of counting failed calls adds to the paper's figures."""
    logged = published[published["answers"] > 0] if len(published) else published
    for (model, search), cells in logged.groupby(["model", "search"], sort=False):
        row = cells.set_index("measure").loc["exact"]
        arm = f"{model} {'with' if search else 'without'} search"
        counted = f"exact match {row['recomputed']:.1f}% with them, {row['without_failed']:.1f}% without"
        in_log = f"{row['failed']:.0f} of {plural(row['answers'], 'call')} failed"
        if row["failed"]:
            in_log += f", {row['failed_unanswerable']:.0f} of them on unanswerable questions: {counted}"
        yield (
            "The notebooks store a failed call as an empty answer, which is right on an unanswerable question. "
            f"In the log of {arm}, {in_log}."
        )


PUBLISHED = {
    ("deepseek", False): (36.0, 40.51),
    ("deepseek", True): (14.0, 24.25),
    ("gpt-4", False): (27.0, 37.76),
    ("gpt-4", True): (45.0, 49.80),
}
"""Exact match and F1 in percent, by model and whether there was a search."""
ROUNDING = 0.005 + 1e-9
"""The paper's numbers have two decimals."""
OTHER_MODEL = "in the notebook, llama-3.1-8b-instant answered"


def reproduction(frame: pd.DataFrame) -> pd.DataFrame:
    """The cells of table 4 that one of these runs has; empty if there are none.

    Args:
        frame: One row per answer, with `exact` and `f1` in percent.
    """
    rows = []
    shown = frame[frame["paragraph_shown"].astype(float) == 1]
    for (model, arm), answers in shown.groupby(["model", "search"], sort=False):
        key = (paper_model(str(model)), str(arm) != "none")
        if key not in PUBLISHED:
            continue
        logged = answers["source"].astype(str) == LOG if "source" in answers else pd.Series(False, index=answers.index)
        failed = logged & (answers["status"].astype(str) == "unscored")
        unanswerable = ~answers["answerable"].astype(bool)
        for measure, paper in zip(("exact", "f1"), PUBLISHED[key], strict=True):
            counted = answers[measure].mask(failed, 100.0 * unanswerable)
            recomputed, ours = counted[logged].mean(), answers.loc[~logged, measure].mean()
            rows.append(
                {
                    "model": key[0],
                    "search": key[1],
                    "measure": measure,
                    "paper": paper,
                    "recomputed": recomputed,
                    "without_failed": answers.loc[logged, measure].mean(),
                    "failed": int(failed.sum()),
                    "failed_unanswerable": int((failed & unanswerable).sum()),
                    "answers": int(logged.sum()),
                    "ours": ours,
                    "comes_back": None if recomputed != recomputed else abs(paper - recomputed) <= ROUNDING,
                    "note": OTHER_MODEL if key == ("deepseek", True) else "",
                }
            )
    return pd.DataFrame(rows)
