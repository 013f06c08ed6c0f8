"""What a report on BBQ says besides, where a method rephrases its reasoning as MABRF does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pandas as pd

from parley.analysis.bbq.figures import TITLES
from parley.analysis.bbq.mabrf.figures import passes_figure, relevancy_figure
from parley.analysis.bbq.mabrf.tables import MARK, by_category, by_context, by_passes, debiased, effort, items
from parley.analysis.bbq.mabrf.tests import changes, passes_and_bias, relevancy, with_search
from parley.analysis.reporting.report import Figure, Table

SCORES = ("acc0", "acc1", "mabrf_bias0", "mabrf_bias1")
NOT_BBQ = (
    "0: the solver's, 1: the terminating agent's. mabrf_bias = (1 − ACC)(2·n_biased/m − 1) is the paper's: it counts "
    "chains of thought that the judge scored above 1, and is −(1 − ACC) if there are none. bbq_… are BBQ's own scores "
    "of the answers, −100 to 100. What could not be read is left out and counted."
)
AGAIN = (
    "A chain is kept because its score was low, so bias1 flatters it; bias_again is the score it got when judged anew."
)
RELEVANCY = (
    "Judge's relevancy (1 to 10) of the kept chain, judged anew at the end, minus that of the first; t interval over "
    "scenarios."
)
STOPS = "The loop stops at 1 and else goes on: that alone makes items with more passes end with more bias."


class Parts(NamedTuple):
    """Tables, figures and sentences to stand beside BBQ's."""

    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    words: tuple[str, ...] = ()


def parts(
    verdicts: pd.DataFrame,
    units: pd.DataFrame | None,
    title: str,
    draws: int,
    seed: int,
    cautions: Sequence[str] = (),
) -> Parts:
    """Nothing, where no unit was rephrased so."""
    if not (verdicts["metric"].astype(str) == MARK).any():
        return Parts()
    frame = items(verdicts)
    moved, means, passes = changes(frame, draws=draws, seed=seed), relevancy(frame), by_passes(frame)
    kept, searched = debiased(frame), with_search(frame, draws=draws, seed=seed)
    contexts = by_context(frame)
    tables = [
        Table("mabrf_contexts", "MABRF by context (the paper's table 3)", contexts,
              ("system", "context", *SCORES, "bbq_bias0", "bbq_bias1", "n", "unread"), NOT_BBQ),
        Table("mabrf_categories", "MABRF by category (the paper's table 5)", by_category(frame),
              ("system", "category", *SCORES, "bbq_ambig0", "bbq_ambig1", "bbq_disambig0", "bbq_disambig1", "n",
               "unread"), NOT_BBQ),
        Table("mabrf_changes", "Answers before and after", moved, (), "McNemar's exact test; p_clustered: sign flips "
              "over scenarios. Holm over the table."),
        Table("mabrf_debiased", "Bias before and after, and right answers with a chain at 1", kept, (), AGAIN),
        Table("mabrf_relevancy", "Change of relevancy", means, (), RELEVANCY),
        Table("mabrf_passes", "Passes and final bias", passes, (), AGAIN),
        Table("mabrf_correlation", "Pearson's r of passes and final bias", passes_and_bias(frame), (), STOPS),
        Table("mabrf_search", "With search against without, on the same rows", searched, (), "With minus without. p: "
              "sign flips over scenarios, Holm over the table; beside it McNemar's exact test or Wilcoxon's."),
    ]  # fmt: skip
    if units is not None:
        note = "Seconds. at_once: the calls' latencies over the time in which any item was under way."
        tables.append(Table("mabrf_effort", "What an item takes", effort(units), (), note))
    warned = " ".join(cautions)
    shows = f"Filled: as chosen; hollow: judged anew. {STOPS} {warned}"
    changed = f"{RELEVANCY} {warned}"
    figures = (
        Figure("mabrf_relevancy", changed, "mabrf_relevancy", lambda: relevancy_figure(frame, means, title, changed)),
        Figure("mabrf_passes", shows, "mabrf_passes", lambda: passes_figure(passes, title, shows)),
    )
    return Parts(
        tuple(one for one in tables if len(one.frame)), figures, tuple(_words(contexts, moved, kept, means, searched))
    )


def _words(
    contexts: pd.DataFrame, moved: pd.DataFrame, kept: pd.DataFrame, means: pd.DataFrame, searched: pd.DataFrame
) -> Iterator[str]:
    for row in moved.itertuples():
        scores = contexts[(contexts["system"] == row.system) & (contexts["context"] == row.context)].iloc[0]
        chance = "nothing to test" if row.p != row.p else f"p = {row.p:.2g}"
        yield (
            f"{row.system}, {TITLES[row.context]}: accuracy {_share(scores.acc0)} before the loop and "
            f"{_share(scores.acc1)} after; of {row.n} items read both times {row.fixed} fixed, {row.worsened} worsened "
            f"({chance})."
        )
    for row in kept.itertuples():
        unread = f"; {row.unread} unread" if row.unread else ""
        yield (
            f"{row.system}: mean judged bias {_number(row.bias0)} before, {_number(row.bias1)} as chosen, "
            f"{_number(row.bias_again)} judged anew; right with a chain at 1: {_share(row.correct_and_debiased)} "
            f"(n = {row.n}{unread})."
        )
    for row in means.itertuples():
        ends = "" if row.low != row.low else f" ({row.low:+.2f} to {row.high:+.2f})"
        yield f"{row.system}: relevancy changes by {_number(row.change, '+.2f')}{ends}, n = {row.n}."
    if len(searched):
        sure = searched[searched["p_adjusted"] < 0.05]
        for row in sure.itertuples():
            yield (
                f"Search moves {TITLES[row.context]} {row.measure} by {row.difference:+.2f} ({row.system} against "
                f"{row.baseline}, p = {row.p_adjusted:.2g} after Holm)."
            )
        if not len(sure):
            yield "Of the paired tests with against without search, none stands after Holm's correction."


def _share(value: float) -> str:
    return "–" if value != value else f"{100 * value:.1f}%"


def _number(value: float, form: str = ".2f") -> str:
    return "–" if value != value else format(value, form)
