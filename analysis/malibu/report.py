"""MALIBU's report: everything the paper shows, computed as the paper does, and what stands up beside it."""

from __future__ import annotations

from typing import Any

import pandas as pd

from parley.analysis.malibu import figures
from parley.analysis.malibu.agreement import agreement, changed_minds, parsing
from parley.analysis.malibu.pairs import position, ranking, win_rates
from parley.analysis.malibu.panel import checked
from parley.analysis.malibu.scores import differences, mean_scores
from parley.analysis.malibu.significance import significance
from parley.analysis.malibu.words import in_words
from parley.analysis.reporting.report import Figure, Report, Table

WITHIN = "Intervals are 95%, over scenarios: what is said about one scenario is not independent, scenarios are."


def report(
    verdicts: pd.DataFrame,
    *,
    units: pd.DataFrame | None = None,
    title: str = "MALIBU",
    draws: int = 2000,
    seed: int = 0,
    **about: Any,
) -> Report:
    """All of it from a frame of verdicts; `about` is handed on (runs, cautions)."""
    verdicts = checked(verdicts)
    means, gaps = mean_scores(verdicts), differences(verdicts, draws=draws, seed=seed)
    wins, ranks = win_rates(verdicts), ranking(verdicts, draws=draws, seed=seed)
    tested = significance(verdicts, draws=draws, seed=seed)
    agreed, changed = agreement(verdicts, draws=draws, seed=seed), changed_minds(verdicts)
    placed, read = position(verdicts), parsing(verdicts)
    several = verdicts["model"].nunique() > 1
    model = ("model",) if several else ()
    tables = [
        Table(
            "means",
            "Phase 1: mean scores",
            means,
            (*model, "identity", "metric", "mean", "low", "high", "n", "clusters"),
            printed=True,
        ),
        Table(
            "differences",
            "Phase 1: differences between identities on the same scenarios",
            gaps,
            (
                *model,
                "category",
                "first",
                "second",
                "metric",
                "difference",
                "low",
                "high",
                "p",
                "p_adjusted",
                "clusters",
                "note",
            ),
            "First minus second. Interval: bootstrap over scenarios; p: sign flips over them, within categories only.",
        ),
        Table(
            "win_rates",
            "Phase 2: win rates",
            wins,
            (
                *model,
                "identity",
                "wins",
                "losses",
                "ties",
                "rate",
                "low",
                "high",
                "cluster_low",
                "cluster_high",
                "rate_ties_half",
            ),
            "low, high: Wilson, which takes verdicts for independent; cluster_low, cluster_high: over scenarios.",
            printed=True,
        ),
        Table(
            "ranking",
            "Phase 2: Bradley–Terry strengths",
            ranks,
            (*model, "category", "identity", "strength", "low", "high", "note"),
            "Log odds around 0, ties as half, the place in the prompt taken out where both orders were held.",
        ),
        Table(
            "tests",
            "Tests",
            tested,
            (
                *model,
                "family",
                "category",
                "metric",
                "statistic",
                "df",
                "p",
                "p_adjusted",
                "effect",
                "low",
                "high",
                "assumption",
                "note",
            ),
            "p_adjusted: Holm within the family. Rows that assume independence are the paper's, for comparison only.",
        ),
        Table("position", "Position and flips", placed),
        Table(
            "agreement",
            "Agreement of the judges, by round",
            agreed,
            (*model, "phase", "round", "metric", "coefficient", "value", "low", "high", "judges"),
        ),
        Table("changed_minds", "Did talking change minds? From the first round to the last", changed),
        Table("parsing", "How replies could be read", read),
    ]
    counts = f"{verdicts['scenario'].nunique()} scenarios, {len(verdicts):,} verdicts"
    drawn = [
        Figure(
            "scores",
            f"Mean scores by identity ({counts}).",
            "means",
            lambda: figures.scores_figure(means, title, _note(counts)),
        ),
        Figure(
            "matrix",
            f"Row minus column, all metrics together ({counts}). Framed: same category; starred: p < 0.05 after Holm.",
            "differences",
            lambda: figures.matrix_figure(
                gaps, title, f"{counts}. Framed: within a category. *: p < 0.05, sign flips over scenarios, after Holm."
            ),
        ),
        Figure(
            "win-rates",
            f"Win rates with intervals: thick over scenarios, thin Wilson's ({counts}).",
            "win_rates",
            lambda: figures.wins_figure(
                wins, title, f"{counts}. Thick: 95% over scenarios; thin: 95% Wilson, n decided pairs."
            ),
        ),
        Figure(
            "agreement",
            f"Agreement of the judges by round ({counts}).",
            "agreement",
            lambda: figures.agreement_figure(agreed, title, _note(counts)),
        ),
    ]
    return Report(
        title,
        tuple(in_words(verdicts, gaps, tested, placed, read)),
        tables=tuple(tables),
        figures=tuple(figure for figure in drawn if any(t.name == figure.table and len(t.frame) for t in tables)),
        settings={"draws": draws, "seed": seed},
        **about,
    )


def _note(counts: str) -> str:
    return f"{counts}. {WITHIN}"
