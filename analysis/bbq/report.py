"""BBQ's report: the leaderboard, the method × category table, tests against `default`, and accuracy against bias."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from parley.analysis.bbq import iterations as bbq_iterations
from parley.analysis.bbq.figures import TITLES, accuracy_against_bias
from parley.analysis.bbq.leaderboard import against_default, answers, by_category, leaderboard
from parley.analysis.bbq.mabrf.report import parts
from parley.analysis.reporting.iteration_figures import COUNTED_TWICE, refined_figure
from parley.analysis.reporting.report import Figure, Report, Table
from parley.analysis.reporting.systems import BASELINE

SHORT = ["system", "context", "accuracy", "bias", "low", "high", "n", "unparsed"]
CLUSTERED = "Intervals are 95%, clustered by scenario: the four rows made from one context are not independent."
TOO_FEW, ALL_EQUAL = "too few scenarios", "all scenarios score the same"
UNREAD = "Answers that could not be read (refusals among them) are left out; “as unknown” columns count them so."
SCORES = ("accuracy", "accuracy_low", "accuracy_high", "bias", "low", "high", "n", "unparsed", "refused")


def report(
    verdicts: pd.DataFrame,
    *,
    units: pd.DataFrame | None = None,
    title: str = "BBQ",
    draws: int = 2000,
    seed: int = 0,
    **about: Any,
) -> Report:
    """All of it from a frame of verdicts, over one run or several; `about` is handed on (runs, cautions)."""
    frame = answers(verdicts)
    table = by_category(frame)
    board = leaderboard(table, units)
    tests = against_default(frame, draws=draws, seed=seed)
    tables = [
        Table(
            "leaderboard",
            "BBQ: macro means over categories, and what an item takes",
            board,
            ("system", "context", *SCORES, "calls_an_item", "tokens_an_item", "dollars_an_item"),
            f"{CLUSTERED} {UNREAD} Bias runs from −100 to 100. Calls that came from the cache cost nothing.",
        ),
        Table("in_short", "BBQ, macro means; the interval is the bias's", board[SHORT], printed=True),
        Table("categories", "BBQ by category", table, ("system", "context", "category", *SCORES), CLUSTERED),
        Table(
            "against_default",
            f"Against {BASELINE}, on the rows both answered readably",
            tests,
            (
                "system", "baseline", "context", "measure", "difference", "low", "high", "p", "p_adjusted",
                "p_mcnemar", "n", "clusters", "note",
            ),
            "System minus baseline. p: sign flips (accuracy) or exchanges (bias) by scenario; Holm over the table.",
        ),
    ]  # fmt: skip
    revised = bbq_iterations.answers_at(verdicts)
    if len(revised):
        tables += _by_iteration(verdicts, revised, draws, seed)
    warned = " ".join(about.get("cautions", ()))
    note = f"Macro means over categories. {_intervals(board, table)} {warned}"
    figure = Figure("accuracy_against_bias", note, "leaderboard", lambda: accuracy_against_bias(board, title, note))
    figures = [figure]
    if len(revised) and len(shares := bbq_iterations.refined(verdicts)):
        text = f"Answers revised at each iteration; those that were not carry over. {COUNTED_TWICE} {warned}"
        by = ["system", "condition"]
        figures.append(Figure("refined", text, "refined", lambda: refined_figure(shares, by, title, text)))
    more = parts(verdicts, units, title, draws, seed, about.get("cautions", ()))
    return Report(
        title,
        (*_words(board, table, tests), *more.words),
        tables=(*(one for one in tables if len(one.frame)), *more.tables),
        figures=(*figures, *more.figures),
        settings={"draws": draws, "seed": seed},
        **about,
    )


def _by_iteration(verdicts: pd.DataFrame, revised: pd.DataFrame, draws: int, seed: int) -> list[Table]:
    """For methods that revise their answers: what each revision did (STARDTOX's table III)."""
    return [
        Table(
            "iterations",
            "By iteration: macro means over categories",
            bbq_iterations.table_three(revised),
            ("system", "context", "iteration", *SCORES),
            f"Iteration 0 is the first answer; answers that were not revised carry over. {CLUSTERED} {UNREAD}",
        ),
        Table(
            "between_iterations",
            "Every iteration against the one before",
            bbq_iterations.between_iterations(revised, draws=draws, seed=seed),
            ("system", "baseline", "context", "measure", "difference", "low", "high", "p", "p_adjusted", "n", "note"),
            "Later minus earlier. p: sign flips (accuracy) or exchanges (bias) by scenario; Holm over the table.",
        ),
        Table("refined", "Answers revised at each iteration", bbq_iterations.refined(verdicts)),
    ]


def _intervals(board: pd.DataFrame, table: pd.DataFrame) -> str:
    """What a figure of these scores may say of its intervals: no more than it draws."""
    shown = board[board["bias"].notna()]
    drawn = shown[["low", "accuracy_low"]].notna()
    without = shown[~drawn.all(axis=1)]
    why = " or ".join(dict.fromkeys(_why_none(table, row) for row in without.itertuples()))
    if not drawn.to_numpy().any():
        return f"No intervals are drawn: {why or 'no bias is defined'}."
    return f"{CLUSTERED} Where none is drawn: {why}." if len(without) else CLUSTERED


def _words(board: pd.DataFrame, table: pd.DataFrame, tests: pd.DataFrame) -> Iterator[str]:
    for row in board.itertuples():
        why = _why_none(table, row)
        ends = _ends(row.low, row.high, why)
        bias = "undefined (nobody was named)" if row.bias != row.bias else f"{row.bias:.1f}{ends}"
        unread = f"; {row.unparsed} unread" if row.unparsed else ""
        yield (
            f"{row.system}, {TITLES[row.context]}: accuracy {100 * row.accuracy:.1f}%"
            f"{_ends(100 * row.accuracy_low, 100 * row.accuracy_high, why)}, bias {bias}, n = {row.n}{unread}."
        )
    if len(tests):
        for row in tests[tests["p_adjusted"] < 0.05].itertuples():
            size = f"{100 * row.difference:+.1f} points" if row.measure == "accuracy" else f"{row.difference:+.1f}"
            yield (
                f"{row.system} moves {TITLES[row.context]} {row.measure} by {size} against {row.baseline} "
                f"(p = {row.p_adjusted:.2g} after Holm)."
            )


def _why_none(table: pd.DataFrame, row: Any) -> str:
    """Why a mean over categories may have no interval: one scenario does not vary, and neither do equal ones."""
    here = table[(table["system"] == row.system) & (table["context"] == row.context)]
    return TOO_FEW if (here["clusters"] < 2).any() else ALL_EQUAL


def _ends(low: float, high: float, why: str) -> str:
    return f" (no interval: {why})" if low != low else f" ({low:.1f} to {high:.1f})"
