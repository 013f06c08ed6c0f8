"""What BBQ's report adds for methods that rephrase their reasoning, as MABRF does."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from parley.analysis.bbq.figures import TITLES
from parley.analysis.bbq.mabrf.figures import passes_figure, relevancy_figure
from parley.analysis.bbq.mabrf.reproduction import in_words, reproduction
from parley.analysis.bbq.mabrf.tables import (
    MARK,
    PAPER,
    by_category,
    by_context,
    by_passes,
    debiased,
    gap_items,
    items,
    overcorrection,
)
from parley.analysis.bbq.mabrf.tests import changes, passes_and_bias, relevancy, with_search
from parley.analysis.reporting.optimism import BY, optimism_gaps
from parley.analysis.reporting.overcorrection import overcorrection_section
from parley.analysis.reporting.report import Figure, ReportContext, Section, Table
from parley.analysis.reporting.systems import costs
from parley.analysis.stats.results import ALPHA
from parley.base.text import p_text, plural

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
    "paper counts. comes_back: whether paper and recomputed agree to two decimals, where the log has all rows of the "
    "cell (rows_recomputed)."
)
STOPS = (
    "The loop stops at a score of 1 and otherwise continues: that alone makes items with more passes end more biased."
)


def mabrf_gaps(verdicts: pd.DataFrame) -> pd.DataFrame:
    """The optimism gap by system and outside measure; empty if no method of the run rephrases its reasoning."""
    return optimism_gaps(gap_items(items(verdicts)), BY) if _has_loop(verdicts) else pd.DataFrame()


def mabrf_sections(verdicts: pd.DataFrame, context: ReportContext) -> list[Section]:
    """MABRF's parts of the report; none if no method of the run rephrases its reasoning.

    Args:
        verdicts: One row per verdict.
        context: What the report is given.
    """
    if not _has_loop(verdicts):
        return []
    frame = items(verdicts)
    return [
        overcorrection_section(overcorrection(verdicts), ["system"]),
        _papers_section(frame),
        _changes_section(frame),
        _bias_section(frame),
        _relevancy_section(frame, context),
        _passes_section(frame, context),
        _search_section(frame),
        _reproduction_section(frame),
        _effort_section(context.units),
    ]


def _has_loop(verdicts: pd.DataFrame) -> bool:
    return bool((verdicts["metric"].astype(str) == MARK).any())


def _papers_section(frame: pd.DataFrame) -> Section:
    return Section(
        tables=[
            Table(
                name="mabrf_contexts",
                title="MABRF by context (the paper's table 3): all items pooled",
                frame=by_context(frame),
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
        ]
    )


def _changes_section(frame: pd.DataFrame) -> Section:
    """Did the loop change the answers?"""
    table = changes(frame)
    words = [
        f"{row.system}: of {plural(row.n, f'{TITLES[row.context]} question')} the loop corrected {row.fixed} answers "
        f"and spoilt {row.worsened} (p {p_text(row.p_adjusted)})."
        for row in table[table["p_adjusted"] <= ALPHA].itertuples()
    ]
    note = (
        "Final minus first, mean over templates. p: sign flips over templates, Holm-corrected over the table; "
        "p_mcnemar: McNemar's exact test, which takes every item as independent."
    )
    return Section(tables=[Table("mabrf_changes", "Answers before and after", table, note=note)], words=words)


def _bias_section(frame: pd.DataFrame) -> Section:
    """What does the judge say about the chains of thought?"""
    table = debiased(frame)
    words = [
        f"{row.system}: the judge scores the bias of the first chains of thought {row.bias0:.2f}, and of those that it "
        f"selects {row.bias1:.2f}; judged again, the selected ones score {row.bias_again:.2f}."
        for row in table.dropna(subset=["bias0", "bias1", "bias_again"]).itertuples()
    ]
    title = "Bias before and after, and right answers with a chain scored 1"
    return Section(tables=[Table("mabrf_debiased", title, table, note=AGAIN)], words=words)


def _relevancy_section(frame: pd.DataFrame, context: ReportContext) -> Section:
    means, title = relevancy(frame), context.title or "BBQ"
    note = f"{RELEVANCY} {context.small_print}"
    return Section(
        tables=[Table("mabrf_relevancy", "Change in relevancy", means, note=RELEVANCY)],
        figures=[
            Figure("mabrf_relevancy", note, "mabrf_relevancy", lambda: relevancy_figure(frame, means, title, note))
        ],
    )


def _passes_section(frame: pd.DataFrame, context: ReportContext) -> Section:
    passes, title = by_passes(frame), context.title or "BBQ"
    note = f"Filled: as selected; hollow: judged again. {STOPS} {context.small_print}"
    return Section(
        tables=[
            Table("mabrf_passes", "Passes and final bias", passes, note=AGAIN),
            Table("mabrf_correlation", "Pearson's r of passes and final bias", passes_and_bias(frame), note=STOPS),
        ],
        figures=[Figure("mabrf_passes", note, "mabrf_passes", lambda: passes_figure(passes, title, note))],
    )


def _search_section(frame: pd.DataFrame) -> Section:
    tests = with_search(frame)
    note = (
        "With minus without, mean over templates. p: sign flips over templates, Holm-corrected over the table; "
        "p_other: McNemar's exact test or Wilcoxon's. same_start: rows on which both arms began with the same answer "
        "and the same score; on the others, part of a difference comes from different first replies."
    )
    table = Table("mabrf_search", "With and without search, on the same rows", tests, note=note)
    return Section(tables=[table], words=list(_search(tests)))


def _reproduction_section(frame: pd.DataFrame) -> Section:
    table, title = reproduction(frame), "The paper, its logs and our runs (tables 3 and 5)"
    return Section(tables=[Table("mabrf_reproduction", title, table, note=REPRODUCED)], words=list(in_words(table)))


def _effort_section(units: pd.DataFrame | None) -> Section:
    if units is None:
        return Section()
    return Section(tables=[Table("mabrf_effort", "Calls, tokens and dollars per item", costs(units))])


def _search(tests: pd.DataFrame) -> Iterator[str]:
    for row in tests[tests["p_adjusted"] <= ALPHA].itertuples() if len(tests) else ():
        yield (
            f"Search changes {TITLES[row.context]} {row.measure} by {row.difference:+.2f} ({row.system} compared with "
            f"{row.baseline}, p {p_text(row.p_adjusted)})."
        )
