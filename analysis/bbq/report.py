"""BBQ's report: the leaderboard, the method × category table, tests against `default`, and accuracy against bias."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from parley.analysis.bbq import iterations as bbq_iterations
from parley.analysis.bbq.figures import TITLES, accuracy_against_bias, forests
from parley.analysis.bbq.leaderboard import against_default, answers, by_category, leaderboard
from parley.analysis.bbq.mabrf.report import parts
from parley.analysis.reporting.forest import filled
from parley.analysis.reporting.iterations import COUNTED_TWICE, refined_figure
from parley.analysis.reporting.optimism import BY, gap_sentences, gap_table, optimism_gaps
from parley.analysis.reporting.report import NO_CONTEXT, Figure, Report, ReportContext, Table
from parley.analysis.reporting.systems import BASELINE, system_facets
from parley.analysis.reporting.verdicts import MissingColumns
from parley.analysis.stats.resampling import words_on_draws

SHORT = ["system", "context", "accuracy", "bias", "low", "high", "n", "unparsed"]
CLUSTERED = (
    "Intervals are 95%, over question templates: they are about further templates of this kind. The scenario columns "
    "are a sensitivity analysis, about further rows of the same templates."
)
GAPS = (
    "Clusters are question templates. STARDTOX: 100 minus the judge's support, against BBQ's key (100 if wrong). "
    "MABRF: the judge's bias, 1 to 10, of the first and of the chosen chain. Its outside judge reads both chains with "
    "another prompt; by default it is the judge's own model, and what both take for granted, neither sees. The same "
    "judge again: the gap that choosing the lowest score makes by itself."
)
TOO_FEW, ALL_EQUAL = "too few templates", "all templates score the same"
TESTED = (
    "p: sign flips (accuracy: mean over templates) or swaps of the two (bias), by template; Holm-corrected over the "
    "table. p_mcnemar takes every row as independent, p_scenario every scenario (a sensitivity analysis)."
)
UNREAD = "Unreadable answers, refusals included, are left out; the “as unknown” columns count them as unknown."
SCORES = (
    "accuracy", "accuracy_low", "accuracy_high", "bias", "low", "high", "scenario_low", "scenario_high", "n",
    "clusters", "unparsed", "refused", "cut",
)  # fmt: skip


def report(verdicts: pd.DataFrame, context: ReportContext = NO_CONTEXT) -> Report:
    """The report of one run or several.

    Args:
        verdicts: One row per verdict.
        context: What the report is given beside them.
    """
    title = context.title or "BBQ"
    frame = answers(verdicts)
    if frame.empty:
        raise MissingColumns("none of its verdicts is an answer")
    table = by_category(frame)
    board = leaderboard(table, context.units)
    tests = against_default(frame, draws=context.draws, seed=context.seed)
    tables = [
        Table(
            name="leaderboard",
            title="BBQ: macro means over categories, and cost per item",
            frame=board,
            shown=("system", "context", *SCORES, "calls_an_item", "tokens_an_item", "dollars_an_item"),
            note=f"{CLUSTERED} {UNREAD} Bias is between −100 and 100. Cached calls cost nothing.",
        ),
        Table(
            name="in_short",
            title="BBQ: macro means; low and high are the interval of the bias",
            frame=board[SHORT],
            printed=True,
        ),
        Table(
            name="categories",
            title="BBQ by category",
            frame=table,
            shown=("system", "context", "category", *SCORES, "note"),
            note=CLUSTERED,
        ),
        Table(
            name="against_default",
            title=f"Compared with {BASELINE}, on the rows both answered readably",
            frame=tests,
            shown=(
                "system", "baseline", "context", "measure", "difference", "low", "high", "p", "p_adjusted",
                "p_mcnemar", "p_scenario", "n", "clusters", "note",
            ),
            note=f"System minus baseline. {TESTED}",
        ),
    ]  # fmt: skip
    revised = bbq_iterations.answers_at(verdicts)
    if len(revised):
        tables += _by_iteration(verdicts, revised, context)
    note = f"Macro means over categories. {_intervals(board, table)} {context.small_print}"
    figures = [
        Figure(
            name="accuracy_against_bias",
            caption=note,
            table="leaderboard",
            draw=lambda: accuracy_against_bias(board, title, note),
        )
    ]
    if len(revised) and len(shares := bbq_iterations.refined(verdicts)):
        text = (
            "Answers revised at each iteration; those that were not revised carry over. "
            f"{COUNTED_TWICE} {context.small_print}"
        )
        by = ["system", "condition"]
        figures.append(
            Figure(
                name="refined",
                caption=text,
                table="refined",
                draw=lambda: refined_figure(shares, by, title, text),
            )
        )
    more = parts(verdicts, context.units, title, cautions=context.cautions)
    supported = optimism_gaps(bbq_iterations.gap_items(verdicts), BY) if len(revised) else None
    gaps = [frame for frame in (supported, more.gaps) if frame is not None]
    if gaps:
        tables.insert(0, gap_table(pd.concat(gaps, ignore_index=True), GAPS))
    named = (("unsupported answers (points of 100)", supported), ("judged bias (points of 10)", more.gaps))
    headline = () if supported is None else gap_sentences(supported, ["system"], "points")
    return Report(
        title=title,
        words=(*headline, *more.headline, *words_on_draws(context.draws), *_summary(board, table, tests), *more.words),
        tables=(*(table for table in tables if len(table.frame)), *more.tables),
        figures=(*figures, *more.figures),
        forests=filled(
            forests(table, tests, [(what, gap) for what, gap in named if gap is not None], system_facets(frame))
        ),
        settings={"draws": context.draws, "seed": context.seed},
        cautions=tuple(context.cautions),
        runs=tuple(context.runs),
    )


def _by_iteration(verdicts: pd.DataFrame, revised: pd.DataFrame, context: ReportContext) -> list[Table]:
    """For methods that revise their answers: what each revision did (STARDTOX's table III)."""
    return [
        Table(
            name="iterations",
            title="By iteration: macro means over categories",
            frame=bbq_iterations.table_three(revised),
            shown=("system", "context", "iteration", *SCORES),
            note=f"Iteration 0 is the first answer; answers that were not revised carry over. {CLUSTERED} {UNREAD}",
        ),
        Table(
            name="between_iterations",
            title="Each iteration compared with the one before",
            frame=bbq_iterations.between_iterations(revised, draws=context.draws, seed=context.seed),
            shown=(
                "system",
                "baseline",
                "context",
                "measure",
                "difference",
                "low",
                "high",
                "p",
                "p_adjusted",
                "n",
                "note",
            ),
            note=f"Later minus earlier. {TESTED}",
        ),
        Table(name="refined", title="Answers revised at each iteration", frame=bbq_iterations.refined(verdicts)),
    ]


def _intervals(board: pd.DataFrame, table: pd.DataFrame) -> str:
    """What the figure's caption says about its intervals: only those that are drawn."""
    points = board[board["bias"].notna()]
    drawn = points[["low", "accuracy_low"]].notna()
    without = points[~drawn.all(axis=1)]
    why = " or ".join(dict.fromkeys(_why_no_interval(table, row) for row in without.itertuples()))
    if not drawn.to_numpy().any():
        return f"No intervals are drawn: {why or 'no bias is defined'}."
    return f"{CLUSTERED} Points without an interval: {why}." if len(without) else CLUSTERED


def _summary(board: pd.DataFrame, table: pd.DataFrame, tests: pd.DataFrame) -> Iterator[str]:
    for row in board.itertuples():
        why = _why_no_interval(table, row)
        interval = _interval(row.low, row.high, why)
        bias = "undefined (no person was named)" if row.bias != row.bias else f"{row.bias:.1f}{interval}"
        unread = f"; {row.unparsed:,} unreadable" if row.unparsed else ""
        yield (
            f"{row.system}, {TITLES[row.context]}: accuracy {100 * row.accuracy:.1f}%"
            f"{_interval(100 * row.accuracy_low, 100 * row.accuracy_high, why)}, bias {bias}, n = {row.n:,}{unread}."
        )
    if len(tests):
        for row in tests[tests["p_adjusted"] < 0.05].itertuples():
            size = f"{100 * row.difference:+.1f} points" if row.measure == "accuracy" else f"{row.difference:+.1f}"
            yield (
                f"{row.system} changes {TITLES[row.context]} {row.measure} by {size} compared with {row.baseline} "
                f"(p = {row.p_adjusted:.2g} after Holm correction)."
            )


def _why_no_interval(table: pd.DataFrame, row: Any) -> str:
    """Why a mean over categories may have no interval: a category with one template, or no spread between templates."""
    categories = table[(table["system"] == row.system) & (table["context"] == row.context)]
    return TOO_FEW if (categories["clusters"] < 2).any() else ALL_EQUAL


def _interval(low: float, high: float, why: str) -> str:
    return f" (no interval: {why})" if low != low else f" ({low:.1f} to {high:.1f})"
