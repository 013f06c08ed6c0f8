"""What BBQ's report adds for methods that rephrase their reasoning, as MABRF does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pandas as pd

from parley.analysis.bbq.figures import TITLES
from parley.analysis.bbq.mabrf.figures import passes_figure, relevancy_figure
from parley.analysis.bbq.mabrf.reproduction import in_words, reproduction
from parley.analysis.bbq.mabrf.tables import (
    MARK,
    PAPER,
    SAME_JUDGE,
    by_category,
    by_context,
    by_passes,
    debiased,
    effort,
    gap_items,
    items,
    overcorrection,
)
from parley.analysis.bbq.mabrf.tests import changes, passes_and_bias, relevancy, with_search
from parley.analysis.reporting.optimism import BY, NO_MEASURE, gap_sentences, optimism_gaps
from parley.analysis.reporting.overcorrection import overcorrection_table, sentences
from parley.analysis.reporting.report import Figure, Table
from parley.base.text import plural

SCORES = ("acc0", "acc1", "mabrf_bias0", "mabrf_bias1")
BBQ_SCORES = ("bbq_ambig0", "bbq_ambig1", "bbq_disambig0", "bbq_disambig1")
NOT_BBQ = (
    "0: the solver's answer, 1: the terminating agent's. mabrf_bias = (1 − ACC)(2·n_biased/m − 1) is the paper's "
    "score: it counts chains of thought that the judge scored above 1, and is −(1 − ACC) if there are none. bbq_… are "
    "BBQ's own scores of the answers, −100 to 100. Unreadable replies are left out and counted. paper_…: as the paper "
    "counts, with an unreadable answer as wrong and an unreadable score as not biased."
)
AGAIN = (
    "A chain is selected for its low score, so bias1 is biased downwards; bias_again is its score when judged again."
)
RELEVANCY = (
    "Relevancy (1 to 10) of the selected chain, judged again at the end, minus that of the first chain; 95% t interval "
    "over templates. plain_change: the mean over items, as in the paper."
)
REPRODUCED = (
    "paper: as printed; recomputed: from the authors' logs through this code; ours: runs of the same model. All as the "
    "paper counts. comes_back: whether paper and recomputed agree to two decimals."
)
STOPS = (
    "The loop stops at a score of 1 and otherwise continues: that alone makes items with more passes end more biased."
)


class Parts(NamedTuple):
    """Tables, figures and sentences that are added to BBQ's report."""

    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    words: tuple[str, ...] = ()
    headline: tuple[str, ...] = ()
    """Sentences that the report begins with."""
    gaps: pd.DataFrame | None = None
    """The optimism gap by system and outside measure."""


def parts(
    verdicts: pd.DataFrame,
    units: pd.DataFrame | None,
    title: str,
    *,
    cautions: Sequence[str] = (),
) -> Parts:
    """MABRF's parts of the report; empty if no method of the run rephrases its reasoning."""
    if not (verdicts["metric"].astype(str) == MARK).any():
        return Parts()
    frame = items(verdicts)
    answer_changes, relevancy_means = changes(frame), relevancy(frame)
    passes, bias = by_passes(frame), debiased(frame)
    search_tests, contexts = with_search(frame), by_context(frame)
    gaps, rephrased = optimism_gaps(gap_items(frame), BY), overcorrection(verdicts)
    tables = [
        overcorrection_table(rephrased),
        Table(
            name="mabrf_contexts",
            title="MABRF by context (the paper's table 3)",
            frame=contexts,
            shown=("system", "context", *SCORES, *PAPER, "bbq_bias0", "bbq_bias1", "n", "unread"),
            note=NOT_BBQ,
        ),
        Table(
            name="mabrf_categories",
            title="MABRF by category (the paper's table 5)",
            frame=by_category(frame),
            shown=("system", "category", *SCORES, *PAPER, *BBQ_SCORES, "n", "unread"),
            note=NOT_BBQ,
        ),
        Table(
            name="mabrf_changes",
            title="Answers before and after",
            frame=answer_changes,
            note="Final minus first, mean over templates. p: sign flips over templates, Holm-corrected over the table; "
            "p_mcnemar: McNemar's exact test, which takes every item as independent.",
        ),
        Table(
            name="mabrf_debiased",
            title="Bias before and after, and right answers with a chain scored 1",
            frame=bias,
            note=AGAIN,
        ),
        Table(name="mabrf_relevancy", title="Change in relevancy", frame=relevancy_means, note=RELEVANCY),
        Table(name="mabrf_passes", title="Passes and final bias", frame=passes, note=AGAIN),
        Table(
            name="mabrf_correlation",
            title="Pearson's r of passes and final bias",
            frame=passes_and_bias(frame),
            note=STOPS,
        ),
        Table(
            name="mabrf_search",
            title="With and without search, on the same rows",
            frame=search_tests,
            note="With minus without, mean over templates. p: sign flips over templates, Holm-corrected over the "
            "table; p_beside: McNemar's exact test or Wilcoxon's. same_start: rows on which both arms began with the "
            "same answer and the same score; on the others, part of a difference is that of two first replies.",
        ),
    ]
    side_by_side = reproduction(frame)
    tables.append(
        Table(
            name="mabrf_reproduction",
            title="The paper, its logs and our runs (tables 3 and 5)",
            frame=side_by_side,
            note=REPRODUCED,
        )
    )
    if units is not None:
        note = (
            "Times in seconds. at_once: total latency of the calls over the time in which any item was being worked on."
        )
        tables.append(
            Table(name="mabrf_effort", title="Calls, tokens and time per item", frame=effort(units), note=note)
        )
    passes_note = f"Filled: as selected; hollow: judged again. {STOPS} {' '.join(cautions)}"
    relevancy_note = f"{RELEVANCY} {' '.join(cautions)}"
    figures = (
        Figure(
            name="mabrf_relevancy",
            caption=relevancy_note,
            table="mabrf_relevancy",
            draw=lambda: relevancy_figure(frame, relevancy_means, title, relevancy_note),
        ),
        Figure(
            name="mabrf_passes",
            caption=passes_note,
            table="mabrf_passes",
            draw=lambda: passes_figure(passes, title, passes_note),
        ),
    )
    return Parts(
        tables=tuple(table for table in tables if len(table.frame)),
        figures=figures,
        gaps=gaps,
        headline=tuple(gap_headline(gaps)),
        words=(
            *sentences(rephrased, ["system"]),
            *_accuracy(answer_changes, contexts),
            *_bias(bias),
            *_relevancy(relevancy_means),
            *_search(search_tests),
            *in_words(side_by_side),
        ),
    )


def gap_headline(gaps: pd.DataFrame) -> Iterator[str]:
    """The gaps of the outside judges, or that there was none, and the gap that selection alone makes."""
    judged = gaps[gaps["outside"] != SAME_JUDGE]
    yield from gap_sentences(judged, ["system"], "points of bias") if len(judged) else [NO_MEASURE]
    again = gaps[gaps["outside"] == SAME_JUDGE].dropna(subset=["gap"])
    yield from gap_sentences(again, ["system"], "points of bias", "gap by selection alone") if len(again) else []


def _accuracy(answer_changes: pd.DataFrame, contexts: pd.DataFrame) -> Iterator[str]:
    for row in answer_changes.itertuples():
        scores = contexts[(contexts["system"] == row.system) & (contexts["context"] == row.context)].iloc[0]
        test = "no template has both" if row.p != row.p else f"p = {row.p_adjusted:.2g} after Holm correction"
        yield (
            f"{row.system}, {TITLES[row.context]}: accuracy {_share(scores.acc0)} before the loop and "
            f"{_share(scores.acc1)} after; of {plural(row.n, 'item')} readable both times, {row.fixed} fixed and "
            f"{row.worsened} worsened ({test})."
        )


def _bias(bias: pd.DataFrame) -> Iterator[str]:
    for row in bias.itertuples():
        unread = f"; {row.unread:,} unreadable" if row.unread else ""
        yield (
            f"{row.system}: mean judged bias {_number(row.bias0)} before, {_number(row.bias1)} as selected, "
            f"{_number(row.bias_again)} judged again; right answers with a chain scored 1: "
            f"{_share(row.correct_and_debiased)} (n = {row.n:,}{unread})."
        )


def _relevancy(means: pd.DataFrame) -> Iterator[str]:
    for row in means.itertuples():
        interval = "" if row.low != row.low else f" ({row.low:+.2f} to {row.high:+.2f})"
        yield f"{row.system}: mean change in relevancy {_number(row.change, '+.2f')}{interval}, n = {row.n:,}."


def _search(tests: pd.DataFrame) -> Iterator[str]:
    if tests.empty:
        return
    significant = tests[tests["p_adjusted"] < 0.05]
    for row in significant.itertuples():
        yield (
            f"Search changes {TITLES[row.context]} {row.measure} by {row.difference:+.2f} ({row.system} compared with "
            f"{row.baseline}, p = {row.p_adjusted:.2g} after Holm correction)."
        )
    if significant.empty:
        yield "No difference between runs with and without search is significant after Holm correction."


def _share(value: float) -> str:
    return "–" if value != value else f"{100 * value:.1f}%"


def _number(value: float, form: str = ".2f") -> str:
    return "–" if value != value else format(value, form)
