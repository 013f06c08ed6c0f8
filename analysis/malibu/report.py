"""MALIBU's report: what the paper shows, computed as the paper does, beside statistics that respect the design."""

from __future__ import annotations

from typing import Any

import pandas as pd

from parley.analysis.malibu import figures
from parley.analysis.malibu.agreement import agreement, changed_minds, parsing
from parley.analysis.malibu.pairs import position, ranking, win_rates
from parley.analysis.malibu.panel import Verdicts, panel_data
from parley.analysis.malibu.scores import differences, mean_scores
from parley.analysis.malibu.significance import significance
from parley.analysis.malibu.summary import summary
from parley.analysis.reporting.report import Figure, Report, Table
from parley.analysis.reporting.text import plural

CLUSTERED = "Intervals are 95%, over scenarios: verdicts on one scenario are not independent, scenarios are."


def report(
    verdicts: Verdicts,
    *,
    units: pd.DataFrame | None = None,
    title: str = "MALIBU",
    draws: int = 2000,
    seed: int = 0,
    **about: Any,
) -> Report:
    """The report of one run or several.

    Args:
        verdicts: One row per verdict, or their `PanelData`.
        units: Not used; every study's report takes it.
        title: Of the report and its figures.
        draws: Draws of each bootstrap and permutation test.
        seed: Of all draws.
        about: Passed on to `Report` (runs, cautions).
    """
    data = panel_data(verdicts)  # every table below reads the same reductions
    means, gaps = mean_scores(data), differences(data, draws=draws, seed=seed)
    wins, ranks = win_rates(data), ranking(data, draws=draws, seed=seed)
    tests = significance(data, draws=draws, seed=seed)
    agreed, changed = agreement(data, draws=draws, seed=seed), changed_minds(data)
    order_effects, statuses = position(data), parsing(data)
    model = ("model",) if data.verdicts["model"].nunique() > 1 else ()
    tables = [
        Table(
            name="means",
            title="Phase 1: mean scores",
            frame=means,
            shown=(*model, "identity", "metric", "mean", "low", "high", "n", "clusters"),
            printed=True,
        ),
        Table(
            name="differences",
            title="Phase 1: differences between identities on the same scenarios",
            frame=gaps,
            shown=(
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
            note="First minus second. Interval: bootstrap over scenarios. p: sign flips over scenarios, within "
            "categories only.",
        ),
        Table(
            name="win_rates",
            title="Phase 2: win rates",
            frame=wins,
            shown=(
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
            note="low, high: Wilson interval, which assumes independent verdicts; cluster_low, cluster_high: over "
            "scenarios.",
            printed=True,
        ),
        Table(
            name="ranking",
            title="Phase 2: Bradley–Terry strengths",
            frame=ranks,
            shown=(*model, "category", "identity", "strength", "low", "high", "note"),
            note="Log odds around 0, ties as half a win, adjusted for the order in the prompt if both orders were run.",
        ),
        Table(
            name="tests",
            title="Tests",
            frame=tests,
            shown=(
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
            note="p_adjusted: Holm within the family. Rows that assume independence are the paper's, for comparison "
            "only.",
        ),
        Table(name="position", title="Position effects and flips", frame=order_effects),
        Table(
            name="agreement",
            title="Agreement between the judges, by round",
            frame=agreed,
            shown=(*model, "phase", "round", "metric", "coefficient", "value", "low", "high", "judges"),
        ),
        Table(
            name="changed_minds",
            title="Did the discussion change minds? From the first round to the last",
            frame=changed,
        ),
        Table(name="parsing", title="How replies were parsed", frame=statuses),
    ]
    scenarios = data.verdicts["scenario"].nunique()
    counts = f"{plural(scenarios, 'scenario')}, {plural(len(data.verdicts), 'verdict')}"
    drawn = [
        Figure(
            name="scores",
            caption=f"Mean scores by identity ({counts}).",
            table="means",
            draw=lambda: figures.scores_figure(means, title, f"{counts}. {CLUSTERED}"),
        ),
        Figure(
            name="matrix",
            caption=f"Row minus column, all metrics together ({counts}). Framed: same category; starred: p < 0.05 "
            "after Holm correction.",
            table="differences",
            draw=lambda: figures.matrix_figure(
                gaps,
                title,
                f"{counts}. Framed: within a category. *: p < 0.05, sign flips over scenarios, Holm-corrected.",
            ),
        ),
        Figure(
            name="win-rates",
            caption=f"Win rates with 95% intervals: thick, over scenarios; thin, Wilson ({counts}).",
            table="win_rates",
            draw=lambda: figures.wins_figure(
                wins,
                title,
                f"{counts}. Thick: 95% interval over scenarios; thin: 95% Wilson; n: decided pairs.",
            ),
        ),
        Figure(
            name="agreement",
            caption=f"Agreement between the judges by round ({counts}).",
            table="agreement",
            draw=lambda: figures.agreement_figure(agreed, title, f"{counts}. {CLUSTERED}"),
        ),
    ]
    filled = {table.name for table in tables if len(table.frame)}
    return Report(
        title=title,
        words=tuple(summary(scenarios, gaps, tests, order_effects, statuses)),
        tables=tuple(tables),
        figures=tuple(figure for figure in drawn if figure.table in filled),
        settings={"draws": draws, "seed": seed},
        **about,
    )
